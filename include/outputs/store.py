"""The outbox folder: finished files under the hash of their bytes.

Promises: a file appears under its name whole and is never written over; one that is damaged is moved aside, so
that it can be looked at and made again. The root is a local path, or any fsspec URL. Never: nothing of an outbox is
deleted, and no database is used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from upath import UPath

from include.engine import drafts, upload

_CHUNK = 1 << 20


class FileUnfit(Exception):
    """A file of the outbox is missing, or holds other bytes than its name says; the text says which."""


@dataclass(frozen=True)
class OutboxStore:
    """Files under a root; `address` is a local path or an fsspec URL (s3://, gs://, memory://)."""

    address: str

    @property
    def root(self) -> UPath:
        """The root as a path."""
        return UPath(self.address)

    @property
    def is_local(self) -> bool:
        """Whether files can be renamed and synced to disk."""
        return self.root.protocol in ("", "file", "local")

    @property
    def folder(self) -> Path:
        """The root as a folder of this machine; only where it is local."""
        return Path(self.root.path)

    def path(self, sha256: bytes) -> UPath:
        """Return where a file lies."""
        return self.root / f"{sha256.hex()}.parquet"

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """A private folder for temporary files, beside the outbox where that is local; gone after the block."""
        parent = drafts.beside(self.root, drafts.BUILDING)
        with tempfile.TemporaryDirectory(prefix="build-", dir=parent) as folder:
            yield Path(folder)

    def place(self, temporary: Path, sha256: bytes) -> None:
        """Give a finished file its name; where the same bytes are there already, nothing is done.

        Raises:
            OSError: the outbox cannot be written; nothing half-written bears the name.
        """
        target = self.path(sha256)
        if target.exists():
            if _digest(target) == sha256:
                return
            self._move_aside(target)
        if self.is_local:
            os.replace(temporary, self.folder / target.name)
            self._sync()
            return
        upload.place(temporary, target)

    def _move_aside(self, target: UPath) -> None:
        number = 1
        while (aside := target.with_name(f"{target.name}.damaged-{number}")).exists():
            number += 1
        target.rename(aside)

    def _sync(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def checked_copy(self, sha256: bytes, folder: Path) -> Path:
        """Return a local file with exactly these bytes: the file itself, or a copy in `folder`.

        Raises:
            FileUnfit: it is missing or damaged.
        """
        source = self.path(sha256)
        try:
            local = (self.folder if self.is_local else folder) / source.name
            if not self.is_local:
                with source.open("rb") as reading, local.open("wb") as writing:
                    shutil.copyfileobj(reading, writing, _CHUNK)
            found = _digest(UPath(local))
        except FileNotFoundError:
            raise FileUnfit(f"{source.name} is missing from the outbox {self.address}") from None
        if found != sha256:
            raise FileUnfit(f"{source.name} in the outbox {self.address} holds other bytes than its name says")
        return local

    def keep_only(self, names: Collection[str]) -> None:
        """Remove all files but those of some hashes (hex); for what can be made again, and never for an outbox."""
        if not self.root.exists():
            return
        for path in self.root.iterdir():
            if path.suffix == ".parquet" and path.stem not in names:
                path.unlink()


def _digest(path: UPath) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.digest()
