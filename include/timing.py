"""When a stream may ask and how much it may spend, as frozen data; the contract gives these words on.

Promises: immutable, from the standard library alone. Never: no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from include.reach import Quota


@dataclass(frozen=True)
class Budget:
    """What a slice and a day (one `run_date`) of a stream may spend, and how long a slice may work."""

    day_list_pages: int = 50
    day_items: int = 5_000
    day_details: int = 300
    slice_list_pages: int = 5
    slice_items: int = 500
    slice_seconds: int = 120
    reason: str = ""


@dataclass(frozen=True)
class HostGroup:
    """Requests that an upstream counts together: one interval for every stream, worker and machine.

    `penalty` is how long a block stops the group, `busy_wait` the least wait after "too many requests" (429). `quota`
    is what each key has a day, counted before each request over all workers. So many absences, one after the other, of
    what the upstream itself has named (`Request.is_known`) stop the group as a block does; 0: they are what they say.
    """

    name: str
    interval: timedelta
    penalty: timedelta = timedelta(minutes=10)
    busy_wait: timedelta = timedelta(0)
    quota: Quota | None = None
    most_absent: int = 0


@dataclass(frozen=True)
class Schedule:
    """When a stream may ask: a cron expression in the upstream's own zone, or several with ` | ` between them.

    `retry_first`, `retry_every` and `last_try` rule a window whose data is not published yet: it is asked
    again that long after it opened, then at that interval, until that long after it opened. `make_up` opens
    further windows that long after the start of one that did not end `SUCCESS`. `allowance` is how long after
    its start a window is due. `session` says which session date a window is responsible for: the last session
    on or before its local day, or, with `previous_session`, the one before that, for an upstream that publishes a
    session on the morning of the next one: a closed day then asks for nothing new. The local day is that of
    `market_timezone`, where it is another zone than the cron expression's. `is_set` marks times that an installation
    set in place of the declared ones.
    """

    cron: str
    timezone: str
    retry_first: timedelta
    retry_every: timedelta
    last_try: timedelta
    allowance: timedelta
    make_up: tuple[timedelta, ...] = (timedelta(minutes=10), timedelta(minutes=40), timedelta(hours=4))
    session: Literal["same_day", "previous_session"] = "same_day"
    market_timezone: str | None = None
    is_set: bool = False

    @property
    def day_zone(self) -> str:
        """The zone whose day tells the session date."""
        return self.market_timezone or self.timezone


@dataclass(frozen=True)
class Window:
    """One scheduled opportunity to poll, named by its scheduled instant."""

    start: datetime
    due_at: datetime
    run_date: date
    session_date: date | None

    @property
    def slot(self) -> str:
        """The instant in UTC: what makes the window unique within its stream."""
        return self.start.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
