"""Staging: rows as they were read, checked against the table's rules before they can touch it.

Promises: rows are copied in as they were read and checked set by set; a row that breaks a rule goes to quarantine
with the rule's name and spoils its unit's claim to be whole. Never: a bad row is not repaired, and a stage never
outlives its transaction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from include.contract import Batch, Parsed, ParseError, Stream, Table
from include.engine.db import Connection, query, template, told
from include.engine.raw import RawObjectDamaged, RawObjectMissing

# One transaction writes at most this many rows.
MOST_ROWS = 50_000
# Between two looks at how many there are, and at the lease.
BEAT_ROWS = 5_000

# The types of the engine's own staged columns for the binary copy.
_ENGINE_TYPES = ("text", "int8", "timestamptz", "jsonb", "date", "int4")
# Where the server says which row of a copy it does not take, in whatever language.
_PLACE = re.compile(r"COPY [^,]+, \D*(?P<row>[0-9]+)")


class TooManyRows(Exception):
    """More rows than one transaction writes: they must be applied in parts."""


class RowsUnreadable(Exception):
    """An asking cannot be read, which showed only while its rows came."""

    def __init__(self, fetch_id: int, reason: str, is_lost: bool) -> None:
        super().__init__(reason)
        self.fetch_id, self.reason, self.is_lost = fetch_id, reason, is_lost


def refusal_of(error: Exception) -> tuple[str, bool]:
    """Return why a parser gave no rows, at most 2,000 characters, and whether the stored bytes are lost."""
    is_lost = isinstance(error, (RawObjectDamaged, RawObjectMissing))
    known = is_lost or isinstance(error, ParseError)
    text = str(error) if known else f"the parser failed with {type(error).__name__}: {error}"
    return told(text[:2000]), is_lost


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
        """Return the rows for one table.

        Raises:
            RowsUnreadable: the parser refused the unit, or failed, while it gave its rows.
            OSError: the raw store cannot be read right now.
        """
        for batch in self.parsed.batches if self.parsed else ():
            if batch.table.qualified == table.qualified:
                try:
                    yield from batch.rows
                except OSError:
                    raise
                except Exception as refusal:
                    raise RowsUnreadable(self.fetch_id, *refusal_of(refusal)) from refusal

    @property
    def is_whole(self) -> bool:
        """Whether all of the unit was asked for and every row could be read, so that what is not there is gone."""
        return self.parsed is not None and not self.parsed.rejected and not self.parsed.is_part


@dataclass(frozen=True)
class Names:
    """The composed names of a table, its history and its stage, as the templates use them."""

    table: Table

    def __post_init__(self) -> None:
        if len(self.table.name) > 40:
            raise ValueError(f"{self.table.qualified}: a table's name has at most 40 characters.")
        version = self.table.version
        if version is not None and not any(c.name == version and not c.nullable for c in self.table.columns):
            raise ValueError(f"{self.table.qualified}: the version must be one of its columns and never null.")

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
    order = (*((table.version,) if table.version else ()), "sent_at")
    is_apart = table.months == "apart" and table.month != ""
    return {
        "target": sql.Identifier(table.schema, f"{table.name}_{table.month}" if is_apart else table.name),
        "history": sql.Identifier(table.schema, f"{table.name}_history"),
        "stage": sql.Identifier("pg_temp", f"stage_{table.name}"),
        "units": sql.Identifier("pg_temp", f"units_{table.name}"),
        "chain": sql.Identifier("pg_temp", f"chain_{table.name}"),
        "numbered": sql.Identifier("pg_temp", f"numbered_{table.name}"),
        "part": sql.Identifier("pg_temp", f"part_{table.name}"),
        "t_of_part": template("history.of_whole"),
        "h_of_part": template("history.of_whole"),
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
        "p_same_t": _same(table.key, "p", "t"),
        "d_same_t": _same(table.key, "d", "t"),
        "p_same_h": _same(table.key, "p", "h"),
        **{f"{row}_columns": _list(table.column_names, row) for row in "tsgcvh"},
        **{f"{row}_values": _list(values or table.key[-1:], row) for row in "tsgchd"},
        **{f"{row}_key": _list(table.key, row) for row in "skgvcd"},
        **{f"{row}_partition": names.partition(row) for row in "gtc"},
        **{f"{row}_day": sql.Identifier(row, table.session_date) if table.session_date else sql.NULL for row in "st"},
        "returned_day": sql.Identifier(table.session_date) if table.session_date else sql.NULL,
        "day_partition": names.partition("g", "day"),
        "old_day_partition": names.partition("g", "old_day"),
        **{f"{row}_order": _list(order, row) for row in "stcr"},
        "is_overtaking": template(
            "history.is_overtaking", s_version=sql.Identifier("s", table.version), k_key=_list(table.key, "k")
        )
        if table.version
        else template("history.is_always_overtaking"),
    }


def _list(names: Sequence[str], row: str | None = None) -> sql.Composable:
    return sql.SQL(", ").join(sql.Identifier(row, name) if row else sql.Identifier(name) for name in names)


def _same(key: Sequence[str], left: str, right: str) -> sql.Composable:
    return sql.SQL(" and ").join(
        sql.SQL("{} = {}").format(sql.Identifier(left, name), sql.Identifier(right, name)) for name in key
    )


def hold(readings: Iterable[Reading], tables: Sequence[Table], most: int) -> list[Reading]:
    """Read the rows of readings to their end, so that no stored answer is opened once something is locked.

    Raises:
        TooManyRows: there are more than `most`.
        RowsUnreadable: the parser refused a unit while it gave its rows.
    """
    held, left = list[Reading](), most
    for reading in readings:
        batches = []
        for table in sorted(tables, key=lambda table: table.qualified) if reading.parsed else ():
            rows = list(islice(reading.rows(table), left + 1))
            left -= len(rows)
            if left < 0:
                raise TooManyRows
            batches.append(Batch(table, rows))
        parsed = replace(reading.parsed, batches=tuple(batches)) if reading.parsed else None
        held.append(replace(reading, parsed=parsed))
    return held


def fill(
    connection: Connection,
    table: Table,
    readings: Sequence[Reading],
    *,
    beat: Callable[[], None] = lambda: None,
) -> dict[int, int]:
    """Create the stage of a table, copy the readings' rows into it, and return how many each fetch gave.

    Rows are copied as they come. Unless they are held already (see `hold`), stored answers are opened meanwhile: then
    nothing may be locked, as a raw store may be slow.

    Args:
        connection: inside a transaction.
        table: what the rows are for.
        readings: what was read.
        beat: called every so often while rows come.

    Raises:
        RowsUnreadable: the parser refused a unit while it gave its rows, or a row holds what no column can.
    """
    parts, withdraws = Names(table).parts, table.replaces == "unit"
    connection.execute(template("stage.create", **_only(parts, "stage", "columns", "target")))
    connection.execute(template("stage.create_units", units=parts["units"]))
    counts, width = {reading.fetch_id: 0 for reading in readings}, len(table.columns)
    try:
        with connection.cursor().copy(template("stage.copy", **_only(parts, "stage", "columns"))) as copy:
            copy.set_types([*(_copy_type(column.type) for column in table.columns), *_ENGINE_TYPES])
            for reading in readings:
                unit, fetch_id, sent_at, session = reading.unit, reading.fetch_id, reading.sent_at, reading.session_date
                position = 0
                for position, row in enumerate(reading.rows(table), start=1):
                    extra = None
                    if len(row) > width:
                        row, extra = row[:width], None if row[width] is None else Jsonb(row[width])
                    try:
                        copy.write_row((*row, unit, fetch_id, sent_at, extra, session, position))
                    except (psycopg.DataError, ArithmeticError, TypeError, ValueError, AttributeError) as no:
                        raise _not_kept(table, reading, position, no) from no
                    if position % BEAT_ROWS == 0:
                        beat()
                counts[fetch_id] = position
    except psycopg.DataError as no:
        raise _refused_by_server(table, readings, counts, no) from no
    # After the rows: only now it is known whether all of them could be read.
    with connection.cursor().copy(template("stage.copy_units", units=parts["units"])) as copy:
        copy.set_types(["text", "int8", "timestamptz", "date", "bool"])
        for reading in readings:
            is_whole = withdraws and reading.is_whole
            copy.write_row((reading.unit, reading.fetch_id, reading.sent_at, reading.session_date, is_whole))
    connection.execute(template("stage.analyze_units", units=parts["units"]))
    return counts


def _not_kept(table: Table, reading: Reading, position: int, no: Exception) -> RowsUnreadable:
    """A row with a value that no column can hold refuses its answer: asked for again, the same answer fails alike."""
    why = told(str(no).partition("\n")[0])
    return RowsUnreadable(
        reading.fetch_id, f"row {position} for {table.qualified} holds a value that cannot be kept: {why}", False
    )


def _refused_by_server(
    table: Table, readings: Sequence[Reading], counts: dict[int, int], no: psycopg.DataError
) -> Exception:
    """The same where only the server finds it, which names the row by its place among all; else what it said."""
    place = _PLACE.search(no.diag.context or "")
    left = int(place["row"]) if place else 0
    for reading in readings:
        given = counts[reading.fetch_id]
        if 0 < left <= given:
            return _not_kept(table, reading, left, no)
        left -= given
    return no


def take_for_parts(connection: Connection, table: Table, fetch_ids: Sequence[int]) -> None:
    """Take askings for parts of their units: what they do not give is not gone because of them."""
    units = Names(table).parts["units"]
    connection.execute(template("stage.take_for_parts", units=units), {"fetches": list(fetch_ids)})


@dataclass(frozen=True)
class Missing:
    """How many staged rows there are, and how many of them have nothing in a column."""

    rows: int
    missing: int


def missing(connection: Connection, table: Table, column: str) -> Missing:
    """Count the staged rows that have nothing in a column."""
    look = template("stage.missing", stage=Names(table).parts["stage"], column=sql.Identifier(column))
    row = connection.execute(look).fetchone()
    assert row is not None
    return Missing(row["rows"], row["missing"])


def analyze(connection: Connection, table: Table) -> None:
    """Tell the planner what is in a table's stage."""
    connection.execute(template("stage.analyze", stage=Names(table).parts["stage"]))


