"""Alpaca: bars of data.alpaca.markets, assets and calendar of paper-api.alpaca.markets.

Promises: keys are asked for, the account's requests are counted and limited by the simulated minute, and every answer
carries the counters and a number of its own. Never: a key is looked up; any will do.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any

from include.calendars import calendar
from include.sandbox import absent
from include.sandbox.alpaca_market import NEW_YORK, Company, Events, Stocks, early_closes
from include.sandbox.alpaca_pages import Asked, Page, Refused, page, read
from include.sandbox.exchange import Answer, Call, SwitchError, Upstream, World, instant_of, json_answer

DATA, TRADING = "data.alpaca.markets", "paper-api.alpaca.markets"
BARS = "/v2/stocks/bars"
ONE = re.compile(r"/v2/stocks/(?P<symbol>[^/]+)/bars")
ASSET = re.compile(r"/v2/assets/(?P<symbol>[^/]+)")
LIMITS = {"basic": 200, "plus": 10_000}


@dataclass
class _Account:
    """What an account may, what it is shown, and what it has asked for in the current minute."""

    plan: str = "basic"
    hidden_assets: int = 0
    minute: datetime | None = None
    asked: int = 0


class Alpaca:
    """The stand-in: a market with its events, and one account."""

    def __init__(self, world: World) -> None:
        self._lock = threading.Lock()
        self._stocks = Stocks(world.seed, world.companies)
        self._account = _Account()
        self._number = 0

    def answer(self, call: Call) -> Answer:
        """Bars, assets, the calendar, or the refusal of what cannot be."""
        if not call.headers.get("apca-api-secret-key") and not call.headers.get("authorization"):
            return json_answer(401, {"message": "request is not authorized"})
        counters, is_over = self._count(call.at)
        if is_over:
            return json_answer(429, {"message": "too many requests."}, *counters)
        try:
            found = self._answer(call)
        except Refused as refused:
            found = json_answer(refused.status, {"message": str(refused)})
        return found.plus(*counters)

    def _count(self, at: datetime) -> tuple[tuple[tuple[str, str], ...], bool]:
        with self._lock:
            minute, account = at.replace(second=0, microsecond=0), self._account
            if account.minute != minute:
                account.minute, account.asked = minute, 0
            account.asked += 1
            self._number += 1
            limit = LIMITS[account.plan]
            counters = (
                ("X-RateLimit-Limit", str(limit)),
                ("X-RateLimit-Remaining", str(max(limit - account.asked, 0))),
                ("X-RateLimit-Reset", str(int((minute + timedelta(minutes=1)).timestamp()))),
                ("X-Request-ID", f"{self._number:032x}"),
            )
            return counters, account.asked > limit

    def _answer(self, call: Call) -> Answer:
        params = call.params()
        if call.host == DATA:
            if call.path == BARS:
                return _multi(*self._page(params, call.at), call.drift)
            if (one := ONE.fullmatch(call.plain_path)) is not None:
                return _single(*self._page({**params, "symbols": one["symbol"]}, call.at))
        elif call.path == "/v2/assets":
            found_assets = _assets(self._stocks, params, call.at)
            return json_answer(200, found_assets[: len(found_assets) - self._account.hidden_assets])
        elif call.path == "/v2/calendar":
            return json_answer(200, _calendar(params))
        elif (found := ASSET.fullmatch(call.plain_path)) is not None:
            for asset in _assets(self._stocks, {}, call.at):
                if asset["symbol"] == found["symbol"]:
                    return json_answer(200, asset)
            return absent.alpaca_trading(call)
        return json_answer(404, {"message": "endpoint not found."})

    def _page(self, params: Mapping[str, str], at: datetime) -> tuple[Asked, Page]:
        asked = read(params, at, is_free=self._account.plan == "basic")
        return asked, page(self._stocks, asked, at)

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change what happens; see `SWITCHES` for the words.

        Raises:
            SwitchError: the order cannot be read.
        """
        word = str(order.get("switch", ""))
        if word == "plan":
            if order.get("plan") not in LIMITS:
                raise SwitchError(f'"plan" is one of {", ".join(LIMITS)}, not {order.get("plan")!r}')
            self._account.plan = str(order["plan"])
            return self.view()
        if word == "hide_assets":
            # The list is whole JSON and lacks so many of its last entries.
            if not isinstance(order.get("number"), int) or order["number"] < 0:
                raise SwitchError(f'"number" is how many assets the list lacks, not {order.get("number")!r}')
            self._account.hidden_assets = order["number"]
            return self.view()
        if word not in SWITCHES:
            raise SwitchError(f"Alpaca has no switch {word!r}; it has plan, hide_assets, {', '.join(sorted(SWITCHES))}")
        with self._lock:
            self._stocks = replace(self._stocks, events=SWITCHES[word](self._stocks.events, order))
        return self.view()

    def reset(self) -> None:
        """Forget all switches."""
        with self._lock:
            self._stocks = replace(self._stocks, events=Events())
            self._account = _Account()

    def view(self) -> dict[str, Any]:
        """The plan and the events, for reading."""
        events = self._stocks.events
        return {
            "plan": self._account.plan,
            "hidden_assets": self._account.hidden_assets,
            "splits": {f"{symbol} {day}": f"{new}:{old}" for (symbol, day), (new, old) in events.splits.items()},
            "renames": [f"{old} {new} {day}" for old, new, day in events.renames],
            "listings": [f"{symbol} {day}" for symbol, day in events.listings],
            "delistings": {symbol: day.isoformat() for symbol, day in events.delistings.items()},
            "late": {f"{s} {day}": f"{how} until {at.isoformat()}" for (s, day), (at, how) in events.late.items()},
            "halts": {f"{s} {day}": f"{first}-{last}" for (s, day), (first, last) in events.halts.items()},
            "silent": sorted(events.silent),
        }


