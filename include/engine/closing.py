"""How a slice ends: which state the cycle takes, what stays pending, how far the checkpoint moves, what is told.

Promises: one place decides, by the table of states in ARCHITECTURE.md; everything it decides is written in the
transaction of the last apply. Never: no request, and no state without its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, Literal

from include.contract import AnswerClass, CycleStatus, Mode, Outcome, Request
from include.engine import delta, fetches, frontier, health, incidents, outstanding, plan, windows
from include.engine.apply import Finish, Settlement
from include.engine.db import Connection, query
from include.engine.merge import Counts
from include.engine.slices import Slice
from include.engine.verdict import Verdict, counts_of, describe_counts, kst, repetition, where

MOST_ATTEMPTS = 3
CHUNK_RETRY = timedelta(minutes=1)
NOT_PUBLISHED = "not published by its last try"


@dataclass(frozen=True)
class Ending:
    """How the asking ended, with the reason and, where blocked, until when.

    `done`, `more` (the slice's budget is used), `budget` (the day's is; the reason names either), `quota` (no key has
    requests left), `stopped`, `blocked` (before asking), `refused` (by the upstream, for good) or `storage` (answers
    cannot be kept).
    """

    how: Literal["done", "more", "budget", "quota", "stopped", "blocked", "refused", "storage"]
    reason: str = ""
    until: datetime | None = None


@dataclass(frozen=True)
class Decision:
    """The state that a cycle takes, with the facts that are written and the words that are shown."""

    status: CycleStatus
    words: str
    facts: dict[str, Any]
    outcome: Outcome | None = None
    is_partial: bool = False
    is_stopped: bool = False
    is_held: bool = False
    next_eligible_at: datetime | None = None
    alert: tuple[str, incidents.Severity] | None = None
    is_told_at_once: bool = True


def close(part: Slice, ending: Ending, apply_rest: Callable[[Finish], tuple[Counts, CycleStatus]]) -> Verdict:
    """Apply the rest, write the cycle's state, and return the verdict."""
    decided: list[Decision] = []

    def finish(connection: Connection, counts: Counts) -> Settlement:
        decision = _decide(connection, part, ending)
        outstanding.write(connection, part, decision.status)
        if decision.outcome in (Outcome.SUCCESS, Outcome.PARTIAL) and part.cycle.run_id is None:
            _move_checkpoint(connection, part)
        if decision.alert is not None and (decision.is_told_at_once or _is_second(connection, part, decision)):
            incidents.tell_ending(connection, part.stream, part.cycle, decision.status, *decision.alert)
        if decision.status is CycleStatus.SUCCESS and part.cycle.window_start is not None:
            incidents.tell_recovery(connection, part.stream, part.cycle, is_partial=decision.is_partial)
        decided.append(decision)
        is_over = decision.status in (CycleStatus.SUCCESS, CycleStatus.FAILED)
        facts = _conclusions(connection, part, decision, counts)
        return Settlement(
            decision.status,
            {
                "details": part.details,
                "list_pages": part.list_pages,
                "detail_failures": sum(part.answers.get(key) is AnswerClass.ERROR for key in part.errors),
                "details_skipped": _skipped(part, ending),
                "next_eligible_at": decision.next_eligible_at,
                "outcome": decision.outcome,
                **({} if part.unread else {"cursor": frontier.cursor_of(part, is_over=is_over)}),
                **decision.facts,
                **facts,
            },
        )

    apply_rest(finish)
    decision = decided[-1]
    return Verdict(
        stream=part.stream.name,
        words=f"{decision.words} ({_totals(part)})",
        status=decision.status,
        outcome=decision.outcome,
        cycle_id=part.cycle.cycle_id,
        slot=part.cycle.slot,
        session_date=part.cycle.session_date,
        next_eligible_at=decision.next_eligible_at,
        counts=part.counts,
        requests=part.details + part.list_pages,
        is_partial=decision.is_partial,
        is_stopped=decision.is_stopped,
        is_held=decision.is_held,
    )


