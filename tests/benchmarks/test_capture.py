"""How long after nine the snapshot is taken is printed; that each was taken, whole and by the capturer, is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import capture


@pytest.mark.benchmark
def test_every_morning_is_captured_whole_and_its_offset_is_printed(database: str) -> None:
    print("\n" + "\n".join(capture.measure(database, 50, 30)), flush=True)
