"""Slack's incoming webhooks.

Promises: a message is answered `ok` and kept in order of arrival; what Slack would refuse is refused with
its own word. Never: the secret part of a webhook's address is kept or shown.
"""

from __future__ import annotations

import re
import threading
from typing import Any

from include.sandbox.exchange import Answer, Call, Upstream, World

HOST = "hooks.slack.com"
WEBHOOK = re.compile(r"/services/(?P<team>[^/]+)/(?P<hook>[^/]+)/(?P<secret>[^/]+)")
TEXT = ("Content-Type", "text/html")


def mask(path: str) -> str:
    """A webhook's path without its secret."""
    found = WEBHOOK.fullmatch(path)
    return f"/services/{found['team']}/{found['hook']}/***" if found else "/services/***"


class Slack:
    """The messages that were posted, newest last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._messages: list[dict[str, Any]] = []

    def answer(self, call: Call) -> Answer:
        """Take one message."""
        if WEBHOOK.fullmatch(call.path) is None:
            return Answer(404, b"no_service", (TEXT,))
        if call.method != "POST":
            return Answer(405, b"method_not_allowed", (TEXT,))
        try:
            payload = call.json()
        except ValueError:
            payload = None
        if not isinstance(payload, dict):
            return Answer(400, b"invalid_payload", (TEXT,))
        if not any(payload.get(part) for part in ("text", "blocks", "attachments")):
            return Answer(400, b"no_text", (TEXT,))
        message = {"at": call.at.isoformat(), "webhook": mask(call.path), "text": payload.get("text")}
        with self._lock:
            self._messages.append(message | {"payload": payload})
        return Answer(200, b"ok", (TEXT,))

    def view(self) -> dict[str, Any]:
        """All messages, for reading."""
        with self._lock:
            return {"count": len(self._messages), "messages": list(self._messages)}

    def reset(self) -> None:
        """Forget all messages."""
        with self._lock:
            self._messages.clear()


def upstream(world: World) -> Upstream:
    """Slack as a stand-in; reached at `/services/…` or under its own host."""
    slack = Slack()
    return Upstream(
        name="slack",
        hosts=(HOST,),
        prefixes=(("/services/", HOST),),
        answer=slack.answer,
        absent=lambda call: Answer(404, b"no_service", (TEXT,)),
        kind=lambda call: "webhook",
        view=slack.view,
        reset=slack.reset,
        mask=mask,
    )
