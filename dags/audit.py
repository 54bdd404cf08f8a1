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

**When.** {WHEN.words}: while there is still time before 09:00. Trigger it at any time; a newer audit replaces one that
still runs (REPLACED), and looking changes nothing but what is known to be wrong.

How every pipeline stands. The note says ALL WELL, or how many incidents are open with the worst ten. The log has a line
for each stream (WELL, ILL with the reason, NOT IN SERVICE) and for each quota. It is green whatever it finds: **red
means that it could not look**, and the note says at what.

Each thing that is wrong is an incident; what is well again ends it and is told. `./run cli incidents` shows them, with
what was kept and what to do next. What an incident begins with, those that count at 09:00 first:

- `undispatched`: trigger the DAG `dispatch` before 09:00, or the day has no verdict.
- `silent`: see the scheduler, and whether the DAG that it names is paused.
- `past-due`, `lag`: see the newest run of the stream's DAG; one that is paused or frozen is named so.
- `failing`, `block`: the text names the key, the page or the form. Once mended, the next window collects by itself.
- `raw`, `quiet`, `doubtful`, `empty`, `missing-values`, `quarantine`: look at the answers; something there has changed.
- `held`, `publication`, `unpublished`, `commits`: can wait until the morning; readers have what was sent before.
- `outbox`, `refused`: messages wait. See the connection `slack` or `github`.

Where the connection `github` exists, each incident is one issue there with the label `pipeline-failure`: opened and
brought up to date here, closed as soon as the incident is over. A GitHub that is away or asks for patience costs
nothing: `upkeep` sends the rest. To keep an alert from being sent for a while: `./run cli silences make`, with a reason
and an end.
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
