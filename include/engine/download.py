"""A large file on its way to this machine: part by part, resumed where it broke, never across two versions of it.

Promises: what has come stays in a `.part` file with a note beside it that says of which version it is, also after the
process was killed; only a part of the very version that is asked for is gone on with, by `If-Range`. Never: bytes of
two versions are put together, and a file counts as whole before its length is what was announced.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path


class Replaced(Exception):
    """The file was replaced by a newer one while it was being read; nothing of both is put together."""


@dataclass(frozen=True)
class Version:
    """What tells one version of a file from another: validators and length."""

    etag: str | None
    last_modified: str | None
    length: int

    @property
    def condition(self) -> str | None:
        """What `If-Range` may say of it: a strong ETag, or else the date; None where it has neither."""
        if self.etag and not self.etag.startswith("W/"):
            return self.etag
        return self.last_modified


class Part:
    """The `.part` file of one archive in a folder, and the note of its version."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.part"
        self._note = folder / f"{name}.part.json"

    def have(self, version: Version) -> int:
        """Return how many bytes of a version have come; those of another one are thrown away.

        A version without a validator is never gone on with.
        """
        try:
            noted = json.loads(self._note.read_text(encoding="utf-8"))
            size = self.path.stat().st_size
        except (OSError, ValueError):
            noted, size = None, 0
        if noted == asdict(version) and version.condition is not None and size <= version.length:
            return size
        self.forget()
        return 0

    def begin(self, version: Version) -> None:
        """Begin anew with a version.

        Raises:
            OSError: the folder cannot be written.
        """
        self.forget()
        self.path.touch(mode=0o600)
        self._note.write_text(json.dumps(asdict(version)), encoding="utf-8")

    def append(self, chunks: Iterable[bytes], most: int) -> None:
        """Add what comes, as it comes; what has come stays when it breaks off.

        Raises:
            Replaced: more comes than the version is long.
            OSError: the disk is full, or cannot be written.
        """
        with self.path.open("ab") as file:
            size = file.tell()
            for chunk in chunks:
                size += len(chunk)
                if size > most:
                    raise Replaced
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())

    def forget(self) -> None:
        """Throw away what has come."""
        for path in (self._note, self.path):
            with suppress(FileNotFoundError):
                path.unlink()
