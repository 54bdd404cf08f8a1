"""What docker-compose.yaml describes, run without containers and hurt, against LocalExecutor: the same rows and files.

Redis, Celery workers and an object store carry the polls of every source, a backfill and EDGAR's files; a worker is
killed and Redis too while they work. The backfill and EDGAR's files are also had by one worker, and by two unhurt. Wall
and CPU time are printed. TOPOLOGY_DAYS says how many days the backfill has (60).
"""

from __future__ import annotations

import faulthandler
import os
import re
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from include import registry
from include.contract import Stream
from include.engine import db
from include.local import processes
from include.local.demo import LAST_WINDOWS_IN, due_later
from include.local.state import open_state
from include.outputs import releases
from tests.e2e.conftest import RealStack, bring_up

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="this machine has no redis-server"),
]

LAST = date(2026, 9, 11)
FIRST = LAST - timedelta(days=int(os.environ.get("TOPOLOGY_DAYS", "60")))
# A stack that has just come up has every source's windows to work, and a busy machine.
WAIT_SECONDS = 900.0
# Airflow gives a killed task up after a minute without a heartbeat, looks every ten seconds, and tries again after 20.
TAKEN_OVER_SECONDS = 240.0
# Its first windows wait until DART's list was read.
AFTER_THE_LIST = "dart_sync"
# What an upstream answers by the minute at which it is asked: two runs ask at two instants.
BY_THE_MINUTE = ("dart.", "alpaca.bars_1m", "sec.")


@dataclass
class Cost:
    """What a piece of work took: seconds by the wall, and of CPU in the processes that the supervisor started."""

    wall: float = 0.0
    cpu: float = 0.0


@dataclass
class Outcome:
    """What a run left: rows of each table as a hash, those of files for the Hub counted, and what its pieces took."""

    tables: dict[str, Any]
    files: dict[str, int]
    costs: dict[str, Cost]


class Cpu:
    """CPU seconds of a stack, looked at twice a second: what ends between two looks keeps what was seen of it last."""

    def __init__(self, stack: RealStack) -> None:
        self._stack, self._seen, self._stop = stack, dict[tuple[int, float], float](), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._stop.wait(0.5):
            leaders = [mark.pid for mark in record(self._stack).sessions()]
            for process in psutil.process_iter():
                try:
                    if os.getsid(process.pid) in leaders:
                        times = process.cpu_times()
                        self._seen[process.pid, process.create_time()] = times.user + times.system
                except (psutil.Error, ProcessLookupError):
                    continue

    def seconds(self) -> float:
        """Return what was used so far."""
        return sum(list(self._seen.values()))

    def __enter__(self) -> Cpu:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()


def record(stack: RealStack) -> Any:
    """What the supervisor has on record now."""
    found = open_state(stack.directory.parent, demo=True).record()
    assert found is not None
    return found


@contextmanager
def taking(cost: Cost, cpu: Cpu) -> Iterator[None]:
    """Add what a block takes."""
    wall, used = time.monotonic(), cpu.seconds()
    yield
    cost.wall += time.monotonic() - wall
    cost.cpu += cpu.seconds() - used


def ended(stack: RealStack, dag_id: str, run_id: str) -> dict[str, Any]:
    """Wait until a run is over."""
    return stack.eventually(lambda: stack._over(dag_id, run_id), f"{dag_id} {run_id} to end", WAIT_SECONDS)


def hands(stack: RealStack, dag_id: str, run_id: str) -> dict[str, Counter[str]]:
    """Count by the workers' own logs which one was given lanes of which streams how often."""
    given = re.compile(rf"task_id='(\w+_lanes)', dag_id='{dag_id}', run_id='{re.escape(run_id)}'")
    logs = sorted((stack.directory / "logs").glob("worker-*.log"))
    return {log.stem: Counter(given.findall(log.read_text(errors="replace"))) for log in logs}


def kill(stack: RealStack, name: str) -> None:
    """Kill a process of the stack and all that it has started, at once and without a word."""
    processes.send(processes.members(record(stack).children[name]), signal.SIGKILL)


def running_on(stack: RealStack, run_id: str) -> dict[str, list[dict[str, Any]]]:
    """The lanes of a backfill that are at work, by their worker."""
    at_work = stack.rows(
        "select external_executor_id as id, task_id, map_index, try_number from task_instance"
        " where dag_id = 'finra' and run_id = %s and task_id like '%%_lanes' and state = 'running'",
        run_id, database=stack.metadata,
    )  # fmt: skip
    found: dict[str, list[dict[str, Any]]] = {}
    for log in sorted((stack.directory / "logs").glob("worker-*.log")):
        text = log.read_text(errors="replace")
        if mine := [row for row in at_work if row["id"] and row["id"] in text]:
            found[log.stem] = mine
    return found


