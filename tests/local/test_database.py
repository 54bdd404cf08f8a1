"""The two databases of a stack: made where missing, and never used for what they do not serve."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from include.local import database as rooms
from include.local.failure import LocalFailure
from include.local.postgres import Cluster
from include.local.state import open_state


def test_a_fresh_warehouse_becomes_a_sandbox_and_its_clock_goes_on_from_there(database: str) -> None:
    first = rooms.settle(database, demo=True)
    assert timedelta(0) <= first - rooms.DEMO_START < timedelta(seconds=10)
    again = rooms.settle(database, demo=True, start=datetime(2030, 1, 1, tzinfo=rooms.DEMO_START.tzinfo))
    assert first < again < first + timedelta(seconds=60), "simulated time goes on and is not set a second time"


def test_real_time_is_real(database: str) -> None:
    now = rooms.settle(database, demo=False)
    assert abs(now - datetime.now(now.tzinfo)) < timedelta(seconds=60)


def test_a_sandbox_is_refused_for_real_use(database: str) -> None:
    rooms.settle(database, demo=True)
    with pytest.raises(LocalFailure, match="belongs to a demo"):
        rooms.settle(database, demo=False)


def test_a_server_that_cannot_be_reached_is_told_without_its_password(tmp_path: Path) -> None:
    url = "postgresql://me:hunter2@127.0.0.1:1/postgres"
    with pytest.raises(LocalFailure, match="DATABASE_URL cannot be used") as refused:
        rooms.start(open_state(tmp_path, demo=False), url, 0, print)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(("demo", "suffix"), [(False, ""), (True, "_demo")])
def test_both_databases_are_made_on_a_server_that_the_user_brought(
    postgres: Cluster, tmp_path: Path, demo: bool, suffix: str
) -> None:
    said: list[str] = []
    state = open_state(tmp_path, demo)
    try:
        for _ in range(2):
            found = rooms.start(state, postgres.url(), 0, said.append)
            assert found.cluster is None
            for url, name in ((found.metadata, f"airflow{suffix}"), (found.warehouse, f"daybook{suffix}")):
                with psycopg.connect(url) as connection:
                    assert connection.info.dbname == name
        assert len(said) == 2, "made once"
    finally:
        for name in (f"airflow{suffix}", f"daybook{suffix}"):
            postgres.drop_database(name)
