"""status, down, reset and doctor over state directories in every condition."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.local import doctor, processes, reset, stack, status
from include.local.failure import LocalFailure
from include.local.state import Record, State, open_state
from include.settings import ROOT, SettingError

# Waits for the signal itself: a handler whose signal comes between two instructions of a sleep is run after the sleep.
SUPERVISOR = (
    "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]); print('up', flush=True); "
    "signal.sigwait([signal.SIGTERM])"
)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    monkeypatch.setenv("DAYBOOK_STATE", str(tmp_path / "state"))
    made = open_state(tmp_path / "state", demo=False)
    made.make()
    return made


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    made = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR], stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    assert made.stdout is not None
    made.stdout.readline()
    yield made
    made.kill()
    made.wait()
    made.stdout.close()


def record(**changes: object) -> Record:
    return Record(**{"mode": "real", "phase": "ready", "ports": {"api-server": 8080}, **changes})  # type: ignore[arg-type]


def test_where_nothing_was_ever_started_nothing_is_made(tmp_path: Path) -> None:
    said: list[str] = []
    assert status.status(tmp_path / "none", said.append) == 1
    assert status.down(tmp_path / "none", said.append) == 0
    assert reset.reset(tmp_path / "none", False, True, said.append) == 0
    assert not (tmp_path / "none").exists()


def test_down_asks_a_living_supervisor_to_stop(state: State, process: subprocess.Popen[str]) -> None:
    state.write(record(supervisor=processes.mark(process.pid, ROOT)))
    said: list[str] = []
    assert status.down(state.directory, said.append) == 0
    assert process.wait(timeout=10) == 0
    assert said[-1] == "stopped; nothing is left running"


def test_down_ends_what_a_vanished_supervisor_left(state: State, process: subprocess.Popen[str]) -> None:
    mark = processes.mark(process.pid, ROOT)
    gone = processes.Mark(process.pid, "another-boot:1", str(ROOT))
    state.write(record(supervisor=gone, children={"scheduler": mark}))
    said: list[str] = []
    assert status.down(state.directory, said.append) == 0
    assert process.wait(timeout=10) == 0
    assert "ended 1 processes" in said[0]
    assert status.down(state.directory, said.append) == 0
    assert said[-1] == "nothing was running"


def test_down_never_ends_a_process_that_got_a_recorded_number(state: State, process: subprocess.Popen[str]) -> None:
    mark = processes.mark(process.pid, ROOT)
    assert mark is not None
    boot, _, order = mark.started.rpartition(":")
    earlier = processes.Mark(mark.pid, f"{boot}:{int(order) - 100}", mark.cwd)
    state.write(record(supervisor=earlier, children={"scheduler": earlier}, orphans=(earlier,)))
    status.down(state.directory, print)
    assert process.poll() is None


def test_status_names_what_is_dead_in_a_stack_that_is_up(
    state: State, process: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    me = processes.mark(os.getpid(), ROOT)
    child = processes.mark(process.pid, ROOT)
    state.write(record(supervisor=me, children={"scheduler": child}))
    assert status.status(state.directory, print) == 0
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert status.status(state.directory, print) == 1
    assert "DEAD" in capsys.readouterr().out


def test_a_broken_record_stops_every_verb_and_nothing_else(state: State) -> None:
    (state.directory / "state.json").write_text("{")
    for verb in (status.status, status.down):
        with pytest.raises(LocalFailure, match="Nothing was changed"):
            verb(state.directory, print)
    with pytest.raises(LocalFailure, match="Nothing was changed"):
        reset.reset(state.directory, False, True, print)
    assert (state.directory / "state.json").read_text() == "{"


def test_reset_deletes_what_run_made_and_nothing_else(state: State) -> None:
    demo = open_state(state.directory, demo=True)
    demo.make()
    (state.directory / "raw" / "x").write_text("x")
    (state.directory / "notes.txt").write_text("mine")
    assert reset.reset(state.directory, False, True, print) == 0
    assert [path.name for path in state.directory.iterdir()] == ["notes.txt"]


def test_reset_of_the_demo_leaves_the_real_stack(state: State) -> None:
    open_state(state.directory, demo=True).make()
    (state.directory / "raw" / "x").write_text("x")
    assert reset.reset(state.directory, True, True, print) == 0
    assert (state.directory / "raw" / "x").exists()
    assert not (state.directory / "demo").exists()


def test_reset_refuses_while_something_runs(state: State) -> None:
    other = State(state.directory, "real")
    assert other.lock()
    with pytest.raises(LocalFailure, match="Nothing was deleted"):
        reset.reset(state.directory, False, True, print)
    other.unlock()
    assert state.exists()


def test_reset_without_anybody_to_ask_deletes_nothing(state: State) -> None:
    with pytest.raises(LocalFailure, match="nobody to ask"):
        reset.reset(state.directory, False, False, print)
    assert state.exists()


def test_a_second_up_is_told_where_the_first_one_is_and_changes_nothing(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    other = State(state.directory, "real")
    assert other.lock()
    written = record(supervisor=processes.mark(os.getpid(), ROOT))
    state.write(written)
    said: list[str] = []
    assert stack.up(stack.Options(), said.append, lambda up: None) == 1
    assert said == [
        "It runs already: http://127.0.0.1:8080 (./run status says more, ./run down stops it). Nothing was changed."
    ]
    assert state.record() == written
    other.unlock()


def test_the_doctor_finds_nothing_in_a_good_installation_and_each_fault_in_a_bad_one(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    assert doctor.doctor(said.append) == 0, said
    (paused,) = [line for line in said if "paused until they have a connection" in line]
    assert "edgar (AIRFLOW_CONN_SEC)" in paused
    (state.directory / "secrets.json").write_text("{")
    (state.directory / "secrets.json").chmod(0o644)
    said.clear()
    assert doctor.doctor(said.append) == 1
    assert [line for line in said if "can be read by others" in line]
    assert [line for line in said if "cannot be read. It was left as it is" in line]
    (state.directory / "state.json").write_text("{")
    said.clear()
    assert doctor.doctor(said.append) == 1
    assert len([line for line in said if "state.json" in line]) == 1, "told once, however often it is met"


def test_the_doctor_sees_a_supervisor_that_vanished(state: State, process: subprocess.Popen[str]) -> None:
    gone = processes.Mark(process.pid, "another-boot:1", str(ROOT))
    state.write(record(supervisor=gone, children={"scheduler": processes.mark(process.pid, ROOT)}))
    said: list[str] = []
    assert doctor.doctor(said.append) == 1
    assert [line for line in said if "vanished; ./run down" in line]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("AI_CONCURRENCY=many", "AI_CONCURRENCY must be a whole number, not 'many'"),
        ("AIRFLOW__CORE__PARALLELISM=some", "AIRFLOW__CORE__PARALLELISM must be a whole number"),
        ("DAYBOOK_KEEP_RUNS=a-month", "DAYBOOK_KEEP_RUNS must be a whole number"),
    ],
)
def test_a_setting_in_the_operators_file_that_cannot_be_used_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, named: str
) -> None:
    from include.local.interrupts import Interrupts

    monkeypatch.setenv("DAYBOOK_STATE", str(tmp_path / "state"))
    monkeypatch.delenv(line.partition("=")[0], raising=False)
    name, _, value = line.partition("=")
    monkeypatch.setattr(stack.connections, "read", lambda path: {name: value})
    with Interrupts() as interrupts, pytest.raises(SettingError, match=named):
        stack.Stack(stack.Options(), interrupts, print)
    assert not (tmp_path / "state").exists()


def test_the_operators_file_sizes_the_pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from include.local.interrupts import Interrupts

    monkeypatch.setenv("DAYBOOK_STATE", str(tmp_path / "state"))
    for name in ("AI_CONCURRENCY", "AIRFLOW__CORE__PARALLELISM"):
        monkeypatch.delenv(name, raising=False)
    asked = {"AI_CONCURRENCY": "30", "AIRFLOW__CORE__PARALLELISM": "16"}
    monkeypatch.setattr(stack.connections, "read", lambda path: asked)
    with Interrupts() as interrupts:
        sizes = stack.Stack(stack.Options(), interrupts, print)._pools
    assert (sizes["llm"]["slots"], sizes["backfill"]["slots"]) == (30, 4)
