"""The parts of an XBRL instance that facts refer to: contexts, units and footnotes, element by element.

Promises: what is malformed is told and leaves the others alone. Never: no bytes are read here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from include.contract import Rejected

INSTANCE = "http://www.xbrl.org/2003/instance"
LINK = "http://www.xbrl.org/2003/linkbase"
DIMENSIONS = "http://xbrl.org/2006/xbrldi"
_XLINK = "http://www.w3.org/1999/xlink"
_LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"
# Names as the XML parser gives them.
ROOT, CONTEXT, UNIT, FOOTNOTES = f"{INSTANCE} xbrl", f"{INSTANCE} context", f"{INSTANCE} unit", f"{LINK} footnoteLink"
_EXPLICIT, _TYPED = f"{DIMENSIONS} explicitMember", f"{DIMENSIONS} typedMember"
_IDENTIFIER, _FOREVER, _FOOTNOTE = f"{INSTANCE} identifier", f"{INSTANCE} forever", f"{LINK} footnote"
_MEASURE, _DENOMINATOR = f"{INSTANCE} measure", f"{INSTANCE} unitDenominator"
_VALUES = {f"{INSTANCE} {name}": name for name in ("identifier", "startDate", "endDate", "instant")}
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


class Part(ABC):
    """What gathers an element with elements in it: `begin` and `end` are called by the XML parser.

    `texts` is the text since the last element began or ended, and `leave` is called behind the part's own end.
    """

    texts: list[str]
    leave: Callable[[], None]

    def enter(self, texts: list[str], leave: Callable[[], None]) -> None:
        """The part's own element has begun."""
        self.texts, self.leave = texts, leave

    @abstractmethod
    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    @abstractmethod
    def end(self, name: str) -> None:
        """An element ends."""


class ContextPart(Part):
    """Gathers one context."""

    def __init__(self, name: str, contexts: dict[str, Context], rejected: list[Rejected]) -> None:
        self._name, self._contexts, self._rejected = name, contexts, rejected
        self._scheme, self._axis = "", ""
        self._values: dict[str, str] = {}
        self._dimensions: dict[str, Any] = {}
        self._typed: dict[str, Any] | None = None

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self.texts.clear()
        if name == _EXPLICIT:
            self._axis = attributes.get("dimension", "").strip()
        elif name == _IDENTIFIER:
            self._scheme = attributes.get("scheme", "")
        elif name == _FOREVER:
            self._values["forever"] = ""
        elif name == _TYPED:
            self._typed = self._dimensions[attributes.get("dimension", "").strip()] = {"element": "", "value": ""}
        elif self._typed is not None and not self._typed["element"]:
            self._typed["element"] = name.rpartition(" ")[2]
            self._typed["value"] = None if _NIL in attributes else ""

    def end(self, name: str) -> None:
        """An element ends."""
        if name in _VALUES:
            self._values[_VALUES[name]] = "".join(self.texts).strip()
        elif name == _EXPLICIT:
            self._dimensions[self._axis] = "".join(self.texts).strip()
        elif name == CONTEXT:
            self._keep()
            self.leave()
        elif name == _TYPED:
            self._typed = None
        elif self._typed is not None and self._typed["value"] is not None:
            self._typed["value"] += "".join(self.texts).strip()
        self.texts.clear()

    def _keep(self) -> None:
        made = context_of(self._name, self._scheme, self._values, self._dimensions)
        if isinstance(made, Rejected):
            self._rejected.append(made)
        else:
            # A context that comes twice is the same or cannot be told apart: the first one holds.
            self._contexts.setdefault(self._name, made)


def context_of(
    name: str, scheme: str, values: Mapping[str, str], dimensions: Mapping[str, Any] | None
) -> Context | Rejected:
    """Return a context from what stands in its elements, or what is wrong with it."""
    kind = "instant" if "instant" in values else "forever" if "forever" in values else "duration"
    start = _day(values.get("startDate", ""), is_end=False) if kind == "duration" else None
    end = _day(values.get("instant") or values.get("endDate", ""), is_end=True)
    if kind != "forever" and (end is None or (kind == "duration" and start is None)):
        given = ", ".join(f"{key} {value!r}" for key, value in values.items())
        return Rejected(f"context {name}", "its period cannot be read", given[:2000])
    return Context(scheme, values.get("identifier", ""), kind, start, end, dimensions or None)


@lru_cache(maxsize=4096)
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


class UnitPart(Part):
    """Gathers one unit: measures multiplied, over those below the line; one without any is what it is called."""

    def __init__(self, name: str, units: dict[str, str], namespaces: Mapping[str, str]) -> None:
        self._name, self._units, self._namespaces = name, units, namespaces
        self._above: list[str] = []
        self._below: list[str] = []
        self._is_below = False

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self.texts.clear()
        self._is_below = self._is_below or name == _DENOMINATOR

    def end(self, name: str) -> None:
        """An element ends."""
        if name == _DENOMINATOR:
            self._is_below = False
        elif name == _MEASURE:
            measure = "".join(self.texts).strip()
            prefix, _, local = measure.rpartition(":")
            if prefix and self._namespaces.get(prefix) in _PLAIN:
                measure = local
            (self._below if self._is_below else self._above).append(measure)
        elif name == UNIT:
            above = "*".join(self._above) or self._name
            self._units.setdefault(self._name, f"{above}/{'*'.join(self._below)}" if self._below else above)
            self.leave()
        self.texts.clear()


@dataclass
class _Note:
    number: int
    role: str | None
    language: str | None
    text: list[str]


class Footnotes(Part):
    """Gathers footnotes, what they stand for, and the arcs between both; labels hold within one link only."""

    def __init__(self) -> None:
        self._notes: dict[str, list[_Note]] = {}
        self._places: dict[str, list[str]] = {}
        self._arcs: list[tuple[str, str, str | None]] = []
        self._count, self._link = 0, 0
        self._open: _Note | None = None

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if self._open is not None:
            # Markup within a footnote: its text stands apart.
            self._open.text += [*self.texts, " "]
        self.texts.clear()
        get = {key.removeprefix(f"{_XLINK} "): value for key, value in attributes.items()}.get
        label = f"{self._link} {get('label', '')}"
        if name == f"{LINK} loc":
            self._places.setdefault(label, []).append(get("href", "").rpartition("#")[2])
        elif name == _FOOTNOTE:
            self._count += 1
            self._open = _Note(self._count, get("role"), attributes.get(_LANGUAGE), [])
            self._notes.setdefault(label, []).append(self._open)
        elif name == f"{LINK} footnoteArc":
            self._arcs.append((f"{self._link} {get('from', '')}", f"{self._link} {get('to', '')}", get("arcrole")))

    def end(self, name: str) -> None:
        """An element ends."""
        if self._open is not None:
            self._open.text += self.texts
        self.texts.clear()
        if name == _FOOTNOTE:
            self._open = None
        elif name == FOOTNOTES:
            self._link += 1
            self.leave()

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
