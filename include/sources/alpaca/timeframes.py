"""Lengths of bars, the periods that are asked for at once, and the days that they are for.

Promises: one spelling for each length; pure arithmetic in the zone of New York. Never: no clock.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

NEW_YORK = ZoneInfo("America/New_York")

# Rows of one page over all symbols, and the most symbols that fit into an address without trouble.
PAGE_ROWS = 10_000
MOST_SYMBOLS = 400
# Bars of a symbol between 04:00 and 20:00 as they come in the mean, by minute; few symbols trade in every one.
_MINUTES_A_SESSION = 450
_SESSIONS_A_MONTH = 23
# A unit of short bars is several pages, so that little of the last one is wasted.
PAGES_OF_A_UNIT = 4

_FORM = re.compile(r"([1-9][0-9]?)(Min|T|Hour|H|Day|D|Week|W|Month|M)")
_NAMES = {"T": "Min", "H": "Hour", "D": "Day", "W": "Week", "M": "Month"}
_ALLOWED = {
    "Min": range(1, 60),
    "Hour": range(1, 24),
    "Day": range(1, 2),
    "Week": range(1, 2),
    "Month": (1, 2, 3, 4, 6, 12),
}


@dataclass(frozen=True)
class Timeframe:
    """A length of bars, as Alpaca allows it."""

    amount: int
    unit: str

    @property
    def name(self) -> str:
        """The length in its one spelling, e.g. `1Day`."""
        return f"{self.amount}{self.unit}"

    @property
    def is_daily(self) -> bool:
        """Whether bars are a day or longer, and so are asked for by the month."""
        return self.unit in ("Day", "Week", "Month")

    @property
    def group_size(self) -> int:
        """How many symbols are asked for together, so that pages are full."""
        if self.is_daily:
            return min(MOST_SYMBOLS, PAGE_ROWS // _SESSIONS_A_MONTH)
        minutes = self.amount * (60 if self.unit == "Hour" else 1)
        bars = max(_MINUTES_A_SESSION // minutes, 1)
        return max(1, min(MOST_SYMBOLS, PAGE_ROWS * PAGES_OF_A_UNIT // bars))

    def period(self, through: date) -> tuple[date, date]:
        """The first and last day of what is asked for at once: a calendar month, or one session."""
        if not self.is_daily:
            return through, through
        return through.replace(day=1), month_end(through)

    def period_name(self, through: date) -> str:
        """The period in a word, e.g. `2026-09` or `2026-09-15`."""
        return f"{through:%Y-%m}" if self.is_daily else through.isoformat()


def parse(text: str) -> Timeframe | None:
    """Read a length in any of Alpaca's spellings; None where it is none."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    amount, unit = int(found[1]), _NAMES.get(found[2], found[2])
    return Timeframe(amount, unit) if amount in _ALLOWED[unit] else None


def is_long(text: str) -> bool:
    """Say whether bars of this length are a day or longer."""
    found = parse(text)
    return found is not None and found.is_daily


def is_short(text: str) -> bool:
    """Say whether bars of this length are shorter than a day."""
    found = parse(text)
    return found is not None and not found.is_daily


def month_end(day: date) -> date:
    """The last day of a day's month."""
    return day.replace(day=monthrange(day.year, day.month)[1])


def midnight(day: date) -> datetime:
    """The beginning of a day in New York."""
    return datetime.combine(day, time(), NEW_YORK)


def bounds(first: date, last: date) -> tuple[datetime, datetime]:
    """The instants from the beginning of the first day to the end of the last, in UTC; the end is outside."""
    return midnight(first).astimezone(UTC), midnight(last + timedelta(days=1)).astimezone(UTC)


@lru_cache(maxsize=4_096)
def is_midnight(instant: datetime) -> bool:
    """Say whether a day begins in New York at an instant."""
    return instant.astimezone(NEW_YORK).time() == time()


@lru_cache(maxsize=4_096)
def day_of(instant: datetime) -> date:
    """The day in New York that an instant belongs to."""
    return instant.astimezone(NEW_YORK).date()
