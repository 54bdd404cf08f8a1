"""The tasks that collect: one per stream for what is due now, and lanes for backfills and replays.

Promises: a task works in ticks under leases of the engine and ends as the rows say. An asset event is sent only when
rows changed, and then at least once: what changed stays untold in the rows until Airflow itself shows the event that
told it, and whichever task of the stream ends green next tells it. Never: nothing is asked of the upstream here, and no
stream's failure is told of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from include import settings
from include.contract import Credentials, Mode, Stream
from include.operators import declared
from include.operators.endings import Ended
from include.operators.tick import Tick, Turn

if TYPE_CHECKING:
    from include.engine.changes import Untold

CHECK = "check_request"
# Among how many events of a stream the one just sent is looked for; lanes of several runs may send at once.
NEWEST_EVENTS = 50


def asset(stream: str) -> Asset:
    """Return the asset that stands for a stream's rows: consumers are scheduled on it."""
    return Asset(stream, group="rows")


def alias(stream: str) -> AssetAlias:
    """Return the alias through which a task sends the event, or sends none."""
    return AssetAlias(f"{stream}_changed", group="rows")


class _Collecting(Tick):
    """What both kinds of task share: the stream, the request, the worker, the event."""

    def __init__(self, *, stream: str, check: str = CHECK, **kwargs: Any) -> None:
        # A mapped task comes here with an empty callback of its own.
        super().__init__(**{**kwargs, "on_success_callback": _confirm})
        self.stream = stream
        self.check = check
        self.told: Untold | None = None

    @property
    def about(self) -> str:
        """The stream that it collects."""
        return self.stream

    def request(self, context: Mapping[str, Any]) -> Ended | dict[str, Any]:
        """Return what the first task asks of this run, or how the task ends where that is nothing for it."""
        asked: dict[str, Any] | None = context["ti"].xcom_pull(task_ids=self.check, key="request")
        if asked is None:
            return Ended("skipped", f"SKIPPED – {self.check} did not let the run through, so nothing was asked.")
        if asked["dry_run"]:
            return Ended(
                "skipped", f"SKIPPED – this is a dry run; the plan is in the log and the note of {self.check}."
            )
        if self.stream not in asked["streams"]:
            return Ended("skipped", f"SKIPPED – this run is limited to {', '.join(asked['streams'])}.")
        return asked

    def worker(self, stream: Stream, turn: Turn, *, asks: bool) -> Any:
        """Return what the engine works with; a replay asks no upstream and needs no connection to one."""
        from include.engine.cycle import Worker
        from include.engine.lease import holder
        from include.engine.raw import RawStore
        from include.operators import resolve

        source = declared.source(stream.source)
        return Worker(
            url=resolve.warehouse_url(),
            raw=RawStore(settings.load().raw_root),
            credentials=resolve.credentials(source) if asks else Credentials(source.hosts[0]),
            owner=f"{turn.owner} on {holder()}",
            stop=turn.stop,
            files=settings.load().files_root,
        )

    def send_event(self, context: Mapping[str, Any], ended: Ended) -> None:
        """Send an asset event with a green end where rows of the stream changed and nobody was told yet."""
        from include.engine import changes
        from include.operators import resolve

        if ended.how != "green" or not ended.tells:
            return
        untold = changes.untold(resolve.warehouse_url(), self.stream)
        if not untold.changed:
            return
        self.told = untold
        extra = {
            "stream": self.stream,
            "changed": untold.changed,
            "kst_day": untold.kst_day.isoformat(),
            "session_date": untold.session_date.isoformat() if untold.session_date else None,
            "cycle_id": untold.cycle_id,
            "run_id": untold.run_id,
            # One of each attempt, so that its event is known from any other's.
            "told_by": str(context["ti"].id),
        }
        context["outlet_events"][alias(self.stream)].add(asset(self.stream), extra=extra)


