"""Reading DART's documents keeps every number (./run bench -k documents)."""

from __future__ import annotations

import pytest

from tests.benchmarks import documents


@pytest.mark.benchmark
def test_reading_a_document_is_measured_with_every_number_kept() -> None:
    assert len(documents.measure()) == 2
