"""Ending a slice that failed in a way that nobody foresaw.

Promises: the cycle ends at once and with its cause, under the token, rather than by a lease that runs out; what was
stored stays. Never: an error is hidden (the log has all of it), and nothing is written without the lease.
"""

from __future__ import annotations

import logging
from typing import Any

from include.contract import CycleStatus, Outcome, Stream
from include.engine import incidents, windows
from include.engine.apply import Settlement, apply
from include.engine.closing import CHUNK_RETRY, MOST_ATTEMPTS
from include.engine.db import Connection
from include.engine.lease import Lease
from include.engine.merge import Counts
from include.engine.verdict import Verdict, where

log = logging.getLogger(__name__)


def surrender(lease: Lease, stream: Stream, error: Exception) -> Verdict:
    """End a slice that failed in a way that nobody foresaw: at once and with its cause, under the token.

    A window fails, a chunk is tried again; what was stored stays and is applied by the next cycle.
    """
    cycle, cause = lease.cycle, f"{type(error).__name__}: {error}"[:1000]
    place, is_chunk = where(cycle.row), cycle.run_id is not None
    again = is_chunk and cycle.failed_attempts + 1 < MOST_ATTEMPTS
    words = f"{'AGAIN' if again else 'FAILED'} – {place}: the slice failed unexpectedly ({cause[:300]})."
    if not again:
        words += " What was stored is kept and will be applied. The log has the whole error; report it."
    status = CycleStatus.PENDING if again else CycleStatus.FAILED
    facts: dict[str, Any] = {"failed_attempt": 1}
    if not again:
        facts |= {"failure_kind": "retriable", "failure_reason": "failed unexpectedly", "failure_cause": cause}

    def finish(connection: Connection, counts: Counts) -> Settlement:
        if not again:
            incidents.tell_ending(connection, stream, cycle, status, f"{stream.name}: {words}", "error")
        at = windows.now(connection) + CHUNK_RETRY if again else None
        return Settlement(status, {"next_eligible_at": at, **facts})

    log.error("%s %s failed unexpectedly", stream.name, cycle.slot, exc_info=error)
    apply(lease, stream, (), (), finish)
    return Verdict(
        stream.name,
        words,
        status=status,
        outcome=None if again else Outcome.FAILED_RETRIABLE,
        cycle_id=cycle.cycle_id,
        slot=cycle.slot,
        session_date=cycle.session_date,
    )
