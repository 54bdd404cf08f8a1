"""The analysis on the real stack: from a new filing to its verdict, whatever is killed or cleared on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest

from tests.e2e.conftest import ADMIN_KEY, RealStack

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def order(stack: RealStack, upstream: str, switch: str, **words: Any) -> Any:
    answer = httpx.post(
        f"{stack.sandbox}/_sandbox/switches", json={"upstream": upstream, "switch": switch, **words}, timeout=30
    )
    return answer.raise_for_status().json()


def move_clock(stack: RealStack, interval: str) -> None:
    """Let simulated time pass."""
    stack.execute(f"update collect.installation set clock_offset = clock_offset + interval '{interval}'")


def filed(stack: RealStack) -> str:
    """Somebody files something, and the next look at DART's list finds it; returns its receipt number."""
    (now,) = stack.rows("select collect.clock() as at")
    at = now["at"].isoformat()
    number = order(stack, "dart", "add", at=at, title="주주총회소집결의")["dart"]["added"][-1]
    order(stack, "dart", "document", rcept_no=number, at=at)
    move_clock(stack, "6 minutes")
    stack.trigger("dart")
    stack.eventually(lambda: row(stack, number), f"{number} to be found")
    return str(number)


def row(stack: RealStack, number: str) -> dict[str, Any] | None:
    return next(iter(stack.rows("select * from dartbrief.analysis_cache where rcept_no = %s", number)), None)


def is_at(stack: RealStack, number: str, where: str) -> bool:
    return bool(stack.rows(f"select 1 from dartbrief.analysis_cache where rcept_no = %s and {where}", number))


def read_once(stack: RealStack, number: str) -> None:
    """Wait for the verdict; the model was given the filing once."""
    stack.eventually(lambda: is_at(stack, number, "status = 'COMPLETED'"), f"{number} to be read")
    made = httpx.get(f"{stack.sandbox}/_sandbox/llm", timeout=30).json()["made"]
    assert made[number] == 1
    found = row(stack, number)
    assert found is not None
    assert (found["retry_count"], found["lost_count"]) == (0, 0)


def runs(stack: RealStack, *states: str) -> list[dict[str, Any]]:
    found = stack.airflow.all("/dags/analysis/dagRuns", "dag_runs")
    return [run for run in found if run["state"] in states]


@pytest.fixture
def slow_model(stack: RealStack) -> Iterator[None]:
    """An answer takes most of a minute, so that there is time to interfere."""
    order(stack, "llm", "seconds", value=45)
    order(stack, "llm", "lanes", value=60)
    yield
    order(stack, "llm", "seconds", value=2)
    order(stack, "llm", "lanes", value=4)
    httpx.delete(f"{stack.sandbox}/_sandbox/faults").raise_for_status()


@pytest.mark.chaos
def test_a_new_filing_is_found_read_once_and_served(stack: RealStack) -> None:
    number = filed(stack)
    read_once(stack, number)
    answer = httpx.get(f"{stack.airflow.url}/daybook/v1/disclosures/{number}", timeout=30).raise_for_status().json()
    assert (answer["analysisStatus"], bool(answer["summary"])) == ("COMPLETED", True)
    run = stack.eventually(lambda: runs(stack, "success"), "a run of the analysis to end")[-1]
    states = {name: task["state"] for name, task in stack.tasks("analysis", run["dag_run_id"]).items()}
    assert set(states) == {"look", "submit", "answers"}
    assert not runs(stack, "failed")


@pytest.mark.chaos
def test_a_backfill_by_the_admin_key_starts_the_dag_and_its_progress_is_where_the_answer_says(stack: RealStack) -> None:
    day = {"beginDate": "2026-09-14", "endDate": "2026-09-14"}
    there = f"{stack.airflow.url}/daybook/v1/admin/backfill"
    assert httpx.post(there, json=day, timeout=30).status_code == 401
    answer = httpx.post(there, json=day, headers={"X-Admin-Key": ADMIN_KEY}, timeout=30)
    assert answer.status_code == 202, answer.text
    started = answer.json()
    assert stack.finished("dart", started["runId"])["state"] == "success"
    password = json.loads((stack.directory / "passwords.json").read_text())["viewer"]
    login = httpx.post(f"{stack.airflow.url}/auth/token", json={"username": "viewer", "password": password}, timeout=30)
    bearer = {"Authorization": f"Bearer {login.json()['access_token']}"}
    progress = httpx.get(f"{stack.airflow.url}{started['progress']}", headers=bearer, timeout=30)
    assert (progress.status_code, progress.json()["outcome"]) == (200, "success"), progress.text


