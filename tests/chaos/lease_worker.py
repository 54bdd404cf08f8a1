"""Processes that fight for one lease, and count under it; each style of completion as other systems have it."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier

import psycopg
from psycopg.rows import dict_row

from include.engine.db import query

LOCKING = query("lease.guard")
STYLES = {
    "locking": LOCKING,
    "reading": LOCKING.partition("for no key update")[0],
    "none": "select 1 where %(cycle)s is not null and %(token)s is not null",
}
TTL = "250 milliseconds"
STREAM = "a.stream"
RUN = "fuzz"


@dataclass
class Tally:
    """What one process came to."""

    accepted: int = 0
    refused: int = 0


def connect(url: str) -> psycopg.Connection[dict[str, object]]:
    settings = "-c statement_timeout=10000 -c lock_timeout=5000 -c idle_in_transaction_session_timeout=5000"
    return psycopg.connect(url, row_factory=dict_row, options=settings)


def count_under_the_lease(url: str, style: str, seconds: float, seed: int, barrier: Barrier) -> tuple[int, int]:
    """Claim, take a while, and add one to a counter: read, wait, write, with the style's proof in the same commit."""
    dice, tally = random.Random(seed), Tally()
    barrier.wait(60)
    end = time.monotonic() + seconds
    with connect(url) as connection:
        while time.monotonic() < end:
            held = _claim(connection)
            if held is None:
                time.sleep(0.005)
                continue
            time.sleep(dice.uniform(0, 0.35))
            try:
                if _apply(connection, style, held, dice):
                    tally.accepted += 1
                else:
                    tally.refused += 1
            except psycopg.Error:
                connection.rollback()
                tally.refused += 1
    return tally.accepted, tally.refused


def _claim(connection: psycopg.Connection[dict[str, object]]) -> dict[str, object] | None:
    connection.execute(query("lease.recover"), {"stream": STREAM, "limit": 5})
    connection.commit()
    # The third loss of a lease fails a chunk, and one before it waits a while; here the fight goes on.
    connection.execute(
        "update collect.cycles set cycle_status = 'PENDING', finished_at = null, outcome = null, failure_reason = null,"
        " failure_kind = null, failed_attempts = 0, next_eligible_at = null"
        " where cycle_status = 'FAILED' or (cycle_status = 'PENDING' and next_eligible_at > collect.clock())"
    )
    connection.commit()
    row = connection.execute(
        query("lease.claim"), {"stream": STREAM, "mode": "backfill", "run_id": RUN, "owner": "w", "ttl": TTL}
    ).fetchone()
    connection.commit()
    return row


def _apply(
    connection: psycopg.Connection[dict[str, object]], style: str, held: dict[str, object], dice: random.Random
) -> bool:
    values = {"cycle": held["cycle_id"], "token": held["lease_token"]}
    if connection.execute(STYLES[style], values).fetchone() is None:
        connection.rollback()
        return False
    row = connection.execute("select n from counter").fetchone()
    assert row is not None
    # Long beside a lease, so that leases end in the middle of it many times in each fight.
    time.sleep(dice.uniform(0, 0.2))
    connection.execute("update counter set n = %s", (int(str(row["n"])) + 1,))
    connection.execute("insert into writes (attempt) values (%s)", (held["attempt"],))
    if style == "locking":
        facts = {**values, "status": "PENDING", "facts": "{}"}
        connection.execute(query("lease.settle"), facts)
    else:
        # Completion by number alone, as most queues have it.
        connection.execute(
            "update collect.cycles set cycle_status = 'PENDING', lease_token = null, lease_owner = null,"
            " lease_until = null where cycle_id = %(cycle)s and cycle_status = 'RUNNING'",
            values,
        )
    connection.commit()
    return True


def claim_once(url: str, times: int, barrier: Barrier) -> int:
    """Claim the same slot over and over; gives how often it was won."""
    won = 0
    with connect(url) as connection:
        barrier.wait(60)
        for _ in range(times):
            row = connection.execute(
                query("lease.claim"),
                {"stream": STREAM, "mode": "backfill", "run_id": RUN, "owner": "w", "ttl": "1 hour"},
            ).fetchone()
            connection.commit()
            won += row is not None
    return won
