"""Deadlines: what Airflow calls when a run was not done in time, and what is told because of it.

Promises: a miss is told once, under the key of its own window, into the alert outbox; a run that was not scheduled, and
a window that is over by then, are told of nobody, as what counts is read from rows. Never: the run's state decides, and
nothing is sent from here: the callback runs in the triggerer and must end at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

# Airflow's own list of types lacks them.
from airflow.sdk import AsyncCallback, DeadlineAlert, DeadlineReference  # type: ignore[attr-defined]

from include import registry
from include.ops import addresses

SEOUL = ZoneInfo("Asia/Seoul")
SCHEDULED = "scheduled"
# A run may end this long after its window was due.
GRACE = timedelta(minutes=5)

log = logging.getLogger(__name__)


def for_windows(dag_id: str, allowance: timedelta) -> DeadlineAlert:
    """Return the deadline of a DAG whose scheduled runs each poll one window: when an operator may expect it done."""
    return _deadline("windows", dag_id, allowance + GRACE)


def for_system(dag_id: str, after: timedelta) -> DeadlineAlert:
    """Return the deadline of `dispatch`, `sla_capture` or `upkeep`, so long after the scheduled instant."""
    return _deadline("system", dag_id, after)


def _deadline(what: str, dag_id: str, after: timedelta) -> DeadlineAlert:
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_LOGICAL_DATE,
        interval=after,
        name=f"{dag_id}_in_time",
        callback=AsyncCallback(missed, kwargs={"what": what}),
    )


async def missed(what: str, context: Mapping[str, Any]) -> None:
    """Tell a missed deadline where there is something to tell; called by Airflow, once, and never again if it fails."""
    run = context["dag_run"]
    if run["run_type"] != SCHEDULED or run["logical_date"] is None:
        return
    # Imported here: the provider costs every process that parses a DAG file about half a second.
    from airflow.providers.postgres.hooks.postgres import PostgresHook

    found = await PostgresHook.aget_connection("warehouse")
    url = addresses.warehouse_url(found)
    instant = _instant(run["logical_date"])
    told = await asyncio.to_thread(tell, url, run["dag_id"], instant, is_system=what == "system")
    log.info("%s of %s: %s", run["dag_id"], instant.isoformat(), "told" if told else "nothing to tell")


def _instant(value: datetime | str) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def tell(url: str, dag_id: str, instant: datetime, *, is_system: bool) -> bool:
    """Tell what a DAG should have done by now and has not; say whether there was something.

    Args:
        url: libpq address of the warehouse.
        dag_id: the DAG.
        instant: the logical date of the run: the instant that it was scheduled at.
        is_system: whether it is one of the house's own, rather than a source's.
    """
    # Imported here, as every DAG file imports this module for the deadline alone.
    from include.engine import lookout

    if not is_system:
        streams = [stream for stream in registry.streams() if stream.job_name == dag_id]
        told = [lookout.tell_past_due(url, stream, instant) for stream in streams]
        return any(told)
    day = instant.astimezone(SEOUL).date()
    if dag_id == "dispatch":
        return lookout.tell_undispatched(url)
    if dag_id == "sla_capture":
        return _tell_untaken(url, day)
    return lookout.listen(url, instant)


def _tell_untaken(url: str, day: date) -> bool:
    """Tell that nobody has taken a snapshot although its cutoff has passed; upkeep and any writer still may."""
    from include.engine import incidents, snapshot
    from include.engine.db import connect

    found = snapshot.read(url, day)
    if found.status != "PENDING" or found.late == 0:
        return False
    connection = connect(url, application="daybook deadline", statement_timeout=15, autocommit=True)
    try:
        incidents.open(
            connection,
            key=f"untaken/{day}",
            alert_key=f"deadline/sla_capture/{day}",
            severity="error",
            text=f"09:00 of {day} was not taken by sla_capture in time. The first writer still takes it exactly; if "
            "nobody comes by 09:05, it is MISSED.",
        )
    finally:
        connection.close()
    return True
