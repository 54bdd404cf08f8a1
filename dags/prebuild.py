"""Files over all companies: the Airflow DAG `prebuild`, after a sync of DART that went well, and by hand."""

from __future__ import annotations

from airflow.sdk import DAG, AssetAny

from include.dag_factory import DEFAULTS, START, Priority
from include.operators.collect import asset
from include.operators.prebuild import PrebuildOperator
from include.operators.publish import BUILD, PushOperator
from include.registry import streams

SYNC = "dart_sync"
FEEDING = tuple(stream.name for stream in streams() if stream.job_name == SYNC)
DOC = f"""
# Files over all companies

Builds `dart/scan`: what changed between a company's consecutive comparable reports, the statements that hold, and one
file for each type of report items. Only companies that changed since are read, from the database alone, and all files
go in one commit.

**When.** After a run of `{SYNC}` that changed rows, once all of its streams have ended well. While one is at work this
waits; where one failed, nothing is built (**NOT BUILT**) and readers keep the files before. Trigger it by hand at any
time; it has no parameters.

A file with far fewer rows than before is held, and the others with it: `./run cli publication list`.
"""

with DAG(
    dag_id="prebuild",
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
