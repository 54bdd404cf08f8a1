"""Merging: from the stage into the table, writing only what is new or differs.

Promises: applying the same rows again writes nothing; a row is replaced only by a greater (sent at, parser
version); what a unit's newer whole answer no longer gives is withdrawn; what was once right is in the history.
Two ways lead to the same tables: `newest` adds one asking that is newer than all before it, `rebuild` derives a
unit from all its askings, so that the order of applying does not matter. Never: no write without the table's lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from psycopg import sql

from include.contract import Stream, Table
from include.engine import stage
from include.engine.db import Connection, Row, query, template
from include.engine.stage import Names


@dataclass(frozen=True)
class Counts:
    """What an apply did to the tables, in rows; `tables` has what it wrote by table, where that is known."""

    read: int = 0
    new: int = 0
    changed: int = 0
    withdrawn: int = 0
    quarantined: int = 0
    unchanged: int = 0
    tables: Mapping[str, Counts] = field(default_factory=dict, compare=False)

    def __add__(self, other: Counts) -> Counts:
        """Add up, figure by figure."""
        figures = {name: getattr(self, name) + getattr(other, name) for name in _FIGURES}
        names = sorted({*self.tables, *other.tables})
        tables = {name: self.tables.get(name, Counts()) + other.tables.get(name, Counts()) for name in names}
        return Counts(**figures, tables=tables)

    def of(self, table: Table) -> Counts:
        """The same, said of a table."""
        return replace(self, tables={table.qualified: replace(self, tables={})})

    def without(self, other: Counts) -> Counts:
        """The same where what the other wrote stands as it should already, but was no row that stayed as it was."""
        tables = {name: Counts(unchanged=-each.touched) for name, each in other.tables.items()}
        return self + Counts(unchanged=-other.touched, tables=tables)

    @property
    def touched(self) -> int:
        """Rows that were really written or taken away."""
        return self.new + self.changed + self.withdrawn


_FIGURES = [each.name for each in fields(Counts) if each.name != "tables"]


def lock(connection: Connection, table: Table) -> None:
    """Take the lock of a table, or of its month, for the transaction; in the order of names everywhere."""
    name = f"{table.qualified}/{table.month}" if table.month else table.qualified
    connection.execute(template("merge.lock"), {"name": name})


def newest(connection: Connection, stream: Stream, table: Table, cycle_id: int, attempt: int) -> Counts:
    """Merge the stage where each of its askings is newer than all that were applied before."""
    run = _runner(connection, "merge", Names(table).parts, _values(stream, cycle_id, attempt))
    is_fresh = run("is_fresh")["is_fresh"]
    found, partitions = _merge(run, is_fresh=is_fresh)
    if not is_fresh:
        withdrawn = run("withdraw")
        found += Counts(withdrawn=withdrawn["withdrawn"])
        partitions += withdrawn["partitions"] or []
    mark_stale(connection, table, partitions)
    return found


def newest_part(
    connection: Connection, stream: Stream, table: Table, cycle_id: int, attempt: int, number: int, rows: int
) -> Counts:
    """Merge one part of the stage, of so many rows; what the unit no longer gives is for `newest` to take away."""
    with stage.part(connection, table, number, rows) as parts:
        run = _runner(connection, "merge", parts, _values(stream, cycle_id, attempt))
        found, partitions = _merge(run, is_fresh=run("is_fresh")["is_fresh"])
    mark_stale(connection, table, partitions)
    return found


def _merge(run: Any, *, is_fresh: bool) -> tuple[Counts, list[str | None]]:
    """Write what is new or differs; return how many rows that were, and the parts of the table that they are in.

    `is_fresh`: the table has no row of the units.
    """
    new, partitions = 0, list[str | None]()
    if is_fresh:
        # Mostly all of it is new: it is written at once, and only what was not is compared.
        added = run("add")
        new, partitions = added["new"], added["partitions"] or []
        if new == added["staged"]:
            return Counts(new=new), partitions
    found = run("differences")
    if found["changed"]:
        run("end_changed")
    if found["new"] or found["changed"]:
        run("merge")
    return Counts(new=new + found["new"], changed=found["changed"]), [*partitions, *(found["partitions"] or ())]


def chain(connection: Connection, table: Table, *, is_of_several: bool) -> None:
    """Derive the versions that the staged askings make; they are in no table yet.

    `is_of_several`: more than one unit is staged, so that a key may stand in several.
    """
    run = _runner(connection, "history", Names(table).parts, {})
    stage.analyze(connection, table)
    run("chain")
    if is_of_several:
        run("keep_greatest")


def rebuild(connection: Connection, stream: Stream, table: Table, cycle_id: int, attempt: int) -> Counts:
    """Make the tables what the chain of all askings of the staged units, read by this parser, says they are."""
    run = _runner(connection, "history", Names(table).parts, _values(stream, cycle_id, attempt))
    partitions = run("partitions")["partitions"]
    unchanged = run("count_unchanged")["unchanged"]
    run("end_by_parser")
    run("drop_history")
    run("hand_over")
    run("add_history")
    withdrawn = run("withdraw")
    merged = run("merge")
    run("drop_chain")
    mark_stale(connection, table, partitions or [])
    return Counts(new=merged["new"], changed=merged["changed"], withdrawn=withdrawn["withdrawn"], unchanged=unchanged)


def number(connection: Connection, table: Table, rows: int) -> int:
    """Cut the chain into parts of about so many rows and return how many there are."""
    parts = Names(table).parts
    # All versions of a key stay together, so that a part may be a little larger than asked for.
    run = _runner(connection, "history", {**parts, "rows": sql.Literal(max(rows * 9 // 10, 1))}, {})
    run("number")
    return int(run("number_of_parts")["parts"])


def rebuild_part(
    connection: Connection, stream: Stream, table: Table, cycle_id: int, attempt: int, number: int
) -> Counts:
    """Write one part of the chain; what no asking gives any more is for `rebuild` to take away."""
    parts = Names(table).parts
    of_part = {
        "chain": parts["part"],
        "t_of_part": template("history.of_part", chain=parts["part"], same=parts["p_same_t"]),
        "h_of_part": template("history.of_part", chain=parts["part"], same=parts["p_same_h"]),
        "number": sql.Literal(number),
    }
    run = _runner(connection, "history", {**parts, **of_part}, _values(stream, cycle_id, attempt))
    run("part", {})
    partitions = run("partitions_of_part")["partitions"]
    run("end_by_parser")
    run("drop_history")
    run("hand_over")
    run("add_history")
    merged = run("merge")
    run("drop_part")
    mark_stale(connection, table, partitions or [])
    return Counts(new=merged["new"], changed=merged["changed"])


def drop_numbered(connection: Connection, table: Table) -> None:
    """Drop what `number` made."""
    connection.execute(template("history.drop_numbered", numbered=Names(table).parts["numbered"]))


def _values(stream: Stream, cycle_id: int, attempt: int) -> dict[str, Any]:
    return {"parser_version": stream.parser_version, "cycle": cycle_id, "attempt": attempt}


def _runner(connection: Connection, file: str, parts: Mapping[str, sql.Composable], values: Mapping[str, Any]) -> Any:
    def run(name: str, given: Mapping[str, Any] = values) -> Row:
        # A statement that makes a table takes no parameters from the client.
        cursor = connection.execute(template(f"{file}.{name}", **parts), given or None)
        return (cursor.fetchone() if cursor.description else None) or {}

    return run


def mark_stale(connection: Connection, table: Table, partitions: Sequence[str | None]) -> None:
    """Note which parts of a table changed, for the files that are built from it."""
    known = sorted({partition for partition in partitions if partition is not None})
    if known and table.is_published and not table.is_copy:
        connection.execute(template("merge.mark_stale"), {"table": table.qualified, "partitions": known})


def supersede_quarantine(
    connection: Connection, stream: Stream, readings: Sequence[stage.Reading], cycle_id: int
) -> None:
    """Close open entries that an older parser put for askings that were now read again."""
    connection.execute(
        query("quarantine.superseded"),
        {
            "stream": stream.name,
            "units": [reading.unit for reading in readings],
            "fetches": [reading.fetch_id for reading in readings],
            "parser_version": stream.parser_version,
            "cycle": cycle_id,
        },
    )


def resolve_quarantine(connection: Connection, stream: Stream, units: list[str], fetch_id: int, cycle_id: int) -> None:
    """Close open quarantine entries of units that were now read without objection."""
    connection.execute(
        query("quarantine.resolve_by_reading"),
        {
            "stream": stream.name,
            "units": units,
            "fetch": fetch_id,
            "parser_version": stream.parser_version,
            "cycle": cycle_id,
            "why": "a newer answer or a newer parser reads it without objection",
        },
    )
