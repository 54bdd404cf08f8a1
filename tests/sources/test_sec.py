"""The SEC's filings, collected from its stand-in: a week of the market, its outages and its traps."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from include import registry
from include.contract import Ask, CycleStatus, Mode, Outcome, Stream
from include.engine import audit, cycle, doubts, jobs, quarantine, replay, subjects, windows
from include.engine.db import connect
from include.engine.verdict import Verdict
from include.sandbox.sec import Sec
from include.sandbox.sec_market import DAYS, NEW_YORK, Filing
from include.sources.sec import universe
from include.sources.sec.streams import companies_stream
from tests.fixtures_sandbox import RunningSandbox, Start
from tests.sources.places import Place, copy_ledger

TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, MONDAY = (date(2026, 9, day) for day in (15, 16, 17, 18, 21))
SUCCESS, FAILED = CycleStatus.SUCCESS, CycleStatus.FAILED


def at(day: date, hour: int, minute: int = 0, second: int = 0) -> datetime:
    """An instant on New York's clock."""
    return datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=NEW_YORK)


def quick(name: str) -> Stream:
    """A stream as registered, but without a wait between two requests."""
    stream = registry.stream(name)
    group = replace(stream.host_group, interval=timedelta(0))
    return replace(stream, host_group=group)


@dataclass
class Desk:
    """A place, the sandbox that it asks, and the same market beside its interface."""

    place: Place
    running: RunningSandbox

    @property
    def sec(self) -> Sec:
        """The stand-in itself."""
        (player,) = [each for each in self.running.inside.players if each.name == "sec"]
        return player.answer.__self__  # type: ignore[attr-defined,no-any-return]

    def switch(self, word: str, **order: Any) -> None:
        self.running.switch("sec", word, **order)

    def poll(self, stream: str | Stream, instant: datetime) -> Verdict | None:
        """What a scheduled run does: open what is due, and work until nothing is eligible; the last verdict."""
        self.place.at(instant)
        used, last = quick(stream) if isinstance(stream, str) else stream, None
        windows.declare(self.place.url, (used,))
        windows.open_due(self.place.url, used)
        while True:
            worker = replace(self.place.worker(used), nap=self.nap)
            verdict = cycle.work(worker, used, Mode.POLL, None)
            if verdict is None:
                return last
            last = verdict
            if verdict.status is CycleStatus.PENDING and verdict.next_eligible_at is not None:
                return last

    def nap(self, seconds: float) -> None:
        """Let simulated time pass in place of sleeping."""
        self.place.at(self.place.now() + timedelta(seconds=seconds))

    def asked(self, kind: str | None = None) -> int:
        found = self.running.requests(host="www.sec.gov") + self.running.requests(host="data.sec.gov")
        return sum(kind is None or entry["kind"] == kind for entry in found)

    def backfill(self, stream: str, first: date, last: date) -> None:
        used = quick(stream)
        windows.declare(self.place.url, (used,))
        self.place.do(used, Mode.BACKFILL, first, last)

    def accessions(self, table: str = "sec_feed") -> set[str]:
        return {row["accession"] for row in self.place.sql(f"select distinct accession from filings.{table}")}

    def shown(self, since: datetime, until: datetime) -> dict[str, Filing]:
        """What was accepted in a span and shown by its end."""
        found = self.sec.market.between(since.date(), until.date())
        return {
            each.accession: each
            for each in found
            if since <= each.accepted and each.shown_at <= until and not each.quiet
        }


@pytest.fixture
def desk(place: Callable[[], Place], sandbox: Start) -> Callable[..., Desk]:
    def make(companies: int = 40) -> Desk:
        made = place()
        made.at(at(TUESDAY, 6))
        running = sandbox(clock=made.now, companies=companies)
        made.sandbox_url = running.url
        here = Desk(made, running)
        here.switch("filings", a_day=companies)
        return here

    return make


# --- the feed


