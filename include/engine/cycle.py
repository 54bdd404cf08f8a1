"""One slice of a poll window or a backfill chunk, from claim to verdict, readable from top to bottom.

Promises: what a crash left stored is applied before anything is asked; every answer is kept before it is read;
rows and the cycle's state commit together under the token; a worker that is stopped gives its lease back. Never:
no source is known by name, and nothing is written once the lease is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

import httpx

from include.calendars import Calendar
from include.contract import AnswerClass, Credentials, CycleStatus, Mode, Request, Stream
from include.engine import apply as applying
from include.engine import asking, fetch, fetches, frontier, http, making, plan, windows
from include.engine.closing import Ending, close
from include.engine.db import Connection, Line
from include.engine.fetches import Held
from include.engine.lease import Cycle, Lease, LeaseLost, claim_on, renewed
from include.engine.merge import Counts
from include.engine.plan import Plan
from include.engine.raw import RawStore
from include.engine.slices import Slice
from include.engine.surrender import shielded
from include.engine.verdict import Verdict


@dataclass(frozen=True)
class Worker:
    """What a worker brings: where the warehouse and the raw store are, how to reach the upstream, when to stop.

    `stop` is asked between requests and before each apply; `nap` sleeps (tests replace it); `signal` is called
    with the name of each commit point that was passed and does nothing in production. `files` is where files lie that
    streams make. `line` is a connection that is kept for all the cycles that are worked one after the other; without
    one, each cycle makes its own.
    """

    url: str
    raw: RawStore
    credentials: Credentials
    owner: str
    stop: Callable[[], bool] = lambda: False
    nap: Callable[[float], None] = time.sleep
    signal: Callable[[str], None] = lambda point: None
    files: str = ""
    line: Line | None = None


@contextmanager
def keeping_a_line(worker: Worker) -> Iterator[Worker]:
    """The worker with a line of its own, for many cycles: connections are a quarter of what a small chunk costs."""
    with closing(Line(worker.url, application="daybook slice", nap=worker.nap)) as line:
        yield replace(worker, line=line)


def work(worker: Worker, stream: Stream, mode: Mode, run_id: str | None) -> Verdict | None:
    """Claim the next eligible cycle of a stream and work one slice of it.

    Returns:
        What the slice came to; None where no cycle is eligible, or the worker was stopped before it claimed one.

    Raises:
        psycopg.OperationalError: the warehouse could not be reached for longer than its connections are patient; with a
            cycle claimed it is a `WarehouseAway`, whose text says what was kept.
    """
    line = worker.line or Line(worker.url, application="daybook slice", nap=worker.nap)
    try:
        # Before the claim: building a calendar takes seconds, in which a worker that is stopped could not give back.
        # A line that was kept may have broken since the last cycle: that shows here, where it is made anew.
        days = line.kept(lambda connection: windows.days_of(connection, stream))
        if worker.stop():
            return None
        lease = claim_on(line.connection, worker.url, stream.name, mode, run_id, worker.owner)
        if lease is None:
            return None
        worker.signal("claimed")
        if stream.making is not None:
            return shielded(lease, stream, partial(_make, worker, stream, lease))
        return shielded(lease, stream, partial(_ask, worker, stream, days, lease, line))
    finally:
        if worker.line is None:
            line.close()


def _make(worker: Worker, stream: Stream, lease: Lease) -> Verdict:
    """Work a cycle of a stream that makes files: a window, or a part of a run."""
    with renewed(lease) as pause:
        if lease.cycle.run_id is None:
            return making.window(worker, stream, lease)
        return making.part(worker, stream, lease, pause)


def _ask(worker: Worker, stream: Stream, days: Calendar, lease: Lease, line: Line) -> Verdict:
    """Work a cycle of a stream that asks its upstream."""
    with renewed(lease) as pause, http.client(worker.credentials.user_agent) as client:
        return _slice(worker, stream, days, lease, pause, line, client)


def _slice(
    worker: Worker,
    stream: Stream,
    days: Calendar,
    lease: Lease,
    pause: Lock,
    line: Line,
    client: httpx.Client,
) -> Verdict:
    cycle = lease.cycle
    repaired, ending = Counts(), None
    try:
        repaired = _repair(worker, stream, lease, pause, line)
    except OSError as error:
        ending = asking.no_storage(error)
    except applying.Interrupted:
        ending = Ending("stopped")
    planned = line.kept(lambda connection: plan.for_cycle(connection, stream, cycle, days))
    planned = frontier.with_handed_on(planned, stream, cycle.mode, cycle.cursor)
    part = Slice(
        lease,
        stream,
        days,
        planned,
        line.kept(lambda connection: _answered(connection, stream, cycle, planned)),
        time.monotonic(),
        line.kept(lambda connection: plan.spent_today(connection, cycle)),
        counts=repaired,
    )
    asker = fetch.Asker(
        line=line,
        http=client,
        raw=worker.raw,
        credentials=worker.credentials,
        stream=stream,
        cycle=cycle,
        patient=cycle.run_id is not None,
        may_go_on=lambda: not worker.stop() and lease.is_trusted(),
        nap=worker.nap,
    )
    line.kept(lambda connection: frontier.resume(connection, worker.raw, part))

    def go_on(connection: Connection, counts: Counts) -> applying.Settlement:
        # A list that is applied is not read again: what it led to must be known to whoever comes after a crash.
        frontier.keep(connection, stream, cycle.cycle_id, part.found_unanswered() if part.is_window else ())
        return applying.going_on(connection, counts)

    def apply_now() -> None:
        with pause:
            _apply(worker, line, part, go_on)

    ending = ending or asking.ask_all(worker, asker, part, apply_now)
    if not lease.is_trusted():
        raise LeaseLost("It could not be renewed in time, so nothing more was sent.")
    if ending.how == "stopped":
        # Who stops a worker gives it seconds. What is stored is applied by the next one before it asks for anything.
        part.leave(part.to_apply)
        part.to_apply.clear()
    worker.signal("before last apply")
    with pause:
        try:
            verdict = close(part, ending, lambda finish: _apply(worker, line, part, finish))
        except OSError as error:
            # What could not be read now is stored, and left for the next cycle to apply.
            verdict = close(part, asking.no_storage(error), lambda finish: _apply(worker, line, part, finish))
        except applying.Interrupted:
            verdict = close(part, Ending("stopped"), lambda finish: _apply(worker, line, part, finish))
    worker.signal("settled")
    return verdict


def _answered(connection: Connection, stream: Stream, cycle: Cycle, planned: Plan) -> dict[str, AnswerClass]:
    """Return what needs no asking: answered to this cycle, or to another chunk of its run."""
    own = fetches.answered_keys(connection, cycle.cycle_id)
    if cycle.run_id is None or stream.chunks is None:
        return own
    keys = [request.key for request in planned.requests]
    return {**fetches.answered_in_run(connection, stream.name, cycle.run_id, cycle.cycle_id, keys), **own}


def _repair(worker: Worker, stream: Stream, lease: Lease, pause: Lock, line: Line) -> Counts:
    """Apply what was stored but never applied, before anything is asked."""
    counts = Counts()
    cycle = lease.cycle
    for head in line.kept(lambda c: fetches.not_applied(c, stream.name, cycle.cycle_id, cycle.run_id)):
        held = fetches.load(line.connection, worker.raw, head)
        found = frontier.led_to(stream, cycle.mode, held) if cycle.run_id is None else []

        def finish(
            connection: Connection, counts: Counts, held: Held = held, found: Sequence[Request] = found
        ) -> applying.Settlement:
            # The window that asked is over, and the next one may not ask again for what was answered.
            frontier.keep(connection, stream, cycle.cycle_id, found, held if cycle.run_id is None else None)
            return applying.going_on(connection, counts)

        with pause:
            counts += _apply_held(worker, line, lease, stream, [held], finish)[0]
    return counts


def _apply(worker: Worker, line: Line, part: Slice, finish: applying.Finish) -> tuple[Counts, CycleStatus]:
    """Apply what the slice has gathered and settle the cycle as `finish` says."""
    held, part.to_apply, part.waiting = part.to_apply, [], 0
    try:
        counts, status = _apply_held(worker, line, part.lease, part.stream, held, finish)
    except (OSError, applying.Interrupted):
        part.leave(held)
        raise
    part.counts += counts
    part.items += counts.read
    return counts, status


def _apply_held(
    worker: Worker,
    line: Line,
    lease: Lease,
    stream: Stream,
    held: Sequence[Held],
    finish: applying.Finish,
) -> tuple[Counts, CycleStatus]:
    def read_and_apply(now: applying.Try) -> tuple[Counts, CycleStatus]:
        units = line.kept(lambda connection: applying.out_of_order(connection, stream, held))
        askings = line.kept(lambda connection: applying.all_askings(connection, worker.raw, stream, units))
        return applying.apply(
            lease,
            stream,
            [applying.read(stream, asking, now) for asking in held if asking.unit not in units],
            [applying.read(stream, asking, now) for asking in askings],
            finish,
            in_parts=now.in_parts,
            may_go_on=lambda: not worker.stop() and lease.is_trusted(),
            on=line.connection if worker.line else None,
        )

    return applying.repeated(read_and_apply, stream, is_large=applying.is_surely_large(held))
