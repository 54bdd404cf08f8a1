"""Reading a unit: the description of a series from its statistic's list of items, then its values by period.

Promises: decimals stay what they are, a missing value is told from a wrong one, and the count that ECOS gives is the
count of what was read. Never: rows of several items, of another series or of another cycle become one series.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from include.contract import Batch, Parsed, ParseError, Rejected, Unit
from include.sources.ecos import answers, periods
from include.sources.ecos.answers import ITEMS, SEARCH, Told, told
from include.sources.ecos.catalogue import CONFIGURATION, Series, series
from include.sources.ecos.tables import DECIMALS, DIGITS, SERIES, VALUES

PARSER_VERSION = 1
MISSING = ("", "-")
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_WITH_COMMAS = re.compile(r"[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_LEVELS = ("1", "2", "3", "4")
_KNOWN = frozenset(
    (
        "STAT_CODE", "STAT_NAME", "UNIT_NAME", "WGT", "TIME", "DATA_VALUE",
        *(f"ITEM_{what}{level}" for what in ("CODE", "NAME") for level in _LEVELS),
    )
)  # fmt: skip
# Each row has all of them, empty or not. Without a level's code nobody knows whether it is one series or several.
_NEEDED = ("STAT_CODE", *(f"ITEM_CODE{level}" for level in _LEVELS), "UNIT_NAME", "TIME", "DATA_VALUE")


def parse(unit: Unit) -> Parsed:
    """Read the description and the values of a series.

    Raises:
        ParseError: it is of another series or of several, its pages do not fit together, or a field is missing.
    """
    name, _, stretch = unit.key.partition("/")
    wanted = series(name)
    if wanted is None:
        raise ParseError(f"{name!r} is no series")
    pages = [(answer, told(answer.body.read())) for answer in unit.answers]
    described = _describe(wanted, stretch, [row for _, said in pages if said.service == ITEMS for row in said.rows])
    rows, rejected, unknown = _values(wanted, [said for _, said in pages if said.service != ITEMS])
    return Parsed((Batch(SERIES, [described]), Batch(VALUES, rows)), tuple(rejected), tuple(sorted(unknown)))


def _describe(wanted: Series, stretch: str, items: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    """Describe a series by what the list of items says of its codes in its cycle."""
    mine: list[Mapping[str, Any]] = []
    for level, code in enumerate(wanted.items, start=1):
        row = next((row for row in items if answers.is_item(row, wanted.cycle, code, level)), None)
        if row is None:
            raise ParseError(f"the list of items lacks {code} in the cycle {wanted.cycle}")
        mine.append(row)
    first = mine[0]
    return (
        wanted.name,
        stretch,
        wanted.statistic,
        str(first.get("STAT_NAME") or ""),
        wanted.cycle,
        list(wanted.items),
        [str(row.get("ITEM_NAME") or "") for row in mine],
        next((str(row["UNIT_NAME"]) for row in mine if row.get("UNIT_NAME")), None),
        answers.period(first, "START_TIME") or None,
    )


def _values(wanted: Series, pages: Sequence[Told]) -> tuple[list[tuple[Any, ...]], list[Rejected], set[str]]:
    given = [row for said in pages if said.service == SEARCH for row in said.rows]
    totals = {said.total for said in pages if said.service == SEARCH}
    if len(totals) > 1 or (totals and totals != {len(given)}):
        said = " and ".join(f"{total:,}" for total in sorted(totals))
        raise ParseError(f"ECOS counts {said} rows and gave {len(given):,}: the series changed while it was read")
    found: dict[str, tuple[Any, ...]] = {}
    rejected, unknown = list[Rejected](), set[str]()
    for number, row in enumerate(given, start=1):
        _check(wanted, row)
        extra = {name: value for name, value in row.items() if name not in _KNOWN}
        unknown.update(extra)
        try:
            start, value = periods.start_of(wanted.cycle, str(row["TIME"])), _number(row["DATA_VALUE"])
        except ValueError as error:
            rejected.append(Rejected(f"row {number}", str(error), str(row)[:2000]))
            continue
        text = None if value is None else str(row["DATA_VALUE"]).strip()
        made = (wanted.name, row["TIME"], start, text, value, row.get("UNIT_NAME"), row.get("WGT"), extra or None)
        if found.setdefault(row["TIME"], made) != made:
            rejected.append(Rejected(f"row {number}", f"{row['TIME']} has two values", str(row)[:2000]))
    if len(pages) > 1 and len(found) + len(rejected) < len(given):
        # The count is right, and rows of one page stand in another's place.
        raise ParseError(f"ECOS gave {len(given):,} rows on {len(pages)} pages, and only {len(found):,} of them differ")
    if rejected and not found:
        # ECOS changed, which is one thing to tell and not one for each row.
        raise ParseError(f"none of {len(given):,} rows can be read; {rejected[0].position}: {rejected[0].reason}")
    return sorted(found.values(), key=_order), rejected, unknown


def _order(row: tuple[Any, ...]) -> date:
    start: date = row[2]
    return start


def _check(wanted: Series, row: Mapping[str, Any]) -> None:
    """Insist that a row is of the series that was asked for.

    Raises:
        ParseError: it is of another one, or of one of several.
    """
    lacking = [name for name in _NEEDED if name not in row]
    if lacking:
        raise ParseError(f"a row lacks {', '.join(lacking)}")
    codes = [str(row.get(f"ITEM_CODE{level}") or "") for level in _LEVELS]
    expected = [*wanted.items, *[""] * (len(_LEVELS) - len(wanted.items))]
    if row["STAT_CODE"] != wanted.statistic or codes[: len(wanted.items)] != list(wanted.items):
        raise ParseError(f"a row is of {row['STAT_CODE']} {'/'.join(filter(None, codes))}, not of {wanted.name}")
    if codes != expected:
        raise ParseError(
            f"a row is of {'/'.join(filter(None, codes))}: the statistic has more levels than {wanted.name} names. "
            f"Write a code for each in {CONFIGURATION}"
        )


def _number(value: Any) -> Decimal | None:
    """Return a value as a number, None where it is missing.

    Raises:
        ValueError: it is neither a number nor missing.
    """
    text = "" if value is None else str(value).strip()
    if text in MISSING:
        return None
    if _WITH_COMMAS.fullmatch(text):
        text = text.replace(",", "")
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if -exponent > DECIMALS or number.adjusted() >= DIGITS - DECIMALS:
        raise ValueError(f"{text!r} has more digits than are kept")
    return number
