"""Generated statistics of the Bank of Korea: which items there are, and which value each period has at an instant.

Promises: a value is decided by seed, series and period; what is published follows the instant that is asked about, and
nothing but a switch changes what was published. Never: a clock is read here, and no value is a binary float.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from random import Random
from zoneinfo import ZoneInfo

from include.calendars import calendar

SEOUL = ZoneInfo("Asia/Seoul")

# Statistics with their cycles, and the items of each level: those that are widely used, and a few that are not.
LISTED: Mapping[str, tuple[str, str]] = {
    "200Y102": ("Q", "10111 10112"),
    "200Y108": ("Q", "10601 10602"),
    "200Y109": ("Q A", "10601 10602"),
    "200Y110": ("Q A", "10601 10602"),
    "902Y015": ("Q A", "KOR USA JPN"),
    "901Y033": ("M", "A00 AB00 / 1 2"),
    "901Y067": ("M", "I16A I16B I16C"),
    "901Y118": ("M A", "T002 T004"),
    "511Y002": ("M", "FMA FME / 99988 10000"),
    "513Y001": ("M", "E1000 E2000"),
    "901Y009": ("M Q A", "0 A A01 B"),
    "901Y010": ("M A", "DB QB"),
    "404Y014": ("M", "*AA 1AA 2AA"),
    "401Y015": ("M", "*AA 1AA / W D C"),
    "901Y027": ("M Q A", "I61BC I61E / I28A I28B"),
    "722Y001": ("D M A", "0101000 0102000"),
    "817Y002": (
        "D",
        "010502000 010190000 010195000 010200000 010200001 010210000 010220000 010230000 010300000 010320000",
    ),
    "151Y005": ("M", "1110000 11100A0 11100B0"),
    "802Y001": ("D", "0001000 0089000"),
    "901Y062": ("M", "P63A P63AC"),
    "121Y006": ("M", "BECBLA0302 BECBLA03"),
    "161Y004": ("M A", "BBKA00"),
    "161Y008": ("M A", "BBGA00 BBGA01"),
    "301Y013": ("M Q A", "000000 100000"),
    "731Y001": ("D M", "0000001 0000002 0000003 0000053"),
    "104Y900": ("S SM", "10"),
}
# Days from the end of a period to its publication; daily values come in the evening.
LAG = {"A": 40, "S": 35, "Q": 26, "M": 14, "SM": 5, "D": 0}
PUBLISHED = time(17, 30)

Codes = tuple[str, ...]
Key = tuple[str, str, Codes]


@dataclass(frozen=True)
class Plan:
    """What the switches said of series: other values or units from an instant on, and those that are gone."""

    revised: Mapping[Key, tuple[tuple[datetime, str, str], ...]] = field(default_factory=dict)
    units: Mapping[Key, tuple[tuple[datetime, str], ...]] = field(default_factory=dict)
    retired: Mapping[Key, datetime] = field(default_factory=dict)


@dataclass(frozen=True)
class Shelf:
    """What is published: pure questions about any instant."""

    seed: int
    years: int
    plan: Plan = Plan()

    def levels(self, statistic: str) -> list[list[str]]:
        """The items of each level of a statistic."""
        return [level.split() for level in LISTED[statistic][1].split("/")]

    def cycles(self, statistic: str) -> list[str]:
        """The cycles of a statistic."""
        return LISTED[statistic][0].split()

    def has(self, key: Key, at: datetime) -> bool:
        """Whether there is such a series."""
        statistic, cycle, codes = key
        if statistic not in LISTED or cycle not in self.cycles(statistic):
            return False
        levels = self.levels(statistic)
        if len(codes) != len(levels) or any(code not in level for code, level in zip(codes, levels, strict=False)):
            return False
        return key not in self.plan.retired or at < self.plan.retired[key]

    def unit(self, key: Key, at: datetime) -> str:
        """The unit of a series at an instant."""
        units = [unit for since, unit in self.plan.units.get(key, ()) if since <= at]
        return units[-1] if units else {"D": "연%", "M": "2020=100", "Q": "십억원"}.get(key[1], "원")

    def values(self, key: Key, at: datetime) -> list[tuple[str, str]]:
        """Every published period of a series with its value, the oldest first."""
        if not self.has(key, at):
            return []
        own = {
            text: value
            for text, value, published in series(self.seed, key, self.first_year, at.astimezone(SEOUL).year)
            if published <= at
        }
        for since, period, value in self.plan.revised.get(key, ()):
            if since <= at and period in own:
                own[period] = value
        return list(own.items())

    @property
    def first_year(self) -> int:
        """The year in which all series begin."""
        return 2026 - self.years


@lru_cache(maxsize=1024)
def series(seed: int, key: Key, first: int, last: int) -> tuple[tuple[str, str, datetime], ...]:
    """Periods of a series with value and instant of publication."""
    return tuple(_made(seed, key, first, last))


def _made(seed: int, key: Key, first: int, last: int) -> Iterator[tuple[str, str, datetime]]:
    name = "/".join((key[0], key[1], *key[2]))
    base = Random(f"{seed}/{name}").randrange(1_000, 150_000)
    for text, end in periods(key[1], first, last):
        chance = Random(f"{seed}/{name}/{text}")
        day = end + timedelta(days=LAG[key[1]])
        published = datetime.combine(day, PUBLISHED, SEOUL) + timedelta(minutes=chance.randrange(0, 60))
        thousandths = base + chance.randrange(-base // 10, base // 10)
        # Trailing zeros are not always written.
        value = str(Decimal(thousandths) / 1000) if chance.random() < 0.5 else f"{Decimal(thousandths) / 1000:.3f}"
        yield text, "" if chance.random() < 0.01 else value, published


def periods(cycle: str, first: int, last: int) -> Iterator[tuple[str, date]]:
    """The periods of some years as ECOS writes them, with their last days; of days those on which markets are open."""
    if cycle == "D":
        for day in calendar("XKRX").sessions(date(first, 1, 1), date(last, 12, 31)):
            yield f"{day:%Y%m%d}", day
        return
    for year in range(first, last + 1):
        if cycle == "A":
            yield f"{year}", date(year, 12, 31)
        elif cycle in ("S", "Q"):
            parts = 2 if cycle == "S" else 4
            for part in range(1, parts + 1):
                yield f"{year}{cycle}{part}", _last_day(year, part * 12 // parts)
        else:
            for month in range(1, 13):
                if cycle == "M":
                    yield f"{year}{month:02d}", _last_day(year, month)
                else:
                    yield f"{year}{month:02d}S1", date(year, month, 15)
                    yield f"{year}{month:02d}S2", _last_day(year, month)


def _last_day(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
