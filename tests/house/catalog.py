"""What a migrated database must look like, as pure functions over rows of its catalog.

Promises: `read` asks the catalog and nothing else; the judges are handed its rows and return complaints, an
empty list where all is well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg

from include.contract import Table

DATA_SCHEMAS = ("market", "filings", "dartbrief")
"""Where declared tables live; the other schemas are the engine's own."""

ENGINE_COLUMNS = {
    "unit": ("text", True),
    "fetch_id": ("bigint", True),
    "sent_at": ("timestamp(6) with time zone", True),
    "parser_version": ("integer", True),
    "cycle_id": ("bigint", True),
    "attempt": ("integer", True),
    "extra": ("jsonb", False),
}
"""What the engine adds to every declared table: type as PostgreSQL writes it, and whether it is required."""

QUEUES = frozenset(
    f"dartbrief.{name}"
    for name in ("analysis_cache", "analysis_control", "analysis_history", "analysis_slots", "reveals")
)
"""Tables beside the declared ones that no source fills: what the analysis works off, and who has opened its results."""

HISTORY_COLUMNS = {"ended_at": ("timestamp(6) with time zone", True), "reason": ("text", True)}

_COLUMNS = """
    select n.nspname as schema, c.relname as relation, c.relkind::text as kind, a.attname as name,
           format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
           col_description(c.oid, a.attnum) as comment
      from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
     where a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'p', 'v', 'm')
       and n.nspname !~ '^(pg_|information_schema)'
     order by n.nspname, c.relname, a.attnum
"""
_RELATIONS = """
    select n.nspname as schema, c.relname as relation, c.relkind::text as kind,
           obj_description(c.oid, 'pg_class') as comment
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^(pg_|information_schema)'
     order by 1, 2
"""
_SCHEMAS = """
    select nspname as schema, obj_description(oid, 'pg_namespace') as comment from pg_namespace
     where nspname !~ '^(pg_|information_schema)' order by 1
"""
_FUNCTIONS = """
    select n.nspname as schema, p.proname as name, obj_description(p.oid, 'pg_proc') as comment
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname !~ '^(pg_|information_schema)' order by 1, 2
"""
_ENUMS = """
    select n.nspname || '.' || t.typname as name from pg_type t join pg_namespace n on n.oid = t.typnamespace
     where t.typtype = 'e' and n.nspname !~ '^(pg_|information_schema)' order by 1
"""
_FOREIGN_KEYS = """
    select n.nspname || '.' || c.relname as child, o.nspname || '.' || p.relname as parent
      from pg_constraint k
      join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
      join pg_class p on p.oid = k.confrelid join pg_namespace o on o.oid = p.relnamespace
     where k.contype = 'f' and n.nspname <> o.nspname order by 1, 2
"""
_KEYS = """
    select n.nspname as schema, c.relname as relation,
           array(select a.attname::text from unnest(k.conkey) with ordinality as u (number, place)
                   join pg_attribute a on a.attrelid = c.oid and a.attnum = u.number order by place) as columns
      from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
     where k.contype = 'p'
"""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Catalog:
    """The rows of a database's catalog, without what the migration tool keeps for itself."""

    schemas: Rows
    relations: Rows
    columns: Rows
    functions: Rows
    enums: Rows
    foreign_keys: Rows
    keys: Rows


def read(url: str) -> Catalog:
    """Read the catalog of a database."""
    own = {"schema": "public", "relation": "schema_version"}
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        parts = [
            [row for row in connection.execute(statement).fetchall() if not own.items() <= row.items()]
            for statement in (_SCHEMAS, _RELATIONS, _COLUMNS, _FUNCTIONS, _ENUMS, _FOREIGN_KEYS, _KEYS)
        ]
    return Catalog(*parts)


