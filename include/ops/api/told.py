"""What is wrong and what was told of it: incidents, open or over, and alerts, sent, waiting or put aside.

Promises: both are shown as they were written; what Slack refused for good is decided on with who and why. Never: one is
opened, closed or sent here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from include.engine import alerts
from include.engine.db import Connection, query
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

router = APIRouter(tags=["alerts"])

Severity = Literal["info", "warning", "error", "critical"]
Number = Annotated[int, Path(ge=1, lt=2**63, description="Number of the alert.")]


class Alert(Shape):
    """A message for Slack, from the moment at which its fact was known."""

    alert_id: int = Field(description="Its number: they are sent in this order, late ones as they come.")
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
    refused_at: Instant | None = Field(description="When Slack refused it for good, so that it was put aside.")
    refused_why: str | None = Field(description="What Slack said.")
    settled_by: str | None = Field(description="Who had it tried again or dropped; null while nobody has decided.")
    settled_why: str | None = Field(description="Why so.")


class Settling(Wish):
    """Why something is done with an alert that was put aside."""

    why: Why


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
    issue_url: str | None = Field(description="Its issue on GitHub; null where it has none.")


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
    is_put_aside: Annotated[
        bool | None, Query(alias="isPutAside", description="Only those that Slack refused for good, or no such.")
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Alert]:
    """List alerts, the newest first."""
    filters = {"severity": severity, "is_sent": is_sent, "is_put_aside": is_put_aside}
    asked = question(list="alerts", **filters)
    (before,) = place_of(cursor, asked, whole)
    values = {**filters, "before": before, "limit": limit + 1}
    with warehouse.reading() as (connection, _):
        rows = connection.execute(query("ops_work.alerts"), values).fetchall()
    return page_of(rows, limit, Alert, asked, lambda row: (row["alert_id"],))


@router.post("/alerts/{alert_id}/retry")
@access.writes
def retry(warehouse: Warehoused, request: Request, alert_id: Number, body: Settling) -> Alert:
    """Have an alert that was put aside sent again."""
    _alert(warehouse, alert_id)
    with warehouse.writing() as url:
        alerts.try_again(url, alert_id, access.who(request), body.why)
    return _alert(warehouse, alert_id)


@router.post("/alerts/{alert_id}/drop")
@access.writes
def drop(warehouse: Warehoused, request: Request, alert_id: Number, body: Settling) -> Alert:
    """Leave an alert that was put aside unsent for good; it is kept."""
    _alert(warehouse, alert_id)
    with warehouse.writing() as url:
        alerts.drop(url, alert_id, access.who(request), body.why)
    return _alert(warehouse, alert_id)


def _alert(warehouse: Warehouse, alert_id: int) -> Alert:
    with warehouse.reading() as (connection, _):
        row = connection.execute(query("ops_work.alert"), {"id": alert_id}).fetchone()
    if row is None:
        raise NotThere(f"There is no alert {alert_id}.")
    return Alert(**row)
