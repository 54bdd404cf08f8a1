"""Days on which the calendar seems to be wrong, for an operator to decide.

Promises: a day is proposed once, with what was seen; nothing changes until somebody decides. A day without anything is
judged by all that the stream would ask for it, whoever asked and in whatever order. Never: an operator's word is
changed, and a failure is not taken for "nothing".
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from include.contract import AnswerClass, Ask, Mode
from include.engine import subjects, windows
from include.engine.db import Connection, query
from include.engine.slices import Slice

# What an upstream says of a day that it has nothing for; "unchanged" where it said so before.
NOTHING = frozenset({AnswerClass.EMPTY, AnswerClass.NOT_YET, AnswerClass.ABSENT, AnswerClass.UNCHANGED})
# A day without anything is missed once one of so many sessions after it is there: later closures in a row are as long.
SESSIONS_AFTER = 5


def propose(connection: Connection, part: Slice) -> None:
    """Propose what the answers of a cycle say against the calendar, in the transaction that ends it."""
    if not part.days.has_closed_days:
        return
    by_day: dict[date, set[AnswerClass]] = {}
    for request in part.plan.requests:
        answer = part.answers.get(request.key)
        if request.session_date is not None and answer is not None:
            by_day.setdefault(request.session_date, set()).add(answer)
    for day, answers in sorted(by_day.items()):
        if AnswerClass.DATA in answers and not part.days.is_session(day):
            _put(connection, part, day, f"has data for {day}, which the calendar calls closed")
    for day in _without_anything(connection, part, _missed(connection, part, by_day)):
        _put(connection, part, day, f"has no data for {day}, but has for later sessions")


def _missed(connection: Connection, part: Slice, by_day: Iterable[date]) -> list[date]:
    """Return the sessions of a cycle, and those shortly before, of which there is no data though later ones have some.

    Whichever of the days is collected first, the later cycle sees both.
    """
    days, after = part.days, dict[date, list[date]]()
    for day in by_day:
        around = days.sessions(*(days.session_offset(day, n) for n in (-SESSIONS_AFTER, SESSIONS_AFTER)))
        for place, each in enumerate(around):
            if part.stream.first_session <= each <= day:
                after[each] = around[place + 1 : place + 1 + SESSIONS_AFTER]
    wanted = sorted({*after, *(each for later in after.values() for each in later)})
    values = {"stream": part.stream.name, "sessions": wanted}
    filled = {row["day"] for row in connection.execute(query("calendar.filled"), values).fetchall()}
    return sorted(day for day, later in after.items() if day not in filled and not filled.isdisjoint(later))


def _without_anything(connection: Connection, part: Slice, missed: list[date]) -> list[date]:
    """Return those days of which everything that must be there was asked for, and the upstream has nothing of it."""
    if not missed:
        return []
    stream, now = part.stream, windows.now(connection)
    ask = Ask(Mode.POLL, sessions=tuple(reversed(missed)), at=now, subjects=subjects.held(connection, stream))
    keys: dict[date, list[str]] = {}
    for request in stream.plan(ask):
        if request.session_date in missed and request.required:
            keys.setdefault(request.session_date, []).append(request.key)
    values = {"stream": stream.name, "keys": [key for of_day in keys.values() for key in of_day]}
    rows = connection.execute(query("calendar.last_answers"), values).fetchall()
    nothing = {row["request_key"] for row in rows if row["answer_class"] in NOTHING}
    return [day for day in missed if day in keys and nothing.issuperset(keys[day])]


def _put(connection: Connection, part: Slice, day: date, seen: str) -> None:
    connection.execute(
        query("calendar.propose"),
        {"calendar": part.stream.calendar, "day": day, "reason": f"{part.stream.name} {seen}"},
    )
