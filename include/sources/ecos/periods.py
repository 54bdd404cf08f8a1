"""Periods as ECOS writes them, one form for each cycle, and the stretches of them that are asked for at once.

Promises: a daily series is read by the year, any other as a whole, which is a page or two; so a poll, a backfill and
a replay ask for the same units, and a revision of any age is seen. Never: a period of one cycle is read as one of
another.
"""

from __future__ import annotations

import re
from datetime import date

WHOLE = "all"
# The first year that anybody may ask for; ECOS says itself when a series begins.
FIRST_YEAR = 1900
_FORMS = {
    "A": re.compile(r"(?P<year>[0-9]{4})"),
    "S": re.compile(r"(?P<year>[0-9]{4})S(?P<half>[12])"),
    "Q": re.compile(r"(?P<year>[0-9]{4})Q(?P<quarter>[1-4])"),
    "M": re.compile(r"(?P<year>[0-9]{4})(?P<month>0[1-9]|1[0-2])"),
    "SM": re.compile(r"(?P<year>[0-9]{4})(?P<month>0[1-9]|1[0-2])S(?P<part>[12])"),
    "D": re.compile(r"(?P<year>[0-9]{4})(?P<month>0[1-9]|1[0-2])(?P<day>[0-3][0-9])"),
}
_FIRST = {"A": "{0}", "S": "{0}S1", "Q": "{0}Q1", "M": "{0}01", "SM": "{0}01S1", "D": "{0}0101"}
_LAST = {"A": "{0}", "S": "{0}S2", "Q": "{0}Q4", "M": "{0}12", "SM": "{0}12S2", "D": "{0}1231"}


def start_of(cycle: str, text: str) -> date:
    """Return the first day of a period; of the second half of a month the 16th.

    Raises:
        ValueError: the text is no period of that cycle.
    """
    found = _FORMS[cycle].fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no period of the cycle {cycle}")
    parts = {name: int(value) for name, value in found.groupdict().items()}
    month = parts.get("month", 1)
    if "half" in parts:
        month = 6 * parts["half"] - 5
    if "quarter" in parts:
        month = 3 * parts["quarter"] - 2
    day = parts.get("day", 16 if parts.get("part") == 2 else 1)
    return date(parts["year"], month, day)


def first_of(cycle: str, year: int) -> str:
    """The first period of a year, as ECOS writes it."""
    return _FIRST[cycle].format(f"{year:04d}")


def last_of(cycle: str, year: int) -> str:
    """The last period of a year, as ECOS writes it."""
    return _LAST[cycle].format(f"{year:04d}")


def stretches(cycle: str, years: range) -> list[str]:
    """Return the names of the stretches that some years are in, the newest first."""
    return [str(year) for year in reversed(years)] if cycle == "D" else [WHOLE]
