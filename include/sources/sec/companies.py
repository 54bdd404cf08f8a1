"""A company's own list of filings (`submissions/CIK…json`), with its older pages.

Promises: a row is the i-th element of every list, and lists of different lengths are refused; lists that nobody knows
are kept and told; the acceptance is kept as given, with both instants that it may mean. Never: its `Z` is believed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

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
from include.sources.sec.names import ACCESSION, cik_of, submissions_url
from include.sources.sec.shared import DATA, NEW_YORK
from include.sources.sec.tables import COMPANIES, COMPANY_FILINGS
from include.sources.sec.universe import Policy

PARSER_VERSION = 1

# The lists that are columns, in the columns' order behind accession, form and filing date.
_LISTS = (
    "reportDate",
    "acceptanceDateTime",
    "act",
    "fileNumber",
    "filmNumber",
    "items",
    "core_type",
    "size",
    "isXBRL",
    "isInlineXBRL",
    "primaryDocument",
    "primaryDocDescription",
)
_NEEDED = ("accessionNumber", "filingDate", "form")
_KNOWN = frozenset((*_LISTS, *_NEEDED))
_COMPANY = {
    "cik", "name", "entityType", "sic", "sicDescription", "tickers", "exchanges", "ein", "lei", "category",
    "fiscalYearEnd", "stateOfIncorporation", "addresses", "formerNames", "filings",
}  # fmt: skip
# Nothing that a table of companies must hold; new ones are told and kept.
_LEFT_OUT = {
    "ownerOrg", "insiderTransactionForOwnerExists", "insiderTransactionForIssuerExists", "description", "website",
    "investorWebsite", "stateOfIncorporationDescription", "phone", "flags",
}  # fmt: skip


# --- asking -------------------------------------------------------------------------------------------

_PAGE = re.compile(r"CIK(?P<cik>[0-9]{10})-submissions-(?P<number>[0-9]{3})\.json")
# A company with more pages has not been seen.
_MOST_PAGES = 99


def plan(policy: Policy, ask: Ask) -> Iterator[Request]:
    """Plan one request for each followed company; which pages its list leads to, it says itself."""
    if ask.chunk:
        company = int(ask.chunk["cik"])
        yield _of(company)
        if ask.mode is Mode.REPLAY:
            yield from (
                _page(f"CIK{company:010d}-submissions-{number:03d}.json") for number in range(1, _MOST_PAGES + 1)
            )
        return
    day = ask.newest or max(ask.sessions, default=None) or max(ask.closed, default=None)
    wanted = policy.followed(ask.subjects, day) if day else ()
    if ask.keys:
        wanted = tuple(dict.fromkeys(cik for key in ask.keys for cik in policy.named(key, day)))
    names = [key.removeprefix("company/") for key in ask.pending]
    for cik in dict.fromkeys((*wanted, *(cik for name in names if (cik := cik_of(name))))):
        yield _of(cik)
    yield from (_page(name) for name in names if _PAGE.fullmatch(name))


def _of(cik: int) -> Request:
    # One company that the SEC does not list must not stop the others; many of them are a trouble of access.
    return Request(
        key=f"company/{cik}",
        url=submissions_url(cik),
        unit=f"{cik}/submissions",
        kind="list",
        required=False,
        expected=False,
        is_known=True,
    )


def _page(name: str) -> Request:
    match = _PAGE.fullmatch(name)
    assert match is not None
    return Request(
        key=f"company/{name}",
        url=f"{DATA}/submissions/{name}",
        unit=f"{int(match['cik'])}/submissions-{match['number']}",
        required=False,
        is_known=True,
    )


def follow(request: Request, answer: Answer) -> Sequence[Request]:
    """Return the older pages that a company's list names; a window asks for those only that it does not hold."""
    if request.kind != "list":
        return ()
    filings = _document(answer).get("filings")
    files = filings.get("files") if isinstance(filings, Mapping) else None
    names = [str(each.get("name")) for each in _list(files) if isinstance(each, Mapping)]
    return [_page(name) for name in names if _PAGE.fullmatch(name)]


def chunks(policy: Policy, span: Span) -> Iterator[Chunk]:
    """Return a chunk for each company: its list and pages hold its whole past, whatever the range."""
    wanted = policy.followed(span.subjects, span.end)
    if span.keys:
        wanted = tuple(dict.fromkeys(cik for key in span.keys for cik in policy.named(key, span.end)))
    for cik in wanted:
        yield Chunk(str(cik), span.end, {"cik": cik})


def classify(answer: Answer) -> AnswerClass:
    """Tell what came: a list with filings, one without, or what is none.

    Raises:
        AnswerError: see `answers.classify`.
    """
    told = answers.classify(answer)
    if told is not AnswerClass.DATA:
        return told
    try:
        columns = _columns(_document(answer))
    except ParseError:
        return AnswerClass.ERROR
    return AnswerClass.DATA if columns.get("accessionNumber") else AnswerClass.EMPTY


# --- reading ------------------------------------------------------------------------------------------


def _document(answer: Answer) -> Mapping[str, Any]:
    try:
        document = json.loads(answer.body.read())
    except (ValueError, RecursionError) as error:
        raise ParseError(f"it is no JSON, or was cut: {error}") from None
    if not isinstance(document, Mapping):
        raise ParseError("it is no object")
    return document


