"""Drafts: what is written before it bears its name, where it lies, and which of it nobody will go on with.

Promises: a draft lies beside what it becomes, or, where that is in an object store, in a folder of this user's own
below the system's temporary one; what a killed process left there goes once nothing of it was written for a day, which
is far longer than any task works. Never: a file goes that bears the name by which a row or a reader knows it, that we
did not make, or that a cycle may go on with that is not over.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from upath import UPath

# How long nothing of a draft was written when nobody writes it any more.
OLD = timedelta(days=1)
# The folders for drafts of the raw store, of made files and of the outbox, and that of downloads within the first.
INCOMING, MAKING, BUILDING, DOWNLOADS = ".incoming", ".making", ".building", "daybook-downloads"


@dataclass(frozen=True)
class Roots:
    """Where an installation keeps its stores: paths or fsspec URLs, as the settings have them."""

    raw: str
    files: str
    outbox: str
    cache: str


@dataclass(frozen=True)
class Swept:
    """What was removed: how many drafts, of how many bytes; and why not all, where that is so."""

    removed: int = 0
    size: int = 0
    trouble: str = ""


def beside(root: UPath, name: str) -> Path:
    """Return the folder for drafts of a store: beside what they become where that is a folder of this machine.

    Raises:
        OSError: it cannot be made.
    """
    if not _is_local(root):
        here()
    folder = _place(root, name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def here() -> Path:
    """Return this user's own folder for drafts on this machine.

    Raises:
        OSError: it cannot be made, or somebody else made one of its name, who could then change what is in it.
    """
    folder = _here()
    folder.mkdir(mode=0o700, exist_ok=True)
    if not _is_ours(folder):
        raise PermissionError(f"{folder} is not ours, so nothing is written there. Have it removed, or set TMPDIR.")
    return folder


def sweep(roots: Roots, going_on: Callable[[], Collection[str]], old: timedelta = OLD) -> Swept:
    """Remove the drafts that nobody will go on with, of the stores and of this machine.

    Args:
        roots: where the stores are.
        going_on: gives the streams that have a cycle which is not over; asked where there is anything to remove.
        old: how long ago a draft was last written, by the clock of this machine's files, as that is what it bears.
    """
    before = _file_clock() - old.total_seconds()
    found = [path for path in _drafts(roots) if _written_at(path) < before]
    # Asked after they were found, so that whoever began meanwhile is known.
    streams = going_on() if found else ()
    removed, size, trouble = 0, 0, ""
    for path in found:
        if _is_wanted(path, streams):
            continue
        bytes_of = _size(path)
        try:
            _remove(path)
        except OSError as error:
            trouble = trouble or f"{path.name}: {error.strerror or type(error).__name__}"
            continue
        removed, size = removed + 1, size + bytes_of
    return Swept(removed, size, trouble)


def _drafts(roots: Roots) -> Iterator[Path]:
    raw, files, outbox, cache = (UPath(root) for root in (roots.raw, roots.files, roots.outbox, roots.cache))
    for folder, patterns in (
        (_place(raw, INCOMING), ("put-*", f"{DOWNLOADS}/*.part", f"{DOWNLOADS}/*.part.json")),
        (_place(raw, "journal"), ("*/*/*/.incoming-*",)),
        (_place(files, MAKING), ("made-*", "*.piece")),
        (_place(outbox, BUILDING), ("build-*",)),
        (_place(cache, ".daybook/tmp"), ("get-*", "note-*")),
        (_here(), ("publish-*", "download-*", "upstream-*")),
    ):
        if folder.is_relative_to(_here()) and not _is_ours(_here()):
            continue
        for pattern in patterns:
            yield from sorted(folder.glob(pattern))


def _is_wanted(path: Path, streams: Collection[str]) -> bool:
    """Say whether a cycle may go on with it: pieces and downloads bear the name of their stream first."""
    if path.suffix != ".piece" and path.parent.name != DOWNLOADS:
        return False
    return any(path.name.startswith((f"{stream}-", f"{stream}.")) for stream in streams)


def _is_local(root: UPath) -> bool:
    return root.protocol in ("", "file", "local")


def _place(root: UPath, name: str) -> Path:
    if _is_local(root):
        return Path(str(root)) / name
    return _here() / f"{name.removeprefix('.')}-{hashlib.sha256(str(root).encode()).hexdigest()[:8]}"


def _here() -> Path:
    return Path(tempfile.gettempdir()) / f"daybook-{os.getuid()}"


def _is_ours(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _inside(path: Path) -> Iterator[os.stat_result]:
    """What is known of a file, or of a folder and all that is in it; what vanishes meanwhile is left out."""
    waiting = [path]
    while waiting:
        one = waiting.pop()
        try:
            found = one.lstat()
            yield found
            if stat.S_ISDIR(found.st_mode):
                waiting.extend(one.iterdir())
        except FileNotFoundError:
            continue


def _file_clock() -> float:
    """The time that a file has which is written now: the clock that wrote the others' times."""
    with tempfile.TemporaryFile() as file:
        return os.fstat(file.fileno()).st_mtime


def _written_at(path: Path) -> float:
    """When anything of a draft was last written; one that is gone was written just now."""
    return max((found.st_mtime for found in _inside(path)), default=math.inf)


def _size(path: Path) -> int:
    return sum(found.st_size for found in _inside(path) if stat.S_ISREG(found.st_mode))


def _remove(path: Path) -> None:
    remove: Callable[[Path], None] = shutil.rmtree if path.is_dir() and not path.is_symlink() else Path.unlink
    try:
        remove(path)
    except FileNotFoundError:
        # Its writer lives after all, and has just put it away or given it its name.
        return
