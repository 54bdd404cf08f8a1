"""The analysis of disclosures: the Airflow DAG `analysis`, which has the language model read what comes in.

It runs as DART's disclosures change and, as a sweep, every minute, once ANALYSIS_SCHEDULER_AUTO_START=true; until then
only by hand.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from include.dag_factory import DEFAULTS, START, Priority, when
from include.operators.analysing import ANSWERS, POOL, SUBMIT, AwaitOperator, LookOperator, SubmitOperator, schedule
from include.operators.collect import asset
from include.registry import bodies, source

WHEN = when("analysis", "* * * * *", "Asia/Seoul")
DOC = f"""
# Analysis

Each filing of KOSPI and KOSDAQ is read by the language model once: a line, key points, and whether it is good or bad
news. The text comes from DART's interface or, where it has none, from its web site, two seconds a page; a document
that is not there yet is waited for, for a day.

**When.** As filings come in, and {WHEN.words}, once ANALYSIS_SCHEDULER_AUTO_START=true. By hand at any time.

| you want to | trigger with |
|---|---|
| have older filings read, or those that were given up | `mode=backfill`, `start_date`, `end_date` (days of receipt) |
| have them read again after the prompts were changed | `mode=replay`, the dates and a `reason`; old results are kept |

What is asked for waits behind what comes in. At most AI_CONCURRENCY filings are under way at once.

**When it is red,** the note says which connection or setting is missing. A model that is away makes nothing red: it is
told as the incident `away/model`, nothing counts as failed, and it goes on by itself.
"""

with DAG(
    dag_id="analysis",
    description="The language model reads what Korean companies file",
    schedule=schedule(asset("dart.disclosures"), WHEN.timetable),
    start_date=START,
    catchup=False,
    max_active_runs=1,
    params={
        "mode": Param(
            "poll",
            type="string",
            enum=["poll", "backfill", "replay"],
            title="Mode",
            description="Poll: what waits. Backfill: also filings of a range that were never read or given up. Replay: "
            "also those of a range that were read with other prompts.",
        ),
        "start_date": Param(
            None,
            type=["null", "string"],
            format="date",
            title="First day",
            description="First day of receipt, inclusive; for backfill and replay.",
        ),
        "end_date": Param(
            None,
            type=["null", "string"],
            format="date",
            title="Last day",
            description="Last day of receipt, inclusive; for backfill and replay.",
        ),
        "reason": Param(
            "", type=["null", "string"], maxLength=500, title="Reason", description="Why; needed for a replay."
        ),
    },
    default_args=DEFAULTS,
    doc_md=DOC,
    tags=["system", "kind:analysis"],
) as dag:
    look = LookOperator(task_id="look", readings=bodies(), priority_weight=Priority.FIRST)
    submit = SubmitOperator(
        task_id=SUBMIT, source=source("dart"), readings=bodies(), priority_weight=Priority.FIRST, pool=POOL
    )
    # Not in the pool: with one slot there, answers would wait for what waits for them.
    answers = AwaitOperator(task_id=ANSWERS, priority_weight=Priority.FIRST)
    look >> [submit, answers]
