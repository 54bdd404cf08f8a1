"""What the engine adds to a slice is printed; that the slices wrote their rows is asserted."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.benchmarks import slice as slices
from tests.engine.cdn import serving
from tests.engine.desk import make, ny


@pytest.mark.benchmark
@pytest.mark.parametrize("rows", [1, 1_000])
def test_slices_write_their_rows_and_what_the_engine_adds_is_printed(database: str, tmp_path: Path, rows: int) -> None:
    with serving() as cdn:
        desk = make(database, cdn, tmp_path, ny(slices.FIRST + timedelta(days=1), 20))
        print("\n" + "\n".join(slices.measure(desk, rows, 40)), flush=True)
