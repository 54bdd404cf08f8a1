"""The office of the analysis tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from include.engine.raw import RawStore
from tests.analysis.office import NINE, Office
from tests.fixtures_sandbox import Start
from tests.sources.places import Place


@pytest.fixture
def office(database: str, sandbox: Start, tmp_path: Path) -> Iterator[Office]:
    """Nine o'clock on a Wednesday in Seoul, with nothing filed yet."""
    place = Place(database, RawStore(str(tmp_path / "raw")))
    place.at(NINE)
    running = sandbox(clock=place.now)
    place.sandbox_url = running.url
    made = Office(place, running)
    # Time passes by itself too: much more than a loaded machine takes for a step.
    made.switch("seconds", value=20)
    yield made
    made.close()
