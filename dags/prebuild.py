"""Files over all companies: the Airflow DAG `prebuild`, after a sync of DART that went well, and by hand."""

from __future__ import annotations

from airflow.sdk import DAG, AssetAny

from include.dag_factory import DEFAULTS, START, Priority
from include.operators.collect import asset
from include.operators.prebuild import PREBUILD, SYNC, PrebuildOperator
from include.operators.publish import BUILD, PushOperator
from include.registry import streams

FEEDING = tuple(stream.name for stream in streams() if stream.job_name == SYNC)
DOC = f"""
# Files over all companies

Builds `dart/scan`: what changed between a company's consecutive comparable reports, the statements that hold, and one
file for each type of report items. Only companies that changed since are read, from the database alone, and all files
go in one commit. **Readers keep the files before until then, and nothing here counts for the verdict of 09:00.**

**When.** After a run of `{SYNC}` that changed rows, once all of its streams have ended well. Trigger it by hand at any
time, as often as you like; it has no parameters.

What the note begins with, and what to do:

- BUILT, NOTHING: all that changed is in the files. WAITING, GOING ON, LEASE LOST: a stream of `{SYNC}` is at work,
  there is more to read, or another run builds. **Nothing is to be done.**
- NOT BUILT: a stream of `{SYNC}` failed, and files of half a sync would be wrong. See that stream's window; the next
  good sync builds.
- FAILED – … cannot be written: rows do not fit what is declared of them, and the words name the part and the column. No
  file was replaced.
- FAILED – the outbox cannot be written: the disk is full. Make room (delete nothing in the outbox), then trigger.

`push` says what the DAG `publish` says. A file with far fewer rows than before is held, and the others with it, as
they are read together: `./run cli publication list`; if they are right, DAG `control`, action `publish`. A task that
fails is an incident (`unpublished/prebuild`) until one ends well; the audit misses a build that did not come, also
while this DAG is paused.
"""

with DAG(
    dag_id=PREBUILD,
    description="What changed in DART's reports becomes files over all companies, in one commit",
    schedule=AssetAny(*(asset(name) for name in FEEDING)),
    start_date=START,
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    doc_md=DOC,
    tags=["system", "kind:publish"],
) as dag:
    build = PrebuildOperator(task_id=BUILD, streams=FEEDING, priority_weight=Priority.BULK)
    push = PushOperator(task_id="push", pool="hf_push", priority_weight=Priority.BULK)
    build >> push
