"""What loading costs is printed; that every way writes the same rows is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import load

pytestmark = pytest.mark.benchmark


def test_every_way_writes_the_same_rows_and_what_a_load_costs_is_printed(database: str) -> None:
    ways = load.prepare(database)
    load.check_equal(ways, 5_000, with_pandas=True)
    print("\n" + "\n".join(load.measure_pandas(ways, 5_000, load.OFTEN)), flush=True)
    for count in (load.FEW, 1_000_000):
        for lines in load.measure(ways, count):
            print(f"\n{lines}", flush=True)
