"""What a bulk file costs is printed; that every fact is in the files, digit by digit, is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import edgar


@pytest.mark.benchmark
def test_a_bulk_file_is_made_into_files_and_what_that_costs_is_printed() -> None:
    print("\n" + "\n".join(edgar.measure(200, 1, 3)), flush=True)
