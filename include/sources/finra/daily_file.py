"""Reading FINRA's daily short sale volume files, as they have been over the years.

Promises: every row is read exactly (volumes as decimals, symbols with their case) or rejected with its line and
reason; a file that was cut is refused whole. Never: no guess at types, no repair of a value.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

from include.contract import Answer, AnswerClass, Batch, Parsed, ParseError, Rejected, Unit
from include.sources.finra.tables import SHORT_VOLUME

PARSER_VERSION = 1

# The header in its spellings: with and without blanks, "Market Center" for "Market"; the exempt column is absent
# before 2011-02-28.
_COLUMNS = {
    "date": "session_date",
    "symbol": "symbol",
    "shortvolume": "short_volume",
    "shortexemptvolume": "short_exempt_volume",
    "totalvolume": "total_volume",
    "market": "market",
    "marketcenter": "market",
}
_NEEDED = {"session_date", "symbol", "short_volume", "total_volume", "market"}
_EXEMPT_SINCE = date(2011, 2, 28)
# Trailers of old files are not reliable as a count of rows (a 2019 file says 732832 over a few thousand rows);
# from this date on a trailer must be there and must match.
TRAILER_IS_ROW_COUNT_SINCE = date(2020, 1, 1)

# Where no row can be read, so many of them are told one by one; more are another format, which is told once.
MOST_REJECTED = 200

_VOLUME = re.compile(r"[0-9]{1,14}(\.[0-9]{0,6})?|\.[0-9]{1,6}")
_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
_COUNT = re.compile(r"\s*([0-9]{1,9})\s*")
# One letter for each facility, with commas between them.
_MARKET = re.compile(r"[A-Za-z]{1,4}(?:\s*,\s*[A-Za-z]{1,4})*")


def classify(answer: Answer) -> AnswerClass:
    """Tell what the CDN answered.

    A missing file is answered with 403 (or 404) and XML, whatever the reason: not yet, where the calendar
    expects a file; absent, where it does not. A 403 that is a page for people is a block.
    """
    head = b""
    if answer.status in (200, 403, 404):
        with answer.body.open() as stream:
            head = stream.read(4096).lstrip().lower()
    is_page = head.startswith((b"<!doctype html", b"<html"))
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    if answer.status == 200:
        if head.startswith((b"<!doctype", b"<html", b"<?xml", b"<error")):
            return AnswerClass.BLOCKED if is_page else AnswerClass.ERROR
        if not head:
            return AnswerClass.ERROR
        return AnswerClass.EMPTY if _has_no_rows(head) else AnswerClass.DATA
    if answer.status == 403 and is_page:
        return AnswerClass.BLOCKED
    if answer.status in (403, 404):
        return AnswerClass.NOT_YET if answer.request.expected else AnswerClass.ABSENT
    return AnswerClass.ERROR


def _has_no_rows(head: bytes) -> bool:
    """A header and a trailer of "0": the facility had no trades."""
    header, *lines = head.decode("utf-8", errors="replace").split("\n")
    return "|" in header and [line.strip() for line in lines if line.strip()] == ["0"]


def parse(unit: Unit) -> Parsed:
    """Read one file.

    Raises:
        ParseError: the file is not UTF-8, has no header that we know, lacks its trailer, its trailer says another
            number of rows, or none of many rows can be read.
    """
    (answer,) = unit.answers
    facility = unit.key.partition("/")[0]
    try:
        text = answer.body.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"byte {error.start} is not UTF-8: {error.reason}") from None
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise ParseError("the file is empty: not even a header")
    order, unknown = _header(lines[0], unit.session_date)
    count = _COUNT.fullmatch(lines[-1])
    trailer = int(count[1]) if count else None
    if count:
        lines.pop()
    _check_trailer(trailer, len(lines) - 1, unit.session_date)
    if count and not text.endswith("\n") and lines[1:] and lines[-1].startswith(count[1]) and trailer != len(lines) - 1:
        raise ParseError(f"its last line, {count[1]!r}, is the beginning of a row: the file was cut")

    rows, rejected = [], []
    names = SHORT_VOLUME.column_names
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("|")
        if len(fields) != len(order):
            reason = f"{len(fields)} fields where the header has {len(order)}"
            rejected.append(Rejected(f"line {number}", reason, line[:2000]))
            continue
        try:
            values = _values(dict(zip(order, fields, strict=True)))
        except ValueError as error:
            rejected.append(Rejected(f"line {number}", str(error), line[:2000]))
            continue
        values["facility"] = facility
        rows.append((*(values.get(name) for name in names), values.get("extra")))
    if len(rejected) > MOST_REJECTED and not rows:
        first = rejected[0]
        raise ParseError(f"none of its {len(rejected):,} rows can be read; the first, {first.position}: {first.reason}")
    return Parsed((Batch(SHORT_VOLUME, rows),), tuple(rejected), unknown)


def _header(line: str, day: date | None) -> tuple[list[str], tuple[str, ...]]:
    """Map the header to our columns; what nobody knows keeps its name and is reported."""
    order, unknown = [], []
    for field in line.removeprefix("\ufeff").split("|"):
        column = _COLUMNS.get(re.sub(r"[\s_]", "", field).lower())
        if column is None:
            unknown.append(field.strip())
        order.append(column or f"unknown:{field.strip()}")
    missing = sorted(_NEEDED - set(order))
    if day is not None and day >= _EXEMPT_SINCE and "short_exempt_volume" not in order:
        missing.append("short_exempt_volume")
    if missing:
        raise ParseError(f"the header lacks {', '.join(missing)}; it reads {line[:200]!r}")
    if len(set(order)) != len(order):
        raise ParseError(f"the header names a column twice; it reads {line[:200]!r}")
    return order, tuple(unknown)


def _check_trailer(trailer: int | None, rows: int, day: date | None) -> None:
    """A trailer that counts rows must be there and match: else the file was cut."""
    if rows == 0 and trailer != 0:
        raise ParseError("nothing follows the header, and no trailer says that there is nothing: the file was cut")
    if day is None or day < TRAILER_IS_ROW_COUNT_SINCE:
        return
    if trailer is None:
        raise ParseError(f"no trailer after {rows} rows: the file was cut")
    if trailer != rows:
        raise ParseError(f"the trailer says {trailer} rows, the file has {rows}: it was cut")


def _values(fields: dict[str, str]) -> dict[str, object]:
    """Turn one line's fields into values, exactly as given.

    Raises:
        ValueError: a date, a volume or a market is not one; the text says which.
    """
    match = _DATE.fullmatch(fields["session_date"].strip())
    if match is None:
        raise ValueError(f"{fields['session_date']!r} is not a date")
    market = fields["market"].strip()
    if not _MARKET.fullmatch(market):
        raise ValueError(f"market is {market!r}, which names no facility")
    values: dict[str, object] = {
        "session_date": date(*map(int, match.groups())),
        "symbol": fields["symbol"].strip(),
        "market": market,
    }
    for name in ("short_volume", "short_exempt_volume", "total_volume"):
        if name not in fields:
            continue
        text = fields[name].strip()
        if not _VOLUME.fullmatch(text):
            raise ValueError(f"{name} is {text!r}, which is not a volume")
        values[name] = Decimal(text)
    extra = {name.removeprefix("unknown:"): value for name, value in fields.items() if name.startswith("unknown:")}
    if extra:
        values["extra"] = extra
    return values
