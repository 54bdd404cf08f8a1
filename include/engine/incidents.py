"""Incidents: what is wrong and lasts, opened and closed by whoever finds it so, in the transaction that knows.

Promises: one incident of a key is open at a time; it is told when it opens, when it gets worse and once more after a
day, and that it is over is told once. Never: nothing is sent from here, and nothing is opened that the next try
repairs: whoever calls has decided that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from include.calendars import last_instant
from include.contract import CycleStatus, Stream
from include.engine.db import Connection, Row, query, transaction
from include.engine.lease import Cycle
from include.engine.verdict import where

Severity = Literal["warning", "error", "critical"]

# What lasts is told again after this: a little less than a day, so that a daily window's next failure is told.
AGAIN = timedelta(hours=20)


def failing(stream: str) -> str:
    """Key of a stream whose windows fail."""
    return f"failing/{stream}"


def partial(stream: str) -> str:
    """Key of a stream whose windows leave keys open time after time."""
    return f"partial/{stream}"


def past_due(stream: str) -> str:
    """Key of a stream whose last due window is not over."""
    return f"past-due/{stream}"


def out_of_budget(stream: str) -> str:
    """Key of a stream that runs out of budget day after day."""
    return f"budget/{stream}"


def put_aside(stream: str, rule: str) -> str:
    """Key of a stream's entries in quarantine for one rule."""
    return f"quarantine/{stream}/{rule}"


def lacking(stream: str, column: str) -> str:
    """Key of a column that is nearly always there and is missing now."""
    return f"missing-values/{stream}/{column}"


def given_up(stream: str) -> str:
    """Key of a stream's pending keys that were given up."""
    return f"given-up/{stream}"


def run(run_id: str, stream: str) -> str:
    """Key of a run of which chunks have failed."""
    return f"run/{run_id}/{stream}"


def block(host_group: str) -> str:
    """Key of a host group that an upstream has blocked."""
    return f"block/{host_group}"


def open(  # noqa: A001
    connection: Connection,
    *,
    key: str,
    severity: Severity,
    text: str,
    stream: str | None = None,
    alert_key: str | None = None,
    again: timedelta = AGAIN,
) -> bool:
    """Open an incident, or see an open one again, in the caller's transaction; say whether it was told.

    Args:
        connection: inside a transaction that has not passed the gate yet, or in autocommit.
        key: kind/what.
        severity: how bad; one that got worse is told again.
        text: for a person: what happened, to what, what was kept, what to do.
        stream: the stream that it is about, where it is about one.
        alert_key: key of the message, where the fact has one of its own; what it is told under again begins with it.
        again: how long after it was last told it is told again.
    """
    values = {
        "key": key, "severity": severity, "text": text, "stream": stream, "alert_key": alert_key, "again": again,
    }  # fmt: skip
    row = connection.execute(query("incidents.open"), values).fetchone()
    assert row is not None
    return bool(row["told"])


def close(connection: Connection, keys: Sequence[str], text: str, *, mended: bool = True) -> int:
    """End the incidents of some keys that are open, in the caller's transaction, and tell so.

    Args:
        connection: inside a transaction that has not passed the gate yet, or in autocommit.
        keys: kind/what of each.
        text: for a person: what ended it.
        mended: whether what was wrong is right again, told as RECOVERED; otherwise it is of no concern any more, or
            cannot be mended, which is told as just that.

    Returns:
        How many there were.
    """
    row = connection.execute(query("incidents.close"), {"keys": list(keys), "text": text, "mended": mended}).fetchone()
    assert row is not None
    return int(row["closed"])


def listed(url: str, since: datetime | None = None) -> list[Row]:
    """Return the incidents that are open, and those that ended since an instant where one is given."""
    with transaction(url, application="daybook incidents", statement_timeout=15) as connection:
        return connection.execute(query("incidents.listed"), {"since": since}).fetchall()


def tell_ending(
    connection: Connection, stream: Stream, cycle: Cycle, status: CycleStatus, text: str, severity: Severity
) -> None:
    """Tell that a window or chunk ended badly: the first of its stream or run, a worse one, and one more a day."""
    key = failing(stream.name) if status is CycleStatus.FAILED else partial(stream.name)
    open(
        connection,
        key=key if cycle.run_id is None else run(cycle.run_id, stream.name),
        severity=severity,
        text=text,
        stream=stream.name,
        alert_key=f"cycle/{cycle.cycle_id}/{status}",
    )


def tell_recovery(connection: Connection, stream: Stream, cycle: Cycle, *, is_partial: bool) -> None:
    """A window that ended well ends what was wrong with the windows before it; a partial one not all of it.

    Where a later window is due already, it is past due still: whoever looks next ends that, or does not.
    """
    keys = [failing(stream.name), out_of_budget(stream.name)]
    if not is_partial:
        keys.append(partial(stream.name))
    row, schedule = connection.execute(query("engine.clock")).fetchone(), stream.schedule
    assert row is not None
    due = last_instant(schedule.cron, schedule.timezone, row["now"] - schedule.allowance)
    if cycle.window_start is not None and cycle.window_start >= due:
        keys.append(past_due(stream.name))
    close(connection, keys, f"{stream.name} is well again: {where(cycle.row)} was collected.")


def tell_put_aside(connection: Connection, stream: str, cycle_id: int, doubted: Sequence[str]) -> None:
    """Tell what a cycle has put to quarantine, by rule, in the transaction that puts it there.

    Args:
        connection: inside that transaction.
        stream: the stream.
        cycle_id: the cycle.
        doubted: the rules of what is not believed, which is told by who doubts it.
    """
    for row in connection.execute(
        query("incidents.put_aside"), {"cycle": cycle_id, "doubted": list(doubted)}
    ).fetchall():
        is_unit = row["scope"] == "unit"
        what = f"{row['units']} answers could not be read" if is_unit else f"{row['entries']} rows broke a rule"
        open(
            connection,
            key=put_aside(stream, row["rule"]),
            severity="error" if is_unit else "warning",
            stream=stream,
            text=f"{stream}: {what} ({row['rule']}; first {row['unit']}: {row['reason'][:300]}). They are kept in "
            "quarantine; what was in order is in the tables. Look with `quarantine list`, then retry, accept or drop.",
        )
