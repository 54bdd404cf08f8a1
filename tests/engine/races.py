"""Races for the cutoff: many writers, capturers and upkeep around 09:00, and the check that every write fell rightly.

Promises: each write is logged with the instant at which it held the gate, as the database gave it; the check reads
the rows and the log, and gives every disagreement as a sentence. The simulated clock jumps from one date's cutoff to
the next one's, so a race takes a few hundredths of a second.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from include.engine import windows
from include.engine.db import Connection, call_and_commit, connect, query
from tests.engine.seoul import DART, DAY, Seoul, kst, stream


@dataclass
class Log:
    """What the writers of one round were told: stream to the instants at which its writes held the gate."""

    writes: dict[str, list[datetime]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, at: datetime) -> None:
        """Note a committed write."""
        with self.lock:
            self.writes.setdefault(name, []).append(at)


@dataclass
class Arena:
    """Streams whose one poll is held for years, so that every settlement of it is a state write of its own."""

    url: str
    size: int = 8
    day: date = DAY
    seed: int = 1

    def __post_init__(self) -> None:
        self.streams = tuple(stream(f"race.s{n}", DART.schedule.cron, allowance=5) for n in range(self.size))
        self.seoul = Seoul(self.url, self.streams)
        self.written = dict.fromkeys((each.name for each in self.streams), 0)
        self.races = self.captured = self.missed = self.by_writer = 0
        self.complaints: list[str] = []
        # Kept from round to round: signing in anew would be most of the time.
        self.connections: dict[int, Connection] = {}

    def open(self) -> Arena:
        """Declare the streams, and claim a window of each that is due before the first cutoff."""
        self.seoul.at(kst(self.day, 0, 1))
        windows.declare(self.url, self.streams)
        self.seoul.at(kst(self.day, 8, 50))
        for each in self.streams:
            assert self.seoul.open(each, kst(self.day, 8, 50)) is not None
            # A date a round: a fight of an hour is tens of years long.
            assert self.seoul.claim(each, ttl="1000 years") is not None
        return self

    def close(self) -> None:
        """Close what is kept."""
        self.seoul.close()
        for connection in self.connections.values():
            connection.close()

    def connection(self, n: int) -> Connection:
        """The connection of the n-th racer."""
        if n not in self.connections:
            self.connections[n] = connect(self.url)
        return self.connections[n]

    # --- one round

    def prepare(self, lead: float) -> datetime:
        """Make the header of the next date, and put the clock so many seconds before its cutoff; the cutoff."""
        self.day += timedelta(days=1)
        expected = [
            {
                "stream": row["stream"],
                "slot": row["slot"],
                "run_date": row["run_date"],
                "window_start": row["window_start"],
                "due_at": row["due_at"],
                "session_date": row["session_date"],
            }
            for each in self.streams
            for row in self.seoul.sql("select * from collect.cycles where stream = %s", each.name)
        ]
        self.seoul.at(kst(self.day, 0, 1))
        values = {"date": self.day, "windows": "[]", "expected": json.dumps(expected, default=str), "who": "the arena"}
        (row,) = call_and_commit(self.seoul.line(False), query("dispatch.day"), values)
        assert (row["capture_status"], row["expected"]) == ("PENDING", self.size)
        cutoff = kst(self.day, 9)
        self.seoul.at(cutoff - timedelta(seconds=lead))
        return cutoff

    def round(self, lead: float = 0.03, tail: float = 0.02, capturers: int = 2) -> None:
        """Race once: every stream's writer and the capturers, from before to after a cutoff."""
        cutoff, log = self.prepare(lead), Log()
        start = threading.Barrier(self.size + capturers)
        end = time.monotonic() + lead + tail
        failures: list[BaseException] = []

        def run(n: int, work: Callable[[Connection], object]) -> None:
            try:
                connection = self.connection(n)
                start.wait(30)
                work(connection)
            except BaseException as failure:
                failures.append(failure)

        jobs: list[Callable[[Connection], object]] = [
            *(self._writer(n, log, lambda: time.monotonic() < end) for n in range(self.size)),
            *(self._capturer(n, cutoff) for n in range(capturers)),
        ]
        threads = [threading.Thread(target=run, args=(n, job), daemon=True) for n, job in enumerate(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a racer never ended"
        if failures:
            raise failures[0]
        self.check(cutoff, log)

    def _writer(self, n: int, log: Log, goes_on: Callable[[], bool]) -> Callable[[Connection], None]:
        chance = random.Random(f"{self.seed}/{self.day}/{n}")
        values = self.seoul.settling(self.streams[n], "RUNNING", fetched=1)

        def work(connection: Connection) -> None:
            while goes_on():
                what = chance.random()
                if what < 0.05:
                    # Passed the gate, wrote, and thought better of it.
                    connection.execute(query("lease.settle"), values)
                    connection.rollback()
                    continue
                if what < 0.25:
                    # Statement by statement, with a stall between gate and commit.
                    row = connection.execute(query("lease.settle"), values).fetchone()
                    assert row is not None
                    time.sleep(chance.random() * 0.004)
                    connection.commit()
                else:
                    (row,) = call_and_commit(connection, query("lease.settle"), values)
                log.add(self.streams[n].name, row["settled_at"])

        return work

    def _capturer(self, n: int, cutoff: datetime) -> Callable[[Connection], None]:
        day = self.day

        def work(connection: Connection) -> None:
            while True:
                values = {"date": day, "who": f"capturer {n}"}
                (row,) = call_and_commit(connection, query("snapshot.capture"), values)
                if row["result"] != "EARLY":
                    return
                left = (cutoff - windows.now(connection)).total_seconds()
                connection.rollback()
                time.sleep(max(left, 0))

        return work

    # --- what must be true afterwards

    def check(self, cutoff: datetime, log: Log) -> None:
        """Compare the snapshot with the log: a write before the cutoff is inside, one after it is not."""
        self.races += self.size
        found = self.seoul.read(self.day)
        if found.status == "PENDING" and not any(at >= cutoff for ats in log.writes.values() for at in ats):
            # Nobody came after the cutoff; the next round's first writer takes it, exactly.
            self.seoul.capture(self.day)
            found = self.seoul.read(self.day)
        items = {item.stream: item for item in found.items or ()}
        before = {name: [at for at in log.writes.get(name, []) if at < cutoff] for name in self.written}
        say = self.complaints.append
        if found.status == "CAPTURED":
            self.captured += 1
            self.by_writer += not str(found.captured_by).startswith("capturer")
            if set(items) != set(self.written):
                say(f"{self.day}: items of {sorted(items)}")
            if found.captured_at is None or found.captured_at < cutoff:
                say(f"{self.day}: captured early, at {found.captured_at}")
            for name, item in items.items():
                wanted = self.written[name] + len(before[name])
                if item.fetched_count != wanted:
                    say(f"{self.day} {name}: {item.fetched_count} writes in the item, {wanted} before the cutoff")
                if before[name] and item.gate_at != max(before[name]):
                    say(f"{self.day} {name}: the item is of {item.gate_at}, the last write of {max(before[name])}")
        elif found.status == "MISSED":
            self.missed += 1
            if self.seoul.sql("select 1 from collect.sla_snapshot_sources where snapshot_date = %s", self.day):
                say(f"{self.day}: missed, and yet with items")
        else:
            say(f"{self.day}: {found.status} although a write came after the cutoff")
        for name in self.written:
            self.written[name] += len(log.writes.get(name, []))
        for row in self.seoul.cycles():
            if row["fetched_count"] != self.written[row["stream"]]:
                say(
                    f"{self.day} {row['stream']}: {row['fetched_count']} in the row, {self.written[row['stream']]} told"
                )
                self.written[row["stream"]] = row["fetched_count"]
