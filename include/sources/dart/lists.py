"""What is asked of DART's list of filings, and what follows an answer.

A key is `whose/when`: a market's letter or a company's number, and a day (`Y/2026-09-15`) or, for a company alone, a
year (`00126380/2026`). All pages of one asking are a unit. Without a company the list allows three calendar months,
counted from the first day; a day is always allowed, and is what fails and is asked again by itself.

Promises: all pages are read, in ascending order, with 100 rows each; where the number of rows changes while they are
read, the pages are read again from the first, as a row may have moved between two of them. Never: a kind of filing is
left out, and no page is taken for the last one because it is short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from include.contract import Answer, AnswerError, Ask, Chunk, Mode, Request, Span
from include.sources.dart.answers import BOM, HOST, NORMAL

URL = f"{HOST}/api/list.json"
ROWS_OF_A_PAGE = 100
# Stands for the number of rows once two pages have told different ones.
_DIFFERED = -1
# A busy morning may add rows during each reading; the next window reads all of it again.
MOST_ROUNDS = 3
SEOUL = ZoneInfo("Asia/Seoul")

MARKETS = ("Y", "K", "N", "E")
WATCHED = ("Y", "K")
# Nothing has been received on a Saturday since 2006.
_NO_WEEKENDS_FROM = date(2007, 1, 1)

_KEY = re.compile(r"(?P<whose>[YKNE]|[0-9]{8})/(?P<when>[0-9]{4}(?:-[0-9]{2}-[0-9]{2})?)")


class Page(msgspec.Struct):
    """What a page of the list says of itself; numbers may come as text."""

    status: str
    total_count: int | str = ""
    total_page: int | str = ""
    page_no: int | str = ""


@dataclass(frozen=True)
class Counted:
    """How many filings and pages a list has by its own count, and which of them an answer is; None: it does not say."""

    rows: int
    pages: int
    number: int | None


def count_of(answer: Answer) -> Counted | None:
    """Return what a page says of all of them; None where it has no rows.

    Raises:
        AnswerError: it has rows and does not say, so that nobody knows whether it is the last.
    """
    try:
        page = msgspec.json.decode(answer.body.read().removeprefix(BOM), type=Page)
        if page.status != NORMAL:
            return None
        number = int(page.page_no) if page.page_no != "" else None
        return Counted(int(page.total_count), int(page.total_page), number)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise AnswerError(f"a page of DART's list does not say how many there are ({error})", may_pass=True) from None


@dataclass(frozen=True)
class Asking:
    """One thing to ask for: whose filings, and the first and last day of receipt."""

    whose: str
    when: str
    first: date
    last: date

    @property
    def key(self) -> str:
        """The name of the request and of its unit."""
        return f"{self.whose}/{self.when}"


def of_day(whose: str, day: date) -> Asking:
    """Return the asking for a day."""
    return Asking(whose, day.isoformat(), day, day)


def of_year(corp: str, year: int) -> Asking:
    """Return the asking for a company's year."""
    return Asking(corp, f"{year:04}", date(year, 1, 1), date(year, 12, 31))


def read_key(key: str) -> Asking | None:
    """Read a request's name; None where it is none."""
    found = _KEY.fullmatch(key)
    if found is None:
        return None
    whose, when = found["whose"], found["when"]
    try:
        if len(when) > 4:
            return of_day(whose, date.fromisoformat(when))
        return of_year(whose, int(when)) if whose not in MARKETS else None
    except ValueError:
        return None


def is_company(text: str) -> bool:
    """Say whether a text is a company's number."""
    return len(text) == 8 and text.isascii() and text.isdigit()


def is_receipt(text: str) -> bool:
    """Say whether a text is a filing's receipt number."""
    return len(text) == 14 and text.isascii() and text.isdigit()


def is_known(key: str) -> bool:
    """Say whether an operator's key is a market's letter or a company's number."""
    return key in MARKETS or is_company(key)


