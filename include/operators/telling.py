"""Sending alerts and issues from a task: right after the commit that made them, and whenever upkeep looks.

Promises: a Slack or GitHub that is missing, busy or away is said in words and costs the task nothing else. Never: a
task fails because of a message, and none is made here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from include.operators import resolve

# How long a task goes on sending; the watcher sends the rest.
MOST_SECONDS = 60.0

log = logging.getLogger(__name__)


def send(url: str, owner: str, stop: Callable[[], bool] = lambda: False, seconds: float = MOST_SECONDS) -> str:
    """Send what waits, and say what came of it in words; empty where nothing was to be sent."""
    import psycopg

    from include.ops import slack

    if not resolve.slack_is_there():
        return ""
    until = time.monotonic() + seconds
    try:
        done = slack.drain(url, owner, stop=lambda: stop() or time.monotonic() > until)
    except psycopg.Error as error:
        # What waits is safe in the outbox, and the task's own work is done.
        log.warning("alerts could not be sent: %s", str(error).partition("\n")[0])
        return "alerts could not be sent, they wait in the outbox"
    if done.error:
        return f"Slack takes no messages ({done.error[:200]}), they wait in the outbox"
    return f"{done.sent} alerts sent" if done.sent else ""


def send_issues(url: str, owner: str, stop: Callable[[], bool] = lambda: False, seconds: float = MOST_SECONDS) -> str:
    """Bring issues on GitHub up to date, and say what came of it in words; empty where nothing was to be sent."""
    import psycopg

    from include.ops import github

    if not resolve.github_is_there():
        return ""
    until = time.monotonic() + seconds
    try:
        done = github.drain(url, owner, resolve.github(), lambda: stop() or time.monotonic() > until)
    except resolve.ConnectionUnfit as unfit:
        log.warning("%s", unfit)
        return "issues are not sent, as the connection github lacks something"
    except psycopg.Error as error:
        log.warning("issues could not be sent: %s", str(error).partition("\n")[0])
        return "issues could not be sent, they wait"
    return github.text_of(done)
