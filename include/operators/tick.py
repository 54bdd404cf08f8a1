"""A task that works in ticks: it ends, or gives its place back and is called again later.

Promises: a tick ends within minutes and after ten cycles, so that no task holds a worker longer; what happened stands
in the log's last line, in the XCom `outcome`, in the rendered field of that name and, best effort, in the notes. A task
that is killed or whose supervisor is gone stops between two steps. Never: no wait is slept through, and no exception is
raised from a signal handler.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator

from include.engine import marks
from include.operators import notes
from include.operators.endings import Ended, Interrupted
from include.operators.resolve import ConnectionUnfit
from include.settings import SettingError

# How long one tick works, and how many cycles it claims: others wait for its place.
WORK_SECONDS, MOST_CYCLES = 600.0, 10
# How long an attempt waits for the one before it to give its lease back: Airflow kills a cleared one after 5 s.
HANDOVER_SECONDS, LOOK_SECONDS = 10.0, 0.5
# After how long Airflow takes a tick for stuck.
EXECUTION_TIMEOUT = timedelta(minutes=20)


@dataclass(frozen=True)
class Turn:
    """What a tick may know about its turn: when to stop, how long it may work, and who works."""

    stop: Callable[[], bool]
    began: float
    owner: str

    def has_time(self, seconds: float) -> bool:
        """Say whether something that takes so many seconds would still end within the tick."""
        return time.monotonic() - self.began + seconds <= WORK_SECONDS

    def is_mine(self, lease_owner: str | None) -> bool:
        """Say whether an attempt of this very task holds a lease: one before this, that was cleared or killed."""
        return (lease_owner or "").startswith(f"{self.owner} on ")

    def wait_for_handover(self, is_held: Callable[[], bool], nap: Callable[[float], None]) -> bool:
        """Wait for the attempt before this one to give back what it holds; say whether it did.

        Two clears in a row run two attempts side by side for some seconds, and nobody tells when the first has ended.
        """
        until = time.monotonic() + HANDOVER_SECONDS
        while is_held():
            if self.stop() or time.monotonic() > until:
                return False
            nap(LOOK_SECONDS)
        return True


class Tick(BaseSensorOperator):
    """A task that is called until it ends; subclasses say in `work` what one call does."""

    template_fields = ("outcome",)
    overwrite_rtif_after_execution = True
    ui_color = "#e8f0e4"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(mode="reschedule", poke_interval=60, timeout=timedelta(days=3_650), **kwargs)
        self.outcome = ""
        self._stopped = False

    @property
    def about(self) -> str | None:
        """The stream that the task's lines are about, where it is one's."""
        return None

    def work(self, context: Mapping[str, Any], turn: Turn) -> Ended:
        """Do one tick and say what it came to."""
        raise NotImplementedError

    def execute(self, context: Any) -> None:
        """Work one tick. The sensor's own timeout has no say: windows and runs decide how long is waited."""
        self.poke(context)

    def poke(self, context: Any) -> bool:
        """Work one tick, tell what happened, and leave as it ended."""
        with marks.bound(stream=self.about):
            turn = self._turn(context)
            ended = self._work(context, turn)
            self.outcome = ended.words
            data = ended.data
            with marks.bound(window=data.get("slot"), cycle_id=data.get("cycle_id"), attempt=data.get("attempt")):
                self._say(context, turn, ended)
        ended.leave()
        return True

    def _say(self, context: Any, turn: Turn, ended: Ended) -> None:
        if ended.how != "red":
            self.log.info(ended.words)
        if not turn.stop():
            # A stopped attempt may have a successor already, whose word counts.
            context["ti"].xcom_push(key="outcome", value=ended.outcome())
            notes.task(context, ended.words)
            self.tell_run(context, ended)

    def tell_run(self, context: Mapping[str, Any], ended: Ended) -> None:
        """Put a note on the run too; the last task to do so has the last word."""
        if ended.how != "skipped":
            notes.run(context, ended.words)

    def on_kill(self) -> None:
        """Raise a flag and nothing else: this is called from a signal handler."""
        self._stopped = True

    def _turn(self, context: Any) -> Turn:
        parent, ti = os.getppid(), context["ti"]
        lane = f"[{ti.map_index}]" if ti.map_index is not None and ti.map_index >= 0 else ""
        return Turn(
            stop=lambda: self._stopped or os.getppid() != parent,
            began=time.monotonic(),
            owner=f"{ti.dag_id}.{ti.task_id}{lane} of {ti.run_id}",
        )

    def _work(self, context: Any, turn: Turn) -> Ended:
        import psycopg

        from include.engine.surrender import WarehouseAway

        if not context.get("task_reschedule_count"):
            notes.task(context, f"WORKING – attempt {context['ti'].try_number}")
        try:
            return self.work(context, turn)
        except (ConnectionUnfit, SettingError) as unfit:
            return Ended("red", f"REFUSED – {unfit}")
        except psycopg.OperationalError as error:
            known = str(error) if isinstance(error, WarehouseAway) else None
            words = f"INTERRUPTED – {known or f'the warehouse does not answer: {_first_line(error)}'}"
            self.outcome = words
            if not turn.stop():
                notes.task(context, words)
            raise Interrupted(words) from None


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0][:300]
