"""Zip archives read by their directory: what is in them, by name, checksum and size, without unpacking anything.

Promises: the directory is found from the end of the file, large archives (zip64) included, and what it says is checked
against the file's size before it is believed; a member is unpacked in pieces, never past the size that it declares, and
its CRC-32 is checked at its end. Never: a member is written under its own name.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

_END, _END64, _LOCATOR64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_ENTRY, _LOCAL = b"PK\x01\x02", b"PK\x03\x04"
_END_SIZE, _ENTRY_SIZE, _LOCAL_SIZE, _LOCATOR_SIZE, _END64_SIZE = 22, 46, 30, 20, 56
_FULL32, _FULL16 = 0xFFFFFFFF, 0xFFFF
# The end record, a comment of the greatest length, and what stands before it in a large archive.
TAIL = _END_SIZE + _FULL16 + _LOCATOR_SIZE + _END64_SIZE
STORED, DEFLATED = 0, 8
CHUNK = 1 << 16


class ArchiveUnfit(Exception):
    """The bytes are no whole zip archive; the text says what is wrong."""


class MemberUnfit(Exception):
    """One member cannot be unpacked as the directory says; the text says why. The others may be whole."""


@dataclass(frozen=True)
class Where:
    """Where the directory stands in its archive, and how many members it has."""

    start: int
    size: int
    count: int


@dataclass(frozen=True)
class Entry:
    """A member as the directory has it; `offset` is where its own header begins, `packed` its size in the archive."""

    name: str
    crc32: int
    size: int
    packed: int
    offset: int
    method: int
    is_encrypted: bool = False


def where(tail: bytes, length: int) -> Where:
    """Find the directory from the last bytes of an archive of a length.

    Raises:
        ArchiveUnfit: these are not the last bytes of a whole archive.
    """
    position = tail.rfind(_END)
    while position >= 0:
        if len(tail) - position >= _END_SIZE:
            (comment,) = struct.unpack_from("<H", tail, position + 20)
            if position + _END_SIZE + comment == len(tail):
                break
        position = tail.rfind(_END, 0, position)
    if position < 0:
        raise ArchiveUnfit("it does not end as a zip archive does: it was cut, or is something else")
    disk, first_disk, _, count, size, start = struct.unpack_from("<HHHHII", tail, position + 4)
    if _FULL16 in (count, disk) or _FULL32 in (size, start):
        count, size, start = _where64(tail, position, length)
    elif disk or first_disk:
        raise ArchiveUnfit("it is one of several volumes")
    end = length - (len(tail) - position)
    if start + size > end:
        raise ArchiveUnfit(f"its directory would end at byte {start + size:,} of {length:,}")
    return Where(start, size, count)


def _where64(tail: bytes, position: int, length: int) -> tuple[int, int, int]:
    at = position - _LOCATOR_SIZE
    if at < 0 or tail[at : at + 4] != _LOCATOR64:
        raise ArchiveUnfit("it is a large archive whose locator is missing")
    (offset,) = struct.unpack_from("<Q", tail, at + 8)
    inside = offset - (length - len(tail))
    if inside < 0 or tail[inside : inside + 4] != _END64 or inside + _END64_SIZE > len(tail):
        raise ArchiveUnfit("it is a large archive whose end record is not where the locator says")
    count, size, start = struct.unpack_from("<QQQ", tail, inside + 32)
    return count, size, start


def entries(directory: bytes, count: int) -> list[Entry]:
    """Read a directory, in its order.

    Raises:
        ArchiveUnfit: it does not hold so many entries.
    """
    found: list[Entry] = []
    position = 0
    while position < len(directory):
        if directory[position : position + 4] != _ENTRY or position + _ENTRY_SIZE > len(directory):
            if len(found) == count:
                break
            raise ArchiveUnfit(f"entry {len(found) + 1:,} of its directory cannot be read")
        (flags, method, _, _, crc, packed, size, name_length, extra_length, comment_length, _, _, _, offset) = (
            struct.unpack_from("<HHHHIIIHHHHHII", directory, position + 8)
        )
        name_at = position + _ENTRY_SIZE
        extra_at = name_at + name_length
        position = extra_at + extra_length + comment_length
        if position > len(directory):
            raise ArchiveUnfit(f"entry {len(found) + 1:,} of its directory is cut")
        if _FULL32 in (size, packed, offset):
            size, packed, offset = _large(directory[extra_at : extra_at + extra_length], size, packed, offset)
        name = directory[name_at:extra_at].decode("utf-8" if flags & 0x800 else "cp437", "replace")
        found.append(Entry(name, crc, size, packed, offset, method, bool(flags & 1)))
    if len(found) != count and not (count <= _FULL16 and len(found) % (_FULL16 + 1) == count):
        raise ArchiveUnfit(f"its directory has {len(found):,} entries and not {count:,}")
    return found


def _large(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            values = iter(struct.unpack_from(f"<{min(length, len(extra) - at - 4) // 8}Q", extra, at + 4))
            size, packed, offset = (next(values, each) if each == _FULL32 else each for each in (size, packed, offset))
        at += 4 + length
    return size, packed, offset


def directory_of(file: BinaryIO, length: int) -> tuple[bytes, list[Entry]]:
    """Return the directory of an archive, as it stands and read.

    Raises:
        ArchiveUnfit: it is no whole archive.
    """
    tail_at = max(0, length - TAIL)
    file.seek(tail_at)
    found = where(file.read(TAIL), length)
    file.seek(found.start)
    directory = file.read(found.size)
    if len(directory) != found.size:
        raise ArchiveUnfit(f"its directory is cut after {len(directory):,} of {found.size:,} bytes")
    return directory, entries(directory, found.count)


def ends(all_entries: Iterable[Entry], directory_start: int) -> dict[int, int]:
    """Return where each member's bytes end at the latest, by its offset: where the next one begins."""
    offsets = sorted({entry.offset for entry in all_entries})
    return dict(zip(offsets, [*offsets[1:], directory_start], strict=True))


