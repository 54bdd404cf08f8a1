"""KIND: the list of companies of kind.krx.co.kr, a table in HTML under the name of a spreadsheet.

Promises: the body has the upstream's form and encoding; what the list shows follows the simulated clock. Never: a page
that went wrong is served unless a switch asked for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from html import escape
from typing import Any
from zoneinfo import ZoneInfo

from include.sandbox import absent
from include.sandbox.exchange import Answer, Call, SwitchError, Upstream, World, instant_of
from include.sandbox.faults import BLOCK_PAGE
from include.sandbox.kind_market import KONEX, KOSDAQ, KOSPI, MARKETS, Companies, Company, Events, make

HOST = "kind.krx.co.kr"
PATH = "/corpgeneral/corpList.do"
SEOUL = ZoneInfo("Asia/Seoul")
SPREADSHEET = ("Content-Type", "application/vnd.ms-excel; charset=EUC-KR")
PAGE = ("Content-Type", "text/html; charset=EUC-KR")
_OF_TYPE = {"stockMkt": KOSPI, "kosdaqMkt": KOSDAQ, "konexMkt": KONEX}

HEADINGS = ("회사명", "시장구분", "종목코드", "업종", "주요제품", "상장일", "결산월", "대표자명", "홈페이지", "지역")
MAINTENANCE = (
    "<!DOCTYPE html><html><head><title>시스템 점검 안내</title></head><body><h1>서비스 점검 중입니다.</h1>"
    "<p>보다 나은 서비스를 위하여 시스템 점검을 실시하고 있습니다.</p></body></html>"
)


def _cells(company: Company) -> list[str]:
    listed = company.listed_on.isoformat()
    return [
        company.name, company.market, company.code, company.sector, company.products, listed, company.closing_month,
        company.representatives, company.website, company.region,
    ]  # fmt: skip


def page(headings: tuple[str, ...], rows: list[list[str]], at: datetime) -> str:
    """The list in the upstream's form; the instant in it makes equal lists other bytes."""
    lines = ["\n\n\n", "<html>\n<head>", '<meta http-equiv="Content-Type" content="text/html; charset=euc-kr" />']
    lines += ["<title>상장법인목록(EXCEL)</title>\n</head>\n<body>", f"<!-- {at:%Y-%m-%d %H:%M:%S} -->"]
    lines += ['\t<table cellpadding="0" cellspacing="1" class="bbs_tb" border="1">']
    heads = "".join(f'\n\t\t<th bgcolor="#66FF99" >{heading}</th>' for heading in headings)
    lines += [f"\t<tr>{heads}\n\t</tr>"]
    for row in rows:
        cells = [f"\n\t\t<td>{escape(cell, quote=False)}</td>" for cell in row]
        for place, heading in enumerate(headings[: len(row)]):
            if len(row) == 1:
                cells[place] = f'\n\t\t<td colspan="{len(headings)}">{row[place]}</td>'
            elif heading == "종목코드":
                cells[place] = f"\n\t\t<td style=\"mso-number-format:'@';text-align:center;\">{row[place]}</td>"
            elif heading == "홈페이지":
                cells[place] = f"\n\t\t<td>\n\t\t\t{escape(row[place], quote=False)}\n\t\t</td>"
        lines += [f"\t<tr>{''.join(cells)}\n\t</tr>\n\t\t"]
    return "\n".join([*lines, "\t</table>\n</body>\n</html>\n"])


@dataclass(frozen=True)
class Show:
    """What is shown in place of the list, from one instant to before another; `share` is how much of it is left."""

    what: str
    start: datetime
    end: datetime
    share: float = 0.5


def _maintenance(rows: list[list[str]], at: datetime, share: float) -> Answer:
    return Answer(200, MAINTENANCE.encode("cp949"), (PAGE,))


def _blocked(rows: list[list[str]], at: datetime, share: float) -> Answer:
    return Answer(200, BLOCK_PAGE, (PAGE,))


