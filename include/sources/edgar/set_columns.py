"""The columns of the quarterly statement data sets, their keys and types, and how each kind of text is read.

Promises: a text becomes a value in one way, and exactly; what is no value of its kind raises ValueError in words.
Never: a float, or a value that was rounded.

Source of columns, types and keys: the SEC's documentation of its Financial Statement Data Sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    import pyarrow as pa

EASTERN = ZoneInfo("America/New_York")
DUPLICATE, NOT_UTF8 = "duplicate_key", "not_utf8"
# Columns of the key that were added over the years, and may be empty.
MAY_LACK = ("segments", "coreg")
_DAY = re.compile(r"[0-9]{8}")
_WHOLE = re.compile(r"[0-9]{1,18}")
# Decimal itself would also take blanks, underscores and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_INSTANT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.0+)?")
_WIDE = Context(prec=60)


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


READ: Mapping[str, Callable[[str], Any]] = {
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
    must = {each for each in layout.key if each not in MAY_LACK} | {"file_line"}
    fields = [
        pa.field(column, types[kind], column not in must, {"comment": about})
        for column, kind, about in (*layout.columns, *OURS)
    ]
    return pa.schema(fields, {"release": f"edgar/meta/{name}", "key": "file_line"})
