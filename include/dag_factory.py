"""What the DAG of one source looks like: check, one task and its lanes for each stream, summary.

Promises: one graph for all modes; the same text in every process that parses it; nothing is read, asked or looked
up while a file is parsed. Never: no source is known by name, and no heavy module is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any

from airflow.sdk import DAG, AssetOrTimeSchedule, CronTriggerTimetable, MultipleCronTriggerTimetable, Param

from include import schedules
from include.contract import Schedule, Source, Stream
from include.operators import declared
from include.operators.check import CheckRequestOperator
from include.operators.collect import CHECK, LaneOperator, PollOperator, alias, asset
from include.operators.endings import FOR_GOOD
from include.operators.hours import times_words
from include.operators.newcomers import NewcomersOperator
from include.operators.page import doc, keys_words
from include.operators.summary import SummaryOperator, task_of
from include.operators.tick import EXECUTION_TIMEOUT
from include.ops import deadlines

# Before anything was ever due; it never changes, as Airflow would make a new version of the DAG.
START = datetime(2026, 1, 1, tzinfo=UTC)
# A task that was killed is tried again; one that said why it failed is not (see `endings`).
RETRIES, RETRY_DELAY = 2, timedelta(seconds=20)
LANES_POOL = "backfill"
LANES_PRIORITY = 5
MOST_RUNS = 8


class Priority(IntEnum):
    """What goes first when workers are short."""

    FIRST = 100
    DAILY_MARKET = 80
    MACRO = 60
    LISTS = 40
    BULK = 20


def source_dag(
    source: Source,
    *,
    job: str | None = None,
    priority: Priority = Priority.DAILY_MARKET,
    side_by_side: bool = False,
) -> DAG:
    """Return the DAG of a source's main job, or of another job of it.

    Args:
        source: the source, as declared.
        job: name of a job with another cadence; its DAG is `<source>_<job>`. The streams are those that name it, in
            the source's order, and have one schedule.
        priority: what of all that waits goes first.
        side_by_side: the streams learn nothing from each other, so none waits for another.

    Raises:
        ValueError: no stream names the job, or their schedules differ.
    """
    declared.declare(source)
    chosen = tuple(stream for stream in source.streams if stream.job == job)
    schedules = {(stream.schedule.cron, stream.schedule.timezone) for stream in chosen}
    if len(schedules) != 1:
        raise ValueError(
            f"The streams of {source.name} that name the job {job} have {len(schedules)} schedules, not one."
        )
    schedule = chosen[0].schedule
    dag = DAG(
        dag_id=chosen[0].job_name,
        description=f"{source.title}: {'; '.join(stream.title for stream in chosen)}",
        schedule=_timetable(schedule),
        start_date=START,
        catchup=False,
        # Exclusion is the database's; this only bounds how much waits side by side.
        max_active_runs=MOST_RUNS,
        params=_params(chosen),
        default_args=DEFAULTS,
        doc_md=doc(source, chosen, LANES_POOL, takes_form=_is_daily(schedule.cron)),
        tags=[f"source:{source.name}", "kind:collect"],
        allowed_run_types=None if _is_daily(schedule.cron) else _WITHOUT_BACKFILL,
        # Where there are many windows a day, the lookout tells the one that is past due, and no run is timed.
        deadline=deadlines.for_windows(chosen[0].job_name, schedule.allowance) if _is_daily(schedule.cron) else None,
    )
    with dag:
        _tasks(source, chosen, priority, side_by_side)
    return dag


def newcomers_dag(source: Source, dag_id: str, times: When, *, streams: Sequence[str], limit: int, after: str) -> DAG:
    """Return the DAG that takes in companies of which streams do not hold the past yet.

    Args:
        source: the source, as declared.
        dag_id: its name.
        times: when it runs, beside each change of the listing.
        streams: names of the streams, each with newcomers of its own.
        limit: how many newcomers of a stream a run takes in.
        after: the listing, by the name of its stream.
    """
    declared.declare(source)
    dag = DAG(
        dag_id=dag_id,
        description=f"{source.title}: the past of companies that were listed since",
        schedule=AssetOrTimeSchedule(timetable=times.timetable, assets=[asset(after)]),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        # Years of thousands of companies are long work that nobody waits for: one place of the pool of lanes stays for
        # what somebody asked for.
        max_active_tasks=1,
        default_args=DEFAULTS,
        doc_md=_NEWCOMERS.format(
            source=source.title, when=times.words, after=after, limit=limit, streams=", ".join(streams)
        ),
        tags=[f"source:{source.name}", "kind:collect"],
    )
    with dag:
        for stream in streams:
            name = task_of(stream)
            check = NewcomersOperator(task_id=f"new_{name}", source=source.name, stream=stream, limit=limit)
            lanes = LaneOperator.partial(
                task_id=f"{name}_lanes",
                stream=stream,
                check=check.task_id,
                outlets=[alias(stream)],
                priority_weight=LANES_PRIORITY,
                pool=LANES_POOL,
                map_index_template="{{ lane }}",
            ).expand(lane=check.output)
            (
                check
                >> lanes
                >> SummaryOperator(
                    task_id=f"{name}_summary",
                    check=check.task_id,
                    trigger_rule="all_done",
                    priority_weight=LANES_PRIORITY,
                )
            )
    return dag


_NEWCOMERS = """
# {source}: newcomers

