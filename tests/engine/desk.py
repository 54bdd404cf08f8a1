"""A desk at which a test plays operator, worker and clock at once, over one database, one raw store and one CDN.

Promises: time stands where the test put it, but for the moments that pass by themselves; sleeping moves the
simulated clock and costs nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg

from include.contract import Credentials, HostGroup, Mode, Stream
from include.engine import cycle, jobs, lease, replay, windows
from include.engine.cycle import Worker
from include.engine.db import Row, connect, query
from include.engine.lease import Cycle, Lease
from include.engine.raw import RawStore
from include.engine.verdict import Verdict
from include.sources.finra import SOURCE
from include.sources.finra.streams import SHORT_VOLUME_STREAM
from tests.engine.cdn import Cdn

NEW_YORK = ZoneInfo("America/New_York")
TUESDAY, WEDNESDAY, THURSDAY, FRIDAY = (date(2026, 9, day) for day in (15, 16, 17, 18))
MONDAY = date(2026, 9, 14)

# FINRA's stream as declared, but without a wait between two requests.
STREAM = replace(SHORT_VOLUME_STREAM, host_group=HostGroup("finra", timedelta(0)))

# One file a day, where a test needs many days.
SMALL = replace(STREAM, recheck=None, plan=lambda ask: STREAM.plan(replace(ask, keys=("CNMS",))))

# The columns that must be the same whoever wrote them.
VALUES = (
    "session_date, facility, symbol, short_volume, short_exempt_volume, total_volume, market, unit, fetch_id, sent_at,"
    " parser_version, extra"
)


def ny(day: date, hour: int = 18, minute: int = 40, second: int = 0) -> datetime:
    """An instant on New York's clock."""
    return datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=NEW_YORK)


class Crash(BaseException):
    """Stands for the death of a process at one point: nothing of ours catches it."""


