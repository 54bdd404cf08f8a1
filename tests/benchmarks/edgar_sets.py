"""Measures a quarter's statement data set made into files.

    ./run bench -k statement
    python tests/benchmarks/edgar_sets.py [--companies 2000] [--rounds 5]

Promises: both ways read the same members from memory, are run in turn, and give the same number of rows. `pandas` is
`read_csv` of texts, without quotation, and `to_parquet`; it makes no types, tells no line that is unfit and finds no
two lines of one key, all of which ours does.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import pandas as pd

from include.sandbox.edgar_sets import Sets
from include.sources.edgar import set_files
from tests.benchmarks.measuring import Cost, Judged, interleaved, judge, ratios, table

NAMES = ("sub", "pre", "tag")


@dataclass(frozen=True)
class _Bytes:
    """A body that lies in memory."""

    body: bytes

    def open(self) -> BinaryIO:
        return io.BytesIO(self.body)

    def read(self) -> bytes:
        return self.body


def ours(members: dict[str, bytes]) -> int:
    """Make the files; returns how many rows they have."""
    return sum(set_files.convert(name, _Bytes(body), io.BytesIO()).rows for name, body in members.items())


def pandas(members: dict[str, bytes]) -> int:
    """Make files with pandas; returns how many rows they have."""
    rows = 0
    for body in members.values():
        frame = pd.read_csv(io.BytesIO(body), sep="\t", dtype=str, quoting=csv.QUOTE_NONE, keep_default_na=False)
        frame.to_parquet(io.BytesIO())
        rows += len(frame)
    return rows


def _cost(work: Callable[[], object]) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Cost(time.process_time() - cpu, 0.0, time.perf_counter() - wall)


def measure(companies: int, rounds: int) -> list[str]:
    """Run both ways in turn and return the lines to print."""
    texts = Sets(7, companies).members(2026, 2)
    members = {name: texts[f"{name}.txt"].encode() for name in NAMES}
    rows = ours(members)
    if rows != pandas(members):
        raise AssertionError(f"pandas has other rows than our {rows:,}")
    taken = interleaved(
        {"ours": lambda: _cost(lambda: ours(members)), "pandas": lambda: _cost(lambda: pandas(members))}, rounds
    )
    return [
        table(taken, rows, "line"),
        judge(
            Judged("statement sets: pandas / ours", tuple(ratios(taken["pandas"], taken["ours"])), floor=3.0, aim=8.0)
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("\n".join(measure(options.companies, options.rounds)))
