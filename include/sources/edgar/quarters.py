"""Quarters as the SEC names its statement data sets, and which of them are looked for when.

Promises: a quarter is named in one way (`2025Q4`), whoever asks; the newest one that can be there is the last that
ended. Never: whether a quarter is published is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

_NAME = re.compile(r"(20[0-9]{2})Q([1-4])")


@dataclass(frozen=True, order=True)
class Quarter:
    """A quarter of the calendar."""

    year: int
    number: int

    @property
    def name(self) -> str:
        """As it is named here: 2025Q4."""
        return f"{self.year}Q{self.number}"

    @property
    def last_day(self) -> date:
        """Its last day."""
        return date(self.year + self.number // 4, 3 * self.number % 12 + 1, 1) - timedelta(days=1)

    @property
    def before(self) -> Quarter:
        """The quarter before."""
        return Quarter(self.year, self.number - 1) if self.number > 1 else Quarter(self.year - 1, 4)


# The first that the SEC publishes; it holds headers alone.
FIRST = Quarter(2009, 1)


def named(text: str) -> Quarter | None:
    """The quarter of a name, None where it is none that the SEC may publish."""
    found = _NAME.fullmatch(text.strip().upper())
    quarter = Quarter(int(found[1]), int(found[2])) if found else None
    return quarter if quarter is not None and quarter >= FIRST else None


def of(day: date) -> Quarter:
    """The quarter that a day lies in."""
    return Quarter(day.year, (day.month + 2) // 3)


def ended(day: date) -> Iterator[Quarter]:
    """The quarters that are over on a day, the newest first."""
    quarter = of(day).before
    while quarter >= FIRST:
        yield quarter
        quarter = quarter.before


def between(first: date, last: date) -> Iterator[Quarter]:
    """The quarters that have a day in a range, the newest first."""
    quarter = of(last)
    while quarter >= FIRST and quarter.last_day >= first:
        yield quarter
        quarter = quarter.before
