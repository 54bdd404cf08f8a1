"""A generated Korean stock market: issues with their codes, market periods, halts and splits, and prices by session.

Promises: everything is decided by seed, size, calendar and events alone; a price is a whole number of won on the tick,
and a change is against the base price, which is the close before but for splits. Never: a clock is read here.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache

from include.calendars import Calendar, calendar

FIRST = date(2010, 1, 4)
KONEX_FIRST = date(2013, 7, 1)
MARKETS = ("KOSPI", "KOSDAQ", "KONEX")

# Always there: leading zeros, letters in the middle and at the end, a preferred share, a name with a blank behind it.
KNOWN = (
    ("005930", "가나전자", "KOSPI", 261_000, 5_846_278_608),
    ("000020", "다라약품", "KOSPI", 8_090, 27_931_470),
    ("28513K", "마바화학우", "KOSPI", 41_500, 120_000),
    ("0037T0", "사아바이오", "KOSDAQ", 12_340, 20_000_000),
    ("0015G0", "자차소프트 ", "KOSDAQ", 29_650, 13_198_223),
    ("247540", "카타소재", "KOSDAQ", 187_300, 97_801_344),
    ("112190", "파하산업", "KONEX", 2_588, 5_000_000),
    ("0099X0", "거너더러", "KONEX", 910, 3_100_000),
)
SECTIONS = ("우량기업부", "벤처기업부", "중견기업부", "기술성장기업부", "관리종목(소속부없음)")
_SYLLABLES = "가나다라마바사아자차카타파하거너더러머버서어저처고노도로모보소오조초"


@dataclass(frozen=True)
class Issue:
    """One issue: its code, its name, its first market, and what its price and shares were on the first day."""

    code: str
    name: str
    market: str
    price: int
    shares: int
    first: date = FIRST

    @property
    def isin(self) -> str:
        """A number in the form of an ISIN; nobody can make it from the code."""
        digit = int(hashlib.sha256(self.code.encode()).hexdigest(), 16) % 10
        return f"KR7{self.code}00{digit}"


@dataclass(frozen=True)
class Events:
    """What happens beside the ordinary: by switches, from given days on.

    `moves` are changes of market, `ends` last days, `splits` new shares for one old, `halts` first and last days
    without trade, `names` new names, `listings` issues that come later; `closed` and `opened` days on which the
    calendar is wrong.
    """

    moves: Mapping[str, tuple[tuple[date, str], ...]] = field(default_factory=dict)
    ends: Mapping[str, date] = field(default_factory=dict)
    splits: Mapping[str, tuple[tuple[date, int], ...]] = field(default_factory=dict)
    halts: Mapping[str, tuple[tuple[date, date], ...]] = field(default_factory=dict)
    names: Mapping[str, tuple[tuple[date, str], ...]] = field(default_factory=dict)
    listings: tuple[Issue, ...] = ()
    closed: frozenset[date] = frozenset()
    opened: frozenset[date] = frozenset()


@dataclass(frozen=True)
class Trade:
    """One issue's session as KRX gives it; prices of 0 where nothing was traded."""

    issue: Issue
    name: str
    close: int
    base: int
    open: int
    high: int
    low: int
    volume: int
    shares: int


