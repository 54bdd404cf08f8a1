"""DART: the interface of opendart.fss.or.kr, with its lists, its documents and its ways of saying no, and its web site.

Promises: HTTP 200 whatever is said, as the upstream does; requests are counted by key and day in Seoul, and by the
minute over all keys; a range of more than three calendar months without a company is refused. Never: a filing before
its second by the simulated clock.
"""

from __future__ import annotations

import io
import json
import threading
import zipfile
from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any
from xml.sax.saxutils import escape

from include.sandbox import absent, dart_documents, dart_rows, dart_viewer
from include.sandbox.dart_filings import SEOUL, Company, Filing, Filings
from include.sandbox.dart_items import FIELDS
from include.sandbox.dart_periodic import REPORTS, Report
from include.sandbox.dart_switches import BLOCKED, HOUSE_SWITCHES, MAINTENANCE, STATUSES, SWITCHES, House
from include.sandbox.exchange import Answer, Call, SwitchError, Upstream, World

HOST = "opendart.fss.or.kr"
LIST, CORPS, STATEMENTS = "/api/list.json", "/api/corpCode.xml", "/api/fnlttSinglAcntAll.json"
DOCUMENT = "/api/document.xml"
BLOCKED_FOR = timedelta(days=1)
HTML = ("Content-Type", "text/html; charset=utf-8")
MARKETS = ("Y", "K", "N", "E")


class Refusal(Exception):
    """An answer that says no, by its status."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


class Dart:
    """The stand-in: filings, and the switches that change them and the interface."""

    def __init__(self, world: World) -> None:
        self._lock = threading.Lock()
        self._filings = Filings(world.seed, world.companies)
        self._house = House()
        self._used: Counter[tuple[str, date]] = Counter()
        self._minutes: Counter[datetime] = Counter()
        self._seen_at: datetime | None = None
        self._shortest = float("inf")

    @property
    def filings(self) -> Filings:
        """What was filed, for a test that asks beside the interface."""
        return self._filings

    def answer(self, call: Call) -> Answer:
        """Answer a call: rows, an archive, or the refusal of what cannot be."""
        if self._is_blocked(call.at):
            return Answer(403, BLOCKED, (HTML,))
        if self._house.page:
            return Answer(200, MAINTENANCE, (HTML,))
        if call.host == dart_viewer.HOST:
            return self._page(call)
        endpoint = ENDPOINTS.get(call.plain_path)
        try:
            if endpoint is None:
                return absent.not_found(call)
            self._admit(call)
            if (out := self._house.out.get(_name(call))) is not None:
                return Answer(200, MAINTENANCE, (HTML,)) if out == "page" else Answer(int(out), b"", (HTML,))
            return endpoint(self._filings, self._house, call)
        except Refusal as no:
            return _refused(no.status, is_archive=call.plain_path.endswith(".xml"))

    def _page(self, call: Call) -> Answer:
        """A page of the web site, which asks for no key."""
        params = call.params()
        with self._lock:
            if self._seen_at is not None:
                self._shortest = min(self._shortest, (call.at - self._seen_at).total_seconds())
            self._seen_at = call.at
        filing = self._filings.filing(params.get("rcpNo", ""), call.at)
        if call.plain_path == dart_viewer.MAIN:
            return dart_viewer.main_page(filing)
        if call.plain_path == dart_viewer.PART:
            places = [params.get(name, "0") for name in ("offset", "length")]
            if all(place.isdecimal() for place in places):
                return dart_viewer.part_page(filing, *map(int, places))
        return absent.not_found(call)

    def _is_blocked(self, at: datetime) -> bool:
        with self._lock:
            minute = at.replace(second=0, microsecond=0)
            self._minutes[minute] += 1
            until = self._house.blocked_until
            if until is not None and at < until:
                return True
            if self._minutes[minute] > self._house.per_minute:
                self._house = replace(self._house, blocked_until=at + BLOCKED_FOR)
                return True
            return False

    def _admit(self, call: Call) -> None:
        key = call.params().get("crtfc_key", "")
        if self._house.says is not None:
            raise Refusal(self._house.says)
        if not key:
            raise Refusal("010")
        with self._lock:
            day = (key, call.at.astimezone(SEOUL).date())
            self._used[day] += 1
            if self._used[day] > self._house.quota:
                raise Refusal("020")

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change the filings or the interface; see `dart_switches` for the words.

        Raises:
            SwitchError: the order cannot be read.
        """
        word = str(order.get("switch", ""))
        with self._lock:
            if word in SWITCHES:
                self._filings = replace(self._filings, events=SWITCHES[word](self._filings, order))
            elif word in HOUSE_SWITCHES:
                self._house = HOUSE_SWITCHES[word](self._house, order)
            else:
                known = ", ".join(sorted({*SWITCHES, *HOUSE_SWITCHES}))
                raise SwitchError(f"DART has no switch {word!r}; it has {known}")
        return self.view()

    def reset(self) -> None:
        """Forget all switches and what was counted."""
        with self._lock:
            self._filings = Filings(self._filings.seed, self._filings.size)
            self._house = House()
            self._used.clear()
            self._minutes.clear()
            self._seen_at, self._shortest = None, float("inf")

    def view(self) -> dict[str, Any]:
        """What was switched, for reading; keys are counted and not shown."""
        events, house = self._filings.events, self._house
        return {
            "added": [each.rcept_no for each in events.added],
            "withdrawn": {number: at.isoformat() for number, at in events.withdrawn.items()},
            "hidden": {number: at.isoformat() for number, at in events.hidden.items()},
            "says": house.says,
            "maintenance": house.page,
            "out": dict(house.out),
            "lag": house.lag.total_seconds(),
            "quota": house.quota,
            "per_minute": house.per_minute,
            "blocked_until": house.blocked_until.isoformat() if house.blocked_until else None,
            "most_in_a_minute": max(self._minutes.values(), default=0),
            "shortest_between_pages": self._shortest if self._shortest < float("inf") else None,
            "used": sorted(self._used.values(), reverse=True),
        }


