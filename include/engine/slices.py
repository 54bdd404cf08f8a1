"""What one slice of a cycle has gathered so far.

Promises: plain values that the asking fills and the closing reads. Never: nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from include.calendars import Calendar
from include.contract import AnswerClass, BudgetReason, Request, Stream
from include.engine.fetches import Held
from include.engine.lease import Cycle, Lease
from include.engine.merge import Counts
from include.engine.plan import Plan, Spent


@dataclass(frozen=True)
class Open:
    """An asking with pages missing: its first fetch, the number of its next page, and the requests still to be sent."""

    head: int
    page: int
    todo: tuple[Request, ...]


@dataclass
class Slice:
    """What a slice has gathered so far.

    `answers` holds the class of the last answer to each key, `open` the askings of which pages are missing, by the
    key of their first request, `found` the keys of requests that answers led to. `cursor` is the stream's own. `limit`
    is the first of the day's budgets that a request was left out for. `waiting` is about how many rows wait to be
    applied, `items` how many were. `unread` are the keys whose answers are stored and left for the next slice to apply.
    `absent` are the last keys, one after the other, of what the upstream has named itself and does not have, `failing`
    the last addresses, one after the other, whose answers failed.
    """

    lease: Lease
    stream: Stream
    days: Calendar
    plan: Plan
    answers: dict[str, AnswerClass]
    started: float
    spent: Spent
    errors: dict[str, str] = field(default_factory=dict)
    to_apply: list[Held] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    open: dict[str, Open] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)
    cursor: Mapping[str, Any] = field(default_factory=dict)
    limit: BudgetReason | None = None
    list_pages: int = 0
    details: int = 0
    waiting: int = 0
    items: int = 0
    unread: set[str] = field(default_factory=set)
    absent: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)

    @property
    def cycle(self) -> Cycle:
        """The cycle that is worked on."""
        return self.lease.cycle

    @property
    def is_window(self) -> bool:
        """Whether it is a poll window, rather than a chunk of a run."""
        return self.cycle.run_id is None

    def leave(self, held: Iterable[Held]) -> None:
        """Leave what is stored for the next slice to apply."""
        self.unread.update(asking.answers[0].request.key for asking in held)

    def add(self, requests: Iterable[Request]) -> list[Request]:
        """Plan what answers led to, each key once; returns what was not planned before."""
        known = {request.key for request in self.plan.requests}
        fresh = list({r.key: r for r in requests if r.key not in known}.values())
        self.plan = replace(self.plan, requests=(*self.plan.requests, *fresh))
        self.found.update(request.key for request in fresh)
        return fresh

    def unanswered(self) -> list[Request]:
        """Return what was planned and has no answer."""
        return [request for request in self.plan.requests if request.key not in self.answers]

    def found_unanswered(self) -> list[Request]:
        """Return what answers led to and has no answer itself."""
        return [request for request in self.unanswered() if request.key in self.found]