@dataclass(frozen=True)
class Market:
    """The market of one seed and size with its events: pure questions about any day."""

    seed: int
    companies: int
    events: Events = Events()

    @property
    def days(self) -> Calendar:
        """The sessions that there really were."""
        exceptions = {**dict.fromkeys(self.events.closed, False), **dict.fromkeys(self.events.opened, True)}
        return calendar("XKRX", exceptions)

    def issues(self) -> Iterator[Issue]:
        """Every issue that ever was."""
        yield from _issues(self.seed, self.companies)
        yield from self.events.listings

    def market_of(self, issue: Issue, day: date) -> str | None:
        """The market on which an issue is listed on a day, None where it is on none."""
        if not issue.first <= day <= self.events.ends.get(issue.code, date.max):
            return None
        moved = [market for since, market in self.events.moves.get(issue.code, ()) if since <= day]
        market = moved[-1] if moved else issue.market
        return None if market == "KONEX" and day < KONEX_FIRST else market

    def name_of(self, issue: Issue, day: date) -> str:
        """The name on a day."""
        return next(
            (name for since, name in reversed(self.events.names.get(issue.code, ())) if since <= day), issue.name
        )

    def trades(self, market: str, day: date) -> list[Trade]:
        """All of a market's rows of a session."""
        before = self.days.session_offset(day, -1)
        return [self._trade(issue, day, before) for issue in self.issues() if self.market_of(issue, day) == market]

    def split(self, issue: Issue, day: date) -> int:
        """New shares for one of the first day, by a day."""
        factor = 1
        for since, ratio in self.events.splits.get(issue.code, ()):
            factor *= ratio if since <= day else 1
        return factor

    def _trade(self, issue: Issue, day: date, before: date) -> Trade:
        halted_since = self._halted_since(issue, day)
        shares = issue.shares * self.split(issue, day)
        name = self.name_of(issue, day)
        if halted_since is not None:
            last = self.close(issue, self.days.session_offset(halted_since, -1))
            return Trade(issue, name, last, last, 0, 0, 0, 0, shares)
        close, base = self.close(issue, day), self.base(issue, day, before)
        chance = noise(self.seed, issue.code, day, "range")
        volume = 100 + chance % 900_000
        if issue.market == "KONEX" and chance % 3 == 0:
            # Nobody traded: the close before stands, which cannot be told from a halt.
            return Trade(issue, name, base, base, 0, 0, 0, 0, shares)
        tick = _tick(close)
        opened = max(tick, base + (chance // 7 % 5 - 2) * tick)
        high = max(close, opened) + chance // 11 % 4 * tick
        low = max(tick, min(close, opened) - chance // 13 % 4 * tick)
        return Trade(issue, name, close, base, opened, high, low, volume, shares)

    def base(self, issue: Issue, day: date, before: date) -> int:
        """The price that a change is counted from: the close before, cut where the issue was split since."""
        since = self._halted_since(issue, before)
        last = before if since is None else self.days.session_offset(since, -1)
        ratio = self.split(issue, day) // self.split(issue, last)
        return max(1, self.close(issue, last) // ratio)

    def close(self, issue: Issue, day: date) -> int:
        """The close of a session on which the issue was traded."""
        if issue.market == "KONEX" and noise(self.seed, issue.code, day, "range") % 3 == 0 and day > FIRST:
            return self.close(issue, self.days.session_offset(day, -1))
        phase = noise(self.seed, issue.code, FIRST, "phase") % 360
        wave = math.sin(math.radians(phase + (day - FIRST).days * 360 / 290))
        jitter = noise(self.seed, issue.code, day, "close") % 1_201 - 600
        price = issue.price * (10_000 + round(2_500 * wave) + jitter) // 10_000 // self.split(issue, day)
        return max(1, price - price % _tick(price))

    def _halted_since(self, issue: Issue, day: date) -> date | None:
        return next((first for first, last in self.events.halts.get(issue.code, ()) if first <= day <= last), None)


def noise(seed: int, code: str, day: date, what: str) -> int:
    """A number that looks like chance and is always the same."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{code}/{day}/{what}".encode(), digest_size=6).digest())


def _tick(price: int) -> int:
    return next(tick for limit, tick in _TICKS if price < limit)


_TICKS = (
    (2_000, 1), (5_000, 5), (20_000, 10), (50_000, 50), (200_000, 100), (500_000, 500), (10**12, 1_000),
)  # fmt: skip


@lru_cache(maxsize=4)
def _issues(seed: int, companies: int) -> tuple[Issue, ...]:
    found = [Issue(*each) for each in KNOWN]
    codes = {issue.code for issue in found}
    rng = random.Random(f"{seed}/krx")
    while len(found) < max(companies, len(KNOWN)):
        number = len(found)
        code = f"{rng.randrange(1, 999_999):06d}"
        if number % 17 == 0:
            code = f"0{rng.randrange(1_000):03d}{rng.choice('ABCDEFGHJKLMNPQRSTVWXYZ')}0"
        if code in codes:
            continue
        codes.add(code)
        market = ("KOSPI", "KOSDAQ", "KOSDAQ", "KOSPI", "KOSDAQ", "KOSDAQ", "KONEX")[number % 7]
        name = "".join(rng.choice(_SYLLABLES) for _ in range(4))
        first = FIRST + timedelta(days=rng.randrange(0, 4_000)) if number % 5 == 0 else FIRST
        found.append(Issue(code, name, market, rng.randrange(500, 300_000), rng.randrange(10**6, 10**9), first))
    return tuple(found)
