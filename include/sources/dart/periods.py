"""The periods of reports as DART counts them: a business year and one of four codes, which are not in order of time.

Promises: a period has the same name and the same day wherever it is met; the day is the one on which it ends for a
company whose year ends in December, also where a company's own year ends otherwise. Never: a day is read from an
answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

# Code → month and day on which the period ends. DART has these four and no other.
ENDS = {"11013": (3, 31), "11012": (6, 30), "11014": (9, 30), "11011": (12, 31)}
# DART has data of business years from 2015 on, and those of 2015 for some companies only.
FIRST_YEAR = 2016

_NAME = re.compile(r"(?P<year>[0-9]{4})\.(?P<code>1101[1-4])")


@dataclass(frozen=True)
class Period:
    """One period of reports: the business year, and first quarter, half year, third quarter or whole year by code."""

    year: int
    code: str

    @property
    def name(self) -> str:
        """How it is named in keys: `2026.11013`."""
        return f"{self.year:04}.{self.code}"

    @property
    def end(self) -> date:
        """The day on which it ends, by the calendar year."""
        return date(self.year, *ENDS[self.code])


def read(text: str) -> Period | None:
    """Read a period's name; None where it is none."""
    found = _NAME.fullmatch(text)
    return Period(int(found["year"]), found["code"]) if found and int(found["year"]) > 0 else None


def between(start: date, end: date) -> Iterator[Period]:
    """Return the periods that end between two days, both inclusive, the newest first."""
    for year in range(end.year, start.year - 1, -1):
        for code in reversed(ENDS):
            period = Period(year, code)
            if start <= period.end <= end:
                yield period


def all_until(today: date) -> tuple[date, date]:
    """Return the ends of the first and of the last period that is over on a day."""
    return Period(FIRST_YEAR, "11013").end, next(between(date(FIRST_YEAR, 1, 1), today)).end