def backfill(stack: RealStack, is_hurt: bool) -> str:
    """Fill a range of FINRA; while it goes on, lose a worker and then Redis, both without warning."""
    rule = {"match": {"host": "cdn.finra.org"}, "n": None, "slow_seconds": 1.0}
    if is_hurt:
        httpx.post(f"{stack.sandbox}/_sandbox/faults", json=rule).raise_for_status()
    run_id = stack.trigger("finra", mode="backfill", start_date=str(FIRST), end_date=str(LAST), run_id="the-past")
    if is_hurt:
        at_work = stack.eventually(lambda: running_on(stack, run_id), "lanes to be at work", WAIT_SECONDS)
        victim = max(at_work, key=lambda name: len(at_work[name]))
        kill(stack, victim)
        (lost, *_) = at_work[victim]

        def again() -> bool:
            (row,) = stack.rows(
                "select try_number, state from task_instance where dag_id = 'finra' and run_id = %s"
                " and task_id = %s and map_index = %s",
                run_id, lost["task_id"], lost["map_index"], database=stack.metadata,
            )  # fmt: skip
            return bool(row["try_number"] > lost["try_number"] or row["state"] == "success")

        begun = time.monotonic()
        stack.eventually(again, f"the work of {victim} to be taken over", TAKEN_OVER_SECONDS)
        print(f"killed {victim}: its lane was tried again after {time.monotonic() - begun:.0f} s", flush=True)
        kill(stack, "redis")
        httpx.delete(f"{stack.sandbox}/_sandbox/faults").raise_for_status()
    run = ended(stack, "finra", run_id)
    assert run["state"] == "success", run
    open_chunks = stack.rows(
        "select slot, cycle_status from collect.cycles where run_id = 'the-past' and cycle_status <> 'SUCCESS'"
    )
    assert open_chunks == []
    return run_id


def polled(stack: RealStack, streams: list[Stream]) -> None:
    """Poll streams side by side; what waits for a later try, as it came before what it needs, is asked again now."""
    with db.transaction(stack.warehouse, application="a test") as connection:
        connection.execute(db.query("demo.ask_again_now"), {"streams": [stream.name for stream in streams]})
    runs = {dag_id: stack.trigger(dag_id) for dag_id in dict.fromkeys(stream.job_name for stream in streams)}
    states = {dag_id: ended(stack, dag_id, run_id)["state"] for dag_id, run_id in runs.items()}
    assert set(states.values()) == {"success"}, states


def let_time_pass(stack: RealStack, before_nine: timedelta) -> None:
    with db.transaction(stack.warehouse, application="a test") as connection:
        connection.execute(db.query("demo.let_time_pass"), {"before": before_nine})


def snapshot(stack: RealStack) -> None:
    """Let it strike nine and have the snapshot taken, of what was due by then."""
    let_time_pass(stack, LAST_WINDOWS_IN)
    polled(stack, [stream for stream in registry.streams() if stream.job_name in due_later()])
    let_time_pass(stack, timedelta(seconds=8))
    ended(stack, "sla_capture", stack.trigger("sla_capture"))
    with db.transaction(stack.warehouse, application="a test") as connection:
        found = connection.execute(db.query("demo.snapshot")).fetchone()
    assert found is not None
    assert (found["capture_status"], found["late_count"]) == ("CAPTURED", 0), found


def published(stack: RealStack) -> bool:
    """Say whether nothing waits to be built or sent."""
    with db.transaction(stack.warehouse, application="a test") as connection:
        row = connection.execute(db.query("demo.waiting")).fetchone()
    assert row is not None
    return bool(row["waiting"] == 0)


