"""The parquet files of a quarter's statement data sets: submissions, presentation, tags and, where wanted, numbers.

Promises: the declared columns and types for every quarter, told by the file's own header and never by position; every
line is read as text first, without quoting, so that codes keep their zeros and a quotation mark is data; lines stay in
their order, each with its number. Lines that share what should be their key are all kept and flagged, and so are lines
that are not UTF-8. A line that does not fit is rejected by itself. Never: a float, or a column dropped as nobody knows
it.

A file is read in blocks of whole lines. A block in which everything is usual is read column by column; one that holds
anything else is read line by line, which takes many times as long and gives the same rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from include.contract import Body, Made, ParseError, Rejected
from include.sources.edgar.set_columns import DUPLICATE, LAYOUTS, MAY_LACK, NOT_UTF8, READ, Layout, schema

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

# Bytes of one block, which becomes one row group; how many rejected lines are shown.
BLOCK, MOST_REJECTED = 8 << 20, 200
# Past so many in a hundred, and past what is shown, the file has another form than this one.
MOST_UNFIT = 1
_BOM = b"\xef\xbb\xbf"
# What hashes of a key's columns are put together with, modulo 2 to the 64th.
_FACTOR, _MASK = 0x9E3779B97F4A7C15, 2**64 - 1


@dataclass(frozen=True)
class _Head:
    """The header: where each declared column stands, and the columns that nobody knows."""

    width: int
    places: Mapping[str, int]
    unknown: Mapping[str, int]


def _head(name: str, body: Body) -> _Head:
    with body.open() as stream:
        first = stream.readline().rstrip(b"\r\n")
    names = [each.strip().lower() for each in first.removeprefix(_BOM).decode("utf-8", "replace").split("\t")]
    layout = LAYOUTS[name]
    known = {column for column, _, _ in layout.columns}
    must = (*layout.key, *layout.needed)
    missing = [each for each in must if each not in names and each not in MAY_LACK]
    if missing or len(set(names)) != len(names):
        said = first[:80].decode("utf-8", "replace")
        raise ParseError(
            f"it does not begin with the header of {name}.txt: {said!r} lacks {', '.join(missing) or 'order'}"
        )
    places = {each: place for place, each in enumerate(names)}
    return _Head(
        len(names),
        {each: place for each, place in places.items() if each in known},
        {each: place for each, place in places.items() if each not in known},
    )


def _blocks(body: Body) -> Iterator[tuple[int, bytes]]:
    """Whole lines below the header, with the number of the first of them."""
    with body.open() as stream:
        stream.readline()
        number = 2
        while block := stream.read(BLOCK):
            block += stream.readline()
            yield number, block
            number += block.count(b"\n")


def _lines(number: int, block: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of a block with their numbers, without their ends; empty ones are none."""
    for at, line in enumerate(block.split(b"\n"), number):
        if line := line.rstrip(b"\r"):
            yield at, line


class _Unusual(Exception):
    """Something in a block is not as it usually is."""


