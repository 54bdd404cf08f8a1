"""The summary: every stream as it stands today, and what an operator would want to know first.

Promises: one picture of one instant; rates come from the states of cycles, and what a budget ended stands apart. What
cannot be known says so instead of showing nothing. Never: a number is kept between two calls.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Literal, LiteralString

from fastapi import APIRouter, Request
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from include.contract import CycleStatus
from include.engine.db import Connection, Row, query
from include.ops import paused
from include.ops.api import access
from include.ops.api.controls import Control, control_of
from include.ops.api.shapes import SEOUL, Instant, Shape, Warehoused, milliseconds
from include.ops.api.snapshots import CaptureStatus
from include.ops.api.told import Incident, open_incidents
from include.version import VERSION

router = APIRouter(tags=["summary"])

# Days over which the rate of success is taken, today among them.
DAYS = 30
# How many orphaned rows are critical; one is a warning.
CRITICAL_ORPHANS = 1_000

log = logging.getLogger(__name__)


class PausedDag(Shape):
    """A DAG that somebody paused in Airflow: its windows are late all the same."""

    dag_id: str = Field(description="DAG.")
    paused_by: str | None = Field(description="Who; null where Airflow's audit log does not say.")
    since: Instant | None = Field(description="Since when; null where the audit log does not say.")


class Rate(Shape):
    """How the windows of the last 30 days ended."""

    days: int = Field(description="Days, today among them.")
    succeeded: int = Field(description="Windows that ended SUCCESS.")
    failed: int = Field(description="Windows that ended FAILED.")
    out_of_budget: int = Field(description="Windows that a budget ended: neither a success nor a failure.")
    success_rate: float | None = Field(description="Succeeded ÷ (succeeded + failed); null where there was neither.")


class Today(Shape):
    """The windows of today's date in Seoul, by state."""

    run_date: date = Field(description="Today in Seoul.")
    windows: int = Field(description="Windows that there are so far.")
    by_status: dict[CycleStatus, int] = Field(
        description="How many are in each state; states without any are left out."
    )


class StreamSummary(Shape):
    """How a stream stands."""

    stream: str = Field(description="Stream.")
    source: str = Field(description="Source.")
    title: str = Field(description="What a person calls it.")
    job: str = Field(description="DAG that works it.")
    in_service: bool = Field(description="Whether windows are opened for it.")
    sla_eligible: bool = Field(description="Whether the 09:00 snapshot expects it.")
    held_why: str | None = Field(
        description="Why nothing of it may be claimed: frozen, or out of service, by whom, since when and why."
    )
    awaits_connection: bool = Field(
        description="Whether it is out of service because its source never had a connection."
    )
    paused_dag: PausedDag | None = Field(description="Its DAG, where that is paused in Airflow.")
    cycle_id: int | None = Field(description="Its newest window that has begun.")
    cycle_status: CycleStatus | None = Field(description="State of that window; null where there was none yet.")
    outcome: str | None = Field(description="What it came to.")
    window_start: Instant | None = Field(description="When it opened.")
    due_at: Instant | None = Field(description="When it was expected to be done.")
    is_late: bool = Field(description="Whether that time has passed without success.")
    session_date: date | None = Field(description="Its session date, in the market's calendar.")
    finished_at: Instant | None = Field(description="When it ended.")
    next_eligible_at: Instant | None = Field(description="When it is worked on again.")
    budget_exhausted_reason: str | None = Field(description="Which budget ended it, or its last slice.")
    success_reason: str | None = Field(description="`nothing_due` where nothing had to be done.")
    failure_reason: str | None = Field(description="Why it failed.")
    failure_cause_summary: str | None = Field(description="What was seen.")
    abnormal: bool = Field(description="Health, as its last window that says anything left it.")
    checkpoint: date | None = Field(description="Session up to which everything is held or explained.")
    last_success_at: Instant | None = Field(description="When a window last ended well.")
    last_success_session: date | None = Field(description="Session of that window.")
    freshness_seconds: int | None = Field(description="Seconds since then; null where none ever did.")
    windows_behind: int = Field(description="Scheduled windows that are due and came after the last good one.")
    pending: int = Field(description="Keys that wait, rechecks aside.")
    given_up: int = Field(description="Keys that were given up.")
    quarantined: int = Field(description="Open quarantine entries.")
    today: Today = Field(description="The windows of today.")
    rate: Rate = Field(serialization_alias="last30Days", description="How the windows of 30 days ended.")