def held(stack: RealStack) -> Outcome:
    """What the tables and the Hub hold.

    Of a file only its rows are counted: when something was collected stands in it. What EDGAR's files are, byte for
    byte, the made files say.
    """
    tables: dict[str, Any] = {}
    theirs = [each for each in registry.streams() if not each.name.startswith(BY_THE_MINUTE)]
    for table in (table for stream in theirs for table in stream.tables):
        columns = ", ".join(f'"{name}"' for name in table.column_names)
        (row,) = stack.rows(
            f'select count(*) as n, md5(string_agg(t::text, chr(10) order by t::text collate "C")) as md5'
            f" from (select {columns} from {table.qualified}) t"
        )
        tables[table.qualified] = (row["n"], row["md5"])
    made = stack.rows("select stream, unit, rows, encode(sha256, 'hex') as sha256 from collect.made_files")
    tables["made files"] = sorted(tuple(row.values()) for row in made)
    known = {stream.name for stream in theirs} | tables.keys()
    comparable = [each.name for each in releases.RELEASES if known.issuperset({*each.tables, each.made_by} - {""})]
    files = stack.rows(
        "select distinct on (path) path, rows from publish.files where state = 'published' and release = any(%s)"
        " order by path, file_id desc",
        comparable,
    )
    return Outcome(tables, {row["path"]: row["rows"] for row in files}, {})


@contextmanager
def worked(
    directory: Path, executor: tuple[str, ...], jobs: Collection[str], costs: dict[str, Cost], *, is_hurt: bool
) -> Iterator[RealStack]:
    """Poll the jobs' streams, fill the past and make EDGAR's files again, everything once; the stack then stands."""
    with bring_up(directory, demo=True, executor=executor) as stack, Cpu(stack) as cpu:
        streams = [stream for stream in registry.streams() if stream.job_name in jobs]
        ended(stack, "dispatch", stack.trigger("dispatch"))
        with taking(costs.setdefault("polls", Cost()), cpu):
            polled(stack, [stream for stream in streams if stream.job_name != AFTER_THE_LIST])
            if AFTER_THE_LIST in jobs:
                polled(stack, [stream for stream in streams if stream.job_name == AFTER_THE_LIST])
        with taking(costs.setdefault("backfill", Cost()), cpu):
            past = backfill(stack, is_hurt)
        with taking(costs.setdefault("edgar", Cost()), cpu):
            again = stack.trigger(
                "edgar", mode="replay", streams=["edgar.facts"], start_date=str(FIRST), end_date="2026-09-16",
                force=True, reason="to see it on several workers",
            )  # fmt: skip
            assert ended(stack, "edgar", again)["state"] == "success"
        for name, cost in costs.items():
            print(f"{' '.join(executor) or 'local'}: {name}: {cost.wall:.0f} s, {cost.cpu:.0f} s of CPU", flush=True)
        if executor == celery(2):
            for given in (hands(stack, "finra", past), hands(stack, "edgar", again)):
                print(given, flush=True)
                assert sum(bool(tasks) for tasks in given.values()) >= 2, given
        yield stack


def celery(workers: int) -> tuple[str, ...]:
    """What brings a stack up with so many workers of Celery."""
    return ("--executor", "celery", "--workers", str(workers))


def play(directory: Path, executor: tuple[str, ...], *, is_hurt: bool) -> Outcome:
    """Work every source on one executor, strike nine, and publish; what it all left."""
    costs: dict[str, Cost] = {}
    jobs = {stream.job_name for stream in registry.streams()}
    with worked(directory, executor, jobs, costs, is_hurt=is_hurt) as stack:
        snapshot(stack)
        stack.eventually(lambda: published(stack), "everything to be on the Hub", WAIT_SECONDS)
        return replace(held(stack), costs=costs)


def test_two_workers_a_lost_one_and_a_lost_redis_give_what_one_machine_gives(tmp_path: Path) -> None:
    # It takes as long as it takes; a dump of where it waits would only look like a failure.
    faulthandler.cancel_dump_traceback_later()
    distributed = play(tmp_path / "celery", celery(2), is_hurt=True)
    alone = play(tmp_path / "local", (), is_hurt=False)
    assert distributed.files
    assert sum(rows[0] for name, rows in distributed.tables.items() if name != "made files") > 0
    differing = {name for name in alone.tables if alone.tables[name] != distributed.tables[name]}
    assert not differing, {
        name: (alone.tables[name], distributed.tables[name]) for name in differing if name != "made files"
    }
    assert distributed.files == alone.files


def test_one_worker_leaves_what_two_leave_and_what_each_takes_is_printed(tmp_path: Path) -> None:
    faulthandler.cancel_dump_traceback_later()
    left = []
    for executor in (celery(1), celery(2), ()):
        directory = tmp_path / (executor[-1] if executor else "local")
        with worked(directory, executor, {"finra", "edgar"}, {}, is_hurt=False) as stack:
            tables = held(stack).tables
            left.append((tables["market.finra_short_volume"], tables["made files"]))
    assert left[0][0][0] > 0
    assert left[0][1]
    assert left[0] == left[1] == left[2]
