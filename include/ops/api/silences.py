"""Silences: alerts that are not sent for a while; listed, made, ended before their time.

Promises: a silence carries who, why and an end, and so does ending one early; the same as from the command line. Never:
an incident is hidden or closed by one, and nothing is deleted.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import AwareDatetime, Field

from include.engine import silences
from include.engine.db import query
from include.ops.api import access
from include.ops.api.problems import NotThere
from include.ops.api.shapes import (
    Cursor,
    Instant,
    Limit,
    Page,
    Shape,
    Text,
    Warehoused,
    Why,
    Wish,
    page_of,
    place_of,
    question,
    whole,
)
from include.ops.api.warehouse import Warehouse

router = APIRouter(tags=["silences"])

Number = Annotated[int, Path(ge=1, lt=2**63, description="Number of the silence.")]


class Silence(Shape):
    """Alerts that are not sent for a while."""

    silence_id: int = Field(description="Its number.")
    pattern: str = Field(description="Key of the alerts; * stands for anything.")
    reason: str = Field(description="Why.")
    made_by: str = Field(description="Who made it.")
    made_at: Instant = Field(description="Since when.")
    ends_at: Instant = Field(description="Until when; earlier than planned where it was ended.")
    holds: bool = Field(description="Whether it holds now.")
    kept_back: int = Field(description="How many messages it has kept from being sent.")
    lifted_by: str | None = Field(description="Who ended it before its time; null where nobody did.")
    lifted_why: str | None = Field(description="Why so.")


class NewSilence(Wish):
    """What somebody does not want to be told for a while."""

    pattern: Text = Field(description="Key of the alerts; * stands for anything, as in `past-due/krx.*`.")
    ends_at: AwareDatetime = Field(description="When it ends: in the future, ISO 8601 with offset.")
    why: Why


class Ending(Wish):
    """Why a silence ends before its time."""

    why: Why


@router.get("/silences")
@access.reads
def list_silences(
    warehouse: Warehoused,
    holds: Annotated[bool | None, Query(description="Only those that hold now, or that are over.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Silence]:
    """List silences, the newest first."""
    asked = question(list="silences", holds=holds)
    (before,) = place_of(cursor, asked, whole)
    values = {"holds": holds, "before": before, "limit": limit + 1, "id": None}
    with warehouse.reading() as (connection, _):
        rows = connection.execute(query("ops_work.silences"), values).fetchall()
    return page_of(rows, limit, Silence, asked, lambda row: (row["silence_id"],))


@router.post("/silences")
@access.writes
def make(warehouse: Warehoused, request: Request, body: NewSilence) -> Silence:
    """Keep alerts from being sent until an instant; they stay in the outbox, marked."""
    with warehouse.writing() as url:
        made = silences.make(url, body.pattern, body.ends_at, access.who(request), body.why)
    return _silence(warehouse, made["silence_id"])


@router.post("/silences/{silence_id}/end")
@access.writes
def end(warehouse: Warehoused, request: Request, silence_id: Number, body: Ending) -> Silence:
    """End a silence before its time; what it has kept back is not sent."""
    _silence(warehouse, silence_id)
    with warehouse.writing() as url:
        silences.lift(url, silence_id, access.who(request), body.why)
    return _silence(warehouse, silence_id)


def _silence(warehouse: Warehouse, silence_id: int) -> Silence:
    values = {"holds": None, "before": None, "limit": 1, "id": silence_id}
    with warehouse.reading() as (connection, _):
        row = connection.execute(query("ops_work.silences"), values).fetchone()
    if row is None:
        raise NotThere(f"There is no silence {silence_id}.")
    return Silence(**row)
