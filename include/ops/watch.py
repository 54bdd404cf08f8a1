"""The watcher: a process that needs only the database and Slack, so that a dead Airflow is told.

Promises: every round marks a snapshot that nobody took, ends the leases whose holder vanished, listens for upkeep (a
scheduler that is silent for six minutes is told) and sends what waits in the alert outbox; every minute it looks for
what is past due, as upkeep does. A database or a Slack that is away is said once and tried again. Never: it collects
nothing and ends only when it is told to.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime

import psycopg

from include import registry
from include.engine import lookout, upkeep, windows
from include.engine.db import transaction
from include.engine.lease import holder
from include.ops import slack

ROUND_SECONDS = 10.0
# Every how many rounds it looks for what is past due.
LOOK_ROUNDS = 6
log = logging.getLogger("daybook.watch")


def watch(url: str, stop: threading.Event, *, has_slack: bool, every: float = ROUND_SECONDS) -> None:
    """Work in rounds until `stop` is set."""
    owner, trouble, since, rounds = holder(), "", None, 0
    while not stop.is_set():
        try:
            since = since or _now(url)
            said = one_round(url, owner, has_slack=has_slack, since=since, looks=rounds % LOOK_ROUNDS == 0)
            rounds += 1
        except psycopg.OperationalError as error:
            said = f"the database cannot be reached ({type(error).__name__}); trying again every {every:.0f} s"
        except Exception as error:
            # Whatever it is, the one process that tells of others' deaths must not die of it.
            said = f"a round failed ({type(error).__name__}); trying again every {every:.0f} s"
            log.debug("the failed round", exc_info=error)
        if said != trouble:
            log.warning("%s", said or "all is well again")
        trouble = said
        stop.wait(every)


def _now(url: str) -> datetime:
    with transaction(url, application="daybook watch", statement_timeout=15) as connection:
        return windows.now(connection)


def one_round(url: str, owner: str, *, has_slack: bool, since: datetime | None = None, looks: bool = False) -> str:
    """Look after everything and send alerts once; return what is wrong in words, empty where nothing is.

    Args:
        url: libpq address of the warehouse.
        owner: named as the holder of the sender's lease.
        has_slack: whether the connection exists.
        since: when the watcher began to listen, by the database's clock; upkeep is not listened for where None.
        looks: whether it is this round's turn to look for what is past due.
    """
    for told in upkeep.recover(url):
        log.warning("%s", told)
    if since is not None and lookout.listen(url, since):
        log.warning("upkeep has not run for %.0f minutes", lookout.SILENCE.total_seconds() / 60)
    if looks:
        for told in lookout.look(url, registry.streams()):
            log.warning("%s", told)
    if not has_slack:
        return "connection slack is missing, so alerts wait in ops.alerts"
    drained = slack.drain(url, owner)
    if drained.sent:
        log.info("%d alerts sent", drained.sent)
    return f"Slack takes no messages ({drained.error}); they wait in ops.alerts" if drained.error else ""
