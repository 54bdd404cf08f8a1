"""A generated US stock market as Alpaca sees it: companies, names, splits, and bars by day and by minute.

Promises: everything is decided by seed, size and the plan of events; a price is exact in ten-thousandths, and what is
raw, adjusted, renamed or late follows from the same path. Never: a clock is read here, and no price is a binary float
when it is written.
"""

from __future__ import annotations

import math
import random
import string
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

from include.calendars import calendar

NEW_YORK = ZoneInfo("America/New_York")
FIRST = date(2016, 1, 4)
UNIT = 10_000

# Always there, largest first: names, a class share, and words that careless readers take for something else.
KNOWN = (
    "AAPL", "MSFT", "NVDA", "AMZN", "GOOGL", "META", "BRK.B", "TSLA", "JPM", "V", "XOM", "UNH", "PG", "SPY", "QQQ",
    "GE", "F", "T", "TRUE", "KO", "BAC", "DIS", "INTC", "WMT", "IBM", "C", "GM", "PFE", "AMD", "NFLX",
)  # fmt: skip
EXCHANGES = ("NASDAQ", "NYSE", "NYSE", "NASDAQ", "ARCA", "AMEX", "BATS")


@dataclass(frozen=True)
class Company:
    """One company: its number, the names that it traded under with their first days, its first and last day."""

    number: str
    names: tuple[tuple[date, str], ...]
    weight: float
    exchange: str
    first: date = FIRST
    last: date = date.max

    def name_on(self, day: date) -> str | None:
        """The symbol on a day, None while it is not listed."""
        if not self.first <= day <= self.last:
            return None
        return next((name for since, name in reversed(self.names) if since <= day), self.names[0][1])


@dataclass(frozen=True)
class Bar:
    """One bar in ten-thousandths, volumes whole; `text` is how Alpaca writes it."""

    at: datetime
    open: int
    high: int
    low: int
    close: int
    volume: int
    trades: int
    vwap: int

    def text(self) -> str:
        """The bar as JSON, decimals without needless zeros."""
        return (
            f'{{"t":"{self.at:%Y-%m-%dT%H:%M:%SZ}","o":{_written(self.open)},"h":{_written(self.high)},'
            f'"l":{_written(self.low)},"c":{_written(self.close)},"v":{self.volume},"n":{self.trades},'
            f'"vw":{_written(self.vwap)}}}'
        )


def _written(value: int) -> str:
    whole, rest = divmod(value, UNIT)
    return f"{whole}.{rest:04d}".rstrip("0").rstrip(".") if rest else str(whole)


