"""DART's statements and report items kept complete: what is due follows from the list and from what is held."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest

from include import registry, settings
from include.contract import Ask, CycleStatus, Mode, Outcome
from include.engine import newcomers, windows
from include.sandbox import dart_filings, dart_periodic
from include.sandbox.dart_filings import Company
from include.sandbox.dart_periodic import first_year
from include.sources import dart
from tests.sources.dart_desk import LISTED, SyncDesk, at, fast, sync_desk
from tests.sources.places import Place, copy_ledger

__all__ = ["sync_desk"]

CATEGORIES = ("dart.finance", "dart.report")
# The last day for half-year reports.
FRIDAY = date(2026, 8, 14)
FINANCE, REPORT = "fnlttSinglAcntAll", "stockTotqySttus"


def days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def fetches(here: SyncDesk, stream: str) -> list[dict[str, Any]]:
    return here.place.sql("select * from collect.fetches where stream = %s order by fetch_id", stream)


# --- a season


@pytest.mark.parametrize("name", [*CATEGORIES, "dart.docs"])
def test_a_window_that_opens_before_any_list_was_read_waits_for_it(
    sync_desk: Callable[..., SyncDesk], name: str
) -> None:
    here = sync_desk(at(FRIDAY, "14:00"), companies=6)
    first = here.poll(name, at(FRIDAY, "15:00"))
    assert first.next_eligible_at is not None, first.words
    assert here.running.requests() == []
    here.poll(LISTED, at(FRIDAY, "15:01"))
    here.at(max(first.next_eligible_at, here.place.now()))
    verdict = here.work(here.stream(name), Mode.POLL, None)
    assert verdict is not None
    assert (verdict.status, verdict.outcome) == (CycleStatus.SUCCESS, Outcome.SUCCESS), verdict.words
    assert "data" in {row["answer_class"] for row in fetches(here, name)}


def test_a_season_is_held_as_dart_has_it_and_little_is_asked_for_nothing(sync_desk: Callable[..., SyncDesk]) -> None:
    monday, end = FRIDAY - timedelta(days=4), FRIDAY + timedelta(days=7)
    here, blocked = sync_desk(at(monday, "14:00"), companies=6), FRIDAY - timedelta(days=1)
    here.keeps_pace = True
    # Data come up to four days after a report, and what a report lacks is asked for once more after a week.
    for day in (*days(monday, FRIDAY), FRIDAY + timedelta(days=4), end):
        # Our address is blocked for a day before the last one of the season.
        if day == blocked:
            here.switch("limit", n=0)
        if day == blocked + timedelta(days=1):
            here.switch("limit", n=1_000)
        here.poll(LISTED, at(day, "14:50" if day != blocked + timedelta(days=1) else "14:52"))
        for name in CATEGORIES:
            verdict = here.poll(name, max(at(day, "15:00"), here.place.now()))
            if day != blocked:
                assert (verdict.status, verdict.outcome) == (CycleStatus.SUCCESS, Outcome.SUCCESS), verdict.words
    said = here.running.control("GET", "dart")
    assert 30 < said["most_in_a_minute"] <= 501
    # The block cost one request an hour for each that asked, and no quota.
    assert len(here.place.sql("select 1 from collect.fetches where answer_class = 'blocked'")) <= 3
    places = here.reports(monday, end, at(end, "14:50"))
    # One of a year that ends in March among them: its report is of the first quarter, whatever the month says.
    assert {(2026, "11013"), (2026, "11012")} <= {(year, code) for _, year, code in places}
    for name in CATEGORIES:
        assert here.lacks(name, places, at(end, "15:00")) == []

    # While DART has nothing of a report, it is asked for one thing of it; what a report lacks is asked for twice.
    asked = fetches(here, "dart.report")
    probes = [row for row in asked if f"/{REPORT}/" in row["request_key"]]
    units = {row["unit"] for row in asked}
    sets = {tuple(unit.split("/")[:2]) for unit in units}
    assert len(asked) - len(probes) < 29 * 1.6 * len(sets)
    nothing = here.place.sql("select endpoint from filings.dart_report_sets where rcept_no = ''")
    assert nothing
    assert all(sum(row["unit"] == unit for row in asked) <= 2 for unit in units if REPORT not in unit)

    # A window reads each period whole before an older one.
    by_window: dict[int, list[date]] = {}
    for row in asked:
        by_window.setdefault(row["cycle_id"], []).append(row["session_date"])
    assert all(ends == sorted(ends, reverse=True) for ends in by_window.values())


def test_a_year_that_ends_in_march_is_held_right_whichever_of_its_calendar_years_it_is_called_after(
    sync_desk: Callable[..., SyncDesk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in calls a business year after the one in which it begins; here after the one in which it ends."""
    begins = dart_periodic.period_of

    def ends(company: int, year: int, code: str) -> tuple[int, int]:
        return begins(company, year - (dart_periodic.closing_month(company) != 12), code)

    cached = (dart_periodic._reports, dart_periodic._numbers, dart_periodic._by_day, dart_filings._reports)
    monkeypatch.setattr(dart_periodic, "period_of", ends)
    for each in cached:
        each.cache_clear()
    try:
        here = sync_desk(at(FRIDAY, "14:00"), companies=6)
        report = here.beside.filings.market.of_company(5, 2027, "11013", at(FRIDAY + timedelta(days=9), "19:00"))[0]
        here.place.at(at(report.day, "19:00"))
        here.run(LISTED, Mode.BACKFILL, report.day, report.day)
        until = at(report.day + timedelta(days=7), "15:00")
        for name in CATEGORIES:
            here.poll(name, until)
        march = here.beside.filings.listed[5].corp_code
        for name in CATEGORIES:
            assert here.lacks(name, {(5, 2027, "11013")}, until) == []
        # All that its title can mean was asked for; what came stands under the year and code that DART has it by alone.
        asked = {row["unit"].split("/")[1] for row in fetches(here, "dart.finance") if row["unit"].startswith(march)}
        assert asked == {"2026.11013", "2027.11013", "2025.11014", "2026.11014"}
        market = here.beside.filings.market
        for table in ("dart_statements", "dart_report_items"):
            rows = here.place.sql(
                f"select distinct rcept_no, bsns_year, reprt_code from filings.{table} where corp_code = %s", march
            )
            for row in rows:
                there = market.of_company(5, row["bsns_year"], row["reprt_code"], until)
                assert row["rcept_no"] in map(market.number, there), row
            assert len({row["rcept_no"] for row in rows}) == len(rows) > 1
    finally:
        monkeypatch.undo()
        for each in cached:
            each.cache_clear()