@dataclass
class Desk:
    """See the module's text. `stream` is what is worked on where a call names no other."""

    url: str
    cdn: Cdn
    raw: RawStore
    stream: Stream = STREAM
    worker_changes: dict[str, Any] = field(default_factory=dict)
    naps: list[float] = field(default_factory=list)

    # --- the database as an observer sees it

    def sql(self, statement: str, *values: Any) -> list[Row]:
        """Run one statement and commit it."""
        with connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def one(self, statement: str, *values: Any) -> Row:
        """The only row of a statement."""
        (row,) = self.sql(statement, *values)
        return row

    def cycles(self) -> list[Row]:
        """All cycles, oldest first."""
        return self.sql("select * from collect.cycles order by cycle_id")

    def cycle(self, cycle_id: int | None = None) -> Row:
        """One cycle; the newest where no number is given."""
        rows = [row for row in self.cycles() if cycle_id is None or row["cycle_id"] == cycle_id]
        return rows[-1]

    def rows(self) -> list[Row]:
        """The table, without what names the worker."""
        return self.sql(
            f'select {VALUES} from market.finra_short_volume order by session_date, facility, symbol collate "C"'
        )

    def history(self) -> list[Row]:
        """The history, without what names the worker."""
        return self.sql(
            f"select {VALUES}, ended_at, reason from market.finra_short_volume_history"
            ' order by session_date, facility, symbol collate "C", sent_at, ended_at, reason'
        )

    def values(self, facility: str = "CNMS", day: date = TUESDAY) -> dict[str, str]:
        """Symbol → short volume of one unit, as text without needless zeros."""
        return {
            row["symbol"]: format(row["short_volume"].normalize(), "f")
            for row in self.rows()
            if row["facility"] == facility and row["session_date"] == day
        }

    def held_days(self) -> set[date]:
        """The sessions of which there are rows."""
        return {row["session_date"] for row in self.rows()}

    def pending(self, *whys: str) -> dict[str, Row]:
        """The pending keys, all or those of some reasons."""
        rows = self.sql("select * from collect.pending order by key")
        return {row["key"]: row for row in rows if not whys or row["why"] in whys}

    def checkpoint(self) -> date | None:
        """The checkpoint of the stream."""
        rows = self.sql("select session_date from collect.checkpoints where stream = %s", self.stream.name)
        return rows[0]["session_date"] if rows else None

    def alerts(self) -> list[str]:
        """The texts in the alert outbox, oldest first."""
        return [row["text"] for row in self.sql("select text from ops.alerts order by alert_id")]

    def quarantine(self, state: str | None = "open") -> list[Row]:
        """Quarantine entries by state, all where none is given."""
        rows = self.sql("select * from collect.quarantine order by quarantine_id")
        return [row for row in rows if state is None or row["state"] == state]

    # --- the clock

    def at(self, instant: datetime) -> None:
        """Put the simulated clock to an instant, and the host group where no one has asked it lately."""
        self.sql("update collect.installation set is_sandbox = true, clock_offset = %s - clock_timestamp()", instant)
        # Where time goes back, so do the reservations of a time that is not yet.
        self.sql("update collect.host_groups set next_allowed_at = %s where next_allowed_at > %s", instant, instant)

    def now(self) -> datetime:
        """The simulated instant."""
        instant: datetime = self.one("select collect.clock() as t")["t"]
        return instant

    def advance(self, **parts: float) -> None:
        """Let time pass."""
        self.sql(
            "update collect.installation set is_sandbox = true, clock_offset = clock_offset + %s", timedelta(**parts)
        )

    def nap(self, seconds: float) -> None:
        """Sleep in simulated time."""
        self.naps.append(seconds)
        self.advance(seconds=seconds)

    # --- work

    def worker(self, **changes: Any) -> Worker:
        """A worker that naps in simulated time."""
        settings: dict[str, Any] = {
            "url": self.url,
            "raw": self.raw,
            "credentials": Credentials(base_url=SOURCE.hosts[0], sandbox_url=self.cdn.url),
            "owner": lease.holder(),
            "nap": self.nap,
        }
        return Worker(**{**settings, **self.worker_changes, **changes})

    def declare(self) -> None:
        """Declare the desk's stream."""
        windows.declare(self.url, (self.stream,))

    def tick(self, stream: Stream | None = None, **changes: Any) -> Verdict | None:
        """What a scheduled run does once: open what is due, and work one slice."""
        used = stream or self.stream
        windows.open_due(self.url, used)
        return cycle.work(self.worker(**changes), used, Mode.POLL, None)

    def poll(self, stream: Stream | None = None, **changes: Any) -> Verdict:
        """Tick, and insist that there was work."""
        verdict = self.tick(stream, **changes)
        assert verdict is not None
        return verdict

    def request(self, mode: Mode, start: date | None = None, end: date | None = None, **more: Any) -> jobs.JobRequest:
        """A job request for the desk's stream."""
        streams = more.pop("streams", (self.stream,))
        if mode is Mode.REPLAY:
            more.setdefault("reason", "a test")
        return jobs.JobRequest(mode, streams, start, end or start, **more)

    def begin(self, request: jobs.JobRequest) -> str:
        """Start a job and plan it; returns its words."""
        words = jobs.start(self.url, request)
        for stream in request.streams:
            jobs.plan(self.url, request, stream)
        return words

    def work_off(
        self, request: jobs.JobRequest, waiting: bool = True, most: int = 500, **changes: Any
    ) -> list[Verdict]:
        """Work a planned job's chunks as a lane does until none is eligible; `waiting` lets time pass up to others."""
        with cycle.keeping_a_line(self.worker(**changes)) as lane:
            return self._work_off(request, waiting, most, {**changes, "line": lane.line})

    def _work_off(self, request: jobs.JobRequest, waiting: bool, most: int, changes: dict[str, Any]) -> list[Verdict]:
        (stream,) = request.streams
        verdicts: list[Verdict] = []
        while True:
            worker = self.worker(**changes)
            if request.mode is Mode.REPLAY:
                verdict = replay.work(worker, stream, request.name)
            else:
                verdict = cycle.work(worker, stream, request.mode, request.name)
            if verdict is not None:
                verdicts.append(verdict)
                if len(verdicts) < most:
                    continue
                assert most < 500, "a job that does not end"
                return verdicts
            later = jobs.next_eligible(self.url, request.name, stream.name)
            if later is None or not waiting:
                return verdicts
            self.at(max(later, self.now()) + timedelta(milliseconds=1))

    def do(self, request: jobs.JobRequest, **changes: Any) -> list[Verdict]:
        """Start, plan and work off a job."""
        self.begin(request)
        return self.work_off(request, **changes)

    def backfill(self, start: date, end: date | None = None, **more: Any) -> list[Verdict]:
        """Do a backfill of a range."""
        return self.do(self.request(Mode.BACKFILL, start, end, **more))

    def replay(self, start: date, end: date | None = None, **more: Any) -> list[Verdict]:
        """Do a replay of a range."""
        return self.do(self.request(Mode.REPLAY, start, end, **more))

    # --- cycles and leases without a slice

    def open_poll(self, start: datetime, session: date | None = None, kind: str = "scheduled") -> int | None:
        """Open a poll window at an instant; its cycle's number, None where it was not opened."""
        window = windows.window_for(self.stream, start, windows.calendar(self.stream.calendar))
        with connect(self.url) as connection:
            row = connection.execute(
                query("lease.open_window"),
                {
                    "stream": self.stream.name,
                    "slot": window.slot,
                    "run_date": window.run_date,
                    "start": window.start,
                    "due_at": window.due_at,
                    "session_date": session or window.session_date,
                    "kind": kind,
                },
            ).fetchone()
            assert row is not None
            return None if row["cycle_id"] is None else int(row["cycle_id"])

    def add_chunks(self, run_id: str, count: int = 1, mode: Mode = Mode.BACKFILL) -> list[int]:
        """Write bare chunks of a run."""
        return [
            row["cycle_id"]
            for row in self.sql(
                "insert into collect.cycles (stream, mode, slot, run_id, session_date, kind, chunk, created_at,"
                " updated_at) select %s, %s, %s || '/' || n, %s, date '2026-09-15' - n, 'chunk',"
                " jsonb_build_object('day', date '2026-09-15' - n), collect.clock(), collect.clock()"
                " from generate_series(0, %s - 1) n returning cycle_id",
                self.stream.name,
                str(mode),
                run_id,
                run_id,
                count,
            )
        ]

    def claim(self, mode: Mode = Mode.POLL, run_id: str | None = None, owner: str = "a worker") -> Lease | None:
        """Claim what is eligible."""
        return lease.claim(self.url, self.stream.name, mode, run_id, owner)

    def claimed(self, mode: Mode = Mode.POLL, run_id: str | None = None, owner: str = "a worker") -> Lease:
        """Claim, and insist on a lease."""
        held = self.claim(mode, run_id, owner)
        assert held is not None
        return held

    def settle(self, held: Lease, status: Any, **facts: Any) -> datetime:
        """Settle a lease in a transaction of its own."""
        connection = connect(self.url)
        try:
            held.guard(connection)
            return held.settle_and_commit(connection, status, facts)
        finally:
            connection.close()


