"""Upkeep: the Airflow DAG `upkeep`, which looks every few minutes after what nobody else does."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from include.dag_factory import DEFAULTS, START, Priority, system_deadline, when
from include.operators.upkeep import StartRunOperator, UpkeepOperator
from include.registry import sources

WHEN = when("upkeep", "*/2 * * * *", "Asia/Seoul")
DOC = f"""
# Upkeep

**When.** {WHEN.words}.

In this order it marks a 09:00 snapshot as MISSED that nobody took by 09:05 (a setting), ends the
leases of workers that vanished, adds streams that came into service since midnight to what 09:00 expects, looks for
what is past due, lags or fails, starts a run for make-up windows that are due and for windows that nobody works on, and
one of `publish` where something has waited for ten minutes, and sends what waits for Slack. A DAG gets at most one such
run in a quarter of an hour; a paused one none, and it is told as paused and late all the same.

**When it is red,** the warehouse did not answer; the next run looks again. Leases are also ended by whoever claims
next, and the watcher (`cli watch`) marks, looks and sends too, so nothing depends on this DAG alone. When it has not
run for six minutes, the watcher tells that the scheduler is silent.
"""

with DAG(
    dag_id="upkeep",
    description="Ends leases of vanished workers and starts what nobody has started",
    schedule=WHEN.timetable,
    start_date=START,
    catchup=False,
    max_active_runs=1,
    # The next run comes in two minutes anyway.
    default_args={**DEFAULTS, "retries": 0, "execution_timeout": timedelta(minutes=5)},
    doc_md=DOC,
    tags=["system", "kind:upkeep"],
    deadline=system_deadline("upkeep", timedelta(minutes=7)),
) as dag:
    look = UpkeepOperator(task_id="look", sources=sources(), priority_weight=Priority.FIRST)
    StartRunOperator.partial(
        task_id="start", priority_weight=Priority.FIRST, map_index_template="{{ started }}"
    ).expand(order=look.output)
