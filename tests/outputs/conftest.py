"""What the tests of publication start from."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import constants

from include.outputs import publisher
from include.outputs.hub import Hub
from tests.fixtures_sandbox import RunningSandbox, Start
from tests.outputs import market
from tests.outputs.publishing import MONTH, REPOSITORY, TOKEN, put


@pytest.fixture
def running(sandbox: Start) -> RunningSandbox:
    return sandbox()


@pytest.fixture
def hub(running: RunningSandbox) -> Hub:
    return Hub(running.hub_url, TOKEN, REPOSITORY)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The outbox, in a path with a space."""
    return tmp_path / "out box"


@pytest.fixture
def waiting(database: str, root: Path) -> str:
    """A warehouse with one file that waits."""
    put(database, root, market.month(MONTH))
    return database


@pytest.fixture
def by_four(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits of four files, so that five are more than one."""
    monkeypatch.setattr(publisher, "FILES_PER_COMMIT", 4)


@pytest.fixture(params=["xet", "lfs"])
def transfer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways in which the client sends the bytes of large files."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", request.param == "lfs")
    return str(request.param)