Companies that are listed and of which {streams} do not hold the past yet are taken in, those that were listed last
first, at most {limit} of a stream in a run; the next run goes on with the others. Who is new follows from the listing
and from what is held alone (`select * from filings.newcomers`).

**When.** {when}, and each time that `{after}` changed. Trigger it by hand at any time; it has no parameters.

**When it is red,** read the note. FAILED and NOT FINISHED: the next run goes on with the same companies. REFUSED: the
connection is wrong.
"""


@dataclass(frozen=True)
class When:
    """When a DAG of the system runs: for Airflow, and in words for its page."""

    timetable: CronTriggerTimetable | MultipleCronTriggerTimetable
    words: str


def when(job: str, cron: str, timezone: str) -> When:
    """Return when a job of the system runs: as `config/schedules.yaml` sets it, or as given.

    Raises:
        SettingError: the file cannot be used; Airflow shows the text as the import error of the DAG.
    """
    times = schedules.of_job(job, cron, timezone)
    return When(_timetable(times), times_words(times))


DEFAULTS: dict[str, Any] = {
    "owner": "daybook",
    "retries": RETRIES,
    "retry_delay": RETRY_DELAY,
    "retry_policy": FOR_GOOD,
    "execution_timeout": EXECUTION_TIMEOUT,
    "weight_rule": "absolute",
}
"""What all tasks of the house have in common."""

system_deadline = deadlines.for_system
"""The deadline of one of the house's own DAGs, so long after its scheduled instant."""

# Airflow's Backfill form would make one run for each of many windows a day; the API then refuses it in words.
_WITHOUT_BACKFILL = ("scheduled", "manual", "operator_triggered", "asset_triggered")


def _timetable(schedule: Schedule | schedules.Times) -> CronTriggerTimetable | MultipleCronTriggerTimetable:
    crons = schedule.cron.split(" | ")
    if len(crons) == 1:
        return CronTriggerTimetable(schedule.cron, timezone=schedule.timezone)
    return MultipleCronTriggerTimetable(*crons, timezone=schedule.timezone)


def _is_daily(cron: str) -> bool:
    if " | " in cron:
        return False
    minute, hour, *_ = cron.split()
    return minute.isdigit() and hour.isdigit()


