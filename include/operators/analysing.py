"""The tasks of the analysis: look whether there is something to do, give filings to the model, wait for its answers.

Promises: nothing is handed from task to task that a crash could lose, as the rows say what is under way; one trigger
waits for all answers of the batch, in no worker's place; neither of the two tasks waits for what the other would have
to do and does no more. Never: a filing's text, an answer or a secret is in an XCom, a
trigger's arguments or a log.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from airflow.sdk import BaseOperator, CronTriggerTimetable
from airflow.sdk.exceptions import AirflowSkipException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from include import settings
from include.bodies import Reading
from include.contract import Source
from include.operators import declared, notes
from include.operators.endings import Ended, Failed, Interrupted, refuse
from include.operators.publish import stopping
from include.operators.tick import Tick, Turn

POOL = "llm"
# Ids of the two tasks that work side by side, each of which asks whether the other is still there.
SUBMIT, ANSWERS = "submit", "answers"
_OVER = ("success", "failed", "skipped", "upstream_failed", "removed")
# How long one tick claims, and one trigger looks, before the task begins anew, in seconds.
SUBMIT_SECONDS, POLL_SECONDS = 480.0, 540.0
# How often a submitter asks whether anybody looks at the answers, how long a trigger looks at least that was begun as
# the submitter was still there, and for how long nothing is with the model before one ends although something waits.
ASK_SECONDS, LEAST_SECONDS, QUIET_SECONDS = 15.0, 10.0, 30.0


def schedule(asset: Any, timetable: CronTriggerTimetable | Any) -> Any:
    """Return when the analysis runs by itself: as something comes in, and at the sweeps; never, where it is not on.

    Raises:
        SettingError: ANALYSIS_SCHEDULER_AUTO_START is neither true nor false.
    """
    from airflow.sdk import AssetOrTimeSchedule

    return AssetOrTimeSchedule(timetable=timetable, assets=[asset]) if settings.analysis_is_on() else None


class LookOperator(BaseOperator):
    """Puts into the queue what an operator asks for, brings back dead workers' jobs; skips the rest of an idle run."""

    template_fields = ("outcome",)
    overwrite_rtif_after_execution = True
    ui_color = "#e4e8f0"

    def __init__(self, *, readings: Sequence[Reading], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.readings = tuple(readings)
        self.outcome = ""

    def execute(self, context: Any) -> None:
        """Look once.

        Raises:
            AirflowSkipException: nothing is to be done.
            Failed: the request makes no sense, or a setting cannot be used.
            Interrupted: the warehouse does not answer.
        """
        import psycopg

        from include.operators import resolve

        try:
            wishes = settings.analysis()
            words, is_idle = self._look(resolve.warehouse_url(), wishes, context["params"])
        except (resolve.ConnectionUnfit, settings.SettingError) as unfit:
            refuse(str(unfit))
        except psycopg.OperationalError as error:
            raise Interrupted(f"INTERRUPTED – {str(error).partition(chr(10))[0][:300]}") from None
        self.outcome = words
        self.log.info(words)
        if is_idle:
            raise AirflowSkipException(words)
        notes.run(context, words)

    def _look(self, url: str, wishes: settings.Analysis, params: Mapping[str, Any]) -> tuple[str, bool]:
        from include.analysis import prompts, queue
        from include.engine import hosts
        from include.engine.db import connect

        said = []
        connection = connect(url, application="daybook analysis", autocommit=True)
        try:
            queue.permit(connection, wishes.concurrency, wishes.newest_days)
            hosts.declare(connection, {each.stream.host_group for each in self.readings})
            if params["mode"] != "poll":
                start, end = _range(params)
                if params["mode"] == "backfill":
                    said.append(f"{queue.ask_for(connection, start, end)} filings are asked for")
                else:
                    number = queue.read_again(connection, start, end, prompts.VERSION)
                    said.append(f"{number} analyses are made again with prompts {prompts.VERSION}")
            if came_back := queue.recover(connection):
                said.append(f"{came_back} jobs of workers that vanished came back")
            there = queue.standing(connection)
        finally:
            connection.close()
        if there.is_idle:
            return f"NOTHING TO DO – {'; '.join([*said, 'nothing waits'])}.", True
        said.append(f"{there.waiting} wait, {there.in_flight} are with the model")
        return f"WORKING – {'; '.join(said)}.", False


def _range(params: Mapping[str, Any]) -> tuple[date, date]:
    try:
        start, end = (date.fromisoformat(params[name] or "") for name in ("start_date", "end_date"))
    except ValueError:
        refuse(f"mode={params['mode']} needs start_date and end_date: the days of receipt, both inclusive.")
    if end < start:
        refuse(f"start_date {start} is after end_date {end}.")
    if params["mode"] == "replay" and not (params["reason"] or "").strip():
        refuse("a replay needs a reason: it costs the model's time once more.")
    return start, end


class SubmitOperator(Tick):
    """Claims filings, looks up their texts and gives them to the model, until nothing is left."""

    def __init__(self, *, source: Source, readings: Sequence[Reading], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        declared.declare(source)
        self.source = source.name
        self.readings = tuple(readings)

    def work(self, context: Mapping[str, Any], turn: Turn) -> Ended:
        """Work one tick."""
        from include.analysis import submit
        from include.analysis.body import Desk
        from include.analysis.model import Submitter
        from include.engine.db import Line
        from include.engine.raw import RawStore
        from include.operators import resolve

        url, wishes = resolve.warehouse_url(), settings.analysis()
        backend, raw = resolve.model(wishes), RawStore(settings.load().raw_root)
        reach = resolve.credentials(declared.source(self.source))
        is_alone = _Asking(context, ANSWERS)
        with stopping(turn) as stop:

            def make() -> submit.Worker:
                line = Line(url, application="daybook analysis")
                desk = Desk(line, raw, reach, self.readings, stop=stop.is_set, nap=lambda seconds: _wait(stop, seconds))
                return submit.Worker(line, desk, Submitter(backend), backend.own_ids, stop.is_set)

            counts, left = submit.run(
                make,
                wishes.concurrency,
                idle=wishes.idle.total_seconds(),
                stop=stop,
                seconds=SUBMIT_SECONDS if turn.has_time(SUBMIT_SECONDS) else 0.0,
                url=url,
                is_alone=is_alone,
            )
        did = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.by.items())) or "nothing was claimed"
        words = f"{did}; {left.waiting} wait, {left.in_flight} are with the model"
        if left.away_since is not None:
            words += f"; the model is away since {left.away_since.isoformat(timespec='seconds')}"
        if left.is_idle:
            return Ended("green", f"DONE – {words}.", dict(counts.by))
        if is_alone.answer:
            # Cleared by itself: it would wait for slots that nobody frees, and hold up the run that looks.
            return Ended("green", f"DONE – {words}; the next run looks for the answers.", dict(counts.by))
        return Ended("again", f"GOING ON – {words}.", dict(counts.by), timedelta(seconds=30))


