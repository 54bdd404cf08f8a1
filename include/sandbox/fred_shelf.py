"""What FRED shows of its series at an instant: values with their real-time periods, descriptions, vintages, updates.

Promises: pure questions to the generated series and to what the switches changed; a vintage's day is the day in
St. Louis on which it really appeared. Never: anything that is not published by the instant of the call.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from random import Random
from typing import TypeVar

from include.sandbox.fred_series import FREQUENCY_OF, ST_LOUIS, WORDS, Change, changes, profile

FOREVER = date(9999, 12, 31)
FIRST_DAY = date(1776, 7, 4)
ONE_DAY = timedelta(days=1)
GONE = ""
"""The text of an observation that is published no more."""

T = TypeVar("T")

Row = tuple[date, date, date, str]
"""Real-time start and end, observation, text."""


@dataclass(frozen=True)
class Plan:
    """What the switches said, by series.

    `moved` are later instants of the releases of a day (None: never), `revised` further changes, `described` changes of
    the description, `ended` the last observation and since when the series is discontinued.
    """

    unknown: frozenset[str] = frozenset()
    withheld: frozenset[str] = frozenset()
    without_vintages: frozenset[str] = frozenset()
    moved: Mapping[tuple[str, date], datetime | None] = field(default_factory=dict)
    revised: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    described: Mapping[str, tuple[tuple[datetime, Mapping[str, str]], ...]] = field(default_factory=dict)
    ended: Mapping[str, tuple[date, datetime]] = field(default_factory=dict)


@dataclass(frozen=True)
class Shelf:
    """The series of a seed with some years of history, and the plan of their publication."""

    seed: int
    years: int = 12
    plan: Plan = Plan()

    def exists(self, series: str) -> bool:
        """Say whether FRED has a series; it has every one that no switch took away."""
        return series not in self.plan.unknown

    def published(self, series: str, at: datetime) -> Sequence[Change]:
        """Return what had been published of a series by an instant, in order."""
        today, plan = at.astimezone(ST_LOUIS).date(), self.plan
        generated = changes(self.seed, series, self.years, date(today.year, 12, 31))
        is_moved = any(name == series for name, _ in plan.moved)
        if not (is_moved or series in plan.revised or series in plan.ended):
            return generated[: bisect_right(generated, at, key=lambda change: change[0])]
        found: list[Change] = []
        end = plan.ended.get(series)
        for instant, day, text in generated:
            moved = plan.moved.get((series, instant.date()), instant)
            if moved is not None and moved <= at and not (end and day > end[0]):
                found.append((moved, day, text))
        found += [change for change in plan.revised.get(series, ()) if change[0] <= at]
        return sorted(found, key=lambda change: change[0])

    def vintages(self, series: str, at: datetime) -> list[date]:
        """Return the days on which something new was published."""
        return sorted({_day(instant) for instant, _, _ in self.published(series, at)})

    def rows(self, series: str, at: datetime, start: date, end: date) -> list[Row]:
        """Return the values with their real-time periods, clipped to a window, in order of observation."""
        return [
            (max(since, start), min(until, end), day, text)
            for since, until, day, text in _spans(tuple(self.published(series, at)))
            if since <= end and until >= start
        ]

    def descriptions(self, series: str, at: datetime, start: date, end: date) -> list[dict[str, object]]:
        """Return the descriptions of a series that were in force within a window."""
        told = self.published(series, at)
        now: dict[str, str] = _description(self.seed, series, self.years)
        since = _day(told[0][0]) if told else FIRST_DAY
        versions: list[tuple[date, dict[str, str]]] = [(since, dict(now))]
        news = list(self.plan.described.get(series, ()))
        if series in self.plan.ended:
            news.append((self.plan.ended[series][1], {"title": f"{now['title']} (DISCONTINUED)"}))
        for instant, change in sorted(news, key=lambda each: each[0]):
            if instant <= at:
                now |= dict(change)
                versions.append((_day(instant), dict(now)))
        spans = _periods({day: number for number, (day, _) in enumerate(versions)})
        state = self._state(series, at, told)
        return [
            {
                "id": series,
                "realtime_start": max(first, start).isoformat(),
                "realtime_end": min(last, end).isoformat(),
                **_ordered(versions[number][1], state),
            }
            for first, last, number in spans
            if first <= end and last >= start
        ]

    def last_updated(self, series: str, at: datetime) -> datetime:
        """Return the instant of the newest change of a series."""
        told = [instant for instant, _, _ in self.published(series, at)]
        told += [instant for instant, _ in self.plan.described.get(series, ()) if instant <= at]
        told += [end[1] for name, end in self.plan.ended.items() if name == series and end[1] <= at]
        return max(told, default=datetime(1990, 1, 1, 12, tzinfo=ST_LOUIS))

    def updated(self, at: datetime, start: datetime, end: datetime) -> list[tuple[datetime, str]]:
        """Return the listed series that were updated in a span, the newest first."""
        found = [(self.last_updated(series, at), series) for series in FREQUENCY_OF if self.exists(series)]
        return sorted(((when, series) for when, series in found if start <= when <= end), reverse=True)

    def _state(self, series: str, at: datetime, told: Sequence[Change]) -> dict[str, object]:
        days = [day for _, day, _ in told] or [FIRST_DAY]
        when = self.last_updated(series, at).astimezone(ST_LOUIS)
        today = at.astimezone(ST_LOUIS).date()
        return {
            "observation_start": min(days).isoformat(),
            "observation_end": max(days).isoformat(),
            # The offset has two digits, as the upstream writes it.
            "last_updated": f"{when:%Y-%m-%d %H:%M:%S}{when:%z}"[:-2],
            "popularity": Random(f"{series}/{today}").randrange(100),
        }


_ORDER = (
    "title", "observation_start", "observation_end", "frequency", "frequency_short", "units", "units_short",
    "seasonal_adjustment", "seasonal_adjustment_short", "last_updated", "popularity", "notes",
)  # fmt: skip


@lru_cache(maxsize=256)
def _spans(published: tuple[Change, ...]) -> tuple[Row, ...]:
    """Turn changes into values with the whole spans of days on which each was the published one."""
    by_day: dict[date, dict[date, str]] = {}
    for instant, day, text in published:
        by_day.setdefault(day, {})[_day(instant)] = text
    return tuple(
        (since, until, day, text)
        for day in sorted(by_day)
        for since, until, text in _periods(by_day[day])
        if text != GONE
    )


def _ordered(version: Mapping[str, str], state: Mapping[str, object]) -> dict[str, object]:
    both = {**version, **state}
    return {name: both[name] for name in _ORDER if name in both}


def _day(instant: datetime) -> date:
    return instant.astimezone(ST_LOUIS).date()


def _periods(by_day: Mapping[date, T]) -> Iterator[tuple[date, date, T]]:
    """Turn "from this day on" into spans of days, both inclusive; what stays the same is one span."""
    starts: list[tuple[date, T]] = []
    for day in sorted(by_day):
        if not starts or starts[-1][1] != by_day[day]:
            starts.append((day, by_day[day]))
    for (day, what), following in zip(starts, [*starts[1:], None], strict=True):
        yield day, following[0] - ONE_DAY if following else FOREVER, what


def _description(seed: int, series: str, years: int) -> dict[str, str]:
    like = profile(seed, series, years)
    chance = Random(f"{seed}/{series}/description")
    adjusted = chance.choice(("SA", "NSA", "SAAR"))
    units = chance.choice(("Percent", "Billions of Dollars", "Index 2017=100", "Thousands of Persons"))
    found = {
        "title": f"Generated Series {series}",
        "frequency": WORDS[like.frequency],
        "frequency_short": like.frequency,
        "units": units,
        "units_short": {"Percent": "%", "Billions of Dollars": "Bil. of $"}.get(units, units),
        "seasonal_adjustment": {
            "SA": "Seasonally Adjusted",
            "NSA": "Not Seasonally Adjusted",
            "SAAR": "Seasonally Adjusted Annual Rate",
        }[adjusted],
        "seasonal_adjustment_short": adjusted,
    }
    if chance.random() < 0.8:
        found["notes"] = f"Made up for a sandbox.\r\nAn address in it: https://example.org/{series}."
    return found
