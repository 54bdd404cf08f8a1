"""Days on which the calendar seems to be wrong, for an operator to decide.

Promises: a day is proposed once, with what was seen; nothing changes until somebody decides. Never: an operator's word
is changed.
"""

from __future__ import annotations

from datetime import date

from include.contract import AnswerClass
from include.engine import fetches
from include.engine.db import Connection, query
from include.engine.slices import Slice


def propose(connection: Connection, part: Slice) -> None:
    """Propose what the answers of a cycle say against the calendar, in the transaction that ends it."""
    by_day: dict[date, set[AnswerClass | None]] = {}
    held: set[date] = set()
    for request in part.plan.requests:
        day, answer = request.session_date, part.answers.get(request.key)
        if day is not None and answer is AnswerClass.DATA:
            held.add(day)
        if day is not None and request.expected:
            by_day.setdefault(day, set()).add(answer)
    for day in sorted(held):
        if not part.days.is_session(day):
            _put(connection, part, day, f"has data for {day}, which the calendar calls closed")
    for day in sorted(day for day, classes in by_day.items() if classes == {AnswerClass.NOT_YET}):
        if part.days.is_session(day) and (any(later > day for later in held) or _is_next_held(connection, part, day)):
            _put(connection, part, day, f"has no data for {day}, but has for later sessions")


def _is_next_held(connection: Connection, part: Slice, day: date) -> bool:
    """Say whether the session after a day is held, whoever collected it; a chunk sees its own days only."""
    following = part.days.session_offset(day, 1)
    return bool(fetches.held_keys(connection, part.stream.name, [following]))


def _put(connection: Connection, part: Slice, day: date, seen: str) -> None:
    connection.execute(
        query("calendar.propose"),
        {"calendar": part.stream.calendar, "day": day, "reason": f"{part.stream.name} {seen}"},
    )
