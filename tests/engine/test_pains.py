"""Pains that other users of Airflow have reported, each tried here: the ten that were to be automated first.

- routes of plugins answer anybody: nobody without a login, no change without the right
  tests/ops/test_access.py::test_who_is_answered_on_every_route
- the same, as mounted by Airflow: the same over HTTP
  tests/e2e/test_stack.py::test_the_operations_api_answers_those_who_are_logged_in_and_nobody_else
- a running task that is cleared runs twice: one apply, whatever step it is at
  tests/engine/test_pains.py::test_a_running_poll_that_is_cleared_twice_at_any_step_is_applied_once
- the same in Airflow itself: the new attempt goes on at once
  tests/e2e/test_operators_hands.py::test_a_running_lane_cleared_twice_goes_on_at_once_and_the_rows_stay_right
- a killed worker calls nothing back: told when the lease is over
  tests/engine/test_pains.py::test_a_worker_that_is_killed_two_windows_running_is_told_once_its_lease_is_over
- a new version of a DAG at each parse: the same bytes from two processes
  tests/house/test_dags.py::test_two_processes_serialise_every_dag_to_the_same_bytes
- parsing runs into its timeout: nothing heavy, and a measured time
  tests/house/test_dags.py::test_parsing_loads_nothing_heavy
- the time of it: measured
  tests/benchmarks/test_parse_dags.py::test_what_parsing_the_folder_costs_is_printed
- secrets in templates, logs and XCom: none anywhere
  tests/e2e/test_stack.py::test_no_secret_is_in_a_log_a_table_or_a_raw_object
- a backfill started twice runs twice: each chunk once
  tests/engine/test_jobs.py::test_two_workers_on_one_run_do_each_chunk_once
- the same in Airflow itself: the work is done once
  tests/e2e/test_operators_hands.py::test_two_triggers_at_once_do_the_work_once
- tasks die with their token after ten minutes: no task works that long
  tests/operators/test_lanes.py::test_a_tick_that_has_used_its_time_is_called_again
- the same: no task can
  tests/house/test_dags.py::test_no_task_can_run_for_ever
- the same over hours in Airflow itself, with tasks that do outlive their token; memory and versions of DAGs do not grow
  tests/chaos/test_soak.py::test_an_installation_left_to_itself_stays_as_it_is
- the slot at nine is lost over a restart: the verdict is there, exact
  tests/operators/test_mornings.py::test_a_scheduler_that_stops_over_nine_leaves_the_resident_capture_alone
- the same, back just after nine: late, and exact
  tests/operators/test_mornings.py::test_a_scheduler_that_stopped_before_the_capture_and_is_back_at_five_past_the_second_takes_it_late_and_exact
- a killed task leaves its query running: the server ends it in seconds
  tests/engine/test_pains.py::test_the_query_of_a_killed_process_is_ended_by_the_server
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from include.contract import CycleStatus, Mode
from include.engine import upkeep
from include.engine.db import connect
from include.engine.lease import TTL_SECONDS
from include.settings import ROOT, environment
from tests.engine.cdn import FACILITIES, name
from tests.engine.desk import MONDAY, TUESDAY, Desk, ny
from tests.engine.test_crash import POINTS, desk, invariants, is_whole, killed

__all__ = ["desk"]  # the same one: two applies come before the last


def test_every_test_that_the_table_names_exists() -> None:
    named = re.findall(r"(tests/[\w/]+\.py)::(\w+)", __doc__ or "")
    assert len(named) > 12
    missing = [f"{file}::{test}" for file, test in named if f"def {test}(" not in (ROOT / file).read_text("utf-8")]
    assert missing == []


@pytest.mark.parametrize(("point", "times"), POINTS)
def test_a_running_poll_that_is_cleared_twice_at_any_step_is_applied_once(desk: Desk, point: str, times: int) -> None:
    """Two quick clears: two more attempts begin while the first still runs, and it is told to stop."""
    passed: list[str] = []
    others: list[object] = []

    def here(at: str) -> None:
        passed.append(at)
        if at == point and passed.count(point) == times and not others:
            others.extend([desk.tick(), desk.tick()])

    first = desk.poll(signal=here, stop=lambda: bool(others))
    assert others == [None, None], "somebody has it"
    if first.status is not CycleStatus.SUCCESS:
        assert first.is_stopped
        assert (desk.cycle()["cycle_status"], desk.cycle()["lease_token"]) == ("PENDING", None)
        assert desk.poll().status is CycleStatus.SUCCESS
    assert len(desk.cycles()) == 1
    assert Counter(desk.cdn.asked()) == {name(facility, TUESDAY): 1 for facility in FACILITIES}
    is_whole(desk, TUESDAY)
    invariants(desk)


def test_a_worker_that_is_killed_two_windows_running_is_told_once_its_lease_is_over(desk: Desk) -> None:
    """Nothing is called back for it: that it is gone is seen by its lease, by whoever looks next."""
    for day in (MONDAY, TUESDAY):
        desk.at(ny(day, 18, 40))
        desk.open_poll(ny(day, 18, 35), session=day)
        killed(desk, "claimed", Mode.POLL, None)
        assert upkeep.recover(desk.url) == []
        desk.advance(seconds=TTL_SECONDS + 1)
        assert "its holder vanished; FAILED now" in upkeep.recover(desk.url)[-1]
        told = [text for text in desk.alerts() if "failed twice in a row" in text]
        assert len(told) == (day == TUESDAY), "once is repaired by the next window"
    assert "gave no sign of life" in told[0]
    assert upkeep.recover(desk.url) == []
    row = desk.one("select incident_key from ops.incidents where closed_at is null and kind = 'failing'")
    assert row["incident_key"] == "failing/finra.short_volume"


BUSY = """
import sys
from include.engine.db import connect
with connect(sys.argv[1], application="busy") as connection:
    connection.execute(sys.argv[2])
"""


@pytest.mark.parametrize("statement", ["select pg_sleep(50)", "lock table held in exclusive mode"])
def test_the_query_of_a_killed_process_is_ended_by_the_server(desk: Desk, statement: str) -> None:
    """Whether it works or waits for a lock: it would hold its locks until its own timeout."""
    desk.sql("create table held (n int)")
    seen = (
        "select wait_event from pg_stat_activity where application_name = 'busy'"
        " and wait_event in ('PgSleep', 'relation') and datname = current_database()"
    )
    with connect(desk.url) as holder:
        holder.execute("lock table held in exclusive mode")
        child = subprocess.Popen(
            [sys.executable, "-c", BUSY, desk.url, statement], cwd=ROOT, env=environment(PYTHONPATH=str(ROOT))
        )
        try:
            wait_for(lambda: bool(desk.sql(seen)), 30)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait(30)
        begun = time.monotonic()
        wait_for(lambda: not desk.sql(seen), 30)
        assert time.monotonic() - begun < 15, "in seconds, where its own timeouts are 20 and 60"


def wait_for(true: object, seconds: float) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)
