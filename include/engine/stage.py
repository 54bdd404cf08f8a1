"""Staging: rows as they were read, checked against the table's rules before they can touch it.

Promises: rows are copied in as they were read and checked set by set; a row that breaks a rule goes to quarantine
with the rule's name and spoils its unit's claim to be whole. Never: a bad row is not repaired, and a stage never
outlives its transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from include.contract import Parsed, Stream, Table
from include.engine.db import Connection, query, template

# The types of the engine's own staged columns for the binary copy.
_ENGINE_TYPES = ("text", "int8", "timestamptz", "jsonb", "date", "int4")


@dataclass(frozen=True)
class Reading:
    """One asking of a unit as read: what it gave, or why it could not be read.

    `is_lost` says that the stored bytes are damaged or gone, so that nobody can say what the answer was.
    """

    unit: str
    session_date: date | None
    fetch_ids: tuple[int, ...]
    sent_at: datetime
    parsed: Parsed | None
    error: str | None = None
    is_lost: bool = False

    @property
    def fetch_id(self) -> int:
        """The fetch that rows of this reading point to: the last page."""
        return self.fetch_ids[-1]

    def rows(self, table: Table) -> Iterator[tuple[Any, ...]]:
        """Return the rows for one table."""
        for batch in self.parsed.batches if self.parsed else ():
            if batch.table.qualified == table.qualified:
                yield from batch.rows

    @property
    def is_whole(self) -> bool:
        """Whether every row of the answer could be read, so that what is not there is really gone."""
        return self.parsed is not None and not self.parsed.rejected


@dataclass(frozen=True)
class Names:
    """The composed names of a table, its history and its stage, as the templates use them."""

    table: Table

    def __post_init__(self) -> None:
        if len(self.table.name) > 40:
            raise ValueError(f"{self.table.qualified}: a table's name has at most 40 characters.")

    @property
    def parts(self) -> dict[str, sql.Composable]:
        """All placeholders of the stage and merge templates; composed once for a table."""
        return _parts(self)

    def partition(self, row: str, column: str | None = None) -> sql.Composable:
        """The part of the table that a row is in, by its session date or the column that holds one."""
        if self.table.session_date is None:
            return template("merge.partition_all")
        return template(
            "merge.partition_month", row=sql.Identifier(row), column=sql.Identifier(column or self.table.session_date)
        )


@lru_cache(maxsize=64)
def _parts(names: Names) -> dict[str, sql.Composable]:
    table = names.table
    values = tuple(name for name in table.column_names if name not in table.key)
    return {
        "target": sql.Identifier(table.schema, table.name),
        "history": sql.Identifier(table.schema, f"{table.name}_history"),
        "stage": sql.Identifier("pg_temp", f"stage_{table.name}"),
        "units": sql.Identifier("pg_temp", f"units_{table.name}"),
        "chain": sql.Identifier("pg_temp", f"chain_{table.name}"),
        "columns": _list(table.column_names),
        "key": _list(table.key),
        "key_of_s": _list(table.key, "s"),
        "key_of_r": _list(table.key, "r"),
        "assignments": sql.SQL(", ").join(
            sql.SQL("{} = excluded.{}").format(sql.Identifier(name), sql.Identifier(name))
            for name in values or table.key[-1:]
        ),
        "s_assignments": sql.SQL(", ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Identifier("s", name))
            for name in values or table.key[-1:]
        ),
        "same_key": _same(table.key, "t", "s"),
        "c_same_key": _same(table.key, "t", "c"),
        "h_same_key": _same(table.key, "h", "c"),
        "k_same_key": _same(table.key, "k", "s"),
        **{f"{row}_columns": _list(table.column_names, row) for row in "tsgcvh"},
        **{f"{row}_values": _list(values or table.key[-1:], row) for row in "tsgch"},
        **{f"{row}_key": _list(table.key, row) for row in "skgv"},
        **{f"{row}_partition": names.partition(row) for row in "gtc"},
        "s_day": sql.Identifier("s", table.session_date) if table.session_date else sql.NULL,
        "day_partition": names.partition("g", "day"),
    }


def _list(names: Sequence[str], row: str | None = None) -> sql.Composable:
    return sql.SQL(", ").join(sql.Identifier(row, name) if row else sql.Identifier(name) for name in names)


def _same(key: Sequence[str], left: str, right: str) -> sql.Composable:
    return sql.SQL(" and ").join(
        sql.SQL("{} = {}").format(sql.Identifier(left, name), sql.Identifier(right, name)) for name in key
    )


def fill(connection: Connection, table: Table, readings: Sequence[Reading]) -> dict[int, int]:
    """Create the stage of a table, copy the readings' rows into it, and return how many each fetch gave."""
    parts, withdraws = Names(table).parts, table.replaces == "unit"
    connection.execute(template("stage.create", **_only(parts, "stage", "columns", "target")))
    connection.execute(template("stage.create_units", units=parts["units"]))
    with connection.cursor().copy(template("stage.copy_units", units=parts["units"])) as copy:
        copy.set_types(["text", "int8", "timestamptz", "date", "bool"])
        for reading in readings:
            copy.write_row(
                (
                    reading.unit,
                    reading.fetch_id,
                    reading.sent_at,
                    reading.session_date,
                    withdraws and reading.is_whole,
                )
            )
    connection.execute(template("stage.analyze_units", units=parts["units"]))
    counts, width = {reading.fetch_id: 0 for reading in readings}, len(table.columns)
    with connection.cursor().copy(template("stage.copy", **_only(parts, "stage", "columns"))) as copy:
        copy.set_types([*(_copy_type(column.type) for column in table.columns), *_ENGINE_TYPES])
        for reading in readings:
            unit, fetch_id, sent_at, session = reading.unit, reading.fetch_id, reading.sent_at, reading.session_date
            for position, row in enumerate(reading.rows(table), start=1):
                extra = Jsonb(row[width]) if len(row) > width and row[width] is not None else None
                copy.write_row((*row[:width], unit, fetch_id, sent_at, extra, session, position))
                counts[fetch_id] = position
    return counts


