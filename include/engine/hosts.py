"""Host groups: how often an upstream may be asked, over all workers and machines.

Promises: a request is sent only at an instant that the database gave out, and never while the group is blocked; a
block voids every reservation made before it. Polls queue for a slot, backfills and replays take one only when
nobody queues. Where an upstream counts requests by key and day, one is taken off a key's ledger with each turn, so
that no number of workers spends more. Never: no sleep happens inside a transaction, and no key is in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from include.contract import HostGroup
from include.engine import incidents
from include.engine.db import Connection, query

# A worker looks at its stop flag at least this often while it waits, in seconds.
LONGEST_NAP = 1.0


class Blocked(Exception):
    """The host group is stopped; `until` is when it may be asked again."""

    def __init__(self, group: str, until: datetime) -> None:
        super().__init__(f"Requests to {group} are stopped until {until.isoformat(timespec='seconds')}.")
        self.until = until


class UsedUp(Exception):
    """No key has requests left for us today; `until` is when the upstream's next day begins."""

    def __init__(self, group: str, until: datetime) -> None:
        super().__init__(
            f"No key for {group} has requests left today; more from {until.isoformat(timespec='minutes')}."
        )
        self.until = until


@dataclass(frozen=True)
class Turn:
    """When a request may be sent, by the database clock, and the fingerprint of the key that it was counted for."""

    sent_at: datetime
    key: str | None


class Stopped(Exception):
    """The worker was asked to stop, or may no longer trust its lease; nothing was sent."""


def declare(connection: Connection, groups: Iterable[HostGroup]) -> None:
    """Write the declared intervals, penalties and quotas; what runs (reservations, blocks, ledgers) is kept."""
    for group in groups:
        connection.execute(
            query("hosts.declare"),
            {
                "group": group.name,
                "interval": group.interval,
                "penalty": group.penalty,
                "quota": group.quota.requests if group.quota else None,
                "quota_zone": group.quota.timezone if group.quota else None,
            },
        )


def wait_for_turn(
    connection: Connection,
    group: str,
    *,
    patient: bool,
    may_go_on: Callable[[], bool],
    nap: Callable[[float], None],
    keys: Sequence[str] = (),
    leaves: int = 0,
) -> Turn:
    """Wait until the group may be asked; return when to send, and with which key.

    Args:
        connection: in autocommit, so that nothing is open while this waits.
        patient: True for backfills: never queue ahead of a poll.
        may_go_on: asked between naps; False ends the wait.
        nap: sleeps that many seconds.
        keys: fingerprints of the keys that may be used, in this order.
        leaves: how many of each key's requests of a day are left to others.

    Raises:
        Blocked: the group is stopped.
        UsedUp: no key has requests left.
        Stopped: `may_go_on` said no.
    """
    while True:
        if not may_go_on():
            raise Stopped(f"Stopped while waiting for a turn at {group}; nothing was sent.")
        wanted = {"group": group, "patient": patient, "keys": list(keys), "leaves": leaves}
        slot = connection.execute(query("hosts.reserve"), wanted).fetchone()
        assert slot is not None
        if slot["blocked_until"] is not None:
            raise Blocked(group, slot["blocked_until"])
        if slot["used_up_until"] is not None:
            raise UsedUp(group, slot["used_up_until"])
        _nap_through(slot["wait"], may_go_on, nap, group)
        if slot["epoch"] is None:
            continue
        turn = connection.execute(query("hosts.confirm"), {"group": group, "epoch": slot["epoch"]}).fetchone()
        assert turn is not None
        if turn["sent_at"] is None:
            raise Blocked(group, turn["blocked_until"])
        return Turn(turn["sent_at"], slot["key_fingerprint"])


def use_up(connection: Connection, group: str, key: str) -> datetime:
    """Note that the upstream gives a key no more requests today, whatever we counted; return until when."""
    row = connection.execute(query("hosts.use_up"), {"group": group, "key": key}).fetchone()
    assert row is not None
    until: datetime = row["until"]
    return until


def _nap_through(wait: timedelta, may_go_on: Callable[[], bool], nap: Callable[[float], None], group: str) -> None:
    left = wait.total_seconds()
    while left > 0:
        if not may_go_on():
            raise Stopped(f"Stopped while waiting for a turn at {group}; nothing was sent.")
        nap(min(left, LONGEST_NAP))
        left -= LONGEST_NAP


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