def _listed(found: Page) -> str:
    return ",".join(
        f'"{symbol}":[{",".join(bar.text() for bar in bars)}]' for symbol, bars in sorted(found.bars.items())
    )


def _token(found: Page) -> str:
    return f'"{found.token}"' if found.token else "null"


def _multi(asked: Asked, found: Page, drift: str | None) -> Answer:
    text = f'{{"bars":{{{_listed(found)}}},"next_page_token":{_token(found)}}}'
    changes = {"renamed": ('"c":', '"close":'), "missing": ('"o":', '"_":'), "extra": ('"o":', '"x":"Q","o":')}
    if drift:
        text = text.replace(*changes[drift])
    return Answer(200, text.encode(), (("Content-Type", "application/json; charset=UTF-8"),))


def _single(asked: Asked, found: Page) -> Answer:
    (symbol,) = asked.symbols
    bars = found.bars.get(symbol)
    listed = f"[{','.join(bar.text() for bar in bars)}]" if bars else "null"
    text = f'{{"bars":{listed},"symbol":"{symbol}","next_page_token":{_token(found)}}}'
    return Answer(200, text.encode(), (("Content-Type", "application/json; charset=UTF-8"),))


def _assets(stocks: Stocks, params: Mapping[str, str], at: datetime) -> list[dict[str, Any]]:
    """Every asset as it is listed on the day of an instant; those that are gone are inactive."""
    day = at.astimezone(NEW_YORK).date()
    found = []
    for company in stocks.listed():
        if company.first > day:
            continue
        symbol = company.name_on(min(day, company.last)) or company.names[-1][1]
        asset = _asset(company, symbol, is_active=day <= company.last)
        if params.get("status") in (None, asset["status"]) and params.get("asset_class") in (None, "us_equity"):
            found.append(asset)
    return found


def _asset(company: Company, symbol: str, *, is_active: bool) -> dict[str, Any]:
    is_large = company.weight > 1e5
    return {
        "id": company.number,
        "class": "us_equity",
        "exchange": company.exchange if is_active else "OTC",
        "symbol": symbol,
        "name": f"{symbol} Incorporated Common Stock",
        "status": "active" if is_active else "inactive",
        "tradable": is_active,
        "marginable": is_large,
        "maintenance_margin_requirement": 30 if is_large else 100,
        "margin_requirement_long": "30" if is_large else "100",
        "margin_requirement_short": "30" if is_large else "100",
        "shortable": is_large,
        "easy_to_borrow": is_large,
        "fractionable": is_large,
        "borrow_status": "easy_to_borrow" if is_large else "hard_to_borrow",
        "attributes": ["fractional_eh_enabled", "has_options"] if is_large else [],
    }


