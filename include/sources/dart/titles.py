"""What the title of a filing says: whether it changes an earlier one, what it is called without that, and its period.

Promises: pure reading of the text; the title itself is kept as given beside it. Never: a date is guessed that the
title does not have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Marks of a new filing that takes the place of an earlier one. The others that stand in square brackets say what
# happened to this very filing: an order to correct it, or a request.
TAKING_OVER = frozenset({"기재정정", "첨부정정", "첨부추가", "변경등록", "연장결정", "발행조건확정", "정정"})

_MARK = re.compile(r"\s*\[([^\[\]]{1,20})\]")
_PERIOD = re.compile(r"\((?P<year>[0-9]{4})\.(?P<month>0[1-9]|1[0-2])\)\s*$")


@dataclass(frozen=True, slots=True)
class Title:
    """A title taken apart: its marks in order, its name without marks and period, its period as YYYY.MM."""

    marks: tuple[str, ...]
    name: str
    period: str | None

    @property
    def is_correction(self) -> bool:
        """Whether the filing takes the place of an earlier one."""
        return any(mark in TAKING_OVER for mark in self.marks)


def read(text: str) -> Title:
    """Take a title apart."""
    marks, rest = [], text
    while (found := _MARK.match(rest)) is not None:
        marks.append(found[1].strip())
        rest = rest[found.end() :]
    period = _PERIOD.search(rest)
    if period is not None:
        rest = rest[: period.start()]
    return Title(tuple(marks), " ".join(rest.split()), f"{period['year']}.{period['month']}" if period else None)
