"""One slice of a poll window or a backfill chunk, from claim to verdict, readable from top to bottom.

Promises: what a crash left stored is applied before anything is asked; every answer is kept before it is read;
rows and the cycle's state commit together under the token; a worker that is stopped gives its lease back. Never:
no source is known by name, and nothing is written once the lease is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from threading import Lock

import httpx

from include.calendars import Calendar
from include.contract import AnswerClass, BudgetReason, Credentials, CycleStatus, Mode, Request, Stream
from include.engine import apply as applying
from include.engine import fetch, fetches, hosts, http, plan, stage, windows
from include.engine.closing import Ending, close
from include.engine.db import Connection, Line, is_unreachable
from include.engine.fetches import Held
from include.engine.lease import Cycle, Lease, LeaseLost, claim_on, renewed
from include.engine.merge import Counts
from include.engine.plan import Plan, Spent
from include.engine.raw import RawStore
from include.engine.surrender import surrender
from include.engine.verdict import Verdict, where

CONCLUSIVE = frozenset({AnswerClass.DATA, AnswerClass.EMPTY, AnswerClass.UNCHANGED, AnswerClass.ABSENT})


@dataclass(frozen=True)
class Worker:
    """What a worker brings: where the warehouse and the raw store are, how to reach the upstream, when to stop.

    `stop` is asked between requests and before each apply; `nap` sleeps (tests replace it); `signal` is called
    with the name of each commit point that was passed and does nothing in production.
    """

    url: str
    raw: RawStore
    credentials: Credentials
    owner: str
    stop: Callable[[], bool] = lambda: False
    nap: Callable[[float], None] = time.sleep
    signal: Callable[[str], None] = lambda point: None


@dataclass(frozen=True)
class LeftOut:
    """A part of a request that the upstream refused, to be asked for by itself: its session date, and why."""

    session_date: date | None
    reason: str


@dataclass
class Slice:
    """What a slice has gathered so far."""

    lease: Lease
    stream: Stream
    days: Calendar
    plan: Plan
    answers: dict[str, AnswerClass]
    started: float
    spent: Spent
    errors: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    to_apply: list[Held] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    list_pages: int = 0
    details: int = 0

    @property
    def cycle(self) -> Cycle:
        """The cycle that is worked on."""
        return self.lease.cycle


def work(worker: Worker, stream: Stream, mode: Mode, run_id: str | None) -> Verdict | None:
    """Claim the next eligible cycle of a stream and work one slice of it.

    Returns:
        What the slice came to; None where no cycle is eligible.
    """
    line = Line(worker.url, application="daybook slice", nap=worker.nap)
    try:
        # Before the claim: building a calendar takes seconds, in which a worker that is stopped could not give back.
        days = windows.days_of(line.connection, stream)
        lease = claim_on(line.connection, worker.url, stream.name, mode, run_id, worker.owner)
        if lease is None:
            return None
        worker.signal("claimed")
        try:
            with (
                renewed(lease) as pause,
                http.client(worker.credentials.user_agent) as client,
            ):
                return _slice(worker, stream, days, lease, pause, line, client)
        except LeaseLost as lost:
            return Verdict(
                stream.name,
                f"LEASE LOST – {where(lease.cycle.row)}: {lost} What was stored is kept; the next cycle applies it.",
                cycle_id=lease.cycle.cycle_id,
                slot=lease.cycle.slot,
                session_date=lease.cycle.session_date,
                is_refused=True,
            )
        except Exception as error:
            if is_unreachable(error):
                raise
            return surrender(lease, stream, error)
    finally:
        line.close()


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
        ending = _no_storage(error)
    except applying.Interrupted:
        ending = Ending("stopped")
    planned = line.kept(lambda connection: plan.for_cycle(connection, stream, cycle, days))
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
    ending = ending or _ask_all(worker, asker, part, pause)
    if not lease.is_trusted():
        raise LeaseLost("It could not be renewed in time, so nothing more was sent.")
    if ending.how == "stopped":
        # Who stops a worker gives it seconds. What is stored is applied by the next one before it asks for anything.
        part.to_apply.clear()
    worker.signal("before last apply")
    with pause:
        try:
            verdict = close(part, ending, lambda finish: _apply(worker, line, part, finish))
        except OSError as error:
            # What could not be read now is stored, and left for the next cycle to apply.
            verdict = close(part, _no_storage(error), lambda finish: _apply(worker, line, part, finish))
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
        held = [fetches.load(line.connection, worker.raw, head)]
        with pause:
            counts += _apply_held(worker, line, lease, stream, held, applying.going_on)[0]
    return counts


def _ask_all(worker: Worker, asker: fetch.Asker, part: Slice, pause: Lock) -> Ending:
    """Ask for everything planned that this cycle has no last word on, and say how it ended."""
    budget = part.stream.budget
    rows = 0
    try:
        for request in part.plan.requests:
            if _is_answered(part, request):
                continue
            if worker.stop():
                return Ending("stopped")
            if (limit := _day_limit(part, request, rows)) is not None:
                return Ending("budget", limit)
            if time.monotonic() - part.started > budget.slice_seconds or rows >= budget.slice_items:
                return Ending("more")
            if request.kind == "list" and part.list_pages >= budget.slice_list_pages:
                return Ending("more")
            rows += _ask_unit(worker, asker, part, request)
            if part.errors.get(request.key, "").startswith("refused: "):
                return Ending("refused", part.errors[request.key].removeprefix("refused: "))
            if part.answers[request.key] is AnswerClass.BLOCKED:
                return Ending("refused", part.errors[request.key])
            if rows >= stage.MOST_ROWS:
                with pause:
                    _apply(worker, asker.line, part, applying.going_on)
                worker.signal("applied")
    except (hosts.Stopped, applying.Interrupted):
        return Ending("stopped")
    except hosts.Blocked as blocked:
        return Ending("blocked", str(blocked), blocked.until)
    except hosts.UsedUp as used_up:
        return Ending("quota", str(used_up), used_up.until)
    except OSError as error:
        return _no_storage(error)
    return Ending("done")


def _no_storage(error: OSError) -> Ending:
    return Ending("storage", f"the raw store cannot be written or read: {error}")


def _is_answered(part: Slice, request: Request) -> bool:
    """Say whether asking again in this cycle is of no use.

    A window asks once for what failed after the retries and for an older session that is still missing: only its
    own session is worth a try every half hour.
    """
    answer_class = part.answers.get(request.key)
    if answer_class is None or part.cycle.run_id is not None:
        return answer_class in CONCLUSIVE
    if answer_class is AnswerClass.NOT_YET:
        return request.session_date != part.cycle.session_date
    return answer_class in CONCLUSIVE or answer_class is AnswerClass.ERROR


def _day_limit(part: Slice, request: Request, rows: int) -> BudgetReason | None:
    """Return which of the day's budgets the next request would overstep; chunks have none."""
    if part.cycle.run_id is not None:
        return None
    budget, spent = part.stream.budget, part.spent
    if request.kind == "list" and spent.list_pages + part.list_pages >= budget.day_list_pages:
        return BudgetReason.LIST_PAGE_LIMIT
    if request.kind == "detail" and spent.details + part.details >= budget.day_details:
        return BudgetReason.DETAIL_LIMIT
    if spent.items + rows >= budget.day_items:
        return BudgetReason.ITEM_LIMIT
    return None


