"""What changed in a stream's rows and nobody was told of yet.

Promises: decided by rows, so that a change is told at least once, whoever made it and whatever was killed: it stays
untold until somebody confirms that the word is out. What a replay wrote into copies is never told. Never: a cycle that
is being worked on is touched or waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from include.engine.db import connect, query, transaction


@dataclass(frozen=True)
class Untold:
    """Rows that were new, changed or withdrawn in cycles that are over, in sum, and the newest of these cycles.

    `cycles` and `counts` say which cycles, and how many of each one's rows are told once this is.
    """

    changed: int
    kst_day: date
    session_date: date | None
    cycle_id: int | None
    run_id: str | None
    cycles: Sequence[int]
    counts: Sequence[int]


def untold(url: str, stream: str) -> Untold:
    """Return what nobody was told of."""
    connection = connect(url, application="daybook changes", statement_timeout=15, autocommit=True)
    try:
        row = connection.execute(query("changes.untold"), {"stream": stream}).fetchone()
    finally:
        connection.close()
    assert row is not None
    return Untold(**row)


def confirm(url: str, told: Untold) -> None:
    """Write that the word is out; what changed again meanwhile stays untold."""
    with transaction(url, application="daybook changes", statement_timeout=15) as connection:
        connection.execute(query("changes.confirm"), {"cycles": list(told.cycles), "counts": list(told.counts)})