# --- what is in the way


def test_one_endpoint_that_is_out_of_order_is_its_own_trouble(sync_desk: Callable[..., SyncDesk]) -> None:
    here = sync_desk(at(FRIDAY, "14:00"), companies=3)
    here.switch("out", endpoint="alotMatter", **{"as": "page"})
    here.poll(LISTED, at(FRIDAY, "14:50"))
    verdict = here.poll("dart.report", at(FRIDAY + timedelta(days=3), "15:00"))
    assert (verdict.status, verdict.outcome) == (CycleStatus.SUCCESS, Outcome.PARTIAL), verdict.words
    held = {row["endpoint"] for row in here.place.sql("select distinct endpoint from filings.dart_report_sets")}
    assert len(held) == 29
    assert "alotMatter" not in held
    waiting = here.place.sql("select key, why from collect.pending where stream = 'dart.report'")
    assert {(row["key"].split("/")[2], row["why"]) for row in waiting} == {("alotMatter", "failed")}
    # Asked once in a window, and not four times.
    assert here.asked("alotMatter") == len(waiting)
    here.switch("out", endpoint="alotMatter", **{"as": None})
    here.poll("dart.report", at(FRIDAY + timedelta(days=4), "03:00"))
    places = here.reports(FRIDAY, FRIDAY, at(FRIDAY, "14:50"))
    assert places
    assert here.lacks("dart.report", places, at(FRIDAY + timedelta(days=4), "03:00")) == []


def test_a_maintenance_costs_five_requests_a_look_and_is_never_an_answer(sync_desk: Callable[..., SyncDesk]) -> None:
    here = sync_desk(at(FRIDAY, "14:00"), companies=60)
    here.poll(LISTED, at(FRIDAY, "14:50"))
    here.switch("maintenance")
    night = at(FRIDAY + timedelta(days=4), "03:00")
    verdict = here.poll("dart.finance", night)
    assert verdict.status is CycleStatus.PENDING
    assert verdict.next_eligible_at is not None
    assert verdict.next_eligible_at - night < timedelta(minutes=11)
    assert here.asked(FINANCE) == 5
    assert here.place.sql("select * from filings.dart_finance_sets") == []
    here.switch("maintenance", **{"is": False})
    here.place.at(verdict.next_eligible_at + timedelta(seconds=1))
    while (verdict := here.work(here.stream("dart.finance"), Mode.POLL, None)) is not None:  # type: ignore[assignment]
        assert verdict.outcome is Outcome.PARTIAL
    here.poll("dart.finance", at(FRIDAY + timedelta(days=4), "15:00"))
    places = here.reports(FRIDAY, FRIDAY, at(FRIDAY, "14:50"))
    assert len(places) > 5
    assert here.lacks("dart.finance", places, at(FRIDAY + timedelta(days=4), "15:00")) == []


