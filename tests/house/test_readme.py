"""README and ARCHITECTURE tell the truth about commands and rooms; no tracked file tells of one machine."""

from __future__ import annotations

import re
import subprocess

import pytest

from include.local.__main__ import parser
from tests.house import rooms, tree, words


def verbs() -> dict[str, set[str]]:
    """Every verb of the launcher with its flags."""
    actions = [action for action in parser()._actions if action.dest == "verb"]
    return {name: set(sub._option_string_actions) for name, sub in actions[0].choices.items()}


@pytest.mark.parametrize("command", ["./run demo", "./run test"])
def test_the_readme_shows_both_commands(command):
    assert re.search(rf"^\s*{re.escape(command)}\s*(#.*)?$", tree.read("README.md"), re.MULTILINE)


def test_ci_runs_the_test_command_of_the_readme():
    script = tree.read(".ci/run")
    assert re.search(r"^\./run test\b", script, re.MULTILINE)
    assert (tree.ROOT / ".ci/run").stat().st_mode & 0o111


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_every_command_that_a_page_shows_exists(page):
    known = verbs()
    for verb, flags in re.findall(r"\./run ([a-z][\w-]*)((?: --[a-z][\w-]*(?: [A-Z.][\w./-]*)?)*)", tree.read(page)):
        assert verb in known, f"{page} shows ./run {verb}"
        assert set(re.findall(r"--[\w-]+", flags)) <= known[verb], f"{page} shows ./run {verb}{flags}"


def test_every_verb_of_the_launcher_is_in_the_readme():
    text = tree.read("README.md")
    assert [verb for verb in verbs() if not re.search(rf"\./run {verb}\b", text)] == []


def test_the_map_names_every_room():
    text = tree.read("ARCHITECTURE.md")
    built = {rooms.room_of(path) for path in tree.product_modules()} - {"include"}
    missing = [room for room in sorted(built) if not re.search(rf"(?<![\w]){room}(?:/|\.py|`)", text)]
    assert missing == []


def test_files_that_a_page_names_exist():
    known = set(tree.files())
    folders = {path.rsplit("/", depth)[0] for path in known for depth in range(1, path.count("/") + 1)}
    for page in ("README.md", "ARCHITECTURE.md"):
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", tree.read(page)):
            assert target.rstrip("/") in known | folders, f"{page} links to {target}"


def texts() -> list[tuple[str, str]]:
    """Every tracked file that is text."""
    found = []
    for path in tree.files(tracked_only=True):
        try:
            found.append((path, tree.read(path)))
        except UnicodeDecodeError:
            continue
    return found


@pytest.mark.parametrize("rule", [words.places, words.secrets, words.registries], ids=lambda rule: rule.__name__)
def test_no_tracked_file_tells_of_one_machine(rule):
    assert [str(finding) for path, text in texts() for finding in rule(path, text)] == []


def test_no_file_of_an_installation_is_tracked():
    assert words.strangers(tree.files(tracked_only=True)) == []


@pytest.mark.parametrize("path", [".env", ".daybook/secrets.json", "config/connections.env", ".venv/bin/python"])
def test_git_ignores_what_an_installation_makes(path):
    command = ["git", "-c", f"safe.directory={tree.ROOT}", "check-ignore", "-q", "--no-index", path]
    checked = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True, check=False)
    if checked.returncode == 128:  # no git here: an unpacked archive has nothing to ignore
        return
    assert checked.returncode == 0, f"git would add {path}"