def analyze(connection: Connection, table: Table) -> None:
    """Tell the planner what is in a table's stage."""
    connection.execute(template("stage.analyze", stage=Names(table).parts["stage"]))


def _copy_type(declared: str) -> str:
    return {"integer": "int4", "bigint": "int8", "smallint": "int2", "boolean": "bool"}.get(declared, declared)


def _only(parts: dict[str, sql.Composable], *names: str) -> dict[str, sql.Composable]:
    return {name: parts[name] for name in names}


def check(connection: Connection, stream: Stream, table: Table, cycle_id: int) -> tuple[int, set[int]]:
    """Take staged rows that break a rule out and put them to quarantine.

    Returns:
        How many were not there before, and the fetches that have such rows.
    """
    parts = Names(table).parts
    rules: list[tuple[str, sql.Composable]] = [
        (f"{column.name} is there", template("stage.rule_not_null", column=sql.Identifier(column.name)))
        for column in table.columns
        if not column.nullable
    ]
    for rule in table.rules:
        columns = {"column": sql.Identifier(rule.columns[0])}
        if rule.kind == "at_most":
            columns["other"] = sql.Identifier(rule.columns[1])
        rules.append((rule.name, template(f"stage.rule_{rule.kind}", **columns)))
    look = template(
        "stage.is_broken",
        condition=sql.SQL(" or ").join(condition for _, condition in rules) or sql.Literal(False),
        **_only(parts, "stage", "key_of_s"),
    )
    found = connection.execute(look).fetchone()
    if found is None or not found["is_broken"]:
        return 0, set()
    repeated = template("stage.rule_repeated", **_only(parts, "stage", "key_of_s", "key_of_r"))
    put, broken = 0, set[int]()
    for name, condition in [*rules, ("the key stands once in an answer", repeated)]:
        rejected = connection.execute(
            template("stage.reject", condition=condition, **_only(parts, "stage", "units")),
            {
                "stream": stream.name,
                "cycle": cycle_id,
                "rule": name,
                "reason": f"the row breaks the rule: {name}",
                "parser_version": stream.parser_version,
                "is_copy": table.is_copy,
            },
        ).fetchone()
        assert rejected is not None
        put += rejected["put"]
        broken.update(rejected["fetches"] or ())
    return put, broken


def quarantine_rejected(connection: Connection, stream: Stream, readings: Sequence[Reading], cycle_id: int) -> int:
    """Put units that could not be read, and rows that a parser refused, to quarantine; return how many are new."""
    entries: list[tuple[Reading, str, str | None, str, str, str | None]] = []
    for reading in readings:
        if reading.error is not None:
            entries.append((reading, "unit", None, "storage" if reading.is_lost else "parse", reading.error, None))
        for row in reading.parsed.rejected if reading.parsed else ():
            entries.append((reading, "row", row.position, "parse", row.reason, row.text))
    put = 0
    for reading, scope, position, rule, reason, content in entries:
        put += connection.execute(
            query("quarantine.put"),
            {
                "stream": stream.name,
                "unit": reading.unit,
                "fetch": reading.fetch_id,
                "cycle": cycle_id,
                "scope": scope,
                "position": position,
                "rule": rule,
                "reason": reason,
                "content": content,
                "parser_version": stream.parser_version,
            },
        ).rowcount
    return put


def drop(connection: Connection, table: Table) -> None:
    """Drop a table's stage."""
    parts = Names(table).parts
    connection.execute(template("stage.drop", **_only(parts, "stage", "units")))
