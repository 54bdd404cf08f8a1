"""Dispatch: the Airflow DAG `dispatch`, which writes down at midnight in Seoul what the day is expected to bring."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from include.dag_factory import DEFAULTS, START, Priority, system_deadline, when
from include.operators.dispatch import DispatchOperator
from include.registry import sources

WHEN = when("dispatch", "0 0 * * *", "Asia/Seoul")
DOC = f"""
# Dispatch

**When.** {WHEN.words}.

The header of the day's 09:00 snapshot, one expectation for each stream (its last window that is due
by 09:00), and the windows of streams with at most four a day. Each is made only where it is not there yet, so trigger
it by hand at any time; it has no parameters.

**When it did not run,** an alert says so at 00:30. Trigger it before 09:00: after that the date has no verdict and is
MISSED, because nothing was expected of it. Collecting goes on all the same.

**OFF** means that dispatch was switched off (`controls off --dispatch`): no window is opened, no snapshot is expected.
"""

with DAG(
    dag_id="dispatch",
    description="The day's windows, expectations and snapshot header",
    schedule=WHEN.timetable,
    start_date=START,
    catchup=False,
    max_active_runs=1,
    default_args={**DEFAULTS, "execution_timeout": timedelta(minutes=5)},
    doc_md=DOC,
    tags=["system", "kind:snapshot"],
    deadline=system_deadline("dispatch", timedelta(minutes=30, seconds=30)),
) as dag:
    DispatchOperator(task_id="dispatch", sources=sources(), priority_weight=Priority.FIRST)
