"""Connections cannot hang, and statements are found by name."""

from __future__ import annotations

import time

import psycopg
import pytest

from include.engine import db
from include.engine.db import connect, query, template, transaction
from tests.engine.desk import Desk


def test_every_connection_has_its_timeouts(desk: Desk) -> None:
    with connect(desk.url) as connection:
        settings = {
            row["name"]: row["setting"]
            for row in connection.execute(
                "select name, setting from pg_settings where name in ('statement_timeout', 'lock_timeout',"
                " 'idle_in_transaction_session_timeout', 'client_connection_check_interval', 'TimeZone',"
                " 'random_page_cost')"
            )
        }
        options = connection.info.get_parameters()
    assert settings == {
        "statement_timeout": "60000",
        "lock_timeout": "20000",
        "idle_in_transaction_session_timeout": "60000",
        "client_connection_check_interval": "5000",
        "TimeZone": "UTC",
        "random_page_cost": "1.1",
    }
    assert (options["connect_timeout"], options["keepalives"], options["tcp_user_timeout"]) == ("5", "1", "30000")


def test_no_connection_is_opened_past_it() -> None:
    """Whoever opens one by hand has no timeouts; only `db` does."""
    from include.settings import ROOT

    found = [
        path.relative_to(ROOT).as_posix()
        for folder in ("engine", "outputs", "operators", "ops", "analysis")
        for path in (ROOT / "include" / folder).rglob("*.py")
        if "psycopg.connect(" in path.read_text(encoding="utf-8")
    ]
    assert found == ["include/engine/db.py"]


def test_a_statement_a_lock_and_an_idle_transaction_each_come_to_an_end(desk: Desk) -> None:
    with connect(desk.url, statement_timeout=0.05) as connection, pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute("select pg_sleep(5)")
    with connect(desk.url) as holder:
        holder.execute("lock table collect.cycles in exclusive mode")
        with connect(desk.url, lock_timeout=0.05) as waiter, pytest.raises(psycopg.errors.LockNotAvailable):
            waiter.execute("lock table collect.cycles in exclusive mode")
    idle = connect(desk.url, idle_timeout=0.05)
    idle.execute("select 1")
    time.sleep(0.3)
    with pytest.raises((psycopg.errors.IdleInTransactionSessionTimeout, psycopg.OperationalError)):
        idle.execute("select 1")
    idle.close()


def test_a_database_that_is_not_there_is_found_out_at_once() -> None:
    started = time.monotonic()
    with pytest.raises(psycopg.OperationalError):
        connect("postgresql://nobody@127.0.0.1:1/nowhere")
    assert time.monotonic() - started < 5


def test_a_transaction_commits_at_its_end_and_not_otherwise(desk: Desk) -> None:
    with transaction(desk.url) as connection:
        connection.execute("create table kept (n int)")
    with pytest.raises(ValueError, match="a test"), transaction(desk.url) as connection:  # noqa: PT012
        connection.execute("create table lost (n int)")
        raise ValueError("a test")
    assert desk.one("select to_regclass('kept') is not null as kept, to_regclass('lost') is null as lost") == {
        "kept": True,
        "lost": True,
    }


def test_a_call_and_its_commit_go_to_the_server_together(desk: Desk) -> None:
    """The commit is on its way before the answer to the call is read."""
    with connect(desk.url) as connection:
        rows = db.call_and_commit(connection, query("engine.clock"), None)
        assert len(rows) == 1
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_call_that_fails_commits_nothing_and_leaves_a_usable_connection(desk: Desk) -> None:
    with connect(desk.url) as connection:
        connection.execute("create table lost (n int)")
        with pytest.raises(psycopg.errors.DivisionByZero):
            db.call_and_commit(connection, "select 1 / 0", None)
        assert connection.execute("select to_regclass('lost') as t").fetchone() == {"t": None}


def test_a_statement_that_does_not_exist_is_named() -> None:
    with pytest.raises(db.QueryMissing, match=r"sql/queries/lease.sql has no statement 'nothing'"):
        query("lease.nothing")
    with pytest.raises(db.QueryMissing, match="nowhere"):
        template("nowhere.nothing")


def test_a_passwords_place_in_an_address_survives_the_change_of_driver() -> None:
    assert db.sqlalchemy_url("postgresql://u:p%40ss@127.0.0.1:5/d?x=1") == (
        "postgresql+psycopg://u:p%40ss@127.0.0.1:5/d?x=1"
    )