def _form(rows: list[list[str]], at: datetime, share: float) -> Answer:
    body = "<html><head><title>상장법인목록</title></head><body><form><input name='searchType'></form></body></html>"
    return Answer(200, body.encode("cp949"), (PAGE,))


def _listed(headings: tuple[str, ...], rows: list[list[str]], at: datetime, encoding: str = "cp949") -> Answer:
    body = page(headings, rows, at).encode(encoding)
    return Answer(200, body, (SPREADSHEET, ("Content-Disposition", "attachment; filename=corpList.xls")))


def _without_markets(rows: list[list[str]], at: datetime, share: float) -> Answer:
    headings = tuple(heading for heading in HEADINGS if heading != "시장구분")
    return _listed(headings, [[*row[:1], *row[2:]] for row in rows], at)


def _cut(rows: list[list[str]], at: datetime, share: float) -> Answer:
    whole = _listed(HEADINGS, rows, at)
    return replace(whole, body=whole.body[: int(len(whole.body) * share)])


def _bad_bytes(rows: list[list[str]], at: datetime, share: float) -> Answer:
    whole = _listed(HEADINGS, rows, at)
    return replace(whole, body=whole.body.replace("서울특별시".encode("cp949"), b"\xff\xff", 1))


SHOWN: Mapping[str, Callable[[list[list[str]], datetime, float], Answer]] = {
    "maintenance": _maintenance,
    "blocked": _blocked,
    "form": _form,
    "cut": _cut,
    "bad_bytes": _bad_bytes,
    "without_markets": _without_markets,
    "small": lambda rows, at, share: _listed(HEADINGS, rows[: int(len(rows) * share)], at),
    "nobody": lambda rows, at, share: _listed(HEADINGS, [["조회된 결과값이 없습니다."]], at),
    "headings_only": lambda rows, at, share: _listed(HEADINGS, [], at),
    "nothing": lambda rows, at, share: Answer(200, b"", (SPREADSHEET,)),
    "twice": lambda rows, at, share: _listed(HEADINGS, [*rows, rows[0]], at),
    "utf8": lambda rows, at, share: _listed(HEADINGS, rows, at, "utf-8"),
}


def drifted(rows: list[list[str]], at: datetime, drift: str) -> Answer:
    """The list with another schema: a heading renamed, a column missing, or one more."""
    if drift == "renamed":
        return _listed(tuple("결산" if each == "결산월" else each for each in HEADINGS), rows, at)
    if drift == "missing":
        return _listed(HEADINGS[:-1], [row[:-1] for row in rows], at)
    return _listed((*HEADINGS, "영문명"), [[*row, "Example Inc."] for row in rows], at)


