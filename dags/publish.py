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

Rows that changed become parquet files (`build`), and these go to the Hub in commits of up to a hundred (`push`). Where
nothing changed, nothing is sent. **What waits is in the outbox: no failure loses it, and readers have what was sent
before. Nothing here counts for the verdict of 09:00**, so at night it can wait.

**When.** Each time that a collecting run changed rows (it sends an asset event), and when `upkeep` finds something
that has waited for ten minutes. Trigger it by hand at any time, as often as you like; it has no parameters.

What the note begins with, and what to do:

- DONE, NOTHING: all that changed is sent. GOING ON, WAITING, LEASE LOST: there is more to do, or another run publishes
  right now. PUT OFF: the Hub asked for patience, or the hour's commits are used up; the run goes on at the time that it
  says. INTERRUPTED: the warehouse does not answer; it is tried again. **Nothing is to be done.**
- PARTIAL – … not PATH: a check holds a file, e.g. as rows are gone. `./run cli publication list` shows why. If the file
  is right: DAG `control`, action `publish`. If not, mend the rows; the next file takes its place.
- PARTIAL – … of large releases wait: they used up their share of this hour's commits; `upkeep` starts the next run.
- … somebody had deleted or changed are sent again: others wrote to the repository. Ask who; all is put right.
- REFUSED: the token may not write, the repository is public, or the connection `huggingface` lacks something. Mend the
  connection, then trigger.
- FAILED – … not RELEASE PART: rows do not fit what is declared of them, and the words name the column. All else is made
  and sent; the next run tries again.
- FAILED – the outbox cannot be written: the disk is full. Make room under `DAYBOOK_OUTBOX_ROOT` (delete nothing in it),
  then trigger.
- FAILED – … the Hub does not take …: it refuses these files and says why. Each run tries them again.

A task that fails is an incident (`unpublished/build`, `unpublished/push`) until one like it ends well. The audit tells
what waits for more than six hours, also while this DAG is paused or the Hub is away.
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
