"""What building files over 2,700 companies takes (./run bench -k prebuild)."""

from __future__ import annotations

import pytest

from tests.benchmarks import prebuild


@pytest.mark.benchmark
def test_files_over_2700_companies_are_built_within_a_gigabyte(database: str, postmaster: int) -> None:
    built = prebuild.measure(url=database, postmaster=postmaster)
    print(prebuild.words(built))
    assert max(one.megabytes for one in built) <= prebuild.MOST_MB
    assert [one.companies for one in built] == [2_700, 54, 0]