def test_each_tick_finds_what_was_accepted_since_the_last_one(desk: Callable[..., Desk]) -> None:
    here = desk(200)
    ticks = [at(TUESDAY, 16) + timedelta(minutes=15 * n) for n in range(5)]
    for tick in ticks:
        verdict = here.poll("sec.submissions", tick + timedelta(seconds=20))
        assert verdict is not None
        assert verdict.outcome is Outcome.SUCCESS, verdict.words
        instant = here.place.now()
        known = here.accessions()
        assert set(here.shown(at(TUESDAY, 0), instant - timedelta(seconds=5))) <= known
    walks = here.place.sql("select * from filings.sec_feed_walks order by started_at")
    assert [walk["ended"] for walk in walks] == ["known"] * 5
    assert all(walk["is_whole"] for walk in walks)
    # Only the first one reads the day from its midnight on; the others read what is new, and a bit of what is known.
    assert walks[0]["pages"] > walks[-1]["pages"]
    rows = here.place.sql("select accession, cik, role, accepted_at, filed_date, form from filings.sec_feed")
    right = {
        (each.accession, party.cik, party.role): (each.accepted, each.filed, each.form)
        for each in here.sec.market.between(FRIDAY - timedelta(days=8), TUESDAY)
        for party in each.parties
    }
    for row in rows:
        assert right[row["accession"], row["cik"], row["role"]] == (row["accepted_at"], row["filed_date"], row["form"])


def test_a_reading_that_breaks_off_leaves_no_hole(desk: Callable[..., Desk]) -> None:
    """Pains: a 503 behind good pages is the end of the feed, or an outage in the middle of it."""
    here = desk(300)
    here.poll("sec.submissions", at(TUESDAY, 16, 0, 20))
    # While nobody asks, more than two pages come in; then the feed breaks off behind the first.
    here.switch("break", after=100, until=at(TUESDAY, 17, 40).isoformat())
    verdict = here.poll("sec.submissions", at(TUESDAY, 17, 30, 20))
    assert verdict is not None
    assert verdict.status is SUCCESS, verdict.words
    missing = set(here.shown(at(TUESDAY, 16), at(TUESDAY, 17, 30))) - here.accessions()
    assert missing
    (walk,) = here.place.sql("select * from filings.sec_feed_walks order by started_at desc limit 1")
    assert (walk["ended"], walk["is_whole"]) == ("end", False)
    verdict = here.poll("sec.submissions", at(TUESDAY, 17, 45, 20))
    assert verdict is not None
    assert verdict.outcome is Outcome.SUCCESS
    assert set(here.shown(at(TUESDAY, 16), at(TUESDAY, 17, 45))) <= here.accessions()
    (walk,) = here.place.sql("select * from filings.sec_feed_walks order by started_at desc limit 1")
    assert (walk["ended"], walk["is_whole"]) == ("known", True)


def test_the_end_of_the_feed_is_its_end_after_days_without_a_reading(desk: Callable[..., Desk]) -> None:
    here = desk(40)
    here.poll("sec.submissions", at(TUESDAY, 16, 0, 20))
    verdict = here.poll("sec.submissions", at(MONDAY, 12, 0, 20))
    assert verdict is not None
    assert verdict.outcome is Outcome.SUCCESS
    (walk,) = here.place.sql("select * from filings.sec_feed_walks order by started_at desc limit 1")
    assert (walk["ended"], walk["is_whole"]) == ("end", True)
    # What the feed no longer holds is what the days' indexes are for.
    here.backfill("sec.index", TUESDAY, FRIDAY)
    assert set(here.shown(at(TUESDAY, 6), at(FRIDAY, 17, 30))) <= here.accessions() | here.accessions("sec_daily_index")


def test_on_a_federal_holiday_nothing_is_asked(desk: Callable[..., Desk]) -> None:
    here, holiday = desk(40), date(2026, 10, 12)
    here.poll("sec.submissions", at(holiday - timedelta(days=3), 22, 10, 20))
    asked = here.asked()
    verdict = here.poll("sec.submissions", at(holiday, 12, 0, 20))
    assert verdict is not None
    assert verdict.words.startswith("NOTHING DUE")
    assert here.asked() == asked
    verdict = here.poll("sec.submissions", at(holiday + timedelta(days=1), 6, 0, 20))
    assert verdict is not None
    assert here.asked() > asked


