"""How many requests the Hub sees for each file that is published (./run bench -k hub)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks import hub


@pytest.mark.benchmark
def test_2500_files_take_few_requests_each(database: str, tmp_path: Path) -> None:
    asked = hub.measure(url=database, folder=tmp_path)
    print(f"{asked.ours:.4f} requests a file, one by one {asked.single:.2f}: {asked.times:.0f} times fewer")
    assert asked.ours <= hub.MOST_PER_FILE
    assert asked.times >= hub.LEAST_TIMES
