"""Days on which a calendar is wrong, or thought to be: listed, proposed, decided.

Promises: a decision carries who and why and may be taken back. Never: a proposal changes anything by itself.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from include.engine import windows
from include.engine.db import query
from include.ops.api import access
from include.ops.api.shapes import (
    Cursor,
    Instant,
    Limit,
    Page,
    Shape,
    Warehoused,
    Why,
    Wish,
    page_of,
    place_of,
    question,
)
from include.ops.api.warehouse import Warehouse

router = APIRouter(tags=["calendar"])

Name = Literal["XNYS", "XKRX", "US_FEDERAL", "DAILY"]
State = Literal["proposed", "closed", "open", "rejected"]


class Exceptional(Shape):
    """A day on which a calendar is known, or thought, to be wrong."""

    calendar: str = Field(description="Calendar.")
    day: date = Field(description="Day, in the calendar's own zone.")
    state: State = Field(description="proposed by what was seen, closed or open as decided, or rejected.")
    reason: str = Field(description="Why.")
    decided_by: str | None = Field(description="Who decided; null for a proposal.")
    created_at: Instant = Field(description="When it was first noted.")
    updated_at: Instant = Field(description="Last change.")


class Proposal(Wish):
    """A day to be looked at."""

    calendar: Name = Field(description="Calendar.")
    day: date = Field(description="Day, in the calendar's own zone.")
    why: Why


class Decision(Wish):
    """A word on a day."""

    state: Literal["closed", "open", "rejected"] = Field(
        description="What the day is; rejected: the calendar is right."
    )
    why: Why


@router.get("/calendarExceptions")
@access.reads
def list_exceptions(
    warehouse: Warehoused,
    calendar: Annotated[Name | None, Query(description="Of one calendar.")] = None,
    state: Annotated[State | None, Query(description="In one state.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Exceptional]:
    """List days, the newest first."""
    asked = question(list="calendarExceptions", calendar=calendar, state=state)
    before, before_calendar = place_of(cursor, asked, date.fromisoformat, str)
    values = {"calendar": calendar, "state": state, "before": before, "before_calendar": before_calendar}
    with warehouse.reading() as (connection, _):
        rows = connection.execute(query("ops_work.exceptions"), {**values, "limit": limit + 1}).fetchall()
    return page_of(rows, limit, Exceptional, asked, lambda row: (row["day"], row["calendar"]))


@router.post("/calendarExceptions")
@access.writes
def propose(warehouse: Warehoused, request: Request, body: Proposal) -> Exceptional:
    """Propose a day for a decision; one that is there already stays as it is."""
    with warehouse.writing() as url:
        windows.propose(url, body.calendar, body.day, access.who(request), body.why)
    return _exception(warehouse, body.calendar, body.day)


@router.put("/calendarExceptions/{calendar}/{day}")
@access.writes
def decide(
    warehouse: Warehoused,
    request: Request,
    calendar: Annotated[Name, Path(description="Calendar.")],
    day: Annotated[date, Path(description="Day.")],
    body: Decision,
) -> Exceptional:
    """Decide what a day is, proposed or not; a later word takes the place of this one."""
    with warehouse.writing() as url:
        windows.decide(url, calendar, day, body.state, access.who(request), body.why)
    return _exception(warehouse, calendar, day)


def _exception(warehouse: Warehouse, calendar: str, day: date) -> Exceptional:
    with warehouse.reading() as (connection, _):
        row = connection.execute(query("ops_work.exception"), {"calendar": calendar, "day": day}).fetchone()
    assert row is not None
    return Exceptional(**row)
