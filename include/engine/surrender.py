"""Ending a slice that failed in a way that nobody foresaw.

Promises: the cycle ends at once and with its cause, under the token, rather than by a lease that runs out; what was
stored stays, and a raw store that cannot be used is told at once. Never: an error is hidden (the log has all of it),
and nothing is written without the lease.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg

from include.contract import CycleStatus, Outcome, Stream
from include.engine import incidents, marks, windows
from include.engine.apply import Settlement, apply
from include.engine.closing import CHUNK_RETRY, MOST_ATTEMPTS
from include.engine.db import Connection, is_unreachable
from include.engine.lease import Lease, LeaseLost
from include.engine.merge import Counts
from include.engine.verdict import Verdict, where

log = logging.getLogger(__name__)


def lost(lease: Lease, error: LeaseLost) -> Verdict:
    """Return what a slice came to whose lease was over before it could write."""
    return Verdict(
        lease.cycle.stream,
        f"LEASE LOST – {where(lease.cycle.row)}: {error} What was stored is kept; the next cycle applies it.",
        cycle_id=lease.cycle.cycle_id,
        slot=lease.cycle.slot,
        session_date=lease.cycle.session_date,
        is_refused=True,
    )


class WarehouseAway(psycopg.OperationalError):
    """The warehouse went away in the middle of a slice; the text says of what, what was kept and what comes next."""


def away(lease: Lease, error: Exception) -> WarehouseAway:
    """Return what to raise where the cycle must be left to its lease, as nothing can be written."""
    why = (str(error) or type(error).__name__).partition("\n")[0][:200].rstrip(". ")
    then = (
        "the chunk waits again, and goes on with what is stored"
        if lease.cycle.run_id is not None
        else "the window fails, and the next one applies what is stored and asks for the rest"
    )
    return WarehouseAway(
        f"{where(lease.cycle.row)}: the warehouse does not answer ({why}). Every answer that was stored is kept. The "
        f"lease ends by itself within {lease.ttl / 60:.0f} minutes: then {then}."
    )


def shielded(lease: Lease, stream: Stream, work: Callable[[], Verdict]) -> Verdict:
    """Do the work of a lease; what nobody foresaw ends the cycle with its cause, and all that is logged says of which.

    Raises:
        WarehouseAway: the warehouse cannot be reached.
    """
    with marks.bound(**marks.of(lease)):
        return replace(_shielded(lease, stream, work), attempt=lease.cycle.attempt)


def _shielded(lease: Lease, stream: Stream, work: Callable[[], Verdict]) -> Verdict:
    try:
        return work()
    except LeaseLost as over:
        return lost(lease, over)
    except Exception as error:
        if is_unreachable(error):
            raise away(lease, error) from error
        return surrender(lease, stream, error)


def surrender(lease: Lease, stream: Stream, error: Exception) -> Verdict:
    """End a slice that failed in a way that nobody foresaw: at once and with its cause, under the token.

    A window fails, a chunk is tried again, but for one whose raw store cannot be used; what was stored stays and is
    applied by the next cycle.
    """
    cycle, cause = lease.cycle, f"{type(error).__name__}: {error}"[:1000]
    place, is_chunk, is_storage = where(cycle.row), cycle.run_id is not None, isinstance(error, OSError)
    again = is_chunk and not is_storage and cycle.failed_attempts + 1 < MOST_ATTEMPTS
    reason = "the raw store cannot be used" if is_storage else "the slice failed unexpectedly"
    words = f"{'AGAIN' if again else 'FAILED'} – {place}: {reason} ({cause[:300]})."
    if is_storage:
        then = "the same request once more goes on" if is_chunk else "run mode=backfill for the session"
        words += f" What was stored is kept. Mend the store (space, access), then {then}."
    elif not again:
        words += " What was stored is kept and will be applied. The log has the whole error; report it."
    status = CycleStatus.PENDING if again else CycleStatus.FAILED
    outcome = Outcome.FAILED_TERMINAL if is_storage else Outcome.FAILED_RETRIABLE
    facts: dict[str, Any] = {"failed_attempt": 1}
    if not again:
        kind = "terminal" if is_storage else "retriable"
        facts |= {"failure_kind": kind, "failure_reason": reason, "failure_cause": cause}

    def finish(connection: Connection, counts: Counts) -> Settlement:
        if not again:
            severity: incidents.Severity = "critical" if is_storage else "error"
            incidents.tell_ending(connection, stream, cycle, status, f"{stream.name}: {words}", severity)
        at = windows.now(connection) + CHUNK_RETRY if again else None
        return Settlement(status, {"next_eligible_at": at, **facts})

    log.error("%s %s failed unexpectedly", stream.name, cycle.slot, exc_info=error)
    try:
        apply(lease, stream, (), (), finish)
    except LeaseLost as late:
        return lost(lease, late)
    return Verdict(
        stream.name,
        words,
        status=status,
        outcome=None if again else outcome,
        cycle_id=cycle.cycle_id,
        slot=cycle.slot,
        session_date=cycle.session_date,
    )
