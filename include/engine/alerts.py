"""Writing the alert outbox: a fact is put there in the transaction that knows it.

Promises: a fact has one key and is told once. Never: nothing is sent from here (see `include.ops.slack`).
"""

from __future__ import annotations

from typing import Literal

from include.engine.db import Connection, query

Severity = Literal["info", "warning", "error", "critical"]


def put(connection: Connection, *, key: str, severity: Severity, text: str) -> None:
    """Put a message into the outbox, in the caller's transaction; a key that is there already changes nothing."""
    connection.execute(query("alerts.put"), {"key": key, "severity": severity, "text": text})
