"""Doubts about a unit: an answer that gives far less than the one that was believed before it takes nothing away.

Promises: it is measured by the rows that answers gave, in the order of sending, live and in a rebuild alike; its rows
are written, what it lacks stays, and an entry in quarantine says so until an answer is whole again or an operator
accepts it. Never: a listing is judged here, whose items are the delta's matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from include.contract import Stream
from include.engine import incidents
from include.engine.db import Connection, query
from include.engine.delta import FEW
from include.engine.stage import Reading

FEWER_ROWS = "an answer gives as much as the one before"


@dataclass(frozen=True)
class Doubt:
    """A reading that is not believed, how many rows it gave, and how many the last one did that was."""

    reading: Reading
    rows: int
    trusted: int

    @property
    def reason(self) -> str:
        """Why, in words."""
        return f"it gives {self.rows:,} rows, and the last answer that was believed gave {self.trusted:,}"


def found(connection: Connection, stream: Stream, readings: Iterable[Reading], rows_of: dict[int, int]) -> list[Doubt]:
    """Return which readings are not believed, each unit's in the order of sending.

    Args:
        connection: inside the transaction that applies them.
        stream: whose they are.
        readings: those that give rows.
        rows_of: how many rows each fetch gave.
    """
    if stream.listing or not stream.least_share:
        return []
    doubts: list[Doubt] = []
    trusted: dict[str, int] = {}
    for reading in readings:
        rows, values = rows_of.get(reading.fetch_id, 0), {"stream": stream.name, "unit": reading.unit}
        if reading.unit not in trusted:
            before = connection.execute(
                query("quarantine.believed"), {**values, "sent_at": reading.sent_at, "rule": FEWER_ROWS}
            ).fetchone()
            trusted[reading.unit] = before["rows_read"] if before else 0
        measure = trusted[reading.unit]
        if measure - rows > FEW and rows < stream.least_share * measure:
            accepted = {**values, "fetch": reading.fetch_id, "rule": FEWER_ROWS}
            if connection.execute(query("quarantine.is_accepted"), accepted).fetchone() is None:
                doubts.append(Doubt(reading, rows, measure))
                continue
        trusted[reading.unit] = rows
    return doubts


def put_aside(connection: Connection, stream: Stream, cycle_id: int, doubts: Iterable[Doubt]) -> int:
    """Put doubts to quarantine, once, and tell those that are new; return how many these are."""
    put = 0
    for doubt in doubts:
        reading = doubt.reading
        entry = {
            "stream": stream.name,
            "unit": reading.unit,
            "fetch": reading.fetch_id,
            "cycle": cycle_id,
            "scope": "unit",
            "position": None,
            "rule": FEWER_ROWS,
            "reason": doubt.reason,
            "content": None,
            "parser_version": stream.parser_version,
        }
        if not connection.execute(query("quarantine.put"), entry).rowcount:
            continue
        put += 1
        incidents.open(
            connection,
            key=incidents.put_aside(stream.name, FEWER_ROWS),
            stream=stream.name,
            severity="error",
            text=f"{stream.name} {reading.unit}: {doubt.reason}. Its rows are kept, but nothing was taken away because "
            "of it. Accept the entry in quarantine if the answer is right; a later one of the usual size resolves it "
            "by itself.",
        )
    return put
