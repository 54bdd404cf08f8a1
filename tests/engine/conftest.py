from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.cdn import Cdn, serving
from tests.engine.desk import Desk, make


@pytest.fixture
def cdn() -> Iterator[Cdn]:
    with serving() as running:
        yield running


@pytest.fixture
def desk(database: str, cdn: Cdn, tmp_path: Path) -> Desk:
    return make(database, cdn, tmp_path)
