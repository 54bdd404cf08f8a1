"""What planning two million chunks takes is printed; that each is there once after a kill is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import plan


@pytest.mark.benchmark
def test_every_chunk_is_planned_once_in_spite_of_a_kill_and_what_it_takes_is_printed(database: str) -> None:
    print("\n" + "\n".join(plan.measure(database, 2_000_000)), flush=True)
