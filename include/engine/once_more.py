"""Doing once more what a window was responsible for: which sessions that is.

Promises: the same answer for a form, a task and the command line. Never: anything is written or asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime

from include.calendars import window_for
from include.contract import Stream
from include.engine import windows
from include.engine.db import connect
from include.engine.jobs import JobRefused


def sessions(url: str, streams: Iterable[Stream], instant: datetime | None = None) -> tuple[date, date]:
    """Return the first and last session that windows of some streams were responsible for.

    Args:
        url: libpq address of the warehouse.
        streams: those that are meant.
        instant: when the windows were scheduled; the newest window of each stream where None.

    Raises:
        JobRefused: no window of a stream has run yet.
    """
    days = [_session(url, stream, instant) for stream in streams]
    return min(days), max(days)


def _session(url: str, stream: Stream, instant: datetime | None) -> date:
    if instant is None:
        newest = windows.standing(url, stream).newest
        if newest is None or newest["session_date"] is None:
            raise JobRefused(
                f"No window of {stream.name} has run yet, so there is nothing to do once more. Leave force out."
            )
        day: date = newest["session_date"]
        return day
    connection = connect(url, application="daybook once more", autocommit=True)
    try:
        session = window_for(stream, instant, windows.days_of(connection, stream)).session_date
    finally:
        connection.close()
    if session is None:
        raise JobRefused(f"The window of {stream.name} at {instant.isoformat()} is responsible for no session.")
    return session