def _skipped(part: Slice, ending: Ending) -> int:
    """Count the details that a window leaves out for a limit, however else it ends."""
    if part.cycle.run_id is not None or ending.how not in ("budget", "quota"):
        return 0
    return sum(request.kind == "detail" for request in part.unanswered())


def _totals(part: Slice) -> str:
    """Say what the cycle has done so far, the slices before this one included."""
    before = part.cycle.row
    counts = counts_of(before) + part.counts
    requests = before["list_page_count"] + before["detail_request_count"] + part.list_pages + part.details
    return f"{describe_counts(counts)}; {requests} requests"


def _conclusions(connection: Connection, part: Slice, decision: Decision, counts: Counts) -> dict[str, Any]:
    """Draw what follows from the end of a window: items missed and closed, the stream's health, days out of budget."""
    if part.cycle.window_start is None:
        return {}
    if decision.status is CycleStatus.BUDGET_EXHAUSTED:
        health.tell_out_of_budget(connection, part.stream, part.cycle)
    if decision.status is not CycleStatus.SUCCESS:
        return {}
    rows_read = part.cycle.row["fetched_count"] + part.counts.read + counts.read
    return {
        "abnormal": health.is_abnormal(part.stream, part.answers.values(), rows_read),
        **(delta.conclude(connection, part.stream, part.cycle, part.answers) if _lists_are_read(part) else {}),
    }


def _lists_are_read(part: Slice) -> bool:
    """Say whether every list page that was planned or found was read."""
    lists = [request for request in part.plan.requests if request.kind == "list"]
    return all(part.answers.get(request.key) in frontier.READ for request in lists)


def _decide(connection: Connection, part: Slice, ending: Ending) -> Decision:
    now, place = windows.now(connection), where(part.cycle.row)
    if ending.how == "stopped":
        return Decision(
            CycleStatus.PENDING,
            f"STOPPED – {place}: the lease was given back; the next attempt goes on where this one ended.",
            {},
            is_stopped=True,
        )
    if ending.how == "refused":
        return _failed(part, now, "refused", "refused by the upstream", ending.reason, Outcome.FAILED_TERMINAL)
    if ending.how == "storage":
        return _failed(part, now, "terminal", "answers cannot be stored", ending.reason, Outcome.FAILED_TERMINAL)
    if ending.how == "blocked":
        return replace(_wait(part, now, ending.until or now, "the host is stopped", ending.reason), is_held=True)
    if ending.how == "more":
        return Decision(
            CycleStatus.PENDING,
            f"GOING ON – {place}: this slice's budget is used ({ending.reason}); the next slice goes on at once.",
            {"budget": ending.reason},
        )
    if ending.how == "quota" and part.cycle.run_id is not None:
        at = ending.until or now
        words = f"WAITING – {place}: {ending.reason} Goes on at {kst(at)}; nothing is lost."
        return Decision(CycleStatus.PENDING, words, {}, is_held=True, next_eligible_at=at)
    failed = {key: part.errors.get(key, "failed") for key in _required(part, AnswerClass.ERROR)} or _all_failed(part)
    if failed:
        key, error = next(iter(failed.items()))
        cause = f"{len(failed)} required answers failed after the retries, first {key}: {error}"
        return _failed(part, now, "retriable", "answers failed after the retries", cause, Outcome.FAILED_RETRIABLE)
    if ending.how in ("budget", "quota"):
        reason = ending.reason if ending.how == "quota" else f"{ending.reason},"
        return Decision(
            CycleStatus.BUDGET_EXHAUSTED,
            f"BUDGET – {place}: {reason} {len(part.unanswered())} requests are left for the next window.",
            {"budget": "QUOTA" if ending.how == "quota" else ending.reason},
            outcome=Outcome.SUCCESS,
        )
    missing = _required(part, AnswerClass.NOT_YET)
    if missing and part.cycle.mode is Mode.POLL and part.cycle.run_id is None:
        return _wait(part, now, _next_try(part, now), "not published yet", ", ".join(missing))
    if (unreadable := _all_unreadable(connection, part)) is not None:
        return _failed(part, now, "terminal", "no answer could be read", unreadable, Outcome.FAILED_TERMINAL)
    return _succeeded(connection, part, place)


