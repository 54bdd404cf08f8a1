"""Analyses for readers who are logged in: state and summary of each, and the rest once it is opened.

Promises: opening one takes one of the user's quota of the day in Seoul, once for each filing and day, whatever is asked
at the same instant; a short filing takes none. A finished analysis is answered from memory. Never: key points are shown
to who has not opened them, and no user's answer is another's.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request
from pydantic import Field
from starlette.responses import Response

from include.engine.db import query, transaction
from include.ops.api import access
from include.ops.api.front import keeping, state_of
from include.ops.api.shapes import Instant, Shape, Warehoused

router = APIRouter(tags=["analyses"])

# How long a finished analysis is answered from memory, and may be shown without asking again, in seconds.
KEPT = 300
MOST_KEPT = 5_000
UNAVAILABLE, COMPLETED = "UNAVAILABLE", "COMPLETED"

Number = Annotated[str, Path(pattern=r"^[0-9]{14}$", description="Receipt number: fourteen digits.")]


class Analysis(Shape):
    """What the language model made of a filing, or where that stands."""

    rcept_no: str = Field(description="Receipt number.")
    status: str = Field(
        description="PENDING, PROCESSING, BODY_PENDING (its document is not there yet), BODY_PROCESSING, COMPLETED, "
        "FAILED (tried again), or UNAVAILABLE: there is and will be none."
    )
    corp_name: str | None = Field(description="Company; null where the filing is not known here.")
    report_name: str | None = Field(description="Title of the filing.")
    rcept_dt: date | None = Field(description="Day of receipt in Seoul.")
    kind: str | None = Field(description="Kind of filing, which chose the prompt.")
    doc_length: int | None = Field(description="Characters of its text.")
    summary: str | None = Field(description="One line.")
    is_revealed: bool = Field(description="Whether you have opened it today.")
    key_points: list[str] | None = Field(description="Key points; null until it is opened.")
    sentiment: str | None = Field(description="positive, negative or neutral; null until it is opened.")
    model: str | None = Field(description="Model that said so; null until it is opened.")
    prompt_version: str | None = Field(description="Wording with which it was asked; null until it is opened.")
    completed_at: Instant | None = Field(description="When it was finished.")


class Revealed(Shape):
    """An analysis that is open now, and what is left of the day's quota."""

    analysis: Analysis = Field(description="The analysis.")
    cost: int = Field(description="How many it took from the quota: 1, or 0 where it was open already or is short.")
    used: int = Field(description="How many of today's are used.")
    quota: int = Field(description="How many a day there are.")
    resets_at: Instant = Field(description="When the next day begins in Seoul.")


@router.get("/ai/analyze/{rcept_no}", name="read_analysis", response_model=Analysis)
@access.signed_in
def read(request: Request, warehouse: Warehoused, rcept_no: Number) -> Response:
    """The analysis of a filing: state and summary, and all of it where you have opened it today."""
    user, state = access.who(request), state_of(request)
    row = state.analyses.get(rcept_no)
    is_revealed = bool(state.revealed.get((user, rcept_no)))
    if row is None or not is_revealed:
        asked = query("ops_disclosures.analysis") if row is None else query("ops_disclosures.is_revealed")
        with warehouse.reading() as (connection, _):
            found = connection.execute(asked, {"user": user, "rcept_no": rcept_no}).fetchone()
        assert found is not None
        is_revealed = found["is_revealed"]
        if row is None:
            row = found
            if row["status"] == COMPLETED:
                state.analyses.put(rcept_no, row, KEPT)
        if is_revealed:
            state.revealed.put((user, rcept_no), True, _seconds(found["day_left"]))
    seconds = KEPT if row["status"] == COMPLETED else 0
    return keeping(request, _shown(row, is_revealed=is_revealed), seconds if is_revealed else 0, is_public=False)


@router.post("/ai/analyze/{rcept_no}/reveal", name="reveal_analysis")
@access.signed_in
def reveal(request: Request, warehouse: Warehoused, rcept_no: Number) -> Revealed:
    """Open the analysis of a filing for today."""
    user, wishes = access.who(request), state_of(request).serving
    values = {"user": user, "rcept_no": rcept_no, "quota": wishes.quota, "free_length": wishes.free_length}
    with warehouse.writing() as url, transaction(url, application="daybook api") as connection:
        done = connection.execute(query("ops_disclosures.reveal"), values).fetchone()
        row = connection.execute(query("ops_disclosures.analysis"), values).fetchone()
    assert done is not None
    assert row is not None
    if done["state"] == "not_there":
        raise HTTPException(
            409, f"There is nothing to open: the analysis of {rcept_no} is {row['status']}. Nothing was taken."
        )
    if done["state"] == "used_up":
        left = _seconds(row["day_left"])
        raise HTTPException(
            429,
            f"All {wishes.quota} of today's are used. Nothing was taken; the next day begins at midnight in Seoul.",
            headers={"Retry-After": str(round(left))},
        )
    return Revealed(
        analysis=_shown(row, is_revealed=True),
        cost=int(done["state"] == "taken"),
        used=done["used"],
        quota=wishes.quota,
        resets_at=done["until"],
    )


def _seconds(left: timedelta) -> float:
    return max(left.total_seconds(), 0.0)


def _shown(row: dict[str, Any], *, is_revealed: bool) -> Analysis:
    is_open = is_revealed and row["key_points_json"] is not None
    points = row["key_points_json"].split("|||") if is_open else None
    hidden = {} if is_open else {"sentiment": None, "model": None, "prompt_version": None}
    return Analysis(**{**row, **hidden, "key_points": points, "is_revealed": is_revealed})