def unpacked(entry: Entry, file: BinaryIO, base: int = 0) -> Iterator[bytes]:
    """Unpack a member, in pieces; its checksum is compared at its end.

    Args:
        entry: the member, as the directory has it.
        file: the archive, or a piece of it.
        base: where in the archive the file begins.

    Raises:
        MemberUnfit: it is not what the directory says; the pieces given before must not be used.
    """
    if entry.is_encrypted or entry.method not in (STORED, DEFLATED):
        raise MemberUnfit(f"it is packed in a way that is not read (method {entry.method})")
    file.seek(entry.offset - base)
    header = file.read(_LOCAL_SIZE)
    if len(header) < _LOCAL_SIZE or header[:4] != _LOCAL:
        raise MemberUnfit("its header is not where the directory says")
    name_length, extra_length = struct.unpack_from("<HH", header, 26)
    file.seek(name_length + extra_length, 1)
    pieces = _inflated(entry, file) if entry.method == DEFLATED else _copied(entry, file)
    size, crc = 0, 0
    for piece in pieces:
        size += len(piece)
        if size > entry.size:
            raise MemberUnfit(f"it holds more than the {entry.size:,} bytes that the directory says")
        crc = zlib.crc32(piece, crc)
        yield piece
    if size != entry.size or crc != entry.crc32:
        raise MemberUnfit(f"its bytes are not those of its checksum ({size:,} of {entry.size:,} bytes)")


def _copied(entry: Entry, file: BinaryIO) -> Iterator[bytes]:
    left = entry.packed
    while left and (piece := file.read(min(CHUNK, left))):
        left -= len(piece)
        yield piece


def _inflated(entry: Entry, file: BinaryIO) -> Iterator[bytes]:
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for packed in _copied(entry, file):
            piece = inflate.decompress(packed, CHUNK * 16)
            while piece:
                yield piece
                piece = inflate.decompress(inflate.unconsumed_tail, CHUNK * 16) if inflate.unconsumed_tail else b""
        rest = inflate.flush()
    except zlib.error as error:
        raise MemberUnfit(f"it cannot be unpacked: {error}") from None
    if not inflate.eof:
        raise MemberUnfit("it is cut")
    if rest:
        yield rest
