"""Merging: from the stage into the table, writing only what is new or differs.

Promises: applying the same rows again writes nothing; a row is replaced only by a greater (sent at, parser
version); what a unit's newer whole answer no longer gives is withdrawn; what was once right is in the history.
Two ways lead to the same tables: `newest` adds one asking that is newer than all before it, `rebuild` derives a
unit from all its askings, so that the order of applying does not matter. Never: no write without the table's lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from include.contract import Stream, Table
from include.engine import stage
from include.engine.db import Connection, Row, query, template
from include.engine.stage import Names


@dataclass(frozen=True)
class Counts:
    """What an apply did to the tables, in rows."""

    read: int = 0
    new: int = 0
    changed: int = 0
    withdrawn: int = 0
    quarantined: int = 0
    unchanged: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Add up, figure by figure."""
        return Counts(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def touched(self) -> int:
        """Rows that were really written or taken away."""
        return self.new + self.changed + self.withdrawn


def lock(connection: Connection, table: Table) -> None:
    """Take the table's lock for the transaction; tables are locked in name order everywhere."""
    connection.execute(template("merge.lock"), {"name": table.qualified})


def newest(connection: Connection, stream: Stream, table: Table, cycle_id: int, attempt: int) -> Counts:
    """Merge the stage where each of its askings is newer than all that were applied before."""
    parts = Names(table).parts
    values = {"parser_version": stream.parser_version, "cycle": cycle_id, "attempt": attempt}
    run = _runner(connection, "merge", parts, values)
    found = run("differences")
    if found["changed"]:
        run("end_changed")
    withdrawn = run("withdraw")
    if found["new"] or found["changed"]:
        run("merge")
    _mark_stale(connection, table, [*(withdrawn["partitions"] or ()), *(found["partitions"] or ())])
    return Counts(new=found["new"], changed=found["changed"], withdrawn=withdrawn["withdrawn"])


def rebuild(connection: Connection, stream: Stream, table: Table, cycle_id: int, attempt: int) -> Counts:
    """Make the tables what all askings of the staged units, read by this parser, say they are."""
    parts = Names(table).parts
    values = {"parser_version": stream.parser_version, "cycle": cycle_id, "attempt": attempt}
    run = _runner(connection, "history", parts, values)
    stage.analyze(connection, table)
    run("chain")
    partitions = run("partitions")["partitions"]
    unchanged = run("count_unchanged")["unchanged"]
    run("end_by_parser")
    run("drop_history")
    run("add_history")
    withdrawn = run("withdraw")
    merged = run("merge")
    run("drop_chain")
    _mark_stale(connection, table, partitions or [])
    return Counts(new=merged["new"], changed=merged["changed"], withdrawn=withdrawn["withdrawn"], unchanged=unchanged)


def _runner(connection: Connection, file: str, parts: Mapping[str, sql.Composable], values: Mapping[str, Any]) -> Any:
    def run(name: str) -> Row:
        cursor = connection.execute(template(f"{file}.{name}", **parts), values)
        return (cursor.fetchone() if cursor.description else None) or {}

    return run


def _mark_stale(connection: Connection, table: Table, partitions: list[str]) -> None:
    if partitions and not table.is_copy:
        connection.execute(
            template("merge.mark_stale"), {"table": table.qualified, "partitions": sorted(set(partitions))}
        )


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
