"""Periodic reports as companies would file them, and when DART has their data: generated, with corrections.

Promises: pure questions about any instant; every company that is there reports every period of its business year, most
of them on the last days that are allowed; DART has the data of a report some time after it was filed, and from then on
no longer those of the report that it corrects. Never: a report on a day on which nothing is taken in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from random import Random
from zoneinfo import ZoneInfo

from include.calendars import calendar

SEOUL = ZoneInfo("Asia/Seoul")

# Code → title, and the month of the business year with whose end the period ends.
REPORTS = {
    "11013": ("분기보고서", 3),
    "11012": ("반기보고서", 6),
    "11014": ("분기보고서", 9),
    "11011": ("사업보고서", 12),
}
FIRST_YEAR = 2015
_CORRECTED = 0.08
# A correction comes so many days after its report, at most.
LATEST_CORRECTION = 40
_OPENS = time(7, 30)
# Receipt numbers of reports begin here; other filings of a day have smaller ones.
FIRST_NUMBER = 5_000


@dataclass(frozen=True)
class Report:
    """One report, or a correction of one: whose, of which period, and from when it and its data are there."""

    company: int
    year: int
    code: str
    title: str
    filed: datetime
    has_data_at: datetime
    is_correction: bool = False

    @property
    def day(self) -> date:
        """The day of receipt."""
        return self.filed.date()


@dataclass(frozen=True)
class Market:
    """The reports of all companies, by seed and number of companies."""

    seed: int
    size: int

    def of_day(self, day: date) -> tuple[Report, ...]:
        """Return the reports received on a day."""
        found = list[Report]()
        # A report comes at most 90 days after its period, and its correction 40 days after that.
        for back in range(6):
            month = _months_before(day, back)
            found += _by_day(self.seed, self.size, month.year, month.month).get(day, ())
        return tuple(
            sorted((*found, *self._of_the_morning(day)), key=lambda each: (each.filed, each.company, each.code))
        )

    def number(self, report: Report) -> str:
        """Return the receipt number of a report: later ones of a day have greater numbers."""
        return _numbers(self, report.day)[report]

    def corrected_at(self, report: Report) -> datetime | None:
        """Return from when the list says that a report was corrected; only what was filed first is marked."""
        if report.is_correction:
            return None
        later = self.of_company(report.company, report.year, report.code, datetime.max.replace(tzinfo=SEOUL))[1:]
        return later[0].filed if later else None

    def of_company(self, company: int, year: int, code: str, at: datetime) -> list[Report]:
        """Return what a company has filed for a period by an instant, in order of filing."""
        reports = list(_reports(self.seed, company, year, code))
        if not reports:
            return []
        # Whoever corrects a report in the morning of some day corrects the last one that it filed.
        first = reports[0].day
        last = min(at.date(), first + timedelta(days=100))
        reports += [
            each
            for day in _days_of(self.size, company, first, last)
            for each in self._of_the_morning(day)
            if (each.company, each.year, each.code) == (company, year, code)
        ]
        return sorted((each for each in reports if each.filed <= at), key=lambda each: each.filed)

    def with_data(self, company: int, year: int, code: str, at: datetime) -> Report | None:
        """Return the report whose data DART has of a period at an instant; None where it has none."""
        there = [each for each in self.of_company(company, year, code, at) if each.has_data_at <= at]
        return there[-1] if there else None

    def _of_the_morning(self, day: date) -> tuple[Report, ...]:
        """Somebody corrects its last report as soon as DART opens, and its data are there at once."""
        company = day.toordinal() % _turns(self.size)
        if company >= self.size or not is_open(day) or not has_statements(self.size, company):
            return ()
        filed = [
            each
            for year in (day.year + 1, day.year, day.year - 1)
            for code in REPORTS
            if period_of(company, year, code) < (day.year, day.month)
            for each in _reports(self.seed, company, year, code)[:1]
            if timedelta(days=1) <= day - each.day <= timedelta(days=100)
        ]
        if not filed:
            return ()
        last = max(filed, key=lambda each: each.filed)
        at = datetime.combine(day, time(7, 31), last.filed.tzinfo)
        return (Report(company, last.year, last.code, f"[기재정정]{_plain(last.title)}", at, at, True),)


def has_statements(size: int, company: int) -> bool:
    """Whether DART has a company's statements: it has none of banks."""
    return size < 5 or company % 23 != 7


def has_subsidiaries(company: int, year: int) -> bool:
    """Whether a company has consolidated statements of a year; some no longer have, as the last subsidiary is gone."""
    return company % 4 != 1 and not (company % 17 == 4 and year >= 2026)


