"""Airflow's own old runs, deleted over its REST API: a task has no way into its database.

Promises: only runs that have ended and are older than they are kept, so many at most, the oldest first. Never: a run
that is not over, and nothing of Daybook's own.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from include.operators import notes
from include.settings import Settings

PAGE = 100
SECONDS = 20.0


def clean(settings: Settings, most: int, stop: Callable[[], bool] = lambda: False) -> tuple[int, str]:
    """Delete old runs; return how many, and what kept it from going on (empty where nothing did).

    Args:
        settings: how long runs are kept, and how Airflow is reached; without a way nothing is done.
        most: how many at once.
        stop: asked between two runs.
    """
    import httpx

    if settings.keep_runs is None:
        return 0, ""
    deleted = 0
    # The schedule is Airflow's own clock's, which is never simulated.
    before = datetime.now(UTC) - settings.keep_runs
    try:
        with notes.client(settings, SECONDS) as client:
            if client is None:
                return 0, "Airflow's REST API is not known here"
            while deleted < most and not stop():
                runs = _old(client, before, min(PAGE, most - deleted))
                for run in runs:
                    if stop():
                        break
                    where = f"/dags/{quote(run['dag_id'], safe='')}/dagRuns/{quote(run['dag_run_id'], safe='')}"
                    answer = client.delete(where)
                    if answer.status_code != httpx.codes.NOT_FOUND:
                        answer.raise_for_status()
                    deleted += 1
                if len(runs) < PAGE:
                    break
    except (httpx.HTTPError, OSError, ValueError, KeyError) as error:
        return deleted, f"{type(error).__name__}: {error}".partition("\n")[0][:200]
    return deleted, ""


def _old(client: Any, before: datetime, limit: int) -> list[dict[str, Any]]:
    """Runs that ended and came after none that is kept, the oldest first."""
    answer = client.get(
        "/dags/~/dagRuns",
        params={
            "run_after_lt": before.isoformat(),
            "end_date_lt": before.isoformat(),
            "state": ["success", "failed"],
            "order_by": "run_after",
            "limit": limit,
        },
    )
    answer.raise_for_status()
    return list(answer.json()["dag_runs"])
