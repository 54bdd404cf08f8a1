"""What an operator, or bad luck, does to tasks that run: clears, double triggers, the Backfill form, kill -9."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import RealStack

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FACILITIES = 6


@pytest.fixture
def slow_upstream(stack: RealStack) -> Iterator[None]:
    """Every answer of FINRA takes a second, so that there is time to interfere."""
    rule = {"match": {"host": "cdn.finra.org"}, "n": None, "slow_seconds": 1}
    httpx.post(f"{stack.sandbox}/_sandbox/faults", json=rule).raise_for_status()
    yield
    httpx.delete(f"{stack.sandbox}/_sandbox/faults").raise_for_status()


def at_full_speed(stack: RealStack) -> None:
    httpx.delete(f"{stack.sandbox}/_sandbox/faults").raise_for_status()


def move_clock(stack: RealStack, interval: str) -> None:
    """Let simulated time pass."""
    stack.execute(f"update collect.installation set clock_offset = clock_offset + interval '{interval}'")


def clear(stack: RealStack, run_id: str, task: Any) -> None:
    stack.airflow.call(
        "POST",
        "/dags/finra/clearTaskInstances",
        json={"dry_run": False, "dag_run_id": run_id, "task_ids": [task], "only_failed": False, "reset_dag_runs": True},
    )


def holders(stack: RealStack, where: str) -> list[dict[str, Any]]:
    """Who works on FINRA's cycles; other sources' windows open by the real clock meanwhile."""
    return stack.rows(
        "select lease_owner, slot from collect.cycles"
        f" where stream = 'finra.short_volume' and cycle_status = 'RUNNING' and {where}"
    )


def facilities_held(stack: RealStack, first: str, last: str) -> dict[str, int]:
    rows = stack.rows(
        "select session_date::text as day, count(distinct facility) as facilities from market.finra_short_volume"
        " where session_date between %s and %s group by 1",
        first, last,
    )  # fmt: skip
    return {row["day"]: row["facilities"] for row in rows}


def doubles(stack: RealStack, first: str, last: str) -> list[dict[str, Any]]:
    """FINRA's keys that were fetched as data more often than they were published."""
    return stack.rows(
        "select request_key, count(*) as times from collect.fetches"
        " where stream = 'finra.short_volume' and session_date between %s and %s and answer_class = 'data'"
        " group by 1 having count(*) > 1",
        first, last,
    )  # fmt: skip


def notes(stack: RealStack, run_id: str) -> str:
    return " | ".join(str(task["note"]) for task in stack.tasks("finra", run_id).values())


def test_a_running_lane_cleared_twice_goes_on_at_once_and_the_rows_stay_right(
    stack: RealStack, slow_upstream: None
) -> None:
    run_id = stack.trigger("finra", mode="backfill", start_date="2026-08-10", end_date="2026-08-13", run_id="cleared")
    stack.eventually(lambda: holders(stack, "run_id = 'cleared'"), "a chunk to be worked on")
    clear(stack, run_id, ["short_volume_lanes", 1])
    clear(stack, run_id, ["short_volume_lanes", 1])
    at_full_speed(stack)
    run = stack.finished("finra", run_id)
    assert run["state"] == "success", notes(stack, run_id)
    held = facilities_held(stack, "2026-08-10", "2026-08-13")
    assert sorted(held) == ["2026-08-10", "2026-08-11", "2026-08-12", "2026-08-13"]
    assert min(held.values()) >= FACILITIES - 1
    states = stack.rows("select distinct cycle_status from collect.cycles where run_id = 'cleared'")
    assert [row["cycle_status"] for row in states] == ["SUCCESS"]
    attempts = stack.tasks("finra", run_id)["short_volume_lanes[1]"]["try_number"]
    assert attempts >= 2


