"""An installation that is left to itself: real Airflow, windows by the real clock, a backfill that keeps lanes busy.

SOAK_SECONDS says for how long (20 minutes where it says nothing; three hours is what tokens, heartbeats and memory are
judged by). What was measured is printed.
"""

from __future__ import annotations

import faulthandler
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from include.local.environment import of_sandbox
from include.local.stack import AIRFLOW_PROCESSES
from include.local.state import Record, open_state
from include.settings import ROOT
from tests.e2e.conftest import RealStack, bring_up

pytestmark = [pytest.mark.chaos, pytest.mark.e2e]

SECONDS = float(os.environ.get("SOAK_SECONDS", "1200"))
# How often the processes are looked at, and the page of operations is asked for.
SAMPLE_SECONDS, PAGE_SECONDS = 60.0, 10.0
# What is judged by memory takes this long at least, and its first part is not counted: caches fill.
MEMORY_SECONDS, WARM_UP_SECONDS = 3_600.0, 900.0
# Room for noise, and for what Airflow's own processes are known to keep, as a share and in MB.
GROWTH, ROOM = 1.25, 40.0
LONGEST_TASK, LARGEST_XCOM = 900.0, 4_096
# Each answer of FINRA takes so long that a lane's ten minutes are used up.
SLOW_SECONDS = 20

# Nothing of ours works longer than a token lasts, so these do: one again and again, one to the end.
LONG_TASKS = '''
"""Tasks that work for longer than a token lasts, and show at their end that Airflow still hears them."""
import time
from datetime import UTC, datetime

from airflow.sdk import DAG, task


def long(name, schedule, seconds):
    with DAG(name, schedule=schedule, start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False, tags=["soak"]):

        @task(retries=0)
        def outlive():
            time.sleep(seconds)
            return "heard"

        outlive()


long("soak_long", "*/15 * * * *", 780)
long("soak_whole", None, {whole})
'''
# What is said where a token was too old, or a task was taken for dead.
ENDED_BY_AIRFLOW = re.compile(
    r"Signature has expired|Invalid auth token|ExpiredSignature|heartbeat timeout|without heartbeats|"
    r"no longer running|Server indicated the task shouldn't be running",
    re.IGNORECASE,
)


