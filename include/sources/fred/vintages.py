"""Reading what FRED says of a series: descriptions, and values with the days on which each was the published one.

Promises: FRED clips real-time periods to the window that was asked for; a period that begins with the window is state,
one that begins inside it is news, and only news become rows, so windows asked for piecewise come to the same rows as
one. Values are kept to the digit; "." is a row. Never: no gap is filled, and a clipped start is no publication day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import groupby
from typing import Any

from include.contract import Answer, Batch, Parsed, ParseError, Rejected, Unit
from include.sources.fred import spans
from include.sources.fred.answers import told
from include.sources.fred.spans import FOREVER, Stretch
from include.sources.fred.tables import DECIMALS, DIGITS, SERIES, UNKNOWN_DAY, VINTAGES

PARSER_VERSION = 1

MISSING = "."
ONE_DAY = timedelta(days=1)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_DESCRIPTION = SERIES.column_names[3:10]
# Known, and not kept: they say how things stand now, change daily, or follow from the values.
_PASSING = frozenset(
    {
        "id", "realtime_start", "realtime_end", "observation_start", "observation_end", "last_updated", "popularity",
        "group_popularity", "notes",
    }
)  # fmt: skip
_OBSERVATION = frozenset({"realtime_start", "realtime_end", "date", "value"})
_PAGE = {
    "count": int, "offset": int, "observations": list, "realtime_start": str, "realtime_end": str, "units": str,
    "output_type": int,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Observation:
    """One value as FRED gives it: the period's day, the text, the real-time period clipped to the window, and more."""

    day: date
    text: str
    start: date
    end: date
    extra: dict[str, Any] | None = None


@dataclass(frozen=True)
class Window:
    """All pages of one asking for observations: the real-time window that was asked for, and what was given.

    `unread` are the observations of which a row could not be read; None is among them where nobody knows whose it was.
    """

    start: date
    end: date
    observations: tuple[Observation, ...]
    rejected: tuple[Rejected, ...] = ()
    unread: frozenset[date | None] = frozenset()

    @property
    def unknown(self) -> set[str]:
        """Names that nobody knows."""
        return {name for each in self.observations if each.extra for name in each.extra}

    @property
    def has_vintages(self) -> bool:
        """Whether periods were asked for; FRED's default is today alone, which says nothing of publication."""
        return self.start != self.end

    def has_all_of(self, day: date) -> bool:
        """Whether a gap between the periods of an observation is FRED's, and not a row that could not be read."""
        return not self.unread & {day, None}


def parse(unit: Unit) -> Parsed:
    """Read a series' stretch of real time.

    Raises:
        ParseError: a page is not whole or not of the form that we know, or the pages do not belong together.
    """
    found = spans.named(unit.key)
    if found is None:
        raise ParseError(f"{unit.key!r} is not the name of a unit")
    series, stretch = found
    descriptions: list[tuple[Any, ...]] = []
    pages: list[dict[str, Any]] = []
    unknown: set[str] = set()
    has_observations = True
    for answer in unit.answers:
        said = told(answer.body.read())
        if said.document is None:
            has_observations = has_observations and not said.is_withheld
        elif "seriess" in said.document:
            rows, more = _descriptions(series, stretch, said.document)
            descriptions += rows
            unknown |= more
        else:
            pages.append(said.document)
    described = [(*row[:-1], has_observations, row[-1]) for row in descriptions]
    window = read_pages(pages) if pages else None
    values = tuple(_rows(series, stretch, window)) if window else ()
    return Parsed(
        (Batch(SERIES, described), Batch(VINTAGES, values)),
        window.rejected if window else (),
        tuple(sorted(unknown | (window.unknown if window else set()))),
    )


def _descriptions(series: str, stretch: Stretch, document: dict[str, Any]) -> tuple[list[tuple[Any, ...]], set[str]]:
    """Return the rows of `fred_series` but for whether there are observations, and names that nobody knows."""
    rows, unknown = [], set[str]()
    if not document["seriess"]:
        return [], unknown
    is_today = _day_in(document, "realtime_start") == _day_in(document, "realtime_end")
    for item in document["seriess"]:
        if not isinstance(item, dict):
            raise ParseError(f"the description of {series} is no object: {item!r:.80}")
        name, *values = (_text_in(item, each) for each in ("id", *_DESCRIPTION))
        notes = _text_in(item, "notes") if item.get("notes") is not None else None
        start, end = _day_in(item, "realtime_start"), _day_in(item, "realtime_end")
        if name != series:
            raise ParseError(f"the answer describes {name}, not {series}")
        extra = {key: value for key, value in item.items() if key not in _PASSING and key not in _DESCRIPTION}
        unknown |= set(extra)
        if is_today:
            start, end = stretch.first, FOREVER
        if end < stretch.first or start > stretch.last:
            continue
        is_carried = is_today or start < stretch.first
        first = max(start, stretch.first)
        rows.append((series, first, is_carried, *values, notes, extra or None))
    return rows, unknown


def _text_in(item: dict[str, Any], name: str) -> str:
    if not isinstance(item.get(name), str):
        raise ParseError(f"the description {_fault(item, name, str)}")
    return str(item[name])


def _day_in(item: dict[str, Any], name: str) -> date:
    return day_of(_text_in(item, name))


def _fault(item: dict[str, Any], name: str, kind: type) -> str:
    """What is wrong with a value that is not of its kind."""
    return f"has {item[name]!r:.60} for {name!r}, which is no {kind.__name__}" if name in item else f"lacks {name!r}"


