"""Ending processes: whole sessions, and only those that are on record."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from include.local import processes
from include.local.processes import Mark, Patience

# A leader with a worker that ignores TERM, as the workers of a scheduler do; it says the worker's number.
LEADER = """
import os, signal, sys, time
worker = os.fork()
if worker == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(300)
print(worker, flush=True)
time.sleep(300)
"""


@pytest.fixture
def lead(tmp_path: Path) -> Iterator[Callable[[], tuple[subprocess.Popen[str], Mark, int]]]:
    started = []

    def start() -> tuple[subprocess.Popen[str], Mark, int]:
        process = subprocess.Popen(
            [sys.executable, "-c", LEADER], stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=tmp_path
        )
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        mark = processes.mark(process.pid, tmp_path)
        assert mark is not None
        started.append((process, mark))
        return process, mark, worker

    yield start
    for process, mark in started:
        processes.end_sessions({mark: Patience(0, 0)})
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_worker_that_ignores_term_ends_with_its_session(
    lead: Callable[[], tuple[subprocess.Popen[str], Mark, int]],
) -> None:
    process, mark, worker = lead()
    assert processes.end_sessions({mark: Patience(5, 5)}) == [mark]
    assert process.wait() is not None
    assert gone(worker)
    assert processes.members(mark) == []


def test_a_worker_is_found_after_its_leader_was_killed(
    lead: Callable[[], tuple[subprocess.Popen[str], Mark, int]],
) -> None:
    process, mark, worker = lead()
    process.kill()
    process.wait()
    assert not processes.alive(mark)
    assert processes.members(mark) == [worker]
    processes.end_sessions({mark: Patience(5, 5)})
    assert gone(worker)


def test_an_idle_worker_without_leader_is_ended_and_one_with_a_task_is_let_be(
    lead: Callable[[], tuple[subprocess.Popen[str], Mark, int]],
) -> None:
    process, mark, worker = lead()
    processes.end_idle(mark)
    assert not gone(worker), "its leader lives, so it is no business of ours"
    assert processes.at_work(mark) == [], "a worker that waits is not at work"
    process.kill()
    process.wait()
    assert processes.at_work(mark) == []
    processes.end_idle(mark)
    deadline = time.monotonic() + 5
    while not gone(worker) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert gone(worker)


def test_a_number_that_went_to_another_process_is_never_signalled(
    lead: Callable[[], tuple[subprocess.Popen[str], Mark, int]],
) -> None:
    process, mark, worker = lead()
    boot, _, order = mark.started.rpartition(":")
    earlier = replace(mark, started=f"{boot}:{int(order) - 1}")
    assert not processes.alive(earlier)
    assert processes.members(earlier) == []
    assert processes.end_sessions({earlier: Patience(1, 1)}) == []
    assert process.poll() is None
    assert not gone(worker)


def test_a_session_of_an_earlier_boot_is_never_signalled(
    lead: Callable[[], tuple[subprocess.Popen[str], Mark, int]],
) -> None:
    process, mark, _ = lead()
    before = replace(mark, started=f"another-boot:{mark.started.rpartition(':')[2]}")
    assert processes.end_sessions({before: Patience(1, 1)}) == []
    assert process.poll() is None


def test_a_leaderless_session_in_another_directory_is_not_ours(
    lead: Callable[[], tuple[subprocess.Popen[str], Mark, int]], tmp_path: Path
) -> None:
    process, mark, worker = lead()
    process.kill()
    process.wait()
    assert processes.members(replace(mark, cwd=str(tmp_path / "elsewhere"))) == []
    assert not gone(worker)
    processes.end_sessions({mark: Patience(1, 1)})


def test_a_task_at_work_is_given_longer_than_a_worker_that_only_stays(tmp_path: Path) -> None:
    # Leader, worker and task; all ignore TERM; the task ends after a while.
    code = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(2)
        os._exit(0)
    os.wait()
    time.sleep(300)
print("up", flush=True)
time.sleep(300)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=tmp_path
    )
    assert process.stdout is not None
    process.stdout.readline()
    mark = processes.mark(process.pid, tmp_path)
    assert mark is not None
    begin = time.monotonic()
    processes.end_sessions({mark: Patience(idle=0.5, in_all=30)})
    assert 1.5 < time.monotonic() - begin < 15
    process.wait()
    process.stdout.close()
    assert processes.members(mark) == []


def test_hurry_kills_at_once(lead: Callable[[], tuple[subprocess.Popen[str], Mark, int]]) -> None:
    _, mark, worker = lead()
    begin = time.monotonic()
    processes.end_sessions({mark: Patience(60, 60)}, hurry=lambda: True)
    assert time.monotonic() - begin < 5
    assert gone(worker)


def test_the_mark_of_a_process_that_ended_is_none() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert processes.mark(process.pid, Path("/")) is None
