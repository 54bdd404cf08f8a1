"""`./run new-source`: what it makes loads and migrates, and passes the entry exam once its parser is written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from include import registry
from include.contract import Column, Table
from include.local.failure import LocalFailure
from include.local.new_source import new_source
from include.local.table_text import table_sql
from tests.house import catalog, tree

EXAM = "tests/sources/test_every_stream.py"
PARSER = "include/sources/rainfall/daily.py"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the repository that may be written to."""
    home = tmp_path / "copy"
    for path in tree.files():
        target = home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tree.ROOT / path, target)
    return home


def python(copy: Path, *arguments: str, code: int = 0) -> str:
    """Run this Python in the copy, and give what it said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "DAYBOOK_"))}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env={**environment, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=540,
    )
    assert done.returncode == code, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def test_a_new_source_is_made_in_one_go_and_is_in_order_but_for_its_parser(copy):
    said = python(copy, "-m", "include.local", "new-source", "rainfall")
    assert f"./run test {EXAM} -k rainfall" in said
    python(copy, "-m", "ruff", "check", "--quiet", "include", "dags")
    python(copy, "-m", "ruff", "format", "--check", "--quiet", "include", "dags")
    (sql,) = (copy / "sql/migrations/versions").glob("*_rainfall.sql")
    assert "create table market.rainfall_daily (" in sql.read_text(encoding="utf-8")
    # Its columns change, and the migration follows.
    tables = copy / "include/sources/rainfall/tables.py"
    tables.write_text(tables.read_text(encoding="utf-8").replace('"value"', '"millimetres"'), encoding="utf-8")
    python(copy, "-m", "include.local", "new-source", "rainfall", "--tables")
    assert re.search(r"^    millimetres +numeric,$", sql.read_text(encoding="utf-8"), re.MULTILINE)
    again = python(copy, "-m", "include.local", "new-source", "rainfall", code=1)
    assert "'rainfall' is taken" in again


@pytest.mark.chaos
def test_a_made_up_source_fails_its_exam_and_passes_once_its_parser_is_written(copy):
    python(copy, "-m", "include.local", "new-source", "rainfall")
    exam = ("-m", "pytest", "-q", "-p", "no:cacheprovider", EXAM, "-k", "rainfall")
    failed = python(copy, *exam, code=1)
    assert re.search(r"[1-9]\d* failed, [1-9]\d* passed", failed)
    assert "test_each_fixture_is_read_as_it_says[rainfall.daily]" in failed
    shutil.copy(Path(__file__).with_name("made_up_parser.txt"), copy / PARSER)
    passed = python(copy, *exam)
    assert re.search(r"^[1-9]\d* passed", passed, re.MULTILINE)
    assert "skipped" not in passed
    # The house takes it in too: rooms and rules, and the migration against the declaration.
    mine = "rainfall or numbered or declare"
    house = ("tests/house/test_imports.py", "tests/house/test_migrations.py", "-k", mine)
    assert "failed" not in python(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *house)
    python(copy, "-m", "ruff", "check", "--quiet", "include", "dags")
    python(copy, "-m", "mypy", "include/sources/rainfall", "include/sandbox/rainfall.py")


@pytest.mark.parametrize(
    "name",
    ["Rainfall", "rain fall", "1rain", "finra", "class", "hub", "../x", "publish", "warehouse", "settings", "tuple"],
)
def test_a_name_that_cannot_be_one_or_is_taken_is_refused_before_anything_is_made(name, monkeypatch):
    monkeypatch.setattr("include.local.new_source._make", lambda made: pytest.fail(f"{list(made)} were made"))
    with pytest.raises(LocalFailure, match=r"cannot be a source's name|is taken"):
        new_source(name, False, print)


def test_the_migration_that_is_written_is_what_the_house_wants_of_every_declared_table(empty_database):
    tables = {
        table.qualified: table
        for stream in registry.streams()
        for table in stream.tables
        if table.months != "apart" and not table.kept
    }
    assert len(tables) > 20
    with psycopg.connect(empty_database) as connection:
        for schema in catalog.DATA_SCHEMAS:
            connection.execute(f"create schema {schema}; comment on schema {schema} is 'for a test'")
        for table in tables.values():
            connection.execute(table_sql(table))
    seen = catalog.read(empty_database)
    assert catalog.undeclared(seen, tables.values()) == []
    assert catalog.uncommented(seen) == []


def test_a_table_that_needs_a_hand_is_not_written():
    column = Column("day", "date", "Day")
    with pytest.raises(LocalFailure, match="by hand"):
        table_sql(Table("market", "parts", "Parts", (column,), ("day",), "day", months="apart"))