def closing_month(company: int) -> int:
    """The month in which a company's business year ends."""
    return {5: 3, 11: 6, 29: 9}.get(company % 41, 12)


def first_year(seed: int, company: int) -> int:
    """The business year from which a company reports."""
    return FIRST_YEAR if company < 3 else Random(f"{seed}/since/{company}").randrange(FIRST_YEAR, 2026)


def is_open(day: date) -> bool:
    """Whether DART takes anything in on a day: also on the last of the year, when the exchange is closed."""
    return day.weekday() < 5 and (calendar("XKRX").is_session(day) or (day.month, day.day) == (12, 31))


def period_of(company: int, year: int, code: str) -> tuple[int, int]:
    """Return year and month in which a period ends; a business year is called after the year in which it begins."""
    months = year * 12 + closing_month(company) % 12 + REPORTS[code][1] - 1
    return months // 12, months % 12 + 1


@lru_cache(maxsize=1 << 17)
def _reports(seed: int, company: int, year: int, code: str) -> tuple[Report, ...]:
    """Return a company's report of a period and the correction of it, where there is one."""
    if year < first_year(seed, company):
        return ()
    chance = Random(f"{seed}/report/{company}/{year}/{code}")
    ends = period_of(company, year, code)
    name, _ = REPORTS[code]
    title = f"{name} ({ends[0]}.{ends[1]:02})"
    due = _last_of(*ends) + timedelta(days=90 if code == "11011" else 45)
    # Most wait for the last days.
    day = _open_before(due - timedelta(days=int(chance.expovariate(0.35)) % 25))
    filed = _some_second(day, chance)
    later = _delay(chance)
    found = [Report(company, year, code, title, filed, filed + later)]
    if chance.random() < _CORRECTED:
        day = _open_before(filed.date() + timedelta(days=chance.randrange(3, LATEST_CORRECTION)))
        mark = "[첨부정정]" if chance.random() < 0.2 else "[기재정정]"
        at = max(_some_second(day, chance), filed + timedelta(hours=1))
        # Its data take the place of the report's, after these were there.
        found.append(Report(company, year, code, mark + title, at, max(at, filed + later) + _delay(chance), True))
    return tuple(found)


def _delay(chance: Random) -> timedelta:
    """How long after a report was filed DART has its data: mostly within the hour, sometimes days."""
    kind = chance.random()
    if kind < 0.6:
        return timedelta(minutes=chance.randrange(0, 60))
    return timedelta(hours=chance.randrange(1, 24)) if kind < 0.92 else timedelta(hours=chance.randrange(24, 96))


@lru_cache(maxsize=512)
def _numbers(market: Market, day: date) -> Mapping[Report, str]:
    return {report: f"{day:%Y%m%d}00{FIRST_NUMBER + place:04}" for place, report in enumerate(market.of_day(day))}


@lru_cache(maxsize=512)
def _by_day(seed: int, size: int, year: int, month: int) -> Mapping[date, tuple[Report, ...]]:
    """Return the reports of the periods that end in a month, by the day of receipt."""
    found: dict[date, list[Report]] = {}
    for company in range(size):
        for code in REPORTS:
            # Whichever of its two calendar years a business year is called after.
            for business_year in (year + 1, year, year - 1):
                if period_of(company, business_year, code) == (year, month):
                    for each in _reports(seed, company, business_year, code):
                        found.setdefault(each.day, []).append(each)
    return {day: tuple(reports) for day, reports in found.items()}


def _turns(size: int) -> int:
    """After how many days it is a company's turn again: in a small market nobody's on most days."""
    return max(size, 40)


def _days_of(size: int, company: int, first: date, last: date) -> Iterator[date]:
    """Return the days on which it is a company's turn to correct something in the morning."""
    day = first + timedelta(days=(company - first.toordinal()) % _turns(size))
    while day <= last:
        yield day
        day += timedelta(days=_turns(size))


def _plain(title: str) -> str:
    return title.rpartition("]")[2]


def _months_before(day: date, months: int) -> date:
    number = day.year * 12 + day.month - 1 - months
    return date(number // 12, number % 12 + 1, 1)


def _last_of(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def _open_before(day: date) -> date:
    while not is_open(day):
        day -= timedelta(days=1)
    return day


def _some_second(day: date, chance: Random) -> datetime:
    return datetime.combine(day, _OPENS, SEOUL) + timedelta(seconds=chance.randrange(0, 11 * 3_600))
