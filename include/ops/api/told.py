"""What is wrong and what was told of it: incidents, open or over, and alerts, sent or waiting.

Promises: both are shown as they were written. Never: one is opened, closed, sent or silenced here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from include.engine.db import Connection, query
from include.ops.api import access
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
    whole,
)

router = APIRouter(tags=["alerts"])

Severity = Literal["info", "warning", "error", "critical"]


class Alert(Shape):
    """A message for Slack, from the moment at which its fact was known."""

    alert_id: int = Field(description="Its number: they are sent in this order.")
    alert_key: str = Field(description="The fact, so that it is told once.")
    severity: Severity = Field(description="How bad.")
    text: str = Field(description="Message.")
    attempts: int = Field(description="Tries so far.")
    next_try_at: Instant | None = Field(description="Not before.")
    last_error: str | None = Field(description="Why the last try failed.")
    created_at: Instant = Field(description="When the fact was known.")
    sent_at: Instant | None = Field(description="When it was delivered; null while it waits, or was silenced.")
    incident_id: int | None = Field(description="Incident that it tells of; null where it tells of none.")
    silenced_at: Instant | None = Field(description="When a silence kept it from being sent.")


class Incident(Shape):
    """Something that is wrong and lasts; it opens and closes by itself."""

    incident_id: int = Field(description="Its number.")
    incident_key: str = Field(description="What is wrong, of what: kind/what; one of a key is open at a time.")
    kind: str = Field(description="What kind of thing is wrong.")
    stream: str | None = Field(description="Stream that it is about; null where it is about none.")
    severity: Literal["warning", "error", "critical"] = Field(description="How bad it has been at worst.")
    text: str = Field(description="What was last seen, in words.")
    opened_at: Instant = Field(description="When it was first seen.")
    seen_at: Instant = Field(description="When it was last seen.")
    seen_count: int = Field(description="How often it was seen.")
    told_at: Instant = Field(description="When it was last told.")
    told_count: int = Field(description="How often it was told.")
    closed_at: Instant | None = Field(description="When it was over; null while it lasts.")
    closed_text: str | None = Field(description="What ended it.")


def open_incidents(connection: Connection) -> list[Incident]:
    """Return what is wrong now, the worst first."""
    return [Incident(**row) for row in connection.execute(query("ops_work.open_incidents")).fetchall()]


@router.get("/incidents", tags=["incidents"])
@access.reads
def list_incidents(
    warehouse: Warehoused,
    stream: Annotated[Text | None, Query(description="Of one stream.")] = None,
    is_open: Annotated[bool | None, Query(alias="isOpen", description="Only those that last, or are over.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Incident]:
    """List incidents, the newest first."""
    asked = question(list="incidents", stream=stream, is_open=is_open)
    (before,) = place_of(cursor, asked, whole)
    values = {"stream": stream, "is_open": is_open, "before": before, "limit": limit + 1}
    with warehouse.reading() as (connection, _):
        rows = connection.execute(query("ops_work.incidents"), values).fetchall()
    return page_of(rows, limit, Incident, asked, lambda row: (row["incident_id"],))


@router.get("/alerts")
@access.reads
def list_alerts(
    warehouse: Warehoused,
    severity: Annotated[Severity | None, Query(description="Of one severity.")] = None,
    is_sent: Annotated[bool | None, Query(alias="isSent", description="Only delivered, or only waiting.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Alert]:
    """List alerts, the newest first."""
    asked = question(list="alerts", severity=severity, is_sent=is_sent)
    (before,) = place_of(cursor, asked, whole)
    values = {"severity": severity, "is_sent": is_sent, "before": before, "limit": limit + 1}
    with warehouse.reading() as (connection, _):
        rows = connection.execute(query("ops_work.alerts"), values).fetchall()
    return page_of(rows, limit, Alert, asked, lambda row: (row["alert_id"],))
