"""The 09:00 snapshot of a date, as what it is.

Promises: before 09:00 nothing is late and nothing is listed; where there is no verdict, there is no number, and above
all no zero. Never: a verdict is computed here.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from include.contract import CycleStatus
from include.engine import snapshot
from include.ops.api import access
from include.ops.api.shapes import SEOUL, Day, Instant, Shape, Warehoused, milliseconds

router = APIRouter(tags=["snapshot"])

CaptureStatus = Literal["PENDING", "CAPTURED", "MISSED", "NOT_APPLICABLE", "UNAVAILABLE"]


class SnapshotItem(Shape):
    """How one expected stream stood at the cutoff."""

    stream: str = Field(description="Stream.")
    source: str = Field(description="Source.")
    cycle_id: int | None = Field(description="Cycle judged; null where the slot had none.")
    slot: str = Field(description="Window judged.")
    run_date: date = Field(description="Date of the window in Seoul, which may be an earlier one.")
    window_start: Instant = Field(description="When the window opened.")
    due_at: Instant = Field(description="When it was due.")
    session_date: date | None = Field(description="Session date, in the market's calendar.")
    cycle_status: CycleStatus = Field(description="State at the cutoff.")
    is_late: bool = Field(description="Whether it counts as late: anything but SUCCESS.")
    fetched_count: int = Field(description="Rows read by then.")
    is_complete: bool = Field(description="Whether all was read and applied, or is pending by key.")
    abnormal: bool = Field(description="Health of the stream.")
    close_guarded: bool = Field(description="Whether this state forbids that items are missed or closed.")
    frozen: bool = Field(description="Whether its work was frozen or drained.")
    frozen_why: str | None = Field(description="By whom, since when and why.")
    failure_reason: str | None = Field(description="Why it failed.")
    attempt: int = Field(description="Claims by then.")
    gate_at: Instant | None = Field(description="When that state was written, by the gate.")


class SlaSnapshot(Shape):
    """The verdict of a date's 09:00 in Seoul, or why there is none."""

    snapshot_date: date = Field(description="Date in Seoul.")
    scheduled_at: Instant = Field(description="09:00:00 in Seoul of that date.")
    capture_status: CaptureStatus = Field(description="UNAVAILABLE where the date has no header at all.")
    captured_at: Instant | None = Field(description="When the gate was held for it.")
    captured_by: str | None = Field(description="Who took it.")
    capture_offset_ms: int | None = Field(description="Milliseconds after the cutoff; the state is that of the cutoff.")
    miss_reason: str | None = Field(description="Why it was missed.")
    late_before_notification_count: int | None = Field(
        description="Streams that were late. 0 before 09:00; null, never 0, where there is no verdict."
    )
    items: list[SnapshotItem] | None = Field(
        description="Every expected stream. Empty before 09:00; null where there is no verdict."
    )
    words: str = Field(description="The same in a sentence.")


@router.get("/slaSnapshot")
@access.reads
def read_snapshot(
    warehouse: Warehoused,
    day: Annotated[Day | None, Query(alias="date", description="Date in Seoul; today where none is given.")] = None,
) -> SlaSnapshot:
    """The snapshot of a date in Seoul."""
    with warehouse.reading() as (connection, now):
        found = snapshot.read_on(connection, day or now.astimezone(SEOUL).date())
    return SlaSnapshot(
        snapshot_date=found.day,
        scheduled_at=found.scheduled_at,
        capture_status=found.status,  # type: ignore[arg-type]
        captured_at=found.captured_at,
        captured_by=found.captured_by,
        capture_offset_ms=milliseconds(found.offset),
        miss_reason=found.miss_reason,
        late_before_notification_count=found.late,
        items=None if found.items is None else [SnapshotItem(**vars(item)) for item in found.items],
        words=found.words,
    )
