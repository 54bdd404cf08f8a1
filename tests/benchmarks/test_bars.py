"""What bars cost is printed; that every way writes the same bars, and what is asked for, is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import bars

pytestmark = pytest.mark.benchmark


def test_every_way_writes_the_same_bars_and_what_they_cost_is_printed(database: str) -> None:
    ways = bars.prepare(database)
    bars.check_equal(ways, 5_000)
    print("\n" + "\n".join(bars.measure_load(ways, 10_000, 5, with_pandas=True)), flush=True)
    print("\n" + "\n".join(bars.measure_load(ways, 100_000, 5, with_pandas=False)), flush=True)
    print("\n" + "\n".join([*bars.measure_requests(), *bars.measure_peak()]), flush=True)
