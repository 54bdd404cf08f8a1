"""What a cycle asks for: everything due since the checkpoint, and the pending keys whose time has come.

Promises: deterministic from the database's rows, newest session first; what is held is not asked for again; when
the calendar says that nothing is due and nothing is pending, the plan is empty. Never: no request is sent here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta

from include.calendars import Calendar
from include.contract import Ask, Mode, PendingReason, Request, Stream
from include.engine import chunks, fetches, pending, subjects, windows
from include.engine.db import Connection, query
from include.engine.lease import Cycle


@dataclass(frozen=True)
class Plan:
    """The requests of a cycle, the sessions they are for, and why each pending key is among them."""

    requests: tuple[Request, ...]
    sessions: tuple[date, ...]
    pending: dict[str, pending.Due]
    checkpoint: date | None


@dataclass(frozen=True)
class Spent:
    """What a stream's polls of one KST date have spent: list pages, items and details."""

    list_pages: int = 0
    items: int = 0
    details: int = 0


def spent_today(connection: Connection, cycle: Cycle) -> Spent:
    """Return what the stream's windows of the cycle's `run_date` have spent so far; nothing for a chunk."""
    row = connection.execute(
        query("plan.spent"), {"stream": cycle.stream, "run_date": cycle.row["run_date"]}
    ).fetchone()
    assert row is not None
    return Spent(row["list_pages"], row["items"], row["details"])


def for_cycle(connection: Connection, stream: Stream, cycle: Cycle, days: Calendar) -> Plan:
    """Plan a poll window or a backfill chunk."""
    if cycle.run_id is not None:
        return _chunk(connection, stream, cycle, days)
    return _window(connection, stream, cycle, days)


def _window(connection: Connection, stream: Stream, cycle: Cycle, days: Calendar) -> Plan:
    checkpoint = checkpoint_of(connection, stream)
    newest: date = cycle.session_date
    since = checkpoint + timedelta(days=1) if checkpoint else _first_session(connection, stream, newest)
    sessions = days.sessions(max(since, stream.first_session), newest)
    due = {entry.key: entry for entry in pending.due(connection, stream.name)}
    held = fetches.held_keys(connection, stream.name, sessions) if sessions else {}
    ask = Ask(
        Mode.POLL,
        tuple(reversed(sessions)),
        pending=tuple(due),
        cursor=cycle.cursor.get("stream") or {},
        newest=newest,
        checkpoint=checkpoint,
        at=windows.now(connection),
        subjects=subjects.held(connection, stream),
    )
    requests = [request for request in stream.plan(ask) if request.key in due or request.key not in held]
    known = {request.key for request in requests}
    opened = _opened(connection, stream, max(since, stream.first_session), ask)
    planned = [*requests, *(request for request in opened if request.key not in known)]
    # Only an operator's keys ask for what was given up.
    given_up = pending.given_up(connection, stream.name, [request.key for request in planned])
    wanted = tuple(request for request in planned if request.key not in given_up)
    return Plan(wanted, tuple(sessions), due, checkpoint)


def _opened(connection: Connection, stream: Stream, since: date, ask: Ask) -> list[Request]:
    """Plan days before `since` that an operator called open: the ground was gone over while they counted as closed.

    Each is asked for once; what has no answer then is a pending key like any other.
    """
    span = {"stream": stream.name, "calendar": stream.calendar, "first": stream.first_session, "since": since}
    days = [row["day"] for row in connection.execute(query("plan.opened"), span).fetchall()]
    if not days:
        return []
    wanted = list(stream.plan(replace(ask, sessions=tuple(days), pending=(), cursor={})))
    keys = [request.key for request in wanted]
    rows = connection.execute(query("plan.looked_at"), {"stream": stream.name, "keys": keys}).fetchall()
    looked_at = {row["key"] for row in rows}
    return [request for request in wanted if request.key not in looked_at]


def _first_session(connection: Connection, stream: Stream, newest: date) -> date:
    """Return where the ground begins while there is no checkpoint: at the stream's first window, held or not."""
    row = connection.execute(query("plan.first_session"), {"stream": stream.name}).fetchone()
    return row["session_date"] if row and row["session_date"] else newest


def _chunk(connection: Connection, stream: Stream, cycle: Cycle, days: Calendar) -> Plan:
    ask = chunks.ask(stream, cycle.mode, cycle.chunk, days, cycle.cursor.get("stream"))
    ask = replace(ask, at=windows.now(connection), subjects=subjects.held(connection, stream))
    return Plan(tuple(stream.plan(ask)), (*ask.sessions, *ask.closed), {}, None)


def checkpoint_of(connection: Connection, stream: Stream) -> date | None:
    """Return the last session of the ground without holes, None where there is none yet."""
    row = connection.execute(query("plan.checkpoint"), {"stream": stream.name}).fetchone()
    return row["session_date"] if row else None


def move_checkpoint(connection: Connection, stream: Stream, cycle: Cycle, to: date) -> None:
    """Move the checkpoint forward; it never moves back."""
    connection.execute(
        query("plan.move_checkpoint"),
        {"stream": stream.name, "session_date": to, "cycle": cycle.cycle_id},
    )


def is_recheck(plan: Plan, key: str) -> bool:
    """Say whether a key is asked for only to see whether it was revised."""
    entry = plan.pending.get(key)
    return entry is not None and entry.why is PendingReason.RECHECK
