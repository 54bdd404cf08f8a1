"""Every measure once more at the end, with what is below its floor."""

from __future__ import annotations

import pytest

from include.local.postgres import Cluster
from tests.benchmarks import measuring


@pytest.fixture
def postmaster(postgres: Cluster) -> int:
    """The process id of the server that `database` is on."""
    assert postgres.process is not None
    return postgres.process.pid


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = measuring.summary()
    if lines:
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.write_line(line)
