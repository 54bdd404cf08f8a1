"""Sending the alert outbox to Slack: in order, at least once, by one sender at a time.

Promises: a message leaves the outbox only when Slack took it; it carries its key, and says so when it is late; a
Slack that is away costs tries and nothing else. Never: no message is made here, and a failed one stops the ones
behind it, so that the order is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psycopg

from include.engine.db import Row, query, transaction
from include.engine.verdict import kst
from include.outputs import lease as leases

LEASE = "slack"
# A message that waited longer than this says so, in seconds.
LATE_SECONDS = 120
RATE_LIMIT_RETRIES = 2

_SECRET = re.compile(r"/services/\S+")


@dataclass(frozen=True)
class Drained:
    """What one round came to: messages sent, and the error that ended it early."""

    sent: int
    error: str | None = None


def drain(url: str, owner: str, connection_id: str = "slack", stop: Callable[[], bool] = lambda: False) -> Drained:
    """Send what waits, oldest first, until nothing waits, Slack refuses or `stop` says so.

    What a silence covers is marked and passed over.
    """
    lease = leases.claim(url, LEASE, owner)
    if isinstance(lease, leases.NotClaimed):
        return Drained(0)
    sent, error = 0, None
    try:
        with leases.renewed(lease):
            while error is None and not stop() and (row := _next(url)) is not None:
                lease.check()
                error = _send(row, connection_id)
                with lease.writing() as connection:
                    outcome = query("alerts.failed") if error else query("alerts.sent")
                    connection.execute(outcome, {"id": row["alert_id"], "error": error})
                sent += error is None
        lease.give_back()
    except leases.PublishLeaseLost as lost:
        # Slack kept us waiting for longer than the lease: whoever has it now goes on where this one ended.
        return Drained(sent, str(lost))
    except BaseException:
        # Whoever looks next need not wait until the lease is over, which would be minutes without a message.
        with suppress(psycopg.Error, leases.PublishLeaseLost):
            lease.give_back()
        raise
    return Drained(sent, error)


def _next(url: str) -> Row | None:
    with transaction(url, application="daybook alerts") as connection:
        connection.execute(query("alerts.mark_silenced"))
        row = connection.execute(query("alerts.next")).fetchone()
    return row if row is not None and row["is_due"] else None


def text_of(row: Row) -> str:
    """Return a message as it is sent: its text, how late it is, and its key.

    An upstream's own words may be part of it: to Slack they are words only, and call nobody.
    """
    delayed = f" (delayed: known since {kst(row['created_at'])})" if row["age_seconds"] > LATE_SECONDS else ""
    text = f"[{row['severity']}] {row['text']}{delayed}\n`{row['alert_key']}`"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _send(row: Row, connection_id: str) -> str | None:
    """Send one message; return the error where Slack did not take it."""
    # Imported here: the provider and Airflow behind it take seconds to load.
    from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook
    from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler

    try:
        hook = SlackWebhookHook(
            slack_webhook_conn_id=connection_id,
            retry_handlers=[RateLimitErrorRetryHandler(max_retry_count=RATE_LIMIT_RETRIES)],
            timeout=15,
        )
        hook.send(text=text_of(row), blocks=row["blocks"])
    except Exception as error:
        # Whatever keeps a message from Slack is the outbox's business, never the sender's end.
        return _SECRET.sub("/services/***", f"{type(error).__name__}: {error}")[:500]
    return None
