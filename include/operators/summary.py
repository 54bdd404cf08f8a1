"""The last task of a collecting run: what the whole of it came to.

Promises: it reads rows, writes a job run's outcome, fails if any stream failed, and has the last word in the run's
note. Never: the state of a task is taken for the truth, and nothing is collected here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import BaseOperator

from include.contract import TERMINAL, CycleStatus
from include.engine.verdict import worker_of
from include.operators import notes
from include.operators.collect import CHECK
from include.operators.endings import Ended, Interrupted


def task_of(stream: str) -> str:
    """Return the id of the task that polls a stream; its lanes have the same with `_lanes`."""
    return stream.partition(".")[2]


class SummaryOperator(BaseOperator):
    """Says what the run came to."""

    template_fields = ("outcome",)
    overwrite_rtif_after_execution = True
    ui_color = "#f4ecd8"

    def __init__(self, *, check: str = CHECK, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check = check
        self.outcome = ""

    def execute(self, context: Any) -> None:
        """Read what the rows say, tell it, and end as they do."""
        import psycopg

        asked: dict[str, Any] | None = context["ti"].xcom_pull(task_ids=self.check, key="request")
        try:
            ended = self._conclude(asked, context) if asked else _not_let_through(self.check)
        except psycopg.OperationalError as error:
            first = str(error).partition("\n")[0][:300]
            raise Interrupted(f"INTERRUPTED – the warehouse does not answer: {first}") from None
        self.outcome = ended.words
        context["ti"].xcom_push(key="outcome", value=ended.outcome())
        notes.task(context, ended.words)
        if asked:
            notes.run(context, ended.words)
        if asked and not (asked["dry_run"] or asked["is_over"]):
            self._tell(context)
        if ended.how != "red":
            self.log.info(ended.words)
        ended.leave()

    def _tell(self, context: Mapping[str, Any]) -> None:
        """Send what the run had to tell; whatever is not sent here, upkeep and the watcher send."""
        from include.operators import resolve, telling

        telling.send(resolve.warehouse_url(), f"summary of {context['ti'].run_id}", seconds=20)

    def _conclude(self, asked: Mapping[str, Any], context: Mapping[str, Any]) -> Ended:
        from include.operators import resolve

        if asked["dry_run"] or asked["is_over"]:
            return Ended("green", asked["words"])
        url = resolve.warehouse_url()
        if asked["run_id"] is not None:
            return job(url, asked["run_id"], asked["streams"], str(context["ti"].run_id))
        outcomes = {name: context["ti"].xcom_pull(task_ids=task_of(name), key="outcome") for name in asked["streams"]}
        return polls(url, outcomes)


def _not_let_through(check: str) -> Ended:
    return Ended("red", f"NOT DONE – {check} did not let the run through; its note says why. Nothing was asked.")


def polls(url: str, outcomes: Mapping[str, Mapping[str, Any] | None]) -> Ended:
    """Return what the polls of a run came to, by the rows of the windows that they worked on."""
    from include.engine import windows

    numbers = [outcome["cycle_id"] for outcome in outcomes.values() if outcome and outcome.get("cycle_id")]
    rows = windows.rows_of(url, numbers)
    found = [_poll(name, outcome, rows) for name, outcome in outcomes.items()]
    found.sort(key=lambda ended: ["red", "green", "skipped"].index(ended.how))
    words = "; ".join(ended.words for ended in found)
    return Ended(found[0].how, words, {"streams": {name: _state(name, outcomes, rows) for name in outcomes}})


def _poll(name: str, outcome: Mapping[str, Any] | None, rows: Mapping[int, Mapping[str, Any]]) -> Ended:
    if outcome is None:
        return Ended("red", f"FAILED – {name}: the task {task_of(name)} ended without a word; its log says why.")
    words = str(outcome["words"])
    row = rows.get(outcome.get("cycle_id") or 0)
    if outcome["how"] == "skipped" or (row is None and outcome["how"] != "again"):
        return Ended(outcome["how"], words)
    status = CycleStatus(row["cycle_status"]) if row else None
    if status not in TERMINAL:
        return Ended(
            "red", f"NOT FINISHED – {name} still waits; what was stored is kept. The next run goes on with it."
        )
    return Ended("red" if status is CycleStatus.FAILED else "green", words)


def _state(
    name: str, outcomes: Mapping[str, Mapping[str, Any] | None], rows: Mapping[int, Mapping[str, Any]]
) -> str | None:
    row = rows.get((outcomes[name] or {}).get("cycle_id") or 0)
    return str(row["cycle_status"]) if row else None


def job(url: str, run_id: str, streams: Sequence[str], airflow_run: str) -> Ended:
    """Write what a job run came to, and return it; `airflow_run` tells its own lanes, all over now, from others."""
    from include.engine import jobs, upkeep
    from include.operators.lanes import again, rows

    outcome, state = jobs.conclude(url, run_id)
    data = {"run_id": run_id, "outcome": str(outcome) if outcome else None, "total": state.total, "done": state.done}
    place = f"run {run_id}: {state.words}; {rows(state)}"
    if not state.total:
        return Ended("green", f"NOTHING TO DO – run {run_id}: the range holds no day that could have data.", data)
    holders = [owner for name in streams for owner in upkeep.holders(url, run_id, name)] if state.running else []
    others = [owner for owner in holders if f" of {airflow_run} on " not in owner]
    if others:
        return Ended(
            "skipped", f"ANOTHER RUN – {place}. What runs is another's ({worker_of(others[0])}) and goes on.", data
        )
    if state.open or state.running:
        return Ended("red", f"NOT FINISHED – {place}. The same request goes on where it ended.", data)
    if state.failed:
        word = "PARTIAL" if state.done else "FAILED"
        return Ended("red", f"{word} – {place}. First: {state.first_failure}. {again(run_id)}", data)
    if state.out_of_budget:
        return Ended("green", f"BUDGET – {place}. {again(run_id)}", data)
    return Ended("green", f"{'PARTIAL' if state.partial else 'DONE'} – {place}.", data)