class Kind:
    """The stand-in: a market, what happens to it, and what is shown in place of its list."""

    def __init__(self, world: World) -> None:
        self._lock = threading.Lock()
        self._companies = Companies(world.seed, world.companies)
        self._shown: tuple[Show, ...] = ()

    @property
    def companies(self) -> Companies:
        """The market, for a test that asks beside the page."""
        return self._companies

    def answer(self, call: Call) -> Answer:
        """The list, of one market where the call names one, or what a switch shows in its place."""
        given = {**call.params(), **(dict(call.form()) if call.method == "POST" else {})}
        if call.plain_path != PATH or given.get("method") != "download":
            return absent.kind(call)
        at = call.at.astimezone(SEOUL)
        companies = self._companies.listed(call.at, at.date())
        if wanted := _OF_TYPE.get(given.get("marketType", "")):
            companies = [company for company in companies if company.market == wanted]
        rows = [_cells(company) for company in companies]
        show = next((each for each in reversed(self._shown) if each.start <= call.at < each.end), None)
        if show is not None:
            return SHOWN[show.what](rows, at, show.share)
        return drifted(rows, at, call.drift) if call.drift else _listed(HEADINGS, rows, at)

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change the market or what is shown; see `SWITCHES` for the words.

        Raises:
            SwitchError: the order cannot be read.
        """
        word = str(order.get("switch", ""))
        with self._lock:
            if word == "show":
                self._shown = (*self._shown, _show(order))
            elif word in SWITCHES:
                self._companies = replace(self._companies, events=SWITCHES[word](self._companies, order))
            else:
                raise SwitchError(f"KIND has no switch {word!r}; it has {', '.join(sorted([*SWITCHES, 'show']))}")
        return self.view()

    def reset(self) -> None:
        """Forget all switches."""
        with self._lock:
            self._companies, self._shown = replace(self._companies, events=Events()), ()

    def view(self) -> dict[str, Any]:
        """What was switched, for reading."""
        events = self._companies.events
        return {
            "changes": [f"{at.isoformat()} {code}" for at, code, _ in events.changes],
            "hidden": sorted(f"{day} {code}" for day, code in events.hidden),
            "shown": [f"{show.what} {show.start.isoformat()} – {show.end.isoformat()}" for show in self._shown],
        }


def _code(order: Mapping[str, Any]) -> str:
    code = order.get("code")
    if not isinstance(code, str) or len(code) != 6:
        raise SwitchError(f'"code" is a text of six, e.g. "004840", not {code!r}')
    return code


def _market(order: Mapping[str, Any]) -> str:
    market = order.get("market", KOSDAQ)
    if market not in MARKETS:
        raise SwitchError(f'"market" is one of {", ".join(MARKETS)}, not {market!r}')
    return str(market)


def _with(companies: Companies, order: Mapping[str, Any], change: Any) -> Events:
    events = companies.events
    added = (instant_of(order.get("at"), '"at"'), _code(order), change)
    return replace(events, changes=tuple(sorted((*events.changes, added), key=lambda each: each[0])))


def _list(companies: Companies, order: Mapping[str, Any]) -> Events:
    code, at = _code(order), instant_of(order.get("at"), '"at"')
    company = make(str(companies.seed), code, _market(order), at.astimezone(SEOUL).date())
    return _with(companies, order, replace(company, name=str(order.get("name") or company.name)))


def _delist(companies: Companies, order: Mapping[str, Any]) -> Events:
    return _with(companies, order, None)


_FIELDS = ("name", "market", "sector", "products", "closing_month", "representatives", "website", "region")


def _change(companies: Companies, order: Mapping[str, Any]) -> Events:
    changed = {name: str(order[name]) for name in _FIELDS if name in order}
    if not changed:
        raise SwitchError(f"a company is changed by one of {', '.join(_FIELDS)}")
    return _with(companies, order, changed)


def _hide(companies: Companies, order: Mapping[str, Any]) -> Events:
    try:
        day = date.fromisoformat(str(order.get("day")))
    except ValueError:
        raise SwitchError(f'"day" must be a date such as 2026-09-15, not {order.get("day")!r}') from None
    return replace(companies.events, hidden=companies.events.hidden | {(day, _code(order))})


def _show(order: Mapping[str, Any]) -> Show:
    what, share = order.get("what"), order.get("share", 0.5)
    if what not in SHOWN:
        raise SwitchError(f'"what" is one of {", ".join(SHOWN)}, not {what!r}')
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise SwitchError('"share" is how much of the list is left, from 0 to 1')
    return Show(str(what), instant_of(order.get("from"), '"from"'), instant_of(order.get("until"), '"until"'), share)


# list, delist, change: a company comes, goes, has another name, market, industry … from an instant on. hide: one day's
# list does not show it. (show: what is answered in place of the list for a while.)
SWITCHES: Mapping[str, Callable[[Companies, Mapping[str, Any]], Events]] = {
    "list": _list,
    "delist": _delist,
    "change": _change,
    "hide": _hide,
}


def upstream(world: World) -> Upstream:
    """KIND as a stand-in."""
    kind = Kind(world)
    return Upstream(
        name="kind",
        hosts=(HOST,),
        answer=kind.answer,
        absent=absent.kind,
        kind=lambda call: "list" if call.params().get("method") == "download" else "other",
        switch=kind.switch,
        view=kind.view,
        reset=kind.reset,
    )
