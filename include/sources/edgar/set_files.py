"""The parquet files of a quarter's statement data sets: submissions, presentation, tags and, where wanted, numbers.

Promises: the columns and types below for every quarter, told by the file's own header and never by position; every line
is read as text first, without quoting, so that codes keep their zeros and a quotation mark is data; lines stay in their
order, each with its number. Lines that share what should be their key are all kept and flagged, and so are lines that
are not UTF-8. A line that does not fit is rejected by itself. Never: a float, or a column dropped as nobody knows it.

Source of columns, types and keys: the SEC's documentation of its Financial Statement Data Sets.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO
from zoneinfo import ZoneInfo

from include.contract import Body, Made, ParseError, Rejected

if TYPE_CHECKING:
    import pyarrow as pa

EASTERN = ZoneInfo("America/New_York")
# Lines of one row group, and how many rejected ones are shown.
ROWS, MOST_REJECTED = 65_536, 200
# Past so many in a hundred, and past what is shown, the file has another form than this one.
MOST_UNFIT = 1
DUPLICATE, NOT_UTF8 = "duplicate_key", "not_utf8"
_DAY = re.compile(r"[0-9]{8}")
_WHOLE = re.compile(r"[0-9]{1,18}")
# Decimal itself would also take blanks, underscores and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_INSTANT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.0+)?")


@dataclass(frozen=True)
class Layout:
    """A member's columns as (name, kind, what it is), those that should name a line, and others that say what it is of.

    A file without one of `key` or `needed` is refused, but for columns of the key that were added over the years.
    """

    columns: tuple[tuple[str, str, str], ...]
    key: tuple[str, ...]
    needed: tuple[str, ...]


SUB = Layout(
    (
        ("adsh", "text", "Accession of the filing, with dashes"),
        ("cik", "int64", "Primary registrant, by its number at the SEC"),
        ("name", "text", "Its name"),
        ("sic", "int32", "Standard industrial classification"),
        ("countryba", "text", "Business address: country"),
        ("stprba", "text", "Business address: state or province, in the US and Canada alone"),
        ("cityba", "text", "Business address: city"),
        ("zipba", "text", "Business address: postal code"),
        ("bas1", "text", "Business address: first line"),
        ("bas2", "text", "Business address: second line"),
        ("baph", "text", "Business address: telephone"),
        ("countryma", "text", "Mailing address: country"),
        ("stprma", "text", "Mailing address: state or province"),
        ("cityma", "text", "Mailing address: city"),
        ("zipma", "text", "Mailing address: postal code"),
        ("mas1", "text", "Mailing address: first line"),
        ("mas2", "text", "Mailing address: second line"),
        ("countryinc", "text", "Country of incorporation"),
        ("stprinc", "text", "State or province of incorporation"),
        ("ein", "text", "Employer identification number, with its zeros"),
        ("former", "text", "Last former name"),
        ("changed", "day", "Day on which the name changed"),
        ("afs", "text", "Filer status"),
        ("wksi", "flag", "Whether it is a well known seasoned issuer"),
        ("fye", "mmdd", "End of the fiscal year, month and day"),
        ("form", "text", "Form of the filing"),
        ("period", "day", "Balance sheet date, rounded to the nearest end of a month"),
        ("fy", "int32", "Fiscal year of the filing"),
        ("fp", "text", "Fiscal period of the filing"),
        ("filed", "day", "Day on which it was filed"),
        ("accepted", "instant", "When EDGAR accepted it; the file has the time of New York"),
        ("prevrpt", "flag", "Whether a later filing amended it, as known when the set was built"),
        ("detail", "flag", "Whether notes are tagged in detail"),
        ("instance", "text", "Name of its XBRL instance"),
        ("nciks", "int32", "How many registrants it has"),
        ("aciks", "text", "Numbers of the others, with blanks between them; may be cut"),
    ),
    ("adsh",),
    ("cik", "name", "form", "filed", "accepted"),
)
PRE = Layout(
    (
        ("adsh", "text", "Accession of the filing, with dashes"),
        ("report", "int32", "Number of the report within the filing"),
        ("line", "int32", "Place within the report"),
        ("stmt", "text", "Statement: BS, IS, CF, EQ, CI, UN, SI or CP"),
        ("inpth", "flag", "Whether it was shown in parentheses"),
        ("rfile", "text", "H for htm, X for xml"),
        ("tag", "text", "Tag"),
        ("version", "text", "Its taxonomy, or the accession where it is a custom tag"),
        ("plabel", "text", "Label as shown"),
        ("negating", "flag", "Whether it was shown with its sign reversed; values are not reversed"),
    ),
    ("adsh", "report", "line"),
    ("stmt", "tag", "version", "plabel"),
)
TAG = Layout(
    (
        ("tag", "text", "Tag"),
        ("version", "text", "Its taxonomy, or the accession where it is a custom tag"),
        ("custom", "flag", "Whether it is a custom tag"),
        ("abstract", "flag", "Whether it has no values"),
        ("datatype", "text", "Type of its values"),
        ("iord", "text", "I for an instant, D for a duration"),
        ("crdr", "text", "C for credit, D for debit"),
        ("tlabel", "text", "Label of the taxonomy"),
        ("doc", "text", "Its definition"),
    ),
    ("tag", "version"),
    ("custom", "abstract", "datatype"),
)
NUM = Layout(
    (
        ("adsh", "text", "Accession of the filing, with dashes"),
        ("tag", "text", "Tag"),
        ("version", "text", "Its taxonomy, or the accession where it is a custom tag"),
        ("ddate", "day", "End of the period, rounded to the nearest end of a month"),
        ("qtrs", "int32", "Length of the period in quarters, 0 at an instant"),
        ("uom", "text", "Unit"),
        ("segments", "text", "Dimensions; those without are of the whole. Sets from before 2025 have none"),
        ("coreg", "text", "Co-registrant, where it is not the primary one's"),
        ("value", "decimal", "Value, rounded to four digits; null where it is nil"),
        ("footnote", "text", "Footnote; may be cut"),
    ),
    ("adsh", "tag", "version", "ddate", "qtrs", "uom", "segments", "coreg"),
    ("value",),
)
LAYOUTS: Mapping[str, Layout] = {"sub": SUB, "pre": PRE, "tag": TAG, "num": NUM}
# Behind the columns of the set.
OURS = (
    ("file_line", "int32", "Number of the line in the file, whose header is line 1"),
    ("flags", "text", f"{DUPLICATE}: other lines have the same key; {NOT_UTF8}: read as Windows-1252 or Latin-1"),
    ("extra", "text", "Columns that nobody knows, as JSON"),
)


# --- values


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError("is no whole number")
    return int(text)


def _whole32(text: str) -> int:
    number = _whole(text)
    if not -(2**31) <= number < 2**31:
        raise ValueError("is too large")
    return number


@lru_cache(maxsize=1 << 14)
def _day(text: str) -> date:
    if not _DAY.fullmatch(text):
        raise ValueError("is no day")
    return date(int(text[:4]), int(text[4:6]), int(text[6:]))


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("is neither 0 nor 1")
    return text == "1"


def _instant(text: str) -> datetime:
    """An instant of New York's time; in the hour that is there twice, when nobody files, the first one."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise ValueError("is no instant")
    return datetime.fromisoformat(found[1]).replace(tzinfo=EASTERN).astimezone(UTC)