@dataclass(frozen=True)
class Events:
    """What happens beside the ordinary: by switches, from given instants on.

    `splits` are (symbol on that day, day) with new and old shares; `late` are bars that are missing, or other, until an
    instant; `halts` are minutes without a trade; `silent` symbols never trade.
    """

    splits: Mapping[tuple[str, date], tuple[int, int]] = field(default_factory=dict)
    renames: tuple[tuple[str, str, date], ...] = ()
    listings: tuple[tuple[str, date], ...] = ()
    delistings: Mapping[str, date] = field(default_factory=dict)
    late: Mapping[tuple[str, date], tuple[datetime, str]] = field(default_factory=dict)
    halts: Mapping[tuple[str, date], tuple[time, time]] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Stocks:
    """The market of one seed and size with its events: pure questions about any day and instant."""

    seed: int
    companies: int
    events: Events = Events()

    def listed(self) -> tuple[Company, ...]:
        """All companies that ever were, in the order of their first names."""
        found = {company.names[0][1]: company for company in _companies(self.seed, self.companies)}
        events = self.events
        for old, new, day in events.renames:
            for key, company in list(found.items()):
                if company.name_on(day) == old:
                    found[key] = replace(company, names=(*company.names, (day, new)))
        for symbol, day in events.listings:
            found[f"{symbol} {day}"] = Company(
                _number(self.seed, f"{symbol}/{day}"), ((day, symbol),), 2e5, "NASDAQ", first=day
            )
        return tuple(
            replace(company, last=events.delistings[name])
            if (name := company.names[-1][1]) in events.delistings
            else company
            for company in found.values()
        )

    def splits_of(self, company: Company) -> list[tuple[date, float]]:
        """Days and ratios (new shares for one old) of a company's splits."""
        return [
            (day, new / old)
            for (symbol, day), (new, old) in sorted(self.events.splits.items(), key=lambda item: item[0][1])
            if company.name_on(day) == symbol
        ]

    def day_bar(self, company: Company, day: date, adjustment: str, at: datetime) -> Bar | None:
        """The bar of a day as it is given at an instant, None where there is none."""
        name = company.name_on(day)
        if name is None or name in self.events.silent or not _is_open(day, at):
            return None
        late = self.events.late.get((name, day))
        is_late = late is not None and at < late[0]
        if late is not None and is_late and late[1] == "missing":
            return None
        split = self._ratio(company, day, adjustment, at)
        bar = _day(self.seed, company.number, company.weight, day, 0 if late is None or is_late else 1)
        return _scaled(bar, split)

    def _ratio(self, company: Company, day: date, adjustment: str, at: datetime) -> float:
        """What the path, which is free of splits, is multiplied by to be the price of a day."""
        today = at.astimezone(NEW_YORK).date()
        ratio = 1.0
        for when, each in self.splits_of(company):
            if when <= day or (adjustment != "raw" and when <= today):
                ratio /= each
        return ratio

    def minute_bars(self, company: Company, day: date, adjustment: str, at: datetime) -> Iterator[Bar]:
        """The minutes of a session that had trades, up to the one that is over at an instant."""
        name = company.name_on(day)
        if name is None or name in self.events.silent or day > at.astimezone(NEW_YORK).date():
            return
        if not calendar("XNYS").is_session(day):
            return
        late = self.events.late.get((name, day))
        is_late = late is not None and at < late[0]
        halt = self.events.halts.get((name, day))
        ratio = self._ratio(company, day, adjustment, at)
        midnight = datetime.combine(day, time(), NEW_YORK).astimezone(UTC)
        edition = 0 if late is None or is_late else 1
        for minute, bar in _minutes(self.seed, company.number, company.weight, day, edition):
            start = midnight + timedelta(minutes=minute)
            if start + timedelta(minutes=1) > at:
                return
            clock = time(minute // 60, minute % 60)
            if (halt and halt[0] <= clock < halt[1]) or (
                is_late and late is not None and late[1] == "missing" and minute % 7 == 0
            ):
                continue
            yield _scaled(replace(bar, at=start), ratio)


def _is_open(day: date, at: datetime) -> bool:
    """Whether a day has a bar at an instant: its session has begun."""
    local = at.astimezone(NEW_YORK)
    return calendar("XNYS").is_session(day) and (day < local.date() or (day == local.date() and local.hour >= 10))


def _scaled(bar: Bar, ratio: float) -> Bar:
    if ratio == 1.0:
        return bar
    prices = (round(price * ratio) for price in (bar.open, bar.high, bar.low, bar.close, bar.vwap))
    first, high, low, close, vwap = prices
    return replace(bar, open=first, high=high, low=low, close=close, vwap=vwap, volume=round(bar.volume / ratio))


@cache
def early_closes(year: int) -> frozenset[date]:
    """Days of a year on which the market closes at 13:00."""
    import exchange_calendars

    known = exchange_calendars.get_calendar("XNYS", start=f"{year}-01-01", end=f"{year}-12-31")
    return frozenset(stamp.date() for stamp in known.early_closes)


def _number(seed: int, word: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/{word}"))


@lru_cache(maxsize=8)
def _companies(seed: int, count: int) -> tuple[Company, ...]:
    dice = random.Random(f"{seed}/alpaca/{count}")
    names = dict.fromkeys(KNOWN[: max(1, count)])
    while len(names) < count:
        name = "".join(dice.choices(string.ascii_uppercase, k=dice.choice((3, 4, 4, 4))))
        kind = dice.random()
        names.setdefault(name + (dice.choice((".A", ".B", ".WS", ".U")) if kind > 0.95 else ""))
    return tuple(
        Company(
            _number(seed, name),
            ((FIRST, name),),
            10 ** (7.0 - 4.0 * place / max(count, 40)) * dice.uniform(0.5, 2.0),
            dice.choice(EXCHANGES),
        )
        for place, name in enumerate(names)
    )


@lru_cache(maxsize=200_000)
def _day(seed: int, number: str, weight: float, day: date, edition: int) -> Bar:
    dice = random.Random(f"{seed}/{number}/{day}")
    base = 10 + int(number[:2], 16)
    phase = int(number[2:6], 16) / 10_000
    days = (day - FIRST).days
    level = base * math.exp(0.25 * math.sin(days / 190 + phase) + 0.08 * math.sin(days / 17 + phase))
    first = round(level * UNIT * dice.uniform(0.985, 1.015) / 100) * 100
    last = round(level * UNIT * dice.uniform(0.985, 1.015) / 100) * 100 + 100 * edition
    high = max(first, last) + 100 * dice.randrange(0, 150)
    low = max(min(first, last) - 100 * dice.randrange(0, 150), 100)
    volume = 1 + int(weight * dice.lognormvariate(0.0, 0.5)) + 137 * edition
    vwap = (first + last + high + low) // 4
    midnight = datetime.combine(day, time(), NEW_YORK).astimezone(UTC)
    return Bar(midnight, first, max(high, vwap), low, last, volume, 1 + volume // 120, vwap)


@lru_cache(maxsize=2_000)
def _minutes(seed: int, number: str, weight: float, day: date, edition: int) -> tuple[tuple[int, Bar], ...]:
    """Minutes from midnight in New York with their bars; on short days the session ends three hours earlier."""
    whole = _day(seed, number, weight, day, edition)
    dice = random.Random(f"{seed}/{number}/{day}/minutes")
    shortened = 180 if day in early_closes(day.year) else 0
    chance = min(0.995, 0.15 + weight / 3e6)
    found, price = [], whole.open
    for minute in range(4 * 60, 20 * 60 - shortened):
        is_regular = 9 * 60 + 30 <= minute < 16 * 60 - shortened
        if dice.random() > (chance if is_regular else chance * 0.15):
            continue
        first = price
        price = max(price + 100 * dice.randrange(-12, 13), 100)
        high, low = max(first, price) + 100 * dice.randrange(0, 5), min(first, price)
        volume = 1 + int(weight * dice.random() / 390) + edition
        found.append((minute, Bar(whole.at, first, high, low, price, volume, 1 + volume // 100, (first + price) // 2)))
    return tuple(found)
