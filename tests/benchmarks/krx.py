"""Measures KRX's days from the first request to the rows of a table: backfilled by the engine, and by pandas.

    ./run bench -k krx
    python tests/benchmarks/krx.py [--days 250] [--rounds 1]

Promises: every way asks the same server, a process of its own that holds all answers ready, ends with a commit for each
day, and writes the same prices, which is checked. Ours is the whole of a backfill: chunks and leases, turns and the
ledger of calls, answers kept under their hash, rows checked and merged. Pandas is what people write: `read_json`,
numbers, `to_sql`; once as it is, and once with a method that replaces what is there, without which a second run fails.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import httpx
import pandas as pd
import sqlalchemy
from sqlalchemy.dialects.postgresql import insert

from include import registry
from include.calendars import calendar
from include.contract import Mode
from include.engine import credentials, cycle, jobs, lease, windows
from include.engine.cycle import Worker
from include.engine.raw import RawStore
from include.sources.krx.services import HOST, PRICES
from include.sources.krx.streams import HOST_GROUP, PRICES_STREAM
from tests.benchmarks import peers
from tests.benchmarks.measuring import Cost, Judged, interleaved, judge, of_server, ratios, spending, summary, table
from tests.benchmarks.measuring import warehouse as fresh_warehouse

SIZES = {"KOSPI": 940, "KOSDAQ": 1_740, "KONEX": 120}
ROWS = sum(SIZES.values())
LAST = date(2026, 9, 14)
STREAM = replace(PRICES_STREAM, host_group=replace(HOST_GROUP, interval=timedelta(0)))
COLUMNS = {
    "ISU_CD": "code", "ISU_NM": "name", "MKT_NM": "market_label", "SECT_TP_NM": "section", "TDD_CLSPRC": "close",
    "CMPPREVDD_PRC": "change", "FLUC_RT": "change_percent", "TDD_OPNPRC": "open", "TDD_HGPRC": "high",
    "TDD_LWPRC": "low", "ACC_TRDVOL": "volume", "ACC_TRDVAL": "traded_value", "MKTCAP": "market_cap",
    "LIST_SHRS": "listed_shares",
}  # fmt: skip
NUMBERS = [name for name in list(COLUMNS.values())[4:] if name != "change_percent"]


def body(market: str, day: date) -> bytes:
    """A market's day as KRX writes it."""
    rows = []
    for place in range(SIZES[market]):
        base = 1_000 + (place * 7_919 + day.toordinal() * 104_729) % 300_000
        change = (place * 31 + day.toordinal()) % 401 - 200
        traded = place % 40 != 0
        rows.append(
            f'{{"BAS_DD":"{day:%Y%m%d}","ISU_CD":"{list(SIZES).index(market)}{place:05d}","ISU_NM":"회사{place}",'
            f'"MKT_NM":"{market}","SECT_TP_NM":"","TDD_CLSPRC":"{base + change}","CMPPREVDD_PRC":"{change}",'
            f'"FLUC_RT":"{change / base * 100:.2f}","TDD_OPNPRC":"{base if traded else 0}",'
            f'"TDD_HGPRC":"{base + 250 if traded else 0}","TDD_LWPRC":"{base - 250 if traded else 0}",'
            f'"ACC_TRDVOL":"{place * 131 if traded else 0}","ACC_TRDVAL":"{place * 131 * base}",'
            f'"MKTCAP":"{base * 98_765_432}","LIST_SHRS":"98765432"}}'
        )
    return f'{{"OutBlock_1":[{",".join(rows)}]}}'.encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bodies: dict[tuple[str, str], bytes]

    def log_message(self, *parts: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path = parts.path.partition("/svc/apis/")[2]
        found = self.bodies.get((path, parse_qs(parts.query)["basDd"][0]), b'{"OutBlock_1":[]}')
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)


def _serve(days: list[date], port: Any) -> None:
    _Handler.bodies = {(PRICES[m].path, f"{day:%Y%m%d}"): body(m, day) for m in SIZES for day in days}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    port.send(server.server_address[1])
    server.serve_forever()


