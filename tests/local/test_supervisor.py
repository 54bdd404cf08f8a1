"""The supervisor: on record before it runs, started again when it dies, ended whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from include.local import processes, supervisor
from include.local.failure import LocalFailure
from include.local.interrupts import Interrupts, Stopped
from include.local.state import Record, State
from include.local.supervisor import Program, Supervisor, end_leftovers, rotate
from include.settings import ROOT

SLEEP = "import time; time.sleep(300)"
# Ignores TERM in a child, as a log server of a dead scheduler does.
STUBBORN = """
import os, signal, time
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(300)
"""


def until(true: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


class Stage:
    """A supervisor with its state directory and what it said."""

    def __init__(self, directory: Path, interrupts: Interrupts) -> None:
        self.state = State(directory / "state", "real")
        self.state.make()
        self.said: list[str] = []
        self.interrupts = interrupts
        self.supervisor = Supervisor(self.state, Record("real", "starting"), interrupts, self.said.append)
        self.directory = directory

    def program(self, name: str, code: str, **environment: str) -> Program:
        values = {"PATH": "/usr/bin:/bin", **environment}
        return Program(name, (sys.executable, "-c", code), values, self.directory)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Interrupts() as interrupts:
        made = Stage(tmp_path, interrupts)
        yield made
        made.supervisor.stop()


def test_a_process_is_on_record_with_its_environment_and_its_log(stage: Stage) -> None:
    code = "import os; print(os.environ['WORD'], os.getcwd(), flush=True); import time; time.sleep(300)"
    process = stage.supervisor.start(stage.program("teller", code, WORD="hello"))
    record = stage.state.record()
    assert record is not None
    assert record.children["teller"].pid == process.pid
    assert processes.alive(record.children["teller"])
    log = stage.supervisor.log_of("teller")
    until(lambda: log.read_text().strip() == f"hello {stage.directory}")
    assert log.stat().st_mode & 0o077 == 0


def test_a_process_whose_supervisor_is_killed_before_it_is_on_record_never_runs(tmp_path: Path) -> None:
    # The supervisor is killed between starting the process and writing the record.
    code = f"""
import os, signal, sys
from pathlib import Path
from include.local.interrupts import Interrupts
from include.local.state import Record, State
from include.local.supervisor import Program, Supervisor
state = State(Path({str(tmp_path)!r}) / "state", "real")
state.make()
made = Supervisor(state, Record("real", "starting"), Interrupts(), print)
made.note = lambda **changes: os.kill(os.getpid(), signal.SIGKILL)
ran = "from pathlib import Path; Path({str(tmp_path / "ran")!r}).touch()"
made.start(Program("child", (sys.executable, "-c", ran), {{"PATH": "/usr/bin:/bin"}}, Path({str(tmp_path)!r})))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    until(lambda: not [one for one in psutil.process_iter(["cwd"]) if one.info["cwd"] == str(tmp_path)])
    assert not (tmp_path / "ran").exists()


def test_a_process_that_dies_is_named_with_its_log_and_started_again(stage: Stage) -> None:
    first = stage.supervisor.start(stage.program("worker", SLEEP))
    os.kill(first.pid, signal.SIGKILL)

    def stop_when_revived() -> None:
        record = stage.state.record()
        if record is not None and record.children["worker"].pid != first.pid:
            os.kill(os.getpid(), signal.SIGTERM)

    stage.supervisor.watch(stop_when_revived)
    assert "worker ended with signal 9; starting it again. Its log: " in stage.said[0]


def test_a_process_that_dies_again_and_again_ends_the_watch_with_its_last_words(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "DEATHS_ALLOWED", 2)
    stage.supervisor.start(stage.program("worker", "raise SystemExit('no such table')"))
    with pytest.raises(LocalFailure, match=r"worker ended 3 times.*no such table.*worker\.log"):
        stage.supervisor.watch(lambda: None)


def test_a_process_that_dies_while_the_stack_starts_is_told(stage: Stage) -> None:
    process = stage.supervisor.start(stage.program("api-server", "raise SystemExit('port is taken')"))
    process.wait()
    with pytest.raises(LocalFailure, match="api-server ended with exit code 1 while starting: port is taken"):
        stage.supervisor.check_alive()