def read_pages(pages: Sequence[dict[str, Any]]) -> Window:
    """Read the pages of one asking.

    Raises:
        ParseError: rows are missing, or the set changed between two pages.
    """
    for page in pages:
        wrong = [name for name, kind in _PAGE.items() if type(page.get(name)) is not kind]
        if wrong:
            raise ParseError(f"a page of observations {_fault(page, wrong[0], _PAGE[wrong[0]])}")
    first = pages[0]
    counts = {page["count"] for page in pages}
    bounds = {(page["realtime_start"], page["realtime_end"]) for page in pages}
    forms = {(page["units"], page["output_type"]) for page in pages}
    start, end = day_of(first["realtime_start"]), day_of(first["realtime_end"])
    if end < start:
        raise ParseError(f"the real-time period ends on {end}, before it begins on {start}")
    if forms != {("lin", 1)}:
        raise ParseError(f"the values are in another form than was asked for: {sorted(map(str, forms))}")
    if len(counts) != 1 or len(bounds) != 1:
        raise ParseError(f"the set changed while it was read: {sorted(counts)} rows by its pages; it is read anew")
    have = 0
    for page in pages:
        if page["offset"] != have:
            raise ParseError(f"a page begins at row {page['offset']}, the one before ended at row {have}")
        have += len(page["observations"])
    if have != first["count"]:
        raise ParseError(f"the pages hold {have} rows of {first['count']}: they were cut")
    observations, rejected, unread = [], [], set[date | None]()
    for position, item in enumerate((row for page in pages for row in page["observations"]), start=1):
        try:
            observations.append(_observation(item))
        except (ParseError, KeyError, TypeError) as wrong:
            reason = f"lacks {wrong}" if isinstance(wrong, KeyError) else str(wrong)
            rejected.append(Rejected(f"row {position}", reason, str(item)[:2000]))
            unread.add(_day_if_told(item))
    if rejected and not observations:
        raise ParseError(f"no row can be read; the first {rejected[0].reason}")
    return Window(start, end, tuple(observations), tuple(rejected), frozenset(unread))


def _day_if_told(item: Any) -> date | None:
    try:
        return day_of(item["date"])
    except (ParseError, KeyError, TypeError):
        return None


def _observation(item: dict[str, Any]) -> Observation:
    text = item["value"]
    if not isinstance(text, str) or not (text == MISSING or _NUMBER.fullmatch(text)):
        raise ParseError(f"{text!r} is not a value")
    extra = {name: item[name] for name in item if name not in _OBSERVATION} if len(item) > len(_OBSERVATION) else None
    start, end = day_of(item["realtime_start"]), day_of(item["realtime_end"])
    if end < start:
        raise ParseError(f"it holds until {end}, which is before {start}")
    return Observation(day_of(item["date"]), text, start, end, extra)


def day_of(text: str) -> date:
    """Read a date as FRED writes it.

    Raises:
        ParseError: it is none.
    """
    try:
        return date.fromisoformat(text)
    except (ValueError, TypeError):
        raise ParseError(f"{text!r} is not a date") from None


def _rows(series: str, stretch: Stretch, window: Window) -> Iterator[tuple[Any, ...]]:
    """Return what became the published value within the stretch, observation by observation."""
    if not window.has_vintages:
        for each in window.observations:
            yield (series, each.day, UNKNOWN_DAY, each.text, number(each.text), False, each.extra)
        return
    ordered = sorted(window.observations, key=lambda each: (each.day, each.start))
    for day, group in groupby(ordered, key=lambda each: each.day):
        for start, published in news(list(group), window.start, window.end):
            if not stretch.holds(start):
                continue
            if published is None:
                if window.has_all_of(day):
                    yield (series, day, start, None, None, True, None)
            else:
                yield (series, day, start, published.text, number(published.text), False, published.extra)


def news(periods: Sequence[Observation], start: date, end: date) -> Iterator[tuple[date, Observation | None]]:
    """Return the days within a window on which one observation's value became another, with it; None: withdrawn.

    `periods` are those of one observation in order. What holds at the window's start is state, not news; adjoining
    periods with the same value are one.

    Raises:
        ParseError: two periods overlap.
    """
    before: Observation | None = None
    for each in periods:
        if before is not None and before.end >= each.start:
            raise ParseError(f"two values of {each.day} hold on {each.start}: {before.text} and {each.text}")
        adjoins = before is not None and before.end == each.start - ONE_DAY
        if before is not None and not adjoins:
            yield before.end + ONE_DAY, None
        if each.start > start and not (adjoins and before is not None and before.text == each.text):
            yield each.start, each
        before = each
    if before is not None and before.end < end:
        yield before.end + ONE_DAY, None


def number(text: str) -> Decimal | None:
    """Return the number that a value's text is, None where it is published as missing or has more digits than fit."""
    if text == MISSING:
        return None
    value = Decimal(text)
    # Short and without an exponent, as nearly all are, a number fits for certain.
    if len(text) <= DECIMALS and "e" not in text.lower():
        return value
    exponent = value.as_tuple().exponent
    fits = isinstance(exponent, int) and -exponent <= DECIMALS and value.adjusted() < DIGITS - DECIMALS
    return value if fits else None


def says_newest(answer: Answer) -> tuple[str, date] | None:
    """Return the series that an answer describes and the day of its last update, None where it describes none."""
    updated = last_updated(answer)
    items = (told(answer.body.read()).document or {}).get("seriess")
    return None if updated is None or not items else (str(items[-1].get("id")), updated)


def last_updated(answer: Answer) -> date | None:
    """Return the day in St. Louis on which a series was last updated, None where the answer does not say."""
    document = told(answer.body.read()).document or {}
    items = document.get("seriess")
    try:
        # The offset has two digits only, and the day before it is already St. Louis' own.
        return day_of(items[-1]["last_updated"][:10]) if items else None
    except (ParseError, KeyError, TypeError):
        return None
