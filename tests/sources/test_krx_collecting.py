"""KRX collected from its stand-in: mornings with closures that nobody knew, refusals, revisions, and the past."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from include.contract import CycleStatus, Mode, Outcome, Quota
from include.engine import jobs, windows
from include.engine.db import connect
from include.outputs import parquet
from include.outputs.releases import release
from include.sandbox.exchange import World
from include.sandbox.krx import Krx
from include.sources.krx.streams import INDICES_STREAM, ISSUES_STREAM, PRICES_STREAM
from include.sources.krx.tables import PRICES
from tests.fixtures_sandbox import Start
from tests.sources.krx_desk import Desk, kst, quick, sessions, weekdays
from tests.sources.places import Place, copy_ledger

TUESDAY = date(2026, 9, 15)
ELECTION = date(2026, 6, 3)


@pytest.fixture
def desk(place: Callable[[], Place], sandbox: Start, tmp_path: Path) -> Callable[..., Desk]:
    def make(*streams: Any, beside: Desk | None = None, at: date = TUESDAY, **group: Any) -> Desk:
        made = place()
        chosen = quick(*(streams or (PRICES_STREAM,)), **group)
        if beside is not None:
            made.sandbox_url = beside.place.sandbox_url
            made.at(beside.place.now())
            return Desk(made, beside.running, beside.beside, streams or beside.streams)
        made.at(kst(at))
        running = sandbox(clock=made.now, companies=40)
        made.sandbox_url = running.url
        return Desk(made, running, Krx(World(tmp_path, companies=40)), chosen)

    return make


# --- mornings


def test_weeks_with_closures_that_nobody_knew_hold_the_right_sessions_at_every_nine(
    desk: Callable[..., Desk],
) -> None:
    """An election that the calendar calls a session, a closure at short notice, and a service refused."""
    first, last, short_notice = date(2026, 6, 2), date(2026, 6, 16), date(2026, 6, 11)
    here = desk(PRICES_STREAM, INDICES_STREAM, at=first)
    here.switch("close", day=str(ELECTION))
    here.switch("close", day=str(short_notice))
    here.switch("move", code="112190", day="2026-06-05", market="KOSDAQ")
    here.switch("end", code="0099X0", last="2026-06-08")
    here.switch("list", code="0123A0", day="2026-06-09", market="KOSDAQ")
    here.switch("rename", code="000020", day="2026-06-02", to="새이름")
    here.switch("delay", day="2026-06-01", service="sto/ksq_bydd_trd", until="2026-06-02T08:33:00+09:00")
    assert {ELECTION, short_notice} <= set(sessions(first, last))
    begun = date(2026, 6, 1)
    late: dict[date, set[str]] = {}
    for day in weekdays(first, last):
        if day == date(2026, 6, 9):
            here.switch("refuse", service="sto/stk_bydd_trd")
            here.refused.add("sto/stk_bydd_trd")
        if day == date(2026, 6, 15):
            here.switch("refuse", service="sto/stk_bydd_trd", **{"is": False})
            here.refused.clear()
        if day == short_notice:
            # Announced the evening before.
            here.decide(short_notice)
        items = here.morning(day)
        assert here.published(kst(day, 8, 50), begun) <= here.held_at_nine, day
        assert here.held_at_nine <= here.had(day, begun), day
        assert {item.run_date for item in items.values()} == {day}
        late[day] = {name for name, item in items.items() if item.cycle_status != "SUCCESS"}
    both = {"krx.prices", "krx.indices"}
    # Two mornings do not know of the election; the closure that was announced is late on none.
    refused = {date(2026, 6, day): {"krx.prices"} for day in (9, 10, 11, 12)}
    assert {day: names for day, names in late.items() if names} == {
        ELECTION: both,
        date(2026, 6, 4): both,
        **refused,
    }
    assert here.exceptions() == {ELECTION: "proposed", short_notice: "closed"}
    assert set(here.pending()) == {
        f"{name}/{ELECTION}" for name in ("KOSPI", "KOSDAQ", "KONEX", "KRX", "BOND", "DERIVATIVES")
    }
    here.decide(ELECTION)
    asked = here.asked()
    here.morning(date(2026, 6, 17))
    days = {each["query"] for each in here.running.requests(host="data-dbg.krx.co.kr")[asked:]}
    assert f"basDd={ELECTION:%Y%m%d}" not in days

    # A code that moved is one security on two markets, one that ended has its last day, a new one its first.
    rows = here.place.sql(
        "select code, market, first_session, last_session, is_listed from market.krx_market_periods"
        " where code in ('112190', '0099X0', '0123A0') order by code, first_session"
    )
    newest = date(2026, 6, 16)
    assert [tuple(row.values()) for row in rows] == [
        ("0099X0", "KONEX", begun, date(2026, 6, 8), False),
        ("0123A0", "KOSDAQ", date(2026, 6, 9), newest, True),
        ("112190", "KONEX", begun, date(2026, 6, 4), False),
        ("112190", "KOSDAQ", date(2026, 6, 5), newest, True),
    ]
    assert {name for _, name in here.prices("000020", "name")} == {"다라약품", "새이름"}

    # The same by a backfill, and by a replay without any upstream.
    there = desk(beside=here)
    there.decide(ELECTION)
    there.decide(short_notice)
    there.backfill(begun, newest)
    again = desk(beside=here)
    again.place.raw = here.place.raw
    copy_ledger(here.place.url, again.place.url)
    asked = here.asked()
    for stream in here.streams:
        by_poll = here.place.tables(stream)
        assert there.place.tables(stream) == by_poll
        windows.declare(again.place.url, (stream,))
        again.place.do(stream, Mode.REPLAY, begun, newest)
        assert again.place.tables(stream, "sent_at", "fetch_id") == here.place.tables(stream, "sent_at", "fetch_id")
        again.place.sql("truncate collect.cycles, collect.job_runs cascade")
    assert here.asked() == asked


def test_a_window_is_for_the_session_before_and_a_closed_day_asks_for_nothing_new(desk: Callable[..., Desk]) -> None:
    here = desk()
    monday, thursday = date(2026, 9, 21), date(2026, 9, 24)
    assert here.poll(monday).session_date == date(2026, 9, 18)
    here.poll(monday + timedelta(days=1))
    here.poll(monday + timedelta(days=2))
    asked = here.asked()
    # Chuseok: Wednesday's session is published when business resumes, on Monday.
    for day in (thursday, thursday + timedelta(days=1)):
        assert here.poll(day).outcome is Outcome.SUCCESS
    assert here.asked() - asked <= 6
    assert not here.pending()
    assert here.poll(monday + timedelta(days=7)).session_date == date(2026, 9, 23)
    assert {day for *_, day in here.held()} == set(sessions(date(2026, 9, 18), date(2026, 9, 23)))


def test_before_publication_it_waits_and_past_noon_it_fails_and_keeps_its_keys(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.switch("delay", day="2026-09-14", until=None)
    verdict = here.poll(TUESDAY, 8, 10)
    assert verdict.status is CycleStatus.PENDING
    assert "not published yet" in verdict.words
    assert verdict.next_eligible_at == kst(TUESDAY, 8, 20)
    failed = here.tick(kst(TUESDAY, 12, 1))[here.stream.name]
    assert failed.status is CycleStatus.FAILED
    assert failed.outcome is Outcome.FAILED_RETRIABLE
    assert set(here.pending()) == {f"{market}/2026-09-14" for market in ("KOSPI", "KOSDAQ", "KONEX")}
    # Nothing says that the market was closed until a later session is there.
    assert not here.exceptions()
    here.switch("delay", day="2026-09-14", until="2026-09-16T08:00:00+09:00")
    assert here.poll(TUESDAY + timedelta(days=1)).outcome is Outcome.SUCCESS
    assert not here.pending()
    assert not here.exceptions()


def test_a_session_that_comes_days_late_is_collected_though_it_looked_closed(desk: Callable[..., Desk]) -> None:
    here = desk()
    late = date(2026, 9, 15)
    here.switch("delay", day=str(late), until="2026-09-18T07:00:00+09:00")
    for day in weekdays(TUESDAY, date(2026, 9, 17)):
        here.morning(day)
    assert here.exceptions() == {late: "proposed"}
    here.morning(date(2026, 9, 18))
    assert late in {day for *_, day in here.held()}
    assert not here.pending()


def test_days_of_downtime_are_caught_up_newest_first(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.poll(date(2026, 9, 1))
    asked = here.asked()
    assert here.poll(TUESDAY).outcome is Outcome.SUCCESS
    assert {day for *_, day in here.held()} == set(sessions(date(2026, 8, 31), date(2026, 9, 14)))
    days = [each["query"] for each in here.running.requests(host="data-dbg.krx.co.kr")[asked:]]
    assert days[0] == "basDd=20260914"


# --- what is refused


@pytest.mark.parametrize("status", [401, 200])
def test_one_market_refused_loses_no_other_and_is_named(desk: Callable[..., Desk], tmp_path: Path, status: int) -> None:
    def published() -> set[date]:
        of = release("krx/prices")
        with connect(here.place.url) as connection:
            parquet.write(connection, of, PRICES, of.part("2026-09"), tmp_path / "prices.parquet")
        return set(pq.read_table(tmp_path / "prices.parquet").column("session_date").to_pylist())

    here = desk()
    here.poll(TUESDAY)
    before = here.held()
    here.switch("refuse", service="sto/stk_bydd_trd", status=status)
    verdict = here.poll(TUESDAY + timedelta(days=1))
    assert verdict.status is CycleStatus.FAILED
    assert "KOSPI daily trade (sto/stk_bydd_trd)" in verdict.words
    assert here.held() - before == {(here.stream.name, market, TUESDAY) for market in ("KOSDAQ", "KONEX")}
    assert before <= here.held()
    (row,) = here.place.sql("select * from market.krx_sessions where session_date = %s", TUESDAY)
    assert (row["kospi"], row["is_whole"]) == (0, False)
    # A file with a part of a market's day would say that the others are gone: the day is left out of it.
    assert published() == {day for *_, day in before}
    # Only what is missing is asked for again: by a make-up window, and then by the next morning.
    asked = here.asked()
    here.tick(kst(TUESDAY + timedelta(days=1), 8, 32))
    assert here.asked() == asked + 1
    here.switch("refuse", service="sto/stk_bydd_trd", **{"is": False})
    assert here.poll(TUESDAY + timedelta(days=2)).outcome is Outcome.SUCCESS
    assert (here.stream.name, "KOSPI", TUESDAY) in here.held()
    assert TUESDAY in published()
    assert not here.pending()


def test_a_key_that_is_not_accepted_is_asked_with_once(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.switch("key", **{"is": "unknown"})
    verdict = here.poll(TUESDAY)
    assert (verdict.status, verdict.outcome) == (CycleStatus.FAILED, Outcome.FAILED_TERMINAL)
    assert "key of connection krx" in verdict.words
    assert "key of connection krx" in here.incidents()
    here.tick(kst(TUESDAY, 8, 55))
    assert here.asked() == 1


def test_a_page_for_people_stops_the_host_and_maintenance_passes(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.fault(status=200, headers={"Content-Type": "text/html"}, body="<html><title>점검</title></html>", n=2)
    assert here.poll(TUESDAY).outcome is Outcome.SUCCESS
    before = here.held()
    here.fault(
        status=200, headers={"Content-Type": "text/html"}, body="<html><title>에러페이지 - 한국거래소</title></html>"
    )
    verdict = here.poll(TUESDAY + timedelta(days=1))
    assert verdict.outcome is Outcome.FAILED_TERMINAL
    asked = here.asked()
    here.tick(kst(TUESDAY + timedelta(days=1), 8, 19))
    assert here.asked() == asked
    assert here.held() == before
    assert not here.exceptions()


def test_the_web_sites_login_is_no_empty_day(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.poll(TUESDAY)
    before = here.held()
    here.fault(status=400, body="LOGOUT", n=None)
    verdict = here.poll(TUESDAY + timedelta(days=1))
    assert verdict.outcome is Outcome.FAILED_TERMINAL
    assert here.held() == before
    assert not here.exceptions()


# --- calls of a day


def test_a_backfill_leaves_polls_their_calls_and_no_day_has_more_than_its_quota(desk: Callable[..., Desk]) -> None:
    here = desk(quota=Quota(20, "Asia/Seoul", kept_for_polls=8))
    here.poll(TUESDAY)
    here.tick(kst(TUESDAY, 13))
    here.backfill(date(2026, 8, 3), date(2026, 8, 14), run_id="the-past")
    (row,) = here.place.sql("select used from collect.key_usage")
    assert row["used"] == 12 == here.asked()
    # The next morning has its own calls, whatever the past still wants.
    verdict = here.poll(TUESDAY + timedelta(days=1))
    assert verdict.outcome is Outcome.SUCCESS
    for day in range(1, 5):
        here.place.at(kst(TUESDAY + timedelta(days=day), 14))
        here.backfill(date(2026, 8, 3), date(2026, 8, 14), run_id="the-past")
    used = [row["used"] for row in here.place.sql("select used from collect.key_usage order by usage_date")]
    assert max(used) <= 20
    assert sum(used) == here.asked()
    progress = jobs.conclude(here.place.url, "the-past")[1]
    assert progress.done == progress.total == len(sessions(date(2026, 8, 3), date(2026, 8, 14)))


def test_when_krx_itself_says_that_the_calls_are_used_up_nobody_asks_again_that_day(
    desk: Callable[..., Desk],
) -> None:
    here = desk()
    here.switch("quota", n=2)
    verdict = here.poll(TUESDAY)
    assert verdict.status is CycleStatus.BUDGET_EXHAUSTED
    assert here.asked() == 3
    here.tick(kst(TUESDAY, 8, 55))
    assert here.asked() == 3
    here.switch("quota", n=None)
    assert here.poll(TUESDAY + timedelta(days=1)).outcome is Outcome.SUCCESS
    assert len(here.held()) == 6


# --- what changes later


def test_a_revision_and_a_session_that_was_there_in_part_are_found_by_reading_again(
    desk: Callable[..., Desk],
) -> None:
    here = desk()
    here.switch("partial", day="2026-09-14", service="sto/ksq_bydd_trd", percent=40, until="2026-09-15T10:00:00+09:00")
    here.switch("revise", day="2026-09-14", service="sto/stk_bydd_trd", at="2026-09-15T12:00:00+09:00", by=7)
    here.poll(TUESDAY)
    (before,) = here.place.sql("select kosdaq from market.krx_sessions")
    here.poll(TUESDAY + timedelta(days=1))
    counts = here.place.sql("select kosdaq from market.krx_sessions order by session_date")
    assert before["kosdaq"] < counts[0]["kosdaq"] == counts[1]["kosdaq"]
    rows = here.place.sql("select volume, reason from market.krx_prices_history")
    assert [row["reason"] for row in rows] == ["revised"]
    (now,) = [row for row in here.prices("005930", "volume") if row[0] == date(2026, 9, 14)]
    assert now[1] == rows[0]["volume"] + 7


def test_an_empty_answer_never_takes_rows_away(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.poll(TUESDAY)
    before = here.prices("005930", "close")
    here.switch("delay", day="2026-09-14", until="2027-01-01T00:00:00+09:00")
    assert here.poll(TUESDAY + timedelta(days=1)).outcome is not Outcome.FAILED_TERMINAL
    assert before[0] in here.prices("005930", "close")
    assert not here.place.sql("select 1 from market.krx_prices_history")


def test_another_days_rows_are_put_aside_and_the_day_stays_wanted(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.switch("other_day", day="2026-09-14", **{"with": "2026-09-11"})
    here.poll(TUESDAY)
    assert not here.held()
    reasons = {row["reason"] for row in here.place.sql("select reason from collect.quarantine")}
    assert reasons == {"the answer is for 20260911 and not for 20260914, which was asked for"}
    assert len(here.pending()) == 3


def test_a_closed_day_full_of_placeholders_gives_no_price_and_is_proposed(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.switch("close", day="2026-09-15")
    here.switch("placeholders", day="2026-09-15")
    for day in weekdays(TUESDAY, date(2026, 9, 17)):
        here.morning(day)
    assert {day for *_, day in here.held()} == {date(2026, 9, 14), date(2026, 9, 16)}
    assert here.exceptions() == {date(2026, 9, 15): "proposed"}


def test_a_day_that_the_calendar_wrongly_calls_closed_is_found_by_a_backfill(desk: Callable[..., Desk]) -> None:
    here = desk()
    labour_day = date(2026, 5, 1)
    here.switch("open", day=str(labour_day))
    here.backfill(date(2026, 4, 27), date(2026, 5, 8))
    assert here.exceptions() == {labour_day: "proposed"}
    here.decide(labour_day, "open")
    here.backfill(date(2026, 4, 30), date(2026, 5, 4), run_id="once-more")
    assert {(here.stream.name, market, labour_day) for market in ("KOSPI", "KOSDAQ", "KONEX")} <= here.held()


# --- the master, adjusted closes, and files


def test_masters_say_who_was_listed_on_a_day_and_join_the_prices_by_code(desk: Callable[..., Desk]) -> None:
    here = desk(PRICES_STREAM, ISSUES_STREAM)
    here.switch("end", code="0099X0", last="2026-09-14")
    here.poll(TUESDAY)
    here.poll(TUESDAY + timedelta(days=1))
    rows = here.place.sql(
        "select p.session_date, count(*) as prices, count(i.isin) as joined,"
        " count(*) filter (where i.isin = p.code) as by_isin from market.krx_prices p"
        " left join market.krx_issues i using (session_date, market, code) group by 1 order by 1"
    )
    assert [row["prices"] - row["joined"] for row in rows] == [0, 0]
    assert rows[0]["prices"] == rows[1]["prices"] + 1
    assert all(row["by_isin"] == 0 for row in rows)


ADJUSTED = "select session_date, code, close, step_factor, adjusted_close from market.krx_adjusted_closes"


def test_adjusted_closes_go_through_a_split_and_stop_at_a_missing_session(desk: Callable[..., Desk]) -> None:
    here = desk()
    split = date(2026, 9, 9)
    here.switch("halt", code="005930", first="2026-09-04", last="2026-09-08")
    here.switch("split", code="005930", day=str(split), ratio=50)
    # A base price that no round ratio gives: 41,500 into three.
    here.switch("split", code="28513K", day="2026-09-10", ratio=3)
    here.place.at(kst(TUESDAY, 13))
    here.backfill(date(2026, 9, 1), date(2026, 9, 11))
    whole = {(row["session_date"], row["code"]): row for row in here.place.sql(ADJUSTED)}
    of = {day: row for (day, code), row in whole.items() if code == "005930"}
    assert of[split]["step_factor"] * 50 == 1
    for day, row in of.items():
        expected = row["close"] / (50 if day < split else 1)
        assert float(row["adjusted_close"]) == pytest.approx(expected, rel=1e-9), day
    assert {row["step_factor"] for day, row in of.items() if day != split} == {1}
    third = whole[(date(2026, 9, 10), "28513K")]["step_factor"]
    assert float(third) == pytest.approx(1 / 3, rel=1e-3)
    untouched = [row for (_, code), row in whole.items() if code not in ("005930", "28513K")]
    assert all(row["adjusted_close"] == row["close"] for row in untouched)
    # Raw prices are as they were traded.
    raw = dict(here.prices("005930", "close"))
    assert raw[date(2026, 9, 8)] > 40 * raw[split]

    # Asked in pieces or whole, a day has one adjusted close.
    for first, last in ((date(2026, 9, 1), date(2026, 9, 8)), (date(2026, 9, 7), date(2026, 9, 11))):
        part = here.place.sql(f"{ADJUSTED} where session_date between %s and %s", first, last)
        assert all(row == whole[(row["session_date"], row["code"])] for row in part)

    # Without the session of the 7th nobody can say what the 8th's changes are counted from.
    here.place.sql("delete from market.krx_prices where session_date = '2026-09-07'")
    torn = here.place.sql(f"{ADJUSTED} where code = '247540' order by session_date")
    assert [row["adjusted_close"] is None for row in torn] == [row["session_date"] < date(2026, 9, 7) for row in torn]
    assert all(row["close"] is not None for row in torn)


def test_codes_are_the_same_texts_in_the_table_and_in_the_file(desk: Callable[..., Desk], tmp_path: Path) -> None:
    here = desk()
    here.switch("halt", code="000020", first="2026-09-10", last="2026-09-14")
    here.poll(TUESDAY)
    wanted = {row["code"] for row in here.place.sql("select code from market.krx_prices")}
    assert {"28513K", "0037T0", "005930", "000020"} <= wanted
    of = release("krx/prices")
    with connect(here.place.url) as connection:
        parquet.write(connection, of, PRICES, of.part("2026-09"), tmp_path / "prices.parquet")
    read = pq.read_table(tmp_path / "prices.parquet")
    assert str(read.schema.field("code").type) in (
        "string",
        "large_string",
        "dictionary<values=string, indices=int32, ordered=0>",
    )
    assert set(read.column("code").to_pylist()) == wanted
    halted = [row for row in read.to_pylist() if row["is_untraded"]]
    assert "000020" in {row["code"] for row in halted}
    assert all(row["low"] is None and row["close"] for row in halted)


def test_the_key_is_in_no_row_no_address_and_no_stored_answer(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.poll(TUESDAY)
    for table in ("collect.fetches", "collect.key_usage", "collect.cycles"):
        assert "a key of a test" not in str(here.place.sql(f"select * from {table}"))
    logged = here.running.requests(host="data-dbg.krx.co.kr")
    assert all("a key" not in str(entry) and "AUTH" not in entry["query"] for entry in logged)
