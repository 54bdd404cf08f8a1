"""A replay beside the tables: the same units read again into copies that nothing else reads.

Promises: the copies have the originals' shape and are named after the run; the originals, their quarantine and
the published files are not touched. Never: a copy is dropped here; that is the operator's choice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from psycopg import sql

from include.contract import Parsed, Stream, Table, Unit
from include.engine.db import template, transaction


def copy_of(table: Table, run_id: str) -> Table:
    """Return the declaration of a table's copy for one run."""
    digest = hashlib.sha256(run_id.encode()).hexdigest()[:8]
    return replace(table, name=f"{table.name}__{digest}", is_copy=True, months="together")


def stream_into_copies(stream: Stream, run_id: str) -> Stream:
    """Return the stream with its tables, and what its parser gives, pointed at the copies of one run."""
    copies: Mapping[str, Table] = {table.qualified: copy_of(table, run_id) for table in stream.tables}

    def parse(unit: Unit) -> Parsed:
        parsed = stream.parse(unit)
        return replace(
            parsed, batches=tuple(replace(batch, table=copies[batch.table.qualified]) for batch in parsed.batches)
        )

    return replace(stream, tables=tuple(copies.values()), parse=parse)


def create(url: str, stream: Stream, run_id: str) -> list[str]:
    """Make the copies of a stream's tables and their histories where they are missing; return the tables' names."""
    with transaction(url, application="daybook replay") as connection:
        for table in stream.tables:
            copy = copy_of(table, run_id)
            for suffix in ("", "_history"):
                made, original = (sql.Identifier(table.schema, f"{name}{suffix}") for name in (copy.name, table.name))
                connection.execute(template("versioned.create", copy=made, original=original))
                text = sql.Literal(f"Copy of {table.qualified}{suffix} as replay {run_id} reads it; drop it when done")
                connection.execute(template("versioned.describe", copy=made, text=text))
    return [copy_of(table, run_id).qualified for table in stream.tables]
