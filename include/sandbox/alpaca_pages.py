"""Alpaca's pages of bars: the checks of a request, whose bars a symbol shows, and where a page ends.

Promises: errors are those of the upstream, word by word where they are known; symbols come in alphabetical order and
times within a symbol; a page's token is its last bar's place. Never: two feeds give one bar.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

from include.sandbox.alpaca_market import FIRST, NEW_YORK, Bar, Company, Stocks

RECENT = timedelta(minutes=15)
NOT_PERMITTED = "subscription does not permit querying recent SIP data"
FEEDS = ("sip", "iex", "otc", "boats", "overnight", "delayed_sip")
ADJUSTMENTS = ("raw", "split", "dividend", "spin-off", "all")
# The one exchange has a small part of the volume.
IEX_PART = 40

_SYMBOL = re.compile(r"[A-Z]{1,8}(\.[A-Z]{1,4}){0,2}")
_TIMEFRAME = re.compile(r"([0-9]{1,2})(Min|T|Hour|H|Day|D|Week|W|Month|M)")
_LONG = {"T": "Min", "H": "Hour", "D": "Day", "W": "Week", "M": "Month"}
_MOST = {"Min": 59, "Hour": 23, "Day": 1, "Week": 1, "Month": 12}


class Refused(Exception):
    """The request is answered with this status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Asked:
    """A request for bars as it was understood."""

    symbols: tuple[str, ...]
    amount: int
    unit: str
    start: datetime
    end: datetime
    limit: int
    adjustment: str
    feed: str
    asof: date | None
    token: tuple[str, datetime] | None
    descending: bool


def read(params: Mapping[str, str], at: datetime, *, is_free: bool) -> Asked:
    """Read the parameters of a request.

    Raises:
        Refused: one of them cannot be used, or the plan does not include it.
    """
    symbols = tuple(params.get("symbols", "").split(","))
    if symbols == ("",):
        raise Refused(400, "symbols is required")
    for symbol in symbols:
        if not _SYMBOL.fullmatch(symbol):
            raise Refused(400, f"invalid symbol: {symbol}")
    amount, unit = _timeframe(params.get("timeframe", ""))
    limit = params.get("limit", "1000")
    if not limit.isdigit() or not 1 <= int(limit) <= 10_000:
        raise Refused(400, f"invalid limit: {limit}")
    feed, adjustment = params.get("feed", "sip"), params.get("adjustment", "raw")
    if feed not in FEEDS:
        raise Refused(400, f"invalid feed: {feed}")
    if not set(adjustment.split(",")) <= set(ADJUSTMENTS):
        raise Refused(400, f"invalid adjustment: {adjustment}")
    today = at.astimezone(NEW_YORK).replace(hour=0, minute=0, second=0, microsecond=0)
    start = _instant(params["start"]) if "start" in params else today
    end = _instant(params["end"]) if "end" in params else (at - RECENT if is_free else at)
    if end < start:
        raise Refused(400, "end should not be before start")
    if is_free and feed == "sip" and end > at - RECENT:
        raise Refused(403, NOT_PERMITTED)
    asof = params.get("asof")
    return Asked(
        symbols=tuple(sorted(set(symbols))),
        amount=amount,
        unit=unit,
        start=start,
        end=end,
        limit=int(limit),
        adjustment=adjustment,
        feed=feed,
        asof=None if asof == "-" else _day(asof) if asof else today.date(),
        token=_token(params["page_token"]) if params.get("page_token") else None,
        descending=params.get("sort") == "desc",
    )


def _timeframe(text: str) -> tuple[int, str]:
    found = _TIMEFRAME.fullmatch(text)
    if found is None:
        raise Refused(400, f"invalid timeframe: {text}")
    amount, unit = int(found[1]), _LONG.get(found[2], found[2])
    if not 1 <= amount <= _MOST[unit]:
        raise Refused(400, f"invalid timeframe: {text}")
    return amount, unit


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(400, f"invalid time: {text}") from None
    return instant if instant.tzinfo else instant.replace(tzinfo=NEW_YORK)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Refused(400, f"invalid asof: {text}") from None


def _token(text: str) -> tuple[str, datetime]:
    try:
        symbol, _, at = base64.b64decode(text, validate=True).decode().split("|")
        return symbol, datetime.fromisoformat(at[:19]).replace(tzinfo=UTC)
    except ValueError:
        raise Refused(400, "invalid page_token") from None


@dataclass(frozen=True)
class Page:
    """One page: bars by symbol, and the token of the next one."""

    bars: dict[str, list[Bar]]
    token: str | None


