"""Every measure once more at the end, with what is below its floor."""

from __future__ import annotations

import psycopg
import pytest

from include.local.postgres import Cluster
from tests.benchmarks import measuring


@pytest.fixture(scope="session")
def postgres(postgres: Cluster) -> Cluster:
    """The server of the session, writing every commit to the disk as it does for real."""
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as server:
        server.execute("alter system reset all")
        server.execute("select pg_reload_conf()")
    return postgres


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
