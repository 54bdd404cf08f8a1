"""Tables that say by which test a known defect is tried name tests that exist."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest

from tests.house import tree

TABLES = [path for path in tree.files() if path.startswith("tests/") and path.endswith(".md")]
# `file`, `file::test`, or `…test` for another one of the file before; a test may be named by its beginning.
NAMED = re.compile(r"`((?:[\w/]*test_\w+)(?:::\w+…?)?|…test_\w+…?)`")


def wrong(table: str, text: str) -> tuple[int, list[str]]:
    """How many tests a table names, and those that are not there."""
    count, missing = 0, []
    for line in text.splitlines():
        tests: list[str] = []
        for named in NAMED.findall(line):
            file, _, test = ("", "", named[1:]) if named.startswith("…") else named.partition("::")
            if file:
                at = PurePosixPath("tests") / file if "/" in file else PurePosixPath(table).parent / file
                path = f"{file if file.startswith('tests/') else at}.py"
                found = tree.read(path) if path in tree.files() else ""
                tests = ["", *re.findall(r"^def (test_\w+)", found, re.MULTILINE)] if found else []
            count += 1
            if not any(each.startswith(test.rstrip("…")) for each in tests):
                missing.append(named)
    return count, missing


@pytest.mark.parametrize("table", TABLES)
def test_every_test_that_a_table_names_exists(table: str) -> None:
    count, missing = wrong(table, tree.read(table))
    assert missing == []
    assert count > 20


def test_a_name_that_is_not_there_is_found() -> None:
    for text in (
        "`test_gate::test_nothing`",
        "`test_nowhere`",
        "`house/test_words_bite`, `…test_nothing`",
        "`…test_x`",
    ):
        assert len(wrong("tests/outputs/table.md", text)[1]) == 1
    assert wrong("tests/outputs/table.md", "`test_gate::test_a_file_that_lost_rows…`, `test_checks`") == (2, [])
