"""Health: what a window that is over says of its stream, and what is told of one that keeps running out of budget.

Promises: a failure is abnormal, and so is a complete answer without items where that is never right; a window out of
budget neither sets nor clears it. Never: nothing is switched off by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from include.contract import AnswerClass, Stream
from include.engine import incidents
from include.engine.db import Connection, query
from include.engine.lease import Cycle

# Days running out of budget, and how bad that is; told at these and on no day between.
WARNING_DAYS, ERROR_DAYS = 2, 7
NEVER = timedelta(days=365)


def is_abnormal(stream: Stream, answers: Iterable[AnswerClass], rows_read: int) -> bool:
    """Say whether a complete window is abnormal: it was answered, without any row, where that is never right."""
    was_answered = any(answer in (AnswerClass.DATA, AnswerClass.EMPTY) for answer in answers)
    return was_answered and not rows_read and not stream.empty_can_be_right


def tell_out_of_budget(connection: Connection, stream: Stream, cycle: Cycle) -> None:
    """Put an alert where a stream has run out of budget two polled days running, and another at seven."""
    run_date = cycle.row["run_date"]
    if run_date is None:
        return
    row = connection.execute(
        query("health.out_of_budget_since"), {"stream": stream.name, "run_date": run_date}
    ).fetchone()
    assert row is not None
    days, since = row["days"], row["since"]
    if days < WARNING_DAYS:
        return
    reached = ERROR_DAYS if days >= ERROR_DAYS else WARNING_DAYS
    incidents.open(
        connection,
        key=incidents.out_of_budget(stream.name),
        stream=stream.name,
        alert_key=f"budget/{stream.name}/{since}/{reached}",
        again=NEVER,
        severity="error" if reached == ERROR_DAYS else "warning",
        text=f"{stream.name} has run out of its day's budget {days} days running, since {since}. It goes on by itself "
        "and nothing is lost, but it lags. Raise the stream's budget, or backfill by hand.",
    )
