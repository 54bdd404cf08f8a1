"""What an admin may ask with a key alone: DART's list as it is now, for looking after a trouble, and a backfill.

Promises: a request to DART goes through its host group and ledger, and its answer is kept raw like every other one; a
backfill is a run of the DAG `dart`, whose progress is where the answer says. Never: what is fetched here is applied.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Request
from pydantic import Field, model_validator

from include import registry, settings
from include.contract import AnswerClass, Credentials, Mode
from include.contract import Request as Asked
from include.engine import credentials, fetch, hosts
from include.engine.db import Line, query
from include.engine.fetch import Asker
from include.engine.http import client
from include.engine.lease import Cycle
from include.engine.raw import RawStore
from include.ops.api import access
from include.ops.api.front import state_of
from include.ops.api.shapes import Day, Shape, Warehoused, Wish

router = APIRouter(tags=["admin"])

SOURCE, STREAM = "dart", "dart.disclosures"
# Under this name requests made here stand in the ledger, so that no cycle takes their answers for its own.
DEBUG = "dart.debug"
# Somebody waits for the answer.
MOST_SECONDS = 45.0


def _reach() -> Credentials:
    from airflow.providers.http.hooks.http import HttpHook

    connection = HttpHook.get_connection(SOURCE)
    return credentials.build(
        registry.source(SOURCE),
        host=connection.host or "",
        login=connection.login or "",
        password=connection.password or "",
        schema=connection.schema or "",
        port=connection.port,
        extra=connection.extra_dejson,
        sandbox_url=settings.load().sandbox_url,
    )


def _start(dag_id: str, run_id: str, conf: Mapping[str, Any]) -> None:
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.utils.types import DagRunTriggeredByType

    trigger_dag(dag_id, triggered_by=DagRunTriggeredByType.REST_API, run_id=run_id, conf=dict(conf))


@dataclass(frozen=True)
class Hands:
    """What the routes reach with: how to reach DART, where answers are kept, and how a DAG is started."""

    reach: Callable[[], Credentials] = _reach
    raw: Callable[[], RawStore] = lambda: RawStore(settings.load().raw_root)
    start: Callable[[str, str, Mapping[str, Any]], None] = _start


class Range(Wish):
    """Days of receipt."""

    begin_date: Day = Field(description="First day of receipt in Seoul.")
    end_date: Day = Field(description="Last day of receipt in Seoul.")
    corp_code: Annotated[str, Field(pattern=r"^[0-9]{8}$")] | None = Field(
        default=None, description="Only this company; without one, a fetch asks for KOSPI (class Y) alone."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Range:
        if self.end_date < self.begin_date:
            raise ValueError("endDate is before beginDate")
        return self


class Fetch(Range):
    """A page of DART's list."""

    page_no: int = Field(default=1, ge=1, le=100_000, description="Which page.")
    page_count: int = Field(default=20, ge=1, le=100, description="Rows of a page.")


class Fetched(Shape):
    """What DART answered."""

    answer_class: AnswerClass = Field(description="What the answer is: data, empty, error …")
    fetch_id: int = Field(description="Number of the request in the ledger; its answer is in the raw store.")
    error: str | None = Field(description="What was wrong.")
    total_count: int | None = Field(description="How many rows there are in all, as DART says.")
    rows: list[dict[str, Any]] = Field(description="The rows as DART gives them.")


class Started(Shape):
    """A backfill that was started."""

    run_id: str = Field(description="Name of the run.")
    progress: str = Field(description="Where its progress is; it needs a login.")


@router.post("/admin/disclosures/fetch", name="fetch_disclosures")
@access.keyed
def fetch_now(request: Request, warehouse: Warehoused, wish: Fetch) -> Fetched:
    """Ask DART for a page of its list, now, and show what it says."""
    params = {
        "bgn_de": f"{wish.begin_date:%Y%m%d}",
        "end_de": f"{wish.end_date:%Y%m%d}",
        "page_no": str(wish.page_no),
        "page_count": str(wish.page_count),
        **({"corp_code": wish.corp_code} if wish.corp_code else {"corp_cls": "Y"}),
    }
    key = "/".join(f"{name}={value}" for name, value in params.items())
    asked = Asked(key, f"{registry.source(SOURCE).hosts[0]}/api/list.json", key, params=tuple(params.items()))
    with warehouse.writing() as url:
        return _ask(url, state_of(request).hands, asked)


def _ask(url: str, hands: Hands, asked: Asked) -> Fetched:
    reach, raw = hands.reach(), hands.raw()
    stream = replace(registry.stream(STREAM), name=DEBUG, follow=lambda request, answer: ())
    line, until = Line(url, application="daybook api"), time.monotonic() + MOST_SECONDS
    http = client(reach.user_agent)
    try:
        hosts.declare(line.connection, (stream.host_group,))
        asker = Asker(
            line, http, raw, reach, stream, _nobodys_cycle(), False, lambda: time.monotonic() < until, time.sleep
        )
        found = fetch.ask(asker, asked)
        body = line.connection.execute(query("analysis.stored_body"), {"fetches": [found.fetch_id]}).fetchone()
    except (hosts.Blocked, hosts.UsedUp, hosts.Stopped) as no:
        raise HTTPException(409, str(no)) from None
    finally:
        http.close()
        line.close()
    document: dict[str, Any] = {}
    if found.answer_class is AnswerClass.DATA and body is not None:
        document = json.loads(raw.body(bytes(body["sha256"])).read())
    total = document.get("total_count")
    return Fetched(
        answer_class=found.answer_class,
        fetch_id=found.fetch_id,
        error=found.error,
        total_count=None if total is None else int(total),
        rows=document.get("list") or [],
    )


def _nobodys_cycle() -> Cycle:
    nothing: Mapping[str, Any] = {}
    attempt = uuid.uuid4().int & 0x7FFFFFFF
    return Cycle(0, DEBUG, Mode.POLL, "debug", None, None, None, nothing, nothing, attempt, 0, {})


@router.post("/admin/backfill", name="start_backfill", status_code=202)
@access.keyed
def backfill(request: Request, wish: Range) -> Started:
    """Collect the filings of some days of receipt again, as a run of the DAG `dart`."""
    run_id = f"admin-{wish.begin_date}-{wish.end_date}-{uuid.uuid4().hex[:8]}"
    conf = {
        "mode": "backfill",
        "streams": [STREAM],
        "start_date": _iso(wish.begin_date),
        "end_date": _iso(wish.end_date),
        "keys": [wish.corp_code] if wish.corp_code else [],
        "run_id": run_id,
        "reason": "asked for by the admin route",
    }
    state_of(request).hands.start(SOURCE, run_id, conf)
    return Started(run_id=run_id, progress=f"/daybook/v1/jobRuns/{quote(run_id)}")


def _iso(day: date) -> str:
    return day.isoformat()