def test_an_outage_at_the_first_page_is_an_outage_and_the_next_tick_repairs_it(desk: Callable[..., Desk]) -> None:
    here = desk(40)
    here.switch("break", after=0, until=at(TUESDAY, 16, 10).isoformat())
    verdict = here.poll("sec.submissions", at(TUESDAY, 16, 0, 20))
    assert verdict is not None
    assert (verdict.status, here.accessions()) == (FAILED, set())
    verdict = here.poll("sec.submissions", at(TUESDAY, 16, 15, 20))
    assert verdict is not None
    assert verdict.outcome is Outcome.SUCCESS
    assert set(here.shown(at(TUESDAY, 0), at(TUESDAY, 16, 15))) <= here.accessions()


def test_a_block_page_stops_everything_that_asks_the_sec_for_its_penalty(desk: Callable[..., Desk]) -> None:
    """Pains: a throttle page is not "not published", and asking on while blocked prolongs it."""
    here = desk(40)
    here.poll("sec.index", at(TUESDAY, 23, 0, 20))
    here.switch("block", until=at(WEDNESDAY, 16, 5).isoformat())
    verdict = here.poll("sec.submissions", at(WEDNESDAY, 16, 0, 20))
    assert verdict is not None
    assert verdict.status is FAILED
    assert "a page for people" in verdict.words
    (group,) = here.place.sql("select blocked_until from collect.host_groups where host_group = 'sec'")
    assert group["blocked_until"] >= at(WEDNESDAY, 16, 11)
    asked = here.asked()
    other = here.poll("sec.companies", at(WEDNESDAY, 16, 3))
    assert other is not None
    assert other.is_held
    assert here.asked() == asked
    verdict = here.poll("sec.submissions", at(WEDNESDAY, 16, 15, 20))
    assert verdict is not None
    assert verdict.outcome is Outcome.SUCCESS
    assert here.place.sql("select count(*) as n from filings.sec_daily_index")[0]["n"] > 0


# --- indexes


def test_the_index_of_a_day_is_waited_for_and_a_blocked_one_is_no_empty_day(desk: Callable[..., Desk]) -> None:
    here = desk(40)
    here.switch("delay", day=TUESDAY.isoformat(), until=at(WEDNESDAY, 1, 50).isoformat())
    verdict = here.poll("sec.index", at(TUESDAY, 23, 0, 20))
    assert verdict is not None
    assert (verdict.status, verdict.words.partition(" ")[0]) == (CycleStatus.PENDING, "WAITING")
    assert here.place.sql("select * from ops.alerts") == []
    verdict = here.poll("sec.index", at(WEDNESDAY, 2, 0, 30))
    assert verdict is not None
    assert verdict.outcome is Outcome.SUCCESS
    listed = here.accessions("sec_daily_index")
    assert listed == {each.accession for each in here.sec.of_index(TUESDAY)}
    # One filing under two form types: two rows of one filing.
    two = here.place.sql("select accession, forms from filings.sec_accessions where 'SC TO-T/A' = any(forms)")
    assert [row["forms"] for row in two] == [["SC TO-T/A", "SCHEDULE 13D/A"]]
    # Blocked on the next night: nothing is taken for an empty day, and the night after repairs it.
    here.switch("block", until=at(THURSDAY, 3).isoformat())
    verdict = here.poll("sec.index", at(WEDNESDAY, 23, 0, 20))
    assert verdict is not None
    assert verdict.status is FAILED
    verdict = here.poll("sec.index", at(THURSDAY, 23, 0, 20))
    assert verdict is not None
    days = here.place.sql("select distinct index_date from filings.sec_daily_index order by 1")
    assert [row["index_date"] for row in days] == [TUESDAY, WEDNESDAY, THURSDAY]


