"""Windows: opening the one that is due, and the make-up windows of one that failed.

Promises: a window exists once per scheduled instant; a new one closes an older that still waits; windows that
never ran are not invented afterwards (only the newest instant is opened). Never: no request, and no work here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Literal

from include.calendars import Calendar, calendar, last_instant, next_instant, window_for
from include.contract import TERMINAL, CycleStatus, Outcome, Stream, Window
from include.engine import controls, hosts
from include.engine.db import Connection, Row, call_and_commit, connect, query, transaction
from include.engine.verdict import Verdict, counts_of, describe_counts, kst, repetition, where, worker_of

NO_CONNECTION = "no connection to {source} was ever there; with one it comes into service by itself"


@dataclass(frozen=True)
class Found:
    """The newest window of a stream: its cycle's row, and whether this call opened it."""

    row: Row
    opened: bool


@dataclass(frozen=True)
class Standing:
    """How a stream stands at an instant of the database's clock.

    `newest` is its newest window, `own` the window that was asked about, `frozen` why nothing of it may be claimed,
    `off` why no window of any stream is opened.
    """

    now: datetime
    newest: Row | None
    own: Row | None
    frozen: str | None
    off: str | None = None


@dataclass(frozen=True)
class Unattended:
    """A window that nobody works on: the instant since which somebody should, and why, in words."""

    since: datetime
    why: str


def declare(
    url: str, streams: tuple[Stream, ...], is_connected: Callable[[Stream], bool] = lambda stream: True
) -> None:
    """Write the streams, host groups and default controls as declared; idempotent, done at each start and tick.

    A stream comes into service with the first connection of its source: until then nothing is expected of it. Whoever
    is about to ask an upstream has one.

    Args:
        url: libpq address of the warehouse.
        streams: the streams.
        is_connected: whether the caller knows of a connection to a stream's source; one who cannot know says no, which
            takes nothing out of service.

    Raises:
        SettingError: the file of default controls cannot be used.
    """
    connection = connect(url, autocommit=True)
    try:
        hosts.declare(connection, {stream.host_group.name: stream.host_group for stream in streams}.values())
        for stream in streams:
            connection.execute(
                query("windows.declare"),
                {
                    "stream": stream.name,
                    "source": stream.source,
                    "title": stream.title,
                    "host_group": stream.host_group.name,
                    "calendar": stream.calendar,
                    "job": stream.job_name,
                    "sla_eligible": stream.sla_eligible,
                    "listing": stream.listing,
                    "empty_can_be_right": stream.empty_can_be_right,
                    "parser_version": stream.parser_version,
                    "lacks": None if is_connected(stream) else NO_CONNECTION.format(source=stream.source),
                },
            )
        controls.load_defaults(connection)
    finally:
        connection.close()


def now(connection: Connection) -> datetime:
    """Return the database's time, the only clock."""
    row = connection.execute(query("engine.clock")).fetchone()
    assert row is not None
    instant: datetime = row["now"]
    return instant


def dispatch_off(connection: Connection) -> str | None:
    """Return why no windows are opened at all, None where they are."""
    row = connection.execute(query("windows.off")).fetchone()
    assert row is not None
    off: str | None = row["off"]
    return off


def days_of(connection: Connection, stream: Stream) -> Calendar:
    """Return the stream's calendar with the exceptions that an operator decided."""
    rows = connection.execute(query("windows.exceptions"), {"calendar": stream.calendar}).fetchall()
    return calendar(stream.calendar, {row["day"]: row["state"] == "open" for row in rows})


def propose(url: str, calendar_name: str, day: date, who: str, why: str) -> None:
    """Put a day forward for an operator's word; one that is there already stays as it is."""
    with transaction(url, application="daybook calendar") as connection:
        connection.execute(
            query("calendar.propose"), {"calendar": calendar_name, "day": day, "reason": f"{why} (proposed by {who})"}
        )


def decide(
    url: str, calendar_name: str, day: date, state: Literal["open", "closed", "rejected"], who: str, why: str
) -> None:
    """Write an operator's word on a day.

    It passes no gate: the snapshot judges windows by their schedule, which no calendar changes, and by what dispatch
    wrote down; which session a window asks for is worked out by whoever works on it. Keys of a day that is closed after
    all stay in the table and are not asked for: the word may be taken back.
    """
    with transaction(url, application="daybook calendar") as connection:
        connection.execute(
            query("calendar.decide"),
            {"calendar": calendar_name, "day": day, "state": state, "reason": why, "who": who},
        )


def open_due(url: str, stream: Stream) -> Found | None:
    """Open the window that is due now, or its next make-up window, and return the newest one.

    Returns:
        The newest window; None where none was ever due.
    """
    connection = connect(url, application="daybook windows", statement_timeout=15, autocommit=True)
    try:
        # A window whose holder vanished would stand in the way of the one that is due.
        connection.execute(query("lease.recover"), {"stream": stream.name, "limit": 20})
        days, instant = days_of(connection, stream), now(connection)
        start = last_instant(stream.schedule.cron, stream.schedule.timezone, instant)
        newest = _newest(connection, stream)
        if newest is None or newest["window_start"] < start:
            _open(url, stream, window_for(stream, start, days), "scheduled")
        elif (make_up := _make_up(stream, newest, connection, instant)) is not None:
            _open(url, stream, make_up, "make_up")
        after = _newest(connection, stream)
        if after is None:
            return None
        return Found(after, newest is None or after["cycle_id"] != newest["cycle_id"])
    finally:
        connection.close()


def _newest(connection: Connection, stream: Stream) -> Row | None:
    return connection.execute(query("windows.newest"), {"stream": stream.name}).fetchone()


