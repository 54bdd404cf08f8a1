"""The 09:00 snapshot: the Airflow DAG `sla_capture`, which is there when it strikes nine in Seoul."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from include.dag_factory import DEFAULTS, START, Priority, system_deadline, when
from include.operators.capture import CaptureOperator

WHEN = when("sla_capture", "58 8 * * *", "Asia/Seoul")
DOC = f"""
# The 09:00 snapshot

**When.** {WHEN.words}.

It waits resident, and at 09:00:00 takes the verdict: of every expected stream, how its last
window that was due by then stood. It asks no upstream. The verdict goes to Slack: all good, who is late, or MISSED.

**When it did not run,** nothing is lost: the first state that anybody writes after 09:00 takes the same snapshot first.
Only if nobody comes by 09:05 does `upkeep` mark the date MISSED, and nothing is made up afterwards.

| the note says | what it means |
|---|---|
| ALL GOOD, LATE | The verdict, how long after 09:00:00.000 it was taken, and by whom. |
| TOO EARLY | It was started more than ten minutes before 09:00; the schedule starts it again. |
| NOTHING TO TAKE | Dispatch did not run, or nothing was in service at 09:00. |

Started after 09:00 it takes what the gate still allows, says how late that was, and never pretends.
"""

with DAG(
    dag_id="sla_capture",
    description="Takes the verdict of 09:00:00 in Seoul",
    schedule=WHEN.timetable,
    start_date=START,
    catchup=False,
    max_active_runs=1,
    # A killed capture is tried again at once: there may still be time.
    default_args={**DEFAULTS, "retry_delay": timedelta(seconds=1), "execution_timeout": timedelta(minutes=15)},
    doc_md=DOC,
    tags=["system", "kind:snapshot"],
    deadline=system_deadline("sla_capture", timedelta(minutes=4)),
) as dag:
    CaptureOperator(task_id="capture", pool="sla", priority_weight=Priority.FIRST)