def test_rows_that_vanish_from_a_quarters_index_are_flagged_and_what_surfaces_late_is_found(
    desk: Callable[..., Desk],
) -> None:
    here = desk(12)
    saturday = FRIDAY + timedelta(days=1)
    here.poll("sec.index", at(TUESDAY, 23, 59))
    here.poll("sec.quarters", at(saturday, 12, 0, 20))
    gone = next(each for each in here.sec.of_index(TUESDAY) if each.form not in ("EFFECT", "SC TO-T/A"))
    quarter = here.place.sql("select accession from filings.sec_full_index where accession = %s", gone.accession)
    assert len(quarter) == len(gone.parties)
    here.switch("withdraw", accession=gone.accession, at=at(MONDAY, 12).isoformat())
    verdict = here.poll("sec.quarters", at(saturday + timedelta(days=7), 12, 0, 20))
    assert verdict is not None
    assert verdict.counts.withdrawn == len(gone.parties)
    flagged = here.place.sql("select accession, found_in from filings.sec_accessions where is_withdrawn")
    assert [(row["accession"], row["found_in"]) for row in flagged] == [(gone.accession, ["daily index"])]
    kept = here.place.sql("select reason from filings.sec_full_index_history where accession = %s", gone.accession)
    assert {row["reason"] for row in kept} == {"withdrawn"}
    # Letters surface weeks after the day that they were filed on; a mark by filing date would never see them.
    letters = here.place.sql("select accession from filings.sec_full_index where form = 'UPLOAD' and sent_at > %s",
                             at(MONDAY, 0))  # fmt: skip
    assert letters
    wanted = {row["accession"] for row in here.place.sql("select accession from filings.sec_wanted")}
    assert {row["accession"] for row in letters} <= wanted
    # Nothing else of a first reading of a quarter is wanted at once.
    first = here.place.sql("select accession from filings.sec_full_index where sent_at < %s and filed_date < %s",
                           at(MONDAY, 0), date(2026, 9, 1))  # fmt: skip
    assert first
    assert not {row["accession"] for row in first} & wanted