def test_a_killed_task_leaves_nothing_behind_that_its_retry_does_not_mend(
    stack: RealStack, slow_upstream: None
) -> None:
    run_id = stack.trigger("finra", mode="backfill", start_date="2026-08-17", end_date="2026-08-19", run_id="killed")
    (victim, *_) = stack.eventually(lambda: holders(stack, "run_id = 'killed'"), "a chunk to be worked on")
    pid = int(victim["lease_owner"].rsplit("/", 2)[1])
    stack.eventually(
        lambda: stack.rows(
            "select 1 from collect.fetches f join collect.cycles c using (cycle_id) where c.run_id = 'killed'"
        ),
        "an answer to be stored",
    )
    os.kill(pid, signal.SIGKILL)
    at_full_speed(stack)
    stack.eventually(
        lambda: (
            len(holders(stack, "run_id = 'killed'")) <= 1
            and not stack.rows("select 1 from collect.cycles where run_id = 'killed' and cycle_status = 'PENDING'")
        ),
        "the other lanes to be done",
    )
    # The killed one's lease is left to itself; five minutes of simulated time later it is over.
    move_clock(stack, "6 minutes")
    run = stack.finished("finra", run_id)
    assert run["state"] == "success", notes(stack, run_id)
    held = facilities_held(stack, "2026-08-17", "2026-08-19")
    assert sorted(held) == ["2026-08-17", "2026-08-18", "2026-08-19"]
    assert not doubles(stack, "2026-08-17", "2026-08-19")
    (killed,) = stack.rows(
        "select cycle_status, attempt, failed_attempts from collect.cycles where slot = %s", victim["slot"]
    )
    assert killed["cycle_status"] == "SUCCESS"
    assert killed["attempt"] >= 2


def test_a_waiting_window_that_is_cleared_looks_again_at_once(stack: RealStack) -> None:
    httpx.post(
        f"{stack.sandbox}/_sandbox/switches",
        json={"upstream": "finra", "switch": "delay", "day": "2026-09-16", "facility": "*", "until": None},
    ).raise_for_status()
    (row,) = stack.rows("select timestamptz '2026-09-17 07:50+09' - collect.clock() as ahead")
    move_clock(stack, f"{row['ahead'].total_seconds()} seconds")
    run_id = stack.trigger("finra")
    stack.eventually(
        lambda: stack.tasks("finra", run_id).get("short_volume", {}).get("state") == "up_for_reschedule",
        "the task to wait",
    )
    assert "WAITING" in (stack.tasks("finra", run_id)["short_volume"]["note"] or "")
    httpx.post(
        f"{stack.sandbox}/_sandbox/switches",
        json={"upstream": "finra", "switch": "delay", "day": "2026-09-16", "facility": "*", "minutes": 0},
    ).raise_for_status()
    move_clock(stack, "90 minutes")
    clear(stack, run_id, "short_volume")
    clear(stack, run_id, "short_volume")
    run = stack.finished("finra", run_id)
    assert run["state"] == "success", notes(stack, run_id)
    assert facilities_held(stack, "2026-09-16", "2026-09-16")["2026-09-16"] >= FACILITIES - 1
    (cycle,) = stack.rows(
        "select cycle_status from collect.cycles"
        " where stream = 'finra.short_volume' and mode = 'poll' and session_date = '2026-09-16'"
    )
    assert cycle["cycle_status"] == "SUCCESS"


def test_two_triggers_at_once_do_the_work_once(stack: RealStack, slow_upstream: None) -> None:
    (row,) = stack.rows("select timestamptz '2026-09-18 08:00+09' - collect.clock() as ahead")
    move_clock(stack, f"{row['ahead'].total_seconds()} seconds")
    both = [stack.trigger("finra"), stack.trigger("finra")]
    stack.eventually(lambda: holders(stack, "mode = 'poll'"), "the window to be worked on")
    at_full_speed(stack)
    assert [stack.finished("finra", run_id)["state"] for run_id in both] == ["success", "success"]
    stack.eventually(lambda: not holders(stack, "mode = 'poll'"), "the window to be over")
    assert not doubles(stack, "2026-09-17", "2026-09-17")
    assert facilities_held(stack, "2026-09-17", "2026-09-17")["2026-09-17"] >= FACILITIES - 1
    told = notes(stack, both[0]) + notes(stack, both[1])
    assert "ANOTHER RUN" in told or "NOTHING TO DO" in told


def test_airflows_own_backfill_form_collects_what_its_windows_were_responsible_for(stack: RealStack) -> None:
    stack.airflow.call(
        "POST",
        "/backfills",
        json={
            "dag_id": "finra",
            "from_date": "2026-07-30T00:00:00-04:00",
            "to_date": "2026-07-31T23:00:00-04:00",
            "dag_run_conf": {},
            "max_active_runs": 2,
            "reprocess_behavior": "none",
            "run_backwards": False,
        },
    )

    def runs() -> list[dict[str, Any]]:
        found = stack.airflow.all("/dags/finra/dagRuns", "dag_runs")
        mine = [run for run in found if run["run_type"] == "backfill"]
        return mine if len(mine) == 2 and all(run["state"] in ("success", "failed") for run in mine) else []

    ended = stack.eventually(runs, "both runs of the form to end")
    assert [run["state"] for run in ended] == ["success", "success"], [run["note"] for run in ended]
    assert sorted(facilities_held(stack, "2026-07-29", "2026-08-01")) == ["2026-07-30", "2026-07-31"]
