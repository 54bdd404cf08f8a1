"""DAGs that somebody paused in Airflow: which, by whom, since when.

Promises: read from Airflow's own database, which is the truth of it, in its web server, which alone may read it; only
Airflow's audit log knows who. The watcher, which has no Airflow to ask, reads upkeep's note of the same fact
(`ops.paused_jobs`, without who). Never: a DAG is paused or unpaused here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

# What Airflow's audit log calls the change; the CLI's words come last.
_EVENTS = ("patch_dag", "patch_dags", "dags.pause", "cli_dag_pause")


@dataclass(frozen=True)
class Paused:
    """A paused DAG; `who` and `since` are None where the audit log does not say, e.g. as it was never unpaused."""

    dag_id: str
    who: str | None
    since: datetime | None


def paused_dags() -> list[Paused]:
    """Return every DAG that is there and paused, by name.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: Airflow's database gives no answer.
    """
    # Imported here: they are loaded in Airflow's web server anyhow, and nowhere else for this.
    from airflow.models.dag import DagModel
    from airflow.models.log import Log
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        names = session.scalars(
            select(DagModel.dag_id)
            .where(DagModel.is_paused.is_(True), DagModel.is_stale.is_(False))
            .order_by(DagModel.dag_id)
        ).all()
        found = []
        for name in names:
            entries = session.execute(
                select(Log.owner, Log.dttm, Log.extra)
                .where(Log.dag_id == name, Log.event.in_(_EVENTS))
                .order_by(Log.dttm.desc())
                .limit(20)
            )
            who, since = next(((owner, at) for owner, at, extra in entries if _pauses(extra)), (None, None))
            found.append(Paused(name, who, since))
        return found


def _pauses(extra: str | None) -> bool:
    """Say whether an entry of the audit log tells of a pause and not of its end."""
    try:
        return json.loads(extra or "{}").get("is_paused") is True
    except (ValueError, AttributeError):
        return False
