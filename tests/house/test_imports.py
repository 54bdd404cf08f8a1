"""The tree obeys the rules of the house: import directions, SQL, environment, heavy imports, names, size."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import PurePosixPath

import pytest

from tests.house import rooms, rules, tree


def test_the_walk_sees_the_house():
    seen = set(tree.product_modules())
    assert {"include/contract.py", "include/settings.py", "include/engine/db.py"} <= seen
    assert not any(path.startswith((".venv/", "tests/")) for path in seen)


@pytest.mark.parametrize("path", tree.product_modules())
def test_every_module_obeys_the_rules(path):
    assert [str(finding) for finding in rules.check(path, tree.read(path))] == []


def test_no_module_anywhere_is_named_after_nothing():
    named = [path for path in tree.files() if path.endswith((".py", ".sql", ".sh"))]
    assert [str(finding) for path in named for finding in rules.module_name(path)] == []


def test_plugins_holds_one_file_that_hides_no_module():
    installed = {name for names in importlib.metadata.packages_distributions() for name in [names.lower()]}
    taken = frozenset(installed | set(sys.stdlib_module_names) | {"include", "dags", "tests", "config"})
    assert rules.one_plugin(tree.files(), taken) == []


def test_every_room_that_a_room_may_import_exists_in_the_table():
    known = set(rooms.ROOMS)
    assert {each.partition(".")[0] for room in rooms.ROOMS.values() for each in room.may} <= known
    assert all(room.why for room in rooms.ROOMS.values())


def test_the_table_has_no_way_round():
    """Follow the allowed imports from every room: none leads back to where it started."""
    ahead = {name: {each.partition(".")[0] for each in room.may} for name, room in rooms.ROOMS.items()}
    for start in ahead:
        reached, front = set(), set(ahead[start])
        while front:
            reached |= front
            front = {further for room in front for further in ahead[room]} - reached
        assert start not in reached, f"{start} can reach itself through {sorted(reached)}"


def test_include_has_no_folder_outside_the_table():
    found = {PurePosixPath(path).parts[1].removesuffix(".py") for path in tree.files() if path.startswith("include/")}
    assert found - {"__init__"} <= set(rooms.ROOMS)


def test_sources_are_taken_with_their_times_as_set_and_not_as_declared():
    asks = re.compile(r"from include\.registry import [^\n]*SOURCES|registry\.SOURCES")
    paths = [
        path for path in tree.files() if path.startswith(("include/", "dags/", "plugins/")) and path.endswith(".py")
    ]
    assert [path for path in paths if asks.search((tree.ROOT / path).read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("module", ["include.cli", "include.local.__main__", "include.registry", "include.sandbox"])
def test_a_process_without_airflow_loads_none_of_it(module):
    """Neither directly nor through anything that it imports; nor what makes a short command slow."""
    slow = ("airflow", "pandas", "pyarrow", "huggingface_hub", "openai")
    program = f"import sys, {module}; print(*({set(slow)!r} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], cwd=tree.ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