@contextmanager
def sandbox(home: Path) -> Iterator[str]:
    """The stand-ins in a process of their own, by the real clock."""
    process = subprocess.Popen(
        [sys.executable, "-m", "include.sandbox", "--state", str(home)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = re.search(r"url=(\S+)", process.stdout.readline())
        assert found is not None, "the sandbox did not start"
        yield found[1]
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[RealStack]:
    """A real installation, not a demo: its own clock is the machine's; only its upstreams are stand-ins."""
    if (ROOT / "config" / "connections.env").exists():
        pytest.skip("config/connections.env is somebody's installation; this would use its database")
    dags = tmp_path / "dags"
    shutil.copytree(ROOT / "dags", dags, ignore=shutil.ignore_patterns("__pycache__"))
    (dags / "soak_tasks.py").write_text(LONG_TASKS.replace("{whole}", str(max(SECONDS - 240, 660))))
    with sandbox(tmp_path / "sandbox") as url:
        told = {
            **of_sandbox(url),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            # As short as Airflow's own, so that every long task needs several.
            "AIRFLOW__EXECUTION_API__JWT_EXPIRATION_TIME": "600",
        }
        with bring_up(tmp_path / "state", demo=False, told=told) as up:
            up.sandbox = url
            yield up


class Memory:
    """What each process of Airflow holds, in MB: its own RSS, and with those that it started and keeps."""

    def __init__(self, record: Record) -> None:
        self._leaders = {name: psutil.Process(record.children[name].pid) for name in AIRFLOW_PROCESSES}
        self._kept = {name: [one, *one.children()] for name, one in self._leaders.items()}
        self.samples: list[tuple[float, dict[str, tuple[float, float]]]] = []

    def look(self, at: float) -> None:
        seen = {}
        for name, leader in self._leaders.items():
            held = 0.0
            for one in self._kept[name]:
                # A worker may be taken back when nothing is to do; a leader that is gone is the test's to say.
                with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                    held += one.memory_full_info().pss
            seen[name] = (leader.memory_info().rss / 1e6, held / 1e6)
        self.samples.append((at, seen))

    def thirds(self, name: str, which: int) -> tuple[float, float]:
        """Medians of the first third after warming up, and of the last."""
        counted = [seen[name][which] for at, seen in self.samples if at >= WARM_UP_SECONDS]
        part = max(1, len(counted) // 3)
        return statistics.median(counted[:part]), statistics.median(counted[-part:])

    def slope(self, name: str) -> float:
        """MB an hour, by least squares, after warming up."""
        points = [(at / 3600, seen[name][0]) for at, seen in self.samples if at >= WARM_UP_SECONDS]
        return statistics.linear_regression(*zip(*points, strict=True)).slope


def versions(stack: RealStack) -> dict[str, int]:
    rows = stack.rows("select dag_id, count(*) as n from dag_version group by dag_id", database=stack.metadata)
    return {row["dag_id"]: row["n"] for row in rows}


def durations(stack: RealStack) -> list[dict[str, Any]]:
    """How long each stretch of work of each task took; between two of them it held no worker."""
    return stack.rows(
        "select dag_id, task_id, duration as seconds from task_instance where duration is not null"
        " union all select t.dag_id, t.task_id, r.duration from task_reschedule r"
        " join task_instance t on t.id = r.ti_id"
        " order by seconds desc",
        database=stack.metadata,
    )


def test_an_installation_left_to_itself_stays_as_it_is(stack: RealStack) -> None:
    faulthandler.cancel_dump_traceback_later()
    airflow = stack.airflow
    rule = {"match": {"host": "cdn.finra.org"}, "n": None, "slow_seconds": SLOW_SECONDS}
    httpx.post(f"{stack.sandbox}/_sandbox/faults", json=rule).raise_for_status()
    for name in ("soak_long", "soak_whole"):
        airflow.call("PATCH", f"/dags/{name}", json={"is_paused": False})
    whole = stack.trigger("soak_whole")
    last = date.today() - timedelta(days=2)  # noqa: DTZ011 (any days of the past will do)
    first = last - timedelta(days=int(SECONDS / 40))
    stack.trigger("finra", mode="backfill", start_date=str(first), end_date=str(last), run_id="soak")
    record = open_state(stack.directory, demo=False).record()
    assert record is not None
    memory, begun = Memory(record), time.monotonic()
    at_first = versions(stack)
    page, asked, slowest = _page(stack), 0, 0.0
    while (at := time.monotonic() - begun) < SECONDS:
        if not memory.samples or at - memory.samples[-1][0] >= SAMPLE_SECONDS:
            memory.look(at)
            if len(memory.samples) % 10 == 1:
                print(f"{at / 60:5.1f} min", *_megabytes(memory), flush=True)
        sent = time.monotonic()
        answer = page.get("/daybook/v1/summary")
        assert answer.status_code == 200, answer.text[:300]
        asked, slowest = asked + 1, max(slowest, time.monotonic() - sent)
        time.sleep(PAGE_SECONDS)
    page.close()
    # Its token was renewed all along, and what it returns is taken.
    assert stack.finished("soak_whole", whole)["state"] == "success"
    memory.look(time.monotonic() - begun)
    took = durations(stack)
    ours = [row for row in took if not row["dag_id"].startswith("soak_")]
    (heaviest,) = stack.rows(
        "select dag_id, task_id, key, octet_length(value::text) as bytes from xcom order by bytes desc limit 1",
        database=stack.metadata,
    )
    (queued,) = stack.rows(
        "select max(extract(epoch from start_date - queued_dttm))::float8 as seconds from task_instance",
        database=stack.metadata,
    )
    cycles = stack.rows(
        "select stream, mode, cycle_status, count(*) as n from collect.cycles group by 1, 2, 3 order by 1, 2, 3"
    )
    print(f"{SECONDS / 60:.0f} minutes; {len(took)} stretches of work, the longest of ours", ours[:3])
    print("largest XCom", heaviest, "; longest in the queue", queued["seconds"], "s; the page", asked, "times,",
          f"slowest {slowest:.1f} s")  # fmt: skip
    for row in cycles:
        print("  ", row["stream"], row["mode"], row["cycle_status"], row["n"])
    long_enough = SECONDS >= MEMORY_SECONDS
    for name in AIRFLOW_PROCESSES if long_enough else ():
        print(f"   {name}: RSS {memory.thirds(name, 0)} MB, with its workers {memory.thirds(name, 1)} MB, in the first"
              f" and in the last third; {memory.slope(name):+.1f} MB an hour")  # fmt: skip

    assert _troubled(stack) == []
    assert _said(stack) == []
    assert [row for row in took if row["dag_id"] == "soak_long" and row["seconds"] >= 780], "no long task ended"
    assert ours[0]["seconds"] < LONGEST_TASK, ours[0]
    assert heaviest["bytes"] <= LARGEST_XCOM, heaviest
    assert versions(stack) == at_first
    assert _stuck(stack) == []
    assert _faults_told(stack) == []
    for mode in ("poll", "backfill"):
        assert sum(row["n"] for row in cycles if row["cycle_status"] == "SUCCESS" and row["mode"] == mode) > 5, mode
    for name in AIRFLOW_PROCESSES if long_enough else ():
        for which in (0, 1):
            early, late = memory.thirds(name, which)
            assert late <= early * GROWTH + ROOM, f"{name} went from {early:.0f} to {late:.0f} MB"


def _page(stack: RealStack) -> httpx.Client:
    """The Operations API, logged in."""
    page = httpx.Client(base_url=stack.airflow.url, timeout=60, trust_env=False)
    words = (stack.directory / "passwords.json").read_text()
    login = {"username": "admin", "password": httpx.Response(200, text=words).json()["admin"]}
    page.headers["Authorization"] = f"Bearer {page.post('/auth/token', json=login).json()['access_token']}"
    return page


def _megabytes(memory: Memory) -> list[str]:
    return [f"{name} {own:.0f}/{held:.0f} MB" for name, (own, held) in memory.samples[-1][1].items()]


def _troubled(stack: RealStack) -> list[dict[str, Any]]:
    """Tasks that Airflow ended, tried again or failed: nothing here gives it a reason to."""
    return stack.rows(
        "select dag_id, run_id, task_id, state, try_number from task_instance"
        " where state in ('failed', 'upstream_failed', 'up_for_retry') or try_number > 1"
        " union all select dag_id, run_id, task_id, state, try_number from task_instance_history",
        database=stack.metadata,
    )


def _said(stack: RealStack) -> list[str]:
    """Lines of any log that speak of an old token or a lost heartbeat."""
    found = []
    for log in (stack.directory / "logs").rglob("*.log"):
        with log.open(encoding="utf-8", errors="replace") as lines:
            found += [f"{log.name}: {line[:300]}" for line in lines if ENDED_BY_AIRFLOW.search(line)]
    return found[:20]


def _stuck(stack: RealStack) -> list[dict[str, Any]]:
    """Windows whose time has come and gone, leases that nobody took up, tasks that wait for a worker."""
    cycles = stack.rows(
        "select stream, mode, slot, cycle_status, next_eligible_at, lease_until from collect.cycles"
        " where (cycle_status = 'RUNNING' and lease_until < collect.clock() - interval '5 minutes')"
        " or (mode = 'poll' and cycle_status = 'PENDING'"
        " and coalesce(next_eligible_at, window_start) < collect.clock() - interval '10 minutes')"
    )
    tasks = stack.rows(
        "select dag_id, run_id, task_id, state from task_instance"
        " where state = 'queued' and pool <> 'backfill' and queued_dttm < now() - interval '5 minutes'",
        database=stack.metadata,
    )
    return cycles + tasks


def _faults_told(stack: RealStack) -> list[dict[str, Any]]:
    return stack.rows("select alert_key, severity, text from ops.alerts where severity <> 'info' order by alert_id")
