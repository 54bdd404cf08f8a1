"""Whole runs of the DAGs, from the request to the rows."""

from __future__ import annotations

import pytest
from airflow.models.asset import AssetEvent, AssetModel
from airflow.sdk.api.client import TaskInstanceOperations
from airflow.utils.session import create_session
from sqlalchemy import select

pytestmark = pytest.mark.slow


def states(tasks):
    return {name: task["state"] for name, task in tasks.items()}


def test_a_poll_collects_and_leaves_the_lanes_out(run, warehouse):
    state, tasks = run("finra")
    assert (state, states(tasks)) == (
        "success",
        {"check_request": "success", "short_volume": "success", "short_volume_lanes": "skipped", "summary": "success"},
    )
    assert warehouse("select cycle_status from collect.cycles") == [{"cycle_status": "SUCCESS"}]
    assert warehouse("select count(*) > 0 as some from market.finra_short_volume") == [{"some": True}]
    assert warehouse("select new_count > 0 and told_count = new_count as is_told from collect.cycles") == [
        {"is_told": True}
    ], "Airflow has taken the event, and then it is written that the word is out"


def test_an_event_that_airflow_refused_with_the_success_is_told_by_the_next_run(run, warehouse, monkeypatch):
    """Somebody marks the task as failed at the moment of its success: Airflow answers 409 and drops the event."""
    succeed = TaskInstanceOperations.succeed

    def refused(self, id, when, task_outlets, outlet_events, rendered_map_index):  # noqa: A002
        if outlet_events:
            self.finish(id=id, state="failed", when=when, rendered_map_index=rendered_map_index)
        return succeed(self, id, when, task_outlets, outlet_events, rendered_map_index)

    told = "select sum(new_count) > 0 as some, sum(told_count) = sum(new_count) as all from collect.cycles"
    with monkeypatch.context() as patch:
        patch.setattr(TaskInstanceOperations, "succeed", refused)
        run("finra", keys=["FORF"])
    assert warehouse(told) == [{"some": True, "all": False}]
    run("finra", keys=["FORF"])
    assert warehouse(told) == [{"some": True, "all": True}]


def test_a_backfill_is_worked_by_lanes_and_told_once(run, warehouse):
    state, tasks = run("finra", mode="backfill", start_date="2026-09-14", end_date="2026-09-15", keys=["CNMS"])
    assert state == "success"
    assert states(tasks) == {
        "check_request": "success",
        "short_volume": "skipped",
        "short_volume_lanes[0]": "success",
        "short_volume_lanes[1]": "success",
        "summary": "success",
    }
    assert tasks["short_volume_lanes[0]"]["label"].startswith("lane 1: ")
    assert warehouse("select outcome, total_chunks from collect.job_runs") == [
        {"outcome": "success", "total_chunks": 2}
    ]
    assert warehouse(
        "select bool_and(told_count = new_count) as all, sum(new_count) > 0 as some from collect.cycles"
    ) == [{"all": True, "some": True}]


def test_a_bad_request_is_red_at_once_without_a_retry_or_a_trace(run, warehouse, capfd):
    state, tasks = run("finra", mode="backfill")
    assert state == "failed"
    assert tasks["check_request"] == {"state": "failed", "try": 1, "label": None}
    assert states(tasks)["short_volume"] == states(tasks)["short_volume_lanes"] == "upstream_failed"
    said = "".join(capfd.readouterr())
    assert "REFUSED – mode=backfill needs start_date and end_date" in said
    assert "Traceback" not in said
    assert warehouse("select 1 from collect.job_runs") == []


def test_who_arrives_in_the_list_of_companies_raises_its_asset(run, warehouse, upstream, monkeypatch):
    """What starts the collecting of a new company's past."""
    monkeypatch.setenv("AIRFLOW_CONN_KIND", '{"conn_type": "http", "host": "https://kind.krx.co.kr"}')

    def events():
        with create_session() as session:
            of_list = select(AssetModel.id).where(AssetModel.name == "kind.companies")
            found = select(AssetEvent).where(AssetEvent.asset_id.in_(of_list)).order_by(AssetEvent.id)
            return [event.extra["changed"] for event in session.scalars(found)]

    def morning(day):
        offset = "update collect.installation set clock_offset = %s::timestamptz - clock_timestamp()"
        warehouse(offset, f"2026-09-{day}T08:01:00+09:00")
        return run("krx_listing")[0]

    assert morning(17) == "success"
    before = events()
    assert len(before) == 1
    upstream.switch("kind", "list", code="0042K0", at=upstream.clock().isoformat())
    assert morning(18) == "success"
    assert events() == [*before, 1]
    assert warehouse("select code from market.kind_universe where code = '0042K0'") == [{"code": "0042K0"}]


def test_what_a_poll_changed_is_published(run, warehouse, upstream):
    run("finra", keys=["FORF"])
    state, tasks = run("publish")
    assert (state, states(tasks)) == ("success", {"build": "success", "push": "success"})
    assert [row["release"] for row in warehouse("select release from publish.commits where state = 'confirmed'")] == [
        "finra/short_volume"
    ]


def test_upkeep_looks_and_starts_nothing_where_all_is_well(run, warehouse):
    state, tasks = run("upkeep")
    assert (state, states(tasks)) == ("success", {"look": "success", "start": "skipped"})
