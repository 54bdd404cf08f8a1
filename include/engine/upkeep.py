"""Upkeep: missed snapshots, the leases of holders that vanished, and what nobody has taken care of.

Promises: safe to run at any time and any number of times at once; the gate is looked at before any lease is ended; a
locked row is alive and left alone. Never: no lease that is not over is touched, and no request is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from include import settings
from include.engine import snapshot
from include.engine.db import call_and_commit, connect, query
from include.engine.verdict import where

AT_ONCE = 50


def recover(url: str, grace: timedelta | None = None) -> list[str]:
    """Mark snapshots that nobody took, then end every lease that is over; return what became of each, in words.

    In this order: ending a lease is a state write, and the first one after a cutoff takes the snapshot itself.

    Args:
        url: libpq address of the warehouse.
        grace: how long after its cutoff a snapshot may still be taken; as set where None.
    """
    told = snapshot.mark_missed(url, settings.load().snapshot_grace if grace is None else grace)
    connection = connect(url, application="daybook upkeep", statement_timeout=15)
    try:
        while rows := call_and_commit(connection, query("lease.recover"), {"stream": None, "limit": AT_ONCE}):
            told.extend(f"{row['stream']} {where(row)}: its holder vanished; {row['cycle_status']} now" for row in rows)
            if len(rows) < AT_ONCE:
                break
    finally:
        connection.close()
    return told


def publication_behind(
    url: str, marks: Sequence[str], lease: str, grace: timedelta, *, patient: bool = True
) -> datetime | None:
    """Return since when publication lags, None where it does not.

    Args:
        marks: the names under which changes are counted that releases are made from.
        lease: name of the publisher's lease.
        grace: how long a change may wait before it counts.
        patient: whether it does not lag while somebody publishes, or while the Hub is given the rest it asked for.
    """
    connection = connect(url, application="daybook upkeep", statement_timeout=15, autocommit=True)
    try:
        values = {"tables": list(marks), "lease": lease, "grace": grace, "patient": patient}
        row = connection.execute(query("upkeep.publication_behind"), values).fetchone()
    finally:
        connection.close()
    assert row is not None
    since: datetime | None = row["since"]
    return since


def holders(url: str, run_id: str, stream: str) -> dict[str, datetime]:
    """Return who holds chunks of a run's stream, and until when their leases last unless they are renewed."""
    connection = connect(url, application="daybook lanes", statement_timeout=15, autocommit=True)
    try:
        rows = connection.execute(query("upkeep.holders"), {"run_id": run_id, "stream": stream}).fetchall()
        return {row["lease_owner"]: row["lease_until"] for row in rows}
    finally:
        connection.close()
