"""Chunks: the pieces in which a backfill or replay is worked, a stream's own or its days, and what each one asks.

Promises: newest first and the same each time, one after the other with flat memory. Never: no request, no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from include.calendars import Calendar, last_instant, window_for
from include.contract import Ask, Chunk, Mode, Span, Stream

# Files that are made once more under one lease.
UNITS_OF_A_CHUNK = 100


def latest_day(stream: Stream, now: datetime) -> date:
    """Return the last day that may be asked for: today, in the upstream's own zone."""
    return now.astimezone(ZoneInfo(stream.schedule.day_zone)).date()


def newest(stream: Stream, keys: tuple[str, ...], days: Calendar, now: datetime) -> Iterator[Chunk]:
    """Return the one chunk of a poll of keys: the session of the window that was due last."""
    schedule = stream.schedule
    session = window_for(stream, last_instant(schedule.cron, schedule.timezone, now), days).session_date
    assert session is not None
    yield _day(session, keys)


def between(
    stream: Stream,
    mode: Mode,
    start: date,
    end: date,
    keys: tuple[str, ...],
    days: Calendar,
    now: datetime,
    subjects: tuple[str, ...] = (),
    timeframe: str = "",
    *,
    is_forced: bool = False,
) -> Iterator[Chunk]:
    """Return the chunks of a range of session dates, both inclusive.

    Where a stream names none of its own, a backfill asks for every session and once for every other weekday, as the
    calendar may be wrong; weekends are never asked for. A replay looks at every day of the range, as only what is
    stored can be there.
    """
    today = latest_day(stream, now)
    first, last = max(start, stream.first_session), min(end, today)
    if stream.making is not None:
        yield from _of_units([unit for unit in subjects if not keys or stream.is_of(unit, keys)], last)
        return
    if stream.chunks is not None:
        if first <= last:
            yield from stream.chunks(Span(mode, first, last, today, keys, subjects, timeframe, is_forced))
        return
    day = last
    while day >= first:
        if mode is Mode.REPLAY or day.weekday() < 5 or days.is_session(day):
            yield _day(day, keys)
        day -= timedelta(days=1)


def _of_units(units: Sequence[str], day: date) -> Iterator[Chunk]:
    """The chunks in which every file is made once more."""
    for number, at in enumerate(range(0, len(units), UNITS_OF_A_CHUNK), start=1):
        some = units[at : at + UNITS_OF_A_CHUNK]
        yield Chunk(f"files/{number}", day, {"units": list(some), "again": True})


def _day(day: date, keys: tuple[str, ...]) -> Chunk:
    return Chunk(day.isoformat(), day, {"day": day.isoformat(), "keys": list(keys)})


def after(chunks: Callable[[], Iterator[Chunk]], name: str | None) -> Iterator[Chunk]:
    """Return what follows the chunk of a name; all where it is not among them, as writing one twice changes nothing."""
    if name is None or not any(chunk.name == name for chunk in chunks()):
        yield from chunks()
        return
    found = False
    for chunk in chunks():
        if found:
            yield chunk
        found = found or chunk.name == name


def cut(chunk: Chunk) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the cycles that a chunk is worked in, by name, with what each asks: itself, or its parts (`…#1`, `…#2`).

    Raises:
        ValueError: its name has the sign that marks parts.
    """
    if "#" in chunk.name:
        raise ValueError(f"The chunk {chunk.name!r} has # in its name, which marks the parts of a chunk.")
    if not chunk.parts:
        return [(chunk.name, chunk.asks)]
    return [(f"{chunk.name}#{number}", asks) for number, asks in enumerate(chunk.parts, start=1)]


def ask(
    stream: Stream, mode: Mode, asks: Mapping[str, Any], days: Calendar, cursor: Mapping[str, Any] | None = None
) -> Ask:
    """Return what the stream is asked to plan for a chunk: a day, or what its own chunks say."""
    if "day" not in asks:
        return Ask(mode, keys=tuple(asks.get("keys", ())), cursor=cursor or {}, chunk=asks)
    day = date.fromisoformat(asks["day"])
    is_session = days.is_session(day)
    return Ask(
        mode,
        sessions=(day,) if is_session else (),
        closed=() if is_session else (day,),
        keys=tuple(asks.get("keys", ())),
        cursor=cursor or {},
    )
