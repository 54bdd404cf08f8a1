"""The migrations are numbered, expand-only and commented, and make what the sources declare."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import PurePosixPath

import psycopg
import pytest

from include import registry
from include.sources.edgar import tier as edgar_tier
from tests.house import catalog, statement_files, tree

VERSIONS = "sql/migrations/versions/"
# A stream that only some configurations have has its table in all of them.
TABLES = [table for stream in (*registry.streams(), *(edgar_tier.streams("all") or ())) for table in stream.tables]


def versions() -> list[str]:
    """The file names in sql/migrations/versions."""
    return [path.removeprefix(VERSIONS) for path in tree.files() if path.startswith(VERSIONS)]


def revisions() -> dict[str, tuple[str, str | None]]:
    """`revision` and `down_revision` of every Python file there."""
    found = {}
    for name in versions():
        if name.endswith(".py"):
            module = ast.parse(tree.read(VERSIONS + name))
            values = {
                node.targets[0].id: ast.literal_eval(node.value)
                for node in module.body
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            }
            found[name] = (values["revision"], values["down_revision"])
    return found


def test_migrations_are_numbered_each_after_the_one_before():
    assert versions()
    assert statement_files.numbering(versions(), revisions()) == []


@pytest.mark.parametrize("name", [name for name in versions() if name.endswith(".sql")])
def test_a_migration_only_adds_and_says_how_to_go_back(name):
    assert statement_files.migration(name, tree.read(VERSIONS + name)) == []


def test_everything_in_the_database_says_what_it_is(database):
    assert catalog.uncommented(catalog.read(database)) == []


def test_no_enum_no_naive_moment_and_no_inexact_number(database):
    assert catalog.wrong_types(catalog.read(database)) == []


def test_no_foreign_key_crosses_a_schema(database):
    assert catalog.crossing_keys(catalog.read(database)) == []


def test_the_tables_are_what_the_sources_declare(database):
    assert TABLES
    assert catalog.undeclared(catalog.read(database), TABLES) == []


# --- the judgements bite ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "revised"),
    [
        (["0002_a.sql", "0003_b.sql"], {"0002_a.py": ("0002", None), "0003_b.py": ("0003", "0002")}),
        (["0001_a.sql", "0003_b.sql"], {"0001_a.py": ("0001", None), "0003_b.py": ("0003", "0002")}),
        (["0001_a.sql"], {}),
        (["0001_a.sql"], {"0001_a.py": ("0001", "0000")}),
        (["0001_a.sql", "0001_b.sql"], {"0001_a.py": ("0001", None), "0001_b.py": ("0001", "0001")}),
        (["1_a.sql"], {"1_a.py": ("1", None)}),
        (["0001_a.sql", "notes.md"], {"0001_a.py": ("0001", None)}),
        (["0001_a.sql", "0002_b.py"], {"0001_a.py": ("0001", None), "0002_b.py": ("0002", "0001")}),
    ],
)
def test_a_wrong_order_a_twin_or_a_stranger_is_seen(names, revised):
    assert statement_files.numbering([*names, *(name for name in revised if name not in names)], revised)


def test_areas_may_keep_numbers_free():
    revised = {"0001_a.py": ("0001", None), "0010_b.py": ("0010", "0001")}
    assert statement_files.numbering(["0001_a.sql", "0010_b.sql", *revised], revised) == []


HEAD = "-- 0001 a: what for.\n-- Roll-back note: never.\n\n"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "drop table collect.cycles;",
        HEAD + "alter table a drop column b;",
        HEAD + "alter table a\n    rename column b to c;",
        HEAD + "alter table a alter column b type text;",
        HEAD + "alter table a alter column b set not null;",
        HEAD + "alter table a add column b int default 1, add column c text not null;",
        HEAD + "truncate a;",
        HEAD + "delete from a;",
        "-- 0001 a: what for.\n\ncreate table a ();",
        "-- 0001 b: what for.\n-- Roll-back note: never.\n\ncreate table a ();",
    ],
)
def test_a_migration_that_takes_away_or_says_nothing_is_seen(text):
    assert statement_files.migration("0001_a.sql", text)


def test_words_in_comments_texts_and_functions_take_nothing_away():
    text = HEAD + "-- drop table a\ncomment on table a is 'drop table b; it''s fine';\n"
    text += "create function f() returns void language sql as $$ delete from a $$;\n"
    text += "alter table a add column b int not null default 1, add column c text;\n"
    text += "create trigger t before truncate on a execute function f();\nrevoke delete, truncate on a from public;\n"
    assert statement_files.migration("0001_a.sql", text) == []


@pytest.fixture
def changed(database):
    """Change a migrated database by a statement and read its catalog again."""

    def change(statement: str) -> catalog.Catalog:
        with psycopg.connect(database) as connection:
            connection.execute(statement)
        return catalog.read(database)

    return change


@pytest.mark.parametrize(
    ("statement", "judge"),
    [
        ("create schema elsewhere", catalog.uncommented),
        ("create table collect.noted ()", catalog.uncommented),
        ("create view collect.seen as select 1 as one", catalog.uncommented),
        ("alter table collect.cycles add column silent text", catalog.uncommented),
        ("create function collect.silent() returns int language sql as 'select 1'", catalog.uncommented),
        ("create type collect.mood as enum ('good')", catalog.wrong_types),
        ("alter table collect.cycles add column naive timestamp", catalog.wrong_types),
        ("alter table collect.cycles add column coarse timestamptz(3)", catalog.wrong_types),
        ("alter table collect.cycles add column open timestamptz", catalog.wrong_types),
        ("alter table collect.cycles add column inexact double precision", catalog.wrong_types),
        ("create table ops.child (cycle bigint references collect.cycles)", catalog.crossing_keys),
    ],
)
def test_an_offence_in_the_database_is_seen(changed, statement, judge):
    assert judge(changed(statement))


TABLE = TABLES[0]


@pytest.mark.parametrize(
    "statement",
    [
        f"alter table {TABLE.qualified} add column more text",
        f"alter table {TABLE.qualified} drop column {TABLE.column_names[-1]} cascade",
        f"alter table {TABLE.qualified}_history drop column ended_at cascade",
        f"alter table {TABLE.qualified} alter column attempt type bigint",
        f"alter table {TABLE.qualified} alter column {TABLE.key[0]} set default now()::date",
        f"comment on column {TABLE.qualified}.{TABLE.key[0]} is 'something else'",
        f"comment on table {TABLE.qualified} is 'something else'",
        f"alter table {TABLE.qualified}_history rename to other",
        f"create table {TABLE.schema}.nobody_declared_it ()",
    ],
)
def test_a_difference_from_the_declaration_is_seen(changed, statement):
    differences = catalog.undeclared(changed(statement), TABLES)
    # A default is no part of a declaration; everything else here is.
    assert bool(differences) == ("set default" not in statement)


def test_a_changed_declaration_is_seen(database):
    there = catalog.read(database)
    first, *others = TABLE.columns
    for changed_table in (
        dataclasses.replace(TABLE, key=TABLE.key[:1]),
        dataclasses.replace(TABLE, comment="something else"),
        dataclasses.replace(TABLE, columns=(dataclasses.replace(first, nullable=not first.nullable), *others)),
        dataclasses.replace(TABLE, columns=(dataclasses.replace(first, type="jsonb", precision=None), *others)),
        dataclasses.replace(TABLE, columns=(dataclasses.replace(first, precision=(3, 1), type="numeric"), *others)),
        dataclasses.replace(TABLE, name="nowhere"),
    ):
        assert catalog.undeclared(there, [changed_table, *TABLES[1:]])


# --- named statements ---------------------------------------------------------------------------------


def statements(folder: str) -> dict[str, list[str]]:
    """Per file the statements in it."""
    return {
        PurePosixPath(path).stem: statement_files.named(PurePosixPath(path).stem, tree.read(path))[0]
        for path in tree.files()
        if path.startswith(f"sql/{folder}/") and path.endswith(".sql")
    }


@pytest.mark.parametrize("path", [path for path in tree.files() if path.startswith(("sql/queries/", "sql/templates/"))])
def test_a_statement_has_one_name_one_line_and_is_one_statement(path):
    assert path.endswith(".sql")
    parts = path.startswith("sql/templates/")
    assert statement_files.named(PurePosixPath(path).stem, tree.read(path), parts=parts)[1] == []


def test_every_statement_is_asked_for_and_every_asked_one_exists():
    full, words = statement_files.asked(tree.read(path) for path in tree.product_modules())
    both = {**statements("queries"), **statements("templates")}
    assert statement_files.usage(both, full, words) == []


@pytest.mark.parametrize(
    "text",
    [
        "select 1;\n-- name: a\n-- It does.\nselect 1;\n",
        "-- name: a\nselect 1;\n",
        "-- name: a\n-- no full stop\nselect 1;\n",
        "-- name: a\n-- It does.\nselect 1; select 2;\n",
        "-- name: a\n-- It does.\nselect 1\n",
        "-- name: a\n-- It does.\n",
        "-- name: a b\n-- It does.\nselect 1;\n",
        "-- name: a\n-- It does.\nselect 1;\n\n-- name: a\n-- It does.\nselect 2;\n",
    ],
)
def test_a_statement_that_breaks_the_form_is_seen(text):
    assert statement_files.named("file", text)[1]


def test_missing_and_unused_statements_are_seen():
    full, words = statement_files.asked(['def f(n):\n    query("a.one")\n    query(f"a.two_{n}")\n    run("three")\n'])
    there = {"a": ["one", "two_x", "three"]}
    assert statement_files.usage(there, full, words) == []
    assert statement_files.usage({"a": ["two_x", "three"]}, full, words) == ["a.one is asked for and does not exist"]
    assert statement_files.usage({"a": [*there["a"], "four"]}, full, words) == ["a.four is asked for by nobody"]