def _copy_type(declared: str) -> str:
    return {"integer": "int4", "bigint": "int8", "smallint": "int2", "boolean": "bool"}.get(declared, declared)


def _only(parts: dict[str, sql.Composable], *names: str) -> dict[str, sql.Composable]:
    return {name: parts[name] for name in names}


def check(
    connection: Connection, stream: Stream, table: Table, cycle_id: int, *, is_rebuild: bool
) -> tuple[int, set[int]]:
    """Take staged rows that break a rule out and put them to quarantine.

    Of rows that several units give for one key the greatest stays; a rebuild needs all askings and decides later.

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
        once=sql.SQL(", ").join([sql.Identifier("s", "fetch_id"), parts["key_of_s"]])
        if is_rebuild
        else parts["key_of_s"],
        stage=parts["stage"],
    )
    found = connection.execute(look).fetchone()
    assert found is not None
    if not found["is_broken"] and not found["is_repeated"]:
        return 0, set()
    repeated = template("stage.rule_repeated", **_only(parts, "stage", "key_of_s", "key_of_r"))
    put, broken = 0, set[int]()
    checks = rules if found["is_broken"] else []
    if found["is_repeated"]:
        checks = [*checks, ("the key stands once in an answer", repeated)]
    for name, condition in checks:
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
    if found["is_repeated"] and not is_rebuild:
        connection.execute(template("stage.keep_greatest", **_only(parts, "stage", "key_of_r", "r_order")))
    return put, broken


def quarantine_rejected(connection: Connection, stream: Stream, readings: Sequence[Reading], cycle_id: int) -> int:
    """Put units that could not be read, and rows that a parser refused, to quarantine; return how many are new."""
    entries: list[tuple[Reading, str, str | None, str, str, str | None]] = []
    for reading in readings:
        if reading.error is not None:
            entries.append((reading, "unit", None, "storage" if reading.is_lost else "parse", reading.error, None))
        for row in reading.parsed.rejected if reading.parsed else ():
            entries.append((reading, "row", told(row.position), "parse", told(row.reason), told(row.text)))
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


@contextmanager
def part(connection: Connection, table: Table, number: int, rows: int) -> Iterator[dict[str, sql.Composable]]:
    """Cut a part of so many rows out of the stage of one asking; yields the names with the part as their stage."""
    parts = Names(table).parts
    bounds = {"after": sql.Literal(number * rows), "upto": sql.Literal((number + 1) * rows)}
    connection.execute(template("stage.part", **_only(parts, "part", "stage"), **bounds))
    yield {**parts, "stage": parts["part"]}
    connection.execute(template("stage.drop_part", part=parts["part"]))


def drop(connection: Connection, table: Table) -> None:
    """Drop a table's stage."""
    parts = Names(table).parts
    connection.execute(template("stage.drop", **_only(parts, "stage", "units")))
