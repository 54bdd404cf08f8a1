"""Reading DART's list of all companies stays within its memory (./run bench -k corps)."""

from __future__ import annotations

import pytest

from tests.benchmarks import corps


@pytest.mark.benchmark
def test_the_list_of_all_companies_is_never_whole_in_memory() -> None:
    assert corps.measure().verdict != "BELOW FLOOR"