@dataclass
class _Reading:
    """One file that is being read: what is rejected of it, and how many lines there were.

    `hashes` has those of each block's keys; the blocks of `doubtful` are read line by line, and the lines whose key is
    in `repeated` are flagged.
    """

    name: str
    head: _Head
    repeated: frozenset[bytes] = frozenset()
    doubtful: frozenset[int] = frozenset()
    hashes: list[np.ndarray] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    lines: int = 0
    unfit: int = 0

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.name]

    @property
    def key(self) -> list[int]:
        """Where the columns of the key stand."""
        return [place for each in self.layout.key if (place := self.head.places.get(each)) is not None]

    def tables(self, body: Body) -> Iterator[pa.Table]:
        """The rows, a block at a time."""
        for at, (number, block) in enumerate(_blocks(body)):
            try:
                if at in self.doubtful:
                    raise _Unusual
                table = self.at_once(number, block)
            except _Unusual:
                table = self.one_by_one(number, block)
            yield table

    # --- column by column

    def at_once(self, number: int, block: bytes) -> pa.Table:
        """The rows of a block of usual lines.

        Raises:
            _Unusual: they are not; nothing was counted.
        """
        import numpy as np
        import pyarrow as pa

        texts = self._texts(block)
        form, count = schema(self.name), texts.num_rows
        arrays: dict[str, pa.Array] = {}
        for name, kind, _ in self.layout.columns:
            place = self.head.places.get(name)
            column = pa.nulls(count, pa.string()) if place is None else texts.column(place).combine_chunks()
            if column.null_count and not form.field(name).nullable:
                raise _Unusual
            arrays[name] = column if kind == "text" else _typed(column, kind, form.field(name).type)
        arrays["file_line"] = pa.array(np.arange(number, number + count, dtype=np.int32))
        arrays["flags"] = pa.nulls(count, pa.string())
        arrays["extra"] = self._extra(texts)
        self.hashes.append(self._hashes(texts))
        self.lines += count
        return pa.table([arrays[name] for name in form.names], schema=form)

    def _texts(self, block: bytes) -> pa.Table:
        """The columns of a block as texts, by their place; what is empty is null.

        Raises:
            _Unusual: a line is empty or of another width, or is not UTF-8.
        """
        import pyarrow as pa
        from pyarrow import csv

        # What ends a line there and does not here, and what would be skipped.
        if block.startswith((b"\n", b"\r", _BOM)) or b"\n\n" in block or b"\n\r\n" in block:
            raise _Unusual
        if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
            raise _Unusual
        names = [str(place) for place in range(self.head.width)]
        try:
            return csv.read_csv(
                pa.BufferReader(block),
                csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
                csv.ParseOptions(delimiter="\t", quote_char=False, double_quote=False, escape_char=False),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
                ),
            )
        except pa.ArrowInvalid:
            raise _Unusual from None

    def _hashes(self, texts: pa.Table) -> np.ndarray:
        import numpy as np
        import pyarrow as pa

        total = np.zeros(texts.num_rows, np.uint64)
        for place in self.key:
            coded = texts.column(place).combine_chunks().dictionary_encode(null_encoding="encode")
            each = [hash(text or b"") & _MASK for text in coded.dictionary.cast(pa.binary()).to_pylist()]
            total = total * np.uint64(_FACTOR) + np.array(each, np.uint64)[coded.indices.to_numpy()]
        return total

    def _extra(self, texts: pa.Table) -> pa.Array:
        import pyarrow as pa

        columns = {name: texts.column(place) for name, place in self.head.unknown.items()}
        if all(column.null_count == len(column) for column in columns.values()):
            return pa.nulls(texts.num_rows, pa.string())
        rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
        return pa.array([_json(dict(zip(columns, row, strict=True))) for row in rows], pa.string())

    # --- line by line

    def one_by_one(self, number: int, block: bytes) -> pa.Table:
        """The rows of a block, without the lines that do not fit, which are rejected."""
        import numpy as np
        import pyarrow as pa

        rows, hashes, key = [], [], self.key
        for at, line in _lines(number, block):
            self.lines += 1
            raw = line.split(b"\t")
            if len(raw) != self.head.width:
                self.reject(at, f"it has {len(raw)} fields and not {self.head.width}", line)
                continue
            total = 0
            for place in key:
                total = (total * _FACTOR + hash(raw[place])) & _MASK
            hashes.append(total)
            if (row := self.row(at, line, raw)) is not None:
                rows.append(row)
        self.hashes.append(np.array(hashes, np.uint64))
        form = schema(self.name)
        columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(form)
        arrays = [pa.array(column, each.type) for column, each in zip(columns, form, strict=True)]
        return pa.table(arrays, schema=form)

    def row(self, number: int, line: bytes, raw: list[bytes]) -> tuple[Any, ...] | None:
        """The values of a line, in the order of the columns; None where it does not fit."""
        flags = []
        if self.repeated and self.key_of(raw) in self.repeated:
            flags.append(DUPLICATE)
        try:
            fields = line.decode().split("\t")
        except UnicodeDecodeError:
            flags.append(NOT_UTF8)
            fields = _decoded(line).split("\t")
        values: list[Any] = []
        for name, kind, _ in self.layout.columns:
            place = self.head.places.get(name)
            text = fields[place] if place is not None else ""
            if not text:
                if name in self.layout.key and name not in MAY_LACK:
                    self.reject(number, f"{name} is missing", line)
                    return None
                values.append(None)
                continue
            try:
                values.append(READ[kind](text))
            except ValueError as error:
                self.reject(number, f"{name} {error}", line)
                return None
        extra = _json({name: fields[place] for name, place in self.head.unknown.items()})
        return (*values, number, ",".join(flags) or None, extra)

    def reject(self, number: int, reason: str, line: bytes) -> None:
        self.unfit += 1
        if len(self.rejected) < MOST_REJECTED:
            self.rejected.append(Rejected(f"line {number}", reason, line.decode("utf-8", "replace")[:2_000]))

    # --- lines of one key

    def key_of(self, raw: list[bytes]) -> bytes:
        return b"\t".join([raw[place] for place in self.key])

    def again(self, body: Body) -> _Reading | None:
        """How to read the file once more, now that it is known which keys are repeated; None where none is."""
        import numpy as np

        found, counts = np.unique(np.concatenate([*self.hashes, np.zeros(0, np.uint64)]), return_counts=True)
        several = found[counts > 1]
        doubtful = frozenset(at for at, hashes in enumerate(self.hashes) if np.isin(hashes, several).any())
        counted = Counter(
            self.key_of(raw)
            for at, (number, block) in enumerate(_blocks(body))
            if at in doubtful
            for _, line in _lines(number, block)
            if len(raw := line.split(b"\t")) == self.head.width
        )
        repeated = frozenset(key for key, count in counted.items() if count > 1)
        return _Reading(self.name, self.head, repeated, doubtful) if repeated else None


