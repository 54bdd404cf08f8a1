"""Leases of publication: who may push to the Hub, or drain another outbox, right now.

Promises: one holder at a time, proved by a random token; the database clock decides when a lease is over, and the
holder's own monotonic clock only makes it stop earlier; every write under a lease locks it first, in the same
transaction. A rest that the other side asked for is kept here, so that no run claims before it is over. Never: no
local wall clock, no lock held across a request.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import psycopg

from include.engine.db import Connection, query, transaction

TTL_SECONDS = 300.0
RENEW_SECONDS = 60.0
# How much earlier than the database a holder stops trusting its lease.
MARGIN_SECONDS = 20.0

_LEASE_OVER = "DBL01"
log = logging.getLogger(__name__)


class PublishLeaseLost(Exception):
    """The lease is over or was taken; what was about to be written is not."""


@dataclass(frozen=True)
class NotClaimed:
    """Why a lease is not to be had: `holder` has it until then, or (no holder) it is put off until then."""

    until: datetime
    holder: str | None
    reason: str | None


@dataclass
class PublishLease:
    """The right to publish. `trusted_until` is on this process's monotonic clock, in seconds."""

    url: str
    name: str
    owner: str
    token: uuid.UUID
    ttl: float
    trusted_until: float

    def check(self) -> None:
        """Refuse to go on where the lease may be over.

        Raises:
            PublishLeaseLost: it is, or nobody could be asked for too long.
        """
        if time.monotonic() >= self.trusted_until:
            raise PublishLeaseLost(f"{self.owner} no longer holds the lease {self.name}; nothing more is sent.")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One short transaction that commits only under this lease.

        Raises:
            PublishLeaseLost: the lease is over; nothing was written.
        """
        with transaction(self.url, application="daybook publish") as connection:
            try:
                connection.execute(query("publish.guard"), {"name": self.name, "token": self.token})
            except psycopg.Error as error:
                self._note_loss(error)
                raise
            yield connection

    def renew(self) -> bool:
        """Prolong the lease from a connection of its own; False where it is over.

        A database that cannot be reached is no answer: trust runs out by the monotonic clock.
        """
        started = time.monotonic()
        ttl = f"{self.ttl} seconds"
        try:
            with transaction(self.url, application="daybook lease", statement_timeout=10) as connection:
                connection.execute(query("publish.renew"), {"name": self.name, "token": self.token, "ttl": ttl})
        except psycopg.OperationalError:
            return time.monotonic() < self.trusted_until
        except psycopg.Error as error:
            if error.sqlstate != _LEASE_OVER:
                raise
            self.trusted_until = float("-inf")
            return False
        self.trusted_until = started + self.ttl - MARGIN_SECONDS
        return True

    def give_back(self, rest: float | None = None, reason: str | None = None) -> datetime | None:
        """End the lease; with `rest` (seconds) nobody claims it before that instant, which is returned.

        Raises:
            PublishLeaseLost: it was over already, and no rest is kept.
        """
        values = {
            "name": self.name,
            "token": self.token,
            "rest": None if rest is None else f"{rest} seconds",
            "reason": reason,
        }
        with transaction(self.url, application="daybook publish") as connection:
            try:
                row = connection.execute(query("publish.give_back"), values).fetchone()
            except psycopg.Error as error:
                self._note_loss(error)
                raise
        self.trusted_until = float("-inf")
        return row["put_off_until"] if row else None

    def _note_loss(self, error: psycopg.Error) -> None:
        if error.sqlstate == _LEASE_OVER:
            self.trusted_until = float("-inf")
            raise PublishLeaseLost(
                f"{self.owner} no longer holds the lease {self.name}; nothing was written. Whoever holds it looks "
                "at what was sent before it sends anything again."
            ) from None


def claim(url: str, name: str, owner: str, ttl: float = TTL_SECONDS) -> PublishLease | NotClaimed:
    """Claim a lease, or learn why it is not to be had."""
    started = time.monotonic()
    with transaction(url, application="daybook publish", statement_timeout=15) as connection:
        row = connection.execute(
            query("publish.claim"), {"name": name, "owner": owner, "ttl": f"{ttl} seconds"}
        ).fetchone()
    assert row is not None, "a function call gives one row"
    if row["token"] is None:
        return NotClaimed(row["until"] or row["put_off_until"], row["holder"], row["put_off_reason"])
    return PublishLease(url, name, owner, row["token"], ttl, started + ttl - MARGIN_SECONDS)


@contextmanager
def renewed(lease: PublishLease, every: float = RENEW_SECONDS) -> Iterator[None]:
    """Renew a lease in the background while the block works; the first renewal that finds it over is the last."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(every) and lease.renew():
            pass

    thread = threading.Thread(target=work, name="publication lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def give_back_quietly(lease: PublishLease) -> None:
    """End a lease on the way out, where another error is to be told and not that the lease was over already."""
    try:
        lease.give_back()
    except (PublishLeaseLost, psycopg.Error) as error:
        log.warning("The lease %s could not be given back and ends by itself: %s", lease.name, error)