class Orphans(Shape):
    """Rows that maintenance should have deleted."""

    count: int = Field(description="Seen rows older than 48 hours whose cycle is over.")
    level: Literal["ok", "warning", "critical"] = Field(description="1 is a warning, 1,000 are critical.")


class KeptInterval(Shape):
    """How a host group was asked."""

    host_group: str = Field(description="Requests that their upstream counts together.")
    declared_ms: int = Field(description="Least time between two requests, as declared, in milliseconds.")
    shortest_ms: int | None = Field(description="Shortest time between two; null where there were not two.")
    is_kept: bool | None = Field(description="Whether the shortest is at least the declared one.")
    requests: int = Field(description="Requests whose answers were kept.")
    blocked_until: Instant | None = Field(description="No request before this, after a block page or a refusal.")
    blocked_reason: str | None = Field(description="What was seen.")


class LastSnapshot(Shape):
    """The newest 09:00 snapshot that is final."""

    snapshot_date: date = Field(description="Date in Seoul.")
    capture_status: CaptureStatus = Field(description="What it came to.")
    captured_at: Instant | None = Field(description="When it was taken.")
    captured_by: str | None = Field(description="By whom.")
    capture_offset_ms: int | None = Field(description="Milliseconds after the cutoff.")
    expected_count: int | None = Field(description="Streams expected.")
    late_count: int | None = Field(description="Streams late; null where there is no verdict.")
    miss_reason: str | None = Field(description="Why it was missed.")


class SinceYesterday(Shape):
    """What happened since yesterday began in Seoul."""

    since: Instant = Field(description="00:00 of yesterday in Seoul.")
    leases_expired: int = Field(description="Leases ended because their holder vanished.")
    stale_writes_refused: int = Field(
        description="Writes refused because their lease was over; nothing of them is kept."
    )
    intervals: list[KeptInterval] = Field(description="The shortest interval kept, by host group.")


class Summary(Shape):
    """Everything at a glance."""

    as_of: Instant = Field(description="The instant that this is a picture of, by the database's clock.")
    version: str = Field(description="Which release of Daybook answers.")
    streams: list[StreamSummary] = Field(description="Every stream that was ever declared.")
    incidents: list[Incident] = Field(description="What is wrong now, the worst first.")
    orphans: Orphans = Field(serialization_alias="seenRowsOlderThan48h", description="The orphan metric.")
    since_yesterday: SinceYesterday = Field(description="What happened since yesterday.")
    last_snapshot: LastSnapshot | None = Field(description="The newest final snapshot; null before the first.")
    controls: list[Control] = Field(description="What is controlled, by whom, why and since when.")
    paused_dags: list[PausedDag] | None = Field(description="DAGs paused in Airflow; null where it cannot be known.")
    paused_dags_unknown: str | None = Field(description="Why it cannot be known; null where it is.")


