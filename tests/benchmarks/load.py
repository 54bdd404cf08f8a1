"""Measures loading bars through the engine's own path against what is usually written by hand.

    ./run bench -k load                                          with fewer rows
    python tests/benchmarks/load.py [--rows 100000] [--rounds 5] [--small 5000]
    python tests/benchmarks/load.py --again --rows 1000000 --rounds 1      the same rows again, and nothing else

A million rows take some ten minutes of processor time, nearly all of it in the upsert by hand; they are measured in
fewer rounds, and none of them to warm up.

Promises: every way writes the same rows, provenance included, into tables of one shape, and this is checked before
anything is counted; rows are ready as tuples (as a data frame for pandas) before the time is taken; a load begins
with an empty table and ends with its commit. Two more ways are shown and not judged: `bare` is the same by hand
without the provenance that the engine keeps, and `COPY` sends the rows straight into the table, without looking at
them and without a way to meet a row that is there: nothing that goes through a stage can be cheaper.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import pandas as pd

from include.contract import Batch, Column, Parsed, Rule, Table
from include.engine import merge, stage
from include.engine.db import connect
from include.engine.merge import Counts
from include.engine.stage import Reading
from tests.benchmarks import peers
from tests.benchmarks.measuring import (
    Cost,
    Judged,
    interleaved,
    judge,
    of_backend,
    ratios,
    spending,
    summary,
    table,
    warehouse,
)
from tests.engine.desk import STREAM

MINUTES = 390
ROWS_OF_UNIT = 10_000
# Up to so many rows, the ways that are not judged are run too, and every way more often.
FEW, OFTEN, SELDOM = 100_000, 5, 3
DAY = date(2026, 9, 14)

_PRICES = tuple(Column(name, "numeric", name, precision=(20, 6)) for name in ("open", "high", "low", "close"))
BARS = Table(
    schema="bench",
    name="bars",
    comment="Minute bars",
    columns=(
        Column("session_date", "date", "Day"),
        Column("symbol", "text", "Symbol"),
        Column("ts", "timestamptz", "Minute"),
        *_PRICES,
        Column("volume", "bigint", "Shares"),
    ),
    key=("symbol", "ts"),
    session_date="session_date",
    rules=(
        Rule("the day is the unit's", "in_unit", ("session_date",)),
        Rule("symbol is not blank", "not_blank", ("symbol",)),
        Rule("volume is not negative", "not_negative", ("volume",)),
        Rule("low is at most high", "at_most", ("low", "high")),
    ),
)
PROVENANCE = ("unit", "fetch_id", "sent_at", "parser_version", "cycle_id", "attempt", "extra")
ALL = (*BARS.column_names, *PROVENANCE)

_MAKE = """
create schema if not exists bench;
create table bench.bars (
    session_date date not null, symbol text not null, ts timestamptz(6) not null, open numeric(20, 6) not null,
    high numeric(20, 6) not null, low numeric(20, 6) not null, close numeric(20, 6) not null, volume bigint not null,
    unit text not null, fetch_id bigint not null, sent_at timestamptz(6) not null, parser_version integer not null,
    cycle_id bigint not null, attempt integer not null, extra jsonb, primary key (symbol, ts)
) with (autovacuum_enabled = false);
create index on bench.bars (unit);
create table bench.bars_history (
    like bench.bars, ended_at timestamptz(6) not null, reason text not null,
    primary key (symbol, ts, sent_at, reason, parser_version)
);
create index on bench.bars_history (unit);
create table bench.by_hand (like bench.bars including all) with (autovacuum_enabled = false);
create table bench.by_pandas (like bench.bars including all) with (autovacuum_enabled = false);
create table bench.bare (
    session_date date not null, symbol text not null, ts timestamptz(6) not null, open numeric(20, 6) not null,
    high numeric(20, 6) not null, low numeric(20, 6) not null, close numeric(20, 6) not null, volume bigint not null,
    primary key (symbol, ts)
) with (autovacuum_enabled = false);
"""


@dataclass(frozen=True)
class Bars:
    """The rows of one load, ready for every way."""

    readings: tuple[Reading, ...]
    tuples: list[tuple[Any, ...]]
    bare: list[tuple[Any, ...]]
    frame: pd.DataFrame | None

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.tuples)


@lru_cache(maxsize=1)
def bars(count: int) -> list[tuple[Any, ...]]:
    """Return so many bars, made once: all minutes of a symbol, then the next symbol; a new day after 250 symbols."""
    return [_bar(number) for number in range(count)]


def _bar(number: int) -> tuple[Any, ...]:
    symbol, minute = divmod(number, MINUTES)
    day, symbol = divmod(symbol, 250)
    session = DAY + timedelta(days=day)
    at = datetime(session.year, session.month, session.day, 13, 30, tzinfo=UTC) + timedelta(minutes=minute)
    low = 1_000_000 + (number * 7_919) % 9_000_000
    prices = (Decimal(low + step).scaleb(-4) for step in (17, 250, 0, 113))
    return (session, f"SYM{symbol:03d}", at, *prices, 100 + (number * 31) % 50_000)


def make(count: int, *, asked: int, with_frame: bool = False) -> Bars:
    """Make the rows as they come from the `asked`-th asking: the same values, another provenance."""
    rows = bars(count)
    sent_at = datetime(2026, 10, 1, tzinfo=UTC) + timedelta(hours=asked)
    readings, tuples = [], []
    groups: dict[tuple[date, int], list[tuple[Any, ...]]] = {}
    for number, row in enumerate(rows):
        groups.setdefault((row[0], number // ROWS_OF_UNIT), []).append(row)
    for number, ((session, part), group) in enumerate(groups.items(), start=1):
        unit, fetch_id = f"{session}/{part}", asked * 1_000 + number
        readings.append(Reading(unit, session, (fetch_id,), sent_at, Parsed((Batch(BARS, group),))))
        tuples.extend((*row, unit, fetch_id, sent_at, STREAM.parser_version, 1, 1, None) for row in group)
    frame = pd.DataFrame(tuples, columns=list(ALL), dtype=object) if with_frame else None
    return Bars(tuple(readings), tuples, rows, frame)


# --- the ways


@dataclass(frozen=True)
class Ways:
    """One database and the ways to load into it; each returns what it took."""

    url: str

    def engine(self, given: Bars) -> tuple[Cost, Counts]:
        """What an apply does between its guard and its state."""
        with closing(connect(self.url, statement_timeout=600)) as connection:
            pid = connection.info.backend_pid
            with spending(of_backend(pid)) as spent:
                merge.lock(connection, BARS)
                stage.fill(connection, BARS, given.readings)
                stage.check(connection, STREAM, BARS, 1, is_rebuild=False)
                counts = merge.newest(connection, STREAM, BARS, 1, 1)
                stage.drop(connection, BARS)
                connection.commit()
            return spent.cost, counts

    def by_hand(self, given: Bars, target: str = "by_hand") -> Cost:
        """All rows in one batch of `execute_values`."""
        names = ALL if target == "by_hand" else BARS.column_names
        rows = given.tuples if target == "by_hand" else given.bare
        return peers.by_hand(self.url, target, names, BARS.key, [rows])

    def by_copy(self, given: Bars) -> Cost:
        """Straight into the table, which must be empty."""
        types = [*("date", "text", "timestamptz", *["numeric"] * 4, "int8")]
        types += ["text", "int8", "timestamptz", "int4", "int8", "int4", "jsonb"]
        with closing(connect(self.url, statement_timeout=600)) as connection:
            with spending(of_backend(connection.info.backend_pid)) as spent:
                with connection.cursor().copy("copy bench.by_hand from stdin (format binary)") as copy:
                    copy.set_types(types)
                    for row in given.tuples:
                        copy.write_row(row)
                connection.commit()
            return spent.cost

    def by_pandas(self, given: Bars) -> Cost:
        """All rows in one data frame."""
        assert given.frame is not None
        return peers.by_pandas(self.url, "by_pandas", BARS.key, [given.frame])

    # --- looking

    def empty(self) -> None:
        """Begin with empty tables."""
        peers.sql(self.url, "truncate bench.bars, bench.bars_history, bench.by_hand, bench.by_pandas, bench.bare")

    def content(self, target: str) -> Any:
        """What tells the rows of a table apart from other rows, whatever their order."""
        row = f"row({', '.join(ALL)})::text"
        return peers.sql(
            self.url, f"select row(count(*), bit_xor(hashtextextended({row}, 0)))::text from bench.{target}"
        )

    def lsn(self) -> int:
        """How many bytes have been written to the write-ahead log."""
        return int(peers.sql(self.url, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))

    def dead(self, target: str) -> int:
        """Dead rows of a table."""
        peers.sql(self.url, "select pg_stat_force_next_flush()")
        return int(
            peers.sql(self.url, f"select n_dead_tup from pg_stat_user_tables where relid = 'bench.{target}'::regclass")
        )


def prepare(url: str) -> Ways:
    """Make the tables."""
    ways = Ways(url)
    with closing(connect(url, autocommit=True)) as connection:
        connection.execute(_MAKE)
    return ways


def check_equal(ways: Ways, count: int, *, with_pandas: bool) -> None:
    """Every way writes the same rows, and the engine writes nothing the second time.

    Raises:
        AssertionError: they do not.
    """
    first, again = make(count, asked=1, with_frame=with_pandas), make(count, asked=2)
    ways.empty()
    _, counts = ways.engine(first)
    assert counts.new == count, counts
    ways.by_hand(first)
    wanted = ways.content("bars")
    assert wanted == ways.content("by_hand")
    if with_pandas:
        ways.by_pandas(first)
        assert wanted == ways.content("by_pandas")
    _, counts = ways.engine(again)
    assert counts.touched == 0, counts
    assert wanted == ways.content("bars")
    ways.by_hand(again)
    assert wanted != ways.content("by_hand")


# --- what is measured


def measure(ways: Ways, count: int, rounds: int | None = None) -> Iterator[str]:
    """Everything about so many rows, as soon as it is known."""
    is_few = count <= FEW
    often = rounds or (OFTEN if is_few else SELDOM)
    yield "\n".join(measure_load(ways, count, often, with_others=is_few))
    yield "\n".join(measure_again(ways, count, often))


def measure_load(ways: Ways, count: int, rounds: int, *, with_others: bool = False) -> list[str]:
    """Load into empty tables; `with_others` shows the ways that are not judged too."""
    given = make(count, asked=1)

    def fresh(way: Callable[[Bars], Cost]) -> Cost:
        ways.empty()
        return way(given)

    kinds = {
        "the engine": partial(fresh, lambda rows: ways.engine(rows)[0]),
        "execute_values upsert": partial(fresh, ways.by_hand),
    }
    if with_others:
        kinds["execute_values upsert, bare"] = partial(fresh, partial(ways.by_hand, target="bare"))
        kinds["COPY"] = partial(fresh, ways.by_copy)
    taken = interleaved(kinds, rounds, warms_up=count <= FEW)
    ours, by_hand = taken["the engine"], taken["execute_values upsert"]
    lines = [
        f"Load of {count:,} rows into an empty table",
        table(taken, count, "row"),
        judge(peers.against(f"load {count:,} rows: execute_values upsert / ours", by_hand, ours, 3, 7)),
    ]
    for name, others in taken.items():
        if others is not ours and others is not by_hand:
            lines.append(judge(Judged(f"load {count:,} rows: {name} / ours", tuple(ratios(others, ours)))))
    return lines


def measure_pandas(ways: Ways, count: int, rounds: int) -> list[str]:
    """Load few rows, also by pandas; what it takes for a row does not change with their number."""
    given = make(count, asked=1, with_frame=True)

    def fresh(way: Callable[[Bars], Cost]) -> Cost:
        ways.empty()
        return way(given)

    taken = interleaved(
        {
            "the engine": partial(fresh, lambda rows: ways.engine(rows)[0]),
            "pandas to_sql with on-conflict": partial(fresh, ways.by_pandas),
            "execute_values upsert": partial(fresh, ways.by_hand),
        },
        rounds,
    )
    name = f"load {count:,} rows: pandas to_sql / ours"
    return [
        f"Load of {count:,} rows into an empty table",
        table(taken, count, "row"),
        judge(peers.against(name, taken["pandas to_sql with on-conflict"], taken["the engine"], 15, 35)),
    ]


def measure_again(ways: Ways, count: int, rounds: int) -> list[str]:
    """The same rows from a later asking: processor time, bytes of log and dead rows against a blind upsert."""
    given = make(count, asked=1)
    ways.empty()
    ways.engine(given)
    ways.by_hand(given)
    for target in ("bars", "by_hand"):
        peers.sql(ways.url, f"vacuum (analyze) bench.{target}")
    taken: dict[str, list[Cost]] = {"the engine": [], "execute_values, blind": []}
    logs: list[tuple[int, int]] = []
    dead: list[float] = []
    for number in range(0 if count <= FEW else 1, rounds + 1):
        given = make(count, asked=number + 2)
        start = ways.lsn()
        blind = ways.by_hand(given)
        between = ways.lsn()
        ours, counts = ways.engine(given)
        end = ways.lsn()
        assert counts.touched == 0
        if number:
            taken["the engine"].append(ours)
            taken["execute_values, blind"].append(blind)
            logs.append((end - between, between - start))
            dead.append(ways.dead("bars"))
        del given
    speed = tuple(ratios(taken["execute_values, blind"], taken["the engine"]))
    shares = tuple(100 * ours / blind for ours, blind in logs)
    return [
        f"The same {count:,} rows again ({logs[-1][0]:,} bytes of log against {logs[-1][1]:,})",
        table(taken, count, "row"),
        judge(Judged(f"same {count:,} rows again: blind upsert / ours", speed)),
        judge(Judged(f"same {count:,} rows again: log of ours / of a blind upsert", shares, "%", 1, less=True)),
        judge(Judged(f"same {count:,} rows again: dead rows", tuple(dead), "", 0, less=True)),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What loading rows costs.")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000], help="rows of a load")
    parser.add_argument("--small", type=int, default=5_000, help="rows of the loads that pandas does too")
    parser.add_argument("--rounds", type=int, help="how often each way is run and counted")
    parser.add_argument("--again", action="store_true", help="only what the same rows cost when they come again")
    options = parser.parse_args()
    with warehouse() as (_, url):
        ways = prepare(url)
        check_equal(ways, options.small, with_pandas=not options.again)
        if not options.again:
            print("\n".join(measure_pandas(ways, options.small, options.rounds or OFTEN)), flush=True)
        for count in options.rows:
            if options.again:
                print("\n".join(measure_again(ways, count, options.rounds or SELDOM)), flush=True)
                continue
            for lines in measure(ways, count, options.rounds):
                print(lines, flush=True)
    print("\n".join(["", *summary()]))


if __name__ == "__main__":
    main()
