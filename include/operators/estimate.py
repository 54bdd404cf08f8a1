"""What a request would do: sessions, chunks, requests and about how long, for a dry run.

Promises: plans with the same functions as the real thing, in flat memory. Never: nothing is written and no request
is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import islice

from include.calendars import Calendar, last_instant, next_instant, window_for
from include.contract import Ask, Mode, Stream
from include.engine import fetches, jobs, plan, windows
from include.engine.db import Connection, connect
from include.engine.jobs import JobRequest
from include.engine.lease import Cycle
from include.engine.verdict import kst

# So many chunks are planned request by request; what is beyond them is counted by their average.
PLANNED_CHUNKS = 500


def describe(url: str, streams: Iterable[Stream], job: JobRequest | None) -> list[str]:
    """Return what would be done, one line a stream.

    Args:
        job: the backfill, replay or poll of keys; None for a plain poll.

    Raises:
        JobRefused: the request cannot be done; the text says why.
    """
    connection = connect(url, application="daybook dry run", autocommit=True)
    try:
        today = windows.now(connection).date() + timedelta(days=1)
        if job is not None:
            jobs.check(job, today)
        return [
            _poll(connection, url, stream) if job is None else _job(connection, job, stream, today)
            for stream in streams
        ]
    finally:
        connection.close()


def _poll(connection: Connection, url: str, stream: Stream) -> str:
    days = windows.days_of(connection, stream)
    stands = windows.standing(url, stream)
    start = last_instant(stream.schedule.cron, stream.schedule.timezone, stands.now)
    is_new = stands.newest is None or stands.newest["window_start"] < start
    if not is_new and stands.newest is not None and stands.newest["finished_at"] is not None:
        opening = next_instant(stream.schedule.cron, stream.schedule.timezone, stands.now)
        return f"{stream.name}: nothing is due; the next window opens at {kst(opening)}"
    window = window_for(stream, start, days)
    cycle = Cycle(0, stream.name, Mode.POLL, window.slot, None, window.session_date, start, {}, {}, 0, 0, {})
    requests = len(plan.for_cycle(connection, stream, cycle, days).requests)
    return (
        f"{stream.name}: window {kst(start)}, session {window.session_date}: {requests} requests, "
        f"{_time(requests, stream)}"
    )


def _job(connection: Connection, job: JobRequest, stream: Stream, today: date) -> str:
    days = windows.days_of(connection, stream)
    chunks, requests, planned, newest, oldest = 0, 0, 0, None, None
    for day in jobs.chunk_days(job, stream, days, today):
        chunks, newest, oldest = chunks + 1, newest or day, day
        if job.mode is not Mode.REPLAY and planned < PLANNED_CHUNKS:
            planned += 1
            requests += _requests(job, stream, days, day)
    place = f"{stream.name}: {chunks:,} chunks" + (f" from {newest} back to {oldest}" if chunks else "")
    if job.mode is Mode.REPLAY:
        units = len(fetches.units_between(connection, stream.name, oldest or today, newest or today))
        return f"{place}, {units:,} stored units to read again, no request"
    total = requests if planned == chunks else round(requests / planned * chunks)
    about = "" if planned == chunks else "about "
    return f"{place}, {about}{total:,} requests, {_time(total, stream)}"


def _requests(job: JobRequest, stream: Stream, days: Calendar, day: date) -> int:
    is_session = days.is_session(day)
    ask = Ask(
        job.mode, sessions=(day,) if is_session else (), closed=() if is_session else (day,), keys=tuple(job.keys)
    )
    return sum(1 for _ in islice(stream.plan(ask), 1_000_000))


def _time(requests: int, stream: Stream) -> str:
    seconds = round((stream.host_group.interval * requests).total_seconds())
    text = str(timedelta(seconds=seconds))
    pace = stream.host_group.interval.total_seconds()
    return f"at least {text} at one request in {pace:g} s ({stream.host_group.name})"
