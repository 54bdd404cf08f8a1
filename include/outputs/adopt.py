"""Files that a stream has made already become files of a release: copied into the outbox and queued.

Promises: a file is safely in the outbox under the hash that its row names before it is queued; one that is being made
anew meanwhile is left for the next time. Never: a made file is changed.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
import time

from include.engine.db import Connection, Row, connect, query
from include.engine.files import FileStore
from include.outputs import outbox
from include.outputs.outbox import Built
from include.outputs.parquet import Written
from include.outputs.release import Release, ReleaseError
from include.outputs.store import OutboxStore

_AT_ONCE = 500


def adopt(
    url: str,
    release: Release,
    files_root: str,
    outbox_root: str,
    source_run: str,
    *,
    stop: threading.Event | None = None,
    seconds: float = 540,
) -> Built:
    """Queue the made files of a release that differ from the newest of their path.

    Args:
        files_root: where made files lie; a local path or fsspec URL.
        outbox_root: local path or fsspec URL of the outbox.
        source_run: the run that asked, kept with the file.
        stop: set when the caller must end; looked at between two files.
        seconds: no file is begun after that long.

    Raises:
        OSError: a file cannot be read, or the outbox cannot be written; what is left is found again.
    """
    made, store, until = FileStore(files_root), OutboxStore(outbox_root), time.monotonic() + seconds
    queued: list[str] = []
    left: list[str] = []
    overtaken: list[str] = []
    failed: list[tuple[str, str]] = []
    connection = connect(url, application="daybook build", autocommit=True)
    try:
        after = ""
        while rows := _due(connection, release, after):
            after = rows[-1]["path"]
            for row in rows:
                try:
                    part = release.part_at(row["path"])
                except ReleaseError as wrong:
                    failed.append((row["path"], str(wrong)))
                    continue
                if time.monotonic() > until or (stop is not None and stop.is_set()):
                    left.append(part.name)
                else:
                    try:
                        written = _copy(made, store, row)
                    except FileNotFoundError:
                        failed.append((part.name, f"{row['path']} is not under {files_root}; replay its stream"))
                        continue
                    (queued if written else overtaken).append(part.name)
                    if written:
                        with connection.transaction():
                            outbox.put(connection, release, part, written, source_run)
    finally:
        connection.close()
    return Built(release.name, tuple(queued), (), tuple(overtaken), tuple(failed), tuple(left))


def _due(connection: Connection, release: Release, after: str) -> list[Row]:
    values = {"stream": release.made_by, "release": release.name, "after": after, "limit": _AT_ONCE}
    return connection.execute(query("publish.made"), values).fetchall()


def _copy(made: FileStore, store: OutboxStore, row: Row) -> Written | None:
    """Copy a made file into the outbox; None where it is another one by now.

    Raises:
        FileNotFoundError: it is not there.
    """
    with store.workspace() as folder:
        file = folder / "made.parquet"
        with made.path(row["path"]).open("rb") as source, file.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        with file.open("rb") as copied:
            if hashlib.file_digest(copied, "sha256").digest() != row["sha256"]:
                return None
        store.place(file, row["sha256"])
    # The same rows give the same bytes: the hash of these tells whether the content differs.
    return Written(file, row["sha256"], row["sha256"], row["size"], row["rows"], row["source_fetch"], None, None, 0)
