"""Publication: the Airflow DAG `publish`, which runs when rows changed, and by hand.

`build` makes a parquet file of every part of a table that changed and puts it into the outbox; `push` sends what
waits there to the Hub, one commit for each release.
"""

from __future__ import annotations

from airflow.sdk import DAG, AssetAny

from include.dag_factory import DEFAULTS, START, Priority
from include.operators.collect import asset
from include.operators.publish import BUILD, BuildOperator, PushOperator
from include.registry import streams

DOC = """
# Publication

Rows that changed become parquet files, and these go to the Hub in one commit for each release. Where nothing changed,
nothing is sent.

**When.** Each time that a collecting run changed rows (it sends an asset event), and when `upkeep` finds something
that has waited for ten minutes. Trigger it by hand at any time; it has no parameters.

**When it is red,** read the note.

| the note says | what to do |
|---|---|
| REFUSED | The connection `huggingface` is wrong, or the repository is public. Mend it, then trigger. |
| FAILED – … | A file cannot be made, or the Hub does not take it; the rest was sent. The next run tries again. |

PUT OFF means that the Hub asked for patience: the run goes on by itself. What waits is in the outbox and is not lost.
"""

with DAG(
    dag_id="publish",
    description="What changed in the tables goes to the Hub as parquet files",
    schedule=AssetAny(*(asset(stream.name) for stream in streams())),
    start_date=START,
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    doc_md=DOC,
    tags=["system", "kind:publish"],
) as dag:
    build = BuildOperator(
        task_id=BUILD,
        tables=[table for stream in streams() for table in stream.tables],
        priority_weight=Priority.DAILY_MARKET,
    )
    # A build that failed holds nothing up that is ready; `push` ends red for it once it is done.
    push = PushOperator(task_id="push", pool="hf_push", trigger_rule="all_done", priority_weight=Priority.DAILY_MARKET)
    build >> push
