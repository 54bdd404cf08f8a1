"""Which days have data: XNYS and XKRX sessions, US federal days, every day, and the operators' exceptions.

Promises: pure reading of a calendar library with an explicit first day, corrected by the exceptions handed in.
A calendar decides how long to wait, never what is true. Never: no database, no clock, no naive local time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

from include.contract import Stream, Window

SEOUL = ZoneInfo("Asia/Seoul")
FIRST_DAY = date(1990, 1, 1)
EVERY_DAY = "DAILY"
FEDERAL = "US_FEDERAL"
NAMES = ("XNYS", "XKRX", FEDERAL, EVERY_DAY)
# The library knows special closures only up to its release; beyond a year ahead nothing is asked anyway.
_YEARS_AHEAD = 2


class UnknownCalendar(Exception):
    """A stream names a calendar that does not exist."""


@cache
def _library(name: str, last_year: int) -> frozenset[date]:
    """All sessions of an exchange from `FIRST_DAY` to the end of a year."""
    # Imported here: pandas behind it must not be loaded by a process that only parses DAG files.
    import exchange_calendars

    calendar = exchange_calendars.get_calendar(name, start=FIRST_DAY.isoformat(), end=f"{last_year}-12-31")
    return frozenset(stamp.date() for stamp in calendar.sessions)


# Federal holidays on a fixed day, with the first year in which the offices were closed for them.
_FIXED = ((1, 1, 1990), (6, 19, 2022), (7, 4, 1990), (11, 11, 1990), (12, 25, 1990))
# The others: month, weekday, and which of the month; the last one for -1.
_MONDAY, _THURSDAY = 0, 3
_MOVING = ((1, _MONDAY, 3), (2, _MONDAY, 3), (5, _MONDAY, -1), (9, _MONDAY, 1), (10, _MONDAY, 2), (11, _THURSDAY, 4))


@cache
def _federal_holidays(year: int) -> frozenset[date]:
    """Weekdays on which US federal offices are closed for a holiday of a year (5 U.S.C. 6103).

    One that falls on a Saturday is kept on the Friday before, on a Sunday on the Monday after. Closures by order of the
    President are in no rule; they are exceptions of the calendar.
    """
    found = set()
    for month, day, since in _FIXED:
        holiday = date(year, month, day)
        if year >= since:
            found.add(holiday + timedelta(days={5: -1, 6: 1}.get(holiday.weekday(), 0)))
    for month, weekday, which in _MOVING:
        first = date(year, month, 1)
        days = [first + timedelta(days=n) for n in range(31)]
        of_weekday = [day for day in days if day.month == month and day.weekday() == weekday]
        found.add(of_weekday[which - 1 if which > 0 else which])
    return frozenset(found)


def _is_federal_day(day: date) -> bool:
    # New Year's Day of a Saturday is kept on the last day of the year before.
    return day.weekday() < 5 and day not in _federal_holidays(day.year) | _federal_holidays(day.year + 1)


@dataclass(frozen=True)
class Calendar:
    """The open days of one calendar; `exceptions` maps a day to True (open) or False (closed) against the library."""

    name: str
    exceptions: Mapping[date, bool] = field(default_factory=dict)

    @property
    def has_closed_days(self) -> bool:
        """Whether some days are closed; where every day counts, a day without anything is no news."""
        return self.name != EVERY_DAY

    def is_session(self, day: date) -> bool:
        """Say whether the market was, or will be, open on a day."""
        if day in self.exceptions:
            return self.exceptions[day]
        if not self.has_closed_days:
            return True
        if self.name == FEDERAL:
            return _is_federal_day(day)
        return day in _library(self.name, max(day.year, 2026) + _YEARS_AHEAD)

    def sessions(self, start: date, end: date) -> list[date]:
        """Return the open days from `start` to `end`, both inclusive, oldest first."""
        days = (start + timedelta(days=n) for n in range((end - start).days + 1))
        return [day for day in days if self.is_session(day)]

    def last_session(self, day: date) -> date:
        """Return the last open day on or before a day."""
        while not self.is_session(day):
            day -= timedelta(days=1)
        return day

    def session_offset(self, day: date, sessions: int) -> date:
        """Return the open day that is `sessions` sessions after a day (before it, where negative)."""
        step = timedelta(days=1 if sessions > 0 else -1)
        for _ in range(abs(sessions)):
            day += step
            while not self.is_session(day):
                day += step
        return day


def calendar(name: str, exceptions: Mapping[date, bool] | None = None) -> Calendar:
    """Return a calendar by name: XNYS, XKRX, US_FEDERAL (days of the US government), or DAILY (every day).

    Raises:
        UnknownCalendar: no such calendar.
    """
    if name not in NAMES:
        raise UnknownCalendar(f"There is no calendar {name!r}; known are {', '.join(NAMES)}.")
    return Calendar(name, dict(exceptions or {}))


def window_for(stream: Stream, instant: datetime, days: Calendar) -> Window:
    """Return the window of a stream that was scheduled at an instant.

    Pure: it serves scheduled, manual and backfill runs alike. `run_date` is the KST date of the instant and
    nothing else; the session date is the last session that the market's own day at that instant can have closed.
    """
    schedule = stream.schedule
    local_day = instant.astimezone(ZoneInfo(schedule.day_zone)).date()
    session = days.last_session(local_day)
    if schedule.session == "previous_session":
        session = days.session_offset(session, -1)
    return Window(
        start=instant.astimezone(UTC),
        due_at=instant.astimezone(UTC) + schedule.allowance,
        run_date=instant.astimezone(SEOUL).date(),
        session_date=session,
    )


def last_instant(cron: str, timezone: str, now: datetime) -> datetime:
    """Return the newest instant at or before `now` at which a cron expression fires in its own zone.

    Several expressions are written with ` | ` between them: each of them fires.
    """
    return max(_last(each, timezone, now) for each in cron.split(" | "))


def _last(cron: str, timezone: str, now: datetime) -> datetime:
    from croniter import croniter

    zone = ZoneInfo(timezone)
    # Cron is evaluated on the wall clock and then put back into the zone, so that daylight-saving changes move
    # the instant and not the hour.
    wall = now.astimezone(zone).replace(tzinfo=None)
    fired = croniter(cron, wall + timedelta(seconds=1)).get_prev(datetime)
    instant = fired.replace(tzinfo=zone)
    while instant > now:
        fired = croniter(cron, fired).get_prev(datetime)
        instant = fired.replace(tzinfo=zone)
    return instant.astimezone(UTC)


def instants(cron: str, timezone: str, start: datetime, end: datetime, most: int) -> list[datetime]:
    """Return the instants from `start` (inclusive) to `end` (exclusive) at which a cron expression fires.

    `most` bounds the answer, oldest first: whoever only asks whether there are more than n asks for n + 1.
    """
    found: list[datetime] = []
    instant = next_instant(cron, timezone, start - timedelta(microseconds=1))
    while instant < end and len(found) < most:
        found.append(instant)
        instant = next_instant(cron, timezone, instant)
    return found


def next_instant(cron: str, timezone: str, now: datetime) -> datetime:
    """Return the first instant after `now` at which a cron expression, or one of several, fires in its own zone."""
    return min(_next(each, timezone, now) for each in cron.split(" | "))


# A stream with a window every few minutes walks over all of a day's for each key that it looks at again.
@lru_cache(maxsize=2_048)
def _next(cron: str, timezone: str, now: datetime) -> datetime:
    from croniter import croniter

    zone = ZoneInfo(timezone)
    wall = now.astimezone(zone).replace(tzinfo=None)
    fired = croniter(cron, wall).get_next(datetime)
    instant = fired.replace(tzinfo=zone)
    while instant <= now:
        fired = croniter(cron, fired).get_next(datetime)
        instant = fired.replace(tzinfo=zone)
    return instant.astimezone(UTC)
