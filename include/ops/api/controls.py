"""Controls: what is frozen, drained or out of service, by whom, why and since when; and the way to change it.

Promises: a change is the engine's own, under the gate, the same as from the DAG and the command line. Never: what runs
is stopped.
"""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import Field

from include.engine import controls
from include.engine.db import Row, query
from include.ops.api import access
from include.ops.api.shapes import Instant, Shape, Warehoused, Why, Wish

router = APIRouter(tags=["controls"])


class Control(Shape):
    """Something that is controlled."""

    scope: controls.Scope = Field(description="What kind of thing.")
    name: str = Field(description="Which one; * where there is only one.")
    state: Literal["frozen", "draining", "running", "off", "on", "retired"] = Field(description="How it stands.")
    reason: str | None = Field(description="Why.")
    changed_by: str | None = Field(description="Who.")
    changed_at: Instant | None = Field(description="Since when.")
    streams: int = Field(description="Streams that it covers.")
    running: int = Field(description="Slices that still run there.")
    words: str = Field(description="The same in a sentence.")


class Change(Wish):
    """What somebody wants changed."""

    action: controls.Action = Field(
        description="freeze and drain stop new claims, resume allows them; retire and activate take a stream out of "
        "service and back; off and on are for dispatch."
    )
    scope: controls.Scope = Field(description="What it is about.")
    name: str = Field(
        default="", max_length=200, pattern=r"^[^\x00]*$", description="Which one; empty for `all` and `dispatch`."
    )
    why: Why


class Changed(Shape):
    """What a change came to."""

    is_new: bool = Field(description="Whether anything was written; what held already keeps its who and since when.")
    state: str = Field(description="How it stands now.")
    who: str = Field(description="Who made it so.")
    why: str = Field(description="Why.")
    since: Instant | None = Field(description="Since when.")
    words: str = Field(description="The same in a sentence.")


def control_of(row: Row) -> Control:
    """Return a listed control as it is shown."""
    return Control(**row, words=controls.describe(row))


@router.get("/controls")
@access.reads
def list_controls(warehouse: Warehoused) -> list[Control]:
    """List everything that is controlled, by an operator or by `config/controls.yaml`."""
    with warehouse.reading() as (connection, _):
        return [control_of(row) for row in connection.execute(query("controls.list")).fetchall()]


@router.post("/controls")
@access.writes
def change(warehouse: Warehoused, request: Request, body: Change) -> Changed:
    """Freeze, drain, resume; retire, activate; switch dispatch off and on."""
    wanted = controls.Change(body.action, body.scope, body.name, access.who(request), body.why)
    with warehouse.writing() as url:
        return Changed(**vars(controls.apply(url, wanted)))
