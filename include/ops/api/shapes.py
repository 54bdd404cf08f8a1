"""What every answer has in common: names in camelCase, instants with their offset, lists in pages.

Promises: an instant is shown in Seoul's time with its offset; a list ends with a cursor to its next page, which is
opaque and good for the same question only. Never: a page is found by counting rows.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Generic, TypeVar
from zoneinfo import ZoneInfo

from fastapi import Depends, Query, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from include.engine.db import Row
from include.ops.api.problems import BadCursor
from include.ops.api.warehouse import Warehouse

SEOUL = ZoneInfo("Asia/Seoul")
MOST_ROWS = 500
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _in_seoul(instant: datetime) -> datetime:
    return instant.astimezone(SEOUL)


def _written_as_a_day(value: Any) -> Any:
    if isinstance(value, str) and not _DAY.fullmatch(value):
        raise ValueError("a date is written as YYYY-MM-DD")
    return value


# Otherwise a number is taken for seconds since 1970, and silently for another day.
Day = Annotated[date, BeforeValidator(_written_as_a_day)]
Instant = Annotated[datetime, AfterValidator(_in_seoul), Field(description="Instant, ISO 8601 with offset.")]


class Shape(BaseModel):
    """An object of an answer: camelCase outside, and nothing in it that its row does not have."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")


class Wish(BaseModel):
    """The body of a change: camelCase, and nothing in it that nobody knows."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", str_strip_whitespace=True
    )


Item = TypeVar("Item")


class Page(Shape, Generic[Item]):
    """One page of a list."""

    items: list[Item] = Field(description="What is on this page, in the list's order.")
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last.")


def milliseconds(length: timedelta | None) -> int | None:
    """Return a length in whole milliseconds."""
    return None if length is None else round(length.total_seconds() * 1000)


# --- what routes take

Text = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]
Why = Annotated[
    str, Field(min_length=1, max_length=500, pattern=r"^[^\x00]*\S[^\x00]*$", description="Why; kept and shown.")
]
Limit = Annotated[int, Query(ge=1, le=MOST_ROWS, description="Most items on a page.")]
Cursor = Annotated[
    str | None, Query(max_length=500, description="`nextCursor` of the page before; none for the first page.")
]


def warehouse_of(request: Request) -> Warehouse:
    """Return the warehouse of the app that answers."""
    found: Warehouse = request.app.state.warehouse
    return found


Warehoused = Annotated[Warehouse, Depends(warehouse_of)]

# --- paging


def question(**filters: Any) -> str:
    """Name a question, so that a cursor is not taken from one to another."""
    text = json.dumps(filters, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def cursor_for(asked: str, *place: Any) -> str:
    """Return the cursor that stands for a place in the list of a question."""
    text = json.dumps([asked, *[each.isoformat() if isinstance(each, date) else each for each in place]])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def place_of(cursor: str | None, asked: str, *kinds: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return the place that a cursor stands for, one value for each kind; None for each without a cursor.

    Raises:
        BadCursor: it is none of ours, or of another question.
    """
    if cursor is None:
        return (None,) * len(kinds)
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)))
        if not isinstance(found, list) or found[0] != asked or len(found) != len(kinds) + 1:
            raise BadCursor
        return tuple(kind(each) for kind, each in zip(kinds, found[1:], strict=True))
    except (ValueError, TypeError, KeyError, IndexError, binascii.Error, RecursionError):
        raise BadCursor from None


def whole(value: Any) -> int:
    """Read a whole number out of a cursor, one that the database can hold."""
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError("no whole number")
    return value


def page_of(
    rows: Sequence[Row], limit: int, shape: type[Item], asked: str, place: Callable[[Row], tuple[Any, ...]]
) -> Page[Item]:
    """Make a page of rows of which one more than `limit` was asked for."""
    shown = rows[:limit]
    following = cursor_for(asked, *place(shown[-1])) if len(rows) > limit else None
    return Page(items=[shape(**row) for row in shown], next_cursor=following)
