"""The tasks of the analysis: look whether there is something to do, give filings to the model, wait for its answers.

Promises: nothing is handed from task to task that a crash could lose, as the rows say what is under way; one trigger
waits for all answers of the batch, in no worker's place. Never: a filing's text, an answer or a secret is in an XCom, a
trigger's arguments or a log.
"""

from __future__ import annotations

import asyncio
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
# How long one tick claims, and one trigger looks, before the task begins anew, in seconds.
SUBMIT_SECONDS, POLL_SECONDS = 480.0, 540.0


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
            )
        did = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.by.items())) or "nothing was claimed"
        words = f"{did}; {left.waiting} wait, {left.in_flight} are with the model"
        if left.away_since is not None:
            words += f"; the model is away since {left.away_since.isoformat(timespec='seconds')}"
        if left.is_idle:
            return Ended("green", f"DONE – {words}.", dict(counts.by))
        return Ended("again", f"GOING ON – {words}.", dict(counts.by), timedelta(seconds=30))


def _wait(stop: Any, seconds: float) -> None:
    stop.wait(seconds)


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

    def resume(self, context: Any, event: Mapping[str, Any]) -> None:
        """End where nothing is under way any more, hand over again otherwise.

        Raises:
            Failed: a connection or setting cannot be used.
            TaskDeferred: there is more to wait for.
        """
        if event.get("refused"):
            raise Failed(f"REFUSED – {event['refused']}")
        outcomes = ", ".join(f"{number} {outcome}" for outcome, number in sorted(event["outcomes"].items()))
        self.outcome = f"DONE – {outcomes or 'nothing was with the model'}."
        self.log.info(self.outcome)
        notes.task(context, self.outcome)
        if not event["is_idle"]:
            self.defer(trigger=AnalysisTrigger(POLL_SECONDS), method_name="resume")


class AnalysisTrigger(BaseTrigger):
    """The poll loop. What it looks at is read from the rows, so it may run again, or twice, as it likes."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what Airflow keeps of it: nothing but how long it looks."""
        return f"{type(self).__module__}.{type(self).__name__}", {"seconds": self.seconds}

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
            event = await look(poller, wishes.poll.total_seconds(), self.seconds)
        finally:
            await poller.close()
        yield TriggerEvent(event)


async def look(poller: Any, every: float, seconds: float) -> dict[str, Any]:
    """Look in rounds until nothing is under way or the time is over; return what the rounds came to."""
    import psycopg

    outcomes: dict[str, int] = {}
    until, is_idle = time.monotonic() + seconds, False
    while not is_idle and time.monotonic() < until:
        began = time.monotonic()
        try:
            done = await poller.round()
            is_idle = (await poller.standing()).is_idle
        except psycopg.OperationalError:
            # The database is away: what is under way is still in its rows when it comes back.
            done = None
        for outcome, number in (done.outcomes if done else {}).items():
            if outcome not in ("waiting", "away"):
                outcomes[outcome] = outcomes.get(outcome, 0) + number
        if not is_idle:
            await asyncio.sleep(max(every - (time.monotonic() - began), 0.0))
    return {"outcomes": outcomes, "is_idle": is_idle}