def _columns(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the lists of a company's newest filings, or of an older page, which has them at its top."""
    filings = document.get("filings")
    columns = filings.get("recent") if isinstance(filings, Mapping) else document
    if not isinstance(columns, Mapping) or not all(isinstance(columns.get(name), list) for name in _NEEDED):
        raise ParseError(f"it lacks one of the lists {', '.join(_NEEDED)}")
    return columns


def parse(unit: Unit) -> Parsed:
    """Read a company's list, or one of its older pages.

    Raises:
        ParseError: its lists differ in length, or it is none.
    """
    document = _document(unit.answers[-1])
    owner, _, part = unit.key.partition("/")
    is_head = part == "submissions"
    cik = int(owner)
    if is_head and cik_of(str(document.get("cik", ""))) != cik:
        raise ParseError(f"it is the list of {str(document.get('cik'))[:20]!r}, not of {cik}")
    columns = _columns(document)
    lengths = {name: len(values) for name, values in columns.items() if isinstance(values, list)}
    if len(set(lengths.values())) > 1:
        raise ParseError(f"its lists differ in length ({_differing(lengths)})")
    rejected: list[Rejected] = []
    found: dict[str, tuple[Any, ...]] = {}
    others = sorted(name for name in lengths if name not in _KNOWN)
    for position in range(lengths["accessionNumber"]):
        given = {name: columns[name][position] for name in lengths}
        row = _filing(cik, given, others)
        if isinstance(row, str):
            text = json.dumps(given, ensure_ascii=False)[:2000]
            rejected.append(Rejected(f"row {position + 1}", row, text))
        else:
            found.setdefault(given["accessionNumber"], row)
    unknown = {*others, *(set(document) - _COMPANY - _LEFT_OUT if is_head else ())}
    companies = (Batch(COMPANIES, (_company(cik, document),)),) if is_head else ()
    return Parsed((*companies, Batch(COMPANY_FILINGS, found.values())), rejected, sorted(unknown))


def _differing(lengths: Mapping[str, int]) -> str:
    usual = lengths["accessionNumber"]
    name = next(name for name, length in lengths.items() if length != usual)
    return f"accessionNumber has {usual}, {name} has {lengths[name]}"


def _company(cik: int, head: Mapping[str, Any]) -> tuple[Any, ...]:
    more = {name: value for name, value in head.items() if name not in _COMPANY and name not in _LEFT_OUT}
    try:
        return (
            cik,
            _text(head, "name") or "",
            _text(head, "entityType"),
            _text(head, "sic"),
            _text(head, "sicDescription"),
            head.get("tickers") or [],
            head.get("exchanges") or [],
            _text(head, "ein"),
            _text(head, "lei"),
            _text(head, "category"),
            _text(head, "fiscalYearEnd"),
            _text(head, "stateOfIncorporation"),
            head.get("addresses"),
            head.get("formerNames"),
            more or None,
        )
    except ValueError as error:
        raise ParseError(str(error)) from None


def _filing(cik: int, given: Mapping[str, Any], others: Sequence[str]) -> tuple[Any, ...] | str:
    """Read one row; what is wrong with it, in words, where it cannot be read."""
    accession, form = str(given["accessionNumber"]), str(given["form"] or "").strip()
    if not ACCESSION.fullmatch(accession):
        return "its number is none of a filing"
    try:
        filed = date.fromisoformat(str(given["filingDate"]))
        reported = date.fromisoformat(given["reportDate"]) if given.get("reportDate") else None
        as_utc, as_local = accepted(given.get("acceptanceDateTime"))
        kept = {name: given[name] for name in others if given[name] is not None}
        return (
            cik,
            accession,
            form,
            filed,
            reported,
            given.get("acceptanceDateTime") or None,
            as_utc,
            as_local,
            _text(given, "act"),
            _text(given, "fileNumber"),
            _text(given, "filmNumber"),
            _text(given, "items"),
            _text(given, "core_type"),
            _size(given.get("size")),
            _flag(given.get("isXBRL")),
            _flag(given.get("isInlineXBRL")),
            _text(given, "primaryDocument"),
            _text(given, "primaryDocDescription"),
            kept or None,
        )
    except (ValueError, TypeError) as error:
        return f"a value cannot be read: {error}"


def accepted(text: str | None) -> tuple[datetime | None, datetime | None]:
    """Return the two instants that an acceptance may mean: its `Z` is true of some filers, and New York's of others.

    Raises:
        ValueError: it is no instant.
    """
    if not text:
        return None, None
    clock = datetime.fromisoformat(text).replace(tzinfo=None)
    return clock.replace(tzinfo=UTC), clock.replace(tzinfo=ZoneInfo(NEW_YORK)).astimezone(UTC)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if isinstance(value, (bool, float, list, dict)):
        raise ValueError(f"{name} is {value!r}, which is no text"[:200])
    return None if value is None else str(value)


def _size(value: Any) -> int | None:
    if value in (None, ""):
        return None
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(f"size is {text[:40]!r}, which is no number of bytes")
    return int(text)


def _flag(value: Any) -> bool | None:
    if value not in (None, 0, 1, "0", "1"):
        raise ValueError(f"{str(value)[:40]!r} is neither 0 nor 1")
    return None if value is None else bool(int(value))