@contextmanager
def serving(days: list[date]) -> Iterator[str]:
    """Serve some days from a process of its own; yields the address."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(days, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


@dataclass
class Ways:
    """One warehouse, one server, and the ways to collect the days; each returns what it took."""

    url: str
    postmaster: int
    upstream: str
    days: list[date]
    raw: Path
    runs: int = 0

    def engine(self) -> Cost:
        """A backfill, from the request to its end."""
        self.runs += 1
        source = registry.source("krx")
        reach = credentials.build(source, host="", password="a key", sandbox_url=self.upstream)
        worker = Worker(self.url, RawStore(str(self.raw / str(self.runs))), reach, lease.holder())
        windows.declare(self.url, (STREAM,))
        with spending(of_server(self.postmaster)) as spent:
            request = jobs.JobRequest(
                Mode.BACKFILL,
                (STREAM,),
                self.days[0],
                self.days[-1],
                reason="a measure",
                run_id=f"{len(self.days)}-days-{self.runs}",
            )
            jobs.start(self.url, request)
            jobs.plan(self.url, request, STREAM)
            with cycle.keeping_a_line(worker) as lane:
                while cycle.work(lane, STREAM, Mode.BACKFILL, request.name) is not None:
                    pass
            progress = jobs.conclude(self.url, request.name)[1]
        assert progress.done == progress.total, progress
        return spent.cost

    def by_pandas(self, target: str, *, replacing: bool) -> Cost:
        """Requests, data frames, and `to_sql`, a transaction for each day."""

        def upsert(into: Any, connection: Any, keys: list[str], rows: Any) -> int:
            statement = insert(into.table).values([dict(zip(keys, row, strict=True)) for row in rows])
            sets = {name: statement.excluded[name] for name in keys if name not in STREAM.tables[0].key}
            done = connection.execute(
                statement.on_conflict_do_update(index_elements=list(STREAM.tables[0].key), set_=sets)
            )
            return int(done.rowcount)

        how: dict[str, Any] = {"method": upsert, "chunksize": 1_000} if replacing else {}
        address = self.upstream + "/" + urlsplit(HOST).netloc
        engine = sqlalchemy.create_engine(self.url.replace("postgresql://", "postgresql+psycopg2://", 1))
        with spending(of_server(self.postmaster)) as spent, httpx.Client() as client:
            for day in self.days:
                with engine.begin() as connection:
                    for market, service in PRICES.items():
                        answer = client.get(f"{address}/svc/apis/{service.path}", params={"basDd": f"{day:%Y%m%d}"})
                        frame = _frame(answer.content, market, day)
                        frame.to_sql(target, connection, schema="bench", if_exists="append", index=False, **how)
        engine.dispose()
        return spent.cost

    def sql(self, statement: str) -> Any:
        """Run one statement and return the only value of its only row, if it gives one."""
        return peers.sql(self.url, statement)

    def empty(self) -> None:
        """Begin with empty tables."""
        self.sql("truncate market.krx_prices, bench.plain, bench.replacing, collect.pending, collect.key_usage")

    def content(self, target: str) -> Any:
        """What tells the prices of a table apart from others, whatever their order."""
        columns = "session_date, market, code, close, change, open, high, low, volume, traded_value, market_cap"
        return self.sql(f"select row(count(*), bit_xor(hashtextextended(row({columns})::text, 0)))::text from {target}")


def _frame(content: bytes, market: str, day: date) -> pd.DataFrame:
    frame = pd.DataFrame(json.loads(content)["OutBlock_1"]).rename(columns=COLUMNS).drop(columns="BAS_DD")
    for name in NUMBERS:
        frame[name] = pd.to_numeric(frame[name], errors="coerce").astype("Int64")
    frame["change_percent"] = pd.to_numeric(frame["change_percent"], errors="coerce")
    is_untraded = (frame["open"] == 0) & (frame["high"] == 0) & (frame["low"] == 0)
    for name in ("open", "high", "low"):
        frame[name] = frame[name].mask(frame[name] == 0)
    return frame.assign(session_date=day, market=market, is_untraded=is_untraded)


@contextmanager
def prepared(url: str, postmaster: int, days: int) -> Iterator[Ways]:
    """The server of the days, and the tables of the other ways, of the same columns and key."""
    sessions = calendar("XKRX").sessions(LAST - timedelta(days=days * 2 + 10), LAST)[-days:]
    columns = ", ".join(name for name in STREAM.tables[0].column_names)
    with tempfile.TemporaryDirectory(prefix="daybook-krx-") as raw, serving(sessions) as upstream:
        ways = Ways(url, postmaster, upstream, sessions, Path(raw))
        ways.sql("create schema if not exists bench")
        for target in ("plain", "replacing"):
            ways.sql(f"create table bench.{target} as select {columns} from market.krx_prices with no data")
            ways.sql(f"alter table bench.{target} add primary key ({', '.join(STREAM.tables[0].key)})")
            ways.sql(f"create index on bench.{target} (code, session_date)")
        yield ways


def check_equal(ways: Ways) -> None:
    """Every way writes the same prices, and no way asked more than the key has.

    Raises:
        AssertionError: they do not.
    """
    ways.empty()
    ways.engine()
    ways.by_pandas("plain", replacing=False)
    ways.by_pandas("replacing", replacing=True)
    wanted = ways.content("market.krx_prices")
    assert wanted.startswith(f"({len(ways.days) * ROWS},")
    assert wanted == ways.content("bench.plain") == ways.content("bench.replacing")
    assert ways.sql("select max(used) from collect.key_usage") == 3 * len(ways.days)


def measure(ways: Ways, rounds: int) -> list[str]:
    """From the first request to an empty table that is full."""
    count = len(ways.days) * ROWS

    def fresh(way: Callable[[], Cost]) -> Cost:
        ways.empty()
        return way()

    plain, replacing = "pandas, to_sql", "pandas, to_sql that replaces"
    taken = interleaved(
        {
            "the engine's backfill": partial(fresh, ways.engine),
            plain: partial(fresh, lambda: ways.by_pandas("plain", replacing=False)),
            replacing: partial(fresh, lambda: ways.by_pandas("replacing", replacing=True)),
        },
        rounds,
    )
    ours = taken["the engine's backfill"]
    speeds = sorted(count / cost.cpu for cost in ours)
    name = f"KRX, {len(ways.days)} days"
    return [
        f"{len(ways.days)} days of {ROWS:,} rows, backfilled: {speeds[len(speeds) // 2]:,.0f} rows a CPU second",
        table(taken, count, "row"),
        judge(Judged(f"{name}: {plain} / ours", tuple(ratios(taken[plain], ours)), floor=1, aim=10)),
        judge(Judged(f"{name}: {replacing} / ours", tuple(ratios(taken[replacing], ours)), floor=2, aim=10)),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a year of KRX costs from the request to the table.")
    parser.add_argument("--days", type=int, default=250, help="days of a backfill")
    parser.add_argument("--rounds", type=int, default=1, help="how often each way is run and counted")
    options = parser.parse_args()
    with fresh_warehouse() as (cluster, url):
        assert cluster.process is not None
        with prepared(url, cluster.process.pid, 5) as few:
            check_equal(few)
            few.sql("drop schema bench cascade")
        with prepared(url, cluster.process.pid, options.days) as ways:
            print("\n".join([*measure(ways, options.rounds), "", *summary()]))


if __name__ == "__main__":
    main()
