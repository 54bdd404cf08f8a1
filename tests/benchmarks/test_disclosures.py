"""What readers of disclosures wait for is printed; that every answer is good, on every page, is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import api, disclosures


@pytest.mark.benchmark
def test_the_feed_the_memory_and_the_poll_loop_are_measured(database: str) -> None:
    print("\n" + "\n".join(disclosures.measure(database, api.signed(), rows=100_000, seconds=2)), flush=True)
