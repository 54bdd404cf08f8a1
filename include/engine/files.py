"""Files that streams make, under a root: a local path, or any fsspec URL.

Promises: a file bears its name only when it is whole and safe on disk, and the one before stays until then. Never: a
path leads out of the root, and no file is deleted.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeVar

from upath import UPath

from include.engine import drafts, upload

Result = TypeVar("Result")


class PathUnfit(Exception):
    """A path that is asked for is not one of a file under the root."""


@dataclass(frozen=True)
class Draft:
    """A finished file that does not bear its name yet: where it lies, its size and hash."""

    temporary: Path
    path: str
    size: int
    sha256: bytes


class FileStore:
    """Where made files lie."""

    def __init__(self, root: str) -> None:
        self.root = UPath(root)
        self.is_local = self.root.protocol in ("", "file", "local")

    def path(self, path: str) -> UPath:
        """Return where a file lies.

        Raises:
            PathUnfit: the path leads out of the root.
        """
        pure = PurePosixPath(path)
        if pure.is_absolute() or not pure.parts or ".." in pure.parts or "\\" in path:
            raise PathUnfit(f"{path!r} is no path of a file under {self.root}.")
        return self.root / path

    def draft(self, path: str, write: Callable[[BinaryIO], Result]) -> tuple[Draft, Result]:
        """Write a file under a temporary name and make it safe on disk.

        Raises:
            OSError: it cannot be written. Whatever `write` raises goes on; nothing is left behind.
        """
        self.path(path)
        handle, name = tempfile.mkstemp(prefix="made-", dir=self._drafts())
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w+b") as file:
                result = write(file)
                file.flush()
                os.fsync(file.fileno())
                size = file.seek(0, os.SEEK_END)
                file.seek(0)
                digest = hashlib.file_digest(file, "sha256").digest()
        except BaseException:
            self.drop(temporary)
            raise
        return Draft(temporary, path, size, digest), result

    def place(self, draft: Draft) -> None:
        """Give a finished file its name, over the one before.

        Raises:
            OSError: it cannot be; the one before stays.
        """
        target = self.path(draft.path)
        try:
            if not self.is_local:
                upload.place(draft.temporary, target)
                return
            final = Path(str(target))
            final.parent.mkdir(parents=True, exist_ok=True)
            os.replace(draft.temporary, final)
            descriptor = os.open(final.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        finally:
            self.drop(draft.temporary)

    # --- pieces: what a file is put together of, on this machine alone, until it is

    def has_piece(self, name: str) -> bool:
        """Say whether a piece is there."""
        return (self._drafts() / f"{name}.piece").exists()

    def put_piece(self, name: str, write: Callable[[BinaryIO], None]) -> None:
        """Write a piece; it bears its name only when it is whole.

        Raises:
            OSError: it cannot be written. Whatever `write` raises goes on; nothing is left behind.
        """
        draft, _ = self.draft(name, write)
        os.replace(draft.temporary, self._drafts() / f"{name}.piece")

    def piece(self, name: str) -> BinaryIO:
        """Open a piece.

        Raises:
            FileNotFoundError: it is not there.
        """
        return (self._drafts() / f"{name}.piece").open("rb")

    def keep_pieces(self, prefix: str, names: Collection[str]) -> None:
        """Throw away the pieces whose name begins so, but for some."""
        for path in self._drafts().glob(f"{prefix}-*.piece"):
            if path.name.removesuffix(".piece") not in names:
                self.drop(path)

    def drop(self, temporary: Path) -> None:
        """Throw a draft away; one that is gone already is none."""
        with suppress(FileNotFoundError):
            temporary.unlink()

    def _drafts(self) -> Path:
        return drafts.beside(self.root, drafts.MAKING)
