"""What every test may ask for: a real PostgreSQL, and in it a database of its own with every migration run.

Promises: no test reads the developer's environment or state directory, and nothing is left running. Never:
two tests share a database.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

ROOT = Path(__file__).resolve().parent.parent
_SCRATCH = Path(tempfile.mkdtemp(prefix="daybook-tests-"))

# Airflow reads these once, at its first import. SQLite is for tests of DAG files only.
for _name in [name for name in os.environ if name.startswith(("AIRFLOW", "DAYBOOK_", "DATABASE_URL", "PG"))]:
    del os.environ[_name]
os.environ.update(
    AIRFLOW_HOME=str(ROOT),
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{_SCRATCH / 'airflow.db'}",
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__LOGGING__BASE_LOG_FOLDER=str(_SCRATCH / "logs"),
    DAYBOOK_STATE=str(_SCRATCH / "state"),
    HF_HOME=str(_SCRATCH / "huggingface"),
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_XET_TELEMETRY_ENABLED="0",
    NO_PROXY="127.0.0.1,localhost",
    no_proxy="127.0.0.1,localhost",
)
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from include.local.postgres import Cluster  # noqa: E402  (the environment comes first)

pytest_plugins = ["tests.fixtures_sandbox"]

_numbers = count(1)


def pytest_unconfigure() -> None:
    shutil.rmtree(_SCRATCH, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A running server of this test session, started at first use."""
    # Below the system's temporary directory and open to be passed through: a server started by root runs as
    # another user, who could not get into pytest's own directories.
    home = Path(tempfile.mkdtemp(prefix="daybook-postgres-"))
    home.chmod(0o711)
    cluster = Cluster(home / "postgres")
    try:
        cluster.start()
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as server:
            # What it holds is thrown away at the end of the session, and thousands of databases are made in it.
            server.execute("alter system set fsync = off")
            server.execute("alter system set full_page_writes = off")
            server.execute("select pg_reload_conf()")
        yield cluster
    finally:
        cluster.remove()
        shutil.rmtree(home, ignore_errors=True)


class _Databases:
    """Databases copied from a template; making the next and dropping the last goes on beside the tests."""

    def __init__(self, cluster: Cluster, template: str) -> None:
        self._cluster, self._template = cluster, template
        self._beside = ThreadPoolExecutor(1)
        self._next = self._beside.submit(self._make)

    def _make(self) -> str:
        name = f"test_{next(_numbers)}"
        make = sql.SQL("create database {} template {} strategy file_copy")
        with psycopg.connect(self._cluster.url("postgres"), autocommit=True) as server:
            server.execute(make.format(sql.Identifier(name), sql.Identifier(self._template)))
        return name

    def _drop(self, name: str) -> None:
        with psycopg.connect(self._cluster.url("postgres"), autocommit=True) as server:
            server.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    @contextmanager
    def one(self) -> Iterator[str]:
        """A database of its own; gives its URL."""
        name, self._next = self._next.result(), self._beside.submit(self._make)
        try:
            yield self._cluster.url(name)
        finally:
            self._beside.submit(self._drop, name)

    def wait(self) -> None:
        """Wait until none is being made or dropped."""
        self._beside.submit(lambda: None).result()

    def close(self) -> None:
        self._beside.shutdown()


@pytest.fixture(scope="session")
def _migrated(postgres: Cluster) -> str:
    """The name of a database with all migrations run, to be copied and never connected to."""
    from include.engine.migrations import migrate

    migrate(postgres.create_database("migrated"))
    return "migrated"


@pytest.fixture(scope="session")
def _copies(postgres: Cluster, _migrated: str) -> Iterator[_Databases]:
    copies = _Databases(postgres, _migrated)
    yield copies
    copies.close()


@pytest.fixture(scope="session")
def _empty(postgres: Cluster) -> Iterator[_Databases]:
    copies = _Databases(postgres, "template0")
    yield copies
    copies.close()


@pytest.fixture
def alone(database: str, _copies: _Databases) -> None:
    """For tests that count pages: a transaction anywhere, as one that makes a database, keeps dead rows in the way."""
    _copies.wait()


@pytest.fixture
def database(_copies: _Databases) -> Iterator[str]:
    """The URL of a fresh warehouse database, all migrations run, for one test alone."""
    with _copies.one() as url:
        yield url


@pytest.fixture
def empty_database(_empty: _Databases) -> Iterator[str]:
    """The URL of a fresh database without any table, for one test alone."""
    with _empty.one() as url:
        yield url
