"""One tick of a lane: works the chunks of a backfill, a replay or a poll of named keys.

Promises: lanes need no agreement, each claims the next chunk, at most ten in a tick; a chunk that must wait holds no
other up, and a lane waits only when none can be claimed, never for other lanes; what the upstream refuses for good
stops the lane at once. Never: no state of a task is asked, only rows.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from include.contract import Mode, Outcome, Stream
from include.engine import cycle, jobs, making, marks, replay, upkeep, windows
from include.engine.cycle import Worker
from include.engine.jobs import Progress
from include.engine.verdict import Verdict, kst
from include.operators.endings import SHORTEST_WAIT, STOPPED, Ended
from include.operators.polling import data_of
from include.operators.tick import MOST_CYCLES, Turn

# How often a lane looks whether its stream is still frozen.
FROZEN_WAIT = timedelta(minutes=5)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """What a lane works for: the run's name and its mode."""

    run_id: str
    mode: Mode


def work(worker: Worker, stream: Stream, job: Job, turn: Turn) -> Ended:
    """Work chunks until none can be claimed, the tick has claimed its share, or its time is used."""
    windows.declare(worker.url, (stream,), is_connected=lambda stream: job.mode is not Mode.REPLAY)
    with cycle.keeping_a_line(worker) as lane:
        return _work(lane, stream, job, turn)


def _work(worker: Worker, stream: Stream, job: Job, turn: Turn) -> Ended:
    claimed = set[int | None]()
    while True:
        if len(claimed) >= MOST_CYCLES:
            return _gives_place(worker, stream, job, turn)
        verdict = _slice(worker, stream, job)
        if verdict is None:
            if turn.stop():
                return Ended("again", STOPPED, {"stream": stream.name, "run_id": job.run_id})
            if _left_behind(worker, stream, job, turn) and turn.wait_for_handover(
                lambda: bool(_left_behind(worker, stream, job, turn)), worker.nap
            ):
                continue
            return _idle(worker, stream, job, turn)
        claimed.add(verdict.cycle_id)
        data = {**data_of(verdict), "run_id": job.run_id}
        if verdict.is_refused:
            marks.say(log, logging.WARNING, verdict)
            continue
        if verdict.outcome is Outcome.FAILED_TERMINAL:
            words = f"{verdict.words} The chunks that are left wait; the same request goes on with them."
            return Ended("red", words, data)
        if verdict.is_stopped or not turn.has_time(stream.budget.slice_seconds):
            return Ended("again", verdict.words, data)
        if verdict.is_held and verdict.next_eligible_at is not None:
            # Every other chunk would only find the same.
            wait = verdict.next_eligible_at - windows.standing(worker.url, stream).now
            return Ended("again", verdict.words, data, wait)
        marks.say(log, logging.INFO, verdict)


def help_window(worker: Worker, stream: Stream, turn: Turn) -> Ended:
    """Work parts that a stream's window has cut its work into, beside the poll's own task, until the window is over."""
    windows.declare(worker.url, (stream,))
    windows.open_due(worker.url, stream)
    worked = 0
    while not turn.stop():
        if worked >= MOST_CYCLES or not turn.has_time(stream.budget.slice_seconds):
            return Ended("again", f"GOING ON – {worked} parts of {stream.name} in this tick.", {"stream": stream.name})
        verdict = making.work_any(worker, stream)
        if verdict is None:
            newest = windows.standing(worker.url, stream).newest
            if newest is not None and newest["finished_at"] is None:
                words = f"WAITING – no part of {stream.name} can be claimed now, and its window is not over."
                return Ended("again", words, {"stream": stream.name})
            words = f"LANE DONE – no part of {stream.name} is open."
            return Ended("green", words, {"stream": stream.name}, tells=False)
        worked += 1
        marks.say(log, logging.INFO, verdict)
    return Ended("again", STOPPED, {"stream": stream.name})


def _gives_place(worker: Worker, stream: Stream, job: Job, turn: Turn) -> Ended:
    """End a tick that has claimed its share: another task has the place now, and this lane goes on after it."""
    state = jobs.progress(worker.url, job.run_id, stream.name)
    if not state.open:
        return _idle(worker, stream, job, turn)
    words = (
        f"GOING ON – {state.words}. This tick has worked {MOST_CYCLES} chunks; the lane gives its place to whoever "
        f"waits for one, and goes on in {SHORTEST_WAIT.seconds} s."
    )
    data = {"stream": stream.name, "run_id": job.run_id, "done": state.done, "total": state.total}
    return Ended("again", words, data)


def _slice(worker: Worker, stream: Stream, job: Job) -> Verdict | None:
    if job.mode is Mode.REPLAY:
        return replay.work(worker, stream, job.run_id)
    return cycle.work(worker, stream, job.mode, job.run_id)


def _left_behind(worker: Worker, stream: Stream, job: Job, turn: Turn) -> list[datetime]:
    """When the leases end that earlier attempts of this lane still hold: cleared some seconds ago, or killed."""
    held = upkeep.holders(worker.url, job.run_id, stream.name)
    return [until for owner, until in held.items() if turn.is_mine(owner)]


def _idle(worker: Worker, stream: Stream, job: Job, turn: Turn) -> Ended:
    """Nothing can be claimed: wait for chunks that wait, or end as the stream's part of the run stands.

    While other lanes have chunks, what changed is left to them to tell: once, when all of it is there.
    """
    state = jobs.progress(worker.url, job.run_id, stream.name)
    data = {"stream": stream.name, "run_id": job.run_id, "done": state.done, "total": state.total}
    if state.open:
        stands = windows.standing(worker.url, stream)
        if stands.frozen and job.mode is not Mode.REPLAY:
            return Ended("again", f"FROZEN – {state.words}: {stands.frozen}.", data, FROZEN_WAIT)
        at = jobs.next_eligible(worker.url, job.run_id, stream.name)
        return Ended(
            "again", f"WAITING – {state.words}; asked again at {kst(at)}.", data, at - stands.now if at else timedelta()
        )
    if mine := _left_behind(worker, stream, job, turn):
        wait = max(mine) - windows.standing(worker.url, stream).now
        return Ended("again", f"WAITING – {state.words}; an attempt of this lane vanished with its lease.", data, wait)
    if state.running:
        return Ended("green", f"LANE DONE – {state.words}; other lanes have the rest.", data, tells=False)
    return _settled(state, data)


def _settled(state: Progress, data: dict[str, object]) -> Ended:
    if state.failed:
        words = f"FAILED – {state.words}. First: {state.first_failure}. {again(state.run_id)}"
        return Ended("red", words, data)
    word = "BUDGET" if state.out_of_budget else "PARTIAL" if state.partial else "DONE"
    words = f"{word} – {state.words}; {rows(state)}."
    return Ended("green", words, data)


def rows(state: Progress) -> str:
    """Say what became of the rows, and how many chunks are not whole."""
    changed = state.rows_new + state.rows_changed + state.rows_withdrawn
    text = f"{state.rows_read:,} rows read, {changed:,} new, changed or withdrawn"
    if state.partial:
        text += f"; {state.partial:,} of the chunks with rows or files in quarantine, or keys that failed"
    return text


def again(run_id: str) -> str:
    """Say what goes on with a run."""
    return f"The same request once more (or run_id={run_id}) opens what failed again and leaves the rest."
