"""The two binary forms of the Xet client: xorbs (chunks) and shards (how files are put together).

Promises: what cannot be read is refused with a sentence. Never: a hash is trusted to be the hash of its
content; whoever gives out a file checks its SHA-256.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

RECORD = 48
SHARD_TAG = b"HFRepoMetaData\x00"
BOOKEND = b"\xff" * 32
WITH_VERIFICATION = 1 << 31
WITH_METADATA = 1 << 30
CHUNK_HEADER = 8

STORED, LZ4, GROUPED_LZ4 = 0, 1, 2


class FormatError(ValueError):
    """Bytes are not what they should be."""


@dataclass(frozen=True)
class Chunk:
    """One chunk of a xorb: where it lies there, how it is packed and how long it really is."""

    start: int
    end: int
    scheme: int
    length: int


@dataclass(frozen=True)
class Term:
    """A run of chunks of one xorb, as part of a file: `first` inclusive, `last` exclusive."""

    xorb: str
    first: int
    last: int
    length: int


@dataclass(frozen=True)
class XetFile:
    """A file as a shard describes it: its hashes and the terms that give its bytes in order."""

    hash: str
    sha256: str
    terms: tuple[Term, ...]

    @property
    def size(self) -> int:
        """Length in bytes."""
        return sum(term.length for term in self.terms)


def hash_text(raw: bytes) -> str:
    """A 32-byte hash as the protocol writes it: four little-endian numbers."""
    return "".join(f"{number:016x}" for number in struct.unpack("<4Q", raw))


def chunks_of(xorb: bytes) -> tuple[Chunk, ...]:
    """The chunks of a xorb, in order.

    Raises:
        FormatError: the bytes end in the middle of a chunk.
    """
    chunks: list[Chunk] = []
    position = 0
    while position + CHUNK_HEADER <= len(xorb) and xorb[position] == 0:
        packed = int.from_bytes(xorb[position + 1 : position + 4], "little")
        scheme = xorb[position + 4]
        length = int.from_bytes(xorb[position + 5 : position + 8], "little")
        end = position + CHUNK_HEADER + packed
        if end > len(xorb) or scheme > GROUPED_LZ4:
            raise FormatError(f"the xorb's chunk {len(chunks)} cannot be read")
        chunks.append(Chunk(position, end, scheme, length))
        position = end
    if not chunks:
        raise FormatError("the xorb holds no chunk")
    return tuple(chunks)


def unpacked(xorb: bytes, chunk: Chunk) -> bytes:
    """A chunk's own bytes."""
    packed = xorb[chunk.start + CHUNK_HEADER : chunk.end]
    if chunk.scheme == STORED:
        return packed
    data: bytes = pa.decompress(packed, decompressed_size=chunk.length, codec="lz4", asbytes=True)
    return ungrouped(data) if chunk.scheme == GROUPED_LZ4 else data


def ungrouped(data: bytes) -> bytes:
    """Bytes that were grouped by their place modulo four, back in order."""
    result, position = bytearray(len(data)), 0
    for place in range(4):
        count = len(range(place, len(data), 4))
        result[place::4] = data[position : position + count]
        position += count
    return bytes(result)


def files_of(shard: bytes) -> tuple[XetFile, ...]:
    """The files that a shard describes.

    Raises:
        FormatError: it is no shard, or ends too early, or a file has no SHA-256.
    """
    if not shard.startswith(SHARD_TAG):
        raise FormatError("the bytes are no shard")
    records = [shard[start : start + RECORD] for start in range(RECORD, len(shard) - RECORD + 1, RECORD)]
    files: list[XetFile] = []
    position = 0
    while position < len(records) and not records[position].startswith(BOOKEND):
        name, flags, count = records[position][:32], *struct.unpack_from("<II", records[position], 32)
        position += 1
        terms = tuple(_term(record) for record in records[position : position + count])
        position += count * (2 if flags & WITH_VERIFICATION else 1)
        if not flags & WITH_METADATA or position >= len(records):
            raise FormatError(f"the shard says no SHA-256 for the file {hash_text(name)}")
        files.append(XetFile(hash_text(name), hash_text(records[position][:32]), terms))
        position += 1
    return tuple(files)


def _term(record: bytes) -> Term:
    _, length, first, last = struct.unpack_from("<4I", record, 32)
    return Term(hash_text(record[:32]), first, last, length)


def part_of(
    terms: Sequence[Term], chunks: dict[str, tuple[Chunk, ...]], start: int, end: int
) -> tuple[list[Term], int]:
    """The terms that cover the bytes `start` to `end` (exclusive) of a file, cut to whole chunks.

    Gives also how many bytes of the first chunk lie before `start`.
    """
    chosen: list[Term] = []
    offset, position = 0, 0
    for term in terms:
        kept: list[int] = []
        for index in range(term.first, term.last):
            length = chunks[term.xorb][index].length
            if position < end and position + length > start:
                if not chosen and not kept:
                    offset = start - position
                kept.append(index)
            position += length
        if kept:
            whole = sum(chunks[term.xorb][index].length for index in kept)
            chosen.append(Term(term.xorb, kept[0], kept[-1] + 1, whole))
    return chosen, offset
