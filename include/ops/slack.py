"""Sending the alert outbox to Slack: in order, at least once, by one sender at a time.

Promises: messages go in the order of their numbers, one that was committed late as soon as it is there; one leaves the
outbox only when Slack took it; it carries its key, and says so when it is late. A Slack that is away, or that refuses
everything, costs tries and nothing else: it stops the messages behind, so that the order is kept. One that Slack
refuses for good while it takes others is put aside with the reason, for an operator to decide. Never: no message is
made here but those about the sending itself, and none is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

import psycopg

from include.engine import incidents
from include.engine.audit import OUTBOX
from include.engine.db import Row, query, transaction
from include.engine.verdict import kst
from include.outputs import lease as leases

LEASE = "slack"
# A message that waited longer than this says so, in seconds.
LATE_SECONDS = 120
RATE_LIMIT_RETRIES = 2

# Words with which Slack refuses what was sent, rather than where it was sent to.
UNFIT = frozenset(
    ("invalid_payload", "no_text", "too_many_attachments", "invalid_blocks", "invalid_blocks_format", "msg_too_long")
)
# Of the other refusals these say only that Slack has no time.
NOT_NOW = (408, 429)
PUT_ASIDE = "refused/slack"

_SECRET = re.compile(r"/services/\S+")


class Fate(Enum):
    """What Slack made of a message.

    `KEPT`: no answer, or none that says anything. `REFUSED` is for good, be it of this message or of every one.
    """

    TAKEN = "taken"
    KEPT = "kept"
    REFUSED = "refused"
    UNFIT = "unfit"


@dataclass(frozen=True)
class Answer:
    """What became of one message, and why it was not taken."""

    fate: Fate
    error: str | None = None


@dataclass(frozen=True)
class Drained:
    """What one round came to: messages sent, and the error that ended it early."""

    sent: int
    error: str | None = None


def drain(url: str, owner: str, connection_id: str = "slack", stop: Callable[[], bool] = lambda: False) -> Drained:
    """Send what waits, oldest first, until nothing waits, Slack takes nothing or `stop` says so.

    What a silence covers is marked and passed over.
    """
    lease = leases.claim(url, LEASE, owner)
    if isinstance(lease, leases.NotClaimed):
        return Drained(0)
    sending = _Sending(lease, connection_id)
    try:
        with leases.renewed(lease):
            while sending.error is None and not stop():
                if waiting := _waiting(url):
                    sending.send(waiting)
                elif not sending.sent or not sending.note_well():
                    break
        lease.give_back()
    except leases.PublishLeaseLost as lost:
        # Slack kept us waiting for longer than the lease: whoever has it now goes on where this one ended.
        return Drained(sending.sent, str(lost))
    except BaseException:
        # Whoever looks next need not wait until the lease is over, which would be minutes without a message.
        with suppress(psycopg.Error, leases.PublishLeaseLost):
            lease.give_back()
        raise
    return Drained(sending.sent, sending.error)


def _waiting(url: str) -> Sequence[Row]:
    """Return the oldest message that waits and the one behind it; none where its time has not come."""
    with transaction(url, application="daybook alerts") as connection:
        connection.execute(query("alerts.mark_silenced"))
        rows = connection.execute(query("alerts.next")).fetchall()
    return rows if rows and rows[0]["is_due"] else []


class _Sending:
    """One sender's round: how many messages Slack took, and what ended it."""

    def __init__(self, lease: leases.PublishLease, connection_id: str) -> None:
        self.sent = 0
        self.error: str | None = None
        self._lease = lease
        self._connection_id = connection_id

    def send(self, waiting: Sequence[Row]) -> None:
        """Send the oldest message, and the one behind it only to learn whether Slack refuses the one or all."""
        oldest, behind = waiting[0], waiting[1:]
        answer = self._ask(oldest)
        if answer.fate is Fate.REFUSED and behind:
            next_one = self._ask(behind[0])
            if next_one.fate in (Fate.TAKEN, Fate.UNFIT):
                self._note(behind[0], next_one)
            if next_one.fate is Fate.UNFIT:
                # It says nothing of the oldest one, which is asked again with the one behind that.
                return
            if next_one.fate is Fate.TAKEN:
                answer = Answer(Fate.UNFIT, answer.error)
        self._note(oldest, answer)

    def _ask(self, row: Row) -> Answer:
        self._lease.check()
        return _send(row, self._connection_id)

    def _note(self, row: Row, answer: Answer) -> None:
        values = {"id": row["alert_id"], "error": answer.error}
        with self._lease.writing() as connection:
            if answer.fate is Fate.TAKEN:
                connection.execute(query("alerts.sent"), values)
            elif answer.fate is Fate.UNFIT:
                connection.execute(query("alerts.refused"), values)
                text = (
                    f"Slack refuses alert {row['alert_id']} ({row['alert_key']}) for good: {answer.error}. It is put "
                    "aside, and those behind it are sent. Read it with `alerts list`, then try it again or drop it: "
                    "`alerts retry NUMBER --why …`, `alerts drop NUMBER --why …`."
                )
                incidents.open(connection, key=PUT_ASIDE, severity="warning", text=text)
            else:
                connection.execute(query("alerts.failed"), values)
            if answer.fate is Fate.REFUSED:
                text = (
                    f"Slack takes nothing that is sent with the connection slack: {answer.error}. Alerts wait in "
                    "order and are kept. Look whether its webhook and channel are still there; all are sent once they "
                    "are."
                )
                incidents.open(connection, key=OUTBOX, severity="error", text=text)
        self.sent += answer.fate is Fate.TAKEN
        if answer.fate in (Fate.KEPT, Fate.REFUSED):
            self.error = answer.error

    def note_well(self) -> bool:
        """Slack took messages and none waits: end the incident of the outbox; say whether there was one to tell of."""
        with self._lease.writing() as connection:
            return bool(incidents.close(connection, [OUTBOX], "Slack takes messages, and none waits."))


def text_of(row: Row) -> str:
    """Return a message as it is sent: its text, how late it is, and its key.

    An upstream's own words may be part of it: to Slack they are words only, and call nobody.
    """
    delayed = f" (delayed: known since {kst(row['created_at'])})" if row["age_seconds"] > LATE_SECONDS else ""
    text = f"[{row['severity']}] {row['text']}{delayed}\n`{row['alert_key']}`"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _send(row: Row, connection_id: str) -> Answer:
    """Send one message."""
    # Imported here: the provider and Airflow behind it take seconds to load.
    from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook
    from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler

    try:
        hook = SlackWebhookHook(
            slack_webhook_conn_id=connection_id,
            retry_handlers=[RateLimitErrorRetryHandler(max_retry_count=RATE_LIMIT_RETRIES)],
            timeout=15,
        )
        # The hook's own client, as the hook itself gives a refusal as words alone.
        said = hook.client.send(text=text_of(row), blocks=row["blocks"])
    except Exception as error:
        # Whatever keeps a message from Slack is the outbox's business, never the sender's end.
        return Answer(Fate.KEPT, _SECRET.sub("/services/***", f"{type(error).__name__}: {error}")[:500])
    if said.status_code == 200:
        return Answer(Fate.TAKEN)
    word = str(said.body).strip()
    why = _SECRET.sub("/services/***", f"{word or 'no word'} (HTTP {said.status_code})")[:500]
    if not 400 <= said.status_code < 500 or said.status_code in NOT_NOW:
        return Answer(Fate.KEPT, why)
    return Answer(Fate.UNFIT if word in UNFIT else Fate.REFUSED, why)
