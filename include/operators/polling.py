"""One tick of a poll: works what is eligible for a stream, and says how the task ends.

Promises: it follows the table of what the operator sees; whoever comes late reads the window's own verdict. Never:
no state of a task is asked, only rows; no source is known by name.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from include.calendars import last_instant, next_instant
from include.contract import TERMINAL, CycleStatus, Mode, Stream
from include.engine import cycle, marks, windows
from include.engine.cycle import Worker
from include.engine.db import Row
from include.engine.verdict import Verdict, kst, repetition, where, worker_of
from include.engine.windows import Standing
from include.operators.endings import STOPPED, Ended
from include.operators.tick import MOST_CYCLES, Turn

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Asked:
    """What brought the task here: the window of a scheduled run, and whether the task was here before.

    `slot` is the window's name where the run was scheduled for one; `is_repeat` is True for a cleared task, one that
    Airflow tries again, and one that waited: then a window that is over decides how the task ends.
    """

    slot: str | None
    is_repeat: bool


def poll(worker: Worker, stream: Stream, asked: Asked, turn: Turn) -> Ended:
    """Work slices until a window is over, must wait, or the tick's time is used."""
    windows.declare(worker.url, (stream,))
    over: list[Verdict] = []
    while True:
        windows.open_due(worker.url, stream)
        verdict = cycle.work(worker, stream, Mode.POLL, None)
        if verdict is None or verdict.is_refused:
            if verdict is not None:
                marks.say(log, logging.WARNING, verdict)
            if over:
                return _over(over)
            if verdict is None and turn.stop():
                return Ended("again", STOPPED, {"stream": stream.name})
            if turn.is_mine(_holder(worker, stream)) and turn.wait_for_handover(
                lambda: turn.is_mine(_holder(worker, stream)), worker.nap
            ):
                continue
            return _nothing_eligible(worker, stream, asked, turn, lost=verdict is not None)
        if verdict.status in TERMINAL:
            over.append(verdict)
            if verdict.status is CycleStatus.FAILED or len(over) >= MOST_CYCLES:
                return _over(over)
            continue
        if verdict.is_stopped or not (verdict.next_eligible_at or turn.has_time(stream.budget.slice_seconds)):
            return Ended("again", verdict.words, data_of(verdict))
        if verdict.next_eligible_at is not None:
            wait = verdict.next_eligible_at - windows.standing(worker.url, stream).now
            return Ended("again", verdict.words, data_of(verdict), wait)
        marks.say(log, logging.INFO, verdict)


def data_of(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict's ids and counts for an XCom; its words travel beside them."""
    data = verdict.as_dict()
    for name in ("words", "is_partial", "is_refused", "is_stopped", "is_held"):
        del data[name]
    return data


def ended_as(verdict: Verdict, words: str) -> Ended:
    """Return how a task ends whose cycle is over: red where it failed, otherwise green."""
    is_red = verdict.status is CycleStatus.FAILED
    return Ended("red" if is_red else "green", words, data_of(verdict))


def _over(verdicts: list[Verdict]) -> Ended:
    """The windows that this tick saw the end of: the last one decides, and the words name those before it."""
    return ended_as(verdicts[-1], "; before it: ".join(verdict.words for verdict in reversed(verdicts)))


def _holder(worker: Worker, stream: Stream) -> str | None:
    newest = windows.standing(worker.url, stream).newest
    return newest["lease_owner"] if newest else None


def _nothing_eligible(worker: Worker, stream: Stream, asked: Asked, turn: Turn, *, lost: bool) -> Ended:
    stands = windows.standing(worker.url, stream, asked.slot)
    newest = stands.newest
    start = last_instant(stream.schedule.cron, stream.schedule.timezone, stands.now)
    held = stands.frozen or stands.off
    if held and (newest is None or (_is_over(newest) and newest["window_start"] < start)):
        words = f"FROZEN – the window of {kst(start)} is not opened: {held}. It is once that ends."
        return Ended("skipped", words, {"stream": stream.name})
    if newest is None:
        return Ended("green", f"NOTHING TO DO – no window of {stream.name} was ever due. {_next(stream, stands)}")
    data = {name: newest[name] for name in ("stream", "cycle_id", "slot", "attempt")}
    if newest["cycle_status"] == CycleStatus.RUNNING:
        until = kst(newest["lease_until"])
        if turn.is_mine(newest["lease_owner"]):
            words = (
                f"WAITING – {where(newest)}: the attempt before this one vanished; its lease ends at {until}, and "
                "nobody can work on the window until then."
            )
            return Ended("again", words, data, newest["lease_until"] - stands.now)
        return Ended(
            "skipped",
            f"ANOTHER RUN – {where(newest)} is worked by {worker_of(newest['lease_owner'])} until {until} at the "
            f"latest, and goes on without this run. If that one is gone, its lease ends then, and the window with it; "
            f"{'a make-up window follows' if stream.schedule.make_up else 'the next window asks again'}.",
            data,
        )
    if newest["cycle_status"] == CycleStatus.PENDING:
        if stands.frozen:
            words = f"FROZEN – {where(newest)}: {stands.frozen}. It goes on by itself once it is running again."
            return Ended("skipped", words, data)
        at = newest["next_eligible_at"]
        wait = at - stands.now if at else timedelta()
        words = (
            f"WAITING – {where(newest)} is asked again at {kst(at)}."
            if wait > timedelta()
            else f"WAITING – {where(newest)}: it can be worked on now, and another task has just looked at it."
        )
        return Ended("again", words, data, wait)
    own = stands.own if stands.own and _is_over(stands.own) else newest
    verdict = windows.verdict_of(own, stream)
    if asked.is_repeat or lost:
        return ended_as(verdict, verdict.words)
    words = (
        f"NOTHING TO DO – {where(own)} was over at {kst(own['finished_at'])} ({own['cycle_status']}). "
        f"{_next(stream, stands)}{_again(stream, own)}"
    )
    return Ended("green", words, {"stream": stream.name, "newest_slot": verdict.slot})


def _again(stream: Stream, row: Row) -> str:
    day = row["session_date"]
    if stream.snapshot_only:
        return f" It cannot be collected once more: {stream.snapshot_only}"
    return f" To collect the session once more, trigger with {repetition(stream.name, day)}" if day else ""


def _is_over(row: Row) -> bool:
    return row["finished_at"] is not None


def _next(stream: Stream, stands: Standing) -> str:
    opening = next_instant(stream.schedule.cron, stream.schedule.timezone, stands.now)
    return f"The next window opens at {kst(opening)}."
