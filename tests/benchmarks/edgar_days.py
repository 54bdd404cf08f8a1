"""Two days of EDGAR's bulk file through the engine, in processes of their own, as workers do it.

Promises: each round has an empty warehouse; the file comes from a stand-in over HTTP, with ranges; companies' files are
made once by one process and once by two that share the parts of one window; what each process held at most is what the
system says of it. Never: a figure is of this process, which holds the stand-in.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from zoneinfo import ZoneInfo

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from include import registry
from include.contract import HostGroup, Mode, Outcome, Stream
from include.engine import cycle, making, windows, zips
from include.engine.raw import RawStore
from include.sandbox import edgar as stand_in
from include.sandbox.app import build
from include.sandbox.exchange import World
from include.sandbox.server import serve
from include.sources.edgar.streams import COMPANYFACTS, FACTS, SCAN
from tests.benchmarks.measuring import Judged, judge, most_held, warehouse
from tests.fixtures_sandbox import RunningSandbox
from tests.sources.places import Place

FIRST = datetime(2026, 1, 7, 17, 30, tzinfo=ZoneInfo("Asia/Seoul"))
# What one process may hold.
MOST_MEMORY = 512


@dataclass(frozen=True)
class Spent:
    """What one process came to: seconds on the clock and of the processor, and the most memory it held, in MB."""

    wall: float
    cpu: float
    memory: float


def work(url: str, raw: str, sandbox_url: str, name: str, *, is_window: bool) -> Spent:
    """Work a stream's newest window to its end, or the parts that it has written down, in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    stream = replace(registry.stream(name), host_group=HostGroup("sec", timedelta(0)))
    worker = Place(url, RawStore(raw), sandbox_url).worker(stream)
    if is_window:
        _window(worker, stream)
    else:
        while making.work_any(worker, stream) is not None:
            continue
    return Spent(time.perf_counter() - wall, time.process_time() - cpu, most_held())


def _window(worker: cycle.Worker, stream: Stream) -> None:
    verdict = cycle.work(worker, stream, Mode.POLL, None)
    while verdict is not None and verdict.outcome is None and verdict.next_eligible_at is None:
        verdict = cycle.work(worker, stream, Mode.POLL, None)
    if verdict is None or verdict.outcome not in (None, Outcome.SUCCESS):
        raise AssertionError(verdict.words if verdict else f"{stream.name} has no window")


@dataclass(frozen=True)
class Round:
    """One empty warehouse, two days: what was sent each day, and what the processes came to.

    `changed` are the bytes, as they lie in the second day's file, of the members that differ from the first day's.
    """

    length: tuple[int, int]
    sent: tuple[int, int]
    changed: int
    fetched: tuple[Spent, Spent]
    made: tuple[Spent, Spent]
    scanned: tuple[Spent, Spent]


def days(companies: int, divisor: int, *, lanes: int) -> Round:
    """Work two days; companies' files are made by so many processes."""
    with ExitStack() as held:
        home = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="daybook-bench-")))
        _, url = held.enter_context(warehouse())
        place = Place(url, RawStore(str(home / "raw")))
        place.at(FIRST)
        inside = build(World(home / "sandbox", companies=companies), clock=place.now)
        running = RunningSandbox(held.enter_context(serve(inside.app)).url, inside, place.now, home)
        beside = stand_in.Edgar(World(home / "beside", companies=companies))
        running.switch("edgar", "days", divisor=divisor)
        beside.switch({"switch": "days", "divisor": divisor})
        where = (url, str(home / "raw"), running.url)
        found: dict[str, list[Spent]] = {COMPANYFACTS: [], FACTS: [], SCAN: []}
        sent, length, members = [0], [], []
        for day in range(2):
            place.at(FIRST + timedelta(days=day))
            archive = beside.bulk().archive(beside.day_at(place.now()))
            length.append(len(archive))
            members.append(zips.directory_of(io.BytesIO(archive), len(archive))[1])
            for name, spent in found.items():
                spent.append(_in_processes(where, name, lanes if name == FACTS else 1, place))
            log = running.requests(path=stand_in.BULK)
            # Whether `If-Range` is looked at is asked in a way that is answered with the whole file, of which the
            # headers alone are read: the stand-in counts a body that nobody takes.
            whole = next((each for each in log if each["status"] == 200), None)
            read = [each for each in log if each["status"] == 206 or each is whole]
            sent.append(sum(each["sent"] or 0 for each in read) - sum(sent))
        known = {(each.name, each.crc32, each.size) for each in members[0]}
        changed = sum(each.packed for each in members[1] if (each.name, each.crc32, each.size) not in known)
        return Round((length[0], length[1]), (sent[1], sent[2]), changed, *(tuple(each) for each in found.values()))


