"""What finding a day of the SEC's filings takes is printed; that all of them are found is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import sec


@pytest.mark.benchmark
def test_a_day_of_six_thousand_filings_is_found_whole_and_what_it_takes_is_printed(database: str) -> None:
    print("\n" + "\n".join(sec.measure(database, 6_000)), flush=True)