def _confirm(context: Mapping[str, Any]) -> None:
    """Write that what a task told is told, where Airflow has the event.

    Airflow calls this after it was asked to take the success with its events, and also where it refused: a task that
    was cleared, failed or marked by hand at that very moment is over as somebody else said, and its event is nowhere.
    Who is killed before never gets here. In all these cases the next task tells once more.
    """
    from include.engine import changes, marks
    from include.operators import resolve

    operator, told_by = context["task"], str(context["ti"].id)
    if operator.told is None:
        return
    if _has_event(operator.stream, told_by):
        changes.confirm(resolve.warehouse_url(), operator.told)
    else:
        with marks.bound(stream=operator.stream):
            operator.log.warning(
                "UNTOLD – Airflow did not take the event; the next task of %s sends it", operator.stream
            )


def _has_event(stream: str, told_by: str) -> bool:
    """Say whether Airflow shows the event of an attempt among the newest of its asset."""
    # Imported here, as nothing but a task that has sent an event asks.
    from airflow.sdk.execution_time.context import InletEventsAccessors

    events = InletEventsAccessors([asset(stream)])[asset(stream)].ascending(False).limit(NEWEST_EVENTS)
    return any((event.extra or {}).get("told_by") == told_by for event in events)


class PollOperator(_Collecting):
    """Works what is due of one stream now, or the newest of named keys."""

    def work(self, context: Mapping[str, Any], turn: Turn) -> Ended:
        """Work one tick."""
        from include.operators import lanes, polling

        asked = self.request(context)
        if isinstance(asked, Ended):
            return asked
        if asked["mode"] != Mode.POLL:
            return Ended("skipped", f"SKIPPED – mode={asked['mode']} is worked by the lanes.")
        stream = declared.stream(self.stream)
        worker = self.worker(stream, turn, asks=True)
        if asked["run_id"] is not None:
            ended = lanes.work(worker, stream, lanes.Job(asked["run_id"], Mode.POLL), turn)
        else:
            ti = context["ti"]
            is_repeat = ti.try_number > 1 or bool(context.get("task_reschedule_count"))
            ended = polling.poll(worker, stream, polling.Asked(_slot(context), is_repeat), turn)
        self.send_event(context, ended)
        return ended


class LaneOperator(_Collecting):
    """Works chunks of a backfill or replay of one stream, side by side with other lanes."""

    def __init__(self, *, lane: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lane = lane

    def work(self, context: Any, turn: Turn) -> Ended:
        """Work one tick."""
        from include.operators import lanes

        context["lane"] = f"lane {self.lane}"
        asked = self.request(context)
        if isinstance(asked, Ended):
            return asked
        mode = Mode(asked["mode"])
        stream = declared.stream(self.stream)
        if asked["run_id"] is None:
            return self._help(stream, turn)
        worker = self.worker(stream, turn, asks=mode is not Mode.REPLAY)
        ended = lanes.work(worker, stream, lanes.Job(asked["run_id"], mode), turn)
        context["lane"] = f"lane {self.lane}: {ended.words.partition(' – ')[0].lower()}"
        self.send_event(context, ended)
        return ended

    def _help(self, stream: Stream, turn: Turn) -> Ended:
        """Help with a poll whose window is cut into parts; any other is worked by its own task alone."""
        from include.operators import lanes

        if stream.making is None:
            return Ended("skipped", f"SKIPPED – a poll of {stream.name} is worked by one task.")
        return lanes.help_window(self.worker(stream, turn, asks=False), stream, turn)

    def tell_run(self, context: Mapping[str, Any], ended: Ended) -> None:
        """Lanes have a note each; the run's is written where the run begins and ends."""


def _slot(context: Mapping[str, Any]) -> str | None:
    """The window of a scheduled run, by its logical date; None for a run that has none."""
    instant = context["dag_run"].logical_date
    if instant is None or context["dag_run"].run_type != "scheduled":
        return None
    return str(instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
