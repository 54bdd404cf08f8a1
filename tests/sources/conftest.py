from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from include.engine.raw import RawStore
from include.local.postgres import Cluster
from tests.sources.places import Place

_numbers = count(1)


@pytest.fixture
def place(postgres: Cluster, _migrated: str, tmp_path: Path) -> Iterator[Callable[[], Place]]:
    names: list[str] = []

    def make() -> Place:
        names.append(f"exam_{next(_numbers)}")
        url = postgres.create_database(names[-1], template=_migrated)
        return Place(url, RawStore(str(tmp_path / names[-1])))

    yield make
    for name in names:
        postgres.drop_database(name)