def _all_unreadable(connection: Connection, part: Slice) -> str | None:
    """Return why, where every required answer of the cycle's own session had data and none could be read.

    One cut file is a fault of that file; all of them mean that the upstream changed its form.
    """
    answered = [request for request in _own(part) if part.answers.get(request.key) is AnswerClass.DATA]
    refused = outstanding.refused_units(connection, part)
    if len(answered) < 2 or any(request.unit not in refused for request in answered):
        return None
    first = answered[0].unit
    return f"all {len(answered)} answers are in quarantine, first {first}: {refused[first]}"


def _own(part: Slice) -> list[Request]:
    """Requests of the cycle's own session, or of none: the required ones, all of them where none is required."""
    own = [
        request
        for request in part.plan.requests
        if request.session_date in (None, part.cycle.session_date) and not plan.is_recheck(part.plan, request.key)
    ]
    return [request for request in own if request.required] or own


def _all_failed(part: Slice) -> dict[str, str]:
    """Return the errors of a window in which nothing came through, though each answer by itself could be missing."""
    own = _own(part) if part.cycle.window_start is not None else []
    if any(part.answers.get(request.key) is not AnswerClass.ERROR for request in own):
        return {}
    return {request.key: part.errors.get(request.key, "failed") for request in own}


def _required(part: Slice, answer_class: AnswerClass) -> list[str]:
    """Keys without which the cycle is not complete and whose last answer was of a class.

    For a window these are its lists and the files of its own session; older sessions that are still missing are
    pending keys and hold nothing up. A chunk is complete without what the upstream does not have, but not without an
    answer.
    """
    return [
        request.key
        for request in part.plan.requests
        if part.answers.get(request.key) is answer_class
        and (
            part.cycle.run_id is not None
            or (
                request.required
                and (request.kind == "list" or request.session_date == part.cycle.session_date)
                and not plan.is_recheck(part.plan, request.key)
            )
        )
    ]


def _next_try(part: Slice, now: datetime) -> datetime:
    schedule, start = part.stream.schedule, part.cycle.window_start
    assert start is not None
    at = start + schedule.retry_first
    while at <= now:
        at += schedule.retry_every
    return at


def _wait(part: Slice, now: datetime, at: datetime, reason: str, cause: str) -> Decision:
    """Wait for another try; past the last try of a window, fail."""
    place, start = where(part.cycle.row), part.cycle.window_start
    if start is not None and at > start + part.stream.schedule.last_try:
        reason = NOT_PUBLISHED if reason == "not published yet" else reason
        return _failed(part, now, "retriable", reason, cause, Outcome.FAILED_RETRIABLE)
    return Decision(
        CycleStatus.PENDING,
        f"WAITING – {place}: {reason} ({cause[:300]}); asked again at {kst(at)}.",
        {},
        next_eligible_at=at,
    )