def test_an_index_that_is_far_shorter_than_before_takes_nothing_away_until_somebody_accepts_it(
    desk: Callable[..., Desk], place: Callable[[], Place]
) -> None:
    here, used = desk(12), quick("sec.quarters")
    saturday = FRIDAY + timedelta(days=1)
    listed = "select quarter, accession, cik, form from filings.sec_full_index order by 1, 2, 3, 4"
    here.poll(used, at(saturday, 12, 0, 20))
    before = here.place.sql(listed)
    (row,) = here.place.sql("select sha256 from collect.fetches where unit = '2026Q3/index'")
    lines = here.place.raw.body(bytes(row["sha256"])).read().decode().splitlines(keepends=True)
    # Cut by a third, and whole by its form.
    here.running.fault(
        match={"path_contains": "2026/QTR3"}, status=200, body="".join(lines[: len(lines) * 2 // 3]), n=3
    )
    for week in (1, 2):
        verdict = here.poll(used, at(saturday + timedelta(days=7 * week), 12, 0, 20))
        assert verdict is not None
        assert (verdict.outcome, verdict.counts.withdrawn) == (Outcome.SUCCESS, 0), verdict.words
        kept = here.place.sql(listed)
        assert [each for each in kept if each in before] == before
    entries = quarantine.entries(here.place.url, used.name)
    assert [(each["unit"], each["rule"]) for each in entries] == [("2026Q3/index", doubts.FEWER_ROWS)] * 2
    incidents = here.place.sql("select text from ops.incidents where incident_key like 'quarantine/sec.quarters/%'")
    assert "nothing was taken away because of it" in incidents[0]["text"]

    # A replay into empty tables doubts the same answers, as it knows nothing of the entries.
    again = place()
    again.at(here.place.now())
    again.raw = here.place.raw
    copy_ledger(here.place.url, again.url)
    windows.declare(again.url, (used,))
    again.do(used, Mode.REPLAY, date(2026, 4, 1), date(2026, 10, 2))
    assert again.tables(used, "sent_at") == here.place.tables(used, "sent_at")
    assert len(quarantine.entries(again.url, used.name)) == 2

    # A whole one resolves it; and one that somebody accepts is believed.
    accepted = quarantine.accept(here.place.url, used, entries[0]["quarantine_id"], "kim", "they did remove a third")
    while replay.work(here.place.worker(used), used, accepted) is not None:
        continue
    shorter = here.place.sql(listed)
    assert len(shorter) < len(before)
    here.running.control("DELETE", "faults")
    verdict = here.poll(used, at(saturday + timedelta(days=21), 12, 0, 20))
    assert verdict is not None
    assert [each for each in here.place.sql(listed) if each in before] == before
    assert quarantine.entries(here.place.url, used.name) == []


# --- companies and tickers


def test_a_companys_list_is_read_with_its_pages_once_and_its_clock_is_not_believed(desk: Callable[..., Desk]) -> None:
    """Pains: histories that stop after the newest thousand; a `Z` that is false."""
    here = desk(40)
    verdict = here.poll("sec.companies", at(TUESDAY, 23, 0, 20))
    assert verdict is not None
    assert verdict.outcome is Outcome.SUCCESS
    followed = 6
    assert here.asked("company") == 3 * followed
    counts = here.place.sql(
        "select cik, count(*) filter (where filed_date < '2020-01-01') as old"
        " from filings.sec_company_filings group by cik"
    )
    # Ten are among the newest, and ten on each of two pages.
    assert {row["cik"]: row["old"] for row in counts} == dict.fromkeys([c["cik"] for c in counts], 30)
    assert len(counts) == followed
    here.poll("sec.companies", at(WEDNESDAY, 23, 0, 20))
    assert here.asked("company") == 4 * followed
    market = {each.accession: each for each in here.sec.market.between(date(2026, 9, 1), WEDNESDAY)}
    rows = [row for row in here.place.sql("select * from filings.sec_company_filings") if row["accession"] in market]
    assert rows
    for row in rows:
        is_local = row["cik"] % 2 == 1
        right = market[row["accession"]].accepted
        assert row["accepted_if_local" if is_local else "accepted_if_utc"] == right
        assert row["accepted_text"].endswith("Z")


def test_a_ticker_that_moved_has_its_owner_of_each_time_and_a_small_list_is_not_believed(
    desk: Callable[..., Desk],
) -> None:
    """Pains: the list is of today only; a link of the past must not be made up from it."""
    here = desk(40)
    here.poll("sec.tickers", at(TUESDAY, 5, 30, 20))
    here.switch("move", ticker="TSLA", cik=789019, at=at(TUESDAY, 12).isoformat())
    here.poll("sec.tickers", at(WEDNESDAY, 5, 30, 20))

    def owners(instant: datetime) -> list[int]:
        found = here.place.sql("select cik from filings.sec_tickers_as_of(%s) where ticker = 'TSLA'", instant)
        return [row["cik"] for row in found]

    assert owners(at(MONDAY - timedelta(days=7), 12)) == []
    assert owners(at(TUESDAY, 12)) == [1318605]
    assert owners(at(WEDNESDAY, 12)) == [789019]
    (listed,) = here.place.sql(
        "select count(*) filter (where is_nasdaq) as nasdaq, count(*) filter (where is_nyse) as nyse"
        " from filings.sec_universe"
    )
    assert listed["nasdaq"] > 4_000
    assert listed["nyse"] > 3_000
    here.switch("shorten", tickers=900)
    verdict = here.poll("sec.tickers", at(THURSDAY, 5, 30, 20))
    assert verdict is not None
    assert "not believed" in here.place.sql("select reason from collect.quarantine where state = 'open'")[0]["reason"]
    assert owners(at(THURSDAY, 12)) == [789019]


def test_who_is_listed_on_an_exchange_is_followed_and_a_list_of_ones_own_beside_it(place: Callable[[], Place]) -> None:
    here = place()
    for ticker, cik, exchange in (("AAA", 77, "NYSE"), ("AAA-P", 77, None), ("BBB", 78, "Nasdaq"), ("CCC", 79, "NYSE")):
        here.sql(
            "insert into filings.sec_tickers values (%s, %s, %s, 'X', %s, %s, 'u', 1, now(), 1, 1, 1, null)",
            ticker, cik, exchange, exchange == "Nasdaq", exchange == "NYSE",
        )  # fmt: skip
    policy = universe.policy({"companies": ["nyse", "mine"], "lists": {"mine": [320193, 77]}}, None)
    stream = companies_stream(policy)
    with connect(here.url) as connection:
        listed = subjects.held(connection, stream)
    assert listed == ("77", "79")
    asked = [request.key for request in stream.plan(Ask(Mode.POLL, sessions=(TUESDAY,), subjects=listed))]
    assert asked == ["company/320193", "company/77", "company/79"]


# --- a week


def test_after_a_week_with_outages_all_that_the_indexes_list_is_there_and_was_found_within_a_tick(
    desk: Callable[..., Desk],
) -> None:
    here = desk(30)
    days = DAYS.sessions(TUESDAY, MONDAY)
    outages = {WEDNESDAY: (12, 14), FRIDAY: (10, 16)}
    ticks: list[datetime] = []
    for day in days:
        first = at(day, 6)
        # Every other hour rather than every quarter, so that the test is quick.
        for tick in (*(first + timedelta(hours=n) for n in range(0, 17, 2)), at(day, 22, 10)):
            away = outages.get(day)
            is_down = away is not None and away[0] <= tick.hour < away[1]
            if is_down and tick.hour == away[0]:
                here.switch("block" if day == FRIDAY else "unfind", until=at(day, away[1]).isoformat())
            verdict = here.poll("sec.submissions", tick + timedelta(seconds=30))
            assert verdict is not None
            assert is_down or verdict.outcome is Outcome.SUCCESS, verdict.words
            if not is_down:
                ticks.append(here.place.now())
        here.poll("sec.index", at(day, 23, 59))
    # The set is that of the indexes.
    listed = here.accessions("sec_daily_index")
    assert listed == {each.accession for day in days for each in here.sec.of_index(day)}
    fed = here.accessions()
    assert listed - fed <= set(here.shown(at(MONDAY - timedelta(days=10), 0), at(TUESDAY, 0)))
    late = {each.accession for each in here.sec.market.between(days[-1], days[-1]) if each.listed > days[-1]}
    assert fed - listed <= late | set(here.shown(at(MONDAY - timedelta(days=10), 0), at(TUESDAY, 0)))
    # Each was found by the first tick after it was shown.
    seen = {row["accession"]: row["seen"] for row in here.place.sql(
        "select accession, min(seen_at) as seen from filings.sec_feed group by 1")}  # fmt: skip
    for accession, filing in here.shown(at(TUESDAY, 6), at(days[-1], 22)).items():
        first_tick = next(tick for tick in ticks if tick >= filing.shown_at)
        assert seen[accession] <= first_tick, accession
    # Every instant of acceptance is right, whichever way the offset is.
    market = {each.accession: each for each in here.sec.market.between(MONDAY - timedelta(days=10), days[-1])}
    for row in here.place.sql("select accession, accepted_at, forms, filed_date from filings.sec_accessions"):
        assert row["accepted_at"] in (None, market[row["accession"]].accepted)
        assert row["filed_date"] == market[row["accession"]].filed
    families = here.place.sql(
        "select form, family, is_amendment from filings.sec_form_families where form like 'SCHEDULE%%'"
    )
    assert {(row["form"], row["family"], row["is_amendment"]) for row in families} >= {("SCHEDULE 13G", "13G", False)}

    # Read again from what is stored, in whatever order, it is the same, down to when each was first seen.
    again = desk(30)
    again.place.at(here.place.now())
    again.place.raw = here.place.raw
    copy_ledger(here.place.url, again.place.url)
    asked = again.asked()
    for name in ("sec.submissions", "sec.index"):
        used = quick(name)
        windows.declare(again.place.url, (used,))
        again.place.do(used, Mode.REPLAY, days[0], days[-1])
        told = ("sent_at", "fetch_id")
        assert again.place.tables(used, *told) == here.place.tables(used, *told)
    assert again.asked() == asked
    # And a replay over what is there writes nothing.
    used = quick("sec.submissions")
    here.place.do(used, Mode.REPLAY, days[0], days[-1])
    assert here.place.tables(used, "sent_at", "fetch_id") == again.place.tables(used, "sent_at", "fetch_id")
    (run,) = here.place.sql(
        "select sum(new_count) as n, sum(changed_count) as c from collect.cycles where mode = 'replay'"
    )
    assert (run["n"], run["c"]) == (0, 0)


def test_a_form_that_was_renamed_stays_in_its_family_and_one_that_fell_silent_shows(
    place: Callable[[], Place],
) -> None:
    """Pains: 13D and 13G stop in December 2024, as they have another name from then on."""
    here = place()
    renamed, last = date(2024, 12, 18), date(2025, 1, 10)
    days = DAYS.sessions(date(2024, 12, 2), last)
    forms = [("SCHEDULE 13G" if day >= renamed else "SC 13G", day) for day in days]
    forms += [("8-K", day) for day in days] + [("N-OLD", day) for day in days if day < renamed]
    rows = [(form, day, f"{n:010d}-24-{k:06d}") for n, (form, day) in enumerate(forms) for k in range(6)]
    with connect(here.url) as connection:
        connection.cursor().executemany(
            "insert into filings.sec_daily_index values (%s, %s, 1, %s, 'X', %s, 'p', 'u', 1, %s, 1, 1, 1, null)",
            [(day, accession, form, day, at(last, 23)) for form, day, accession in rows],
        )
    families = here.sql("select form, family from filings.sec_form_families order by form")
    assert {row["form"]: row["family"] for row in families} == {
        "8-K": "8-K", "N-OLD": "N-OLD", "SC 13G": "13G", "SCHEDULE 13G": "13G",
    }  # fmt: skip
    silent = here.sql("select family, last_day, newest_day from filings.sec_silent_families")
    assert [(row["family"], row["last_day"], row["newest_day"]) for row in silent] == [
        ("N-OLD", date(2024, 12, 17), last)
    ]
    # The audit tells it, and that it is over.
    streams = (registry.stream("sec.index"),)
    here.at(at(last, 23, 30))
    windows.declare(here.url, streams)
    audit.audit(here.url, streams, None, audit.Limits(), "a test", has_github=False)
    told = "select closed_at is null as is_open, text from ops.incidents where incident_key = 'doubtful/sec.index'"
    (incident,) = here.sql(told)
    assert incident["is_open"]
    assert "forms of the family N-OLD were filed last on 2024-12-17" in incident["text"]
    here.sql("delete from filings.sec_daily_index where form = 'N-OLD'")
    audit.audit(here.url, streams, None, audit.Limits(), "a test", has_github=False)
    assert not here.sql(told)[0]["is_open"]


# --- what goes wrong on the way


def test_a_block_page_in_the_middle_of_a_backfill_fails_its_quarter_and_a_second_run_repairs_it(
    desk: Callable[..., Desk],
) -> None:
    """Pains: a page saved as an index, and rows that are missing for good."""
    here = desk(5)
    here.place.at(at(WEDNESDAY, 16))
    used = quick("sec.quarters")
    windows.declare(here.place.url, (used,))
    here.running.fault(match={"path_contains": "2026/QTR2"}, html_block_page=True, status=200)
    request = jobs.JobRequest(Mode.BACKFILL, (used,), date(2026, 4, 1), TUESDAY, run_id="quarters")

    def run() -> dict[str, str]:
        jobs.start(here.place.url, request)
        jobs.plan(here.place.url, request, used)
        while True:
            worker = replace(here.place.worker(used), nap=here.nap)
            if cycle.work(worker, used, Mode.BACKFILL, request.name) is None:
                later = jobs.next_eligible(here.place.url, request.name, used.name)
                if later is None:
                    break
                here.place.at(later + timedelta(seconds=1))
        rows = here.place.sql("select slot, cycle_status from collect.cycles where mode = 'backfill'")
        return {row["slot"].rpartition("/")[2]: row["cycle_status"] for row in rows}

    assert run() == {"2026Q3": "SUCCESS", "2026Q2": "FAILED", "2026Q1": "SUCCESS"}
    quarters = "select distinct quarter from filings.sec_full_index order by 1"
    assert [row["quarter"] for row in here.place.sql(quarters)] == ["2026Q1", "2026Q3"]
    assert run()["2026Q2"] == "SUCCESS"
    assert [row["quarter"] for row in here.place.sql(quarters)] == ["2026Q1", "2026Q2", "2026Q3"]


@pytest.mark.parametrize("trouble", [{"truncate": True}, {"empty": True}, {"reset": True}, {"status": 503}])
def test_an_answer_that_did_not_arrive_whole_is_asked_for_again_and_never_kept_as_good(
    desk: Callable[..., Desk], trouble: dict[str, Any]
) -> None:
    """Pains: a cut transfer that ends a program; an empty body that is kept for good."""
    here = desk(40)
    here.running.fault(match={"kind": "daily_index"}, **trouble)
    verdict = here.poll("sec.index", at(TUESDAY, 23, 0, 20))
    assert verdict is not None
    assert verdict.outcome is Outcome.SUCCESS, verdict.words
    assert here.accessions("sec_daily_index") == {each.accession for each in here.sec.of_index(TUESDAY)}
    classes = here.place.sql("select answer_class from collect.fetches order by fetch_id")
    assert [row["answer_class"] for row in classes] == ["error", "data"]


def test_an_hour_without_the_sec_is_no_other_sources_trouble_and_the_reverse(desk: Callable[..., Desk]) -> None:
    here = desk(30)
    troubles = ({"reset": True}, {"html_block_page": True}, {"status": 200, "body": "?!"})
    for day, trouble in zip((MONDAY - timedelta(days=7), WEDNESDAY, MONDAY), troubles, strict=True):
        here.running.fault(match={"host": "www.sec.gov"}, n=None, **trouble)
        verdict = here.poll("sec.submissions", at(day, 18, 30, 20))
        assert verdict is not None
        assert verdict.status is FAILED, verdict.words
        other = here.poll("finra.short_volume", at(day, 18, 40))
        assert other is not None
        assert other.outcome is Outcome.SUCCESS, other.words
        here.running.control("DELETE", "faults")
        here.running.fault(match={"host": "cdn.finra.org"}, n=None, **trouble)
        other = here.poll("finra.short_volume", at(day + timedelta(days=1), 18, 40))
        assert other is not None
        assert other.status is FAILED, other.words
        verdict = here.poll("sec.submissions", at(day + timedelta(days=1), 18, 45, 20))
        assert verdict is not None
        assert verdict.outcome is Outcome.SUCCESS, verdict.words
        here.running.control("DELETE", "faults")
        here.place.sql("update collect.host_groups set blocked_until = null")


def test_everything_answered_404_is_a_trouble_of_access_and_nobody_is_gone(desk: Callable[..., Desk]) -> None:
    """Pains: for a day every address was answered 404 to some clients."""
    here = desk(60)
    followed = [here.sec.market.company(number)[0] for number in range(30)]
    here.switch("unfind", until=at(WEDNESDAY, 12).isoformat())
    stream = companies_stream(universe.policy({"companies": ["mine"], "lists": {"mine": followed}}, None))
    stream = replace(stream, host_group=replace(stream.host_group, interval=timedelta(0)))
    verdict = here.poll(stream, at(TUESDAY, 23, 0, 20))
    assert verdict is not None
    assert verdict.status is FAILED
    assert here.asked() == stream.host_group.most_absent
    alerts = " ".join(row["text"] for row in here.place.sql("select text from ops.alerts"))
    assert "trouble of access" in alerts
    why = [row["why"] for row in here.place.sql("select why from collect.pending order by why")]
    assert why == ["discovered"] * 10 + ["failed"] * 20
    verdict = here.poll(stream, at(WEDNESDAY, 23, 0, 20))
    assert verdict is not None
    assert verdict.outcome is Outcome.SUCCESS
    held = here.place.sql("select cik from filings.sec_companies")
    assert {row["cik"] for row in held} == set(followed)
    assert here.place.sql("select key from collect.pending") == []


# --- the rate


def test_four_workers_and_a_backfill_are_never_seen_above_eight_requests_a_second(desk: Callable[..., Desk]) -> None:
    """Pains: a limit for the client as a whole, retries included, is not kept by a limiter in each worker."""
    here = desk(10)
    here.place.at(at(WEDNESDAY, 16, 0, 20))
    index, feed, listed = (registry.stream(f"sec.{name}") for name in ("index", "submissions", "companies"))
    windows.declare(here.place.url, (index, feed, listed))
    here.running.control("DELETE", "log")
    request = jobs.JobRequest(Mode.BACKFILL, (index,), date(2026, 8, 3), date(2026, 9, 14), run_id="a-rate")
    jobs.start(here.place.url, request)
    jobs.plan(here.place.url, request, index)
    for stream in (feed, listed):
        windows.open_due(here.place.url, stream)

    def lane() -> None:
        while cycle.work(here.place.worker(index), index, Mode.BACKFILL, request.name) is not None:
            continue

    def poll(stream: Stream) -> None:
        while cycle.work(here.place.worker(stream), stream, Mode.POLL, None) is not None:
            continue

    with ThreadPoolExecutor(4) as workers:
        for done in [
            workers.submit(lane),
            workers.submit(lane),
            workers.submit(poll, feed),
            workers.submit(poll, listed),
        ]:
            done.result()
    seen = here.running.control("GET", "rate")
    assert seen["count"] > 40
    assert seen["max_in_a_second"] <= 8