@contextmanager
def crashing_at(point: str, times: int = 1) -> Iterator[Callable[[str], None]]:
    """A `signal` that kills the slice when it passes a point for the given time."""
    passed = 0

    def signal(name: str) -> None:
        nonlocal passed
        if name == point:
            passed += 1
            if passed == times:
                raise Crash(point)

    yield signal
    assert passed >= times, f"the slice never passed {point!r} {times} times"


def beside(work: Callable[[], Any]) -> Beside:
    """Do something in a thread, to be waited for."""
    return Beside(work)


class Beside:
    """Work in a thread of its own; `result` waits for it and raises what it raised."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._outcome: Any = None
        self._failure: BaseException | None = None

        def run() -> None:
            try:
                self._outcome = work()
            except BaseException as failure:
                self._failure = failure

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def result(self, seconds: float = 30) -> Any:
        """What the work gave."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "it never ended"
        if self._failure is not None:
            raise self._failure
        return self._outcome


def wait_until_blocked(url: str, count: int = 1, seconds: float = 10) -> None:
    """Wait until so many sessions of a database wait for a lock."""
    import time

    end = time.monotonic() + seconds
    with connect(url, autocommit=True) as connection:
        while time.monotonic() < end:
            row = connection.execute(
                "select count(*) as n from pg_stat_activity"
                " where datname = current_database() and wait_event_type = 'Lock'"
            ).fetchone()
            assert row is not None
            if row["n"] >= count:
                return
            time.sleep(0.01)
    raise AssertionError(f"{count} sessions never came to wait for a lock")


def make(url: str, cdn: Cdn, folder: Path, instant: datetime | None = None) -> Desk:
    """A desk with its stream declared, on a Tuesday evening in New York."""
    desk = Desk(url, cdn, RawStore(str(folder / "raw")))
    desk.at(instant or ny(TUESDAY))
    desk.declare()
    return desk


__all__ = [
    "FRIDAY",
    "MONDAY",
    "NEW_YORK",
    "SMALL",
    "STREAM",
    "THURSDAY",
    "TUESDAY",
    "UTC",
    "WEDNESDAY",
    "Beside",
    "Crash",
    "Cycle",
    "Desk",
    "beside",
    "crashing_at",
    "make",
    "ny",
    "psycopg",
    "wait_until_blocked",
]