def _mmdd(text: str) -> str:
    if not text.isdigit() or len(text) not in (3, 4):
        raise ValueError("is no month and day")
    return text.zfill(4)


def _decimal(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError("is no number")
    number = Decimal(text)
    # Zeros at its end say nothing; 28 digits, four of them behind the point, are what the documentation allows. What is
    # longer before the point is not rounded at all: that would need more digits than the context has.
    is_long = number.adjusted() >= 24
    exact = number if is_long else number.quantize(Decimal("0.0001"), context=_WIDE)
    if is_long or exact != number:
        raise ValueError("has more than 24 digits before the point, or more than four behind it")
    return exact


def _wide() -> Any:
    from decimal import Context

    return Context(prec=60)


_WIDE = _wide()
_READ: Mapping[str, Callable[[str], Any]] = {
    "text": str,
    "mmdd": _mmdd,
    "int32": _whole32,
    "int64": _whole,
    "day": _day,
    "flag": _flag,
    "instant": _instant,
    "decimal": _decimal,
}


@cache
def schema(name: str) -> pa.Schema:
    """The schema of the files of a member: the same for every quarter."""
    import pyarrow as pa

    types = {
        "text": pa.string(),
        "mmdd": pa.string(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "day": pa.date32(),
        "flag": pa.bool_(),
        "instant": pa.timestamp("us", "UTC"),
        "decimal": pa.decimal128(28, 4),
    }
    layout = LAYOUTS[name]
    must = {each for each in layout.key if each not in ("segments", "coreg")} | {"file_line"}
    fields = [
        pa.field(column, types[kind], column not in must, {"comment": about})
        for column, kind, about in (*layout.columns, *OURS)
    ]
    return pa.schema(fields, {"release": f"edgar/meta/{name}", "key": "file_line"})


# --- lines


@dataclass(frozen=True)
class _Head:
    """The header: where each declared column stands, and the columns that nobody knows."""

    width: int
    places: Mapping[str, int]
    unknown: Mapping[str, int]


def _lines(body: Body) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers, without their ends; empty ones are none."""
    with body.open() as stream:
        for number, line in enumerate(stream, start=1):
            if line := line.rstrip(b"\r\n"):
                yield number, line


def _head(name: str, body: Body) -> _Head:
    first = next((line for _, line in _lines(body)), b"")
    names = [
        each.strip().lower() for each in first.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").split("\t")
    ]
    layout = LAYOUTS[name]
    known = {column for column, _, _ in layout.columns}
    must = (*layout.key, *layout.needed)
    missing = [each for each in must if each not in names and each not in ("segments", "coreg")]
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


def _repeated(layout: Layout, head: _Head, body: Body) -> frozenset[bytes]:
    """The keys that more than one line has: told by their hashes first, as nearly all have one line."""
    import numpy as np

    places = [head.places[each] for each in layout.key if each in head.places]

    def keys() -> Iterator[bytes]:
        for number, line in _lines(body):
            fields = line.split(b"\t")
            if number > 1 and len(fields) == head.width:
                yield b"\t".join([fields[place] for place in places])

    hashes = np.frombuffer(array("q", (hash(key) for key in keys())), dtype=np.int64)
    found, counts = np.unique(hashes, return_counts=True)
    doubtful = set(found[counts > 1].tolist())
    if not doubtful:
        return frozenset()
    counted = Counter(key for key in keys() if hash(key) in doubtful)
    return frozenset(key for key, count in counted.items() if count > 1)


@dataclass
class _Reading:
    """One file that is being read: what is rejected of it, and how many lines there were."""

    layout: Layout
    head: _Head
    repeated: frozenset[bytes]
    rejected: list[Rejected]
    lines: int = 0
    unfit: int = 0

    def reject(self, number: int, reason: str, line: bytes) -> None:
        self.unfit += 1
        if len(self.rejected) < MOST_REJECTED:
            self.rejected.append(Rejected(f"line {number}", reason, line.decode("utf-8", "replace")[:2_000]))

    def row(self, number: int, line: bytes) -> tuple[Any, ...] | None:
        """The values of a line, in the order of the columns; None where it does not fit."""
        raw = line.split(b"\t")
        if len(raw) != self.head.width:
            self.reject(number, f"it has {len(raw)} fields and not {self.head.width}", line)
            return None
        flags = []
        if (
            self.repeated
            and b"\t".join([raw[p] for k in self.layout.key if (p := self.head.places.get(k)) is not None])
            in self.repeated
        ):
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
                if name in self.layout.key and name not in ("segments", "coreg"):
                    self.reject(number, f"{name} is missing", line)
                    return None
                values.append(None)
                continue
            try:
                values.append(_READ[kind](text))
            except ValueError as error:
                self.reject(number, f"{name} {error}", line)
                return None
        extra = {name: fields[place] for name, place in self.head.unknown.items() if fields[place]}
        told = json.dumps(extra, ensure_ascii=False, sort_keys=True) if extra else None
        return (*values, number, ",".join(flags) or None, told)

    def rows(self, body: Body) -> Iterator[list[tuple[Any, ...]]]:
        """The rows, a row group at a time."""
        rows: list[tuple[Any, ...]] = []
        for number, line in _lines(body):
            if number == 1:
                continue
            self.lines += 1
            if (row := self.row(number, line)) is not None:
                rows.append(row)
            if len(rows) == ROWS:
                yield rows
                rows = []
        yield rows


def _decoded(line: bytes) -> str:
    try:
        return line.decode("cp1252")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def convert(name: str, body: Body, target: BinaryIO) -> Made:
    """Write a member's file.

    Raises:
        ParseError: it is no such member, or too many of its lines do not fit.
    """
    head = _head(name, body)
    layout = LAYOUTS[name]
    reading = _Reading(layout, head, _repeated(layout, head, body), [])
    count = _write(name, reading.rows(body), target)
    if reading.unfit > MOST_REJECTED and reading.unfit * 100 > reading.lines * MOST_UNFIT:
        first = reading.rejected[0]
        raise ParseError(
            f"{reading.unfit:,} of {reading.lines:,} lines do not fit, first {first.position}: {first.reason}; "
            "it has another form than the one that is known"
        )
    return Made(count, reading.rejected, tuple(head.unknown))


def write_nothing(name: str, target: BinaryIO) -> None:
    """Write the file of a member that is no longer there: the same columns, without rows."""
    _write(name, iter([[]]), target)


def _write(name: str, groups: Iterator[Sequence[tuple[Any, ...]]], target: BinaryIO) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    form, count = schema(name), 0
    with pq.ParquetWriter(
        target,
        form,
        compression="zstd",
        compression_level=3,
        version="2.6",
        data_page_version="1.0",
        store_schema=False,
    ) as writer:
        for rows in groups:
            columns = zip(*rows, strict=True) if rows else [()] * len(form)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, form, strict=True)]
            if rows or not count:
                writer.write_table(pa.table(arrays, schema=form), row_group_size=ROWS)
            count += len(rows)
    return count
