"""What whole tasks take in memory is printed, with the mark that they must stay under."""

from __future__ import annotations

import pytest

from tests.benchmarks import memory


@pytest.mark.benchmark
def test_the_most_memory_that_tasks_take_is_printed() -> None:
    print("\n" + "\n".join(memory.measure(6_000)), flush=True)
