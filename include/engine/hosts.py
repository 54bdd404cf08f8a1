"""Host groups: how often an upstream may be asked, over all workers and machines.

Promises: a request is sent only at an instant that the database gave out, and never while the group is blocked; a
block voids every reservation made before it. Polls queue for a slot, backfills and replays take one only when
nobody queues. Never: no sleep happens inside a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from include.contract import HostGroup
from include.engine import incidents
from include.engine.db import Connection, connect, query

# A worker looks at its stop flag at least this often while it waits, in seconds.
LONGEST_NAP = 1.0


class Blocked(Exception):
    """The host group is stopped; `until` is when it may be asked again."""

    def __init__(self, group: str, until: datetime) -> None:
        super().__init__(f"Requests to {group} are stopped until {until.isoformat(timespec='seconds')}.")
        self.until = until


class Stopped(Exception):
    """The worker was asked to stop, or may no longer trust its lease; nothing was sent."""


def declare(connection: Connection, groups: Iterable[HostGroup]) -> None:
    """Write the declared intervals and penalties; what runs (reservations, blocks) is kept."""
    for group in groups:
        connection.execute(
            query("hosts.declare"),
            {"group": group.name, "interval": group.interval, "penalty": group.penalty},
        )


def wait_for_turn(
    connection: Connection,
    group: str,
    *,
    patient: bool,
    may_go_on: Callable[[], bool],
    nap: Callable[[float], None],
) -> datetime:
    """Wait until the group may be asked, and return the instant of sending by the database clock.

    Args:
        connection: in autocommit, so that nothing is open while this waits.
        patient: True for backfills: never queue ahead of a poll.
        may_go_on: asked between naps; False ends the wait.
        nap: sleeps that many seconds.

    Raises:
        Blocked: the group is stopped.
        Stopped: `may_go_on` said no.
    """
    while True:
        if not may_go_on():
            raise Stopped(f"Stopped while waiting for a turn at {group}; nothing was sent.")
        slot = connection.execute(query("hosts.reserve"), {"group": group, "patient": patient}).fetchone()
        assert slot is not None
        if slot["blocked_until"] is not None:
            raise Blocked(group, slot["blocked_until"])
        _nap_through(slot["wait"], may_go_on, nap, group)
        if slot["epoch"] is None:
            continue
        turn = connection.execute(query("hosts.confirm"), {"group": group, "epoch": slot["epoch"]}).fetchone()
        assert turn is not None
        if turn["sent_at"] is None:
            raise Blocked(group, turn["blocked_until"])
        sent_at: datetime = turn["sent_at"]
        return sent_at


def _nap_through(wait: timedelta, may_go_on: Callable[[], bool], nap: Callable[[float], None], group: str) -> None:
    left = wait.total_seconds()
    while left > 0:
        if not may_go_on():
            raise Stopped(f"Stopped while waiting for a turn at {group}; nothing was sent.")
        nap(min(left, LONGEST_NAP))
        left -= LONGEST_NAP


def blocked_until(url: str, group: str) -> datetime | None:
    """Return until when a group is stopped, None where it is not."""
    connection = connect(url, application="daybook hosts", statement_timeout=15, autocommit=True)
    try:
        row = connection.execute(query("hosts.blocked"), {"group": group}).fetchone()
    finally:
        connection.close()
    until: datetime | None = row["until"] if row else None
    return until


def block(connection: Connection, group: str, reason: str, penalty: timedelta | None = None) -> datetime:
    """Stop a group for its penalty time (or the one given), void earlier reservations, and put an alert."""
    with connection.transaction():
        row = connection.execute(
            query("hosts.block"), {"group": group, "penalty": penalty, "reason": reason[:1000]}
        ).fetchone()
        assert row is not None
        until: datetime = row["blocked_until"]
        incidents.open(
            connection,
            key=incidents.block(group),
            alert_key=f"block/{group}/{until:%Y-%m-%dT%H:%M}",
            severity="error",
            text=f"{group} blocks us: {reason[:300]} All requests to it are stopped until "
            f"{until.isoformat(timespec='seconds')}. Nothing is lost: its streams go on by themselves after that.",
        )
    return until
