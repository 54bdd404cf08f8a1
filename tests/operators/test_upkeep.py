"""Upkeep over a real warehouse: what nobody looks after gets a run, and only that."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import DagRunTriggerException

from include.contract import Mode
from include.engine import dispatch, lease, windows
from include.engine.db import connect
from include.operators import notes
from include.operators.endings import Interrupted
from include.operators.upkeep import StartRunOperator, UpkeepOperator
from tests.operators.stage import FINRA, STREAM, Ti, context
from tests.outputs import market


@pytest.fixture
def warehouse(database, monkeypatch):
    """A warehouse on Tuesday evening, right after the window opened."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", database)
    monkeypatch.setattr(notes, "run", lambda context, words: None)
    at(database, "2026-09-15 18:36 America/New_York")
    return database


def sql(url, statement, *values):
    with connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def at(url, instant):
    sql(
        url,
        "update collect.installation set is_sandbox = true, clock_offset = %s::timestamptz - clock_timestamp()",
        instant,
    )


class AirflowTi(Ti):
    paused = False

    def get_dag(self, dag_id):
        return SimpleNamespace(is_paused=self.paused)


def look(paused=False):
    operator = UpkeepOperator(task_id="look", sources=[FINRA])
    run_after = datetime(2026, 9, 15, 22, 52, 10, tzinfo=UTC)
    orders = operator.execute(context(AirflowTi(paused=paused), run_after=run_after))
    return orders, operator.outcome


def opened(url):
    windows.declare(url, FINRA.streams)
    windows.open_due(url, STREAM)


def failed(url, kind="retriable"):
    opened(url)
    sql(
        url,
        "update collect.cycles set cycle_status = 'FAILED', outcome = 'failed_retriable', failure_reason = 'x',"
        " failure_kind = %s, finished_at = collect.clock()",
        kind,
    )


def test_where_all_is_looked_after_nothing_is_started(warehouse):
    opened(warehouse)
    orders, words = look()
    assert orders == []
    assert words == "NOTHING TO DO – all is looked after."


def test_a_stream_that_came_into_service_after_dispatch_is_expected_at_nine(warehouse):
    at(warehouse, "2026-09-16 00:00:05 Asia/Seoul")
    windows.declare(warehouse, FINRA.streams)
    dispatch.dispatch(warehouse, FINRA.streams[1:])
    _, words = look()
    assert f"{STREAM.name} came into service after dispatch" in words
    assert {"stream": STREAM.name} in sql(warehouse, "select stream from collect.sla_expectations")
    assert "after dispatch" not in look()[1]


def test_a_make_up_window_that_is_due_gets_a_run(warehouse):
    failed(warehouse)
    assert look()[0] == []
    at(warehouse, "2026-09-15 18:46 America/New_York")
    (order,) = look()[0]
    assert (order["dag_id"], order["run_id"]) == ("finra", "upkeep__2026-09-15T22:45")
    assert order["conf"] == {"streams": ["finra.short_volume"]}
    assert "the make-up window of 2026-09-16 07:45 KST is due" in order["why"]


def test_a_definite_refusal_gets_none(warehouse):
    failed(warehouse, "refused")
    at(warehouse, "2026-09-15 18:46 America/New_York")
    assert look()[0] == []


def test_a_window_that_nobody_works_on_gets_a_run(warehouse):
    opened(warehouse)
    at(warehouse, "2026-09-15 18:45 America/New_York")
    (order,) = look()[0]
    assert "window 2026-09-16 07:35 KST, session 2026-09-15 waits since" in order["why"]


def test_a_window_that_was_never_opened_gets_a_run(warehouse):
    opened(warehouse)
    sql(
        warehouse,
        "update collect.cycles set cycle_status = 'SUCCESS', is_complete = true, outcome = 'success',"
        " finished_at = collect.clock()",
    )
    at(warehouse, "2026-09-16 18:45 America/New_York")
    (order,) = look()[0]
    assert "the window of 2026-09-17 07:35 KST was not opened" in order["why"]


def test_a_stream_that_never_worked_gets_none(warehouse):
    at(warehouse, "2026-09-15 23:00 America/New_York")
    assert look()[0] == []


def test_a_frozen_stream_gets_none(warehouse):
    opened(warehouse)
    sql(
        warehouse,
        "insert into collect.controls (scope, name, state, reason, changed_by, changed_at)"
        " values ('source', 'finra', 'frozen', 'why', 'me', collect.clock())",
    )
    at(warehouse, "2026-09-15 18:45 America/New_York")
    assert look()[0] == []


def test_a_paused_dag_gets_none_and_is_named(warehouse):
    opened(warehouse)
    at(warehouse, "2026-09-15 18:45 America/New_York")
    orders, words = look(paused=True)
    assert orders == []
    assert "finra is paused" in words


def test_dispatch_is_noted_as_paused_too(warehouse):
    look(paused=True)
    assert {"job": "dispatch"} in sql(warehouse, "select job from ops.paused_jobs")


def test_a_lease_whose_holder_vanished_is_ended(warehouse):
    opened(warehouse)
    assert lease.claim(warehouse, STREAM.name, Mode.POLL, None, "gone")
    at(warehouse, "2026-09-15 18:43 America/New_York")
    _, words = look()
    assert (
        "finra.short_volume window 2026-09-16 07:35 KST, session 2026-09-15: its holder vanished; FAILED now" in words
    )


def test_publication_that_lags_gets_a_run(warehouse):
    market.save(warehouse, market.month("2026-09"))
    assert look()[0] == []
    at(warehouse, "2026-09-15 18:50 America/New_York")
    (order,) = look()[0]
    assert (order["dag_id"], order["conf"]) == ("publish", {})


@pytest.mark.parametrize("what", ["lease_until", "put_off_until"])
def test_publication_that_is_at_work_or_put_off_gets_none(warehouse, what):
    market.save(warehouse, market.month("2026-09"))
    at(warehouse, "2026-09-15 18:50 America/New_York")
    sql(
        warehouse,
        f"insert into publish.leases (name, {what}, updated_at)"
        " values ('hub', collect.clock() + interval '1 minute', collect.clock())",
    )
    assert look()[0] == []


def test_without_a_warehouse_the_next_run_looks_again(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(Interrupted):
        look()


def test_an_order_becomes_a_run_that_says_why():
    order = {"dag_id": "finra", "run_id": "upkeep__x", "conf": {"streams": ["finra.short_volume"]}, "why": "it is due"}
    with pytest.raises(DagRunTriggerException) as asked:
        StartRunOperator(task_id="start", order=order).execute(context())
    assert (asked.value.trigger_dag_id, asked.value.dag_run_id, asked.value.conf) == (
        "finra",
        "upkeep__x",
        order["conf"],
    )
    assert asked.value.skip_when_already_exists
    assert asked.value.note == "STARTED BY UPKEEP – it is due"
