"""The lookout: what no transaction of collecting knows, because it is about time that passes.

Promises: windows that are past due, checkpoints that lag, answers that do not come, a day that nobody prepared and a
scheduler that is silent become incidents, and incidents whose cause is gone are closed; it may look at any time, from
any number of processes at once, and what it finds is told once. A paused or frozen stream is late all the same, and
its message says so. Never: nothing is repaired or asked here, and no lock is held from one finding to the next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from include.calendars import Calendar, last_instant, window_for
from include.contract import TERMINAL, CycleStatus, Stream
from include.engine import incidents, windows
from include.engine.db import Connection, Row, connect, query
from include.engine.verdict import kst, where

# How long after it was due a window may still be worked on before that is told.
GRACE = timedelta(minutes=5)
# By when after midnight in Seoul the day must have been prepared.
DISPATCH_GRACE = timedelta(minutes=30)
# How long upkeep, which runs every two minutes, may be silent.
SILENCE = timedelta(minutes=6)
# Raw success: answers held of those asked for in an hour, judged from so many on.
FEWEST_ANSWERS, WARNING_SHARE, ERROR_SHARE = 20, 0.95, 0.80

# What runs once a day and leaves a sign of life, and how long after the last one it is missed.
MOST_SILENT = timedelta(hours=26)

UPKEEP, DISPATCH, AUDIT, MAINTENANCE = "upkeep", "dispatch", "audit", "maintenance"
SCHEDULER = "silent/scheduler"


def look(url: str, streams: Sequence[Stream], grace: timedelta = GRACE) -> list[str]:
    """Look at everything once; return what was told, in words.

    Args:
        url: libpq address of the warehouse.
        streams: every stream that is declared; what is open of any other is closed, as nobody looks after it.
        grace: how long a window may be past due.
    """
    connection = connect(url, application="daybook lookout", statement_timeout=30, autocommit=True)
    try:
        told = _close_what_is_over(connection, streams)
        facts = _facts(connection, streams)
        days = {stream.calendar: windows.days_of(connection, stream) for stream in streams}
        is_off = windows.dispatch_off(connection) is not None
        for stream in streams:
            row = facts.get(stream.name)
            if row is not None:
                told += _past_due(connection, stream, row, days[stream.calendar], grace, is_off=is_off)
                told += _lag(connection, stream, row, days[stream.calendar], grace, is_off=is_off)
                told += _empty(connection, stream, row)
        told += _raw_success(connection, {stream.source for stream in streams})
        told += _undispatched(connection)
        told += miss(connection, (AUDIT, MAINTENANCE))
    finally:
        connection.close()
    return told


def tell_past_due(url: str, stream: Stream, start: datetime) -> bool:
    """Tell that the window that was scheduled at an instant is past due; say whether it is.

    One that is over, that a later one has replaced, that lies in the future or before the stream was in service is
    not. It is told under the window's own key, so that whoever else finds it tells nothing more.
    """
    connection = connect(url, application="daybook deadline", statement_timeout=15, autocommit=True)
    try:
        row = _facts(connection, [stream]).get(stream.name)
        days = windows.days_of(connection, stream)
        is_due = start <= windows.now(connection) - stream.schedule.allowance
        if row is None or not row["active"] or not is_due or start < row["activated_at"]:
            return False
        if windows.dispatch_off(connection) is not None:
            return False
        finding = _late(connection, stream, row, window_for(stream, start, days).start, days, timedelta(0))
        if finding is None:
            return False
        incidents.open(connection, **finding)
        return True
    finally:
        connection.close()


def _facts(connection: Connection, streams: Sequence[Stream]) -> dict[str, Row]:
    rows = connection.execute(query("lookout.streams"), {"streams": [stream.name for stream in streams]}).fetchall()
    return {row["stream"]: row for row in rows}


def _close_what_is_over(connection: Connection, streams: Sequence[Stream]) -> list[str]:
    names = {
        "streams": [stream.name for stream in streams],
        "sources": [stream.source for stream in streams],
        "groups": [stream.host_group.name for stream in streams],
    }
    told = []
    for row in connection.execute(query("lookout.over"), {"streams": names["streams"]}).fetchall():
        told += _close(connection, row["incident_key"], row["text"], mended=row["is_mended"])
    for row in connection.execute(query("lookout.without_anybody"), names).fetchall():
        told += _close(connection, row["incident_key"], row["text"], mended=False)
    return told


def _open(connection: Connection, finding: Mapping[str, Any]) -> list[str]:
    return [finding["text"]] if incidents.open(connection, **finding) else []


def _close(connection: Connection, key: str, text: str, *, mended: bool = True) -> list[str]:
    return [text] if incidents.close(connection, [key], text, mended=mended) else []


# --- windows and checkpoints


def _past_due(
    connection: Connection, stream: Stream, row: Row, days: Calendar, grace: timedelta, *, is_off: bool
) -> list[str]:
    schedule, key = stream.schedule, incidents.past_due(stream.name)
    now = windows.now(connection)
    start = last_instant(schedule.cron, schedule.timezone, now - schedule.allowance - grace)
    if is_off or not row["active"] or start < row["activated_at"]:
        return _close(connection, key, _expected_no_more(stream), mended=False)
    finding = _late(connection, stream, row, start, days, grace)
    if finding is None:
        return _close(connection, key, f"no window of {stream.name} is past due any more.")
    return _open(connection, finding)


def _late(
    connection: Connection, stream: Stream, row: Row, start: datetime, days: Calendar, grace: timedelta
) -> dict[str, Any] | None:
    """Return what to tell of the last due window from an instant on, None where it is over."""
    found = connection.execute(
        query("lookout.due_window"), {"stream": stream.name, "start": start, "grace": grace}
    ).fetchone()
    if found is not None and CycleStatus(found["cycle_status"]) in TERMINAL:
        return None
    window = window_for(stream, start, days)
    judged = found or {"window_start": window.start, "session_date": window.session_date}
    status = found["cycle_status"] if found else CycleStatus.NOT_STARTED
    due_at = found["due_at"] if found else window.due_at
    text = f"{stream.name}: {where(judged)} was due at {kst(due_at)} and is {status}. {_held_by(stream, row)}"
    if found is not None and found["next_eligible_at"] is not None:
        text += f" It is asked again at {kst(found['next_eligible_at'])}."
    return {
        "key": incidents.past_due(stream.name),
        "severity": "error",
        "stream": stream.name,
        "alert_key": f"past-due/{stream.name}/{found['slot'] if found else window.slot}",
        "text": text,
    }


def _expected_no_more(stream: Stream) -> str:
    return f"{stream.name} is expected no more: it is out of service, or dispatch is off."


def _held_by(stream: Stream, row: Row) -> str:
    """Say what keeps a stream from being worked, and what would end that."""
    if row["paused_since"] is not None:
        since = kst(row["paused_since"])
        return f"Its DAG {stream.job_name} is PAUSED in Airflow since {since}: unpause it to go on."
    if row["frozen"] is not None:
        return f"It is held: {row['frozen']}. Resume it with `controls resume`."
    return f"See the runs of the DAG {stream.job_name}; it goes on by itself once what holds it up is gone."


def _lag(
    connection: Connection, stream: Stream, row: Row, days: Calendar, grace: timedelta, *, is_off: bool
) -> list[str]:
    schedule, key = stream.schedule, f"lag/{stream.name}"
    now = windows.now(connection)
    start = last_instant(schedule.cron, schedule.timezone, now - schedule.allowance - grace)
    due, held = window_for(stream, start, days).session_date, row["checkpoint"]
    if is_off or not row["active"] or start < row["activated_at"] or due is None:
        return _close(connection, key, _expected_no_more(stream), mended=False)
    since = held or _session_before(stream, row["activated_at"], days)
    behind = 0 if since is None or since >= due else len(days.sessions(since + timedelta(days=1), due))
    if behind <= stream.lag_allowance:
        return _close(connection, key, f"{stream.name} is held or explained up to {held or 'its beginning'}.")
    words = f"it is held or explained {f'up to {held} only' if held else 'of nothing yet'}, {behind} sessions behind"
    return _open(
        connection,
        {
            "key": key,
            "severity": "warning",
            "stream": stream.name,
            "text": f"{stream.name} lags: {words} {due}; allowed are {stream.lag_allowance}. {_held_by(stream, row)}",
        },
    )


def _session_before(stream: Stream, activated_at: datetime, days: Calendar) -> date | None:
    """The last session that was due before a stream came into service: what it was never responsible for."""
    schedule = stream.schedule
    start = last_instant(schedule.cron, schedule.timezone, activated_at)
    return window_for(stream, start, days).session_date


def _empty(connection: Connection, stream: Stream, row: Row) -> list[str]:
    key = f"empty/{stream.name}"
    if not row["is_empty"]:
        return _close(connection, key, f"{stream.name} has rows again.")
    if not row["active"]:
        return []
    text = (
        f"{stream.name}: the window of {kst(row['health_window'])} was complete and without any row, which is never "
        "right there. Nothing was closed because of it. Look at its answers; where they are right, declare it."
    )
    return _open(connection, {"key": key, "severity": "error", "stream": stream.name, "text": text})


# --- answers, the day, the scheduler


def _raw_success(connection: Connection, sources: Collection[str]) -> list[str]:
    told = []
    for row in connection.execute(query("lookout.raw_success"), {"sources": list(sources)}).fetchall():
        received, stored, key = row["received"], row["stored"], f"raw/{row['source']}"
        share = stored / received
        words = f"{row['source']}: {stored} of {received} answers of the last hour ({share:.0%}) are held"
        if received < FEWEST_ANSWERS and stored < received:
            continue
        if share >= WARNING_SHARE:
            told += _close(connection, key, f"{words}.")
            continue
        text = f"{words}; the others failed after their retries, e.g. {(row['error'] or 'without a word')[:300]}. "
        text += "What is missing stays pending and is asked for again."
        severity = "error" if share < ERROR_SHARE else "warning"
        told += _open(connection, {"key": key, "severity": severity, "text": text})
    return told


def _undispatched(connection: Connection) -> list[str]:
    row = _unprepared(connection)
    if row is None:
        return []
    since = row["paused_since"]
    paused = f"The DAG dispatch is PAUSED in Airflow since {kst(since)}: unpause it. " if since is not None else ""
    text = (
        f"{row['day']} was not dispatched: it has no windows and no snapshot yet. {paused}Trigger the DAG dispatch "
        "before 09:00 in Seoul; otherwise that date has no verdict."
    )
    return _open(connection, _of_the_day(row["day"], text))


def _unprepared(connection: Connection) -> Row | None:
    values = {"grace": DISPATCH_GRACE, "job": DISPATCH}
    return connection.execute(query("lookout.undispatched"), values).fetchone()


def _of_the_day(day: date, text: str) -> dict[str, Any]:
    alert_key = f"deadline/dispatch/{day}"
    return {"key": f"undispatched/{day}", "severity": "critical", "text": text, "alert_key": alert_key}


def tell_undispatched(url: str) -> bool:
    """Tell that today in Seoul was not prepared, where that is so; say whether it is."""
    connection = connect(url, application="daybook deadline", statement_timeout=15, autocommit=True)
    try:
        _undispatched(connection)
        return _unprepared(connection) is not None
    finally:
        connection.close()


def miss(connection: Connection, names: Sequence[str], *, ever: bool = False) -> list[str]:
    """Miss daily work of ours that left no sign of life for more than a day: a run that never came, or that failed.

    Args:
        connection: in autocommit, or inside a transaction.
        names: what must run once a day.
        ever: whether that counts also where it never did at all, from when streams came into service on.
    """
    told, values = [], {"names": list(names), "most": MOST_SILENT, "ever": ever}
    silent = {row["name"]: row for row in connection.execute(query("lookout.silent"), values).fetchall()}
    for name in names:
        row = silent[name]
        if row["is_silent"]:
            last = f"last ended well at {kst(row['last'])}" if row["last"] else "never did"
            text = f"The DAG {name}, which runs once a day, {last}. See its runs, and whether it is paused."
            told += _open(connection, {"key": f"silent/{name}", "severity": "warning", "text": text})
        elif row["last"] is not None:
            told += _close(connection, f"silent/{name}", f"the DAG {name} ended well at {kst(row['last'])}.")
    return told


def show_life(url: str, name: str = UPKEEP) -> None:
    """Note that somebody who must run all the time does."""
    connection = connect(url, application="daybook lookout", statement_timeout=15, autocommit=True)
    try:
        connection.execute(query("lookout.alive"), {"name": name})
    finally:
        connection.close()


def listen(url: str, since: datetime) -> bool:
    """Open or close the incident of a silent scheduler; say whether it is silent.

    Args:
        url: libpq address of the warehouse.
        since: when whoever listens began to, by the database's clock: nobody was silent before that.
    """
    connection = connect(url, application="daybook lookout", statement_timeout=15, autocommit=True)
    try:
        row = connection.execute(query("lookout.last_sign"), {"name": UPKEEP}).fetchone()
        assert row is not None
        last, now = row["seen_at"], row["now"]
        if now - max(since, last or since) > SILENCE:
            text = (
                f"Airflow's scheduler is SILENT: upkeep, which runs every two minutes, last did at {kst(last)}. "
                "Nothing is started meanwhile. See `./run status`, the scheduler's log, and whether upkeep is paused."
            )
            incidents.open(connection, key=SCHEDULER, severity="critical", text=text)
            return True
        if last is not None and now - last <= SILENCE:
            incidents.close(connection, [SCHEDULER], f"Airflow's scheduler runs: upkeep did at {kst(last)}.")
        return False
    finally:
        connection.close()


def note_paused(url: str, paused: Mapping[str, bool]) -> None:
    """Note which jobs' DAGs are paused in Airflow, so that whoever looks at their windows can say so.

    The fact is Airflow's; this is a note for those who cannot ask it, as of the last upkeep. Who paused a DAG is asked
    of Airflow itself (`include.ops.paused`).
    """
    connection = connect(url, application="daybook lookout", statement_timeout=15, autocommit=True)
    try:
        for job in sorted(name for name, is_paused in paused.items() if is_paused):
            connection.execute(query("lookout.paused"), {"job": job})
        running: Collection[str] = [name for name, is_paused in paused.items() if not is_paused]
        connection.execute(query("lookout.not_paused"), {"jobs": list(running)})
    finally:
        connection.close()