def test_what_a_quota_cut_off_comes_first_then_what_failed_then_what_is_new(sync_desk: Callable[..., SyncDesk]) -> None:
    here = sync_desk(at(FRIDAY, "14:00"), companies=60, requests=1_000)
    here.keys = here.keys[:1]
    here.poll(LISTED, at(FRIDAY, "14:50"))
    tuesday = FRIDAY + timedelta(days=4)
    here.leaves = 992
    verdict = here.poll("dart.finance", at(tuesday, "03:00"))
    assert (verdict.status, verdict.outcome) == (CycleStatus.BUDGET_EXHAUSTED, Outcome.SUCCESS), verdict.words
    # The key's day has eight requests for it; the others are the list's.
    first = [row["request_key"] for row in fetches(here, "dart.finance")]
    assert len(first) == 8
    failed = "00999991/2026.11012/OFS/20260814009999"
    here.place.sql(
        "insert into collect.pending (stream, key, why, attempts, next_try_at, session_date, created_at, updated_at) "
        "values ('dart.finance', %s, 'failed', 1, collect.clock(), '2026-06-30', collect.clock(), collect.clock())",
        failed,
    )
    here.poll(LISTED, at(tuesday, "14:50"))
    here.leaves = 0
    rows = here.place.sql(
        "select rcept_no from filings.dart_newest_periodics where created_at > %s", at(tuesday, "12:00")
    )
    new = {row["rcept_no"] for row in rows}
    here.poll("dart.finance", at(tuesday + timedelta(days=1), "03:00"))
    asked = [row["request_key"] for row in fetches(here, "dart.finance")][8:]
    place = asked.index(failed)
    cut = {key.replace("OFS", "CFS") for key in first if here.has_data(key, at(tuesday, "03:00"))}
    assert cut <= set(asked[:place])
    assert place > len(cut)
    assert not any(key.rpartition("/")[2] in new for key in asked[:place])
    assert {key.rpartition("/")[2] for key in asked[place + 1 :] if "/OFS/" in key} == new != set()


# --- corrections


def corrected_one_morning(here: SyncDesk) -> tuple[date, tuple[int, int, str]]:
    """A day on which a report of the Friday is corrected as soon as DART opens, and whose it is."""
    filed = here.reports(FRIDAY, FRIDAY, at(FRIDAY, "14:50"))
    for day in days(FRIDAY + timedelta(days=4), FRIDAY + timedelta(days=25)):
        for each in here.beside.filings.market.of_day(day):
            if each.filed.hour == 7 and each.is_correction and (each.company, each.year, each.code) in filed:
                return day, (each.company, each.year, each.code)
    raise AssertionError("nobody corrects in the morning what it reported on that Friday")


def test_a_correction_is_read_beside_what_it_corrects_once_dart_has_it(sync_desk: Callable[..., SyncDesk]) -> None:
    here = sync_desk(at(FRIDAY, "14:00"), companies=30)
    day, place = corrected_one_morning(here)
    here.poll(LISTED, at(FRIDAY, "14:50"))
    here.poll("dart.finance", at(day - timedelta(days=1), "15:00"))
    before = here.newest(place, at(day, "03:00"))
    assert before is not None
    assert here.lacks("dart.finance", {place}, at(day, "03:00")) == []
    # DART goes on to give the rows of the report that was corrected until it has the new ones.
    here.switch("lag", hours=30)
    here.poll(LISTED, at(day, "14:50"))
    here.poll("dart.finance", at(day, "15:00"))
    after = here.beside.filings.market.of_company(*place, at(day, "15:00"))[-1]
    old, new = map(here.beside.filings.market.number, (before, after))
    assert old < new
    assert here.held("dart.finance", new) == {}
    here.switch("lag", hours=0)
    here.poll("dart.finance", at(day + timedelta(days=1), "03:00"))
    assert here.held("dart.finance", new).keys() == here.held("dart.finance", old).keys() != set()
    assert here.lacks("dart.finance", {place}, at(day + timedelta(days=1), "03:00")) == []
    sets = here.place.sql("select fs_div, rcept_no from filings.dart_finance_sets where rcept_no = any(%s)", [old, new])
    assert len(sets) == 2 * len(here.held("dart.finance", new))
    assert here.place.sql("select * from filings.dart_statements_history") == []
    # What is held as of the newest report is asked for no more.
    asked = here.asked(FINANCE)
    here.poll("dart.finance", at(day + timedelta(days=1), "15:00"))
    keys = [row["request_key"] for row in fetches(here, "dart.finance")[asked:]]
    assert not any(key.endswith(new) and "/OFS/" in key for key in keys)


