"""What a month of KRX costs is printed; that every way writes the same prices with the calls it has, is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import krx


@pytest.mark.benchmark
def test_every_way_collects_the_same_prices_and_what_they_cost_is_printed(database: str, postmaster: int) -> None:
    with krx.prepared(database, postmaster, 22) as ways:
        krx.check_equal(ways)
        print("\n" + "\n".join(krx.measure(ways, 3)), flush=True)
