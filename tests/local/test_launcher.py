"""`./run` itself: found from anywhere, and one sentence for each mistake."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from include.local import __main__ as launcher
from include.local import attach, checks
from include.local.failure import LocalFailure
from include.settings import ROOT

ECHO = "import os, sys; print('here', os.getcwd(), sys.argv[1:])"


def run(script: Path, *arguments: str, cwd: Path, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    return subprocess.run([script, *arguments], cwd=cwd, env={"PATH": path}, capture_output=True, text=True)


@pytest.fixture
def pythons(tmp_path: Path) -> Path:
    """A directory for the search path in which python3 is this Python."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "python3").symlink_to(sys.executable)
    return place


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a space in its path whose bootstrap only says what it was given."""
    root = tmp_path / "day book"
    (root / "include" / "local").mkdir(parents=True)
    (root / "include" / "local" / "bootstrap.py").write_text(ECHO)
    shutil.copy(ROOT / "run", root / "run")
    return root


def test_it_works_from_any_directory_and_keeps_the_callers(checkout: Path, tmp_path: Path, pythons: Path) -> None:
    done = run(checkout / "run", "up", "--recordings", "a b", cwd=tmp_path, path=f"{pythons}:/usr/bin:/bin")
    assert done.stdout.strip() == f"here {tmp_path} ['up', '--recordings', 'a b']"


def test_it_works_through_a_link(checkout: Path, tmp_path: Path, pythons: Path) -> None:
    (tmp_path / "daybook").symlink_to("day book/run")
    done = run(tmp_path / "daybook", "status", cwd=Path("/"), path=f"{pythons}:/usr/bin:/bin")
    assert done.stdout.strip() == "here / ['status']"


def test_called_from_another_checkout_it_is_still_this_one(tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "include" / "local").mkdir(parents=True)
    for name in ("include/__init__.py", "include/local/__init__.py", "include/local/__main__.py"):
        (other / name).write_text("raise SystemExit('the other checkout was started')")
    code = f"from include.local import bootstrap as b; b.ensure = lambda root: {sys.executable!r}; b.main(['-h'])"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=other, env={"PYTHONPATH": str(ROOT)}, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert b"Daybook on one machine." in done.stdout


def test_without_a_python_it_says_so(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("dirname", "readlink", "grep"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    done = run(checkout / "run", "up", cwd=tmp_path, path=str(tools))
    assert done.returncode == 1
    assert "no Python from 3.11 to 3.14 was found" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_python_that_is_too_old_or_too_new_is_passed_over(checkout: Path, tmp_path: Path, pythons: Path) -> None:
    for name, code in (("python3.13", 3), ("python3.12", 127)):
        (pythons / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (pythons / name).chmod(0o755)
    (pythons / "python3").rename(pythons / "python3.11")
    (pythons / "python3").symlink_to(pythons / "python3.13")
    done = run(checkout / "run", "status", cwd=tmp_path, path=f"{pythons}:/usr/bin:/bin")
    assert done.stdout.strip() == f"here {tmp_path} ['status']"


def test_a_python_without_venv_is_told_with_the_package_to_install(checkout: Path, tmp_path: Path) -> None:
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("dirname", "readlink", "grep"):
        found = shutil.which(name)
        assert found is not None
        (place / name).symlink_to(found)
    (place / "python3").write_text("#!/bin/sh\nexit 4\n")
    (place / "python3").chmod(0o755)
    done = run(checkout / "run", "up", cwd=tmp_path, path=str(place))
    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr


def test_half_a_checkout_is_told(checkout: Path, tmp_path: Path) -> None:
    (checkout / "include" / "local" / "bootstrap.py").unlink()
    done = run(checkout / "run", "up", cwd=tmp_path)
    assert done.returncode == 1
    assert "not a whole checkout" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["wrong"],
        ["up", "--wrong"],
        ["up", "surplus"],
        ["up", "--recordings", "/"],
        ["up", "--demo", "--recordings", "/no/such/directory"],
        ["demo", "--recordings", "/no/such/directory"],
        ["down", "--now"],
        ["reset", "--everything"],
        ["--fast"],
        ["up", "--dem"],
    ],
)
def test_a_wrong_word_is_one_sentence_and_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        launcher.main(arguments)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert shown.err.startswith("run: ")


def test_what_belongs_to_another_program_is_handed_on_as_it_is() -> None:
    assert launcher.parse(["psql", "-c", "select 1"])[1] == ["-c", "select 1"]
    assert launcher.parse(["cli", "poll", "--help"])[1] == ["poll", "--help"]
    chosen, rest = launcher.parse(["test", "-k", "x", "--fast", "tests/local"])
    assert chosen.fast
    assert rest == ["-k", "x", "tests/local"]


def test_somebody_who_asks_for_help_in_one_word_gets_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        launcher.main(["help"])
    assert ended.value.code == 0
    assert "new-source" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["psql", "cli", "airflow", "python"])
def test_with_nothing_up_there_is_nothing_to_speak_to(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYBOOK_STATE", str(tmp_path))
    with pytest.raises(LocalFailure, match=r"nothing to speak to\. Start it: \./run up"):
        attach.run(verb, [])


def test_every_check_runs_and_the_first_failure_is_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def run(arguments: list[str]) -> int:
        ran.append(list(arguments))
        return 3 if "mypy" in arguments else 5 if "pytest" in arguments else 0

    monkeypatch.setattr(checks, "run", run)
    assert checks.test(True, ["-k", "x"]) == 3
    assert [one[1] for one in ran] == ["ruff", "ruff", "mypy", "pytest"]
    assert ran[-1] == ["-m", "pytest", "-m", checks.FAST, "-k", "x"]


def test_no_test_is_left_out_where_they_run_in_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(checks, "run", lambda arguments: ran.append(list(arguments)) or 0)
    assert checks.test(False, []) == 0
    alone, shared = (one[2:] for one in ran if "pytest" in one)
    assert shared[-len(alone) :] == [f"--ignore={folder}" for folder in alone]
    assert all((ROOT / folder).is_dir() for folder in alone)


def test_what_breaks_things_on_purpose_is_found_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(checks, "run", lambda arguments: ran.append(list(arguments)) or 0)
    # Without a folder, pytest looks in all of them.
    assert launcher.main(["chaos", "-k", "x"]) == 0
    assert ran == [["-m", "pytest", "-m", "chaos", "-k", "x"]]


def test_a_request_to_stop_lets_a_test_run_tear_down(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal, sys, time\n"
        "try:\n"
        "    os.kill(os.getppid(), signal.SIGTERM)\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        f"    open({str(tmp_path / 'torn down')!r}, 'w').close()\n"
    )
    code = f"import sys; from include.local import checks; sys.exit(checks.run([{str(program)!r}]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=dict(os.environ))
    assert done.returncode == 130
    assert (tmp_path / "torn down").exists()
