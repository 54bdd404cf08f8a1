"""What a bulk file costs is printed; that every fact is in the files, digit by digit, is asserted."""

from __future__ import annotations

import os

import pytest

from tests.benchmarks import edgar, edgar_days, edgar_sets


@pytest.mark.benchmark
def test_a_bulk_file_is_made_into_files_and_what_that_costs_is_printed() -> None:
    print("\n" + "\n".join(edgar.measure(200, 1, 3, os.environ.get("DARTLAB_PYTHON", ""))), flush=True)


@pytest.mark.benchmark
def test_two_days_go_through_the_engine_and_what_is_sent_and_held_is_printed() -> None:
    print("\n" + "\n".join(edgar_days.measure(200, 1, 1)), flush=True)


@pytest.mark.benchmark
def test_a_statement_data_set_is_made_into_files_and_what_that_costs_is_printed() -> None:
    print("\n" + "\n".join(edgar_sets.measure(2_000, 5)), flush=True)
