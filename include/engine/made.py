"""What was made and is not written down yet, and writing it down under the token.

Promises: rows say of a file what is in it, of which bytes and by which parser, once it bears its name; what could not
be read, or in part, is in quarantine in the same transaction, and leaves it when it is read without objection. Never: a
file is written here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from include.contract import CycleStatus, Made, Stream
from include.engine import alerts
from include.engine.db import Connection, Row, connect, query, told
from include.engine.files import Draft
from include.engine.lease import Lease
from include.engine.merge import Counts

# After how many files, or seconds, what was made is written down.
FLUSH_FILES, FLUSH_SECONDS = 50, 20.0
UNKNOWN = "The answers that have them are held unchanged; declare them, raise the parser's version, and replay."


@dataclass
class Batch:
    """What was made and is not written down yet."""

    made: list[tuple[Row, str, Draft, Made, bool]] = field(default_factory=list)
    refused: list[tuple[Row, str, str]] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)

    @property
    def is_full(self) -> bool:
        """Whether it is time to write it down."""
        return len(self.made) + len(self.refused) >= FLUSH_FILES or time.monotonic() - self.since > FLUSH_SECONDS


def flush(lease: Lease, stream: Stream, batch: Batch) -> Counts:
    """Write down what was made, under the token.

    Raises:
        LeaseLost: the lease is over; nothing was written.
    """
    counts = Counts()
    connection = connect(lease.url, application="daybook making")
    try:
        lease.guard(connection)
        written = {
            "stream": stream.name,
            "parser_version": stream.parser_version,
            "cycle": lease.cycle.cycle_id,
            "attempt": lease.cycle.attempt,
        }
        for row, _, _, made, is_same in batch.made:
            is_new, is_gone = row["made_sha256"] is None, row["sha256"] is None
            counts += Counts(
                read=made.rows,
                new=int(is_new and not is_gone),
                changed=int(not is_new and not is_same and not is_gone),
                withdrawn=int(is_gone),
                unchanged=int(is_same),
            )
            for each in made.rejected:
                values = {"position": told(each.position), "reason": told(each.reason), "content": told(each.text)}
                counts += Counts(quarantined=_put_aside(connection, lease, stream, row, "row", values))
        if batch.made:
            connection.execute(
                query("making.made"),
                {
                    **written,
                    "units": [row["unit"] for row, *_ in batch.made],
                    "paths": [path for _, path, *_ in batch.made],
                    "fetches": [row["fetch_id"] for row, *_ in batch.made],
                    "sources": [row["sha256"] for row, *_ in batch.made],
                    "rows": [made.rows for *_, made, _ in batch.made],
                    "sizes": [draft.size for _, _, draft, *_ in batch.made],
                    "hashes": [draft.sha256 for _, _, draft, *_ in batch.made],
                },
            )
            _resolve(connection, lease, stream, batch)
            for columns, unit in {tuple(map(told, m.unknown_columns)): r["unit"] for r, *_, m, _ in batch.made}.items():
                alerts.unknown_columns(connection, stream.name, columns, unit, UNKNOWN)
        for row, path, reason in batch.refused:
            why = {"position": None, "reason": reason, "content": None}
            counts += Counts(quarantined=_put_aside(connection, lease, stream, row, "unit", why))
            source = {"fetch": row["fetch_id"], "source": row["sha256"], "refused": reason, "path": path}
            connection.execute(query("making.refused"), {**written, "unit": row["unit"], **source})
        facts = {
            "fetched": counts.read,
            "new": counts.new,
            "changed": counts.changed,
            "withdrawn": counts.withdrawn,
            "quarantined": counts.quarantined,
        }
        lease.settle_and_commit(connection, CycleStatus.RUNNING, facts)
    finally:
        connection.close()
    return counts


def _resolve(connection: Connection, lease: Lease, stream: Stream, batch: Batch) -> None:
    """What was refused of these units and is read now without objection leaves quarantine."""
    good = [row for row, _, _, made, _ in batch.made if not made.rejected]
    whole = [(row["unit"], row["fetch_id"]) for row in good if row["fetch_id"]]
    if whole:
        connection.execute(
            query("quarantine.resolve_by_reading"),
            {
                "stream": stream.name,
                "units": [unit for unit, _ in whole],
                "fetch": max(fetch_id for _, fetch_id in whole),
                "parser_version": stream.parser_version,
                "cycle": lease.cycle.cycle_id,
                "why": "a file was made of it",
            },
        )


def _put_aside(
    connection: Connection, lease: Lease, stream: Stream, row: Row, scope: str, values: Mapping[str, Any]
) -> int:
    return connection.execute(
        query("quarantine.put"),
        {
            "stream": stream.name,
            "unit": row["unit"],
            "fetch": row["fetch_id"],
            "cycle": lease.cycle.cycle_id,
            "scope": scope,
            "rule": "parse",
            "parser_version": stream.parser_version,
            **values,
        },
    ).rowcount
