"""Quarantine: what could not be read or broke a rule, and the three ways out, each with who and why.

Promises: a way out is the engine's own. Never: an entry is deleted.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from include import registry
from include.contract import Stream
from include.engine import quarantine
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

router = APIRouter(tags=["quarantine"])

State = Literal["open", "accepted", "dropped", "resolved"]
Number = Annotated[int, Path(ge=1, lt=2**63, description="Number of the entry.")]


class Entry(Shape):
    """A row or a unit that could not be read, or broke a rule."""

    quarantine_id: int = Field(description="Its number.")
    stream: str = Field(description="Stream.")
    unit: str = Field(description="Unit.")
    fetch_id: int | None = Field(description="Fetch whose answer it was in.")
    cycle_id: int = Field(description="Cycle that put it here.")
    scope: Literal["unit", "row"] = Field(description="The whole unit, or one row.")
    position: str | None = Field(description="Line or item within the answer.")
    rule: str = Field(description="Name of the rule, or parse.")
    reason: str = Field(description="Why, in words.")
    content: str | None = Field(description="The row as it was, shortened.")
    parser_version: int = Field(description="Parser that refused it.")
    state: State = Field(description="open, or how it was resolved.")
    resolved_by: str | None = Field(description="Who resolved it.")
    resolved_why: str | None = Field(description="Why so.")
    resolved_at: Instant | None = Field(description="When.")
    created_at: Instant = Field(description="When it came here.")


class Reason(Wish):
    """Why something is done."""

    why: Why


class Resolved(Shape):
    """What became of an entry."""

    entry: Entry = Field(description="The entry as it stands now.")
    run_id: str | None = Field(description="The replay that reads its unit again; null where none does.")
    words: str = Field(description="What was done, in a sentence.")


@router.get("/quarantine")
@access.reads
def list_entries(
    warehouse: Warehoused,
    stream: Annotated[Text | None, Query(description="Of one stream.")] = None,
    state: Annotated[State | None, Query(description="In one state.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Entry]:
    """List entries, the newest first."""
    asked = question(list="quarantine", stream=stream, state=state)
    (before,) = place_of(cursor, asked, whole)
    values = {"stream": stream, "state": state, "before": before, "limit": limit + 1}
    with warehouse.reading() as (connection, _):
        rows = connection.execute(query("ops_work.quarantine"), values).fetchall()
    return page_of(rows, limit, Entry, asked, lambda row: (row["quarantine_id"],))


@router.post("/quarantine/{entry_id}/retry")
@access.writes
def retry(warehouse: Warehoused, request: Request, entry_id: Number, body: Reason) -> Resolved:
    """Have the entry's unit read again by today's parser."""
    stream = _stream(_entry(warehouse, entry_id))
    with warehouse.writing() as url:
        run_id = quarantine.retry(url, stream, entry_id, access.who(request), body.why)
    return _resolved(warehouse, entry_id, run_id, f"DONE – run {run_id} reads the unit again.")


@router.post("/quarantine/{entry_id}/accept")
@access.writes
def accept(warehouse: Warehoused, request: Request, entry_id: Number, body: Reason) -> Resolved:
    """Accept a row that broke a rule, or a small listing, and have its unit read again."""
    stream = _stream(_entry(warehouse, entry_id))
    with warehouse.writing() as url:
        run_id = quarantine.accept(url, stream, entry_id, access.who(request), body.why)
    return _resolved(warehouse, entry_id, run_id, f"DONE – accepted; run {run_id} applies it.")


@router.post("/quarantine/{entry_id}/drop")
@access.writes
def drop(warehouse: Warehoused, request: Request, entry_id: Number, body: Reason) -> Resolved:
    """Close an entry for good: the row or unit is not wanted."""
    _entry(warehouse, entry_id)
    with warehouse.writing() as url:
        quarantine.drop(url, entry_id, access.who(request), body.why)
    return _resolved(warehouse, entry_id, None, "DONE – dropped; what was fetched is kept in the raw store.")


def _entry(warehouse: Warehouse, entry_id: int) -> Entry:
    with warehouse.reading() as (connection, _):
        row = connection.execute(query("ops_work.quarantine_one"), {"id": entry_id}).fetchone()
    if row is None:
        raise NotThere(f"There is no quarantine entry {entry_id}.")
    return Entry(**row)


def _stream(entry: Entry) -> Stream:
    return registry.stream(entry.stream)


def _resolved(warehouse: Warehouse, entry_id: int, run_id: str | None, words: str) -> Resolved:
    return Resolved(entry=_entry(warehouse, entry_id), run_id=run_id, words=words)
