"""How fast the API answers is printed; that every answer is good, on every page, is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import api


@pytest.mark.benchmark
def test_the_api_answers_on_a_month_of_thirty_streams_and_how_fast_is_printed(database: str) -> None:
    print("\n" + "\n".join(api.measure(database, api.signed(), days=30, seconds=2)), flush=True)
