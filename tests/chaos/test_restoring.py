"""Every source is collected, the database is lost, and all of it is told again from the raw store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from include import registry
from tests.fixtures_sandbox import Start
from tests.sources.conftest import place  # noqa: F401
from tests.sources.places import Place
from tests.sources.test_restoring import lose_and_restore, quick

pytestmark = pytest.mark.chaos


def test_every_source_is_told_again(
    place: Callable[[], Place],  # noqa: F811
    sandbox: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = [quick(stream.name) for stream in registry.streams()]
    lose_and_restore(streams, place, sandbox, tmp_path, monkeypatch, past=False)
