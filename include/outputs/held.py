"""Local copies of published files, and the note beside each: what it was when it was last compared with the Hub.

Promises: a file appears under its name whole (temporary name, fsync, rename), and so do the notes of a folder; a note
counts only while the file is the one that it was written about, so a kill between the two costs a comparison and
nothing else. A name never leads out of the folder. Never: nothing that a reader may have open is written over in place,
no file is deleted, and nothing is asked of anybody.

The notes of a folder are one file: thousands of small ones took two seconds of every repair.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

# Notes and temporary files lie below this folder, so that whoever reads `**/*.parquet` sees data alone.
NOTES = ".daybook"
_NOTES_OF = "notes"
_CHUNK = 1 << 20


class UnsafeName(Exception):
    """A name that the Hub gave cannot be a file of this folder; the text says which."""


@dataclass(frozen=True)
class Entry:
    """A file as the Hub has it: large ones are known by the SHA-256 of their bytes, small ones as git knows them."""

    path: str
    size: int
    etag: str


@dataclass(frozen=True)
class Held:
    """A file that is here: its size in bytes, and when it was last written to, in nanoseconds since 1970."""

    size: int
    mtime_ns: int

    @property
    def written_at(self) -> datetime:
        """The same instant as a time."""
        return datetime.fromtimestamp(self.mtime_ns / 1e9, UTC)


@dataclass(frozen=True)
class Note:
    """What a local file was when it was last compared: the Hub's name for its bytes, its size, its time of writing.

    `checked_at` is when the Hub last said so; `commit` the revision at which it did.
    """

    etag: str
    size: int
    mtime_ns: int
    commit: str
    checked_at: datetime

    def is_about(self, held: Held) -> bool:
        """Say whether the file is still the one that was compared."""
        return (self.size, self.mtime_ns) == (held.size, held.mtime_ns)

    def packed(self) -> list[str | int]:
        """Return the note as it is kept."""
        return [self.etag, self.size, self.mtime_ns, self.commit, self.checked_at.isoformat()]

    @classmethod
    def unpacked(cls, line: Any) -> Note:
        """Read a note as it is kept.

        Raises:
            ValueError: it is none.
            TypeError: it is none.
        """
        etag, size, mtime_ns, commit, checked_at = line
        at = datetime.fromisoformat(checked_at)
        if at.tzinfo is None:
            raise ValueError(f"{checked_at} names no zone")
        return cls(str(etag), int(size), int(mtime_ns), str(commit), at)


@dataclass(frozen=True)
class Folder:
    """A folder of local copies, laid out as the repository is."""

    root: Path

    def path(self, name: str) -> Path:
        """Return where a file of the repository lies.

        Raises:
            UnsafeName: it would lie elsewhere, or among the notes.
        """
        pure = PurePosixPath(name)
        unsafe = pure.is_absolute() or ".." in pure.parts or not pure.parts or pure.parts[0] == NOTES
        if unsafe or "\\" in name or "\0" in name:
            raise UnsafeName(f"{name!r} is no name of a file that may be kept here.")
        return self.root.joinpath(*pure.parts)

    def held(self, name: str) -> Held | None:
        """Return what is known of a file without reading it, None where it is not here."""
        try:
            found = self.path(name).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Held(found.st_size, found.st_mtime_ns)

    def names(self, below: str = "") -> Iterator[str]:
        """Give the name of every file here, below a folder of the repository where one is named."""
        waiting = [self.path(below) if below else self.root]
        while waiting:
            try:
                inside = sorted(os.scandir(waiting.pop()), key=lambda each: each.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            for each in inside:
                if each.is_dir(follow_symlinks=False):
                    if each.name != NOTES:
                        waiting.append(Path(each.path))
                elif each.is_file():
                    yield Path(each.path).relative_to(self.root).as_posix()

    def notes(self, names: Iterable[str]) -> dict[str, Note]:
        """Return the notes of files, by name; those of a folder that cannot be read are as if there were none."""
        wanted, found = set(names), dict[str, Note]()
        for folder in {name.rpartition("/")[0] for name in wanted}:
            found.update({name: note for name, note in self._notes_of(folder).items() if name in wanted})
        return found

    def write_notes(self, notes: Mapping[str, Note]) -> None:
        """Put notes beside files, in the place of older ones; those of a folder are written together, or not at all."""
        for folder in sorted({name.rpartition("/")[0] for name in notes}):
            with self.alone(f"notes~{folder}"):
                known = self._notes_of(folder)
                known.update({name: note for name, note in notes.items() if name.rpartition("/")[0] == folder})
                lines = {name.rpartition("/")[2]: note.packed() for name, note in sorted(known.items())}
                self.keep(_NOTES_OF, folder, lines)

    def _notes_of(self, folder: str) -> dict[str, Note]:
        prefix = f"{folder}/" if folder else ""
        try:
            return {f"{prefix}{n}": Note.unpacked(line) for n, line in (self.kept(_NOTES_OF, folder) or {}).items()}
        except (ValueError, TypeError):
            return {}

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Keep other processes out of what bears this name, for the length of the block; whoever dies lets go of it."""
        lock = self._kept_path("locks", name).with_suffix("")
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def keep(self, kind: str, name: str, facts: Mapping[str, Any]) -> None:
        """Keep some facts (JSON values) under a name."""
        self.write(self._kept_path(kind, name), json.dumps(facts).encode())

    def kept(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return facts that were kept; None where there are none that can be read."""
        try:
            found = json.loads(self._kept_path(kind, name).read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _kept_path(self, kind: str, name: str) -> Path:
        return self.root / NOTES / kind / f"{name.replace('/', '~') or '~'}.json"

    def write(self, target: Path, content: bytes) -> None:
        """Put small content under a name, whole."""
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="note-", dir=self.workspace())
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def workspace(self) -> Path:
        """The folder for temporary files, on the same file system as those that they become."""
        folder = self.root / NOTES / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def place(self, temporary: Path, entry: Entry, commit: str, checked_at: datetime) -> Note:
        """Give a file that was downloaded its name; return the note that is to be written of it.

        Raises:
            OSError: the folder cannot be written; what was there before is still there.
        """
        target = self.path(entry.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        written = temporary.stat().st_mtime_ns
        os.replace(temporary, target)
        _sync(target.parent)
        return Note(entry.etag, entry.size, written, commit, checked_at)

    def is_same(self, entry: Entry) -> bool:
        """Read a file and say whether its bytes are those that the Hub has."""
        held = self.held(entry.path)
        return held is not None and held.size == entry.size and digest(self.path(entry.path), entry.etag) == entry.etag


def digest(path: Path, like: str) -> str:
    """Return the hash of a file in the form of another one: SHA-256 (64 digits), or as git names it (40)."""
    if len(like) == 64:
        found: Any = hashlib.sha256()
    else:
        found = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            found.update(chunk)
    return str(found.hexdigest())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
