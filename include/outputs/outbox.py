"""The outbox: from parts of tables that changed to files that wait for publication.

Promises: a file is safely in the outbox before its row says so; a row is written only where the content differs
from the newest file of that path; a newer file replaces an unsent older one and an older snapshot never replaces
a newer one, however many builders run. A crash anywhere leaves the part stale, so the next build makes the same
file again. A part that was published and has no rows left becomes a file without rows, so that a consumer can
tell "withdrawn" from "missing"; one that was never published makes no file. Never: nothing is sent, and no clock
but the database's is read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg import IsolationLevel, Rollback

from include.contract import Table
from include.engine.db import Connection, connect, query, transaction
from include.outputs import parquet
from include.outputs.release import Part, Release, ReleaseError
from include.outputs.store import OutboxStore

# A part with millions of rows is read by one statement.
_READ_SECONDS = 900
# How often a part is built again because another builder changed what it was compared with.
_TRIES = 3


@dataclass(frozen=True)
class Built:
    """What a build did, by part.

    `queued` wait for publication now; `unchanged` hold what their newest file holds; `overtaken` were built by
    somebody else from the same state or a later one; `failed` (part, reason) stay stale, as do `left`, for which
    there was no time.
    """

    release: str
    queued: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    overtaken: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    left: tuple[str, ...] = ()


def stale_parts(url: str, release: Release) -> list[str]:
    """Return the parts of a release that changed since their newest file was built, newest part first."""
    stale = query("publish.stale_whole") if release.cut == "whole" else query("publish.stale")
    with transaction(url, application="daybook outbox") as connection:
        rows = connection.execute(stale, {"release": release.name, "tables": list(release.marks)})
        return [row["partition"] for row in rows]


def build(
    url: str,
    release: Release,
    table: Table,
    outbox_root: str,
    source_run: str,
    *,
    stop: threading.Event | None = None,
    seconds: float = 540,
) -> Built:
    """Build the file of every stale part of a release and queue those whose content is new.

    Args:
        url: libpq address of the warehouse.
        table: the declaration of the table that the release is made from, or of the view that it reads.
        outbox_root: local path or fsspec URL of the outbox.
        source_run: the run that asked, kept with the file.
        stop: set when the caller must end; looked at between two parts.
        seconds: no part is begun after that long.

    Raises:
        ReleaseError: the table is not the one that the release is made from.
        OSError: the outbox cannot be written; the parts stay stale.
    """
    if table.qualified != release.table:
        raise ReleaseError(f"Release {release.name} is made from {release.table}, not from {table.qualified}.")
    store = OutboxStore(outbox_root)
    until = time.monotonic() + seconds
    done: dict[str, list[str]] = {"queued": [], "unchanged": [], "overtaken": []}
    failed: list[tuple[str, str]] = []
    parts = stale_parts(url, release)
    left: tuple[str, ...] = ()
    with snapshots(url) as warehouse:
        for position, name in enumerate(parts):
            if time.monotonic() > until or (stop is not None and stop.is_set()):
                left = tuple(parts[position:])
                break
            try:
                done[_build_part(warehouse, release, table, release.part(name), store, source_run)].append(name)
            except (ReleaseError, parquet.PartUnreadable) as error:
                failed.append((name, str(error)))
    return Built(
        release.name, tuple(done["queued"]), tuple(done["unchanged"]), tuple(done["overtaken"]), tuple(failed), left
    )


@dataclass(frozen=True)
class Warehouse:
    """Two connections: one that reads snapshots, for as long as a large part takes, and one for short writes."""

    reading: Connection
    writing: Connection


@contextmanager
def snapshots(url: str) -> Iterator[Warehouse]:
    """Give a connection whose transactions are snapshots, and one for short writes."""
    name = "daybook build"
    reading = connect(url, application=name, statement_timeout=_READ_SECONDS, idle_timeout=_READ_SECONDS)
    try:
        reading.isolation_level = IsolationLevel.REPEATABLE_READ
        reading.read_only = True
        writing = connect(url, application=name)
        try:
            yield Warehouse(reading, writing)
        finally:
            writing.close()
    finally:
        reading.close()


def _build_part(
    warehouse: Warehouse, release: Release, table: Table, part: Part, store: OutboxStore, source_run: str
) -> str:
    """Build one part and say what came of it: queued, unchanged or overtaken."""
    for _ in range(_TRIES):
        with store.workspace() as folder:
            written = _write(warehouse.reading, release, table, part, folder / "part.parquet")
            is_new = _is_new(_newest(warehouse.writing, release, part), written)
            if is_new:
                store.place(written.file, written.sha256)
            outcome = _record(warehouse.writing, release, part, written, source_run, is_placed=is_new)
        if outcome is not None:
            return outcome
    raise parquet.PartUnreadable(
        f"{release.name} {part.name} was built {_TRIES} times, and each time another builder came in between. "
        "It stays stale; the next build makes it."
    )


def _write(connection: Connection, release: Release, table: Table, part: Part, file: Path) -> parquet.Written:
    with connection.transaction():
        return parquet.write(connection, release, table, part, file)


def _newest(connection: Connection, release: Release, part: Part) -> bytes | None:
    with connection.transaction():
        place = {"release": release.name, "path": part.path}
        row = connection.execute(query("publish.newest"), place).fetchone()
        return row["content_hash"] if row else None


def _is_new(newest: bytes | None, written: parquet.Written) -> bool:
    """A file is worth sending where it differs; an empty one only where something was there before."""
    return newest != written.content_hash if newest is not None else written.rows > 0


def _record(
    connection: Connection, release: Release, part: Part, written: parquet.Written, source_run: str, *, is_placed: bool
) -> str | None:
    """Write what was built into the rows, in one short transaction; None where it must be built again.

    The note of the version is first: it locks the part against other builders, and it is refused to a snapshot
    that is not newer than the one built last.
    """
    place = {"release": release.name, "tables": list(release.marks), "partition": part.name, "path": part.path}
    with connection.transaction():
        noted = connection.execute(query("publish.built"), {**place, "version": written.version}).fetchone()
        if noted is None:
            return "overtaken"
        row = connection.execute(query("publish.newest"), place).fetchone()
        if not _is_new(row["content_hash"] if row else None, written):
            return "unchanged"
        if is_placed:
            put(connection, release, part, written, source_run)
            return "queued"
        # Compared with a file that is no longer the newest: nothing of this is kept.
        raise Rollback()
    return None


def put(connection: Connection, release: Release, part: Part, written: parquet.Written, source_run: str) -> None:
    """Queue a file that is safely in the outbox, in the caller's transaction; it replaces an unsent older one."""
    place = {"release": release.name, "partition": part.name, "path": part.path}
    connection.execute(query("publish.alone"))
    connection.execute(query("publish.replace"), place)
    connection.execute(
        query("publish.put"),
        {
            **place,
            "content_hash": written.content_hash,
            "sha256": written.sha256,
            "size": written.size,
            "rows": written.rows,
            "newest_fetch": written.newest_fetch,
            "first_session": written.first_session,
            "last_session": written.last_session,
            "source_run": source_run,
        },
    )


def judge_again(connection: Connection, release: Release) -> None:
    """Let the held files of a release wait once more, to be judged with what is new, in the caller's transaction."""
    connection.execute(query("publish.alone"))
    held = connection.execute(query("publish.held"), {"release": release.name}).fetchall()
    files = {"files": [row["file_id"] for row in held]}
    connection.execute(query("publish.make_way"), files)
    connection.execute(query("publish.judge_again"), files)