# --- the past


def test_the_past_is_asked_for_by_period_newest_first_and_only_what_is_missing(
    sync_desk: Callable[..., SyncDesk], place: Callable[[], Place]
) -> None:
    here = sync_desk(at(FRIDAY, "15:00"), companies=20)
    listed = here.beside.filings.listed
    corps = tuple(company.corp_code for company in listed[:2])
    first, last = date(2025, 12, 31), date(2026, 6, 30)
    assert here.run("dart.finance", Mode.BACKFILL, first, last, keys=corps).failed == 0
    asked = fetches(here, "dart.finance")
    ends = [row["session_date"] for row in asked]
    assert sorted(set(ends), reverse=True) == [last, date(2026, 3, 31), first]
    assert ends == sorted(ends, reverse=True)
    places = {(n, year, code) for n in range(2) for year, code in ((2025, "11011"), (2026, "11013"), (2026, "11012"))}
    assert here.lacks("dart.finance", places, here.place.now()) == []

    # A wider range asks for what is missing alone, and the same once more forced for all of it.
    again = here.run("dart.finance", Mode.BACKFILL, date(2025, 9, 30), last, keys=corps)
    assert again.failed == 0
    more = fetches(here, "dart.finance")[len(asked) :]
    complete = [place for place in places if here.newest(place, here.place.now())]
    held = {f"{listed[n].corp_code}/{year}.{code}" for n, year, code in complete}
    assert not {"/".join(row["unit"].split("/")[:2]) for row in more} & held
    assert date(2025, 9, 30) in {row["session_date"] for row in more}
    here.run("dart.finance", Mode.BACKFILL, last, last, keys=corps, force=True, run_id="once-more")
    assert len(fetches(here, "dart.finance")) > len(asked) + len(more)

    there = place()
    there.at(here.place.now())
    there.raw = here.place.raw
    copy_ledger(here.place.url, there.url)
    stream = fast("dart.finance")
    windows.declare(there.url, (stream,))
    there.do(stream, Mode.REPLAY, date(2025, 9, 30), last)
    assert there.tables(stream, "sent_at", "fetch_id") == here.place.tables(stream, "sent_at", "fetch_id")


def test_newcomers_are_who_is_listed_and_has_no_past_and_are_taken_in_by_and_by(
    sync_desk: Callable[..., SyncDesk],
) -> None:
    here = sync_desk(at(FRIDAY, "15:00"), companies=60)
    young = sorted(range(3, 60), key=lambda n: -first_year(here.beside.filings.seed, n))[:2]
    listed = [here.beside.filings.listed[n] for n in young]
    list_companies(here, listed)
    stream = "dart.finance"
    found = newcomers.of_stream(here.place.url, stream, 1)
    assert (found.keys, found.left) == ((listed[1].corp_code,), 1)
    assert here.run(stream, Mode.BACKFILL, None, None, keys=found.keys).failed == 0
    ends = [row["session_date"] for row in fetches(here, stream)]
    assert (max(ends), min(ends)) == (date(2026, 6, 30), date(2016, 3, 31))
    after = newcomers.of_stream(here.place.url, stream, 10)
    assert (after.keys, after.left) == ((listed[0].corp_code,), 0)
    # Another category judges for itself.
    assert len(newcomers.of_stream(here.place.url, "dart.report", 10).keys) == 2