def _make_up(stream: Stream, newest: dict[str, Any], connection: Connection, instant: datetime) -> Window | None:
    """Return the make-up window whose time has come, if the newest window ended in a failure that may pass."""
    if newest["cycle_status"] != CycleStatus.FAILED or newest["failure_kind"] != "retriable":
        return None
    base = connection.execute(query("windows.newest_scheduled"), {"stream": stream.name}).fetchone()
    if base is None:
        return None
    for offset in stream.schedule.make_up:
        start = base["window_start"] + offset
        if newest["window_start"] < start and newest["finished_at"] < start <= instant:
            window = window_for(stream, start, days_of(connection, stream))
            return replace(window, session_date=base["session_date"])
    return None


def _open(url: str, stream: Stream, window: Window, kind: str) -> None:
    connection = connect(url, application="daybook windows", statement_timeout=15)
    try:
        call_and_commit(
            connection,
            query("lease.open_window"),
            {
                "stream": stream.name,
                "slot": window.slot,
                "run_date": window.run_date,
                "start": window.start,
                "due_at": window.due_at,
                "session_date": window.session_date,
                "kind": kind,
            },
        )
    finally:
        connection.close()


def next_session_window(stream: Stream, days: Calendar, after: datetime) -> tuple[date, datetime]:
    """Return the next session of the stream after an instant, and the instant at which its window opens."""
    start = next_instant(stream.schedule.cron, stream.schedule.timezone, after)
    known = window_for(stream, after, days).session_date
    while (session := window_for(stream, start, days).session_date) == known:
        start = next_instant(stream.schedule.cron, stream.schedule.timezone, start)
    assert session is not None
    return session, start


def standing(url: str, stream: Stream, slot: str | None = None) -> Standing:
    """Return how a stream stands; `slot` names a window (its instant in UTC) to be looked up too."""
    connection = connect(url, application="daybook windows", statement_timeout=15, autocommit=True)
    try:
        own = connection.execute(query("windows.of_slot"), {"stream": stream.name, "slot": slot}).fetchone()
        held = connection.execute(query("windows.held"), {"stream": stream.name}).fetchone()
        assert held is not None
        return Standing(now(connection), _newest(connection, stream), own, held["frozen"], held["off"])
    finally:
        connection.close()


def unattended(url: str, stream: Stream, grace: timedelta) -> Unattended | None:
    """Return the window that somebody should work on and nobody does, or None.

    A make-up window whose time has come, or a window that has been waiting, or was never opened, for longer than
    `grace`. A frozen stream, and one that was never worked on, has none; while dispatch is off nothing is opened.
    """
    stands = standing(url, stream)
    newest, instant = stands.newest, stands.now
    if stands.frozen or newest is None or newest["cycle_status"] == CycleStatus.RUNNING:
        return None
    start = last_instant(stream.schedule.cron, stream.schedule.timezone, instant)
    if newest["window_start"] < start:
        is_late = instant - start > grace and stands.off is None
        return Unattended(start, f"the window of {kst(start)} was not opened") if is_late else None
    if newest["cycle_status"] == CycleStatus.PENDING:
        since = newest["next_eligible_at"] or newest["created_at"]
        return Unattended(since, f"{where(newest)} waits since {kst(since)}") if instant - since > grace else None
    if stands.off is not None:
        return None
    connection = connect(url, application="daybook windows", statement_timeout=15, autocommit=True)
    try:
        make_up = _make_up(stream, newest, connection, instant)
    finally:
        connection.close()
    return Unattended(make_up.start, f"the make-up window of {kst(make_up.start)} is due") if make_up else None


def rows_of(url: str, cycle_ids: list[int]) -> dict[int, Row]:
    """Return the rows of some cycles by their numbers."""
    connection = connect(url, application="daybook windows", statement_timeout=15, autocommit=True)
    try:
        rows = connection.execute(query("windows.of_numbers"), {"cycles": cycle_ids}).fetchall()
        return {row["cycle_id"]: row for row in rows}
    finally:
        connection.close()


_WORDS = {CycleStatus.SUCCESS: "DONE", CycleStatus.FAILED: "FAILED", CycleStatus.BUDGET_EXHAUSTED: "BUDGET"}


def verdict_of(row: Row, stream: Stream) -> Verdict:
    """Return what a cycle of a stream that is over came to, read from its row: for whoever comes late.

    Raises:
        ValueError: the cycle is not over.
    """
    status = CycleStatus(row["cycle_status"])
    if status not in TERMINAL:
        raise ValueError(f"Cycle {row['cycle_id']} is {status}; it is not over.")
    counts = counts_of(row)
    outcome = Outcome(row["outcome"])
    word = "PARTIAL" if outcome is Outcome.PARTIAL else _WORDS[status]
    by = f", by {worker_of(row['worked_by'])}" if row["worked_by"] else ""
    words = f"{word} – {where(row)} was over at {kst(row['finished_at'])}{by} ({describe_counts(counts)})"
    if row["failure_reason"]:
        words += f": {row['failure_reason']} ({(row['failure_cause_summary'] or '')[:300].rstrip('.')})"
    if row["session_date"] and not stream.snapshot_only:
        words += f". To collect it again, trigger with {repetition(row['stream'], row['session_date'])}"
    return Verdict(
        row["stream"],
        words,
        status=status,
        outcome=outcome,
        cycle_id=row["cycle_id"],
        slot=row["slot"],
        attempt=row["attempt"],
        session_date=row["session_date"],
        counts=counts,
        requests=row["list_page_count"] + row["detail_request_count"],
        is_partial=outcome is Outcome.PARTIAL,
        is_refused=True,
    )
