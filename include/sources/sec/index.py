"""The SEC's index files: what was filed, one line for each party and form, daily and by the quarter.

Promises: data begin behind the line of dashes, whatever the lines before look like; a file of fixed width is read from
the right, as forms hold blanks and names overrun; an index with a head and no row is right. Never: a line is dropped
that cannot be read, and no file without the head of an index counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import BinaryIO

from include.contract import (
    Answer,
    AnswerClass,
    Ask,
    Batch,
    Chunk,
    Mode,
    Parsed,
    ParseError,
    Rejected,
    Request,
    Span,
    Unit,
)
from include.sources.sec import answers
from include.sources.sec.names import ACCESSION, Quarter, cik_of, daily_index_url, quarters
from include.sources.sec.tables import DAILY_INDEX, FULL_INDEX

PARSER_VERSION = 1

_DASHES = re.compile(r"-{20,}\s*")
_PATH = re.compile(r"edgar/data/0*([0-9]{1,10})/[0-9]{10}-[0-9]{2}-[0-9]{6}\.txt")
_FIXED = re.compile(
    r"(?P<left>.*?)\s+(?P<cik>[0-9]{1,10})\s+(?P<filed>[0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2})\s+(?P<path>edgar/\S+)\s*"
)
_TITLES = ("cik|", "form type", "company name")
_PIPED = ("cik", "companyname", "formtype", "datefiled", "filename")
# The shortest line of dashes stands behind a dozen lines at most; an index whose head is longer is something else.
_LONGEST_HEAD = 40
# So many lines that cannot be read are told one by one; more than can be read are another format, which is told once.
MOST_REJECTED = 200


@dataclass(frozen=True)
class IndexRow:
    """One line of an index."""

    cik: int
    name: str
    form: str
    filed: date
    accession: str
    path: str


def classify(answer: Answer) -> AnswerClass:
    """Tell what came: an index with rows (`DATA`) or without (`EMPTY`), or what is none.

    Raises:
        AnswerError: see `answers.classify`.
    """
    told = answers.classify(answer)
    if told is not AnswerClass.DATA:
        return told
    with answer.body.open() as body:
        lines = _lines(body)
        if not _has_head(lines):
            return AnswerClass.ERROR
        return AnswerClass.DATA if any(line.strip() for line in lines) else AnswerClass.EMPTY


def rows(lines: Iterable[str], rejected: list[Rejected]) -> Iterator[IndexRow]:
    """Read the lines of an index of any of its kinds; what cannot be read goes to `rejected`.

    Raises:
        ParseError: it has no head, or no line of dashes.
    """
    numbered = enumerate(lines, start=1)
    title = ""
    for number, line in numbered:
        if _DASHES.fullmatch(line):
            break
        if line.lower().startswith(_TITLES):
            title = line.lower()
        if number > _LONGEST_HEAD:
            raise ParseError(f"no line of dashes in the first {_LONGEST_HEAD} lines: it is no index")
    else:
        raise ParseError("no line of dashes: it is no index, or was cut in its head")
    if not title:
        raise ParseError("no titles of columns before the line of dashes")
    if "|" in title and tuple(re.sub(r"\s", "", title).split("|")) != _PIPED:
        raise ParseError(f"its columns are not the ones that are known: {title.strip()[:200]!r}")
    for number, line in numbered:
        if not line.strip():
            continue
        row = _piped(line) if "|" in title else _fixed(line, name_first=title.startswith("company name"))
        if isinstance(row, str):
            rejected.append(Rejected(f"line {number}", row, line[:2000]))
        else:
            yield row


def _piped(line: str) -> IndexRow | str:
    """Read a line with bars: a name may hold one, so that it is cut from both ends."""
    left, *rest = line.rstrip().split("|")
    if len(rest) < 4:
        return "it has fewer than five fields"
    *name, form, filed, path = rest
    return _row(left, "|".join(name), form, filed, path)


def _fixed(line: str, *, name_first: bool) -> IndexRow | str:
    """Read a line of fixed width from the right; name and form stand before, with two blanks or more between them."""
    match = _FIXED.fullmatch(line.rstrip())
    if match is None:
        return "path, date and CIK do not stand at its end"
    left = match["left"]
    # Where a name fills its column, one blank is all that is left between them: the column says where.
    if name_first:
        parts = (
            [left[:62].strip(), left[62:].strip()] if len(left) > 62 else re.split(r"\s{2,}", left.strip(), maxsplit=1)
        )
        name, form = parts if len(parts) == 2 else (left, "")
    else:
        parts = re.split(r"\s{2,}", left.strip(), maxsplit=1)
        if len(parts) < 2:
            parts = [left[:12].strip(), left[12:].strip()]
        form, name = parts
    return _row(match["cik"], name, form, match["filed"], match["path"])


def _row(cik: str, name: str, form: str, filed: str, path: str) -> IndexRow | str:
    accession = path.strip().rpartition("/")[2].removesuffix(".txt")
    if not ACCESSION.fullmatch(accession):
        return "its path does not end with the number of a filing"
    number = cik_of(cik.strip())
    if number is None:
        return f"{cik.strip()[:20]!r} is no CIK"
    # Each party's line has the folder of that party.
    if (place := _PATH.fullmatch(path.strip())) is None or int(place[1]) != number:
        return f"its path is not in the folder of {number}"
    if not form.strip():
        return "it has no form"
    try:
        day = date.fromisoformat(filed.strip())
    except ValueError:
        return f"{filed.strip()[:20]!r} is no day"
    return IndexRow(number, name.strip(), form.strip(), day, accession, path.strip())


def _lines(body: BinaryIO) -> Iterator[str]:
    """Decode line by line: some quarters of old are in the encoding of Windows, or hold bytes of none."""
    for raw in body:
        for encoding in ("utf-8", "cp1252", "latin-1"):
            try:
                yield raw.decode(encoding)
            except UnicodeDecodeError:
                continue
            break


def _has_head(lines: Iterator[str]) -> bool:
    for number, line in enumerate(lines):
        if _DASHES.fullmatch(line):
            return True
        if number > _LONGEST_HEAD:
            break
    return False


def read(answer: Answer, rejected: list[Rejected]) -> Iterator[IndexRow]:
    """Read a stored index as a stream, each row once however often it is listed.

    Raises:
        ParseError: see `rows`; or behind the rows, that most lines cannot be read.
    """
    seen: set[tuple[str, int, str]] = set()
    with answer.body.open() as body:
        for row in rows(_lines(body), rejected):
            key = row.accession, row.cik, row.form
            if key not in seen:
                seen.add(key)
                yield row
    if len(rejected) > max(MOST_REJECTED, len(seen)):
        first = rejected[0]
        raise ParseError(f"{len(rejected):,} of its lines cannot be read; the first, {first.position}: {first.reason}")


def _values(row: IndexRow) -> tuple[object, ...]:
    return row.accession, row.cik, row.form, row.name, row.filed, row.path


# --- the index of a day -------------------------------------------------------------------------------


def _of_day(day: date, *, expected: bool) -> Request:
    key = f"index/{day}"
    # Read again, it is answered with "unchanged" where nothing was.
    return Request(key=key, url=daily_index_url(day), unit=f"{day}/index", session_date=day, expected=expected)


def plan_days(ask: Ask) -> Iterator[Request]:
    """Plan the index of each session, and of each closed day that a backfill asks for."""
    planned = set()
    for day in ask.sessions:
        planned.add(f"index/{day}")
        yield _of_day(day, expected=True)
    for day in ask.closed:
        yield _of_day(day, expected=False)
    for key in ask.pending:
        kind, _, text = key.partition("/")
        if kind == "index" and key not in planned:
            yield _of_day(date.fromisoformat(text), expected=True)


def parse_day(unit: Unit) -> Parsed:
    """Read the index of a day.

    Raises:
        ParseError: it is none.
    """
    day, rejected = unit.session_date, list[Rejected]()
    answer = unit.answers[-1]
    return Parsed((Batch(DAILY_INDEX, ((day, *_values(row)) for row in read(answer, rejected))),), rejected)


# --- the index of a quarter ---------------------------------------------------------------------------


def _of_quarter(quarter: Quarter) -> Request:
    # The folder of a quarter may not be there on its first days.
    return Request(
        key=f"quarter/{quarter.text}",
        url=quarter.url,
        unit=f"{quarter.text}/index",
        session_date=quarter.first,
        required=False,
    )


def plan_quarters(ask: Ask) -> Iterator[Request]:
    """Plan the quarter of the newest session and the one before, which are rebuilt; or the one of a chunk.

    What surfaces months late, with the filing date of the day it was filed on, is seen by that.
    """
    newest = ask.newest or max(ask.sessions, default=None)
    wanted: list[Quarter] = []
    if named := Quarter.named(str(ask.chunk.get("quarter", ""))):
        wanted = [named]
    elif newest is not None and ask.mode is not Mode.REPLAY:
        wanted = [Quarter.of(newest), Quarter.of(newest).before]
    for key in ask.pending:
        quarter = Quarter.named(key.removeprefix("quarter/"))
        if quarter is not None and quarter not in wanted:
            wanted.append(quarter)
    for quarter in wanted:
        yield _of_quarter(quarter)


def quarter_chunks(span: Span) -> Iterator[Chunk]:
    """Return a chunk for each quarter, the newest first, and for the one before the range, as a poll reads it too."""
    for quarter in quarters(Quarter.of(span.start).before.first, span.end):
        yield Chunk(quarter.text, min(quarter.last, span.end), {"quarter": quarter.text})


def parse_quarter(unit: Unit) -> Parsed:
    """Read the index of a quarter.

    Raises:
        ParseError: it is none.
    """
    quarter, rejected = unit.key.partition("/")[0], list[Rejected]()
    answer = unit.answers[-1]
    return Parsed((Batch(FULL_INDEX, ((quarter, *_values(row)) for row in read(answer, rejected))),), rejected)