def _in_processes(where: tuple[str, str, str], name: str, lanes: int, place: Place) -> Spent:
    """Work a window with so many processes, each of which is new; the times of all, the memory of the largest."""
    stream = registry.stream(name)
    windows.declare(place.url, (stream,))
    windows.open_due(place.url, stream)
    with ProcessPoolExecutor(lanes, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_warm, range(lanes)))
        began = time.perf_counter()
        first = pool.submit(work, *where, name, is_window=True)
        others = []
        if lanes > 1:
            while not place.sql("select 1 from collect.cycles where stream = %s and run_id is not null", name):
                time.sleep(0.01)
            others = [pool.submit(work, *where, name, is_window=False) for _ in range(lanes - 1)]
        spent = [each.result() for each in (first, *others)]
        wall = time.perf_counter() - began
    return Spent(wall, sum(each.cpu for each in spent), max(each.memory for each in spent))


def _warm(number: int) -> int:
    """Nothing; what a process imports is there before its time is taken."""
    return number


def measure(companies: int, divisor: int, rounds: int) -> list[str]:
    """Run both ways in turn, each round with another one first, and return the lines to print."""
    taken: dict[int, list[Round]] = {1: [], 2: []}
    for number in range(rounds):
        for lanes in (1, 2) if number % 2 else (2, 1):
            taken[lanes].append(days(companies, divisor, lanes=lanes))
    every = [each for found in taken.values() for each in found]
    first, second = (
        [each.fetched[day].cpu + each.made[day].cpu + each.scanned[day].cpu for each in every] for day in range(2)
    )
    parts = {
        name: [max(spent.memory for spent in getattr(each, name)) for each in every]
        for name in ("fetched", "made", "scanned")
    }
    walls = [
        f"{name} {median(getattr(each, name)[0].wall for each in taken[1]):.1f} s, the next day "
        f"{median(getattr(each, name)[1].wall for each in taken[1]):.1f} s"
        for name in parts
    ]
    return [
        f"through the engine, {companies} companies, on the clock with one process: {'; '.join(walls)}",
        judge(
            Judged(
                "edgar days: bytes read the next day / the whole file",
                tuple(each.sent[1] / each.length[1] for each in every),
                less=True,
            )
        ),
        judge(
            Judged(
                "edgar days: bytes read the next day / its changed members",
                tuple(each.sent[1] / each.changed for each in every),
                floor=1.10,
                aim=1.03,
                less=True,
            )
        ),
        judge(
            Judged(
                "edgar days: CPU of the next day / the first",
                tuple(after / before for before, after in zip(first, second, strict=True)),
                less=True,
            )
        ),
        judge(
            Judged(
                "edgar days: one process / two, on the clock",
                tuple(one.made[0].wall / two.made[0].wall for one, two in zip(taken[1], taken[2], strict=True)),
                floor=1.5,
                aim=1.95,
            )
        ),
        *(
            judge(Judged(f"edgar days: most memory, {name}", tuple(found), "MB", floor=MOST_MEMORY, less=True))
            for name, found in parts.items()
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=900)
    parser.add_argument("--divisor", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("\n".join(measure(options.companies, options.divisor, options.rounds)))