def _wait(stop: Any, seconds: float) -> None:
    stop.wait(seconds)


def _is_over(context: Mapping[str, Any], task_id: str) -> bool:
    """Whether another task of this run has ended."""
    ti = context["ti"]
    states = ti.get_task_states(dag_id=ti.dag_id, task_ids=[task_id], run_ids=[ti.run_id])
    return states.get(ti.run_id, {}).get(task_id) in _OVER


class _Asking:
    """Asks Airflow whether another task has ended, at most every `ASK_SECONDS`; what it does not answer is a no."""

    def __init__(self, context: Mapping[str, Any], task_id: str) -> None:
        self._context, self._task_id, self._next = context, task_id, time.monotonic() + ASK_SECONDS
        self.answer = False

    def __call__(self) -> bool:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + ASK_SECONDS
            with contextlib.suppress(Exception):
                self.answer = _is_over(self._context, self._task_id)
        return self.answer


class AwaitOperator(BaseOperator):
    """Waits for the model's answers, by one trigger for all of them."""

    template_fields = ("outcome",)
    overwrite_rtif_after_execution = True
    ui_color = "#e4e8f0"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.outcome = ""

    def execute(self, context: Any) -> None:
        """Hand over to the trigger.

        Raises:
            TaskDeferred: always.
        """
        self.defer(trigger=AnalysisTrigger(POLL_SECONDS), method_name="resume")

    def resume(self, context: Any, event: Mapping[str, Any], so_far: Mapping[str, int] | None = None) -> None:
        """End where nothing is with the model any more and nobody gives it anything; hand over again otherwise.

        Args:
            context: of the task.
            event: what the trigger found.
            so_far: what the triggers before it found.

        Raises:
            Failed: a connection or setting cannot be used.
            TaskDeferred: there is more to wait for.
        """
        if event.get("refused"):
            raise Failed(f"REFUSED – {event['refused']}")
        found = dict(so_far or {})
        for outcome, number in event["outcomes"].items():
            found[outcome] = found.get(outcome, 0) + number
        # As long as the submitter is there, it may give the model something at any moment; an answer that nobody looks
        # for keeps its slot, and the submitter waits for slots.
        is_done = event["is_quiet"] and _is_over(context, SUBMIT)
        words = ", ".join(f"{number} {outcome}" for outcome, number in sorted(found.items()))
        self.outcome = f"{'DONE' if is_done else 'GOING ON'} – {words or 'nothing was with the model'}."
        self.log.info(self.outcome)
        notes.task(context, self.outcome)
        if not is_done:
            trigger = AnalysisTrigger(POLL_SECONDS, LEAST_SECONDS)
            self.defer(trigger=trigger, method_name="resume", kwargs={"so_far": found})