def _tasks(source: Source, streams: Sequence[Stream], priority: Priority, side_by_side: bool) -> None:
    """Lay out the graph.

    A mapped task has one pool, and polls must not wait behind backfills: so a stream has a task for polls in the
    default pool and lanes in a pool of their own. The one that a run has no use for is skipped: lanes for a poll
    because there are none, the other by itself.
    """
    names = tuple(stream.name for stream in streams)
    check = CheckRequestOperator(task_id=CHECK, source=source.name, streams=names, priority_weight=priority)
    summary = SummaryOperator(task_id="summary", trigger_rule="all_done", priority_weight=priority)
    before: list[Any] = []
    for stream in streams:
        task_id = task_of(stream.name)
        # A stream waits for the ones before it, and runs whatever came of them.
        rule = "all_done" if before else "all_success"
        poll = PollOperator(
            task_id=task_id,
            stream=stream.name,
            outlets=[alias(stream.name)],
            trigger_rule=rule,
            priority_weight=priority,
        )
        lanes = LaneOperator.partial(
            task_id=f"{task_id}_lanes",
            stream=stream.name,
            outlets=[alias(stream.name)],
            trigger_rule=rule,
            priority_weight=LANES_PRIORITY,
            pool=LANES_POOL,
            map_index_template="{{ lane }}",
        ).expand(lane=check.output)
        check >> poll
        for earlier in before:
            earlier >> [poll, lanes]
        before = [] if side_by_side else [poll, lanes]
        [poll, lanes] >> summary
    check >> summary


def _params(streams: Sequence[Stream]) -> dict[str, Param]:
    names = [stream.name for stream in streams]
    length = {"timeframe": _TIMEFRAME} if any(stream.timeframes for stream in streams) else {}
    return {
        "mode": Param(
            "poll",
            type="string",
            enum=["poll", "backfill", "replay"],
            values_display={
                "poll": "Poll: what is due now",
                "backfill": "Backfill: a range of sessions",
                "replay": "Replay: read again what is stored",
            },
            title="Mode",
            description="Poll asks for what is due now; backfill asks for a range of sessions; replay reads again what "
            "is stored, without asking anybody.",
        ),
        "streams": Param(
            [],
            type=["null", "array"],
            items={"type": "string", "enum": names},
            examples=names,
            title="Streams",
            description="Only these streams, in the DAG's order; all of them where empty.",
        ),
        "start_date": Param(
            None,
            type=["null", "string"],
            format="date",
            title="First session",
            description="First session date (the market's own day), inclusive; for backfill and replay.",
        ),
        "end_date": Param(
            None,
            type=["null", "string"],
            format="date",
            title="Last session",
            description="Last session date (the market's own day), inclusive; for backfill and replay.",
        ),
        "keys": Param(
            [],
            type=["null", "array"],
            items={"type": "string", "minLength": 1, "maxLength": 100},
            title="Keys",
            description=f"Only these keys, one a line; all where empty. They are {keys_words(streams)}.",
        ),
        "run_id": Param(
            "",
            type=["null", "string"],
            pattern="^[A-Za-z0-9_.~:+-]{0,200}$",
            title="Run name",
            description="Names a backfill or replay. The same name goes on with it: what failed is done again, what is "
            "done stays. Empty: made from the request, so the same request goes on with its own run.",
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run",
            description="Show chunks, requests and time in the run's note; write nothing and ask for nothing.",
        ),
        "force": Param(
            False,
            type="boolean",
            title="Once more",
            description="Do it although it is done. Poll: collect again what the last window was responsible for; "
            "backfill: ask again for what succeeded; replay: apply although nothing differs. It never overrides a "
            "lease, a freeze, a budget or the wait for publication.",
        ),
        "replay_into": Param(
            "overwrite",
            type="string",
            enum=["overwrite", "versioned"],
            title="Replay into",
            description="Overwrite: what differs goes into the tables, and the history keeps what was there. "
            "Versioned: into copies beside them.",
        ),
        "reason": Param(
            "",
            type=["null", "string"],
            maxLength=500,
            title="Reason",
            description="Why, in your words; recorded with the run, and needed for a replay.",
        ),
        **length,
    }


_TIMEFRAME = Param(
    "",
    type=["null", "string"],
    pattern="^([0-9]{1,2}[A-Za-z]{1,5})?$",
    title="Length of bars",
    description="For a backfill of bars of another length than the stream's own, as 5Min, 1Hour or 1Week.",
)
