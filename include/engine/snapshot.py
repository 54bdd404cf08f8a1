"""The 09:00 snapshot: taken at the cutoff by whoever holds the gate, read as what it is, or marked as missed.

Promises: two capturers take one snapshot; a late start takes what the gate still allows and says how late it was;
a date without a verdict shows none. Waiting goes by the database's clock, simulated or not. Never: no request is
sent, nothing is waited for inside the gate, and no verdict is made up afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psycopg

from include.engine import windows
from include.engine.db import Connection, Row, connect, query, transaction
from include.engine.verdict import kst

SEOUL = ZoneInfo("Asia/Seoul")
# How long after the cutoff a snapshot that nobody took is marked as missed.
GRACE = timedelta(minutes=5)
# A clock that is moved meanwhile is noticed this soon, in seconds.
LOOK_SECONDS = 2.0
# From here to the cutoff the capturer sleeps in one piece, in seconds.
LAST_SECONDS = 0.5
PROBES = 7
RECONNECT_SECONDS = 0.5

UNAVAILABLE = "UNAVAILABLE"


@dataclass(frozen=True)
class Item:
    """How one expected stream stood at the cutoff: the window judged, its state, and what was known of it."""

    stream: str
    source: str
    cycle_id: int | None
    slot: str
    run_date: date
    window_start: datetime
    due_at: datetime
    session_date: date | None
    cycle_status: str
    is_late: bool
    fetched_count: int
    is_complete: bool
    abnormal: bool
    close_guarded: bool
    frozen: bool
    frozen_why: str | None
    failure_reason: str | None
    attempt: int
    gate_at: datetime | None


@dataclass(frozen=True)
class Snapshot:
    """The snapshot of a date in Seoul as far as there is one.

    `status` is PENDING, CAPTURED, MISSED, NOT_APPLICABLE, or UNAVAILABLE where the date has no header. `late` and
    `items` are 0 and empty before the cutoff, the verdict once it is captured, and None where there is none.
    """

    day: date
    scheduled_at: datetime
    status: str
    captured_at: datetime | None = None
    captured_by: str | None = None
    offset: timedelta | None = None
    miss_reason: str | None = None
    late: int | None = None
    items: tuple[Item, ...] | None = None

    @property
    def words(self) -> str:
        """What an operator reads of it, beginning with the word that matters."""
        day = self.day.isoformat()
        if self.status == "CAPTURED":
            items, offset = self.items or (), _milliseconds(self.offset)
            taken = f"taken {offset} ms after the cutoff by {self.captured_by}"
            if self.late:
                late = "; ".join(_of(item) for item in items if item.is_late)
                return f"LATE – 09:00 of {day}: {self.late} of {len(items)} streams were late: {late} ({taken})"
            if not items:
                return f"NOTHING EXPECTED – 09:00 of {day}: no stream had a window that was due ({taken})"
            return f"ALL GOOD – 09:00 of {day}: all {len(items)} streams were complete ({taken})"
        if self.status == "MISSED":
            return f"MISSED – 09:00 of {day}: {self.miss_reason}. There is no verdict, and none is made up."
        if self.status == "NOT_APPLICABLE":
            return f"NOT APPLICABLE – 09:00 of {day}: dispatch was off, so nothing was expected."
        if self.status == "PENDING":
            return f"PENDING – 09:00 of {day}: not taken yet; it is due at {kst(self.scheduled_at)}."
        return f"UNAVAILABLE – 09:00 of {day}: there is no snapshot of that date."


@dataclass(frozen=True)
class Taken:
    """What a capturer found: whether this very call took the snapshot, the snapshot, and words for the operator."""

    by_this_call: bool
    is_stopped: bool
    snapshot: Snapshot
    words: str


@dataclass(frozen=True)
class Skew:
    """What to add to this process's monotonic clock to get the database's, and the round trip in seconds."""

    origin: datetime
    local: float
    round_trip: float

    def until(self, instant: datetime, local: float) -> float:
        """Return the seconds from a local instant until one of the database's clock."""
        return (instant - self.origin).total_seconds() - (local - self.local)


def cutoff(day: date) -> datetime:
    """Return the instant that the snapshot of a date is about: 09:00:00 in Seoul."""
    return datetime(day.year, day.month, day.day, 9, tzinfo=SEOUL)


def next_cutoff(url: str) -> tuple[datetime, timedelta]:
    """Return today's cutoff in Seoul by the database's clock, and how long it is until then; negative once past."""
    with transaction(url, application="daybook snapshot", statement_timeout=15) as connection:
        now = windows.now(connection)
    instant = cutoff(now.astimezone(SEOUL).date())
    return instant, instant - now


def read(url: str, day: date) -> Snapshot:
    """Return the snapshot of a date in Seoul, as far as there is one."""
    with transaction(url, application="daybook snapshot", statement_timeout=15) as connection:
        return read_on(connection, day)


def read_on(connection: Connection, day: date) -> Snapshot:
    """Return the snapshot of a date in Seoul on a connection that is there already."""
    # One statement after the other on purpose: a header that becomes final in between has its items by then.
    header = connection.execute(query("snapshot.header"), {"date": day}).fetchone()
    if header is None:
        return Snapshot(day, cutoff(day), UNAVAILABLE)
    items = connection.execute(query("snapshot.items"), {"date": day}).fetchall()
    return _snapshot(header, items)


