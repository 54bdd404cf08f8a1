"""The SEC: www.sec.gov and data.sec.gov, from the current feed to the text of a filing.

Promises: a filing is in the feed once it was accepted, in its day's index from about a quarter to eleven at night, and
in its quarter's from then on, which is built again every Saturday. Who does not say whom to write to is sent away.
Never: anything is shown before its time by the simulated clock.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from random import Random
from typing import Any

from include.sandbox import absent, edgar, sec_filings, sec_pages
from include.sandbox.exchange import Answer, Call, SwitchError, Upstream, World, instant_of, validated
from include.sandbox.sec_market import DAYS, NEW_YORK, Filing, Market, Party

WWW, DATA = "www.sec.gov", "data.sec.gov"
FEED = "/cgi-bin/browse-edgar"
TICKERS = "/files/company_tickers_exchange.json"
_DAILY = re.compile(
    r"/Archives/edgar/daily-index/(?P<year>[0-9]{4})/QTR(?P<quarter>[1-4])/master\.(?P<day>[0-9]{8})\.idx"
)
_FULL = re.compile(r"/Archives/edgar/full-index/(?P<year>[0-9]{4})/QTR(?P<quarter>[1-4])/master\.idx")
_COMPANY = re.compile(r"/submissions/CIK(?P<cik>[0-9]{10})(?:-submissions-(?P<page>[0-9]{3}))?\.json")
_TEXT = re.compile(
    r"/Archives/edgar/data/(?P<cik>[0-9]+)/(?:[0-9]{18}/)?(?P<accession>[0-9]{10}-[0-9]{2}-[0-9]{6})\.txt"
)
_SINGLE = re.compile(r"/Archives/edgar/data/[0-9]+/(?P<accession>[0-9]{18})/(?P<name>[\w.-]+\.xml)")
_CONTACT = re.compile(r"\S+@\S+\.\S+")

HTML = ("Content-Type", "text/html")
ATOM = ("Content-Type", "application/atom+xml")
JSON = ("Content-Type", "application/json")
LAST_ACCEPTANCE = time(22, 5)
MOST_OF_A_PAGE = (10, 20, 40, 80, 100)


@dataclass(frozen=True)
class Plan:
    """What the switches said.

    `a_day` is how many filings a day has, `per_second` how many requests of a second are let through; the instants say
    until when everybody is sent away (`blocked`), nothing is found (`unfound`) or the feed breaks off behind some pages
    (`broken`, with where). `delayed` moves a day's index (None: never), `late` the text of a filing, `withdrawn` takes
    one out of the quarterly index that is built next, `moved` gives a ticker to another company from an instant on, and
    `tickers` cuts the list of them.
    """

    a_day: int | None = None
    per_second: int | None = None
    blocked: datetime | None = None
    unfound: datetime | None = None
    broken: tuple[datetime, int] | None = None
    delayed: Mapping[date, datetime | None] = field(default_factory=dict)
    late: Mapping[str, datetime] = field(default_factory=dict)
    withdrawn: Mapping[str, datetime] = field(default_factory=dict)
    moved: Mapping[str, tuple[int, datetime]] = field(default_factory=dict)
    tickers: int | None = None


class Sec:
    """The stand-in: a market, and the switches that change what is seen of it."""

    def __init__(self, world: World) -> None:
        self._lock = threading.Lock()
        self._world = world
        self._plan = Plan()
        self._arrived: Counter[int] = Counter()
        self._bulk = edgar.of(world)

    @property
    def market(self) -> Market:
        """What is filed, for a test that looks beside the interface."""
        return Market(self._world.seed, self._world.companies, self._plan.a_day)

    def answer(self, call: Call) -> Answer:
        """Answer a call as the SEC does."""
        plan = self._plan
        if not _CONTACT.search(call.headers.get("user-agent", "")):
            return Answer(403, sec_pages.block_page(call.at, undeclared=True), (HTML,))
        if (plan.blocked and call.at < plan.blocked) or self._is_too_fast(call.at):
            return Answer(403, sec_pages.block_page(call.at), (HTML,))
        if plan.unfound and call.at < plan.unfound:
            return absent.no_such_key(call)
        if (in_bulk := self._bulk.answer(call)) is not None:
            return in_bulk
        if call.host == DATA:
            return self._company(call) or absent.no_such_key(call)
        if call.plain_path == FEED:
            return self._feed(call)
        if call.plain_path == TICKERS:
            return self._tickers(call)
        return self._archive(call) or absent.sec_site(call)

    def _is_too_fast(self, at: datetime) -> bool:
        """Count the request; too many in a second stop everybody for ten minutes."""
        with self._lock:
            self._arrived[int(at.timestamp())] += 1
            is_over = self._plan.per_second is not None and self._arrived[int(at.timestamp())] > self._plan.per_second
            if is_over:
                self._plan = replace(self._plan, blocked=at + timedelta(minutes=10))
        return is_over

    # --- what is seen at an instant

    def indexed_at(self, day: date) -> datetime | None:
        """When the index of a day appears; None where it never does."""
        if day in self._plan.delayed:
            return self._plan.delayed[day]
        if not DAYS.is_session(day):
            return None
        minute = Random(f"{self._world.seed}/{day}/index").randrange(35, 55)
        return datetime.combine(day, time(22, minute), NEW_YORK)

    def of_index(self, day: date) -> list[Filing]:
        """What the index of a day lists: what was accepted for it by the evening."""
        first = DAYS.session_offset(day, -1)
        return [each for each in self.market.between(first, day) if each.listed == day and not each.quiet]

    def of_quarter(self, year: int, quarter: int, at: datetime) -> tuple[date, list[Filing]] | None:
        """What the index of a quarter lists at an instant, and its last day with data; None before there is any."""
        first = date(year, 3 * quarter - 2, 1)
        end = date(year + quarter // 4, 3 * quarter % 12 + 1, 1) - timedelta(days=1)
        built = self._built(at)
        if built < first:
            return None
        surfaced = min(end + timedelta(days=100), built)
        rows = [
            each
            for each in self.market.between(DAYS.session_offset(first, -1), surfaced)
            if first <= each.filed <= end and each.listed <= built and not self._is_withdrawn(each, at)
        ]
        return min(built, end), rows

    def _built(self, at: datetime) -> date:
        """The last day whose index is there at an instant: quarterly ones are built with it."""
        day = at.astimezone(NEW_YORK).date()
        while (since := self.indexed_at(day)) is None or at < since:
            day -= timedelta(days=1)
        return day

    def _is_withdrawn(self, filing: Filing, at: datetime) -> bool:
        """Whether a filing was taken out by the last Saturday's building."""
        since = self._plan.withdrawn.get(filing.accession)
        if since is None:
            return False
        local = since.astimezone(NEW_YORK)
        saturday = local.date() + timedelta(days=(5 - local.weekday()) % 7 or 7)
        return at >= datetime.combine(saturday, time(3, 30), NEW_YORK)

    def _shown(self, at: datetime) -> list[tuple[Filing, Party]]:
        """The entries of the feed at an instant, the newest first: about two business days."""
        day = at.astimezone(NEW_YORK).date()
        since = datetime.combine(DAYS.session_offset(day, -2), time(17, 16), NEW_YORK)
        filings = [
            each
            for each in self.market.between(since.date(), day)
            if each.shown_at <= at and each.accepted >= since and not each.quiet
        ]
        filings.sort(key=lambda each: (each.accepted, each.accession), reverse=True)
        return [(filing, party) for filing in filings for party in filing.parties]

    # --- answers

    def _feed(self, call: Call) -> Answer:
        params = call.params()
        start, count = params.get("start") or "0", params.get("count") or "40"
        if params.get("action") != "getcurrent" or params.get("output") != "atom":
            return Answer(200, b"<html><head><title>Latest Filings</title></head><body></body></html>", (HTML,))
        first, most = int(start), int(count) if count.isdigit() and int(count) in MOST_OF_A_PAGE else 40
        broken = self._plan.broken
        entries = self._shown(call.at)
        if (first and first >= len(entries)) or (broken and call.at < broken[0] and first >= broken[1]):
            return Answer(503, sec_pages.unavailable_page(), (HTML,))
        return Answer(200, sec_pages.feed(call.at, islice(entries, first, first + most)), (ATOM,))

    def _tickers(self, call: Call) -> Answer:
        moved = {ticker: cik for ticker, (cik, since) in self._plan.moved.items() if since <= call.at}
        body = sec_pages.tickers(self.market, moved, self._plan.tickers)
        return validated(call, body, "application/json", _morning(call.at))

    def _company(self, call: Call) -> Answer | None:
        asked = _COMPANY.fullmatch(call.plain_path)
        number = self.market.number_of(int(asked["cik"])) if asked else None
        if asked is None or number is None:
            return None
        cik = int(asked["cik"])
        if asked["page"]:
            return (
                Answer(200, sec_pages.submissions_page(cik, int(asked["page"])), (JSON,))
                if "001" <= asked["page"] <= "002"
                else None
            )
        day = call.at.astimezone(NEW_YORK).date()
        month = (day.month - 1) // 3 * 3 + 1
        since = (date(day.year, month, 1) - timedelta(days=1)).replace(day=1)
        filings = [
            each
            for each in self.market.between(since, day)
            if each.shown_at <= call.at and not each.quiet and any(party.cik == cik for party in each.parties)
        ]
        return Answer(200, sec_pages.submissions(self.market, number, filings), (JSON,))

    def _archive(self, call: Call) -> Answer | None:
        path = call.plain_path
        if asked := _DAILY.fullmatch(path):
            day = _day(asked["day"])
            since = self.indexed_at(day) if day else None
            if day is None or since is None or call.at < since or (day.month + 2) // 3 != int(asked["quarter"]):
                return None
            return validated(call, sec_pages.daily_index(day, self.of_index(day)), "text/plain", since)
        if asked := _FULL.fullmatch(path):
            found = self.of_quarter(int(asked["year"]), int(asked["quarter"]), call.at)
            if found is None:
                return None
            return validated(call, sec_pages.full_index(*found), "text/plain", _morning(call.at))
        if asked := _TEXT.fullmatch(path):
            filing = self.market.found(asked["accession"])
            if (
                filing is None
                or call.at < self._text_at(filing)
                or int(asked["cik"]) not in {p.cik for p in filing.parties}
            ):
                return None
            return validated(call, sec_filings.text(filing), "text/plain", filing.accepted)
        if asked := _SINGLE.fullmatch(path):
            digits = asked["accession"]
            filing = self.market.found(f"{digits[:10]}-{digits[10:12]}-{digits[12:]}")
            content = sec_filings.single(filing, asked["name"], call.at) if filing is not None else None
            return validated(call, content, "application/xml", filing.accepted) if filing and content else None
        return None

    def _text_at(self, filing: Filing) -> datetime:
        return self._plan.late.get(filing.accession, filing.accepted + filing.text_after)

    # --- switches

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change the plan; see `SWITCHES` for the words.

        Raises:
            SwitchError: the order cannot be read.
        """
        word = str(order.get("switch", ""))
        if word not in SWITCHES:
            raise SwitchError(f"the SEC has no switch {word!r}; it has {', '.join(sorted(SWITCHES))}")
        with self._lock:
            self._plan = SWITCHES[word](self._plan, order)
        return self.view()

    def reset(self) -> None:
        """Forget all switches."""
        with self._lock:
            self._plan = Plan()
            self._arrived.clear()

    def view(self) -> dict[str, Any]:
        """The plan, for reading."""
        plan = self._plan
        return {
            "filings_a_day": self.market.filings_a_day,
            "per_second": plan.per_second,
            "blocked": plan.blocked.isoformat() if plan.blocked else None,
            "unfound": plan.unfound.isoformat() if plan.unfound else None,
            "broken": [plan.broken[0].isoformat(), plan.broken[1]] if plan.broken else None,
            "delayed": {day.isoformat(): at.isoformat() if at else None for day, at in plan.delayed.items()},
            "late": {accession: at.isoformat() for accession, at in plan.late.items()},
            "withdrawn": {accession: at.isoformat() for accession, at in plan.withdrawn.items()},
            "moved": {ticker: [cik, at.isoformat()] for ticker, (cik, at) in plan.moved.items()},
            "tickers": plan.tickers,
        }


def _morning(at: datetime) -> datetime:
    """The last half past three in the morning."""
    local = at.astimezone(NEW_YORK)
    day = local.date() if local.time() >= time(3, 30) else local.date() - timedelta(days=1)
    return datetime.combine(day, time(3, 30), NEW_YORK).astimezone(UTC)


def _day(text: str) -> date | None:
    try:
        return date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return None


# --- the words of the switches ------------------------------------------------------------------------


def _until(order: Mapping[str, Any]) -> datetime | None:
    return None if order.get("until") is None else instant_of(order["until"], '"until"')


def _number(order: Mapping[str, Any], name: str) -> int | None:
    value = order.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise SwitchError(f'"{name}" is a whole number, or null for the usual, not {value!r}')
    return value


def _accession(order: Mapping[str, Any]) -> str:
    text = str(order.get("accession", ""))
    if not re.fullmatch(r"[0-9]{10}-[0-9]{2}-[0-9]{6}", text):
        raise SwitchError(f'"accession" is the number of a filing such as 0000950170-26-000001, not {text!r}')
    return text


def _broken(plan: Plan, order: Mapping[str, Any]) -> Plan:
    until, after = _until(order), _number(order, "after")
    return replace(plan, broken=None if until is None else (until, after or 0))


def _delay(plan: Plan, order: Mapping[str, Any]) -> Plan:
    try:
        day = date.fromisoformat(str(order.get("day")))
    except ValueError:
        raise SwitchError(f'"day" must be a date such as 2026-09-15, not {order.get("day")!r}') from None
    return replace(plan, delayed={**plan.delayed, day: _until(order)})


def _late(plan: Plan, order: Mapping[str, Any]) -> Plan:
    return replace(plan, late={**plan.late, _accession(order): instant_of(order.get("until"), '"until"')})


def _withdraw(plan: Plan, order: Mapping[str, Any]) -> Plan:
    return replace(plan, withdrawn={**plan.withdrawn, _accession(order): instant_of(order.get("at"), '"at"')})


def _move(plan: Plan, order: Mapping[str, Any]) -> Plan:
    ticker, cik = str(order.get("ticker", "")), _number(order, "cik")
    if not ticker or cik is None:
        raise SwitchError('"ticker" and "cik" say which ticker is given to whom')
    return replace(plan, moved={**plan.moved, ticker: (cik, instant_of(order.get("at"), '"at"'))})


# filings: how many a day. limit: requests of a second. block: the block page for all. unfind: 404 for all. break: the
# feed ends with 503 behind some entries. delay: a day's index later, or never. late: a filing's text later. withdraw:
# out of the quarterly index from the next Saturday. move: a ticker to another company. shorten: so many tickers.
SWITCHES: Mapping[str, Callable[[Plan, Mapping[str, Any]], Plan]] = {
    "filings": lambda plan, order: replace(plan, a_day=_number(order, "a_day")),
    "limit": lambda plan, order: replace(plan, per_second=_number(order, "per_second")),
    "block": lambda plan, order: replace(plan, blocked=_until(order)),
    "unfind": lambda plan, order: replace(plan, unfound=_until(order)),
    "break": _broken,
    "delay": _delay,
    "late": _late,
    "withdraw": _withdraw,
    "move": _move,
    "shorten": lambda plan, order: replace(plan, tickers=_number(order, "tickers")),
}

_KINDS = (
    (_DAILY, "daily_index"), (_FULL, "full_index"), (_COMPANY, "company"), (_TEXT, "text"),
    (re.compile(re.escape(FEED)), "feed"), (re.compile(re.escape(TICKERS)), "tickers"),
)  # fmt: skip


def _kind(call: Call) -> str:
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(call.plain_path)), "other")


def upstream(world: World) -> Upstream:
    """The SEC as a stand-in."""
    sec = Sec(world)
    return Upstream(
        name="sec",
        hosts=(WWW, DATA),
        answer=sec.answer,
        absent=lambda call: absent.no_such_key(call) if call.host == DATA else absent.sec_site(call),
        kind=_kind,
        switch=sec.switch,
        view=sec.view,
        reset=sec.reset,
    )