def plan(ask: Ask) -> Iterator[Request]:
    """Plan one request for each day and market, the newest day first, then the pending keys.

    The day of the window itself is read in every window; the days before it once a day, as pending rechecks.
    """
    if "corp" in ask.chunk:
        yield first_request(of_year(ask.chunk["corp"], ask.chunk["year"]), ask.at)
        return
    days = sorted({*ask.sessions, *ask.closed, *([ask.newest] if ask.newest else [])}, reverse=True)
    planned = set()
    for day in days:
        for whose in ask.keys or WATCHED:
            if has_filings(day):
                request = first_request(of_day(whose, day), ask.at)
                planned.add(request.key)
                yield request
    for key in ask.pending:
        asking = read_key(key)
        if asking is not None and key not in planned and (not ask.keys or asking.whose in ask.keys):
            yield first_request(asking, ask.at)


def has_filings(day: date) -> bool:
    """Say whether anything can have been received on a day of that weekday."""
    return day.weekday() < 5 or day < _NO_WEEKENDS_FROM


def first_request(asking: Asking, at: datetime | None) -> Request:
    """Return the request for the first page; nothing is asked of days that have not begun at `at`."""
    last = min(asking.last, max(at.astimezone(SEOUL).date(), asking.first)) if at else asking.last
    who = ("corp_cls", asking.whose) if asking.whose in MARKETS else ("corp_code", asking.whose)
    return Request(
        key=asking.key,
        unit=asking.key,
        url=URL,
        session_date=asking.first,
        params=(
            who,
            ("bgn_de", f"{asking.first:%Y%m%d}"),
            ("end_de", f"{last:%Y%m%d}"),
            ("last_reprt_at", "N"),
            ("sort", "date"),
            ("sort_mth", "asc"),
            ("page_no", "1"),
            ("page_count", str(ROWS_OF_A_PAGE)),
        ),
        kind="list",
        about={"round": 1, "page": 1, "rows": None},
    )


def follow(request: Request, answer: Answer) -> Sequence[Request]:
    """Return the next page; the first one again where the number of rows changed on the way.

    Raises:
        AnswerError: see `count_of`; or it is another page, so that the rows of the one that was asked for would lack.
    """
    about, counted = request.about, count_of(answer)
    if counted is not None:
        if counted.number not in (None, about["page"]):
            words = f"DART gives page {counted.number} of a list, and {about['page']} was asked for"
            raise AnswerError(words, may_pass=True)
        rows = counted.rows
        # What differs once is remembered until the last page.
        said = rows if about["page"] == 1 or about["rows"] == rows else _DIFFERED
        if about["page"] < counted.pages:
            return (_page(request, about["round"], about["page"] + 1, said),)
    else:
        # A page that there was a moment ago, and is no more.
        said = about["rows"] if about["page"] == 1 else _DIFFERED
    return (_page(request, about["round"] + 1, 1, None),) if said == _DIFFERED and about["round"] < MOST_ROUNDS else ()


def _page(request: Request, reading: int, page: int, rows: int | None) -> Request:
    params = tuple((name, str(page) if name == "page_no" else value) for name, value in request.params)
    return replace(
        request,
        key=f"{request.unit}/r{reading}p{page}",
        params=params,
        about={"round": reading, "page": page, "rows": rows},
    )


def chunks(span: Span) -> Iterator[Chunk]:
    """Name the pieces of a backfill or replay: a day of the markets, the newest first, then a company's year.

    A company's filings may be asked for over any range, so that a year of them costs a page or two.
    """
    markets = [key for key in span.keys if key in MARKETS]
    if markets or not span.keys:
        day = span.end
        while day >= span.start:
            if span.mode is Mode.REPLAY or has_filings(day):
                asks: dict[str, Any] = {"day": day.isoformat(), "keys": markets}
                yield Chunk(day.isoformat(), day, asks)
            day -= timedelta(days=1)
    for year in range(span.end.year, span.start.year - 1, -1):
        for corp in (key for key in span.keys if key not in MARKETS):
            yield Chunk(f"{corp}/{year}", min(date(year, 12, 31), span.end), {"corp": corp, "year": year})
