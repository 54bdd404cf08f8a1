"""Cycles: windows, chunks and replay batches, one with its slices, its fetches and the way to its log.

Promises: what is shown of a cycle is its row. Never: a lease's token is shown.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from include.contract import AnswerClass, CycleStatus, Mode
from include.engine.db import Connection, Row, query
from include.ops.api import access
from include.ops.api.problems import NotThere
from include.ops.api.shapes import (
    Cursor,
    Day,
    Instant,
    Limit,
    Page,
    Shape,
    Text,
    Warehoused,
    page_of,
    place_of,
    question,
    whole,
)

router = APIRouter(tags=["cycles"])

FETCHES_SHOWN = 100
# How a task of Airflow names itself when it claims: see `include/operators/tick.py`.
_TASK = re.compile(r"(?P<dag>[\w.-]+?)\.(?P<task>[\w-]+)(?:\[(?P<lane>\d+)\])? of (?P<run>\S+) on ")

Number = Annotated[int, Path(ge=1, lt=2**63, description="Number of the cycle.")]
FirstDate = Annotated[
    Day | None, Query(alias="runDateFrom", description="First run date (Seoul), inclusive: windows only.")
]
LastDate = Annotated[
    Day | None, Query(alias="runDateTo", description="Last run date (Seoul), inclusive: windows only.")
]


class Cycle(Shape):
    """One leased unit of collecting work: a poll window, a backfill chunk or a replay batch."""

    cycle_id: int = Field(description="Its number.")
    stream: str = Field(description="Stream, source.stream.")
    source: str = Field(description="Source.")
    mode: Mode = Field(description="poll, backfill or replay.")
    kind: Literal["scheduled", "make_up", "chunk", "part"] = Field(description="Window, make-up window, chunk or part.")
    slot: str = Field(description="A window's scheduled instant in UTC, or run and chunk.")
    run_id: str | None = Field(description="Job run that it is a chunk of; null for a window.")
    run_date: date | None = Field(description="Date of the window in Seoul; null for a chunk.")
    window_start: Instant | None = Field(description="When the window opened.")
    due_at: Instant | None = Field(description="When it was expected to be done.")
    session_date: date | None = Field(description="Session date that it is responsible for, in the market's calendar.")
    cycle_status: CycleStatus = Field(description="State.")
    outcome: str | None = Field(description="What it came to; null while it is not over.")
    is_complete: bool = Field(description="Whether all was read and applied, or is pending by key.")
    abnormal: bool | None = Field(description="Health as this window found it; null: it says nothing about it.")
    attempt: int = Field(description="Claims so far.")
    failed_attempts: int = Field(description="Claims that ended in a lost lease or a failure that may pass.")
    started_at: Instant | None = Field(description="First claim.")
    finished_at: Instant | None = Field(description="End; null while it is not over.")
    next_eligible_at: Instant | None = Field(description="Not to be worked on before this.")
    lease_owner: str | None = Field(description="Who works on it now.")
    lease_until: Instant | None = Field(description="Until when, unless the lease is renewed.")
    fetched_count: int = Field(description="Rows read from answers.")
    new_count: int = Field(description="Rows that were not there before.")
    changed_count: int = Field(description="Rows whose values changed.")
    withdrawn_count: int = Field(description="Rows that their unit no longer gives.")
    quarantined_count: int = Field(description="Rows and units put to quarantine.")
    seen_count: int | None = Field(description="Items that a listing showed.")
    missed_count: int | None = Field(description="Open items that a complete listing did not show.")
    closed_count: int | None = Field(description="Items closed.")
    list_page_count: int = Field(description="List pages read.")
    detail_request_count: int = Field(description="Details asked for.")
    detail_failure_count: int = Field(description="Details that failed and are pending.")
    detail_skipped_count: int = Field(description="Details left out for a budget.")
    budget_exhausted_reason: str | None = Field(description="Which budget ended it, or its last slice.")
    success_reason: str | None = Field(description="`nothing_due` where nothing had to be done.")
    failure_kind: str | None = Field(description="retriable, terminal or refused.")
    failure_reason: str | None = Field(description="Why it failed, in a line.")
    failure_cause_summary: str | None = Field(description="What was seen.")


class Slice(Shape):
    """What one claim of a cycle asked for; a claim that sent no request has none."""

    attempt: int = Field(description="Which claim.")
    requests: int = Field(description="Answers kept.")
    tries: int = Field(description="Requests sent for them, retries included.")
    failures: int = Field(description="Of the answers, errors and block pages.")
    applied: int = Field(description="Of the answers, those that were applied.")
    bytes: int = Field(description="Bytes of the decoded answers.")
    first_sent_at: Instant = Field(description="First request.")
    last_received_at: Instant = Field(description="Last answer.")


class Fetch(Shape):
    """One request sent and what came back; its bytes are in the raw store under their hash."""

    fetch_id: int = Field(description="Its number.")
    attempt: int = Field(description="Claim that asked.")
    request_key: str = Field(description="Stable name of the request, without secrets.")
    unit: str = Field(description="Logical request that it is a page of.")
    page: int = Field(description="Order within the unit.")
    is_last: bool = Field(description="Whether no page follows.")
    session_date: date | None = Field(description="Session date that it asks for.")
    sent_at: Instant = Field(description="When it was sent.")
    received_at: Instant = Field(description="When its answer was stored.")
    answer_class: AnswerClass = Field(description="What the answer is.")
    http_status: int | None = Field(description="HTTP status; null where no answer came.")
    sha256: str | None = Field(description="Hash of the decoded body, in hex.")
    size: int | None = Field(description="Bytes of the decoded body.")
    masked: bool = Field(description="Whether one of our own secrets was masked in it.")
    tries: int = Field(description="Requests sent until this answer.")
    error: str | None = Field(description="What went wrong.")
    applied_at: Instant | None = Field(description="When its unit was last applied.")
    applied_by: int | None = Field(description="Cycle that applied it last.")
    parser_version: int | None = Field(description="Parser that read it last.")
    rows_read: int | None = Field(description="Rows that the parser gave.")


class WholeCycle(Cycle):
    """A cycle with what it did."""

    worked_by: str | None = Field(description="Who claimed it last; kept when the lease is over.")
    log_link: str | None = Field(
        description="Airflow's page of the task that worked on it last, as a path on this server; null where no task "
        "did. Airflow keeps logs for a while only."
    )
    slices: list[Slice] = Field(description="What each claim asked for, in order.")
    fetches: list[Fetch] = Field(description=f"The first {FETCHES_SHOWN} requests, in order.")
    fetches_next_cursor: str | None = Field(description="Cursor for /cycles/{cycleId}/fetches; null: these are all.")


class Run(Shape):
    """A window that ended well or failed, as the history has it: none in progress, none out of budget."""

    cycle_id: int = Field(description="Number of its cycle.")
    stream: str = Field(description="Stream.")
    source: str = Field(description="Source.")
    run_status: Literal["SUCCESS", "FAILED"] = Field(description="How the window ended.")
    cycle_status: CycleStatus = Field(description="The same in the words of cycles.")
    outcome: str = Field(description="What it came to: a success may be partial.")
    is_budget_exhausted: bool = Field(description="Whether a budget ended it; such a window is in /cycles, not here.")
    budget_exhausted_reason: str | None = Field(description="Which budget.")
    detail_skipped_count: int = Field(description="Details left out for a budget.")
    kind: str = Field(description="scheduled or make_up.")
    slot: str = Field(description="Scheduled instant in UTC.")
    run_date: date = Field(description="Date of the window in Seoul.")
    window_start: Instant = Field(description="When the window opened.")
    due_at: Instant = Field(description="When it was expected to be done.")
    session_date: date | None = Field(description="Session date, in the market's calendar.")
    started_at: Instant | None = Field(description="First claim.")
    finished_at: Instant = Field(description="End.")
    attempt: int = Field(description="Claims.")
    list_page_count: int = Field(description="List pages read.")
    fetched_count: int = Field(description="Rows read.")
    new_count: int = Field(description="New rows.")
    changed_count: int = Field(description="Changed rows.")
    withdrawn_count: int = Field(description="Withdrawn rows.")
    quarantined_count: int = Field(description="Rows and units put to quarantine.")
    detail_request_count: int = Field(description="Details asked for.")
    detail_failure_count: int = Field(description="Details that failed.")
    abnormal: bool | None = Field(description="Health as it found it.")
    success_reason: str | None = Field(description="`nothing_due` where nothing had to be done.")
    failure_kind: str | None = Field(description="retriable, terminal or refused.")
    failure_reason: str | None = Field(description="Why it failed.")
    failure_cause_summary: str | None = Field(description="What was seen.")


@router.get("/cycles")
@access.reads
def list_cycles(
    warehouse: Warehoused,
    stream: Annotated[Text | None, Query(description="Of one stream.")] = None,
    mode: Annotated[Mode | None, Query(description="Of one mode.")] = None,
    status: Annotated[CycleStatus | None, Query(description="In one state.")] = None,
    run_id: Annotated[Text | None, Query(alias="runId", description="Chunks of one job run.")] = None,
    run_date_from: FirstDate = None,
    run_date_to: LastDate = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Cycle]:
    """List cycles, the newest first; with run dates, the windows of those dates."""
    values = {"stream": stream, "mode": mode, "status": status, "run_id": run_id}
    asked = question(list="cycles", first=run_date_from, last=run_date_to, **values)
    values = {name: None if value is None else str(value) for name, value in values.items()}
    with warehouse.reading() as (connection, _):
        if run_date_from is None and run_date_to is None:
            (before,) = place_of(cursor, asked, whole)
            statement = query("ops_cycles.newest") if run_id is None else query("ops_cycles.of_run")
            rows = connection.execute(statement, {**values, "before": before, "limit": limit + 1}).fetchall()
            return page_of(rows, limit, Cycle, asked, lambda row: (row["cycle_id"],))
        rows = connection.execute(
            query("ops_cycles.by_date"), {**values, **_dates(run_date_from, run_date_to, cursor, asked, limit)}
        ).fetchall()
    return page_of(rows, limit, Cycle, asked, lambda row: (row["run_date"], row["cycle_id"]))


@router.get("/cycles/{cycle_id}")
@access.reads
def read_cycle(warehouse: Warehoused, request: Request, cycle_id: Number) -> WholeCycle:
    """One cycle with its slices, its first fetches, and the way to the log of who worked on it last."""
    with warehouse.reading() as (connection, _):
        row = _cycle(connection, cycle_id)
        slices = connection.execute(query("ops_cycles.slices"), {"cycle": cycle_id}).fetchall()
        fetches = _fetches(connection, cycle_id, None, FETCHES_SHOWN)
    # Airflow's own pages begin where this app is mounted.
    root = request.scope.get("root_path", "").removesuffix("/daybook")
    return WholeCycle(
        **row,
        log_link=log_link(row["worked_by"], root),
        slices=[Slice(**each) for each in slices],
        fetches=fetches.items,
        fetches_next_cursor=fetches.next_cursor,
    )


@router.get("/cycles/{cycle_id}/fetches")
@access.reads
def list_fetches(warehouse: Warehoused, cycle_id: Number, limit: Limit = 100, cursor: Cursor = None) -> Page[Fetch]:
    """List what a cycle asked for, in order."""
    with warehouse.reading() as (connection, _):
        _cycle(connection, cycle_id)
        return _fetches(connection, cycle_id, cursor, limit)


@router.get("/runs", tags=["runs"])
@access.reads
def list_runs(
    warehouse: Warehoused,
    stream: Annotated[Text | None, Query(description="Of one stream.")] = None,
    run_status: Annotated[
        Literal["SUCCESS", "FAILED"] | None, Query(alias="runStatus", description="That ended so.")
    ] = None,
    run_date_from: FirstDate = None,
    run_date_to: LastDate = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Run]:
    """List the history: one row for each window that ended well or failed, the newest date first."""
    values = {"stream": stream, "status": run_status}
    asked = question(list="runs", first=run_date_from, last=run_date_to, **values)
    with warehouse.reading() as (connection, _):
        rows = connection.execute(
            query("ops_cycles.history"), {**values, **_dates(run_date_from, run_date_to, cursor, asked, limit)}
        ).fetchall()
    return page_of(rows, limit, Run, asked, lambda row: (row["run_date"], row["cycle_id"]))


def log_link(worked_by: str | None, root: str = "") -> str | None:
    """Return the path of Airflow's page for the task that named itself so; None where it was no task."""
    found = _TASK.match(worked_by or "")
    if found is None:
        return None
    dag, run, task = (quote(found[part], safe="") for part in ("dag", "run", "task"))
    lane = f"/mapped/{found['lane']}" if found["lane"] else ""
    return f"{root}/dags/{dag}/runs/{run}/tasks/{task}{lane}"


def _cycle(connection: Connection, cycle_id: int) -> Row:
    row = connection.execute(query("ops_cycles.one"), {"cycle": cycle_id}).fetchone()
    if row is None:
        raise NotThere(f"There is no cycle {cycle_id}.")
    return row


def _fetches(connection: Connection, cycle_id: int, cursor: str | None, limit: int) -> Page[Fetch]:
    asked = question(list="fetches", cycle=cycle_id)
    (after,) = place_of(cursor, asked, whole)
    values = {"cycle": cycle_id, "after": after, "limit": limit + 1}
    rows = connection.execute(query("ops_cycles.fetches"), values).fetchall()
    return page_of(rows, limit, Fetch, asked, lambda row: (row["fetch_id"],))


def _dates(first: date | None, last: date | None, cursor: str | None, asked: str, limit: int) -> dict[str, object]:
    """The values of a list by date: its range, and the place after which the page begins."""
    before_date, before = place_of(cursor, asked, date.fromisoformat, whole)
    return {
        "first": first or date.min,
        # A page begins at its place: told by the date too, the index goes there at once instead of from the newest.
        "last": min(last or date.max, before_date or date.max),
        "before_date": before_date,
        "before": before,
        "limit": limit + 1,
    }
