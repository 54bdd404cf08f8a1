"""What a stream asks about, where that is held in a table of its source: symbols of a list of assets, companies.

Promises: the same order each time. Never: nothing is guessed where the table is empty; the source has its defaults.
"""

from __future__ import annotations

from psycopg import sql

from include.contract import Stream
from include.engine.db import Connection, query, template


def held(connection: Connection, stream: Stream) -> tuple[str, ...]:
    """Return what a stream asks about, as held now, in name order; nothing where it declares none.

    A stream that makes files is about the units that are held, the largest first.
    """
    if stream.making is not None and stream.making.gather is not None:
        return (stream.making.gather.unit,)
    if stream.making is not None:
        rows = connection.execute(query("making.held"), {"of": stream.making.of}).fetchall()
        return tuple(row["unit"] for row in rows)
    if stream.subjects is None:
        return ()
    declared = stream.subjects
    found = connection.execute(
        template(
            "subjects.held",
            table=sql.Identifier(declared.table.schema, declared.table.name),
            column=sql.Identifier(declared.column),
            flag=sql.Identifier(declared.flag),
        )
    ).fetchall()
    return tuple(row["subject"] for row in found)
