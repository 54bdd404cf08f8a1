"""Housekeeping: the Airflow DAG `maintenance`."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from include.dag_factory import DEFAULTS, START, Priority, when
from include.operators.maintenance import MaintenanceOperator

WHEN = when("maintenance", "15 10 * * *", "Asia/Seoul")
DOC = f"""
# Maintenance

**When.** {WHEN.words}.

Deletes

- seen rows of listings that outlived their cycle by 48 hours, a thousand at most (there should be none: one is a
  warning, a thousand are critical),
- Airflow's own runs that ended more than `DAYBOOK_KEEP_RUNS` days ago (30; 0 keeps them),
- alerts that were delivered more than `DAYBOOK_KEEP_ALERTS` days ago (30; 0 keeps them),
- drafts that killed workers left: files that never got their name and that nothing was written to for a day, beside
  the stores and on the machine that runs this; what a cycle may still go on with stays,

and nothing else: cycles, fetches, raw objects, snapshots, incidents and publication records are kept without end.
"""

with DAG(
    dag_id="maintenance",
    description="Deletes the little that may be deleted",
    schedule=WHEN.timetable,
    start_date=START,
    catchup=False,
    max_active_runs=1,
    default_args={**DEFAULTS, "execution_timeout": timedelta(minutes=15)},
    doc_md=DOC,
    tags=["system", "kind:maintenance"],
) as dag:
    MaintenanceOperator(task_id="clean", priority_weight=Priority.BULK)