def _typed(column: pa.Array, kind: str, form: pa.DataType) -> pa.Array:
    """Texts as values, each different text read once."""
    import pyarrow as pa

    coded = column.dictionary_encode()
    try:
        values = pa.array([READ[kind](text) for text in coded.dictionary.to_pylist()], form)
    except ValueError:
        raise _Unusual from None
    return values.take(coded.indices)


def _json(columns: Mapping[str, str | None]) -> str | None:
    """Columns that nobody knows, where they say something."""
    said = {name: text for name, text in columns.items() if text}
    return json.dumps(said, ensure_ascii=False, sort_keys=True) if said else None


def _decoded(line: bytes) -> str:
    try:
        return line.decode("cp1252")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def convert(name: str, body: Body, target: BinaryIO) -> Made:
    """Write a member's file; `target` can be written again from its beginning.

    Raises:
        ParseError: it is no such member, or too many of its lines do not fit.
    """
    reading = _Reading(name, _head(name, body))
    count = _write(name, reading.tables(body), target)
    if (again := reading.again(body)) is not None:
        reading = again
        target.seek(0)
        target.truncate()
        count = _write(name, reading.tables(body), target)
    if reading.unfit > MOST_REJECTED and reading.unfit * 100 > reading.lines * MOST_UNFIT:
        first = reading.rejected[0]
        raise ParseError(
            f"{reading.unfit:,} of {reading.lines:,} lines do not fit, first {first.position}: {first.reason}; "
            "it has another form than the one that is known"
        )
    return Made(count, reading.rejected, tuple(reading.head.unknown))


def write_nothing(name: str, target: BinaryIO) -> None:
    """Write the file of a member that is no longer there: the same columns, without rows."""
    _write(name, iter(()), target)


def _write(name: str, tables: Iterator[pa.Table], target: BinaryIO) -> int:
    import pyarrow.parquet as pq

    form, count = schema(name), 0
    with pq.ParquetWriter(
        target,
        form,
        compression="zstd",
        compression_level=1,
        version="2.6",
        data_page_version="1.0",
        # Readers skip row groups by these alone.
        write_statistics=[*LAYOUTS[name].key, "file_line"],
        store_schema=False,
    ) as writer:
        for table in tables:
            if table.num_rows:
                writer.write_table(table, row_group_size=table.num_rows)
                count += table.num_rows
        if not count:
            writer.write_table(form.empty_table())
    return count
