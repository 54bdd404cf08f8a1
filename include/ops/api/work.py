"""Job runs with their progress, and the keys that wait.

Promises: progress is counted from the chunks themselves. Never: an estimate is given where nothing moved in the last
hour.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field

from include.contract import Mode, PendingReason
from include.engine.db import Connection, Row, query
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
    page_of,
    place_of,
    question,
)

router = APIRouter(tags=["job runs"])


class JobRun(Shape):
    """One thing asked for: a backfill, a replay, or a poll of named keys."""

    run_id: str = Field(description="Its name.")
    mode: Mode = Field(description="poll, backfill or replay.")
    streams: list[str] = Field(description="Streams, in order.")
    range_start: date | None = Field(description="First session date, inclusive.")
    range_end: date | None = Field(description="Last session date, inclusive.")
    keys: list[str] = Field(description="Keys that it is limited to; empty for all.")
    force: bool = Field(description="Whether chunks that are done are done once more.")
    replay_into: Literal["overwrite", "versioned"] | None = Field(description="Where a replay writes.")
    reason: str | None = Field(description="Why, in the words of who asked.")
    outcome: Literal["success", "partial", "failed_retriable", "failed_terminal"] | None = Field(
        description="What it came to; null while it is not over."
    )
    requested_by: str = Field(description="Who asked.")
    reopened_count: int = Field(description="How often its failed chunks were opened again.")
    reopened_by: str | None = Field(description="Who opened them last.")
    created_at: Instant = Field(description="When it was asked for.")
    finished_at: Instant | None = Field(description="When its last chunk ended.")


class Progress(Shape):
    """How far a run, or one stream of it, is."""

    total: int = Field(description="Chunks written so far; all of them where `isPlanned`.")
    done: int = Field(description="Chunks that succeeded.")
    failed: int = Field(description="Chunks that failed.")
    out_of_budget: int = Field(description="Chunks that a budget ended.")
    running: int = Field(description="Chunks that are being worked on.")
    open: int = Field(description="Chunks that wait.")
    partial: int = Field(description="Of the chunks done, those with keys that failed.")
    is_planned: bool = Field(description="Whether every chunk has been written.")
    last_good: str | None = Field(description="Slot of the chunk that succeeded last.")
    restart_at: str | None = Field(description="Slot at which the run goes on when it is started again.")
    first_failure: str | None = Field(description="The first chunk that failed, and why.")
    rows_read: int = Field(description="Rows read.")
    rows_new: int = Field(description="New rows.")
    rows_changed: int = Field(description="Changed rows.")
    rows_withdrawn: int = Field(description="Withdrawn rows.")


class StreamProgress(Progress):
    """How far one stream of a run is."""

    stream: str = Field(description="Stream.")


class WholeJobRun(JobRun):
    """A job run with its progress."""

    progress: Progress = Field(description="Of the whole run.")
    by_stream: list[StreamProgress] = Field(description="Of each stream.")
    chunks_per_hour: float | None = Field(description="Pace of the last hour; null where nothing ended in it.")
    expected_end: Instant | None = Field(
        description="When it would be done at this pace; null where it is over, not planned, or nothing moves."
    )


class PendingKey(Shape):
    """A key that is still to be fetched, or fetched again."""

    stream: str = Field(description="Stream.")
    key: str = Field(description="Request key.")
    why: PendingReason = Field(description="Why it waits.")
    session_date: date | None = Field(description="Session date.")
    attempts: int = Field(description="How often it was tried since it waits.")
    next_try_at: Instant | None = Field(description="Not before; null once it was given up.")
    give_up_at: Instant | None = Field(description="When it is given up and told.")
    given_up_at: Instant | None = Field(description="When it was given up; only keys or force ask again.")
    last_error: str | None = Field(description="What the last try came to.")
    cycle_id: int | None = Field(description="Cycle that last touched it.")
    created_at: Instant = Field(description="Since when it waits.")


@router.get("/jobRuns")
@access.reads
def list_job_runs(
    warehouse: Warehoused,
    mode: Annotated[Mode | None, Query(description="Of one mode.")] = None,
    is_open: Annotated[bool | None, Query(alias="isOpen", description="Only those that are not over, or are.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[JobRun]:
    """List job runs, the newest first."""
    asked = question(list="jobRuns", mode=mode, is_open=is_open)
    before, before_id = place_of(cursor, asked, datetime.fromisoformat, str)
    values = {"mode": mode and str(mode), "is_open": is_open, "before": before, "before_id": before_id}
    with warehouse.reading() as (connection, _):
        rows = connection.execute(query("ops_work.job_runs"), {**values, "limit": limit + 1}).fetchall()
    return page_of(rows, limit, JobRun, asked, lambda row: (row["created_at"], row["run_id"]))


@router.get("/jobRuns/{run_id}")
@access.reads
def read_job_run(warehouse: Warehoused, run_id: Annotated[Text, Path(description="Name of the run.")]) -> WholeJobRun:
    """One job run with its progress, in all and by stream, its pace, and when it would be done."""
    with warehouse.reading() as (connection, now):
        row = connection.execute(query("jobs.find"), {"run_id": run_id}).fetchone()
        if row is None:
            raise NotThere("There is no job run of this name.")
        whole = _progress(connection, run_id, None)
        by_stream = [
            StreamProgress(stream=stream, **_progress(connection, run_id, stream)) for stream in row["streams"]
        ]
        pace = connection.execute(query("ops_work.pace"), {"run_id": run_id, "now": now}).fetchone()
    assert pace is not None
    per_hour = _per_hour(pace, now)
    left = whole["open"] + whole["running"]
    is_moving = per_hour and left and whole["is_planned"]
    return WholeJobRun(
        **row,
        progress=Progress(**whole),
        by_stream=by_stream,
        chunks_per_hour=per_hour,
        expected_end=now + timedelta(hours=left / per_hour) if is_moving and per_hour else None,
    )


@router.get("/pending", tags=["pending"])
@access.reads
def list_pending(
    warehouse: Warehoused,
    stream: Annotated[Text | None, Query(description="Of one stream.")] = None,
    why: Annotated[PendingReason | None, Query(description="For one reason.")] = None,
    given_up: Annotated[bool | None, Query(alias="givenUp", description="Only given up, or not given up.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[PendingKey]:
    """List keys that wait, by stream and key."""
    asked = question(list="pending", stream=stream, why=why, given_up=given_up)
    after_stream, after = place_of(cursor, asked, _text, _text)
    values = {"stream": stream, "why": why and str(why), "given_up": given_up}
    with warehouse.reading() as (connection, _):
        rows = connection.execute(
            query("ops_work.pending"), {**values, "after_stream": after_stream, "after": after, "limit": limit + 1}
        ).fetchall()
    return page_of(rows, limit, PendingKey, asked, lambda row: (row["stream"], row["key"]))


def _progress(connection: Connection, run_id: str, stream: str | None) -> Row:
    row = connection.execute(query("jobs.progress"), {"run_id": run_id, "stream": stream}).fetchone()
    assert row is not None
    return row


def _per_hour(pace: Row, now: datetime) -> float | None:
    """Chunks per hour, over the last hour or since the first of its chunks began."""
    if not pace["ended"]:
        return None
    length = min(now - pace["first_started_at"], timedelta(hours=1)) if pace["first_started_at"] else timedelta(hours=1)
    return round(pace["ended"] / max(length.total_seconds(), 1.0) * 3600, 2)


def _text(value: Any) -> str:
    """Read a text out of a cursor."""
    if not isinstance(value, str) or "\x00" in value:
        raise ValueError("no text")
    return value
