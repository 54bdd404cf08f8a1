"""Measures how the SEC's filings are found: requests for a full day of the market, and memory for a full quarter.

    ./run bench -k sec
    python tests/benchmarks/sec.py [--filings 6000]

Promises: the day is a generated one of so many filings (half as many entries again), asked for every quarter of an hour
from the stand-in, and reconciled with its index; asking company by company is reckoned at one request for each of 7,500
companies, once a day and at every tick. The quarter has 400,000 lines and is read in a process of its own, whose
largest resident size the system tells. Never: a time fails anything.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import date, datetime, timedelta
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from include.contract import Ask, Mode, Stream
from include.engine import cycle, windows
from include.engine.raw import RawStore
from include.sandbox.app import build
from include.sandbox.exchange import World
from include.sandbox.sec_market import NEW_YORK, Market
from include.sandbox.server import serve
from include.sources.sec import index
from include.sources.sec.streams import INDEX_STREAM, SUBMISSIONS_STREAM
from tests.benchmarks.measuring import Judged, judge, most_held, summary, warehouse
from tests.sources.answers import unit_of
from tests.sources.places import Place

DAY = date(2026, 9, 15)
LISTED_COMPANIES = 7_500
QUARTER_LINES = 400_000


def ticks() -> list[datetime]:
    """Every quarter of an hour from six to ten, and once after the last acceptance."""
    first = datetime(DAY.year, DAY.month, DAY.day, 6, tzinfo=NEW_YORK)
    return [*(first + timedelta(minutes=15 * n) for n in range(65)), first.replace(hour=22, minute=10)]


def poll(place: Place, stream: Stream, instant: datetime) -> None:
    """Open what is due at an instant, and work it off."""
    place.at(instant)
    windows.open_due(place.url, stream)
    while (verdict := cycle.work(place.worker(stream), stream, Mode.POLL, None)) is not None:
        assert verdict.outcome is None or verdict.outcome == "success", verdict.words


def discover(url: str, filings: int) -> list[str]:
    """Collect a day of the market by its feed and its index; requests that it took."""
    with tempfile.TemporaryDirectory(prefix="daybook-bench-") as home:
        place = Place(url, RawStore(f"{home}/raw"))
        place.at(ticks()[0])
        # The market is as large as its day.
        inside = build(World(Path(home), companies=filings), clock=place.now)
        with serve(inside.app) as server:
            place.sandbox_url = server.url
            windows.declare(url, (SUBMISSIONS_STREAM, INDEX_STREAM))
            begin = time.perf_counter()
            for tick in ticks():
                poll(place, SUBMISSIONS_STREAM, tick + timedelta(seconds=20))
            feed = len(inside.log.entries(kind="feed"))
            took = time.perf_counter() - begin
            poll(place, INDEX_STREAM, datetime(DAY.year, DAY.month, DAY.day, 23, tzinfo=NEW_YORK))
            index_requests = len(inside.log.entries(kind="daily_index"))
            late = len([e for e in inside.log.entries(kind="feed") if e.at < ticks()[1]])
    found = {row["accession"] for row in place.sql("select distinct accession from filings.sec_feed")}
    shown = {each.accession for each in Market(7, filings, filings).of_day(DAY) if not each.quiet}
    assert shown <= found, f"{len(shown - found)} filings of the day were not found"
    listed = place.sql("select count(distinct accession) as n from filings.sec_daily_index")[0]["n"]
    before = time.perf_counter()
    wanted = place.sql("select count(*) as n from filings.sec_wanted")[0]["n"]
    asked = time.perf_counter() - before
    requests = feed + index_requests
    by_company = LISTED_COMPANIES / requests
    return [
        f"a day of {len(shown):,} filings: {feed} pages of the feed over {len(ticks())} ticks ({late} for the first,"
        f" which reads from midnight on) and {index_requests} index of {listed:,}: {requests} requests, {took:.0f} s;"
        f" {wanted:,} parties to choose documents from are named in {asked:.2f} s",
        judge(Judged("feed and index: list pages of a day", (float(requests),), "", floor=200, less=True)),
        judge(Judged("asking each company once a day / feed and index", (by_company,), aim=20)),
        judge(Judged("asking each company at each tick / feed and index", (by_company * len(ticks()),))),
    ]  # fmt: skip


def child() -> None:
    """Read an index of a quarter; print the rows and the largest resident size."""
    lines = (
        f"{1000 + n % 9000}|EXAMPLE {n % 9000} CORPORATION OF DELAWARE|424B2|2026-07-{n % 28 + 1:02d}"
        f"|edgar/data/{1000 + n % 9000}/{n % 997:010d}-26-{n // 997:06d}.txt\n"
        for n in range(QUARTER_LINES)
    )
    head = "Description: Master Index\nCIK|Company Name|Form Type|Date Filed|Filename\n" + "-" * 80 + "\n"
    body = (head + "".join(lines)).encode()
    before = most_held()
    (request,) = index.plan_quarters(Ask(Mode.POLL, pending=("quarter/2026Q3",)))
    begin = time.process_time()
    rows = sum(1 for _ in index.parse_quarter(unit_of(request, body)).batches[0].rows)
    took = time.process_time() - begin
    peak = most_held()
    print(json.dumps({"rows": rows, "peak_mb": peak, "before_mb": before, "cpu": took}))


def read_quarter() -> list[str]:
    """Read a quarter in a process of its own."""
    output = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--child"], check=True, capture_output=True, text=True
    ).stdout
    told = json.loads(output)
    assert told["rows"] == QUARTER_LINES
    return [
        f"a quarter of {told['rows']:,} lines: read in {told['cpu']:.1f} s of processor time",
        judge(Judged("memory of the process that reads a quarter", (told["peak_mb"],), "MB", floor=512, less=True)),
    ]


def measure(url: str, filings: int) -> list[str]:
    """Measure both."""
    return [*read_quarter(), *discover(url, filings)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What finding the SEC's filings takes.")
    parser.add_argument("--filings", type=int, default=6_000, help="filings of the day")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child()
        return
    with warehouse() as (_, url):
        print("\n".join(measure(url, options.filings)), flush=True)
    print("\n".join(["", *summary()]))


if __name__ == "__main__":
    main()
