"""The raw store: every upstream answer, unchanged, under the hash of its bytes.

Promises: an object is written once (temporary file, fsync, rename; an object store writes it whole) and never
changed; reading checks the hash. An object that was damaged is set aside when the same bytes come again. A secret of
ours that an upstream echoes is masked before the bytes are stored, and the caller is told. Never: an object is
deleted, and no database is used here.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import zstandard
from upath import UPath

from include.engine import drafts, upload
from include.engine.masking import mask_chunks

CHUNK = 1 << 18


class RawObjectDamaged(Exception):
    """The stored bytes are not those that their name says; the object is left as it is for inspection."""


class RawObjectMissing(Exception):
    """The object is not in the store."""


@dataclass(frozen=True)
class Stored:
    """An object as stored: hash and size of the decoded bytes, size as compressed, whether a secret was masked."""

    sha256: bytes
    size: int
    stored_size: int
    masked: bool


@dataclass(frozen=True)
class RawBody:
    """The body of a stored answer (see `contract.Body`)."""

    store: RawStore
    sha256: bytes

    def open(self) -> BinaryIO:
        """Open the decoded bytes as a stream; the hash is checked when the end is reached."""
        return self.store.open(self.sha256)

    def read(self) -> bytes:
        """Return all decoded bytes."""
        with self.open() as stream:
            return stream.read()


class EmptyBody:
    """The body of an answer that had none (see `contract.Body`)."""

    def open(self) -> BinaryIO:
        """Open nothing."""
        return io.BytesIO()

    def read(self) -> bytes:
        """Return nothing."""
        return b""


class RawStore:
    """Objects under a root: a local path, or any fsspec URL (s3://, gs://, memory://)."""

    def __init__(self, root: str) -> None:
        self.root = UPath(root)
        self.is_local = self.root.protocol in ("", "file", "local")

    def path(self, sha256: bytes) -> UPath:
        """Return where an object lies."""
        name = sha256.hex()
        return self.root / name[:2] / name[2:4] / f"{name}.zst"

    def put(self, chunks: Iterable[bytes], secrets: tuple[str, ...] = ()) -> Stored:
        """Store a body given as decoded chunks; equal bytes are stored once.

        Raises:
            OSError: the store cannot be written (no space, no access); nothing half-written is left behind.
        """
        digest, size, masked = hashlib.sha256(), 0, False
        handle, name = tempfile.mkstemp(prefix="put-", dir=self._drafts())
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                with zstandard.ZstdCompressor(level=3).stream_writer(file, closefd=False) as writer:
                    for chunk, was_masked in mask_chunks(chunks, secrets):
                        digest.update(chunk)
                        size += len(chunk)
                        masked = masked or was_masked
                        writer.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            stored_size = temporary.stat().st_size
            self._place(temporary, digest.digest())
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
        return Stored(digest.digest(), size, stored_size, masked)

    def _drafts(self) -> Path:
        """Beside the objects, so that the rename stays within one file system."""
        return drafts.beside(self.root, drafts.INCOMING)

    def workspace(self) -> Path:
        """Return a folder of this machine for what is not an object yet, such as a download; it may lie beside them."""
        folder = self._drafts() / drafts.DOWNLOADS
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def _is_whole(self, sha256: bytes) -> bool:
        """Read an object to its end, which is reached only if the bytes are the right ones."""
        try:
            with self.open(sha256) as stream:
                while stream.read(CHUNK):
                    pass
        except RawObjectDamaged:
            return False
        return True

    def _place(self, temporary: Path, sha256: bytes) -> None:
        target = self.path(sha256)
        if target.exists():
            if self._is_whole(sha256):
                return
            # Equal bytes came again over a damaged object: it is kept aside for inspection, and the store is whole.
            target.rename(target.with_name(f"{target.name}.damaged-{uuid.uuid4().hex[:8]}"))
        if not self.is_local:
            upload.place(temporary, target)
            return
        final = Path(str(target))
        final.parent.mkdir(parents=True, exist_ok=True)
        os.replace(temporary, final)
        for folder in (final.parent, final.parent.parent, final.parent.parent.parent):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def open(self, sha256: bytes) -> BinaryIO:
        """Open an object's decoded bytes; the end of the stream is reached only if they are the right ones.

        Raises:
            RawObjectMissing: there is no such object.
        """
        try:
            source = self.path(sha256).open("rb")
        except FileNotFoundError:
            raise RawObjectMissing(
                f"Raw object {sha256.hex()} is not in {self.root}. Nothing was changed; restore the store or "
                "point DAYBOOK_RAW_ROOT to it."
            ) from None
        return io.BufferedReader(_Checked(source, sha256), CHUNK)

    def nothing(self) -> EmptyBody:
        """Return the body of an answer without one."""
        return EmptyBody()

    def body(self, sha256: bytes) -> RawBody:
        """Return an object as an answer's body."""
        return RawBody(self, sha256)


class _Checked(io.RawIOBase):
    """Decompress a stream and compare its hash at the end."""

    def __init__(self, source: BinaryIO, sha256: bytes) -> None:
        super().__init__()
        self._source = source
        self._reader = zstandard.ZstdDecompressor().stream_reader(source, closefd=True)
        self._digest = hashlib.sha256()
        self._sha256 = sha256

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        try:
            data = self._reader.read(len(view))
        except zstandard.ZstdError as error:
            raise RawObjectDamaged(f"Raw object {self._sha256.hex()} cannot be decompressed: {error}.") from None
        if not data and self._digest.digest() != self._sha256:
            raise RawObjectDamaged(
                f"Raw object {self._sha256.hex()} holds other bytes than its name says; it is left for inspection."
            )
        self._digest.update(data)
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()
