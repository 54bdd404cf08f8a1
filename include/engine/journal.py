"""The journal: what only the database knows, written beside the raw objects, so that a lost database can be told again.

Promises: every request's row is written down in a file of lines under `journal/` of the raw store, at most two upkeeps
after it was committed, and so is what a replay depends on besides: how cycles ended, members of archives, and what
people decided. Files are written once and never changed; a line that stands twice does no harm. Never: no secret is in
it, as none is in the rows; nothing is written while a transaction is open.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import zstandard
from upath import UPath

from include.engine.db import Connection, connect, query
from include.engine.raw import RawStore

FOLDER = "journal"
# How many requests go into one file at most.
AT_ONCE = 20_000
# Changes are looked at from this long before the last look: a transaction commits later than it asked for the time.
OVERLAP = timedelta(minutes=3)
# The tables of which there are lines, and what a line of each is known by.
KEYS: dict[str, tuple[str, ...]] = {
    "collect.raw_objects": ("sha256",),
    "collect.fetches": ("fetch_id",),
    "collect.cycles": ("cycle_id",),
    "collect.job_runs": ("run_id",),
    "collect.archives": ("stream", "archive"),
    "collect.archive_members": ("stream", "archive", "unit"),
    "collect.calendar_exceptions": ("calendar", "day"),
    "collect.controls": ("scope", "name"),
    "collect.quarantine": ("quarantine_id",),
}

Line = tuple[str, dict[str, Any]]


class JournalUnreadable(Exception):
    """A file of the journal is damaged or of a release that this one does not know; the text names it."""


def write(url: str, raw: RawStore) -> int:
    """Write down what is not written yet; return how many requests that were.

    Args:
        url: libpq address of the warehouse.
        raw: the store beside whose objects the journal lies.

    Raises:
        OSError: the store cannot be written; what is not in it is written the next time.
    """
    written = 0
    connection = connect(url, application="daybook journal", autocommit=True)
    try:
        while True:
            count = _write_once(connection, raw)
            written += count
            if count < AT_ONCE:
                return written
    finally:
        connection.close()


def _write_once(connection: Connection, raw: RawStore) -> int:
    state = connection.execute(query("journal.state")).fetchone()
    assert state is not None
    if state["is_restoring"]:
        return 0
    after, now = state["fetches_to"], state["now"]
    rows = connection.execute(query("journal.fetches"), {"after": after, "limit": AT_ONCE}).fetchall()
    since = state["changes_to"] - OVERLAP if state["changes_to"] else "-infinity"
    changes = connection.execute(query("journal.changes"), {"since": since}).fetchall()
    lines: list[Line] = [("collect.raw_objects", row["object"]) for row in rows if row["object"] is not None]
    lines += [("collect.fetches", row["fetch"]) for row in rows]
    lines += [(row["of"], row["row"]) for row in changes]
    if lines:
        _put(raw, now, lines)
    ids = [row["fetch_id"] for row in rows]
    to = max([after, *ids])
    with connection.transaction():
        stands = connection.execute(query("journal.lock")).fetchone()
        if stands is None or stands["fetches_to"] != after:
            # Somebody else has written the same meanwhile.
            return 0
        connection.execute(query("journal.note_gaps"), {"after": after, "to": to, "written": ids})
        connection.execute(query("journal.close_gaps"), {"written": ids})
        connection.execute(query("journal.note"), {"to": to, "changes_to": now})
    return len(ids)


def _put(raw: RawStore, at: datetime, lines: Sequence[Line]) -> None:
    """Write one file, named by its instant and content."""
    text = "".join(json.dumps({"of": of, "row": row}, ensure_ascii=False) + "\n" for of, row in lines).encode()
    name = f"{at:%H%M%S.%f}-{hashlib.sha256(text).hexdigest()[:16]}.jsonl.zst"
    folder = raw.root / FOLDER / f"{at:%Y}" / f"{at:%m}" / f"{at:%d}"
    data = zstandard.ZstdCompressor(level=9, write_checksum=True).compress(text)
    if not raw.is_local:
        (folder / name).write_bytes(data)
        return
    place = Path(str(folder))
    place.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".incoming-", dir=place)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    Path(temporary).replace(place / name)
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def files(raw: RawStore) -> list[UPath]:
    """Return the files of the journal, oldest first."""
    return sorted((raw.root / FOLDER).glob("*/*/*/*.jsonl.zst"), key=str)


def read(file: UPath) -> Iterator[Line]:
    """Give the lines of a file.

    Raises:
        JournalUnreadable: it is damaged, or tells of a table that this release does not know.
    """
    try:
        text = zstandard.ZstdDecompressor().decompress(file.read_bytes()).decode()
        lines = [json.loads(line) for line in text.splitlines()]
    except (zstandard.ZstdError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise JournalUnreadable(
            f"{file} of the journal is damaged ({error}). Nothing of it was used; bring that file back from a copy of "
            "the raw store, or move it away: what it tells of is then asked for again."
        ) from None
    for line in lines:
        if line["of"] not in KEYS:
            raise JournalUnreadable(
                f"{file} tells of {line['of']}, which this release does not know: take a newer one."
            )
        yield line["of"], line["row"]
