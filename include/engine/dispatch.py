"""Dispatch: what a day in Seoul is expected to bring, written down before it comes.

Promises: the header of the day's snapshot, one expectation for each eligible stream, and the windows of streams with
few a day, each created only where it is not there yet, under the gate; so it may run at any time and any number of
times. With dispatch switched off nothing is opened and the day's snapshot is not applicable. Never: no window of the
past is made, and no verdict is prepared once the cutoff has passed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from include.calendars import Calendar, instants, last_instant, window_for
from include.contract import Stream, Window
from include.engine import windows
from include.engine.db import call_and_commit, connect, query
from include.engine.snapshot import SEOUL, UNAVAILABLE, cutoff

# Streams with more windows a day than this make each by its own tick.
MOST_WINDOWS = 4


@dataclass(frozen=True)
class Dispatched:
    """What a dispatch came to: the day, its snapshot's status, and how many windows and expectations it added."""

    day: date
    status: str
    opened: int
    expected: int

    @property
    def words(self) -> str:
        """What an operator reads of it, beginning with the word that matters."""
        day = self.day.isoformat()
        if self.status == "NOT_APPLICABLE":
            return f"OFF – {day}: dispatch is off or was when the day began; no windows, and no snapshot is expected."
        if self.status == "MISSED":
            return f"MISSED – {day}: nothing was prepared before 09:00, so that date has no verdict."
        if self.status == UNAVAILABLE:
            return f"NO SNAPSHOT – {day}: no stream was in service at 09:00. Windows made: {self.opened}."
        if self.opened or self.expected:
            return (
                f"DISPATCHED – {day}: {self.opened} windows made, {self.expected} streams expected at 09:00; "
                f"the snapshot is {self.status}."
            )
        return f"NOTHING TO DO – {day} is dispatched; the snapshot is {self.status}."


def dispatch(
    url: str,
    streams: Sequence[Stream],
    who: str = "dispatch",
    is_connected: Callable[[Stream], bool] = lambda stream: True,
) -> Dispatched:
    """Declare the streams, and write today's header, expectations and windows where they are missing.

    Args:
        url: libpq address of the warehouse.
        streams: every stream that is in the registry.
        who: named in the header as the one who made it.
        is_connected: as for `windows.declare`: of what never had a connection nothing is expected.
    """
    windows.declare(url, tuple(streams), is_connected)
    connection = connect(url, application="daybook dispatch", statement_timeout=30)
    try:
        today = windows.now(connection).astimezone(SEOUL).date()
        days = {stream.calendar: windows.days_of(connection, stream) for stream in streams}
        connection.rollback()
        (row,) = call_and_commit(
            connection,
            query("dispatch.day"),
            {
                "date": today,
                "windows": _rows((s, w) for s in streams for w in windows_of(s, today, days[s.calendar])),
                "expected": _rows((s, expected(s, today, days[s.calendar])) for s in streams if s.sla_eligible),
                "who": who,
            },
        )
    finally:
        connection.close()
    return Dispatched(today, row["capture_status"] or UNAVAILABLE, row["opened"], row["expected"])


def complete(url: str, streams: Sequence[Stream], who: str) -> str:
    """Dispatch again where a stream came into service after the day was dispatched; say what it came to.

    Args:
        url: libpq address of the warehouse.
        streams: every stream that is in the registry.
        who: who does it.

    Returns:
        What was added, in words; empty where the day expects every stream, or was not dispatched at all.
    """
    connection = connect(url, application="daybook dispatch", statement_timeout=15, autocommit=True)
    try:
        values = {"streams": [stream.name for stream in streams]}
        missing = [row["stream"] for row in connection.execute(query("dispatch.unexpected"), values).fetchall()]
    finally:
        connection.close()
    if not missing:
        return ""
    done = dispatch(url, streams, who, is_connected=lambda stream: False)
    return f"{', '.join(missing)} came into service after dispatch: {done.words}"


def windows_of(stream: Stream, day: date, days: Calendar) -> list[Window]:
    """Return a stream's windows of one date in Seoul, in order; none where there are more than `MOST_WINDOWS`."""
    schedule = stream.schedule
    start = datetime(day.year, day.month, day.day, tzinfo=SEOUL)
    fired = instants(schedule.cron, schedule.timezone, start, start + timedelta(days=1), MOST_WINDOWS + 1)
    return [window_for(stream, instant, days) for instant in fired] if len(fired) <= MOST_WINDOWS else []


def expected(stream: Stream, day: date, days: Calendar) -> Window:
    """Return the last scheduled window of a stream that is due at or before 09:00:00 in Seoul of a date."""
    schedule = stream.schedule
    start = last_instant(schedule.cron, schedule.timezone, cutoff(day) - schedule.allowance)
    return window_for(stream, start, days)


def _rows(pairs: Any) -> str:
    return json.dumps(
        [
            {
                "stream": stream.name,
                "slot": window.slot,
                "run_date": window.run_date,
                "window_start": window.start,
                "due_at": window.due_at,
                "session_date": window.session_date,
            }
            for stream, window in pairs
        ],
        default=str,
    )