@pytest.mark.chaos
def test_a_killed_triggerer_is_followed_by_one_that_goes_on(stack: RealStack, slow_model: None) -> None:
    number = filed(stack)
    stack.eventually(lambda: is_at(stack, number, "submitted_at is not null"), "the model to have it")
    pid = json.loads((stack.directory / "state.json").read_text())["children"]["triggerer"]["pid"]
    os.kill(pid, signal.SIGKILL)
    read_once(stack, number)


@pytest.mark.chaos
def test_a_killed_submitter_is_followed_by_one_that_goes_on(stack: RealStack, slow_model: None) -> None:
    slow = {"match": {"host": "opendart.fss.or.kr", "path_contains": "document"}, "n": None, "slow_seconds": 8}
    httpx.post(f"{stack.sandbox}/_sandbox/faults", json=slow).raise_for_status()
    number = filed(stack)
    stack.eventually(lambda: is_at(stack, number, "claimed_until is not null"), "it to be claimed")
    ports = {
        each["client_port"]
        for each in stack.rows("select client_port from pg_stat_activity where application_name = 'daybook analysis'")
    }
    victims = {
        one.pid for one in psutil.net_connections("tcp") if one.pid and one.laddr and one.laddr.port in ports
    } - {os.getpid()}
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    httpx.delete(f"{stack.sandbox}/_sandbox/faults").raise_for_status()
    # The dead one's claim is left to itself; five minutes of simulated time later it is over.
    move_clock(stack, "6 minutes")
    read_once(stack, number)


@pytest.mark.chaos
@pytest.mark.parametrize("tasks", [["submit"], ["answers"], ["submit", "answers"]])
def test_cleared_tasks_go_on_where_they_were_and_nothing_is_read_twice(
    stack: RealStack, slow_model: None, tasks: list[str]
) -> None:
    number = filed(stack)
    stack.eventually(lambda: is_at(stack, number, "submitted_at is not null"), "the model to have it")
    (run,) = runs(stack, "running")
    clear = {"dry_run": False, "dag_run_id": run["dag_run_id"], "task_ids": tasks, "only_failed": False}
    stack.airflow.call("POST", "/dags/analysis/clearTaskInstances", json={**clear, "reset_dag_runs": True})
    read_once(stack, number)
    assert stack.finished("analysis", run["dag_run_id"])["state"] == "success"


@pytest.fixture
def second_scheduler(stack: RealStack) -> Iterator[None]:
    """Another scheduler with tasks of its own, as where Airflow runs highly available."""
    first = json.loads((stack.directory / "state.json").read_text())["children"]["scheduler"]["pid"]
    beside = subprocess.Popen(
        psutil.Process(first).cmdline(),
        env=psutil.Process(first).environ(), stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        stack.eventually(lambda: len(alive(stack)) == 2, "both schedulers to be alive")
        yield
    finally:
        os.killpg(beside.pid, signal.SIGTERM)
        beside.wait(60)


def alive(stack: RealStack) -> list[dict[str, Any]]:
    return stack.rows(
        "select id from job where job_type = 'SchedulerJob' and state = 'running'"
        " and latest_heartbeat > now() - interval '30 seconds'",
        database=stack.metadata,
    )


@pytest.mark.chaos
@pytest.mark.usefixtures("second_scheduler")
def test_with_two_schedulers_each_filing_is_read_once(stack: RealStack) -> None:
    numbers: list[str] = []
    queued_by = "select distinct queued_by_job_id as id from task_instance where dag_id in ('dart', 'analysis')"
    both = {row["id"] for row in alive(stack)}
    while len(numbers) < 3 or not both <= {row["id"] for row in stack.rows(queued_by, database=stack.metadata)}:
        assert len(numbers) < 20, "one of the schedulers never queued a task"
        numbers.append(filed(stack))
    for number in numbers:
        read_once(stack, number)
    assert not runs(stack, "failed")
