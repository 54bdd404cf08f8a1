"""The ledger of Hub requests: one count over all processes, kept before anything is sent.

Promises: a request or a commit is entered first and sent then, so a crash counts too much and never too little;
no more than `REQUESTS` are sent in any five minutes and no more than `COMMITS` in any hour. Never: nothing about
a request is kept but the repository and the instant.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from include.engine.db import query, transaction

# What a free account may ask for in five minutes, as a sliding window: stricter than the Hub's fixed one.
REQUESTS = 1_000
REQUEST_WINDOW = 300.0
# Commits to repositories in an hour; the Hub refuses the rest although its headers say that plenty is left.
COMMITS = 128
COMMIT_WINDOW = 3_600.0
# So many of them are left to small urgent releases by those that are large.
COMMITS_KEPT = 28

# Longer than this nobody waits for the window: the rest is put off.
PATIENCE_SECONDS = 60.0


class LedgerStopped(Exception):
    """The caller was told to end while it waited for its turn; the request was not sent."""


class LedgerFull(Exception):
    """The window is full for longer than anybody waits; the request was not sent. `wait` is in seconds."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"the request window is full for another {wait:.0f} s")
        self.wait = wait


@dataclass(frozen=True)
class Ledger:
    """The count of one account, in one warehouse database. Limits are for any stretch of so many seconds."""

    url: str
    repository: str
    stop: threading.Event
    request_limit: int = REQUESTS
    commit_limit: int = COMMITS
    request_window: float = REQUEST_WINDOW
    commit_window: float = COMMIT_WINDOW

    def request(self) -> None:
        """Enter one request, waiting a little for the window where it is full.

        Raises:
            LedgerFull: it would take longer than a little.
            LedgerStopped: the caller was told to end.
        """
        while (wait := self._spend(requests=1, commits=0)) > 0:
            if wait > PATIENCE_SECONDS:
                raise LedgerFull(wait)
            if self.stop.wait(wait):
                raise LedgerStopped("Told to end while waiting for the Hub's request window; nothing was sent.")

    def commit(self, kept: int = 0) -> float:
        """Enter one commit; gives 0, or how many seconds from now one may be sent, and then enters nothing.

        `kept` are commits that this one leaves to others.
        """
        return self._spend(requests=0, commits=1, kept=kept)

    def _spend(self, *, requests: int, commits: int, kept: int = 0) -> float:
        with transaction(self.url, application="daybook ledger", statement_timeout=15) as connection:
            row = connection.execute(
                query("publish.spend"),
                {
                    "repository": self.repository,
                    "requests": requests,
                    "commits": commits,
                    "request_limit": self.request_limit,
                    "commit_limit": max(self.commit_limit - kept, 1),
                    "request_window": f"{self.request_window} seconds",
                    "commit_window": f"{self.commit_window} seconds",
                },
            ).fetchone()
        assert row is not None, "a function call gives one row"
        return float(row["wait"])