def uncommented(catalog: Catalog) -> list[str]:
    """Schemas, tables, views, columns of tables and functions that do not say what they are."""
    found = [f"schema {row['schema']}" for row in catalog.schemas if not row["comment"] and row["schema"] != "public"]
    found += [f"{row['schema']}.{row['relation']}" for row in catalog.relations if not row["comment"]]
    found += [
        f"{row['schema']}.{row['relation']}.{row['name']}"
        for row in catalog.columns
        if row["kind"] in "rp" and not row["comment"]
    ]
    found += [f"function {row['schema']}.{row['name']}" for row in catalog.functions if not row["comment"]]
    return [f"{name} has no comment" for name in found]


def wrong_types(catalog: Catalog) -> list[str]:
    """ENUM types, moments without zone or exact precision, and numbers that are not exact."""
    found = [f"{row['name']} is an ENUM: its values cannot be changed in one step" for row in catalog.enums]
    for row in catalog.columns:
        name, kind = f"{row['schema']}.{row['relation']}.{row['name']}", row["type"]
        if row["kind"] not in "rp":
            continue
        if kind.startswith("timestamp") and kind != "timestamp(6) with time zone":
            found.append(f"{name} is {kind}, not timestamptz(6)")
        if kind in ("real", "double precision", "money") or kind.startswith(("time without", "time with")):
            found.append(f"{name} is {kind}: numbers are exact and moments have a date")
    return found


def crossing_keys(catalog: Catalog) -> list[str]:
    """Foreign keys from one schema into another."""
    return [f"{row['child']} refers to {row['parent']} in another schema" for row in catalog.foreign_keys]


def _written(column_type: str, precision: tuple[int, int] | None) -> str:
    if column_type == "timestamptz":
        return "timestamp(6) with time zone"
    return f"numeric({precision[0]},{precision[1]})" if precision else column_type


def undeclared(catalog: Catalog, tables: Iterable[Table]) -> list[str]:
    """Differences between the declared tables and the database, in both directions."""
    tables = list(tables)
    found = []
    for table in tables:
        for suffix in ("", "_history"):
            found += _differences(catalog, table, suffix)
    known = QUEUES | {f"{table.qualified}{suffix}" for table in tables for suffix in ("", "_history")}
    found += [
        f"{row['schema']}.{row['relation']} is declared by no source"
        for row in catalog.relations
        if row["kind"] in "rp" and row["schema"] in DATA_SCHEMAS and f"{row['schema']}.{row['relation']}" not in known
    ]
    return found


def _differences(catalog: Catalog, table: Table, suffix: str) -> list[str]:
    name = f"{table.qualified}{suffix}"
    place = {"schema": table.schema, "relation": f"{table.name}{suffix}"}
    columns = {row["name"]: row for row in catalog.columns if place.items() <= row.items()}
    if not columns:
        return [f"{name} is declared and does not exist"]
    declared = (*table.columns, *(() if suffix else table.kept))
    wanted = {each.name: (_written(each.type, each.precision), not each.nullable) for each in declared}
    wanted |= ENGINE_COLUMNS | (HISTORY_COLUMNS if suffix else {})
    found = [f"{name}.{column} is in the database and not declared" for column in columns if column not in wanted]
    found += [f"{name}.{column} is declared and not in the database" for column in wanted if column not in columns]
    for column in (each for each in wanted if each in columns):
        there = (columns[column]["type"], columns[column]["required"])
        if there != wanted[column]:
            found.append(f"{name}.{column} is {there} in the database and {wanted[column]} as declared")
    if suffix:
        return found
    found += [
        f"{name}.{each.name} has the comment {columns[each.name]['comment']!r}, declared is {each.comment!r}"
        for each in declared
        if each.name in columns and columns[each.name]["comment"] != each.comment
    ]
    relation = next(row for row in catalog.relations if place.items() <= row.items())
    if relation["comment"] != table.comment:
        found.append(f"{name} has the comment {relation['comment']!r}, declared is {table.comment!r}")
    keys = [row["columns"] for row in catalog.keys if place.items() <= row.items()]
    if keys != [list(table.key)]:
        found.append(f"{name} has the primary key {keys}, declared is {list(table.key)}")
    return found
