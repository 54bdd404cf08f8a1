"""Measures bars from the bytes of an answer to the rows of a table, requests for many symbols, and peak memory.

    ./run bench -k bars                                          with the peers that it needs installed
    python tests/benchmarks/bars.py [--rows 100000] [--rounds 5] [--small 10000]

Promises: every way begins with the same bytes, ends with its commit in an empty table of one shape, and writes the same
bars, which is checked before anything is counted. Alpaca's own client is what it gives from parsed JSON on (`BarSet`
and its data frame), where it is installed; without it pandas alone stands in for it, which is the cheaper of the two.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import pandas as pd

from include.contract import Answer, Ask, Mode, Request, Stream
from include.engine import merge, months, stage
from include.engine.apply import read
from include.engine.db import connect, query
from include.engine.fetches import Held
from include.engine.stage import Reading
from include.sources.alpaca.streams import DAILY_STREAM, MINUTE_STREAM
from include.sources.alpaca.tables import INTRADAY_BARS
from tests.benchmarks import peers
from tests.benchmarks.measuring import (
    Cost,
    Judged,
    interleaved,
    judge,
    most_held,
    of_backend,
    spending,
    summary,
    table,
    warehouse,
)
from tests.sources.answers import Bytes

PAGE_ROWS = 10_000
MINUTES = 390
DAY = date(2026, 9, 15)
OPENING = datetime(2026, 9, 15, 13, 30, tzinfo=UTC)
SENT = datetime(2026, 9, 16, 0, 31, tzinfo=UTC)
LARGEST_MB = 512

_MAKE = """
create schema if not exists bench;
create table bench.by_hand (like market.alpaca_intraday_bars including all) with (autovacuum_enabled = false);
create table bench.by_pandas (like market.alpaca_intraday_bars including all) with (autovacuum_enabled = false);
"""


def page(number: int, rows: int = PAGE_ROWS) -> tuple[list[str], bytes]:
    """Return a page of minute bars as Alpaca writes it, with its symbols: sessions, one symbol after the other."""
    listed, names = [], []
    for place in range(-(-rows // MINUTES)):
        name = _name(number * 1_000 + place)
        names.append(name)
        bars = []
        for minute in range(min(MINUTES, rows - place * MINUTES)):
            low = 100_000 + (minute * 7_919 + place * 104_729 + number) % 900_000
            prices = [f"{(low + step) / 10_000:.4f}".rstrip("0").rstrip(".") for step in (170, 250, 0, 113, 131)]
            at = OPENING + timedelta(minutes=minute)
            bars.append(
                f'{{"t":"{at:%Y-%m-%dT%H:%M:%SZ}","o":{prices[0]},"h":{prices[1]},"l":{prices[2]},"c":{prices[3]},'
                f'"v":{100 + minute * 31},"n":{1 + minute},"vw":{prices[4]}}}'
            )
        listed.append(f'"{name}":[{",".join(bars)}]')
    return names, f'{{"bars":{{{",".join(listed)}}},"next_page_token":null}}'.encode()


def _name(number: int) -> str:
    letters = []
    for _ in range(5):
        number, letter = divmod(number, 26)
        letters.append(chr(65 + letter))
    return "".join(letters)


@dataclass(frozen=True)
class Given:
    """Pages of bytes with the symbols that each one was asked for."""

    pages: tuple[tuple[list[str], bytes], ...]
    count: int

    def held(self) -> Iterator[Held]:
        """The pages as the engine holds them, each a unit of its own."""
        for number, (names, body) in enumerate(self.pages, start=1):
            yield _held(number, names, body)


def make(count: int) -> Given:
    """Return so many rows in pages."""
    sizes = [min(PAGE_ROWS, count - done) for done in range(0, count, PAGE_ROWS)]
    return Given(tuple(page(number, size) for number, size in enumerate(sizes)), count)


def _held(number: int, names: list[str], body: bytes) -> Held:
    about = {
        "symbols": ",".join(names),
        "timeframe": "1Min",
        "feed": "sip",
        "adjustment": "raw",
        "asof": "-",
        "first": DAY.isoformat(),
        "last": DAY.isoformat(),
        "is_whole": True,
        "page": 0,
    }
    unit = f"{number}.0/1Min-sip/{DAY}"
    request = Request(key=unit, url="", unit=unit, session_date=DAY, about=about)
    given = Answer(request, 200, {}, Bytes(body), SENT, number)
    return Held(unit, DAY, (number,), SENT, (given,), (), (), len(body))


@dataclass(frozen=True)
class Ways:
    """One database and the ways to load into it; each returns what it took."""

    url: str

    def engine(self, given: Given) -> tuple[Cost, int]:
        """What a slice does with stored answers: read, stage, check, merge; a transaction for each page."""
        target = replace(INTRADAY_BARS, month=f"{DAY:%Y%m}")
        stream: Stream = replace(MINUTE_STREAM, tables=(target, *MINUTE_STREAM.tables[1:]))
        new = 0
        with closing(connect(self.url, statement_timeout=600)) as connection:
            with spending(of_backend(connection.info.backend_pid)) as spent:
                for held in given.held():
                    readings = [read(MINUTE_STREAM, held)]
                    for each in stream.tables:
                        merge.lock(connection, each)
                        stage.fill(connection, each, readings)
                        stage.check(connection, stream, each, 1, is_rebuild=False)
                        counts = merge.newest(connection, stream, each, 1, 1)
                        stage.drop(connection, each)
                        new += counts.new
                    connection.commit()
            return spent.cost, new

    def by_hand(self, given: Given) -> Cost:
        """json, tuples with exact numbers, and `execute_values`."""

        def rows() -> Iterator[list[tuple[Any, ...]]]:
            for held in given.held():
                page = []
                for symbol, bars in json.loads(held.answers[0].body.read(), parse_float=Decimal)["bars"].items():
                    for b in bars:
                        at = datetime.fromisoformat(b["t"])
                        values = (b["o"], b["h"], b["l"], b["c"], b["v"], b["n"], b["vw"])
                        key = (DAY, symbol, "1Min", at, "sip", "raw", "-")
                        page.append((*key, *values, held.unit, held.fetch_ids[0], held.sent_at, 1, 1, 1))
                yield page

        names = [*INTRADAY_BARS.column_names, "unit", "fetch_id", "sent_at", "parser_version", "cycle_id", "attempt"]
        return peers.by_hand(self.url, "by_hand", names, INTRADAY_BARS.key, rows())

    def by_pandas(self, given: Given) -> Cost:
        """Alpaca's client where there is one, a data frame, and `to_sql`."""
        frames = (
            _frame(json.loads(held.answers[0].body.read())["bars"]).assign(
                session_date=DAY, timeframe="1Min", feed="sip", adjustment="raw", asof="-", unit=held.unit,
                fetch_id=held.fetch_ids[0], sent_at=held.sent_at, parser_version=1, cycle_id=1, attempt=1,
            )
            for held in given.held()
        )  # fmt: skip
        return peers.by_pandas(self.url, "by_pandas", INTRADAY_BARS.key, frames)

    def empty(self) -> None:
        """Begin with empty tables."""
        peers.sql(self.url, "truncate market.alpaca_intraday_bars, bench.by_hand, bench.by_pandas")

    def content(self, target: str) -> Any:
        """What tells the bars of a table apart from others, whatever their order."""
        columns = "symbol, ts, open::float8, high::float8, low::float8, close::float8, volume::float8, trades::float8"
        return peers.sql(
            self.url, f"select row(count(*), bit_xor(hashtextextended(row({columns})::text, 0)))::text from {target}"
        )