def page(stocks: Stocks, asked: Asked, at: datetime) -> Page:
    """The page that a request is answered with at an instant."""
    bars: dict[str, list[Bar]] = {}
    count, last = 0, None
    for symbol, bar in _after(_all(stocks, asked, at), asked.token):
        if count == asked.limit:
            assert last is not None
            letter = asked.unit[0]
            place = f"{last[0]}|{letter}|{last[1]:%Y-%m-%dT%H:%M:%S}.000000000Z"
            return Page(bars, base64.b64encode(place.encode()).decode())
        bars.setdefault(symbol, []).append(bar)
        count, last = count + 1, (symbol, bar.at)
    return Page(bars, None)


def _after(bars: Iterator[tuple[str, Bar]], token: tuple[str, datetime] | None) -> Iterator[tuple[str, Bar]]:
    if token is None:
        yield from bars
        return
    is_past = False
    for symbol, bar in bars:
        if is_past or symbol > token[0]:
            yield symbol, bar
        elif (symbol, bar.at) == token:
            is_past = True


def _all(stocks: Stocks, asked: Asked, at: datetime) -> Iterator[tuple[str, Bar]]:
    companies = stocks.listed()
    token_symbol = asked.token[0] if asked.token else ""
    for symbol in asked.symbols:
        if symbol < token_symbol:
            continue
        bars = [bar for bar in _bars(stocks, companies, symbol, asked, at) if asked.start <= bar.at <= asked.end]
        for bar in sorted(bars, key=lambda each: each.at, reverse=asked.descending):
            yield symbol, _of_feed(bar, asked.feed)


def _of_feed(bar: Bar, feed: str) -> Bar:
    if feed != "iex":
        return bar
    return replace(bar, volume=max(bar.volume // IEX_PART, 1), trades=max(bar.trades // IEX_PART, 1))


def _bars(stocks: Stocks, companies: tuple[Company, ...], symbol: str, asked: Asked, at: datetime) -> Iterator[Bar]:
    """The bars that a symbol shows: of whoever had the name on each day, or of its bearer as of a date."""
    if asked.asof is None:
        bearers = [company for company in companies if any(name == symbol for _, name in company.names)]
    else:
        # The mapping of a new name is in force the day after.
        bearers = [company for company in companies if company.name_on(asked.asof - timedelta(days=1)) == symbol][-1:]
    first = max(asked.start.astimezone(NEW_YORK).date() - timedelta(days=1), FIRST)
    last = min(asked.end, at).astimezone(NEW_YORK).date()
    if asked.unit == "Month":
        first = first.replace(day=1)
    if asked.unit == "Week":
        first -= timedelta(days=first.weekday())
    by_day: dict[date, list[Bar]] = {}
    for company in bearers:
        for day in (first + timedelta(days=n) for n in range((last - first).days + 1)):
            if asked.asof is None and company.name_on(day) != symbol:
                continue
            if asked.unit in ("Min", "Hour"):
                by_day.setdefault(day, []).extend(stocks.minute_bars(company, day, asked.adjustment, at))
            elif (bar := stocks.day_bar(company, day, asked.adjustment, at)) is not None:
                by_day.setdefault(day, []).append(bar)
    bars = [bar for day in sorted(by_day) for bar in by_day[day]]
    if (asked.amount, asked.unit) in ((1, "Min"), (1, "Day")):
        yield from bars
        return
    for start, group in groupby(bars, key=lambda bar: _start(bar.at, asked)):
        yield _together(start, list(group))


def _start(at: datetime, asked: Asked) -> datetime:
    """When the longer bar begins that a bar belongs to."""
    local = at.astimezone(NEW_YORK)
    if asked.unit in ("Min", "Hour"):
        minutes = asked.amount * (60 if asked.unit == "Hour" else 1)
        passed = local.hour * 60 + local.minute
        local = local.replace(hour=passed // minutes * minutes // 60, minute=passed // minutes * minutes % 60)
    elif asked.unit == "Week":
        local -= timedelta(days=local.weekday())
    else:
        local = local.replace(day=1, month=(local.month - 1) // asked.amount * asked.amount + 1)
    return local.astimezone(UTC)


def _together(start: datetime, bars: list[Bar]) -> Bar:
    volume = sum(bar.volume for bar in bars)
    return Bar(
        start,
        bars[0].open,
        max(bar.high for bar in bars),
        min(bar.low for bar in bars),
        bars[-1].close,
        volume,
        sum(bar.trades for bar in bars),
        sum(bar.vwap * bar.volume for bar in bars) // volume,
    )
