"""A database that was lost, told again from what the raw store holds.

Promises: the ledger of requests becomes what the journal says, number by number; answers whose bytes are gone become
failed ones, so that they are asked for again; every unit is rebuilt by today's parsers, by the same replay as any
other. Killed at any point, the same call goes on. Never: a database that knows requests of its own is touched, and no
upstream is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from include.contract import Mode, Stream
from include.engine import jobs, journal, making
from include.engine.db import Connection, connect, query, template
from include.engine.raw import RawStore

# Rows that one statement puts in, and units that one cycle rebuilds.
ROWS, UNITS = 2_000, 200
_HASH = re.compile(r"[0-9a-f]{64}")


class RestoreRefused(Exception):
    """The database is not empty, or there is no journal; the text says what to do."""


@dataclass(frozen=True)
class Told:
    """What a journal came to: files and requests, answers without bytes, and objects that no request names."""

    files: int
    fetches: int
    missing: int
    unnamed: int


def load(url: str, raw: RawStore) -> Told:
    """Read the journal into an empty database.

    Args:
        url: libpq address of the warehouse, migrated and empty.
        raw: the store that was kept.

    Raises:
        RestoreRefused: there are requests, windows or runs in the database already, or there is no journal.
        JournalUnreadable: a file of it is damaged; what was read before stays, and the same call goes on.
    """
    found = journal.files(raw)
    connection = connect(url, application="daybook restore", statement_timeout=600, autocommit=True)
    try:
        state = connection.execute(query("journal.state")).fetchone()
        empty = connection.execute(query("journal.is_empty")).fetchone()
        assert state is not None
        assert empty is not None
        if not empty["is_empty"] and not state["is_restoring"]:
            raise RestoreRefused(
                "This database knows requests, windows or runs of its own; nothing was changed. A restore is for an "
                "empty one: make it, point the connection `warehouse` to it, and run `cli migrate` alone first."
            )
        if not found:
            raise RestoreRefused(
                f"There is no journal under {raw.root / journal.FOLDER}; nothing was changed. Point DAYBOOK_RAW_ROOT "
                "to the store that was kept; of a store without a journal nobody can tell which answer is whose."
            )
        connection.execute(query("journal.begin_restoring"))
        fetches: set[int] = set()
        for file in found:
            for of, rows in _by_table(journal.read(file)):
                _put(connection, of, rows)
                if of == "collect.fetches":
                    fetches.update(row["fetch_id"] for row in rows)
        connection.execute(query("journal.forget_chunks"))
        missing, unnamed = _compare(connection, raw)
        connection.execute(query("journal.go_on_behind"))
        return Told(len(found), len(fetches), missing, unnamed)
    finally:
        connection.close()


def _by_table(lines: Iterator[journal.Line]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Give the rows of each table, in portions; of two that are one row, the later."""
    kept: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
    for of, row in lines:
        kept.setdefault(of, {})[tuple(row[name] for name in journal.KEYS[of])] = row
    for of, rows in kept.items():
        for portion in _cut(list(rows.values()), ROWS):
            yield of, portion


def _cut(whole: list[Any], size: int) -> list[list[Any]]:
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def _put(connection: Connection, of: str, rows: Sequence[dict[str, Any]]) -> None:
    columns = [sql.Identifier(name) for name in rows[0]]
    key = journal.KEYS[of]
    changes = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in rows[0] if name not in key]
    statement = template(
        "retelling.put",
        table=sql.Identifier(*of.split(".")),
        columns=sql.SQL(", ").join(columns),
        key=sql.SQL(", ").join(sql.Identifier(name) for name in key),
        changes=sql.SQL(", ").join(changes),
    )
    connection.execute(statement, {"rows": json.dumps(rows)})


def _compare(connection: Connection, raw: RawStore) -> tuple[int, int]:
    """Compare what answers refer to with what is there, a 256th of the store at a time."""
    missing, unnamed = 0, 0
    for first in range(256):
        rows = connection.execute(query("journal.objects_between"), {"first": bytes([first])}).fetchall()
        named = {bytes(row["sha256"]) for row in rows}
        found = [path.name.removesuffix(".zst") for path in (raw.root / f"{first:02x}").glob("??/*.zst")]
        # Whatever else somebody put there is no object.
        there = {bytes.fromhex(name) for name in found if _HASH.fullmatch(name)}
        gone = named - there
        if gone:
            connection.execute(query("journal.without_bytes"), {"hashes": list(gone)})
        missing += len(gone)
        unnamed += len(there - named)
    return missing, unnamed


def plan(url: str, stream: Stream) -> str | None:
    """Write the cycles that rebuild all of a stream, once; return the run's name, None where nothing is held of it."""
    run_id = f"restore.{stream.name}"
    connection = connect(url, application="daybook restore", statement_timeout=600)
    try:
        if stream.making is not None:
            units = [row["unit"] for row in making.units_due(connection, stream, stream.making)]
        else:
            rows = connection.execute(query("journal.units"), {"stream": stream.name}).fetchall()
            units = [row["unit"] for row in rows]
        if not units:
            return None
        reason = "the database was lost and is told again from the raw store"
        request = jobs.JobRequest(Mode.REPLAY, (stream,), None, None, run_id=run_id, reason=reason, who="cli restore")
        portions = {str(number): portion for number, portion in enumerate(_cut(units, UNITS), start=1)}
        jobs.write_of_units(connection, request, "chunk", portions)
        connection.commit()
        return run_id
    finally:
        connection.close()


def finish(url: str) -> None:
    """Say that all was told again: from now on new requests are written down, and a second restore is refused."""
    connection = connect(url, application="daybook restore", autocommit=True)
    try:
        connection.execute(query("journal.end_restoring"))
    finally:
        connection.close()


def held(url: str) -> list[dict[str, Any]]:
    """Return the streams of which there are answers, how many, and the newest session."""
    connection = connect(url, application="daybook restore", autocommit=True)
    try:
        return connection.execute(query("journal.streams")).fetchall()
    finally:
        connection.close()
