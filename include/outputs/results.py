"""How patient a run of the publisher is, and what it did, as plain data.

Never: nothing is done here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from include.outputs.ledger import COMMIT_WINDOW, COMMITS, COMMITS_KEPT, REQUEST_WINDOW, REQUESTS


@dataclass(frozen=True)
class Pace:
    """How patient a run is.

    `waits` are the seconds before each further try of a step, longer where the Hub asks for it; `seconds` is how
    long a run works: what would begin later, or wait longer, is put off. `rest` is how long everything is put off
    when the Hub stays out of reach. The limits are requests in five minutes and commits in an hour (each window in
    seconds), of which large releases leave `commits_kept` to the others.
    """

    waits: tuple[float, ...] = (30, 60, 120, 240)
    seconds: float = 540
    rest: float = 900
    request_limit: int = REQUESTS
    commit_limit: int = COMMITS
    request_window: float = REQUEST_WINDOW
    commit_window: float = COMMIT_WINDOW
    commits_kept: int = COMMITS_KEPT


@dataclass(frozen=True)
class SentCommit:
    """A confirmed commit: its release, name, page and how many files of the outbox it settled."""

    release: str
    oid: str
    url: str
    files: int


@dataclass(frozen=True)
class Published:
    """What a run of the publisher did.

    `refused` are files (path, reason) that the gate kept back; `failed` are releases (name, reason) of which the Hub
    took no further file in this run, they wait; `deferred` are large releases (name, reason) that used up their share
    of the hour; `put_off_until` is when the rest may be tried again, and why;
    `restored` are files (path, what happened) that somebody deleted or changed on the Hub and that are sent again;
    `busy` says who else publishes right now; `stopped` that the run was told to end or had no time left; `waiting`
    is how many files are left.
    """

    commits: tuple[SentCommit, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    deferred: tuple[tuple[str, str], ...] = ()
    restored: tuple[tuple[str, str], ...] = ()
    put_off_until: datetime | None = None
    put_off_reason: str | None = None
    busy: str | None = None
    stopped: bool = False
    waiting: int = 0

    @property
    def files(self) -> int:
        """How many files were published."""
        return sum(commit.files for commit in self.commits)
