"""Writing the alert outbox: a fact is put there in the transaction that knows it; and what Slack refused for good.

Promises: a fact has one key and is told once; a message that was put aside stays there until somebody decides, and is
kept afterwards. Never: nothing is sent from here (see `include.ops.slack`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from include.engine.db import Connection, Row, query, transaction

Severity = Literal["info", "warning", "error", "critical"]


class AlertRefused(Exception):
    """What was asked of a message cannot be done; the text says why."""


def put(connection: Connection, *, key: str, severity: Severity, text: str) -> None:
    """Put a message into the outbox, in the caller's transaction; a key that is there already changes nothing."""
    connection.execute(query("alerts.put"), {"key": key, "severity": severity, "text": text})


def unknown_columns(connection: Connection, stream: str, columns: Sequence[str], unit: str, kept: str) -> None:
    """Tell once that an upstream sends columns that nobody knows; `kept` says where their values are meanwhile."""
    if columns:
        put(
            connection,
            key=f"unknown-columns/{stream}/{'/'.join(sorted(columns))}"[:500],
            severity="warning",
            text=f"{stream} sends columns that nobody knows yet: {', '.join(columns)[:500]} (first seen in {unit}). "
            f"{kept}",
        )


def put_aside(url: str) -> list[Row]:
    """Return the messages that Slack refused for good and nobody has decided on, the oldest first."""
    with transaction(url, application="daybook alerts", statement_timeout=15) as connection:
        return connection.execute(query("alerts.put_aside")).fetchall()


def try_again(url: str, alert_id: int, who: str, why: str) -> Row:
    """Have a message that was put aside sent again, at its old place in the order; it says that it is late.

    Raises:
        AlertRefused: none of that number is put aside, or nobody said who and why.
    """
    with transaction(url, application="daybook alerts", statement_timeout=15) as connection:
        return _decided(connection.execute(query("alerts.try_again"), _by(alert_id, who, why)).fetchone(), alert_id)


def drop(url: str, alert_id: int, who: str, why: str) -> Row:
    """Leave a message that was put aside unsent for good; it is kept.

    Raises:
        AlertRefused: none of that number is put aside, or nobody said who and why.
    """
    with transaction(url, application="daybook alerts", statement_timeout=15) as connection:
        return _decided(connection.execute(query("alerts.drop"), _by(alert_id, who, why)).fetchone(), alert_id)


def _by(alert_id: int, who: str, why: str) -> dict[str, object]:
    if not (who.strip() and why.strip()):
        raise AlertRefused("Say who decides and why: both are kept and shown. Nothing was changed.")
    return {"id": alert_id, "who": who.strip(), "why": why.strip()}


def _decided(row: Row | None, alert_id: int) -> Row:
    if row is None:
        raise AlertRefused(
            f"No alert {alert_id} is put aside, or it was decided on, or what came of it was sent since (then only a "
            "drop will do). Nothing was changed."
        )
    return row
