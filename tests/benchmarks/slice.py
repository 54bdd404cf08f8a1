"""Measures what the engine adds to one slice: everything from the claim to the verdict but the upstream's answer.

    ./run bench -k slice
    python tests/benchmarks/slice.py [--rows 1000] [--rounds 40]

Promises: a slice is a whole chunk of a backfill, worked by `cycle.work` as in production: one file of so many rows,
asked for once over loopback HTTP, stored, read and applied. What the asking itself took (`http.send` without the raw
store's writing) is subtracted from the time on the clock. Processor time, which a busy machine inflates less, is
that of this process, with the loopback server in it, and of the database. The parts are measured by wrapping the
functions that do them; a part that is within
another is counted there alone. Never: a network, a sleep, or a wait for a turn.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import psutil

from include.contract import Mode
from include.engine import apply, cycle, db, fetch, fetches, hosts, jobs, lease, merge, plan, stage
from include.engine import closing as ends
from include.engine.raw import RawStore
from tests.benchmarks.measuring import Judged, judge, of_server, spending, summary, warehouse
from tests.engine.cdn import serving
from tests.engine.desk import STREAM, Desk, make, ny

AIM = 0.150
FIRST, KEY = date(2026, 9, 14), "CNMS"

# Part of a slice → the functions that do it, as the slice finds them.
PARTS: dict[str, list[tuple[Any, str]]] = {
    "connect": [(module, "connect") for module in (cycle, lease, apply)],
    "claim": [(cycle, "claim"), (cycle, "claim_on")],
    "plan": [(plan, "for_cycle"), (plan, "spent_today"), (fetches, "not_applied"), (fetches, "answered_keys")],
    "turn": [(hosts, "wait_for_turn")],
    "upstream": [(fetch, "send")],
    "store": [(RawStore, "put")],
    "record": [(fetches, "record"), (fetches, "validators")],
    "parse": [(apply, "read")],
    "stage": [(stage, "fill"), (stage, "check"), (stage, "drop")],
    "merge": [(merge, "newest")],
    "settle": [(lease.Lease, "settle_and_commit"), (lease.Lease, "guard")],
    "decide": [(ends, "_decide"), (ends, "_write_pending")],
}


class Clockwork:
    """Seconds of each part, without the parts within it."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._within: list[float] = []

    def wrap(self, part: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, whose time is noted."""

        def timed(*given: Any, **named: Any) -> Any:
            self._within.append(0.0)
            start = time.perf_counter()
            try:
                return inner(*given, **named)
            finally:
                took = time.perf_counter() - start
                self.seconds[part] += took - self._within.pop()
                if self._within:
                    self._within[-1] += took

        return timed


@contextmanager
def watched() -> Iterator[Clockwork]:
    """Note what each part takes; a part whose functions are named otherwise by now is left out."""
    clockwork = Clockwork()
    with ExitStack() as patches:
        for part, places in PARTS.items():
            for owner, name in places:
                if hasattr(owner, name):
                    patches.enter_context(patch.object(owner, name, clockwork.wrap(part, getattr(owner, name))))
        yield clockwork


def prepare(desk: Desk, rows: int, slices: int) -> jobs.JobRequest:
    """A planned backfill of one file a day, each with so many rows."""
    many = {f"S{number:05}": (number, 0, 2 * number) for number in range(rows)}
    days = []
    day = FIRST
    while len(days) < slices:
        if day.weekday() < 5:
            days.append(day)
            desk.cdn.put(KEY, day, many)
        day -= timedelta(days=1)
    request = desk.request(Mode.BACKFILL, days[-1], days[0], keys=(KEY,))
    desk.begin(request)
    return request


def postmaster_of(url: str) -> int:
    """The process id of the server behind an URL."""
    with closing(db.connect(url, autocommit=True)) as connection:
        parent = psutil.Process(connection.info.backend_pid).parent()
    assert parent is not None
    return parent.pid


def measure(desk: Desk, rows: int, rounds: int) -> list[str]:
    """Work so many chunks one after the other, after three that are not counted."""
    desk.stream = replace(STREAM, budget=replace(STREAM.budget, slice_seconds=3_600))
    request = prepare(desk, rows, rounds + 3)
    worker = desk.worker()
    used: list[float] = []
    server = of_server(postmaster_of(desk.url))
    walls: list[float] = []
    parts: defaultdict[str, list[float]] = defaultdict(list)
    for number in range(rounds + 3):
        with watched() as clockwork, spending(server) as spent:
            verdict = cycle.work(worker, desk.stream, Mode.BACKFILL, request.name)
        wall = spent.cost.wall
        assert verdict is not None
        assert verdict.counts.new in (0, rows), verdict.words
        if number < 3 or not verdict.counts.new:
            continue
        used.append(spent.cost.cpu)
        walls.append(wall - clockwork.seconds["upstream"])
        for part in PARTS:
            parts[part].append(clockwork.seconds[part])
        parts["else"].append(wall - sum(clockwork.seconds.values()))
    with closing(db.connect(desk.url, autocommit=True)) as connection:
        written = connection.execute("select count(*) as rows from market.finra_short_volume").fetchone()
    assert written is not None
    assert written["rows"] >= rows * len(walls)
    shown = sorted(((statistics.median(taken), part) for part, taken in parts.items()), reverse=True)
    return [
        f"One slice of {rows:,} rows, median of {len(walls)} (ms): "
        + ", ".join(f"{part} {seconds * 1e3:.1f}" for seconds, part in shown if part != "upstream")
        + f"; the upstream's answer ({statistics.median(parts['upstream']) * 1e3:.1f}) is not counted",
        judge(Judged(f"slice of {rows:,} rows: time without the upstream's", tuple(walls), "s", aim=AIM, less=True)),
        judge(Judged(f"slice of {rows:,} rows: processor time", tuple(used), "s")),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What the engine adds to a slice.")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 1_000], help="rows of a slice")
    parser.add_argument("--rounds", type=int, default=40, help="how many slices are counted")
    options = parser.parse_args()
    for rows in options.rows:
        with warehouse() as (_, url), serving() as cdn, tempfile.TemporaryDirectory(prefix="daybook-bench-") as folder:
            desk = make(url, cdn, Path(folder), ny(FIRST + timedelta(days=1), 20))
            print("\n".join(measure(desk, rows, options.rounds)), flush=True)
    print("\n".join(["", *summary()]))


if __name__ == "__main__":
    main()
