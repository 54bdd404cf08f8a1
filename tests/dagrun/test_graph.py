"""What the factory lays out: one graph for all modes, streams in order, polls never behind backfills."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from include.dag_factory import DEFAULTS, LANES_POOL, MOST_RUNS, Priority, source_dag
from include.operators import declared
from include.operators.endings import FOR_GOOD
from include.registry import source

FINRA = source("finra")


def stream(name, **schedule):
    first = FINRA.streams[0]
    return replace(first, name=name, schedule=replace(first.schedule, **schedule))


@pytest.fixture(autouse=True)
def known():
    """Sources that a test declares are gone after it."""
    yield
    declared._SOURCES.clear()


@pytest.fixture
def two():
    """A source with two streams, whose lanes and polls must not be mixed up."""
    return source_dag(replace(FINRA, name="two", streams=(stream("two.first"), stream("two.second"))))


def test_check_comes_first_and_summary_last(two):
    assert two.task_ids == ["check_request", "summary", "first", "first_lanes", "second", "second_lanes"]
    assert two.get_task("check_request").upstream_task_ids == set()
    for task_id in set(two.task_ids) - {"check_request", "summary"}:
        task = two.get_task(task_id)
        assert "check_request" in task.upstream_task_ids, "a mapped task reads its lanes, every task its request"
        assert "summary" in task.downstream_task_ids


def test_streams_follow_in_order_and_fail_for_themselves_only(two):
    assert {"first", "first_lanes"} <= two.get_task("second").upstream_task_ids
    assert {"first", "first_lanes"} <= two.get_task("second_lanes").upstream_task_ids
    assert two.get_task("first").trigger_rule == "all_success"
    assert two.get_task("second").trigger_rule == two.get_task("second_lanes").trigger_rule == "all_done"
    assert two.get_task("summary").trigger_rule == "all_done"


def test_only_lanes_are_in_the_small_pool_and_polls_go_first(two):
    for task in two.tasks:
        is_lane = task.task_id.endswith("_lanes")
        assert task.pool == (LANES_POOL if is_lane else "default_pool")
        assert (task.priority_weight < min(Priority)) == is_lane


def test_every_task_is_tried_again_when_killed_and_not_when_it_said_why(two):
    for task in two.tasks:
        assert task.retries == 2
        assert task.retry_policy is FOR_GOOD
        assert task.execution_timeout <= timedelta(minutes=20)


def test_windows_do_not_depend_on_runs(two):
    assert not two.catchup
    assert two.max_active_runs == MOST_RUNS
    assert two.dagrun_timeout is None, "a run that waits for a publication is not stopped by the clock"
    assert two.start_date.isoformat() == "2026-01-01T00:00:00+00:00"


def test_a_job_with_another_cadence_has_its_own_dag():
    weekly = replace(stream("finra.weekly", cron="0 12 * * 0", timezone="Asia/Seoul"), job="weekly")
    both = replace(FINRA, streams=(*FINRA.streams, weekly))
    dag = source_dag(both, job="weekly", priority=Priority.BULK)
    assert "weekly" not in source_dag(both).task_ids
    assert dag.dag_id == "finra_weekly"
    assert dag.tags == {"source:finra", "kind:collect"}
    assert dag.task_ids == ["check_request", "summary", "weekly", "weekly_lanes"]
    assert dag.get_task("weekly").priority_weight == 20


@pytest.mark.parametrize(
    ("cron", "may"),
    [("35 18 * * 1-5", True), ("*/15 6-21 * * 1-5", False), ("0 3,15 * * *", False), ("0 3 * * * | 9 15 * * *", False)],
)
def test_a_dag_with_several_windows_a_day_refuses_airflows_backfill_form(cron, may):
    dag = source_dag(replace(FINRA, streams=(stream("finra.often", cron=cron),)))
    allowed = {str(each.value) for each in dag.allowed_run_types or ()}
    assert (not allowed or "backfill" in allowed) is may
    assert not allowed or {"scheduled", "manual"} <= allowed


def test_streams_of_one_job_with_two_schedules_are_refused():
    mixed = replace(FINRA, streams=(stream("finra.one"), stream("finra.two", cron="0 8 * * *")))
    with pytest.raises(ValueError, match="have 2 schedules, not one"):
        source_dag(mixed)


def test_the_parameters_are_those_that_the_check_reads():
    from include.operators.request import NAMES

    assert tuple(source_dag(FINRA).params) == NAMES


def test_dags_with_bars_take_their_length():
    alpaca = source("alpaca")
    for dag in (source_dag(alpaca), source_dag(alpaca, job="intraday")):
        assert "timeframe" in dag.params
    assert "timeframe" not in source_dag(FINRA).params


def test_nothing_of_a_source_is_written_into_the_dag():
    """A function's address would make a new version of the DAG with every parse."""
    from airflow.serialization.serialized_objects import DagSerialization

    assert " at 0x" not in str(DagSerialization.to_dict(source_dag(FINRA)))


def test_all_dags_share_the_same_defaults():
    assert DEFAULTS["weight_rule"] == "absolute"
