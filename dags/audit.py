"""The morning audit: the Airflow DAG `audit`."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from include.dag_factory import DEFAULTS, START, Priority, when
from include.operators.audit import AuditOperator
from include.registry import sources

WHEN = when("audit", "0 5 * * *", "Asia/Seoul")
DOC = f"""
# Audit

**When.** {WHEN.words}: while there is still time before 09:00.

How every pipeline stands. What is wrong is an incident
(`ops.incidents`) and an alert; what is well again ends its incident and says so. The log has one line for each stream.

Where the connection `github` exists, each incident is one issue there with the label `pipeline-failure`: opened and
brought up to date here, closed as soon as the incident is over. A GitHub that is away or asks for patience costs
nothing: `upkeep` sends the rest.

It is green whatever it finds: red means that it could not look. REPLACED means that a newer audit began while it ran.
A paused DAG is late all the same, and named as paused.
To keep an alert from being sent for a while, make a silence, with a reason and an end.
"""

with DAG(
    dag_id="audit",
    description="The health of every pipeline, before the day is judged",
    schedule=WHEN.timetable,
    start_date=START,
    catchup=False,
    # A new audit replaces one that still runs, so it must be able to begin.
    max_active_runs=3,
    default_args={**DEFAULTS, "execution_timeout": timedelta(minutes=10)},
    doc_md=DOC,
    tags=["system", "kind:audit"],
) as dag:
    AuditOperator(task_id="audit", sources=sources(), priority_weight=Priority.MACRO)