def _failed(part: Slice, now: datetime, kind: str, reason: str, cause: str, outcome: Outcome) -> Decision:
    place, cycle = where(part.cycle.row), part.cycle
    if cycle.run_id is not None and kind == "retriable" and cycle.failed_attempts + 1 < MOST_ATTEMPTS:
        return Decision(
            CycleStatus.PENDING,
            f"AGAIN – {place}: {reason} ({cause[:300]}); "
            f"attempt {cycle.failed_attempts + 2} of {MOST_ATTEMPTS} follows.",
            {"failed_attempt": 1},
            next_eligible_at=now + CHUNK_RETRY,
        )
    # What shows today alone has no session to backfill.
    by_hand = "" if part.stream.snapshot_only else "run mode=backfill for the session."
    remedy = {
        "retriable": "A later window asks for it" + (f"; to do it at once, {by_hand}" if by_hand else "."),
        "refused": f"Mend the cause: {by_hand or 'the next window asks again.'}",
        "terminal": f"Mend the cause (space, access) or the parser: {by_hand or 'the next window asks again.'}",
    }[kind]
    words = f"FAILED – {place}: {reason} ({cause[:300]}). What was stored is kept. {remedy}"
    severity: incidents.Severity = "error" if kind == "retriable" else "critical"
    return Decision(
        CycleStatus.FAILED,
        words,
        {
            "failure_kind": kind,
            "failure_reason": reason,
            "failure_cause": cause,
            "failed_attempt": 1,
        },
        outcome=outcome,
        alert=(f"{part.stream.name}: {words}", severity),
        is_told_at_once=kind != "retriable" or reason == NOT_PUBLISHED or cycle.run_id is not None,
    )


def _is_second(connection: Connection, part: Slice, decision: Decision) -> bool:
    """Say whether the window before came to no better: what the next window repairs is not told."""
    row = connection.execute(
        query("plan.before"), {"stream": part.stream.name, "window_start": part.cycle.window_start}
    ).fetchone()
    if row is None:
        return False
    if decision.status is CycleStatus.FAILED:
        return bool(row["cycle_status"] == CycleStatus.FAILED)
    return bool(row["outcome"] == Outcome.PARTIAL)


def _succeeded(connection: Connection, part: Slice, place: str) -> Decision:
    if not part.plan.requests:
        day = part.cycle.session_date
        return Decision(
            CycleStatus.SUCCESS,
            f"NOTHING DUE – {place}: the calendar expects nothing new and nothing is pending."
            + (
                f" To ask all the same, trigger with {repetition(part.stream.name, day)}"
                if day and not part.stream.snapshot_only
                else ""
            ),
            {"success_reason": "nothing_due"},
            outcome=Outcome.SUCCESS,
        )
    open_keys = [
        request.key
        for request in part.plan.requests
        if part.answers.get(request.key) is AnswerClass.ERROR
        or (part.answers.get(request.key) is AnswerClass.NOT_YET and request.required)
    ]
    open_keys += fetches.left_out(connection, part.cycle.cycle_id)
    refused = outstanding.refused_units(connection, part)
    is_partial = bool(open_keys or refused)
    if not is_partial:
        return Decision(CycleStatus.SUCCESS, f"DONE – {place}", {}, outcome=Outcome.SUCCESS)
    what = []
    if open_keys:
        what.append(f"{len(open_keys)} keys stay pending (first {open_keys[0]})")
    if refused:
        unit, reason = next(iter(refused.items()))
        what.append(f"{len(refused)} units in quarantine (first {unit}: {reason[:200]})")
    words = f"PARTIAL – {place}: {'; '.join(what)}. Later windows ask again by themselves."
    return Decision(
        CycleStatus.SUCCESS,
        words,
        {},
        outcome=Outcome.PARTIAL,
        is_partial=True,
        alert=(f"{part.stream.name}: {words}", "warning"),
        is_told_at_once=False,
    )


def _move_checkpoint(connection: Connection, part: Slice) -> None:
    """Move over whole ground only: up to the last session before the first that was not asked for in full.

    Details that a list led to are pending keys where they were not asked for: they hold nothing up.
    """
    left = [request for request in part.unanswered() if request.kind == "list" or request.key not in part.found]
    holes = {request.session_date for request in left}
    whole = list(takewhile(lambda day: day not in holes, part.plan.sessions))
    if whole:
        plan.move_checkpoint(connection, part.stream, part.cycle, whole[-1])
