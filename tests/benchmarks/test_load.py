"""What loading costs is printed; that every way writes the same rows is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import load

pytestmark = pytest.mark.benchmark


def test_every_way_writes_the_same_rows_and_what_a_load_costs_is_printed(database: str) -> None:
    ways = load.prepare(database)
    load.check_equal(ways, 5_000, with_pandas=True)
    print("\n" + "\n".join(load.measure_pandas(ways, 5_000, 5)), flush=True)
    for count in (load.FEW, 1_000_000):
        print("\n" + "\n".join(load.measure_load(ways, count, 5, with_others=count <= load.FEW)), flush=True)
        print("\n" + "\n".join(load.measure_again(ways, count, 5)), flush=True)