# --- the list of filings


def _day(params: Mapping[str, str], name: str, default: date) -> date:
    text = params.get(name)
    if text is None:
        return default
    try:
        if len(text) != 8 or not text.isdigit():
            raise ValueError
        return date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        raise Refusal("100") from None


def three_months_after(day: date) -> date:
    """The last day that may be asked for from a day on without a company: the month's end where it is shorter."""
    year, month = day.year + (day.month + 2) // 12, (day.month + 2) % 12 + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def _number(params: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = params.get(name, str(default))
    if not text.isdigit() or not 1 <= int(text) <= most:
        raise Refusal("100")
    return int(text)


def _list(filings: Filings, house: House, call: Call) -> Answer:
    params = call.params()
    today = call.at.astimezone(SEOUL).date()
    last = _day(params, "end_de", today)
    first = _day(params, "bgn_de", last)
    corp, market = params.get("corp_code"), params.get("corp_cls")
    if first > last or (corp is None and last > three_months_after(first)):
        raise Refusal("100")
    if market is not None and market not in MARKETS:
        raise Refusal("100")
    count, page = _number(params, "page_count", 10, 100), _number(params, "page_no", 1, 10**6)
    rows = [
        (filing, marks)
        for day in _days(first, min(last, today))
        for filing, marks in filings.shown(day, call.at)
        if corp in (None, filing.company.corp_code)
        and market in (None, filing.company.market)
        and params.get("pblntf_ty") in (None, filing.kind)
    ]
    if params.get("sort_mth", "desc") != "asc":
        rows.reverse()
    pages = -(-len(rows) // count)
    if page > pages:
        raise Refusal("013")
    document = {
        "status": "000",
        "message": "정상",
        "page_no": page,
        "page_count": count,
        "total_count": len(rows),
        "total_page": pages,
        "list": [_row(*row, call.drift) for row in rows[(page - 1) * count : page * count]],
    }
    return _json(document)


def _days(first: date, last: date) -> Iterator[date]:
    while first <= last:
        yield first
        first += timedelta(days=1)


def _row(filing: Filing, marks: str, drift: str | None) -> dict[str, str]:
    company = filing.company
    row = {
        "corp_code": company.corp_code,
        "corp_name": company.name,
        "stock_code": company.stock_code.strip(),
        "corp_cls": company.market,
        "report_nm": filing.title,
        "rcept_no": filing.rcept_no,
        "flr_nm": filing.submitter,
        "rcept_dt": f"{filing.day:%Y%m%d}",
        "rm": marks,
    }
    if drift == "extra":
        return {**row, "viewer_url": "https://dart.fss.or.kr/"}
    if drift is not None:
        named = {"report_name": row["report_nm"]} if drift == "renamed" else {}
        return {**{name: value for name, value in row.items() if name != "report_nm"}, **named}
    return row


# --- the list of companies


def corps_document(companies: Iterator[Company]) -> Iterator[bytes]:
    """The list of companies as its document has it, piece by piece."""
    yield b'<?xml version="1.0" encoding="UTF-8"?>\n<result>\n'
    for each in companies:
        fields = {
            "corp_code": each.corp_code,
            "corp_name": each.name,
            "corp_eng_name": each.english,
            "stock_code": each.stock_code,
            "modify_date": f"{each.changed:%Y%m%d}",
        }
        lines = "".join(f"        <{name}>{escape(value)}</{name}>\n" for name, value in fields.items())
        yield f"    <list>\n{lines}    </list>\n".encode()
    yield b"</result>\n"


def _corps(filings: Filings, house: House, call: Call) -> Answer:
    companies = filings.companies[: house.last_companies]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        # The archive carries the instant of its making, so that equal lists are not equal bytes.
        member = zipfile.ZipInfo("CORPCODE.xml", call.at.astimezone(SEOUL).timetuple()[:6])
        archive.writestr(member, b"".join(corps_document(iter(companies))), zipfile.ZIP_DEFLATED)
    disposition = ("Content-Disposition", ': attachment; filename="CORPCODE.zip"')
    return Answer(200, packed.getvalue(), (("Content-Type", "application/x-msdownload;charset=UTF-8"), disposition))


# --- documents


def _document(filings: Filings, house: House, call: Call) -> Answer:
    filing = filings.filing(call.params().get("rcept_no", ""), call.at)
    if filing is None:
        raise Refusal("014")
    there = filings.events.documents.get(filing.rcept_no, dart_documents.there_from(filing))
    if call.at < there:
        raise Refusal("014")
    body = dart_documents.archive(filing, call.at)
    if filing.rcept_no in filings.events.cut:
        body = body[: len(body) // 2]
    disposition = ("Content-Disposition", f': attachment; filename="{filing.rcept_no}.zip"')
    return Answer(200, body, (("Content-Type", "application/x-msdownload;charset=UTF-8"), disposition))


# --- periodic reports


def _of_a_report(answer: Callable[..., Mapping[str, Any] | None]) -> Callable[[Filings, House, Call], Answer]:
    """Answer of a company and period with the report whose data are there, or that there is none."""

    def respond(filings: Filings, house: House, call: Call) -> Answer:
        params = call.params()
        year, code = params.get("bsns_year", ""), params.get("reprt_code", "")
        if code not in REPORTS or not (len(year) == 4 and year.isdigit()) or not params.get("corp_code"):
            raise Refusal("100")
        place = filings.places.get(params["corp_code"])
        report = filings.market.with_data(place, int(year), code, call.at - house.lag) if place is not None else None
        found = answer(filings, report, call) if report is not None else None
        if found is None:
            raise Refusal("013")
        return _json({"status": "000", "message": "정상", **found})

    return respond


def _statements(filings: Filings, report: Report, call: Call) -> Mapping[str, Any] | None:
    basis = call.params().get("fs_div")
    if basis not in ("CFS", "OFS"):
        raise Refusal("100")
    company, number = filings.listed[report.company], filings.market.number(report)
    rows = dart_rows.statements(filings.seed, filings.size, report, number, company, basis)
    return None if rows is None else {"list": rows}


def _item(filings: Filings, report: Report, call: Call) -> Mapping[str, Any] | None:
    company, number = filings.listed[report.company], filings.market.number(report)
    return dart_rows.item(filings.seed, report, number, company, _name(call))


def _name(call: Call) -> str:
    return call.plain_path.rpartition("/")[2].partition(".")[0]


ENDPOINTS: Mapping[str, Callable[[Filings, House, Call], Answer]] = {
    LIST: _list,
    CORPS: _corps,
    DOCUMENT: _document,
    STATEMENTS: _of_a_report(_statements),
    **{f"/api/{name}.json": _of_a_report(_item) for name in FIELDS},
}


# --- forms


def _json(document: Mapping[str, Any]) -> Answer:
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return Answer(200, body, (("Content-Type", "application/json;charset=UTF-8"),))


def _refused(status: str, *, is_archive: bool) -> Answer:
    message = STATUSES[status]
    if not is_archive:
        return _json({"status": status, "message": message})
    told = f"<result><status>{status}</status><message>{message}</message></result>"
    body = f'<?xml version="1.0" encoding="UTF-8"?>{told}'.encode()
    return Answer(200, body, (("Content-Type", "application/xml;charset=UTF-8"),))


def upstream(world: World) -> Upstream:
    """DART as a stand-in."""
    dart = Dart(world)
    return Upstream(
        name="dart",
        hosts=(HOST, dart_viewer.HOST),
        answer=dart.answer,
        absent=absent.dart,
        kind=_name,
        switch=dart.switch,
        view=dart.view,
        reset=dart.reset,
        secret_params=frozenset({"crtfc_key"}),
    )
