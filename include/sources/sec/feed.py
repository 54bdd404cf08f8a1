"""The SEC's current feed: every filing of the whole market, newest first, read down to what is known.

Promises: a reading goes on until it meets what an earlier one without a hole has seen, and a bit further; where it ends
before that it says so, and the next one reads the same ground again. The end of the feed looks like an outage (503): it
counts as the end only behind good pages, when it repeats. Never: an entry that cannot be read is dropped, and no filing
is taken for new because it is shown again.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

from include.contract import Answer, AnswerClass, Ask, Batch, Parsed, ParseError, Rejected, Request, Unit
from include.sources.sec import answers
from include.sources.sec.names import ACCESSION
from include.sources.sec.shared import NEW_YORK, WWW
from include.sources.sec.tables import FEED, WALKS

PARSER_VERSION = 1

URL = f"{WWW}/cgi-bin/browse-edgar"
ENTRIES_OF_A_PAGE = 100
# A whole feed of two business days was 51 pages.
MOST_PAGES = 120
# So much of what is known is read once more: entries come a little out of order.
OVERLAP = timedelta(minutes=5)
# A page is among what is known once so many entries at its end are: a single one may carry an instant of long ago.
AGREEING = 3
# The feed reaches back about two business days; one that ends after less has broken off.
LEAST_DEPTH = timedelta(hours=24)

_ATOM = "{http://www.w3.org/2005/Atom}"
_TITLE = re.compile(r"(?P<name>.*) \((?P<cik>[0-9]{1,10})\)(?: \((?P<role>[^()]*)\))?\s*", re.DOTALL)
_FILED = re.compile(r"Filed:\s*(?:</b>)?\s*([0-9]{4}-[0-9]{2}-[0-9]{2})")
_SIZE = re.compile(r"Size:\s*(?:</b>)?\s*([0-9][0-9.,]*\s*[A-Za-z]+)")
_ITEM = re.compile(r"Item\s+[0-9][^<\n]*")
_FOLDER = re.compile(r"/edgar/data/([0-9]{1,10})/")


@dataclass(frozen=True)
class Entry:
    """One entry of the feed: a filing and one of its parties, and when it was accepted."""

    accession: str
    cik: int
    role: str
    name: str
    form: str
    filed: date
    accepted: datetime
    accepted_text: str
    size: str | None
    items: str | None
    folder: int | None


# --- asking -------------------------------------------------------------------------------------------


def plan(ask: Ask) -> Iterator[Request]:
    """Plan the reading of the feed for the newest session, down to what is known; where nothing is, to its midnight."""
    day = ask.newest or max(ask.sessions, default=None)
    days = {day} if day and not _is_shut(ask, day) else set()
    for key in ask.pending:
        kind, _, text = key.partition("/")
        if kind == "feed":
            days.add(date.fromisoformat(text))
    for each in sorted(days, reverse=True):
        yield _page(each, _known(ask.subjects, each).isoformat(), 0)


def _is_shut(ask: Ask, day: date) -> bool:
    """Say whether EDGAR accepts nothing today, and all sessions before were read."""
    return ask.at is not None and not ask.sessions and ask.at.astimezone(ZoneInfo(NEW_YORK)).date() > day


def _known(subjects: Sequence[str], day: date) -> datetime:
    marks = [datetime.fromisoformat(each.partition("/")[2]) for each in subjects if each.startswith("known/")]
    midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(NEW_YORK)).astimezone(UTC)
    return max(marks, default=midnight)


def _page(day: date, known: str, start: int) -> Request:
    return Request(
        key=f"feed/{day}" + (f"/{start}" if start else ""),
        url=URL,
        unit=f"{day}/feed",
        session_date=day,
        params=(
            ("action", "getcurrent"),
            ("type", ""),
            ("owner", "include"),
            ("start", str(start)),
            ("count", str(ENTRIES_OF_A_PAGE)),
            ("output", "atom"),
        ),
        kind="list",
        about={"known": known, "start": start},
    )


def follow(request: Request, answer: Answer) -> Sequence[Request]:
    """Return the next page, until one shows what was accepted before what is known, or nothing."""
    if answer.status != 200 or request.session_date is None:
        return ()
    floor = _floor(list(_entries(answer, [])))
    start = int(request.about["start"]) + ENTRIES_OF_A_PAGE
    if floor is None or floor < _bound(request.about) or start >= MOST_PAGES * ENTRIES_OF_A_PAGE:
        return ()
    return (_page(request.session_date, request.about["known"], start),)


def _bound(about: Any) -> datetime:
    return datetime.fromisoformat(about["known"]) - OVERLAP


def _floor(entries: Sequence[Entry]) -> datetime | None:
    """Return down to when a page reads, which its last entries agree on; None where it has none."""
    return max((entry.accepted for entry in entries[-AGREEING:]), default=None)


def classify(answer: Answer) -> AnswerClass:
    """Tell what came: entries, a page without any, the end of the feed (`EMPTY`), or what is no feed.

    Raises:
        AnswerError: see `answers.classify`.
    """
    is_later = int(dict(answer.request.params).get("start", "0")) > 0
    if answer.status == 503:
        # Behind the last entry the SEC answers as in an outage. It has answered the pages before, so that the second
        # such answer is the end; how far the reading came tells whether to believe it.
        return AnswerClass.EMPTY if is_later and answer.tries > 1 else AnswerClass.ERROR
    told = answers.classify(answer)
    if told is not AnswerClass.DATA:
        return told
    try:
        found = any(True for _ in _entries(answer, []))
    except ParseError:
        return AnswerClass.ERROR
    return AnswerClass.DATA if found else AnswerClass.EMPTY


# --- reading ------------------------------------------------------------------------------------------


def parse(unit: Unit) -> Parsed:
    """Read the pages of one reading, and say from where to where it read.

    Raises:
        ParseError: a page is no feed.
    """
    rejected: list[Rejected] = []
    entries: dict[tuple[str, int, str], tuple[Any, ...]] = {}
    pages = [_read(answer, number, rejected) for number, answer in enumerate(unit.answers, start=1)]
    for answer, page in zip(unit.answers, pages, strict=True):
        for entry in page:
            entries.setdefault((entry.accession, entry.cik, entry.role), _row(entry, answer.sent_at))
    return Parsed((Batch(FEED, entries.values()), Batch(WALKS, (_walk(unit, pages),))), rejected, is_part=True)


def _read(answer: Answer, number: int, rejected: list[Rejected]) -> list[Entry]:
    return list(_entries(answer, rejected, f"page {number} ")) if answer.status == 200 else []


def _row(entry: Entry, seen_at: datetime) -> tuple[Any, ...]:
    order = -((seen_at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))
    return (
        entry.accession,
        entry.cik,
        entry.role,
        entry.name,
        entry.form,
        entry.filed,
        entry.accepted,
        entry.accepted_text,
        entry.size,
        entry.items,
        entry.folder,
        seen_at,
        order,
    )


def _walk(unit: Unit, pages: Sequence[Sequence[Entry]]) -> tuple[Any, ...]:
    first = unit.answers[0]
    known = datetime.fromisoformat(first.request.about["known"])
    accepted = [entry.accepted for page in pages for entry in page]
    # What is accepted after it was shown says nothing of what is known.
    newest = min(max(accepted), first.sent_at) if accepted else None
    floor = _floor(next((page for page in reversed(pages) if page), ()))
    if floor is not None and floor < known - OVERLAP:
        ended = "known"
    else:
        ended = "end" if not pages[-1] else "cut"
    is_deep = newest is not None and floor is not None and floor <= newest - LEAST_DEPTH
    return (
        first.sent_at,
        unit.session_date,
        known,
        newest,
        floor,
        ended,
        ended == "known" or (ended == "end" and is_deep),
        len(pages),
        len(accepted),
    )


def _entries(answer: Answer, rejected: list[Rejected], where: str = "") -> Iterator[Entry]:
    """Read the entries of a page.

    Raises:
        ParseError: it is no feed, or ends in the middle.
    """
    try:
        with answer.body.open() as body:
            root = ElementTree.parse(body).getroot()
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        # The latter two where it names a character set that nobody has.
        raise ParseError(f"{where}is no feed, or was cut: {error}") from None
    if root.tag != f"{_ATOM}feed":
        raise ParseError(f"{where}is no feed: it begins with {root.tag[:60]}")
    for number, element in enumerate(root.iterfind(f"{_ATOM}entry"), start=1):
        entry = _entry(element)
        if isinstance(entry, str):
            text = ElementTree.tostring(element, encoding="unicode")
            rejected.append(Rejected(f"{where}entry {number}", entry, text[:2000]))
        else:
            yield entry


def _entry(element: ElementTree.Element) -> Entry | str:
    """Read one entry; what is wrong with it, in words, where it cannot be read."""
    category = element.find(f"{_ATOM}category")
    form = (category.get("term") or "").strip() if category is not None else ""
    accession = _text(element, "id").rpartition("accession-number=")[2]
    if not form or not ACCESSION.fullmatch(accession):
        return "it has no form" if not form else "it has no number of a filing"
    title = _text(element, "title")
    match = _TITLE.fullmatch(title.removeprefix(f"{form} - "))
    if match is None:
        return "its title does not end with the number of a company"
    updated = _text(element, "updated")
    try:
        accepted = datetime.fromisoformat(updated)
        if accepted.tzinfo is None:
            return f"{updated[:40]!r} has no offset from UTC"
        accepted = accepted.astimezone(UTC)
    except (ValueError, OverflowError):
        return f"{updated[:40]!r} is no instant"
    summary = html.unescape(_text(element, "summary"))
    filed = _FILED.search(summary)
    if filed is None:
        return "it has no filing date"
    try:
        filed_date = date.fromisoformat(filed[1])
    except ValueError:
        return f"{filed[1]!r} is no day"
    link = element.find(f"{_ATOM}link")
    folder = _FOLDER.search((link.get("href") or "") if link is not None else "")
    size = _SIZE.search(summary)
    items = "; ".join(" ".join(item.split()) for item in _ITEM.findall(summary))
    return Entry(
        accession=accession,
        cik=int(match["cik"]),
        role=(match["role"] or "").strip(),
        name=match["name"].strip(),
        form=form,
        filed=filed_date,
        accepted=accepted,
        accepted_text=updated,
        size=size[1] if size else None,
        items=items or None,
        folder=int(folder[1]) if folder else None,
    )


def _text(element: ElementTree.Element, name: str) -> str:
    return (element.findtext(f"{_ATOM}{name}") or "").strip()
