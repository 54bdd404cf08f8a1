"""Measures the most memory that whole tasks take, each in a process of its own as Airflow starts them.

    ./run bench -k memory
    python tests/benchmarks/memory.py [--filings 6000]

Promises: the upstream is a process of its own, and what a task takes is the most that the operating system ever counted
for its process, libraries included. A day of the SEC is found, fetched and read, with a quarter's index and the list of
companies beside it; each stream is worked to its end by one task, which is longer than any task in service.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from collections.abc import Iterator

from tests.benchmarks.measuring import Judged, judge, most_held, summary, warehouse

# Tuesday evening in New York, the index of the day is there.
AT = datetime(2026, 9, 16, 3, 45, tzinfo=UTC)
STREAMS = ("sec.submissions", "sec.filings", "sec.xbrl_facts", "sec.document_headers", "sec.index", "sec.quarters")
MOST_MEGABYTES = 512


def _serve(filings: int, port: Any) -> None:
    from include.sandbox.app import build
    from include.sandbox.exchange import World
    from include.sandbox.server import serve

    with tempfile.TemporaryDirectory(prefix="daybook-sandbox-") as state:
        inside = build(World(Path(state), companies=max(filings // 4, 40)), clock=lambda: AT)
        with serve(inside.app, 0) as running:
            port.send(running.url)
            running.thread.join()


@contextmanager
def serving(filings: int) -> Iterator[str]:
    """The SEC as a stand-in in a process of its own; yields its address."""
    import httpx

    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(filings, theirs), daemon=True)
    process.start()
    try:
        url = ours.recv()
        order = {"upstream": "sec", "switch": "filings", "a_day": filings}
        httpx.post(f"{url}/_sandbox/switches", json=order).raise_for_status()
        yield url
    finally:
        process.terminate()
        process.join()


def _task(url: str, raw: str, upstream: str, name: str, told: Any) -> None:
    """Work one stream until nothing is eligible, and tell the most that this process ever took, in MB."""
    from include import registry
    from include.contract import Mode
    from include.engine import credentials, cycle, lease, windows
    from include.engine.cycle import Worker
    from include.engine.raw import RawStore

    stream = registry.stream(name)
    stream = replace(stream, host_group=replace(stream.host_group, interval=timedelta(0)))
    reach = credentials.build(registry.source("sec"), host="", password="", sandbox_url=upstream)
    worker = Worker(url, RawStore(raw), reach, lease.holder())
    windows.declare(url, (stream,))
    windows.open_due(url, stream)
    words = "nothing was due"
    while (verdict := cycle.work(worker, stream, Mode.POLL, None)) is not None:
        words = verdict.words
        if verdict.next_eligible_at is not None:
            break
    told.send((most_held(), words))


def measure(filings: int) -> list[str]:
    """Work every stream, each by a task of its own; a line for each."""
    lines = []
    with (
        warehouse() as (_, url),
        serving(filings) as upstream,
        tempfile.TemporaryDirectory(prefix="daybook-raw-") as raw,
    ):
        from include.engine.db import connect

        with connect(url, autocommit=True) as connection:
            connection.execute(
                "update collect.installation set is_sandbox = true, clock_offset = %s - clock_timestamp()", (AT,)
            )
        for name in STREAMS:
            ours, theirs = multiprocessing.Pipe()
            context = multiprocessing.get_context("spawn")
            process = context.Process(target=_task, args=(url, raw, upstream, name, theirs))
            process.start()
            megabytes, words = ours.recv()
            process.join()
            lines.append(
                judge(Judged(f"{name}, {filings:,} filings", (megabytes,), "MB", floor=MOST_MEGABYTES, less=True))
            )
            lines.append(f"    {words}")
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The most memory that whole tasks take.")
    parser.add_argument("--filings", type=int, default=6_000, help="filings of the SEC's day")
    print("\n".join([*measure(parser.parse_args().filings), "", *summary()]))


if __name__ == "__main__":
    main()
