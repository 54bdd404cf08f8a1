"""Streams as a morning in Seoul has them, and the few things that a test does with one: no upstream, no slice.

Promises: only rows, functions of the database and the simulated clock; whoever needs answers takes a `Desk`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from include.calendars import calendar, window_for
from include.contract import HostGroup, Schedule, Stream
from include.engine import dispatch, snapshot, windows
from include.engine.db import Connection, Row, call_and_commit, connect, query
from include.sources.finra.streams import SHORT_VOLUME_STREAM

SEOUL = ZoneInfo("Asia/Seoul")
# A Wednesday; in New York's evening before, FINRA's Tuesday is published.
DAY = date(2026, 9, 16)


def kst(day: date = DAY, hour: int = 0, minute: int = 0, second: float = 0) -> datetime:
    """An instant on Seoul's clock."""
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=SEOUL) + timedelta(seconds=second)


def stream(name: str, cron: str, zone: str = "Asia/Seoul", allowance: int = 60, **more: Any) -> Stream:
    """A stream with a cadence of its own and, of the rest, FINRA's."""
    schedule = Schedule(
        cron=cron,
        timezone=zone,
        retry_first=timedelta(minutes=10),
        retry_every=timedelta(minutes=10),
        last_try=timedelta(hours=4),
        allowance=timedelta(minutes=allowance),
        make_up=more.pop("make_up", (timedelta(minutes=10),)),
    )
    group = HostGroup(name.partition(".")[0], timedelta(0))
    return replace(SHORT_VOLUME_STREAM, name=name, schedule=schedule, host_group=group, **more)


FINRA = stream("finra.short_volume", "35 18 * * 1-5", "America/New_York", 60)
KRX = stream("krx.prices", "10 8 * * 1-5", allowance=50, calendar="XKRX")
DART = stream("dart.disclosures", "*/5 8-19 * * 1-5", allowance=5, calendar="XKRX")
TWICE = stream("ecos.observations", "0 3,15 * * *", allowance=120, calendar="DAILY", job="late")


