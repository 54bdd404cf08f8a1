"""Upkeep: ending the leases of holders that vanished, whoever they worked for.

Promises: safe to run at any time and any number of times at once; a locked row is alive and left alone. Never: no
lease that is not over is touched, and no request is sent.
"""

from __future__ import annotations

from include.engine.db import call_and_commit, connect, query
from include.engine.verdict import where

AT_ONCE = 50


def recover(url: str) -> list[str]:
    """End every lease that is over, of all streams; return what became of each cycle, in words."""
    told: list[str] = []
    connection = connect(url, application="daybook upkeep", statement_timeout=15)
    try:
        while rows := call_and_commit(connection, query("lease.recover"), {"stream": None, "limit": AT_ONCE}):
            told.extend(f"{row['stream']} {where(row)}: its holder vanished; {row['cycle_status']} now" for row in rows)
            if len(rows) < AT_ONCE:
                break
    finally:
        connection.close()
    return told