def _frame(bars_of: dict[str, Any]) -> pd.DataFrame:
    try:
        from alpaca.data.models import BarSet
    except ImportError:
        frame = pd.DataFrame([{"symbol": symbol, **bar} for symbol, bars in bars_of.items() for bar in bars])
        frame["t"] = pd.to_datetime(frame["t"])
    else:
        frame = BarSet(bars_of).df.reset_index()
    return frame.rename(
        columns={
            "t": "ts", "timestamp": "ts", "o": "open", "h": "high", "l": "low", "c": "close", "v": "volume",
            "n": "trades", "trade_count": "trades", "vw": "vwap",
        }
    )  # fmt: skip


def has_client() -> bool:
    """Whether Alpaca's own client is installed."""
    try:
        import alpaca.data.models  # noqa: F401
    except ImportError:
        return False
    return True


def prepare(url: str) -> Ways:
    """Make the tables and the month."""
    ways = Ways(url)
    with closing(connect(url, autocommit=True)) as connection:
        connection.execute(_MAKE)
        connection.execute(query("months.ensure"), {"schema": "market", "table": INTRADAY_BARS.name, "day": DAY})
    return ways


def check_equal(ways: Ways, count: int) -> None:
    """Every way writes the same bars, and ours nothing the second time.

    Raises:
        AssertionError: they do not.
    """
    given = make(count)
    ways.empty()
    assert ways.engine(given)[1] == count
    ways.by_hand(given)
    ways.by_pandas(given)
    wanted = ways.content("market.alpaca_intraday_bars")
    assert wanted == ways.content("bench.by_hand")
    assert wanted == ways.content("bench.by_pandas")
    assert ways.engine(given)[1] == 0