@dataclass
class Seoul:
    """One database, the clock and some streams."""

    url: str
    streams: tuple[Stream, ...] = (FINRA, KRX, DART, TWICE)
    leases: dict[str, tuple[int, UUID]] = field(default_factory=dict)
    lines: dict[bool, Connection] = field(default_factory=dict, repr=False)

    def line(self, autocommit: bool) -> Connection:
        """A connection that is kept: signing in anew for each statement would be most of the test's time."""
        kept = self.lines.get(autocommit)
        if kept is None or kept.closed:
            kept = self.lines[autocommit] = connect(self.url, autocommit=autocommit)
        return kept

    def close(self) -> None:
        """Close what is kept."""
        for kept in self.lines.values():
            kept.close()

    # --- clock and rows

    def sql(self, statement: str, *values: Any) -> list[Row]:
        """Run one statement and commit it."""
        cursor = self.line(True).execute(statement, values or None)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []

    def one(self, statement: str, *values: Any) -> Row:
        """The only row of a statement."""
        (row,) = self.sql(statement, *values)
        return row

    def at(self, instant: datetime) -> None:
        """Put the simulated clock to an instant."""
        self.sql("update collect.installation set is_sandbox = true, clock_offset = %s - clock_timestamp()", instant)

    def advance(self, **parts: float) -> None:
        """Let time pass."""
        self.sql("update collect.installation set clock_offset = clock_offset + %s", timedelta(**parts))

    def now(self) -> datetime:
        """The simulated instant."""
        instant: datetime = self.one("select collect.clock() as t")["t"]
        return instant

    def activated(self, instant: datetime | None = None) -> Seoul:
        """Declare the streams at an instant, a fortnight earlier where none is given."""
        now = self.now()
        self.at(instant or now - timedelta(days=14))
        windows.declare(self.url, self.streams)
        self.at(now)
        return self

    # --- what a day does

    def dispatch(self) -> dispatch.Dispatched:
        """Dispatch the day of the clock."""
        return dispatch.dispatch(self.url, self.streams)

    def capture(self, day: date = DAY, who: str = "the capturer") -> str:
        """Try to take a snapshot."""
        result: str = self.one("select collect.capture(%s, %s) as r", day, who)["r"]
        return result

    def read(self, day: date = DAY) -> snapshot.Snapshot:
        """The snapshot of a date."""
        return snapshot.read(self.url, day)

    def items(self, day: date = DAY) -> dict[str, snapshot.Item]:
        """The items of a date by stream."""
        return {item.stream: item for item in self.read(day).items or ()}

    def states(self, day: date = DAY) -> dict[str, str]:
        """Stream to state at the cutoff."""
        return {name: item.cycle_status for name, item in self.items(day).items()}

    def open(self, which: Stream, start: datetime, kind: str = "scheduled") -> int | None:
        """Open a window at an instant; its cycle's number, None where it was not opened."""
        window = window_for(which, start, calendar(which.calendar))
        values = {
            "stream": which.name,
            "slot": window.slot,
            "run_date": window.run_date,
            "start": window.start,
            "due_at": window.due_at,
            "session_date": window.session_date,
            "kind": kind,
        }
        (row,) = call_and_commit(self.line(False), query("lease.open_window"), values)
        return row["cycle_id"]

    def claim(self, which: Stream, ttl: str = "10 years") -> int | None:
        """Claim the stream's window; its cycle's number, None where there is none to be had."""
        values = {"stream": which.name, "mode": "poll", "run_id": None, "owner": "a worker", "ttl": ttl}
        rows = call_and_commit(self.line(False), query("lease.claim"), values)
        for row in rows:
            self.leases[which.name] = row["cycle_id"], row["lease_token"]
            return int(row["cycle_id"])
        return None

    def settling(self, which: Stream, status: str = "SUCCESS", **facts: Any) -> dict[str, Any]:
        """The values of a settlement of the lease that is held."""
        cycle, token = self.leases[which.name]
        return {"cycle": cycle, "token": token, "status": status, "facts": json.dumps(facts, default=str)}

    def settle(self, which: Stream, status: str = "SUCCESS", **facts: Any) -> datetime:
        """Settle the lease that is held; returns when, by the gate."""
        if status == "FAILED":
            facts = {"failure_kind": "retriable", "failure_reason": "a test", **facts}
        if status == "BUDGET_EXHAUSTED":
            facts = {"budget": "ITEM_LIMIT", **facts}
        (row,) = call_and_commit(self.line(False), query("lease.settle"), self.settling(which, status, **facts))
        at: datetime = row["settled_at"]
        return at

    def work(self, which: Stream, start: datetime, status: str = "SUCCESS", **facts: Any) -> int:
        """Open a window, claim it and settle it."""
        cycle = self.open(which, start)
        assert cycle is not None
        assert self.claim(which) == cycle
        if status != "RUNNING":
            self.settle(which, status, **{"fetched": 10, **facts})
        return cycle

    def cycles(self, which: Stream | None = None) -> list[Row]:
        """All cycles, or a stream's, by window."""
        rows = self.sql("select * from collect.cycles order by window_start, cycle_id")
        return [row for row in rows if which is None or row["stream"] == which.name]

    def alerts(self) -> dict[str, str]:
        """Key to text of what was told."""
        rows = self.sql("select alert_key, text from ops.alerts order by alert_id")
        return {row["alert_key"]: row["text"] for row in rows}


@contextmanager
def opened(url: str, instant: datetime, streams: tuple[Stream, ...] = (FINRA, KRX, DART, TWICE)) -> Iterator[Seoul]:
    """A warehouse at an instant whose streams have been in service for a fortnight without a snapshot."""
    here = Seoul(url, streams)
    try:
        here.at(instant)
        here.activated()
        snapshot.mark_missed(url)
        here.sql("delete from ops.alerts")
        here.sql("delete from ops.incidents")
        yield here
    finally:
        here.close()
