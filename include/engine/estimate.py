"""What a plain poll would ask for now, for a dry run.

Promises: plans with the same functions as the real thing. Never: nothing is written and no request is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from include.calendars import last_instant, next_instant, window_for
from include.contract import Mode, Stream
from include.engine import plan, windows
from include.engine.db import Connection, connect
from include.engine.lease import Cycle
from include.engine.verdict import kst


def polls(url: str, streams: Iterable[Stream]) -> list[str]:
    """Return what would be asked for: a heading, one line a stream, and that nothing was done."""
    connection = connect(url, application="daybook dry run", autocommit=True)
    try:
        lines = [_poll(connection, url, stream) for stream in streams]
    finally:
        connection.close()
    return ["DRY RUN – a poll would be:", *lines, "Nothing was written and nothing was asked for."]


def _poll(connection: Connection, url: str, stream: Stream) -> str:
    days = windows.days_of(connection, stream)
    stands = windows.standing(url, stream)
    start = last_instant(stream.schedule.cron, stream.schedule.timezone, stands.now)
    is_new = stands.newest is None or stands.newest["window_start"] < start
    if not is_new and stands.newest is not None and stands.newest["finished_at"] is not None:
        opening = next_instant(stream.schedule.cron, stream.schedule.timezone, stands.now)
        return f"{stream.name}: nothing is due; the next window opens at {kst(opening)}."
    window = window_for(stream, start, days)
    cycle = Cycle(0, stream.name, Mode.POLL, window.slot, None, window.session_date, start, {}, {}, 0, 0, {})
    requests = len(plan.for_cycle(connection, stream, cycle, days).requests) * stream.usual_requests
    pace = stream.host_group.interval
    took = timedelta(seconds=round((pace * requests).total_seconds()))
    return (
        f"{stream.name}: window {kst(start)}, session {window.session_date}: {requests} requests, about {took} at one "
        f"request every {pace.total_seconds():g} s."
    )
