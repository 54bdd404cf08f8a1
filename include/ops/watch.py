"""The watcher: a process that needs only the database and Slack, so that a dead Airflow is told.

Promises: every round marks a snapshot that nobody took, ends the leases whose holder vanished and sends what waits in
the alert outbox; a database or a Slack that is away is said once and tried again. Never: it collects nothing and ends
only when it is told to.
"""

from __future__ import annotations

import logging
import threading

import psycopg

from include.engine import upkeep
from include.engine.lease import holder
from include.ops import slack

ROUND_SECONDS = 10.0
log = logging.getLogger("daybook.watch")


def watch(url: str, stop: threading.Event, *, has_slack: bool, every: float = ROUND_SECONDS) -> None:
    """Work in rounds until `stop` is set."""
    owner, trouble = holder(), ""
    while not stop.is_set():
        try:
            said = one_round(url, owner, has_slack=has_slack)
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


def one_round(url: str, owner: str, *, has_slack: bool) -> str:
    """Look after snapshots and leases and send alerts once; return what is wrong in words, empty where nothing is."""
    for told in upkeep.recover(url):
        log.warning("%s", told)
    if not has_slack:
        return "connection slack is missing, so alerts wait in ops.alerts"
    drained = slack.drain(url, owner)
    if drained.sent:
        log.info("%d alerts sent", drained.sent)
    return f"Slack takes no messages ({drained.error}); they wait in ops.alerts" if drained.error else ""
