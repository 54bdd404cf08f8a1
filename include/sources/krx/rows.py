"""Reading KRX's rows: every value is a text, some are missing, and the order of the columns means nothing.

Promises: numbers are exact, with or without thousands commas; an empty text and "-" are missing, never zero. A column
that is missing is named and refuses the answer, one that nobody knows is kept; a value that is none is a row put aside.
Never: a row is read by position, and nothing is rounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec

from include.contract import Batch, Parsed, ParseError, Rejected, Table, Unit
from include.sources.krx.answers import BLOCK, BOM, MISSING

Kind = Literal["text", "whole", "exact", "day", "name"]

# Commas stand between groups of three digits; anywhere else nobody knows what they are.
_WITH_COMMAS = re.compile(r"[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_LARGEST = 2**63 - 1
# More digits before or behind the point are no price, count or index.
_MOST_DIGITS = 25
_Whole = Annotated[int, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
_Exact = Annotated[str, msgspec.Meta(pattern=r"^-?[0-9]{1,15}(\.[0-9]{1,10})?$")]
_Name = Annotated[str, msgspec.Meta(pattern=r"\S")]
# How each kind looks in the ordinary answer, which is read in one go; anything else is read value by value.
_ORDINARY: Mapping[str, Any] = {"text": str, "whole": _Whole, "exact": _Exact, "name": _Name}

Make = Callable[..., tuple[Any, ...]]


class _Day(msgspec.Struct):
    OutBlock_1: list[dict[str, Any]]


@dataclass(frozen=True)
class Form:
    """The columns that a service gives and what kind of value each one is.

    `text` is a text that may be blank, `name` one that may not, `whole` a whole number, `exact` a decimal one, `day` a
    date as YYYYMMDD. `is_dated` says that `BAS_DD` stands in each row; it must be the day that was asked for.
    """

    columns: Mapping[str, Kind]
    is_dated: bool = True

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any] | None:
        """What reads an ordinary answer whole; None where ordinary answers lack values or hold dates."""
        if "day" in self.columns.values():
            return None
        fields = [(name, _ORDINARY[kind]) for name, kind in self.columns.items()]
        if self.is_dated:
            fields.append(("BAS_DD", str))
        row = msgspec.defstruct("Row", fields, forbid_unknown_fields=True, gc=False)
        return msgspec.json.Decoder(msgspec.defstruct("Block", [(BLOCK, list[row])]), strict=False)  # type: ignore[valid-type]

    def read(self, unit: Unit, table: Table, make: Make) -> Parsed:
        """Read one answer.

        Args:
            unit: the answer.
            table: what the rows are for.
            make: turns the values, in the order of `columns`, into the table's; a value that is missing is None, and
                texts are as they were given, blanks around them too.

        Raises:
            ParseError: it cannot be read, lacks a column, is for another day, or holds no row that can be read.
        """
        (answer,) = unit.answers
        body, day = answer.body.read().removeprefix(BOM), unit.session_date
        if self._decoder is not None:
            try:
                rows = getattr(self._decoder.decode(body), BLOCK)
            except (msgspec.DecodeError, RecursionError):
                pass
            else:
                return self._ordinary(rows, day, table, make)
        return self._careful(body, day, table, make)

    def _ordinary(self, rows: Sequence[Any], day: date | None, table: Table, make: Make) -> Parsed:
        if self.is_dated:
            _check_days({row.BAS_DD for row in rows}, day)
        exact = [place for place, kind in enumerate(self.columns.values()) if kind == "exact"]
        width = len(self.columns)
        made: list[tuple[Any, ...]] = []
        rejected: list[Rejected] = []
        for position, row in enumerate(rows, start=1):
            values = [*msgspec.structs.astuple(row)]
            del values[width:]
            for place in exact:
                values[place] = Decimal(values[place])
            try:
                made.append(make(*values))
            except ValueError as error:
                text = msgspec.json.encode(row).decode()[:2000]
                rejected.append(Rejected(f"row {position}", str(error), text))
        return _parsed(table, made, rejected, ())

    def _careful(self, body: bytes, day: date | None, table: Table, make: Make) -> Parsed:
        try:
            rows = msgspec.json.Decoder(_Day, float_hook=Decimal).decode(body).OutBlock_1
        except (msgspec.DecodeError, ArithmeticError, RecursionError) as error:
            raise ParseError(f"the answer cannot be read: {error}") from None
        needed = {*self.columns, *(("BAS_DD",) if self.is_dated else ())}
        lacking = sorted({name for row in rows for name in needed - row.keys()})
        if lacking:
            raise ParseError(f"the rows lack {', '.join(lacking)}; they have {', '.join(sorted(rows[0]))}")
        if self.is_dated:
            _check_days({str(row["BAS_DD"]) for row in rows}, day)
        unknown: dict[str, None] = {}
        made: list[tuple[Any, ...]] = []
        rejected: list[Rejected] = []
        for position, row in enumerate(rows, start=1):
            extra = {name: _plain(value) for name, value in row.items() if name not in needed}
            try:
                values = [_READ[kind](name, row[name]) for name, kind in self.columns.items()]
                found = make(*values)
            except ValueError as error:
                rejected.append(Rejected(f"row {position}", str(error), _text(row)))
                continue
            unknown.update(dict.fromkeys(extra))
            made.append((*found, extra or None))
        return _parsed(table, made, rejected, tuple(sorted(unknown)))


def _parsed(table: Table, made: list[tuple[Any, ...]], rejected: list[Rejected], unknown: tuple[str, ...]) -> Parsed:
    if rejected and not made:
        # The upstream changed, which is one thing to tell and not one for each row.
        first = rejected[0]
        raise ParseError(f"none of {len(rejected)} rows can be read; {first.position}: {first.reason}")
    return Parsed((Batch(table, made),), tuple(rejected), unknown)


def _check_days(given: Iterable[str], day: date | None) -> None:
    asked = f"{day:%Y%m%d}" if day else ""
    other = sorted(set(given) - {asked})
    if other:
        raise ParseError(f"the answer is for {', '.join(other[:3])} and not for {asked}, which was asked for")


# --- one value


def _whole(name: str, value: Any) -> int | None:
    number = _exact(name, value)
    if number is None:
        return None
    if number != number.to_integral_value() or abs(number) > _LARGEST:
        raise ValueError(f"{name} is {value!r}, which is no whole number")
    return int(number)


def _exact(name: str, value: Any) -> Decimal | None:
    if value in MISSING or (isinstance(value, str) and value.strip() in MISSING):
        return None
    text = str(value).strip()
    if _WITH_COMMAS.fullmatch(text):
        text = text.replace(",", "")
    try:
        if isinstance(value, bool) or not text.isascii() or "_" in text:
            raise InvalidOperation
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{name} is {value!r}, which is no number") from None
    # Also an infinity, or what is none at all, has no digits that count.
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS or len(number.as_tuple().digits) > _MOST_DIGITS:
        raise ValueError(f"{name} is {value!r}, which is no number")
    return number


def _day(name: str, value: Any) -> date | None:
    if value in MISSING:
        return None
    text = str(value).strip()
    try:
        if len(text) != 8 or not text.isascii() or not text.isdigit():
            raise ValueError
        return date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        raise ValueError(f"{name} is {value!r}, which is no date") from None


def _name(name: str, value: Any) -> str:
    text = str(value) if value is not None else ""
    if not text.strip():
        raise ValueError(f"{name} is blank")
    return text


_READ: Mapping[str, Callable[[str, Any], Any]] = {
    "text": lambda name, value: "" if value is None else str(value),
    "name": _name,
    "whole": _whole,
    "exact": _exact,
    "day": _day,
}


def _plain(value: Any) -> Any:
    """A value as JSON is kept: exact numbers as texts."""
    return msgspec.to_builtins(value)


def _text(row: Mapping[str, Any]) -> str:
    return msgspec.json.encode(row, order="sorted").decode()[:2000]