class AnalysisTrigger(BaseTrigger):
    """The poll loop. What it looks at is read from the rows, so it may run again, or twice, as it likes."""

    def __init__(self, seconds: float, least: float = 0.0) -> None:
        super().__init__()
        self.seconds, self.least = seconds, least

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what Airflow keeps of it: nothing but how long it looks."""
        kept = {"seconds": self.seconds, "least": self.least}
        return f"{type(self).__module__}.{type(self).__name__}", kept

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look until nothing is under way, or the time is over."""
        from include.analysis.polling import Poller
        from include.operators import resolve

        try:
            wishes = settings.analysis()
            url, backend = await resolve.analysis_reach(wishes)
        except (resolve.ConnectionUnfit, settings.SettingError) as unfit:
            yield TriggerEvent({"refused": str(unfit)})
            return
        # The model's client takes a second to load, and all triggers share this loop.
        poller = await asyncio.to_thread(Poller, url, backend)
        try:
            event = await look(poller, wishes.poll.total_seconds(), self.seconds, self.least)
        finally:
            await poller.close()
        yield TriggerEvent(event)


async def look(poller: Any, every: float, seconds: float, least: float = 0.0) -> dict[str, Any]:
    """Look in rounds until nothing is under way or the time is over; return what the rounds came to.

    It also ends where something waits and nobody has given it to the model for `QUIET_SECONDS`: whoever should do that
    may have ended, and only another run brings another. `is_quiet`: nothing is with the model, or on its way there.
    """
    import psycopg

    outcomes: dict[str, int] = {}
    began = time.monotonic()
    busy, is_quiet = began, False
    while (now := time.monotonic()) < began + seconds:
        try:
            done, there = await poller.round(), await poller.standing()
        except psycopg.OperationalError:
            # The database is away: what is under way is still in its rows when it comes back.
            done, there, busy, is_quiet = None, None, now, False
        for outcome, number in (done.outcomes if done else {}).items():
            if outcome not in ("waiting", "away"):
                outcomes[outcome] = outcomes.get(outcome, 0) + number
        if there is not None:
            is_quiet = not (there.in_flight or there.claimed)
            busy = busy if is_quiet else now
            if now >= began + least and (there.is_idle or now >= busy + QUIET_SECONDS):
                break
        await asyncio.sleep(max(every - (time.monotonic() - now), 0.0))
    return {"outcomes": outcomes, "is_quiet": is_quiet}
