"""Units: the stretches of real time that are asked for at once, and how they are named.

Promises: from 2026 on a unit is a year, so that a poll reads no more than the year so far; before that it is five
years, as nobody polls the past and 1,827 days can never hold the 2,000 vintages at which FRED refuses. Never: a unit
changes its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

FIRST_YEAR_BY_ITSELF = 2026
BLOCK = 5
# FRED refuses a request over more than 2,000 days with a vintage.
MOST_VINTAGES = 2_000

FOREVER = date(9999, 12, 31)
_NAME = re.compile(r"([A-Z0-9_]{1,50})/([0-9]{4})(?:-([0-9]{4}))?")


@dataclass(frozen=True)
class Stretch:
    """Whole years of real time: what was published from `first` to `last`, both inclusive."""

    first: date
    last: date

    @property
    def name(self) -> str:
        """The years, e.g. 2026 or 2021-2025."""
        first, last = self.first.year, self.last.year
        return f"{first}" if first == last else f"{first}-{last}"

    @property
    def eve(self) -> date:
        """The day before: what holds then is no news of this stretch. Asking from it on tells news from state."""
        return self.first - timedelta(days=1)

    def holds(self, day: date) -> bool:
        """Say whether a day belongs to the stretch."""
        return self.first <= day <= self.last


def of_year(year: int) -> Stretch:
    """Return the stretch that a year belongs to."""
    if year >= FIRST_YEAR_BY_ITSELF:
        return Stretch(date(year, 1, 1), date(year, 12, 31))
    last = FIRST_YEAR_BY_ITSELF - 1 - (FIRST_YEAR_BY_ITSELF - 1 - year) // BLOCK * BLOCK
    return Stretch(date(last - BLOCK + 1, 1, 1), date(last, 12, 31))


def named(name: str) -> tuple[str, Stretch] | None:
    """Return the series and stretch of a unit's name, None where it is not one."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    stretch = of_year(int(match[2]))
    return (match[1], stretch) if f"{match[1]}/{stretch.name}" == name else None


def years(start: date, end: date) -> Iterator[int]:
    """Return the years of a range, newest first."""
    yield from range(end.year, start.year - 1, -1)
