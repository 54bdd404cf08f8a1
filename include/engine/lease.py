"""Leases: the time-limited right to work on a cycle, and the token that proves it.

Promises: a lease is claimed, renewed, guarded and settled by its token alone; the database clock decides when it
is over, and the worker's own monotonic clock only makes it stop earlier. A write and the proof of ownership
commit together. Never: no local wall clock enters SQL, no session-level lock is held, and a lease that ended
cannot write, renew or settle, even if nobody has taken it over.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg

from include.contract import CycleStatus, Mode
from include.engine.db import Connection, Row, call_and_commit, connect, query, transaction

TTL_SECONDS = 300.0
RENEW_SECONDS = 60.0
# How much earlier than the database a worker stops trusting its lease: more than a round trip, a scheduling
# pause and a slow statement together.
MARGIN_SECONDS = 20.0

LEASE_LOST = "DBL01"

log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """The lease is over or was taken; whatever this attempt had not committed is rolled back."""


@dataclass(frozen=True)
class Cycle:
    """A claimed cycle as the claim found it."""

    cycle_id: int
    stream: str
    mode: Mode
    slot: str
    run_id: str | None
    session_date: Any
    window_start: datetime | None
    chunk: Mapping[str, Any]
    cursor: Mapping[str, Any]
    attempt: int
    failed_attempts: int
    row: Row = field(repr=False)


@dataclass
class Lease:
    """The right to work on one cycle. `trusted_until` is on this process's monotonic clock, in seconds."""

    url: str
    cycle: Cycle
    token: uuid.UUID
    owner: str
    ttl: float
    trusted_until: float
    clock: Callable[[], float] = time.monotonic

    def is_trusted(self) -> bool:
        """Say whether this worker may still send requests under the lease."""
        return self.clock() < self.trusted_until

    def renew(self) -> bool:
        """Prolong the lease from a connection of its own; False where it is over.

        A database that cannot be reached is not an answer: trust simply runs out by the monotonic clock.
        """
        started = self.clock()
        try:
            connection = connect(self.url, application="daybook lease", statement_timeout=10, autocommit=True)
        except psycopg.OperationalError:
            return self.is_trusted()
        try:
            row = connection.execute(
                query("lease.renew"),
                {"cycle": self.cycle.cycle_id, "token": self.token, "ttl": f"{self.ttl} seconds"},
            ).fetchone()
        except psycopg.Error:
            # Also a server that became read-only after a failover: it cannot say that the lease is over either.
            return self.is_trusted()
        finally:
            connection.close()
        if row is None or row["lease_until"] is None:
            self.trusted_until = float("-inf")
            return False
        self.trusted_until = started + self.ttl - MARGIN_SECONDS
        return True

    def guard(self, connection: Connection) -> None:
        """Lock the cycle's row under the token, first of all in a transaction that writes.

        Raises:
            LeaseLost: the lease is over; the caller's transaction must roll back.
        """
        row = connection.execute(query("lease.guard"), {"cycle": self.cycle.cycle_id, "token": self.token}).fetchone()
        if row is None:
            self._count_refused("the write was stopped before anything of it was written")
            raise LeaseLost(
                f"The lease on {self.cycle.stream} {self.cycle.slot} (attempt {self.cycle.attempt}) is over; "
                "nothing of this attempt is written."
            )

    def settle_and_commit(self, connection: Connection, status: CycleStatus, facts: Mapping[str, Any]) -> datetime:
        """Write the cycle's state and counters, pass the gate and commit, in one round trip.

        Returns:
            The instant, by the gate, at which the state was written.

        Raises:
            LeaseLost: the lease is over; everything in the transaction was rolled back.
        """
        try:
            (row,) = call_and_commit(
                connection,
                query("lease.settle"),
                {
                    "cycle": self.cycle.cycle_id,
                    "token": self.token,
                    "status": str(status),
                    "facts": json.dumps(facts, default=str),
                },
            )
        except psycopg.Error as error:
            if error.sqlstate == LEASE_LOST:
                self._count_refused("the state was not written, and the transaction was rolled back")
                raise LeaseLost(str(error).partition("\n")[0]) from None
            raise
        if status is not CycleStatus.RUNNING:
            self.trusted_until = float("-inf")
        return row["settled_at"]

    def _count_refused(self, words: str) -> None:
        """Keep a row of a refused write, on a connection of its own, as the write's is rolled back; best effort."""
        values = {
            "cycle": self.cycle.cycle_id,
            "stream": self.cycle.stream,
            "attempt": self.cycle.attempt,
            "holder": self.owner,
            "words": words,
        }
        try:
            with transaction(self.url, application="daybook lease", statement_timeout=5, lock_timeout=2) as connection:
                connection.execute(query("lease.refused"), values)
        except psycopg.Error as error:
            log.warning("A refused write of %s could not be counted: %s", self.cycle.stream, type(error).__name__)


def holder() -> str:
    """Name this process as a holder of leases, with a random part: a restarted one is another holder."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


def claim(url: str, stream: str, mode: Mode, run_id: str | None, owner: str, ttl: float = TTL_SECONDS) -> Lease | None:
    """Claim the next eligible cycle of a stream on a connection of its own (see `claim_on`)."""
    connection = connect(url, application="daybook claim", statement_timeout=15, autocommit=True)
    try:
        return claim_on(connection, url, stream, mode, run_id, owner, ttl)
    finally:
        connection.close()


def claim_on(
    connection: Connection,
    url: str,
    stream: str,
    mode: Mode,
    run_id: str | None,
    owner: str,
    ttl: float = TTL_SECONDS,
) -> Lease | None:
    """Claim the next eligible cycle of a stream, or return None where none is to be had.

    Leases whose holder vanished are ended first, so that recovery depends on nobody else. It is one statement that
    commits by itself, so that no paused client holds the gate.

    Args:
        connection: in autocommit.
        url: where the lease renews itself and its applies connect to.
    """
    started = time.monotonic()
    rows = connection.execute(
        query("lease.claim"),
        {"stream": stream, "mode": str(mode), "run_id": run_id, "owner": owner, "ttl": f"{ttl} seconds"},
    ).fetchall()
    if not rows:
        return None
    (row,) = rows
    cycle = Cycle(
        cycle_id=row["cycle_id"],
        stream=row["stream"],
        mode=Mode(row["mode"]),
        slot=row["slot"],
        run_id=row["run_id"],
        session_date=row["session_date"],
        window_start=row["window_start"],
        chunk=row["chunk"] or {},
        cursor=row["continuation_cursor"] or {},
        attempt=row["attempt"],
        failed_attempts=row["failed_attempts"],
        row=row,
    )
    return Lease(url, cycle, row["lease_token"], owner, ttl, started + ttl - MARGIN_SECONDS)


@contextmanager
def renewed(lease: Lease, every: float = RENEW_SECONDS) -> Iterator[threading.Lock]:
    """Renew a lease in the background while the block works; yields the lock that pauses the renewal.

    Apply holds the cycle's row, so a renewal would only wait for it: hold the lock while applying. The thread
    ends with the block, and with the first renewal that finds the lease over.
    """
    stopped, pause = threading.Event(), threading.Lock()

    def work() -> None:
        while not stopped.wait(every):
            with pause:
                if not lease.renew():
                    return

    thread = threading.Thread(target=work, name="lease renewal", daemon=True)
    thread.start()
    try:
        yield pause
    finally:
        stopped.set()
        thread.join()
