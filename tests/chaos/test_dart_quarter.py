"""A quarter of DART day by day: 2,700 companies, 1,500 filings a day, the season of half-year reports, two keys.

There are corrections, data that come days and documents that come hours after their report, endpoints that are out of
order, a night of maintenance and a day on which our address is blocked. On the last day of the season the list is
looked at every five minutes. At its end each category holds exactly what DART has; at every moment between the newest
came first; neither quota nor rate is ever exceeded; each filing is discovered by the next look, and once. What it costs
is counted beside what the rules of the closest pipeline would have cost on the same quarter.

`CHAOS_COMPANIES` sets another number of companies, `CHAOS_FIRST` and `CHAOS_LAST` other days (2026-08-04 to 2026-08-28
has every trouble of the quarter).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from include.contract import Mode
from include.engine.verdict import Verdict
from include.sandbox.dart import Dart
from include.sandbox.dart_documents import is_periodic
from include.sandbox.dart_filings import Filing
from include.sandbox.dart_items import FIELDS
from include.sandbox.dart_periodic import Report, has_statements
from include.sandbox.exchange import World
from tests.fixtures_sandbox import Start
from tests.sources.conftest import place  # noqa: F401
from tests.sources.dart_desk import LISTED, SyncDesk, at, lacks_of_document
from tests.sources.places import Place

pytestmark = pytest.mark.chaos

COMPANIES = int(os.environ.get("CHAOS_COMPANIES", "2700"))
FIRST = date.fromisoformat(os.environ.get("CHAOS_FIRST", "2026-07-01"))
LAST = date.fromisoformat(os.environ.get("CHAOS_LAST", "2026-09-30"))
# Data come at most five days after a correction, and are looked for again after half the time that was waited.
WHOLE_UNTIL = LAST - timedelta(days=9)
SETS = ("dart.finance", "dart.report")
CATEGORIES = (*SETS, "dart.docs")
# Minutes after midnight at which the list is looked at, and on days on which it is looked at as it is by default.
LOOKS, CLOSE_LOOKS = range(8 * 60, 20 * 60 + 1, 240), range(8 * 60, 20 * 60 + 1, 5)
CLOSELY = (date(2026, 8, 14), date(2026, 8, 14))
BLOCKED, MAINTAINED = date(2026, 8, 5), date(2026, 8, 18)
OUT = (date(2026, 8, 11), date(2026, 8, 13))
LAGS = (date(2026, 8, 24), date(2026, 8, 26))


@dataclass
class Quarter(SyncDesk):
    """The desk with the streams as they are: their own rate, quota and shares.

    One after the other stands in for side by side: between two slices the list is looked at where that is due.
    """

    looks: list[datetime] = field(default_factory=list)
    ticks: list[tuple[datetime, datetime]] = field(default_factory=list)
    waiting: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.between = lambda: self.look(self.place.now())

    def sync(self, when: datetime) -> None:
        """Open the windows of all categories at an instant, or now, where what was before took longer."""
        for name in CATEGORIES:
            self._waits(name, self.poll(name, max(when, self.place.now())))

    def go_on(self) -> None:
        """Work the windows that wait and whose time has come."""
        for name in [name for name, until in self.waiting.items() if until <= self.place.now()]:
            while (verdict := self.work(self.stream(name), Mode.POLL, None)) is not None:
                self._waits(name, verdict)
                if verdict.next_eligible_at is not None:
                    break
                self.between()
            else:
                self.waiting.pop(name, None)

    def _waits(self, name: str, verdict: Verdict) -> None:
        if verdict.next_eligible_at is None:
            self.waiting.pop(name, None)
        else:
            self.waiting[name] = verdict.next_eligible_at

    def look(self, when: datetime) -> None:
        """Look at the list where a look was due by an instant, once where several were."""
        due = [each for each in self.looks if each <= when]
        if due:
            self.looks = [each for each in self.looks if each > when]
            begun = max(due[-1], self.place.now())
            self.poll(LISTED, begun)
            self.ticks.append((begun, self.place.now()))


def days() -> Iterator[date]:
    yield from (FIRST + timedelta(days=n) for n in range((LAST - FIRST).days + 1))


def trouble(here: Quarter, day: date) -> None:
    """What begins and ends on a day, before its first window."""
    if day == BLOCKED:
        # The next request is one too many, and for a day all are refused.
        here.switch("limit", n=0)
    if day == BLOCKED + timedelta(days=1):
        here.switch("limit", n=1_000)
    if day in OUT:
        here.switch("out", endpoint="exctvSttus", **{"as": "page" if day == OUT[0] else None})
    if day in LAGS:
        here.switch("lag", hours=9 if day == LAGS[0] else 0)
    if day == MAINTAINED:
        here.switch("maintenance")
    if day == CLOSELY[0]:
        late = next(each for each in here.beside.filings.of_day(day) if is_kept(each))
        here.switch("document", rcept_no=late.rcept_no, at=at(day + timedelta(days=1), "10:00").isoformat())


def is_kept(filing: Filing) -> bool:
    """Whether the document of a filing is one that the sync keeps."""
    return is_periodic(filing) and filing.company.market in "YK" and bool(filing.company.stock_code.strip())


def looks(day: date) -> list[datetime]:
    """The instants at which the list is looked at on a day."""
    if day.weekday() >= 5:
        return []
    minutes = CLOSE_LOOKS if CLOSELY[0] <= day <= CLOSELY[1] else LOOKS
    return [at(day, "00:00") + timedelta(minutes=each) for each in minutes]


def test_a_quarter_day_by_day(place: Callable[[], Place], sandbox: Start, tmp_path: Path) -> None:  # noqa: F811
    made = place()
    made.at(at(FIRST, "02:00"))
    running = sandbox(clock=made.now, companies=COMPANIES)
    made.sandbox_url = running.url
    here = Quarter(made, running, Dart(World(tmp_path, companies=COMPANIES)), keeps_pace=True)
    for day in days():
        trouble(here, day)
        here.sync(at(day, "03:00"))
        if day == MAINTAINED:
            here.switch("maintenance", **{"is": False})
        here.looks = looks(day)
        for hour in range(8, 21):
            now = at(day, f"{hour:02}:00")
            if hour == 15:
                here.sync(now)
            for look in [each for each in here.looks if each < now + timedelta(hours=1)]:
                here.look(max(look, here.place.now()))
            here.at(max(now, made.now()))
            here.go_on()
        print(f"{day}: {made.now():%H:%M}, {time.process_time():.0f} s of CPU, waiting {here.waiting}", flush=True)
    here.sync(at(LAST + timedelta(days=1), "03:00"))
    end = here.place.now()

    places = here.reports(FIRST, WHOLE_UNTIL, end)
    assert [each for name in SETS for each in here.lacks(name, places, end)] == []
    _documents_are_whole(here)
    _newest_came_first(here)
    late = _discovered_by_the_next_look(here)

    said = running.control("GET", "dart")
    usage = made.sql("select max(used) as most, count(*) as days from collect.key_usage where host_group = 'dart'")[0]
    assert max(said["used"]) <= 20_000
    assert usage["most"] <= 20_000
    assert said["most_in_a_minute"] <= 501
    fetches = made.sql(
        "select stream, count(*)::integer as n, count(*) filter (where answer_class = 'absent')::integer as absent "
        "from collect.fetches where stream ^@ 'dart.' group by stream order by stream"
    )
    ours = sum(row["n"] for row in fetches if row["stream"] in SETS)
    counted = "select count(distinct (corp_code, bsns_year, reprt_code)) as n from filings.dart_report_sets"
    held = made.sql(f"{counted} where rcept_no <> ''")[0]["n"]
    theirs, forgiven = dartlab(here), dartlab(here, is_forgiven=True)
    print(f"\n{COMPANIES} companies, {len(here.ticks)} looks at the list; {late} filings later than the next look")
    print("requests:", ", ".join(f"{row['stream']} {row['n']} ({row['absent']} absent)" for row in fetches))
    print(f"most of a key and day {usage['most']}, in a minute {said['most_in_a_minute']}")
    print(f"ours: {held} sets newly held with {ours} requests, {ours / held:.1f} a set")
    for name, cost in (("", theirs), (" without its defects 20 and 21", forgiven)):
        print(
            f"dartlab's rules{name}: {len(cost.sets)} with {cost.requests}, {cost.requests / len(cost.sets):.1f} a set"
        )
    assert sum(row["absent"] for row in fetches if row["stream"] == "dart.docs") > 0
    assert ours / held <= theirs.requests / len(theirs.sets) / 2


def _documents_are_whole(here: Quarter) -> None:
    """Each report's document is held once, as it was written, a correction's beside what it corrects."""
    reports = [
        each for day in days() for each in here.beside.filings.of_day(day) if day <= WHOLE_UNTIL and is_kept(each)
    ]
    assert any("정정]" in each.title for each in reports)
    assert [wrong for each in reports for wrong in lacks_of_document(here.place, each)] == []
    rows = here.place.sql("select report_period, is_correction, rcept_no from filings.dart_documents")
    assert {each.rcept_no for each in reports} <= {row["rcept_no"] for row in rows}
    assert here.place.sql("select * from filings.dart_docs_history") == []
    current = here.place.sql(
        "select count(*) as n from filings.dart_document_versions where is_current "
        "group by corp_code, base_title, report_period having count(*) > 1"
    )
    assert current == []


def _newest_came_first(here: Quarter) -> None:
    """In no window is a set asked for while a newer one is known, still to be asked for and was due in the same way.

    Between two slices of a window the list is looked at, and what is found goes before what is left; but a set that was
    begun is asked for to its end first.
    """
    rows = here.place.sql(
        "select f.stream, f.cycle_id, f.session_date, f.request_key, f.sent_at, d.created_at as known, "
        "     d.created_at < (select max(e.window_start) "
        "     from collect.cycles e where e.stream = f.stream and e.window_start < c.window_start "
        "     and e.cycle_status in ('BUDGET_EXHAUSTED', 'FAILED')) is true "
        " or exists (select 1 from collect.fetches b where b.stream = f.stream and b.request_key = f.request_key "
        "             and b.cycle_id < f.cycle_id) as waited "
        "from collect.fetches f join collect.cycles c on c.cycle_id = f.cycle_id "
        "left join dartbrief.disclosures d on d.rcept_no = "
        "     split_part(f.request_key, '/', case f.stream when 'dart.docs' then 2 else 4 end) "
        "where f.stream = any(%s) and f.answer_class <> 'not_yet' order by f.fetch_id",
        list(CATEGORIES),
    )
    assert {row["stream"] for row in rows} == {*CATEGORIES}
    last: dict[tuple[int, bool], tuple[date, datetime]] = {}
    begun: set[tuple[int, str]] = set()
    for row in rows:
        key, of_set = (row["cycle_id"], row["waited"]), "/".join(row["request_key"].split("/")[:2])
        if (row["cycle_id"], of_set) in begun:
            continue
        begun.add((row["cycle_id"], of_set))
        of, sent_at = last.get(key, (date.max, row["sent_at"]))
        assert row["waited"] or row["session_date"] <= of or sent_at <= row["known"], (row, of, sent_at)
        last[key] = row["session_date"], row["sent_at"]


def _discovered_by_the_next_look(here: Quarter) -> int:
    """Every filing is there by the end of the first look after it appeared; returns how many the block made late."""
    blocked = (at(BLOCKED, "00:00"), at(BLOCKED + timedelta(days=1), "10:00"))
    rows = {
        row["rcept_no"]: row["created_at"]
        for row in here.place.sql("select rcept_no, created_at from dartbrief.disclosures")
    }
    filed = [
        filing
        for day in days()
        for filing in here.beside.filings.of_day(day)
        if filing.company.market in "YK" and filing.at <= here.ticks[-1][0]
    ]
    # None is missing, none is there that was not filed, and the key of the table has each once.
    assert {each.rcept_no for each in filed} == rows.keys() - _after(here, here.ticks[-1][0])
    late = 0
    for filing in filed:
        begun, over = next(tick for tick in here.ticks if tick[0] >= filing.at)
        if rows[filing.rcept_no] > over:
            late += 1
            assert blocked[0] <= begun <= blocked[1], (filing.rcept_no, begun)
    return late


def _after(here: Quarter, last: datetime) -> set[str]:
    """Filings that appeared while the last look was on."""
    day: list[Filing] = here.beside.filings.of_day(last.astimezone(at(LAST, "00:00").tzinfo).date())
    return {each.rcept_no for each in day if each.at > last}


# --- the same quarter by the rules of the closest pipeline


@dataclass
class Count:
    """What rules cost: requests, and which sets were held through them."""

    requests: int = 0
    sets: set[tuple[int, int, str]] = field(default_factory=set)


def dartlab(here: Quarter, *, is_forgiven: bool = False) -> Count:
    """Count what dartlab's rules ask for: twice a day all of a category whose table lacks a listed receipt number.

    Its list goes back 60 days; a quarter of another year than the calendar's is skipped; of what is empty nothing is
    kept, so that it is asked for again; rows of a period are replaced by those of the newest report, which is all that
    the interface gives, so that one that was corrected is missing again (its defects 20 and 21). No limit of time or
    quota is counted against it. `is_forgiven`: what those two defects cost is left out.
    """
    market, count = here.beside.filings.market, Count()
    asked: set[tuple[str, str]] = set()
    held: dict[tuple[str, int, int, str], str] = {}
    listed: list[Report] = []
    for day in days():
        for hour in ("03:00", "15:00"):
            now = at(day, hour)
            known = [each for each in listed if each.filed <= now and now.date() - each.day <= timedelta(days=60)]
            for report in known:
                there = market.with_data(report.company, report.year, report.code, now)
                number = market.number(report)
                for category, cost in (("finance", 2), ("report", len(FIELDS))):
                    of = (category, report.company, report.year, report.code)
                    has = held.get(of, "")
                    if has == number or (is_forgiven and (has > number or (category, number) in asked)):
                        continue
                    if there is not None:
                        asked.add((category, number))
                    count.requests += cost
                    if there is None or (category == "finance" and not has_statements(COMPANIES, report.company)):
                        continue
                    held[of] = market.number(there)
                    count.sets.add((report.company, report.year, report.code))
        listed += [
            each
            for each in market.of_day(day)
            if here.beside.filings.listed[each.company].market in "YK" and not _is_skipped(each)
        ]
    return count


def _is_skipped(report: Report) -> bool:
    """Whether the rule for titles knows no code: a quarterly report of another month than March or September."""
    return "분기보고서" in report.title and report.title.rstrip(")")[-2:] not in ("03", "09")
