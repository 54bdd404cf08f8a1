"""What comes as an archive of many members, and what is made of them as files; the contract gives these words on.

Promises: immutable, from the standard library alone. Never: nothing is asked, unpacked or written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import BinaryIO, Protocol

from include.shapes import Rejected


class Body(Protocol):
    """The decoded bytes of a stored answer, to be read as a stream or, where they are small, whole."""

    def open(self) -> BinaryIO:
        """Open the bytes for reading from the start; the caller closes the stream."""
        ...

    def read(self) -> bytes:
        """Return all bytes."""
        ...


@dataclass(frozen=True)
class Archive:
    """An answer that is a zip archive, built anew from time to time, of which only what changed is wanted.

    What is kept of it are its directory, which is the answer, and those members that differ from the ones held, each as
    an answer to a unit of its own. `name` says whose members are compared with whose. `unit_of` gives a member's unit
    by its name, None where the name is not one that the upstream gives; those named `unwanted` are given and left where
    they are. A member that would unpack to more than `most_bytes` is put aside, and so is an archive that has less than
    `least_share` of the members of the one before.
    Every `whole_after` at least all of it is read, and compared by content.
    """

    name: str
    unit_of: Callable[[str], str | None]
    most_bytes: int = 256 << 20
    least_share: float = 0.8
    whole_after: timedelta = timedelta(days=7)
    unwanted: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Made:
    """What making a file came to: its rows, those that could not be read, and columns that nobody knew."""

    rows: int
    rejected: Sequence[Rejected] = ()
    unknown_columns: Sequence[str] = ()


def _no_file(unit: str, body: Body | None, target: BinaryIO) -> Made:
    raise AssertionError(f"no file is made of {unit} alone")


@dataclass(frozen=True)
class Gathering:
    """One file of all those that another stream has made, worked in batches of `batch`, in the order of units.

    `piece(files, target)` writes what is wanted of some of them, each of which is opened when it is read;
    `join(pieces, target)` puts those together and says how many rows there are. The same files give the same bytes,
    however often the work was broken off between two pieces. `unit` names the file in what is noted of it.
    """

    unit: str
    piece: Callable[[Iterable[Callable[[], BinaryIO]], BinaryIO], None]
    join: Callable[[Iterable[BinaryIO], BinaryIO], int]
    batch: int = 200


@dataclass(frozen=True)
class Making:
    """A stream that asks nobody: it makes one file of each unit that another stream of its source holds.

    `of` is that stream. `path` gives a unit's file, `make(unit, body, target)` writes it, the same bytes for the same
    body; a body of None says that the upstream no longer has the unit, and its file then has no rows. A body that
    cannot be read raises `ParseError`, and the file stays as it was. One part of the work, under one lease, is of about
    `part_bytes`, and of `part_units` units at most. With `gather` it makes one file of all that `of` has made instead.
    """

    of: str
    path: Callable[[str], str]
    make: Callable[[str, Body | None, BinaryIO], Made] = _no_file
    part_bytes: int = 64 << 20
    part_units: int = 500
    gather: Gathering | None = None
