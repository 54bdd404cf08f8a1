"""What a slice leaves to be asked for: the keys that stay pending, or become it, and when they are read again.

Promises: written in the transaction that ends the slice; what is held, absent or explained is taken out, and a key
whose answer is stored and not read yet stays as it is. Never: nothing is decided about the cycle here.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from include.contract import AnswerClass, CycleStatus, PendingReason, Request
from include.engine import doubts, fetches, pending, proposals, windows
from include.engine.db import Connection, query
from include.engine.slices import Slice


def refused_units(connection: Connection, part: Slice) -> dict[str, str]:
    """Units of this cycle that could not be read, with the reason, whichever slice had them."""
    values = {"cycle": part.cycle.cycle_id, "doubted": doubts.FEWER_ROWS}
    rows = connection.execute(query("quarantine.refused_units"), values).fetchall()
    return {row["unit"]: row["reason"] for row in rows}


def write(connection: Connection, part: Slice, status: CycleStatus) -> None:
    """Keep what is still to be fetched, take out what is held or explained, and set the next rechecks."""
    over, now = status is not CycleStatus.PENDING, windows.now(connection)
    refused = refused_units(connection, part)
    left_out = pending.left_out(connection, part.stream.name)
    done: list[str] = []
    again: list[pending.Again] = []
    for request in part.plan.requests:
        key, answer_class = request.key, part.answers.get(request.key)
        if key in part.unread:
            # Whoever applies it says whether it could be read.
            continue
        if answer_class is None:
            if part.is_window and key in part.found:
                why = PendingReason.DISCOVERED
                again.append(pending.Again(key, why, request.session_date, at=now, only_if_absent=True))
            elif over and status is CycleStatus.FAILED and part.cycle.run_id is None:
                again.append(
                    pending.Again(
                        key, PendingReason.DISCOVERED, request.session_date, "not asked for", only_if_absent=True
                    )
                )
            continue
        is_needless = not request.required and not request.is_known
        is_explained = over and answer_class is AnswerClass.NOT_YET and is_needless
        if is_explained or answer_class in (AnswerClass.DATA, AnswerClass.EMPTY, AnswerClass.UNCHANGED):
            if request.unit in refused:
                reason = refused[request.unit]
                again.append(pending.Again(key, PendingReason.FAILED, request.session_date, reason))
            elif (recheck := _recheck(connection, part, key, request.session_date)) is not None:
                again.append(recheck)
            elif _has_none(part, request):
                error = "answered with nothing, which is not right here"
                asked_none = pending.Again(key, PendingReason.ASKED_NONE, request.session_date, error)
                again += [asked_none] if over else []
            else:
                done.append(key)
        elif answer_class is AnswerClass.ABSENT:
            done.append(key)
        elif not request.expected and not request.is_known:
            # A day that the calendar calls closed: the chunk tries again, and no window ever asks for it.
            done.append(key)
        elif over and answer_class is AnswerClass.NOT_YET:
            again.append(pending.Again(key, PendingReason.NOT_PUBLISHED, request.session_date, "not published"))
        elif over:
            again.append(pending.Again(key, PendingReason.FAILED, request.session_date, part.errors.get(key)))
    if over and part.cycle.window_start is not None:
        again += _missing_rechecks(connection, part, {*done, *(entry.key for entry in again)})
    # One that was asked for by itself meanwhile has an answer of its own.
    known = {*done, *(entry.key for entry in again)}
    again += [entry for entry in left_out.entries if entry.key not in known]
    pending.lock(connection, part.stream.name, [*done, *(entry.key for entry in again)])
    pending.done(connection, part.stream.name, done, keep_rechecks=part.cycle.window_start is None)
    pending.again(connection, part.stream.name, part.cycle.cycle_id, again)
    pending.kept(connection, part.cycle.cycle_id, left_out)
    if status is CycleStatus.SUCCESS:
        proposals.propose(connection, part)


def _has_none(part: Slice, request: Request) -> bool:
    """Say whether nothing was answered where there should be something: it is asked for again, seldom and for long."""
    if part.stream.empty_can_be_right or not (request.expected and request.required and request.session_date):
        return False
    answer_class, due = part.answers[request.key], part.plan.pending.get(request.key)
    had_none = due is not None and due.why is PendingReason.ASKED_NONE
    return answer_class is AnswerClass.EMPTY or (answer_class is AnswerClass.UNCHANGED and had_none)


def _missing_rechecks(connection: Connection, part: Slice, known: set[str]) -> list[pending.Again]:
    """Return rechecks of recent sessions that are held although no request of this window fetched them.

    A backfill may have been faster, or a repair may have applied what an earlier window had stored.
    """
    recheck, newest = part.stream.recheck, part.cycle.session_date
    if recheck is None or newest is None:
        return []
    sessions = part.days.sessions(part.days.session_offset(newest, -recheck.sessions), newest)
    held = fetches.held_keys(connection, part.stream.name, sessions)
    found = [_recheck(connection, part, key, session) for key, session in held.items() if key not in known]
    return [replace(entry, only_if_absent=True) for entry in found if entry is not None]


def _recheck(connection: Connection, part: Slice, key: str, session: date | None) -> pending.Again | None:
    """Return when a key that is held is read again, None once it has been often enough."""
    recheck = part.stream.recheck
    if recheck is None or session is None or part.cycle.window_start is None:
        return None
    upcoming, at = windows.next_session_window(part.stream, part.days, part.cycle.window_start)
    if part.days.session_offset(session, recheck.sessions) < upcoming:
        return None
    return pending.Again(key, PendingReason.RECHECK, session, at=at)
