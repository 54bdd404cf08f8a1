"""Prints what parsing costs; the number is read by a person."""

from __future__ import annotations

import pytest

from tests.benchmarks import parse_dags


@pytest.mark.benchmark
def test_what_parsing_the_folder_costs_is_printed():
    taken = parse_dags.measure(rounds=5)
    print(f"\n{parse_dags.report(taken)}")
    assert {name: len(runs) for name, runs in taken.items()} == dict.fromkeys(parse_dags.KINDS, 5)
