"""The state directory: never somebody else's, never guessed at, never shared."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from include.local.failure import LocalFailure
from include.local.processes import Mark
from include.local.state import Record, State, open_state

RECORD = Record(
    mode="real",
    phase="ready",
    supervisor=Mark(10, "boot:1", "/somewhere"),
    children={"scheduler": Mark(11, "boot:2", "/somewhere")},
    orphans=(Mark(9, "boot:0", "/somewhere"),),
    ports={"api-server": 8080},
    started_at="2026-09-16T08:40:00+00:00",
)


def snapshot(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    state = open_state(tmp_path / "state", demo=False)
    state.make()
    mode = stat.S_IMODE(state.directory.stat().st_mode)
    # Root's PostgreSQL runs as another user and passes through; nobody may list or read.
    assert mode == (0o711 if os.geteuid() == 0 else 0o700)
    for path in state.directory.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_the_demo_lies_inside_and_apart(tmp_path: Path) -> None:
    demo = open_state(tmp_path / "state", demo=True)
    demo.make()
    assert demo.directory == tmp_path / "state" / "demo"
    real = open_state(tmp_path / "state", demo=False)
    real.check()
    assert real.exists()


def test_a_directory_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("mine")
    before = snapshot(tmp_path)
    with pytest.raises(LocalFailure, match=r"not made by ./run .*diary\.txt"):
        State(tmp_path, "real").make()
    assert snapshot(tmp_path) == before


def test_a_directory_that_only_the_engine_used_is_adopted(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    State(tmp_path, "real").make()


def test_one_of_a_newer_release_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "daybook.json").write_text(json.dumps({"format": 99}))
    before = snapshot(tmp_path)
    with pytest.raises(LocalFailure, match="newer release"):
        State(tmp_path, "real").make()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "x"}'])
def test_one_with_an_unreadable_mark_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / "daybook.json").write_text(content)
    with pytest.raises(LocalFailure):
        State(tmp_path, "real").make()
    assert snapshot(tmp_path) == {"daybook.json": content}


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(LocalFailure, match="not a directory"):
        State(tmp_path / "state", "real").make()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_one_that_belongs_to_another_user_is_refused(tmp_path: Path) -> None:
    State(tmp_path, "real").make()
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(LocalFailure, match="belongs to"):
        State(tmp_path, "real").check()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_one_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(LocalFailure, match="cannot be written to"):
            State(tmp_path / "state", "real").make()
    finally:
        tmp_path.chmod(0o700)


def test_what_runs_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    state = State(tmp_path, "real")
    state.make()
    assert state.record() is None
    state.write(RECORD)
    assert state.record() == RECORD
    assert stat.S_IMODE((tmp_path / "state.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"mode": "real", "phase": "ready", "supervisor": 3}'])
def test_a_broken_record_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    state = State(tmp_path, "real")
    state.make()
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(LocalFailure, match=r"state\.json.*Nothing was changed"):
        state.record()
    assert (tmp_path / "state.json").read_text() == content


def test_two_supervisors_never_share_it(tmp_path: Path) -> None:
    first, second = State(tmp_path, "real"), State(tmp_path, "real")
    first.make()
    assert first.lock()
    assert not second.lock()
    first.unlock()
    assert second.lock()
    second.unlock()
