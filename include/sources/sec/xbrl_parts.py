"""The parts of an XBRL instance that facts refer to: contexts, units and footnotes, element by element.

Promises: what is malformed is told and leaves the others alone. Never: no bytes are read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

from include.contract import Rejected

INSTANCE = "http://www.xbrl.org/2003/instance"
LINK = "http://www.xbrl.org/2003/linkbase"
_DIMENSIONS = "http://xbrl.org/2006/xbrldi"
_XLINK = "http://www.w3.org/1999/xlink"
_LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"
_NIL = "http://www.w3.org/2001/XMLSchema-instance nil"

_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d)(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?")
# Measures of these need no prefix: everybody means the same by USD, shares and pure.
_PLAIN = (INSTANCE, "http://www.xbrl.org/2003/iso4217", "http://www.xbrl.org/2009/utr")


class Context(NamedTuple):
    """Whom, when and of what facts are told.

    `kind` is `instant`, `duration` or `forever`; an instant has no `start`, and `forever` no `end` either. `dimensions`
    has the member of each axis, for a typed one an object with its element and value; None where there is none.
    """

    scheme: str
    entity: str
    kind: str
    start: date | None
    end: date | None
    dimensions: Mapping[str, Any] | None


class Footnote(NamedTuple):
    """One footnote of one fact; `fact_position` is 0 where it belongs to no fact of the instance."""

    number: int
    fact_position: int
    arcrole: str | None
    role: str | None
    language: str | None
    text: str


class ContextPart:
    """Gathers one context."""

    def __init__(self, name: str, contexts: dict[str, Context], rejected: list[Rejected]) -> None:
        self._name, self._contexts, self._rejected = name, contexts, rejected
        self._scheme, self._values = "", dict[str, str]()
        self._dimensions: dict[str, Any] = {}
        self._axis, self._typed = "", False
        self._text: list[str] = []

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._text.clear()
        namespace, _, local = name.rpartition(" ")
        if namespace == _DIMENSIONS:
            self._axis, self._typed = attributes.get("dimension", "").strip(), local == "typedMember"
        elif self._typed:
            self._dimensions.setdefault(self._axis, {"element": local, "value": None if _NIL in attributes else ""})
        elif local == "identifier":
            self._scheme = attributes.get("scheme", "")
        elif local == "forever":
            self._values[local] = ""

    def text(self, text: str) -> None:
        """Text between two tags."""
        self._text.append(text)

    def end(self, name: str) -> None:
        """An element ends."""
        namespace, _, local = name.rpartition(" ")
        said = "".join(self._text).strip()
        self._text.clear()
        if namespace == _DIMENSIONS:
            if not self._typed:
                self._dimensions[self._axis] = said
            self._typed = False
        elif self._typed:
            member = self._dimensions[self._axis]
            if said and member["value"] is not None:
                member["value"] += said
        elif namespace == INSTANCE and local in ("identifier", "startDate", "endDate", "instant"):
            self._values[local] = said

    def over(self) -> None:
        """The context is whole: keep it, or tell what is wrong with it."""
        values = self._values
        kind = "instant" if "instant" in values else "forever" if "forever" in values else "duration"
        start = _day(values.get("startDate", ""), is_end=False)
        end = _day(values.get("instant") or values.get("endDate", ""), is_end=True)
        if kind != "forever" and (end is None or (kind == "duration" and start is None)):
            given = ", ".join(f"{key} {value!r}" for key, value in values.items())
            self._rejected.append(Rejected(f"context {self._name}", "its period cannot be read", given[:2000]))
            return
        if kind == "instant":
            start = None
        # A context that comes twice is the same or cannot be told apart: the first one holds.
        self._contexts.setdefault(
            self._name,
            Context(self._scheme, values.get("identifier", ""), kind, start, end, self._dimensions or None),
        )


def _day(text: str, *, is_end: bool) -> date | None:
    """Return the day that a period begins or ends with.

    A day ends at its end; midnight as an end is that of the day before.
    """
    found = _DAY.fullmatch(text)
    if not found:
        return None
    try:
        day = date.fromisoformat(found[1])
        return day - timedelta(days=1) if is_end and found[2] == "00:00:00" else day
    except (ValueError, OverflowError):
        return None


class UnitPart:
    """Gathers one unit: measures multiplied, over those below the line."""

    def __init__(self, name: str, units: dict[str, str], namespaces: Mapping[str, str]) -> None:
        self._name, self._units, self._namespaces = name, units, namespaces
        self._above: list[str] = []
        self._below: list[str] = []
        self._is_below = False
        self._text: list[str] = []

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._text.clear()
        if name == f"{INSTANCE} unitDenominator":
            self._is_below = True

    def text(self, text: str) -> None:
        """Text between two tags."""
        self._text.append(text)

    def end(self, name: str) -> None:
        """An element ends."""
        if name == f"{INSTANCE} unitDenominator":
            self._is_below = False
        elif name == f"{INSTANCE} measure":
            measure = "".join(self._text).strip()
            prefix, _, local = measure.rpartition(":")
            if prefix and self._namespaces.get(prefix) in _PLAIN:
                measure = local
            (self._below if self._is_below else self._above).append(measure)
        self._text.clear()

    def over(self) -> None:
        """The unit is whole; one without any measure is kept as what it is called."""
        above = "*".join(self._above) or self._name
        self._units.setdefault(self._name, f"{above}/{'*'.join(self._below)}" if self._below else above)


@dataclass
class _Note:
    number: int
    role: str | None
    language: str | None
    text: list[str]


class Footnotes:
    """Gathers footnotes, what they stand for, and the arcs between both."""

    def __init__(self) -> None:
        self._notes: dict[str, list[_Note]] = {}
        self._places: dict[str, list[str]] = {}
        self._arcs: list[tuple[str, str, str | None]] = []
        self._count = 0
        self._open: _Note | None = None
        self._link = 0

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if self._open is not None:
            # Markup within a footnote: its text stands apart.
            self._open.text.append(" ")
        get = {key.removeprefix(f"{_XLINK} "): value for key, value in attributes.items()}.get
        label = f"{self._link} {get('label', '')}"
        if name == f"{LINK} loc":
            self._places.setdefault(label, []).append(get("href", "").rpartition("#")[2])
        elif name == f"{LINK} footnote":
            self._count += 1
            self._open = _Note(self._count, get("role"), attributes.get(_LANGUAGE), [])
            self._notes.setdefault(label, []).append(self._open)
        elif name == f"{LINK} footnoteArc":
            self._arcs.append((f"{self._link} {get('from', '')}", f"{self._link} {get('to', '')}", get("arcrole")))

    def text(self, text: str) -> None:
        """Text between two tags."""
        if self._open is not None:
            self._open.text.append(text)

    def end(self, name: str) -> None:
        """An element ends."""
        if name == f"{LINK} footnote":
            self._open = None

    def over(self) -> None:
        """Labels hold within one link only."""
        self._link += 1

    def found(self, positions: Mapping[str, int]) -> Iterator[Footnote]:
        """Return each footnote once for each fact that it stands for, once with no fact where there is none."""
        given = set[tuple[int, int]]()
        for source, target, arcrole in self._arcs:
            for note in self._notes.get(target, ()):
                for place in self._places.get(source, ()):
                    position = positions.get(place, 0)
                    if (note.number, position) not in given:
                        given.add((note.number, position))
                        yield _footnote(note, position, arcrole)
        told = {number for number, _ in given}
        for notes in self._notes.values():
            for note in notes:
                if note.number not in told:
                    yield _footnote(note, 0, None)


def _footnote(note: _Note, position: int, arcrole: str | None) -> Footnote:
    words = "".join(note.text).strip()
    return Footnote(note.number, position, arcrole, note.role, note.language, words)