@router.get("/summary")
@access.reads
def read_summary(warehouse: Warehoused, request: Request) -> Summary:
    """Streams, controls, health and the last verdict, as one picture."""
    dags, unknown = _paused(request)
    with warehouse.reading() as (connection, now):
        today = now.astimezone(SEOUL).date()
        since = datetime.combine(today - timedelta(days=1), time(), SEOUL)
        orphans = _one(connection, query("ops_summary.orphans"), now=now)["number"]
        leases = _one(connection, query("ops_summary.leases"), since=since)
        intervals = connection.execute(query("ops_summary.intervals"), {"since": since}).fetchall()
        last = connection.execute(query("ops_summary.last_snapshot")).fetchone()
        return Summary(
            as_of=now,
            version=VERSION,
            streams=_streams(connection, now, today, dags or []),
            incidents=open_incidents(connection),
            orphans=Orphans(count=orphans, level=_level(orphans)),
            since_yesterday=SinceYesterday(
                since=since,
                leases_expired=leases["expired"],
                stale_writes_refused=leases["refused"],
                intervals=[_interval(row) for row in intervals],
            ),
            last_snapshot=LastSnapshot(**last, capture_offset_ms=milliseconds(last["capture_offset"]))
            if last
            else None,
            controls=[control_of(row) for row in connection.execute(query("controls.list")).fetchall()],
            paused_dags=dags,
            paused_dags_unknown=unknown,
        )


@router.get("/streams")
@access.reads
def list_streams(warehouse: Warehoused, request: Request) -> list[StreamSummary]:
    """The streams of the summary alone."""
    dags, _ = _paused(request)
    with warehouse.reading() as (connection, now):
        return _streams(connection, now, now.astimezone(SEOUL).date(), dags or [])


def _paused(request: Request) -> tuple[list[PausedDag] | None, str | None]:
    """The paused DAGs, or why they cannot be known."""
    try:
        found: list[paused.Paused] = request.app.state.paused_dags()
    except SQLAlchemyError as error:
        log.warning("Airflow's database does not say which DAGs are paused: %s", type(error).__name__)
        return None, "Airflow's own database gives no answer, so it is not known which DAGs are paused."
    return [PausedDag(dag_id=each.dag_id, paused_by=each.who, since=each.since) for each in found], None


def _streams(connection: Connection, now: datetime, today: date, dags: Sequence[PausedDag]) -> list[StreamSummary]:
    ended: dict[str, Counter[str]] = defaultdict(Counter)
    of_today: dict[str, dict[CycleStatus, int]] = defaultdict(dict)
    first = today - timedelta(days=DAYS - 1)
    for row in connection.execute(query("ops_summary.states"), {"first": first, "today": today}).fetchall():
        ended[row["stream"]][row["cycle_status"]] += row["number"]
        if row["today"]:
            of_today[row["stream"]][CycleStatus(row["cycle_status"])] = row["today"]
    by_name = {each.dag_id: each for each in dags}
    found = []
    for row in connection.execute(query("ops_summary.streams"), {"now": now}).fetchall():
        name, good = row["stream"], row["last_success_at"]
        windows = of_today[name]
        found.append(
            StreamSummary(
                **row,
                paused_dag=by_name.get(row["job"]),
                freshness_seconds=None if good is None else max(0, round((now - good).total_seconds())),
                today=Today(run_date=today, windows=sum(windows.values()), by_status=windows),
                rate=_rate(ended[name]),
            )
        )
    return found


def _rate(ended: Counter[str]) -> Rate:
    good, bad = ended[CycleStatus.SUCCESS], ended[CycleStatus.FAILED]
    return Rate(
        days=DAYS,
        succeeded=good,
        failed=bad,
        out_of_budget=ended[CycleStatus.BUDGET_EXHAUSTED],
        success_rate=round(good / (good + bad), 4) if good + bad else None,
    )


def _level(orphans: int) -> Literal["ok", "warning", "critical"]:
    return "critical" if orphans >= CRITICAL_ORPHANS else "warning" if orphans else "ok"


def _interval(row: Row) -> KeptInterval:
    shortest = row["shortest"]
    return KeptInterval(
        **row,
        declared_ms=milliseconds(row["interval"]) or 0,
        shortest_ms=milliseconds(shortest),
        is_kept=None if shortest is None else shortest >= row["interval"],
    )


def _one(connection: Connection, statement: LiteralString, **values: object) -> Row:
    row = connection.execute(statement, values).fetchone()
    assert row is not None
    return row
