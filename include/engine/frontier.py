"""Where a cycle goes on: askings with pages missing, and requests that stored answers led to.

Promises: all of it follows from the rows and the stored answers of the cycle, so that a crash loses nothing and nothing
that is stored is asked for twice; what the next window takes over stands in the cycle's cursor as keys and numbers.
Never: no request is sent, and no address is in a cursor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from include.contract import Answer, AnswerClass, Ask, Mode, PendingReason, Request, Stream
from include.engine import fetches, pending, windows
from include.engine.db import Connection
from include.engine.fetches import Held
from include.engine.plan import Plan
from include.engine.raw import RawObjectDamaged, RawObjectMissing, RawStore
from include.engine.slices import Open, Slice

READ = (AnswerClass.DATA, AnswerClass.EMPTY)
# What is stored of an answer can no longer be read.
LOST = (RawObjectDamaged, RawObjectMissing)


def stream_cursor(cursor: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a stream itself put into a cycle's cursor."""
    own: Mapping[str, Any] = cursor.get("stream") or {}
    return own


def keys_of(cursor: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys that a cycle takes over."""
    return tuple(cursor.get("keys") or ())


def split(stream: Stream, request: Request, answer: Answer) -> tuple[list[Request], list[Request]]:
    """Return the further pages of an answer's unit, and what else a list leads to."""
    more = list(stream.follow(request, answer))
    pages = [each for each in more if each.unit == request.unit]
    return pages, [each for each in more if each.unit != request.unit] if request.kind == "list" else []


def resume(connection: Connection, raw: RawStore, part: Slice) -> None:
    """Find where the cycle goes on, and plan what its stored answers led to."""
    stream, cycle = part.stream, part.cycle
    if not stream.follows:
        return
    part.cursor = stream_cursor(cycle.cursor)
    planned = {request.key: request for request in part.plan.requests}
    heads = fetches.open_askings(connection, cycle.cycle_id, cycle.cursor.get("open") or ())
    missing = [key for key in heads.values() if key not in planned]
    planned |= {request.key: request for request in _named(stream, cycle.mode, missing)}
    part.plan = replace(part.plan, requests=tuple(planned.values()))
    for head, key in heads.items():
        if key in planned and key not in part.answers:
            stands = _reopen(connection, raw, part, planned[key], head)
            part.open |= {key: stands} if stands else {}
    _discover(connection, raw, part)


def _named(stream: Stream, mode: Mode, keys: Sequence[str]) -> list[Request]:
    """Have the stream plan some keys again."""
    wanted = set(keys)
    return [r for r in stream.plan(Ask(mode, pending=tuple(keys))) if r.key in wanted] if keys else []


def _reopen(connection: Connection, raw: RawStore, part: Slice, first: Request, head: int) -> Open | None:
    """Follow the stored pages of an asking once more: what they did not lead to yet is still to be sent.

    None where it began with another request than is planned now, or can no longer be read: it is asked for anew.
    """
    todo: list[Request] = [first]
    answers = fetches.load(connection, raw, head).answers
    if dict(answers[0].request.about) != dict(first.about):
        return None
    for answer in answers:
        if not todo:
            return None
        request = todo.pop(0)
        try:
            pages, found = split(part.stream, request, replace(answer, request=request))
        except LOST:
            return None
        todo += pages
        part.add(found)
    return Open(head, len(answers), tuple(todo))


def _discover(connection: Connection, raw: RawStore, part: Slice) -> None:
    """Plan what lists that this cycle has read led to, and what these led to."""
    queue = [request for request in part.plan.requests if request.kind == "list"]
    while queue:
        request = queue.pop(0)
        if part.answers.get(request.key) not in READ:
            continue
        head = fetches.last_asking(connection, part.cycle.cycle_id, request.key)
        if head is None:
            continue
        todo = [request]
        for answer in fetches.load(connection, raw, head).answers:
            page = todo.pop(0)
            full = replace(answer, request=page)
            try:
                pages, found = split(part.stream, page, full)
                part.cursor = part.stream.cursor_after(page, full) or part.cursor
            except LOST:
                # Only asking for it anew says what it led to.
                del part.answers[request.key]
                break
            todo += pages
            queue += plan_found(connection, part, found)


def plan_found(connection: Connection, part: Slice, found: Iterable[Request]) -> list[Request]:
    """Plan what an answer led to; returns what is new.

    A window leaves out details that are held already, or wait for another time; a chunk asks for what it was told to.
    """
    wanted = list(found)
    if part.is_window and wanted:
        details = [request.key for request in wanted if request.kind == "detail"]
        stream = part.stream.name
        had = fetches.had(connection, stream, details) | pending.waiting(connection, stream, details)
        wanted = [request for request in wanted if request.key not in had]
    return part.add(wanted)


def led_to(stream: Stream, mode: Mode, held: Held) -> list[Request]:
    """Return what a stored list leads to, beside its own pages.

    Nothing where it is no list, where nobody can plan it, or where it can no longer be read: then applying it says so.
    """
    first = _named(stream, mode, [held.answers[0].request.key])
    todo, found = first[:1], list[Request]()
    for answer in held.answers if stream.follows else ():
        if not todo:
            break
        request = todo.pop(0)
        try:
            pages, others = split(stream, request, replace(answer, request=request))
        except LOST:
            return []
        todo += pages
        found += others
    return found


def keep(
    connection: Connection, stream: Stream, cycle_id: int, found: Sequence[Request], read: Held | None = None
) -> None:
    """Keep what a list led to as pending, where it is not held, and what was left out of requests.

    It belongs into the transaction that applies the list. `read` is an answer that a crash had left behind and that is
    applied now: its own key need not be asked for again.
    """
    keys = [request.key for request in found]
    had = fetches.had(connection, stream.name, keys)
    now = windows.now(connection)
    entries = [
        pending.Again(each.key, PendingReason.DISCOVERED, each.session_date, at=now, only_if_absent=True)
        for each in {request.key: request for request in found}.values()
        if each.key not in had
    ]
    parts = pending.left_out(connection, stream.name)
    entries += parts.entries
    first = read.answers[0] if read is not None else None
    pending.lock(connection, stream.name, [*(entry.key for entry in entries), *([first.request.key] if first else ())])
    if first is not None:
        pending.answered(connection, stream.name, first.request, first.sent_at)
    pending.again(connection, stream.name, cycle_id, entries)
    pending.kept(connection, cycle_id, parts)


def cursor_of(part: Slice, *, is_over: bool) -> dict[str, Any] | None:
    """Return where the next slice or window goes on, None where there is nothing to go on with.

    What a window found and did not ask for are pending keys, which no crash takes away; its lists stand here as well.
    """
    left = [request.key for request in part.found_unanswered() if request.kind == "list" or not part.is_window]
    left += [key for key in keys_of(part.cycle.cursor) if key not in part.answers and key not in left]
    state: dict[str, Any] = {
        "stream": dict(part.cursor),
        "open": [each.head for each in part.open.values()],
        "keys": left,
    }
    return None if is_over or not any(state.values()) else {name: value for name, value in state.items() if value}


def with_handed_on(plan: Plan, stream: Stream, mode: Mode, cursor: Mapping[str, Any]) -> Plan:
    """Add the requests that a cycle takes over to its plan."""
    known = {request.key for request in plan.requests}
    named = _named(stream, mode, [key for key in keys_of(cursor) if key not in known])
    return replace(plan, requests=(*plan.requests, *named))