def list_companies(here: SyncDesk, companies: list[Company]) -> None:
    """Let KIND list companies that DART numbers, each a day later than the one before."""
    for n, company in enumerate(companies):
        here.place.sql(
            "insert into filings.dart_corps (corp_code, corp_name, stock_code, modify_date, unit, fetch_id, sent_at, "
            "parser_version, cycle_id, attempt) values (%s, %s, %s, '2026-01-01', 'u', 1, now(), 1, 1, 1)",
            company.corp_code, company.name, company.stock_code,
        )  # fmt: skip
        here.place.sql(
            "insert into market.kind_companies (code, name, listed_on, is_spac, is_reit, unit, fetch_id, sent_at, "
            "parser_version, cycle_id, attempt) values (%s, %s, %s, false, false, 'u', 1, now(), 1, 1, 1)",
            company.stock_code, company.name, date(2026, 8, 3) + timedelta(days=n),
        )  # fmt: skip
        here.place.sql(
            "insert into collect.items (stream, item_key, first_seen_at, last_seen_at) "
            "values ('kind.companies', %s, now(), now())",
            company.stock_code,
        )


PERIODS: list[tuple[str, str, int | None, set[str]]] = [
    ("사업보고서", "2025.12", 12, {"2025.11011"}),
    ("반기보고서", "2026.06", None, {"2026.11012"}),
    ("분기보고서", "2026.03", 12, {"2026.11013"}),
    ("분기보고서", "2026.09", 12, {"2026.11014"}),
    # A year that ends in March: DART may call it after either of its calendar years.
    ("사업보고서", "2026.03", 12, {"2025.11011", "2026.11011"}),
    ("반기보고서", "2025.09", 3, {"2025.11012", "2026.11012"}),
    ("분기보고서", "2026.06", 3, {"2026.11013", "2027.11013"}),
    ("분기보고서", "2026.12", 3, {"2026.11014", "2027.11014"}),
    # One that ends in June: March is its third quarter.
    ("분기보고서", "2026.03", 6, {"2025.11014", "2026.11014"}),
    # Not known: all that it can be.
    ("분기보고서", "2026.03", None, {"2026.11013", "2025.11014", "2026.11014"}),
    ("분기보고서", "2026.06", None, {"2026.11013", "2027.11013", "2025.11014", "2026.11014"}),
]


def test_a_report_is_of_the_business_years_that_its_title_can_mean(place: Callable[[], Place]) -> None:
    here = place()
    for title, period, closing, periods in PERIODS:
        rows = here.sql(
            "select bsns_year || '.' || reprt_code as name from filings.dart_business_periods(%s, %s, %s)",
            title, period, closing,
        )  # fmt: skip
        assert {row["name"] for row in rows} == periods, (title, period, closing)


def test_settings_say_which_categories_and_how_far_back(monkeypatch: pytest.MonkeyPatch) -> None:
    known = ("finance", "report")
    assert settings.sync(known, 120) == settings.SyncSettings(known, 60, "recent", 50, known)
    monkeypatch.setenv("SYNC_CATEGORIES", "report")
    monkeypatch.setenv("SYNC_LOOKBACK_DAYS", "7")
    monkeypatch.setenv("SYNC_MODE", "full")
    monkeypatch.setenv("NEW_STOCK_LIMIT", "3")
    assert settings.sync(known, 120) == settings.SyncSettings(("report",), 7, "full", 3, ("report",))
    for name, value in {"SYNC_CATEGORIES": "prices", "SYNC_LOOKBACK_DAYS": "121", "SYNC_MODE": "all",
                        "NEW_STOCK_LIMIT": "-1", "NEW_STOCK_CATEGORIES": "finance"}.items():  # fmt: skip
        with monkeypatch.context() as one:
            one.setenv(name, value)
            with pytest.raises(settings.SettingError, match=name):
                settings.sync(known, 120)
    names = [stream.name for stream in dart.source(sync=dart.Choice(("report",), 7)).streams]
    assert "dart.report" in names
    assert "dart.finance" not in names


def test_what_was_received_before_the_days_that_are_looked_back_is_not_due() -> None:
    stream = registry.stream("dart.finance")
    due = tuple(
        f"due 1 {day} 00999991/2026.11012/OFS/{day:%Y%m%d}000001" for day in (FRIDAY, FRIDAY - timedelta(days=1))
    )
    ask = Ask(Mode.POLL, subjects=due, at=at(FRIDAY + timedelta(days=60), "03:00"))
    assert [request.key[-14:] for request in stream.plan(ask)] == [f"{FRIDAY:%Y%m%d}000001"]
