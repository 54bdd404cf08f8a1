"""Measures planning a backfill of two million chunks: memory, and going on after a kill.

    ./run bench -k plan
    python tests/benchmarks/plan.py [--chunks 2000000]

Promises: planning is `jobs.start` and `jobs.plan`, in a process of its own whose largest resident size the system
tells. A chunk is one day of one stream, and a calendar has no two million days: three streams of which every day
since the year 2 is a session share the run. The process is killed half-way and started again; then, with all chunks
planned, a fresh process joins the run and claims. Every chunk is there in the end, once. Never: a chunk is worked on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from include.contract import Mode
from include.engine import jobs, lease, windows
from include.engine.db import connect
from tests.benchmarks.measuring import Judged, judge, most_held, summary, warehouse
from tests.engine.desk import STREAM

NEWEST, EARLIEST = date(2026, 9, 14), date(2, 1, 1)
FEW = 10_000
STREAMS = tuple(
    replace(STREAM, name=f"bench.days{number}", calendar="DAILY", first_session=EARLIEST) for number in range(3)
)


def request_for(chunks: int) -> jobs.JobRequest:
    """A run of at least so many chunks, the same number for each stream."""
    days = -(-chunks // len(STREAMS))
    return jobs.JobRequest(
        Mode.BACKFILL, STREAMS, NEWEST - timedelta(days=days - 1), NEWEST, run_id=f"bench-{chunks}", who="bench"
    )


# --- what runs in a process of its own; the database's URL comes by standard input


def child(what: str, chunks: int) -> None:
    """Plan, or join and claim; print what came of it as JSON."""
    url, request = sys.stdin.readline().strip(), request_for(chunks)
    words = jobs.start(url, request)
    if what == "claim":
        held = lease.claim(url, STREAMS[-1].name, Mode.BACKFILL, request.name, "bench")
        assert held is not None
        print(json.dumps({"words": words, "slot": held.cycle.slot}), flush=True)
        return
    written = sum(jobs.plan(url, request, stream) for stream in STREAMS)
    print(json.dumps({"words": words, "written": written, "peak_mb": most_held()}), flush=True)


def start(url: str, what: str, chunks: int) -> subprocess.Popen[str]:
    """Start such a process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--child", what, "--chunks", str(chunks)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(f"{url}\n")
    process.stdin.flush()
    return process


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What the process printed in the end."""
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return dict(json.loads(output))


# --- what is measured


def planned(url: str, chunks: int) -> int:
    """How many chunks of the run have been written."""
    with closing(connect(url, autocommit=True)) as connection:
        row = connection.execute(
            "select total_chunks from collect.job_runs where run_id = %s", (request_for(chunks).name,)
        ).fetchone()
    return int(row["total_chunks"]) if row else 0


def until_planned(url: str, chunks: int, count: int) -> float:
    """Wait until so many chunks are written; how long that took, in seconds."""
    begin = time.perf_counter()
    while planned(url, chunks) < count:
        time.sleep(0.02)
    return time.perf_counter() - begin


def measure(url: str, chunks: int) -> list[str]:
    """Plan few chunks and many, with a kill half-way through the many; then join and claim."""
    windows.declare(url, STREAMS)
    few = result(start(url, "plan", FEW))
    begin = time.perf_counter()
    doomed = start(url, "plan", chunks)
    until_planned(url, chunks, chunks // 2)
    doomed.kill()
    doomed.communicate()
    before = planned(url, chunks)
    again = start(url, "plan", chunks)
    goes_on = until_planned(url, chunks, before + 1)
    many = result(again)
    took = time.perf_counter() - begin
    claims, joins = [], 3
    for _ in range(joins):
        begin = time.perf_counter()
        claimed = result(start(url, "claim", chunks))
        claims.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    progress = jobs.progress(url, request_for(chunks).name, STREAMS[0].name)
    asked = time.perf_counter() - begin
    total = sum(jobs.progress(url, request_for(chunks).name, stream.name).total for stream in STREAMS)
    assert total == planned(url, chunks) >= chunks, (total, planned(url, chunks))
    return [
        f"A run of {total:,} chunks: planned in {took:.0f} s with a kill at {before:,}; then {many['words']}",
        f"peak of the process: {few['peak_mb']:.0f} MB for {FEW:,} chunks, {many['peak_mb']:.0f} MB for"
        f" {many['written']:,}; progress of one stream of {progress.total:,} takes {asked:.2f} s;"
        f" a fresh process: {claimed['words']}",
        judge(
            Judged(f"plan {chunks:,} chunks: peak memory / of {FEW:,}", (many["peak_mb"] / few["peak_mb"],),
                   floor=1.25, aim=1.1, less=True)
        ),
        judge(Judged("planning goes on after a kill, from the process's start", (goes_on,), "s", aim=10, less=True)),
        judge(Judged("first claim of a fresh process, from its start", tuple(claims), "s", aim=10, less=True)),
    ]  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What planning a very large backfill takes.")
    parser.add_argument("--chunks", type=int, default=2_000_000, help="chunks of the run")
    parser.add_argument("--child", choices=("plan", "claim"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.chunks)
        return
    with warehouse() as (_, url):
        print("\n".join(measure(url, options.chunks)), flush=True)
    print("\n".join(["", *summary()]))


if __name__ == "__main__":
    main()
