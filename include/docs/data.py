"""The data dictionary: every table and view of the warehouse, and every release with the columns of its files.

Promises: tables are those of a migrated database, with the comments that it holds; a test of the house compares
them with the sources' declarations. Never: anything but the catalog is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from include.contract import Table
from include.docs.text import cell, page, table
from include.engine.db import query, transaction
from include.outputs import parquet
from include.outputs.releases import RELEASES, Release

_ENGINES = ("unit", "fetch_id", "sent_at", "parser_version", "cycle_id", "attempt", "extra")
_MONTH_PARTS = "its parts by month are made when they are first needed"


def tables(url: str) -> dict[str, str]:
    """Return a page for each schema of a migrated database, by the name of the schema."""
    with transaction(url, application="daybook docs") as connection:
        schemas = connection.execute(query("docs.schemas")).fetchall()
        relations = connection.execute(query("docs.relations")).fetchall()
        columns = connection.execute(query("docs.columns")).fetchall()
        functions = connection.execute(query("docs.functions")).fetchall()
    found = {}
    for schema in schemas:
        name = schema["schema"]
        parts = [[f"{cell(schema['comment'])}."]]
        own = [row for row in relations if row["schema"] == name]
        parts += [_relation(row, _of(columns, row), own) for row in own if not _is_history(row, own)]
        called = [row for row in functions if row["schema"] == name]
        if called:
            rows = [(f"`{row['name']}({row['arguments']})`", row["comment"] or "") for row in called]
            parts.append(["## Functions", "", *table(("function", "what it does"), rows)])
        found[name] = page(f"Tables of `{name}`", *parts)
    return found


def _of(columns: Iterable[Mapping[str, Any]], relation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    place = (relation["schema"], relation["relation"])
    return [row for row in columns if (row["schema"], row["relation"]) == place]


def _is_history(relation: Mapping[str, Any], all_of: Sequence[Mapping[str, Any]]) -> bool:
    name = str(relation["relation"])
    return name.endswith("_history") and any(
        row["relation"] == name.removesuffix("_history") and row["kind"] in ("r", "p") for row in all_of
    )


def _relation(
    relation: Mapping[str, Any], columns: Sequence[Mapping[str, Any]], all_of: Sequence[Mapping[str, Any]]
) -> list[str]:
    name = relation["relation"]
    lines = [f"## `{relation['schema']}.{name}`", "", f"{cell(relation['comment'])}."]
    is_view = relation["kind"] in ("v", "m")
    if is_view:
        shown_by = ", ".join(f"`{row['name']}`" for row in columns)
        return [*lines, "", f"A view of {shown_by}."]
    has_history = any(row["relation"] == f"{name}_history" for row in all_of)
    names = [row["name"] for row in columns]
    declared = has_history and all(each in names for each in _ENGINES)
    shown = [row for row in columns if not (declared and row["name"] in _ENGINES)]
    key = ", ".join(f"`{each}`" for each in relation["key_columns"]) or "none"
    lines += ["", f"Key: {key}." + (f" Partitioned: {_MONTH_PARTS}." if relation["kind"] == "p" else "")]
    if declared:
        lines[-1] += f" Beside these the engine's own ({', '.join(f'`{each}`' for each in _ENGINES)})."
        lines[-1] += f" What it once said otherwise: `{name}_history`, with `ended_at` and `reason`."
    rows = [(f"`{row['name']}`", row["type"], "" if row["required"] else "null", row["comment"] or "") for row in shown]
    return [*lines, "", *table(("column", "type", "", "what it means"), rows)]


def releases(declared: Iterable[Table]) -> str:
    """Return the page of all releases.

    Args:
        declared: the tables of all streams.
    """
    by_name = {each.qualified: each for each in declared}
    parts = [
        [
            "Everything that is published on the Hub, in one private data set unless a release says otherwise.",
            "Columns with their comments also travel in each file's own schema.",
        ]
    ]
    return page("Releases", *parts, *(_release(each, each.shape or by_name.get(each.table)) for each in RELEASES))


def _release(release: Release, shape: Table | None) -> list[str]:
    made = release.table or ", ".join(release.tables) or release.made_by
    terms = release.terms.note
    if release.terms.source:
        terms += f" Source: {release.terms.source}, read on {release.terms.read_on}."
    rows = [
        ("Files", f"`{release.path}` (by {release.cut})" if release.cut != "whole" else f"`{release.path}`"),
        ("Made from", f"`{made}`"),
        ("Seen by", release.visibility),
        ("Terms", terms),
        ("Kept", release.retention),
        ("Switched on", "yes" if release.is_on else "no"),
    ]
    lines = [f"## `{release.name}`", "", f"{release.title}.", "", *table(("", ""), rows)]
    if shape is None:
        return [*lines, "", "Its columns differ from file to file; each file's own schema says them."]
    fields = parquet.arrow_schema(release, shape)
    about = {column.name: column.comment for column in parquet.published_columns(shape)}
    columns = [(f"`{one.name}`", one.type, "null" if one.nullable else "", about[one.name]) for one in fields]
    key = ", ".join(f"`{each}`" for each in shape.key)
    return [*lines, "", f"Key: {key}.", "", *table(("column", "type", "", "what it means"), columns)]
