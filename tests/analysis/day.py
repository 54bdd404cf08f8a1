"""A day of disclosures on a simulated clock: as they appear, with documents that come hours late, and a slow model.

One worker and one poll loop take turns; every step stands for two seconds of the day and costs what its database work
costs. The queueing bound: the same arrivals, each served from when its document is there, first come first served, by
so many lanes of so many seconds each, and nothing else.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from statistics import median

from include.analysis.body import Found
from tests.analysis.office import TEXT, Office

ABSENT = Found("absent", why="014")


@dataclass
class Day:
    """The filings of a day: number → when it appears, and from when its document can be had (None: never)."""

    office: Office
    appears: dict[str, datetime] = field(default_factory=dict)
    there: dict[str, datetime | None] = field(default_factory=dict)
    step: float = 2.0

    def made(self, count: int, hours: float, seed: int = 7) -> Day:
        """Draw a day: a burst in the first minutes, one in twelve late by hours, one in a hundred for ever."""
        chance, begins = Random(seed), self.office.place.now()
        for n in range(count):
            in_burst = chance.random() < 0.15
            after = timedelta(seconds=chance.uniform(0, hours * (180 if in_burst else 3_600)))
            number, kind = f"2026091680{n:04}", chance.random()
            self.appears[number] = begins + after
            late = timedelta(minutes=20) + timedelta(hours=hours / 2) * chance.random()
            self.there[number] = begins + after
            # The first two are one of each, however few there are.
            if n == 0 or kind < 1 / 12:
                self.there[number] = begins + after + late
            elif n == 1 or kind < 1 / 12 + 0.01:
                self.there[number] = None
        return self

    def run(self, until: timedelta) -> dict[str, datetime]:
        """Let the day pass; return when each filing was completed."""
        office, waiting = self.office, sorted(self.appears, key=lambda number: (self.appears[number], number))
        office.texts.find = self._find  # type: ignore[method-assign]
        ends = office.place.now() + until
        while office.place.now() < ends:
            while waiting and self.appears[waiting[0]] <= office.place.now():
                number = waiting.pop(0)
                assert office.file(int(number[-4:])) == number
            worker = office.worker()
            while worker.one() is not None:
                pass
            office.poll()
            if not self._pass(waiting):
                break
        rows = office.sql("select rcept_no, completed_at from dartbrief.analysis_cache where status = 'COMPLETED'")
        return {row["rcept_no"]: row["completed_at"] for row in rows}

    def _find(self, rcept_no: str, title: str, attempt: int, may_go_on: object) -> Found:
        there = self.there[rcept_no]
        return TEXT if there is not None and there <= self.office.place.now() else ABSENT

    def _pass(self, waiting: Sequence[str]) -> bool:
        """Move the clock on: a step where something is under way, to the next thing that happens where nothing is.

        Says whether there is anything still to happen.
        """
        office, now = self.office, self.office.place.now()
        (state,) = office.sql(
            "select count(*) filter (where status = 'PROCESSING') as busy, min(next_try_at) filter (where status in"
            " ('PENDING', 'BODY_PENDING', 'FAILED') and not is_permanent) as next from dartbrief.analysis_cache"
        )
        coming = [at for at in (state["next"], self.appears[waiting[0]] if waiting else None) if at is not None]
        least = now + timedelta(seconds=self.step)
        if not state["busy"] and not coming:
            return False
        office.place.at(least if state["busy"] else max(least, min(coming)))
        return True

    def bound(self, lanes: int, seconds: float) -> dict[str, float]:
        """Latencies in seconds of the ideal: each filing served as its document is there, first come first served."""
        free = [datetime.min.replace(tzinfo=next(iter(self.appears.values())).tzinfo)] * lanes
        heapq.heapify(free)
        found = {}
        for there, number in sorted((there, number) for number, there in self.there.items() if there is not None):
            ends = max(heapq.heappop(free), there) + timedelta(seconds=seconds)
            heapq.heappush(free, ends)
            found[number] = (ends - self.appears[number]).total_seconds()
        return found


@dataclass(frozen=True)
class Latency:
    """From appearance to verdict, in seconds: what was reached, what the bound is, and their ratios."""

    median: float
    p99: float
    bound_median: float
    bound_p99: float

    @property
    def words(self) -> str:
        """In a line."""
        return (
            f"median {self.median:.0f} s ({self.median / self.bound_median:.2f} of the bound), "
            f"p99 {self.p99:.0f} s ({self.p99 / self.bound_p99:.2f} of the bound)"
        )


def latency(day: Day, done: dict[str, datetime], lanes: int, seconds: float) -> Latency:
    """Compare what was reached with the bound, over the filings that were completed."""
    bound = day.bound(lanes, seconds)
    reached = sorted((done[number] - day.appears[number]).total_seconds() for number in done)
    ideal = sorted(bound[number] for number in done)
    last = max(int(len(reached) * 0.99) - 1, 0)
    return Latency(median(reached), reached[last], median(ideal), ideal[last])