def _ask_unit(worker: Worker, asker: fetch.Asker, part: Slice, first: Request) -> int:
    """Ask for all pages of a unit; return about how many rows wait to be applied because of it."""
    page, head, todo = 0, None, [first]
    answer_class = AnswerClass.ERROR
    while todo:
        request = todo.pop(0)
        fetched = fetch.ask(asker, request, page, head)
        if request.kind == "list":
            part.list_pages += 1
        else:
            part.details += 1

        worker.signal("stored")
        if fetched.amended is not None and page == 0 and fetched.amended.key not in part.left_out:
            part.left_out[fetched.amended.key] = LeftOut(request.session_date, fetched.amended.reason)
            todo = [fetched.amended.request]
            continue
        head = head or fetched.fetch_id
        page += 1
        answer_class = fetched.answer_class
        if fetched.refusal:
            part.errors[first.key] = f"refused: {fetched.refusal}"
            break
        if answer_class not in (AnswerClass.DATA, AnswerClass.EMPTY):
            part.errors[first.key] = fetched.error or str(answer_class)
            break
        todo.extend(fetched.more)
    part.answers[first.key] = answer_class
    if answer_class in (AnswerClass.DATA, AnswerClass.EMPTY) and head is not None:
        known = head
        held = asker.line.kept(lambda connection: fetches.load(connection, worker.raw, known))
        part.to_apply.append(held)
        # Bytes of a line are a fair guess of rows, and cost no parse here.
        return held.size // applying.FEWEST_BYTES
    return 0


def _apply(worker: Worker, line: Line, part: Slice, finish: applying.Finish) -> tuple[Counts, CycleStatus]:
    """Apply what the slice has gathered and settle the cycle as `finish` says."""
    held, part.to_apply = part.to_apply, []
    counts, status = _apply_held(worker, line, part.lease, part.stream, held, finish)
    part.counts += counts
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
        )

    return applying.repeated(read_and_apply, stream, is_large=applying.is_surely_large(held))
