"""Newcomers: companies that are listed and of which a stream does not hold the past.

Promises: read from rows alone, those that were listed last first. Never: no row is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from include.engine.db import connect, query


@dataclass(frozen=True)
class Newcomers:
    """Who is taken in by a run, as the stream's keys, and how many are left for the next ones."""

    keys: tuple[str, ...]
    left: int


def of_stream(url: str, stream: str, limit: int) -> Newcomers:
    """Return at most so many newcomers of a stream."""
    connection = connect(url, application="daybook newcomers", autocommit=True)
    try:
        rows = connection.execute(query("newcomers.of_stream"), {"stream": stream, "limit": limit}).fetchall()
    finally:
        connection.close()
    return Newcomers(tuple(row["key"] for row in rows), max(rows[0]["total"] - len(rows), 0) if rows else 0)