# --- what is measured


def measure_load(ways: Ways, count: int, rounds: int, *, with_pandas: bool) -> list[str]:
    """From bytes to an empty table."""
    given = make(count)

    def fresh(way: Callable[[Given], Cost]) -> Cost:
        ways.empty()
        return way(given)

    peer = "alpaca-py, pandas, to_sql" if has_client() else "pandas, to_sql"
    kinds = {
        "the engine": partial(fresh, lambda pages: ways.engine(pages)[0]),
        "json, execute_values": partial(fresh, ways.by_hand),
    }
    if with_pandas:
        kinds[peer] = partial(fresh, ways.by_pandas)
    taken = interleaved(kinds, rounds)
    ours = taken["the engine"]
    speeds = sorted(count / cost.cpu for cost in ours)
    lines = [
        f"{count:,} bars from the bytes of their pages to the table: {speeds[len(speeds) // 2]:,.0f} rows a CPU second",
        table(taken, count, "row"),
        judge(
            peers.against(
                f"bars {count:,} rows: json, execute_values / ours", taken["json, execute_values"], ours, 3, 5
            )
        ),
    ]
    if with_pandas:
        lines.append(judge(peers.against(f"bars {count:,} rows: {peer} / ours", taken[peer], ours, 5, 10)))
    return lines


def measure_requests() -> list[str]:
    """Requests for ten thousand symbols and a month of sessions, against one for each symbol and adjustment."""
    subjects = tuple(_name(number) for number in range(10_000))
    sessions = 22
    ask = Ask(Mode.POLL, newest=date(2026, 10, 30), subjects=subjects)
    requests = 0
    for request in DAILY_STREAM.plan(ask):
        rows = len(request.about["symbols"].split(",")) * sessions
        requests += 2 * -(-rows // PAGE_ROWS)
    one_each = 2 * len(subjects)
    values = (one_each / requests,)
    return [
        f"Daily bars, raw and adjusted, of 10,000 symbols and a month: {requests} requests against {one_each:,}",
        judge(Judged("requests: one for each symbol / ours", values, floor=100, aim=300)),
    ]


def measure_peak() -> list[str]:
    """Peak memory of a process that reads forty askings of one unit of 400 symbols and a month, as a replay does."""
    done = subprocess.run([sys.executable, __file__, "--peak"], capture_output=True, text=True, check=True, timeout=600)
    peak = float(done.stdout.split()[-1])
    return [judge(Judged("peak memory of rebuilding a month", (peak,), " MB", floor=LARGEST_MB, less=True))]


def peak() -> float:
    """Read forty askings of five pages and hold them as a replay does; return the most memory so far, in megabytes."""
    readings: list[Reading] = []
    for asking in range(40):
        names, body = page(0, PAGE_ROWS * 2)
        readings.append(read(MINUTE_STREAM, _held(asking + 1, names, body)))
    target = MINUTE_STREAM.tables[0]
    rows = sum(1 for reading in readings for _ in reading.rows(target))
    assert rows == 40 * PAGE_ROWS * 2
    assert months.month_of(MINUTE_STREAM, readings[0]) == "202609"
    return most_held()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What bars cost from the answer to the table.")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000], help="rows of a load")
    parser.add_argument("--small", type=int, default=10_000, help="rows of the loads that pandas does too")
    parser.add_argument("--rounds", type=int, default=5, help="how often each way is run and counted")
    parser.add_argument("--peak", action="store_true", help="print the peak memory of one rebuild in megabytes and end")
    options = parser.parse_args()
    if options.peak:
        print(peak())
        return
    with warehouse() as (_, url):
        ways = prepare(url)
        check_equal(ways, 5_000)
        print("\n".join(measure_load(ways, options.small, options.rounds, with_pandas=True)), flush=True)
        for count in options.rows:
            print("\n".join(measure_load(ways, count, options.rounds, with_pandas=False)), flush=True)
    print("\n".join([*measure_requests(), *measure_peak(), "", *summary()]))


if __name__ == "__main__":
    main()