def _snapshot(header: Row, items: Sequence[Row]) -> Snapshot:
    status, is_captured = header["capture_status"], header["capture_status"] == "CAPTURED"
    is_before = status == "PENDING" and not header["is_past"]
    names = [field.name for field in fields(Item)]
    return Snapshot(
        day=header["snapshot_date"],
        scheduled_at=header["scheduled_at"],
        status=status,
        captured_at=header["captured_at"],
        captured_by=header["captured_by"],
        offset=header["capture_offset"],
        miss_reason=header["miss_reason"],
        late=header["late_count"] if is_captured else 0 if is_before else None,
        items=tuple(Item(**{name: row[name] for name in names}) for row in items)
        if is_captured
        else ()
        if is_before
        else None,
    )


def mark_missed(url: str, grace: timedelta = GRACE, who: str = "upkeep") -> list[str]:
    """End as MISSED what is still pending so long after its cutoff, and active days without a header.

    Safe at any time and any number of times at once. Call it before leases are recovered: a recovery is a state
    write, and the first one after the cutoff would take the snapshot itself.

    Returns:
        What became of each date, in words.
    """
    connection = connect(url, application="daybook upkeep", statement_timeout=15, autocommit=True)
    try:
        rows = connection.execute(query("snapshot.mark_missed"), {"grace": grace, "who": who}).fetchall()
    finally:
        connection.close()
    return [f"the snapshot of {row['snapshot_date']} is {row['capture_status']} now" for row in rows]


def capture_at(
    url: str,
    instant: datetime,
    who: str,
    *,
    may_go_on: Callable[[], bool] = lambda: True,
    nap: Callable[[float], None] = time.sleep,
    local: Callable[[], float] = time.monotonic,
) -> Taken:
    """Wait until a cutoff by the database's clock, and take the snapshot of its date.

    Args:
        url: libpq address of the warehouse.
        instant: the cutoff, 09:00:00 in Seoul; one that has passed is tried at once.
        who: named in the header as the one who took it.
        may_go_on: asked between naps; False ends the wait without a capture.
        nap: sleeps that many seconds.
        local: this process's monotonic clock, in seconds.

    Raises:
        psycopg.OperationalError: the database could not be reached until some minutes after the cutoff.
    """
    day, began = instant.astimezone(SEOUL).date(), local()
    skew: Skew | None = None
    while True:
        try:
            with _capturing(url) as connection:
                while True:
                    skew = _wait(connection, instant, day, may_go_on, nap, local)
                    if skew is None:
                        return _taken("STOPPED", read(url, day))
                    row = connection.execute(query("snapshot.capture"), {"date": day, "who": who}).fetchone()
                    assert row is not None
                    # Too early by less than the clocks could be compared to: the gate is free again, wait the rest.
                    if row["result"] != "EARLY":
                        return _taken(row["result"], read(url, day))
        except psycopg.OperationalError:
            patience = skew.until(instant + GRACE, local()) if skew else began + GRACE.total_seconds() - local()
            if patience < 0 or not may_go_on():
                raise
            nap(RECONNECT_SECONDS)


def _capturing(url: str) -> Connection:
    # In autocommit a statement is a transaction of its own: the gate is given back in the same round trip.
    return connect(url, application="daybook capture", statement_timeout=30, autocommit=True)


def _wait(
    connection: Connection,
    instant: datetime,
    day: date,
    may_go_on: Callable[[], bool],
    nap: Callable[[float], None],
    local: Callable[[], float],
) -> Skew | None:
    """Sleep until an instant of the database's clock; None where the wait was ended."""
    is_warm = False
    while True:
        skew = _measure(connection, local)
        left = skew.until(instant, local())
        if left <= 0:
            return skew
        if not may_go_on():
            return None
        if left <= LAST_SECONDS:
            # Half a round trip later is when the statement would arrive; the gate says EARLY where that was too soon.
            nap(left)
            return skew
        if not is_warm:
            connection.execute(query("snapshot.rehearse"), {"date": day})
            is_warm = True
            continue
        nap(min(left - LAST_SECONDS / 2, LOOK_SECONDS))


def _measure(connection: Connection, local: Callable[[], float]) -> Skew:
    """Compare this process's clock with the database's; the shortest round trip of some counts."""
    best: Skew | None = None
    for _ in range(PROBES):
        before = local()
        instant = windows.now(connection)
        trip = local() - before
        if best is None or trip < best.round_trip:
            best = Skew(instant, before + trip / 2, trip)
    assert best is not None
    return best


def _taken(result: str, found: Snapshot) -> Taken:
    by_this_call = result in ("CAPTURED", "NOT_APPLICABLE")
    words = found.words
    if result == "STOPPED":
        words = f"STOPPED – the wait was ended before the cutoff. {words}"
    elif result == "NO_HEADER":
        words = (
            f"NOTHING TO TAKE – 09:00 of {found.day} was not prepared: dispatch did not run, or nothing was in "
            "service. Nothing is made up; a day that was in service is marked as missed."
        )
    elif not by_this_call:
        words = f"{words} It was so before this call."
    return Taken(by_this_call, result == "STOPPED", found, words)


def _of(item: Item) -> str:
    why = item.frozen_why or item.failure_reason
    return f"{item.stream} {item.cycle_status}" + (f" ({why})" if why else "")


def _milliseconds(offset: timedelta | None) -> Any:
    return round(offset.total_seconds() * 1000) if offset is not None else "?"
