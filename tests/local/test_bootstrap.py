"""Making .venv: whole or not at all, and never over somebody else's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from include.local import bootstrap
from include.local.bootstrap import CannotMake
from include.settings import ROOT


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that needs no package, in a path with a space; making an environment costs a link, no network."""
    root = tmp_path / "a checkout"
    root.mkdir()
    (root / "requirements.txt").write_text("# nothing\n")

    def run(command: list[str], what: str, total: int = 0) -> None:
        if "venv" in command:
            venv.EnvBuilder(with_pip=False, symlinks=True).create(command[-1])

    monkeypatch.setattr(bootstrap, "_run", run)
    return root


def note(root: Path) -> dict[str, str]:
    read: dict[str, str] = json.loads((root / ".venv" / "daybook.json").read_text())
    return read


def test_it_is_made_once_and_the_note_is_written_last(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = bootstrap.ensure(checkout)
    assert subprocess.run([python, "-c", ""]).returncode == 0
    assert note(checkout)["requirements"] == bootstrap._hash(checkout)
    monkeypatch.setattr(bootstrap, "_run", lambda *arguments: pytest.fail("made twice"))
    assert bootstrap.ensure(checkout) == python


def test_a_half_made_one_is_made_anew(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(root: Path, made: Path, wanted: str) -> None:
        raise CannotMake("the network went away")

    whole = bootstrap._install
    monkeypatch.setattr(bootstrap, "_install", broken)
    with pytest.raises(CannotMake):
        bootstrap.ensure(checkout)
    assert "requirements" not in note(checkout)
    (checkout / ".venv" / "half").touch()
    monkeypatch.setattr(bootstrap, "_install", whole)
    bootstrap.ensure(checkout)
    assert not (checkout / ".venv" / "half").exists()


def test_changed_requirements_are_installed_into_the_one_that_is_there(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap.ensure(checkout)
    (checkout / ".venv" / "kept").touch()
    (checkout / "requirements.txt").write_text("# something new\n")
    installed = []
    monkeypatch.setattr(bootstrap, "_run", lambda command, what, total=0: installed.append(what))
    bootstrap.ensure(checkout)
    assert installed == ["the packages"]
    assert (checkout / ".venv" / "kept").exists()
    assert note(checkout)["requirements"] == bootstrap._hash(checkout)


def test_one_that_lost_its_python_is_made_anew(checkout: Path) -> None:
    bootstrap.ensure(checkout)
    (checkout / ".venv" / "bin" / "python").unlink()
    assert subprocess.run([bootstrap.ensure(checkout), "-c", ""]).returncode == 0


def test_one_that_was_made_by_hand_is_used_if_nothing_is_missing(checkout: Path) -> None:
    venv.EnvBuilder(with_pip=False, symlinks=True).create(checkout / ".venv")
    bootstrap.ensure(checkout)
    assert note(checkout)["made"] == "by hand"


@pytest.mark.parametrize("by_hand_before", [False, True])
def test_one_that_was_made_by_hand_and_lacks_something_is_left_alone(checkout: Path, by_hand_before: bool) -> None:
    venv.EnvBuilder(with_pip=False, symlinks=True).create(checkout / ".venv")
    if by_hand_before:
        bootstrap.ensure(checkout)
    (checkout / ".venv" / "mine").touch()
    (checkout / "requirements.txt").write_text("no-such-package-anywhere==1.0\n")
    with pytest.raises(CannotMake, match=r"was not made by \./run.*left as it is"):
        bootstrap.ensure(checkout)
    assert (checkout / ".venv" / "mine").exists()


def test_something_else_under_the_name_is_left_alone(checkout: Path) -> None:
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "thesis.txt").write_text("mine")
    with pytest.raises(CannotMake, match="left as it is"):
        bootstrap.ensure(checkout)
    assert (checkout / ".venv" / "thesis.txt").read_text() == "mine"


def test_a_link_that_leads_to_nothing_finished_is_left_alone(checkout: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (checkout / ".venv").symlink_to(elsewhere)
    with pytest.raises(CannotMake, match=r"is a link to .* Remove the link and start again"):
        bootstrap.ensure(checkout)
    assert (checkout / ".venv").is_symlink()
    assert elsewhere.is_dir()


def test_too_little_room_is_told_before_anything_is_made(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(checkout)._replace(free=1_000_000)
    monkeypatch.setattr(bootstrap.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(CannotMake, match="Make room"):
        bootstrap.ensure(checkout)
    assert not (checkout / ".venv").exists()


def test_a_checkout_that_cannot_be_written_to_is_told(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap.os, "access", lambda path, mode: False)
    with pytest.raises(CannotMake, match="cannot be written to"):
        bootstrap.ensure(checkout)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        ("PermissionError: [Errno 13] Permission denied", "cannot be written to"),
        ("WARNING: Retrying: NewConnectionError: Temporary failure in name resolution", "cannot be reached"),
        ("The virtual environment was not created because ensurepip is not available", "python3-venv"),
        ("ERROR: No matching distribution found for x==1", "No matching distribution"),
    ],
)
def test_what_went_wrong_is_said_in_one_sentence(words: str, sentence: str) -> None:
    assert sentence in bootstrap._reason("the packages", ["Collecting x", words])


def test_what_a_further_file_asks_for_is_installed_only_where_it_is_missing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "_run", lambda command, *more: commands.append(command))
    (checkout / "more.txt").write_text("pytest==" + pytest.__version__)
    bootstrap.add(checkout, "more.txt")
    assert commands == []
    (checkout / "more.txt").write_text("no-such-package-anywhere==1.0\n")
    bootstrap.add(checkout, "more.txt")
    assert [command[-1] for command in commands] == [str(checkout / "more.txt")]


def test_a_further_file_that_cannot_be_installed_leaves_what_is_there_and_says_so(tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho 'Temporary failure in name resolution'; exit 1\n")
    python.chmod(0o755)
    (tmp_path / "more.txt").write_text("no-such-package-anywhere==1.0\n")
    with pytest.raises(CannotMake, match=r"Connect to the network.*\.venv works as before"):
        bootstrap.add(tmp_path, "more.txt")


def test_it_needs_nothing_but_the_standard_library() -> None:
    code = f"import runpy, sys; runpy.run_path({str(ROOT / 'include/local/bootstrap.py')!r}, run_name='probe')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_this_environment_holds_what_is_pinned() -> None:
    assert bootstrap.missing(ROOT) == []


def test_ctrl_c_ends_the_installation_whole_and_lets_it_clean_up(tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        "import os, signal, time\n"
        "try:\n"
        "    os.kill(os.getppid(), signal.SIGINT)\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        f"    open({str(tmp_path / 'cleaned up')!r}, 'w').close()\n"
    )
    code = f"import sys; from include.local import bootstrap as b; b._run([sys.executable, {str(child)!r}], 'x')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=30)
    assert done.returncode == 130
    assert (tmp_path / "cleaned up").exists()
