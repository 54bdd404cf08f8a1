"""Measures how long after 09:00:00.000 the snapshot is taken, over many mornings, idle and with every core busy.

    ./run bench -k capture
    python tests/benchmarks/capture.py [--captures 50] [--streams 30]

Promises: the capturer is `snapshot.capture_at` as in production, waiting by the database's simulated clock with its
connection warm; each morning has a header, expectations and windows of so many streams, and its offset is the one that
the snapshot itself records. Busy means a process for each core that does nothing but count. Never: a time fails a test.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from include.engine import snapshot
from tests.benchmarks.measuring import Judged, judge, summary, warehouse
from tests.engine.races import Arena

# How long before nine the capturer starts waiting: it measures the clocks, warms up and sleeps the rest in one piece.
LEAD_SECONDS = 0.9
AIM_MS = 50.0


def _count(stop: Any) -> None:
    while not stop.is_set():
        sum(range(100_000))


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep so many cores busy while the block works."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    workers = [context.Process(target=_count, args=(stop,), daemon=True) for _ in range(processes)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def offsets(arena: Arena, captures: int) -> list[float]:
    """Take so many snapshots, one a day; how many milliseconds after nine each was taken."""
    found = []
    for _ in range(captures):
        instant = arena.prepare(LEAD_SECONDS)
        taken = snapshot.capture_at(arena.url, instant, "bench")
        assert taken.by_this_call, taken.words
        assert len(taken.snapshot.items or ()) == arena.size
        assert taken.snapshot.offset is not None
        found.append(taken.snapshot.offset.total_seconds() * 1_000)
    return found


def measure(url: str, captures: int, streams: int) -> list[str]:
    """Take the snapshots, idle and busy; the lines to print."""
    arena = Arena(url, streams).open()
    lines = [f"{captures} captures of {streams} streams each"]
    try:
        for name, processes in (("idle", 0), ("every core busy", os.cpu_count() or 1)):
            with busy(processes):
                found = offsets(arena, captures)
            worst, aim = max(found), AIM_MS if name == "idle" else None
            lines.append(f"{name}: median {statistics.median(found):.1f} ms, worst {worst:.1f} ms after nine")
            lines.append(judge(Judged(f"09:00 offset, {name}, worst", (worst,), "ms", aim=aim, less=True)))
            lines.append(judge(Judged(f"09:00 offset, {name}", tuple(found), "ms", less=True)))
    finally:
        arena.close()
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How long after nine the snapshot is taken.")
    parser.add_argument("--captures", type=int, default=50)
    parser.add_argument("--streams", type=int, default=30)
    options = parser.parse_args()
    with warehouse() as (_, url):
        print("\n".join(measure(url, options.captures, options.streams)), flush=True)
    print("\n".join(["", *summary()]))


if __name__ == "__main__":
    main()