def _calendar(params: Mapping[str, str]) -> list[dict[str, str]]:
    try:
        first = date.fromisoformat(params.get("start", "2016-01-01"))
        last = date.fromisoformat(params.get("end", "2029-12-31"))
    except ValueError:
        raise Refused(422, "invalid date") from None
    days = calendar("XNYS")
    found = []
    for day in days.sessions(first, min(last, date(2029, 12, 31))):
        is_short = day in early_closes(day.year)
        found.append(
            {
                "date": day.isoformat(),
                "open": "09:30",
                "close": "13:00" if is_short else "16:00",
                "session_open": "0400",
                "session_close": "1700" if is_short else "2000",
                "settlement_date": days.session_offset(day, 1).isoformat(),
            }
        )
    return found


# --- switches


def _day(order: Mapping[str, Any]) -> date:
    try:
        return date.fromisoformat(str(order.get("day")))
    except ValueError:
        raise SwitchError(f'"day" must be a date such as 2026-09-15, not {order.get("day")!r}') from None


def _text(order: Mapping[str, Any], name: str) -> str:
    value = order.get(name)
    if not isinstance(value, str) or not value:
        raise SwitchError(f'"{name}" must be a symbol such as AAPL, not {value!r}')
    return value


def _split(events: Events, order: Mapping[str, Any]) -> Events:
    ratio = order.get("ratio")
    if not isinstance(ratio, list) or len(ratio) != 2 or not all(isinstance(n, int) and n > 0 for n in ratio):
        raise SwitchError('"ratio" is new and old shares, for example [4, 1]')
    return replace(events, splits={**events.splits, (_text(order, "symbol"), _day(order)): (ratio[0], ratio[1])})


def _rename(events: Events, order: Mapping[str, Any]) -> Events:
    renamed = (_text(order, "symbol"), _text(order, "to"), _day(order))
    return replace(events, renames=(*events.renames, renamed))


def _list(events: Events, order: Mapping[str, Any]) -> Events:
    return replace(events, listings=(*events.listings, (_text(order, "symbol"), _day(order))))


def _delist(events: Events, order: Mapping[str, Any]) -> Events:
    return replace(events, delistings={**events.delistings, _text(order, "symbol"): _day(order)})


def _late(events: Events, order: Mapping[str, Any]) -> Events:
    how = order.get("how", "other")
    if how not in ("other", "missing"):
        raise SwitchError(f'"how" is other or missing, not {how!r}')
    until = instant_of(order.get("until"), '"until"')
    return replace(events, late={**events.late, (_text(order, "symbol"), _day(order)): (until, str(how))})


def _halt(events: Events, order: Mapping[str, Any]) -> Events:
    try:
        hours = (time.fromisoformat(str(order.get("from"))), time.fromisoformat(str(order.get("until"))))
    except ValueError:
        raise SwitchError('"from" and "until" are times in New York such as 10:15') from None
    return replace(events, halts={**events.halts, (_text(order, "symbol"), _day(order)): hours})


def _silence(events: Events, order: Mapping[str, Any]) -> Events:
    return replace(events, silent=events.silent | {_text(order, "symbol")})


# split, rename, list, delist: what happens to a company on a day. late: bars of a day that are other, or missing, until
# an instant. halt: no trade for some minutes. silence: never a trade.
SWITCHES: Mapping[str, Callable[[Events, Mapping[str, Any]], Events]] = {
    "split": _split,
    "rename": _rename,
    "list": _list,
    "delist": _delist,
    "late": _late,
    "halt": _halt,
    "silence": _silence,
}


def upstream(world: World) -> Upstream:
    """Alpaca as a stand-in."""
    alpaca = Alpaca(world)
    return Upstream(
        name="alpaca",
        hosts=(DATA, TRADING),
        answer=alpaca.answer,
        absent=lambda call: absent.alpaca_data(call) if call.host == DATA else absent.alpaca_trading(call),
        kind=lambda call: call.path.rpartition("/")[2],
        switch=alpaca.switch,
        view=alpaca.view,
        reset=alpaca.reset,
    )