def test_a_step_that_fails_shows_its_last_words(stage: Stage) -> None:
    stage.supervisor.start(stage.program("migrate", "raise SystemExit('disk full')"))
    with pytest.raises(LocalFailure, match=r"migrate failed: disk full \(log: "):
        stage.supervisor.finish("migrate", 30)


def test_a_step_that_takes_too_long_is_ended(stage: Stage) -> None:
    process = stage.supervisor.start(stage.program("migrate", SLEEP))
    with pytest.raises(LocalFailure, match="did not end within"):
        stage.supervisor.finish("migrate", 0.1)
    assert process.poll() is not None


def test_a_request_to_stop_ends_a_step_without_waiting_for_it(stage: Stage) -> None:
    stage.supervisor.start(stage.program("migrate", SLEEP))
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(Stopped):
        stage.supervisor.finish("migrate", 60)


def test_stopping_leaves_no_process_and_says_so_on_record(stage: Stage) -> None:
    for name in ("api-server", "scheduler", "watcher"):
        stage.supervisor.start(stage.program(name, STUBBORN))
    marks = list(stage.supervisor.record.children.values())
    until(lambda: all(len(processes.members(mark)) == 2 for mark in marks))
    stage.supervisor.stop()
    assert [processes.members(mark) for mark in marks] == [[], [], []]
    record = stage.state.record()
    assert record is not None
    assert record.phase == "stopped"
    assert record.sessions() == []


def test_what_a_dead_scheduler_left_at_work_is_let_be_and_ended_with_the_rest(stage: Stage) -> None:
    # A worker (child) with a task (grandchild), and an idle worker.
    code = "import os, time\nif os.fork() == 0: os.fork()\nelse: os.fork()\ntime.sleep(300)"
    first = stage.supervisor.start(stage.program("scheduler", code))
    mark = stage.supervisor.record.children["scheduler"]
    until(lambda: len(processes.members(mark)) == 4)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()

    def stop_when_tended() -> None:
        if stage.supervisor.record.orphans and len(processes.members(mark)) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    stage.supervisor.watch(stop_when_tended)
    assert stage.supervisor.record.orphans == (mark,)
    assert len(processes.members(mark)) == 2
    stage.supervisor.stop()
    assert processes.members(mark) == []


def test_leftovers_of_a_killed_supervisor_are_ended_and_nothing_else(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys, time
from pathlib import Path
from include.local.interrupts import Interrupts
from include.local.state import Record, State
from include.local.supervisor import Program, Supervisor
state = State(Path({str(tmp_path)!r}) / "state", "real")
state.make()
made = Supervisor(state, Record("real", "starting"), Interrupts(), print)
for name in ("scheduler", "api-server"):
    program = (sys.executable, "-c", {STUBBORN!r})
    made.start(Program(name, program, {{"PATH": "/usr/bin:/bin"}}, Path({str(tmp_path)!r})))
os.kill(os.getpid(), signal.SIGKILL)
"""
    bystander = subprocess.Popen([sys.executable, "-c", SLEEP], cwd=tmp_path, start_new_session=True)
    try:
        subprocess.run([sys.executable, "-c", code], cwd=ROOT)
        state = State(tmp_path / "state", "real")
        record = state.record()
        assert record is not None
        until(lambda: all(len(processes.members(mark)) == 2 for mark in record.sessions()))
        assert end_leftovers(state, record) == 4
        assert [processes.members(mark) for mark in record.sessions()] == [[], []]
        assert bystander.poll() is None
        after = state.record()
        assert after is not None
        assert after.sessions() == []
    finally:
        bystander.kill()
        bystander.wait()


def test_a_log_that_grew_too_long_is_kept_once_and_begun_anew(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"a" * 100)
        rotate(log, limit=50)
        writer.write(b"b")
    assert log.read_bytes() == b"b"
    assert (tmp_path / "x.log.1").read_bytes() == b"a" * 100
    rotate(log, limit=50)
    assert log.read_bytes() == b"b"
    rotate(tmp_path / "none.log")
