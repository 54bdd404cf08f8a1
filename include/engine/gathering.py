"""One file of all those that another stream has made, pieced together in batches.

Promises: whether it is due follows from the hashes of what it was made of; a piece is kept under what it was made of,
so that whoever takes over a part goes on where it ended, and the file is the same whichever way it came about. Never: a
piece outlives the file that it was for.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from include.contract import Gathering, Made, Making, Stream
from include.engine.db import Connection, Row, connect, query
from include.engine.files import Draft, FileStore
from include.engine.lease import Lease

if TYPE_CHECKING:
    from include.engine.cycle import Worker


@dataclass(frozen=True)
class Gathered:
    """What a part came to: the finished file, with its row and whether it is as before; or how far it is."""

    words: str
    is_over: bool
    file: tuple[Row, Draft, Made, bool] | None = None


@dataclass(frozen=True)
class _State:
    """What is there to be gathered, what the file was last made of, and what that would be now."""

    inputs: list[Row]
    row: Row
    is_due: bool


def due(connection: Connection, stream: Stream, making: Making, gather: Gathering) -> list[Row]:
    """Return the unit of the file where it is to be made now, with the bytes that it is made of."""
    state = _state(connection, stream, making, gather)
    return [{"unit": gather.unit, "size": sum(each["size"] for each in state.inputs)}] if state.is_due else []


def _state(connection: Connection, stream: Stream, making: Making, gather: Gathering) -> _State:
    inputs = connection.execute(query("making.files_of"), {"of": making.of}).fetchall()
    asked = {"stream": stream.name, "unit": gather.unit}
    before = connection.execute(query("making.gathered"), asked).fetchone()
    source = _digest(inputs)
    is_same = before is not None and before["source_sha256"] == source
    is_due = bool(inputs) and not (before and is_same and before["parser_version"] >= stream.parser_version)
    row: Row = {
        "unit": gather.unit,
        "fetch_id": max((each["source_fetch"] or 0 for each in inputs), default=0) or None,
        "sha256": source,
        "made_sha256": before["sha256"] if before else None,
    }
    return _State(inputs, row, is_due)


def _digest(rows: Sequence[Row], *more: str) -> bytes:
    digest = hashlib.sha256("\n".join(more).encode())
    for row in rows:
        digest.update(row["unit"].encode() + b"\0" + bytes(row["sha256"]))
    return digest.digest()


def gather(worker: Worker, stream: Stream, lease: Lease, making: Making) -> Gathered:
    """Piece the file together, as far as the slice allows, and draft and place it once all pieces are there.

    Raises:
        OSError: a file that was made is not there, or nothing can be written.
    """
    wanted = making.gather
    assert wanted is not None
    connection = connect(worker.url, application="daybook making", autocommit=True)
    try:
        state = _state(connection, stream, making, wanted)
    finally:
        connection.close()
    if not state.inputs or not (state.is_due or lease.cycle.chunk.get("again")):
        return Gathered("it is made of the newest files already", is_over=True)
    store, began = FileStore(worker.files), time.monotonic()
    batches = [state.inputs[first : first + wanted.batch] for first in range(0, len(state.inputs), wanted.batch)]
    names = [f"{stream.name}-{_digest(batch, str(stream.parser_version)).hex()}" for batch in batches]
    store.keep_pieces(stream.name, names)
    for number, (batch, name) in enumerate(zip(batches, names, strict=True)):
        is_late = time.monotonic() - began > stream.budget.slice_seconds
        if is_late or worker.stop() or not lease.is_trusted():
            return Gathered(f"{number} of {len(batches)} pieces are there", is_over=False)
        if not store.has_piece(name):
            store.put_piece(name, partial(wanted.piece, _opened(store, batch, making.of)))
            worker.signal("made")
    draft, rows = store.draft(making.path(wanted.unit), lambda target: _joined(store, wanted, names, target))
    is_same = state.row["made_sha256"] is not None and bytes(state.row["made_sha256"]) == draft.sha256
    if not lease.is_trusted():
        # Somebody else may be at it by now, with these very pieces.
        store.drop(draft.temporary)
        return Gathered(f"{len(batches)} of {len(batches)} pieces are there", is_over=False)
    store.place(draft)
    store.keep_pieces(stream.name, ())
    words = f"{rows:,} rows of {len(state.inputs):,} files"
    return Gathered(words, is_over=True, file=(state.row, draft, Made(rows), is_same))


def _opened(store: FileStore, rows: Sequence[Row], of: str) -> Iterator[Callable[[], BinaryIO]]:
    for row in rows:
        yield partial(_open, store, row["path"], of)


def _open(store: FileStore, path: str, of: str) -> BinaryIO:
    try:
        return store.path(path).open("rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is not under {store.root}; replay {of}, which makes it again") from None


def _joined(store: FileStore, wanted: Gathering, names: Sequence[str], target: BinaryIO) -> int:
    def opened() -> Iterator[BinaryIO]:
        for name in names:
            with store.piece(name) as file:
                yield file

    return wanted.join(opened(), target)
