"""Dispatch: what a day is expected to bring, written once, before it comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from include.calendars import calendar, instants
from include.engine import dispatch, windows
from include.engine.db import connect
from tests.engine.desk import beside, wait_until_blocked
from tests.engine.seoul import DART, DAY, FINRA, KRX, TWICE, Seoul, kst, opened, stream


@pytest.fixture
def seoul(database: str) -> Iterator[Seoul]:
    """A Wednesday just past midnight in Seoul; the streams have been in service for a fortnight."""
    with opened(database, kst(DAY, 0, 0, 5)) as here:
        yield here


def made(seoul: Seoul) -> dict[str, list[datetime]]:
    """Stream to the starts of the windows that are not started."""
    found: dict[str, list[datetime]] = {}
    for row in seoul.cycles():
        assert row["cycle_status"] == "NOT_STARTED"
        found.setdefault(row["stream"], []).append(row["window_start"])
    return found


def test_the_day_gets_a_header_expectations_and_the_windows_of_streams_with_few(seoul: Seoul) -> None:
    done = seoul.dispatch()
    assert (done.day, done.status, done.opened, done.expected) == (DAY, "PENDING", 4, 4)
    assert (
        done.words == "DISPATCHED – 2026-09-16: 4 windows made, 4 streams expected at 09:00; the snapshot is PENDING."
    )
    assert made(seoul) == {
        FINRA.name: [kst(DAY, 7, 35)],
        KRX.name: [kst(DAY, 8, 10)],
        TWICE.name: [kst(DAY, 3), kst(DAY, 15)],
    }
    row = seoul.cycles(FINRA)[0]
    assert (row["slot"], row["run_date"], row["session_date"]) == ("2026-09-15T22:35:00Z", DAY, date(2026, 9, 15))
    assert (row["due_at"], row["kind"], row["attempt"]) == (kst(DAY, 8, 35), "scheduled", 0)
    assert row["gate_at"] is not None
    expected = seoul.sql(
        "select stream, window_start, due_at from collect.sla_expectations where snapshot_date = %s", DAY
    )
    assert {each["stream"]: each["window_start"] for each in expected} == {
        FINRA.name: kst(DAY, 7, 35),
        KRX.name: kst(DAY, 8, 10),
        DART.name: kst(DAY, 8, 55),
        TWICE.name: kst(DAY, 3),
    }
    assert all(each["due_at"] <= kst(DAY, 9) for each in expected)


def test_dispatching_again_changes_nothing(seoul: Seoul) -> None:
    seoul.dispatch()
    before = seoul.cycles(), seoul.sql("select * from collect.sla_snapshots order by 1")
    again = seoul.dispatch()
    assert (again.opened, again.expected) == (0, 0)
    assert again.words == "NOTHING TO DO – 2026-09-16 is dispatched; the snapshot is PENDING."
    assert (seoul.cycles(), seoul.sql("select * from collect.sla_snapshots order by 1")) == before


def test_two_dispatches_at_once_write_one_day(seoul: Seoul) -> None:
    results = [each.result() for each in [beside(seoul_dispatch(seoul)) for _ in range(2)]]
    assert sorted(done.opened for done in results) == [0, 4]
    assert len(seoul.cycles()) == 4


def seoul_dispatch(seoul: Seoul):  # type: ignore[no-untyped-def]
    return lambda: dispatch.dispatch(seoul.url, seoul.streams)


def test_a_late_dispatch_makes_no_window_of_the_past(seoul: Seoul) -> None:
    seoul.at(kst(DAY, 8))
    assert seoul.dispatch().opened == 2
    assert made(seoul) == {KRX.name: [kst(DAY, 8, 10)], TWICE.name: [kst(DAY, 15)]}


def test_a_stream_with_more_than_four_windows_a_day_makes_each_by_its_own_tick() -> None:
    days = calendar("DAILY")
    four, five = stream("a.four", "0 */6 * * *"), stream("a.five", "0 1,5,9,13,17 * * *")
    assert len(dispatch.windows_of(four, DAY, days)) == 4
    assert dispatch.windows_of(five, DAY, days) == []
    assert dispatch.windows_of(DART, DAY, days) == []


def test_a_day_without_windows_has_expectations_all_the_same() -> None:
    sunday, days = date(2026, 9, 20), calendar("XNYS")
    assert dispatch.windows_of(FINRA, sunday, days) == []
    assert dispatch.expected(FINRA, sunday, days).start == kst(date(2026, 9, 19), 7, 35)


@pytest.mark.parametrize(
    ("day", "hour"), [(date(2026, 3, 7), 8), (date(2026, 3, 10), 7), (date(2026, 10, 30), 7), (date(2026, 11, 3), 8)]
)
def test_new_yorks_clock_change_moves_the_window_in_seoul_and_not_in_new_york(day: date, hour: int) -> None:
    (window,) = dispatch.windows_of(FINRA, day, calendar("XNYS"))
    assert window.start == kst(day, hour, 35)
    assert window.run_date == day


def test_instants_are_bounded_and_begin_with_the_start() -> None:
    assert instants("0 3 * * *", "Asia/Seoul", kst(DAY, 3), kst(DAY, 3) + timedelta(days=2), 9) == [
        kst(DAY, 3),
        kst(DAY, 3) + timedelta(days=1),
    ]
    assert len(instants("* * * * *", "UTC", kst(DAY), kst(DAY, 23), 5)) == 5


# --- what a tick makes of it


def test_the_tick_opens_the_window_that_dispatch_made(seoul: Seoul) -> None:
    seoul.dispatch()
    number = seoul.cycles(KRX)[0]["cycle_id"]
    seoul.at(kst(DAY, 8, 10, 3))
    found = windows.open_due(seoul.url, KRX)
    assert found is not None
    assert found.opened
    assert (found.row["cycle_id"], found.row["cycle_status"]) == (number, "PENDING")
    assert found.row["next_eligible_at"] == kst(DAY, 8, 10)
    again = windows.open_due(seoul.url, KRX)
    assert again is not None
    assert not again.opened
    assert seoul.claim(KRX) == number


def test_a_window_ahead_of_its_time_is_neither_opened_nor_claimed_nor_shown_as_the_newest(seoul: Seoul) -> None:
    seoul.work(KRX, kst(date(2026, 9, 15), 8, 10))
    seoul.dispatch()
    assert seoul.claim(KRX) is None
    assert windows.open_due(seoul.url, KRX).row["window_start"] == kst(date(2026, 9, 15), 8, 10)  # type: ignore[union-attr]
    newest = windows.standing(seoul.url, KRX).newest
    assert newest is not None
    assert newest["window_start"] == kst(date(2026, 9, 15), 8, 10)


def test_two_ticks_at_once_open_one_window(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 10, 3))
    results = [each.result() for each in [beside(lambda: windows.open_due(seoul.url, KRX)) for _ in range(4)]]
    assert [row["cycle_status"] for row in seoul.cycles(KRX)] == ["PENDING"]
    assert len({found.row["cycle_id"] for found in results}) == 1


def test_a_window_that_nobody_opened_ends_when_a_later_one_opens(seoul: Seoul) -> None:
    seoul.dispatch()
    tomorrow = DAY + timedelta(days=1)
    seoul.at(kst(tomorrow, 8, 10, 3))
    windows.open_due(seoul.url, KRX)
    old, new = seoul.cycles(KRX)
    assert (old["cycle_status"], old["failure_reason"], old["attempt"]) == ("FAILED", "never started", 0)
    assert (new["cycle_status"], new["window_start"]) == ("PENDING", kst(tomorrow, 8, 10))


def test_a_window_does_not_open_beside_one_that_runs_and_does_so_once_that_is_over(seoul: Seoul) -> None:
    seoul.work(KRX, kst(date(2026, 9, 15), 8, 10), "RUNNING")
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 10, 3))
    assert seoul.open(KRX, kst(DAY, 8, 10)) is None
    assert [row["cycle_status"] for row in seoul.cycles(KRX)] == ["RUNNING", "NOT_STARTED"]
    seoul.settle(KRX, "SUCCESS")
    assert seoul.open(KRX, kst(DAY, 8, 10)) == seoul.cycles(KRX)[1]["cycle_id"]


def test_the_cursor_of_a_window_out_of_budget_passes_over_one_that_never_started(seoul: Seoul) -> None:
    seoul.work(KRX, kst(date(2026, 9, 15), 8, 10), "BUDGET_EXHAUSTED", cursor={"page": 7})
    seoul.dispatch()
    tomorrow = DAY + timedelta(days=1)
    seoul.at(kst(tomorrow, 8, 10, 3))
    windows.open_due(seoul.url, KRX)
    assert seoul.cycles(KRX)[-1]["continuation_cursor"] == {"page": 7}


# --- activation, retirement, the flag


def test_on_the_day_of_activation_a_stream_with_a_finished_window_gets_no_second_one(database: str) -> None:
    seoul = Seoul(database, (TWICE, KRX))
    try:
        seoul.at(kst(DAY, 8, 5))
        windows.declare(database, seoul.streams)
        seoul.work(TWICE, kst(DAY, 3))
        assert seoul.dispatch().opened == 1
        assert [row["window_start"] for row in seoul.cycles(TWICE)] == [kst(DAY, 3)]
        assert [row["window_start"] for row in seoul.cycles(KRX)] == [kst(DAY, 8, 10)]
        tomorrow = DAY + timedelta(days=1)
        seoul.at(kst(tomorrow, 0, 1))
        assert seoul.dispatch().opened == 3
    finally:
        seoul.close()


def test_a_stream_out_of_service_gets_no_window_and_no_expectation(seoul: Seoul) -> None:
    seoul.sql("select collect.serve(%s, false, 'superseded', 'kim')", KRX.name)
    assert (seoul.dispatch().opened, seoul.dispatch().opened) == (3, 0)
    assert seoul.cycles(KRX) == []
    assert (
        seoul.sql("select 1 from collect.sla_expectations where stream = %s and snapshot_date = %s", KRX.name, DAY)
        == []
    )
    seoul.at(kst(DAY, 8, 11))
    assert seoul.open(KRX, kst(DAY, 8, 10)) is None
    seoul.sql("select collect.serve(%s, true, 'needed after all', 'kim')", KRX.name)
    assert seoul.open(KRX, kst(DAY, 8, 10)) is not None


def test_a_stream_that_came_into_service_after_dispatch_is_expected_by_the_next_look(seoul: Seoul) -> None:
    new = replace(KRX, name="krx.indices")
    seoul.at(kst(DAY, 0, 1))
    streams = (*seoul.streams, new)
    assert dispatch.complete(seoul.url, streams, "upkeep") == "", "a day that is not dispatched is not begun by it"
    seoul.dispatch()
    assert dispatch.complete(seoul.url, seoul.streams, "upkeep") == ""
    seoul.at(kst(DAY, 2))
    windows.declare(seoul.url, streams)
    words = dispatch.complete(seoul.url, streams, "upkeep")
    assert words.startswith("krx.indices came into service after dispatch: DISPATCHED – 2026-09-16")
    assert dispatch.complete(seoul.url, streams, "upkeep") == ""
    seoul.at(kst(DAY, 9))
    seoul.capture()
    assert seoul.states()[new.name] == "NOT_STARTED"
    assert dispatch.complete(seoul.url, streams, "upkeep") == ""


def test_while_dispatch_is_off_nobody_looks_for_what_it_does_not_expect(seoul: Seoul) -> None:
    seoul.at(kst(DAY, 0, 1))
    seoul.dispatch()
    seoul.sql("select * from collect.control('dispatch', '*', 'off', 'moving house', 'kim')")
    streams = (*seoul.streams, replace(KRX, name="krx.indices"))
    windows.declare(seoul.url, streams)
    assert dispatch.complete(seoul.url, streams, "upkeep") == ""


def test_a_stream_that_is_not_eligible_gets_windows_and_no_expectation(database: str) -> None:
    with opened(database, kst(DAY, 0, 1), (KRX, replace(FINRA, sla_eligible=False))) as seoul:
        done = seoul.dispatch()
        assert (done.opened, done.expected) == (2, 1)


def test_with_dispatch_off_no_window_is_made_or_opened(seoul: Seoul) -> None:
    seoul.sql("select * from collect.control('dispatch', '*', 'off', 'moving house', 'kim')")
    done = seoul.dispatch()
    assert (done.status, done.opened, done.expected) == ("NOT_APPLICABLE", 0, 0)
    assert done.words.startswith("OFF – 2026-09-16")
    seoul.at(kst(DAY, 8, 11))
    assert windows.open_due(seoul.url, KRX) is None
    assert seoul.cycles() == []
    seoul.sql("select * from collect.control('dispatch', '*', 'on', 'moved', 'kim')")
    assert windows.open_due(seoul.url, KRX) is not None


def test_dispatch_waits_for_the_gate_and_inserts_nothing_before_it(seoul: Seoul) -> None:
    with connect(seoul.url) as writing:
        writing.execute("select collect.pass_gate('x')")
        dispatching = beside(seoul_dispatch(seoul))
        wait_until_blocked(seoul.url)
        waiting = seoul.sql(
            "select mode from pg_locks where not granted and locktype = 'advisory' and classid = 9009 and objid = 0"
        )
        assert [row["mode"] for row in waiting] == ["ExclusiveLock"]
        writing.commit()
    assert dispatching.result().opened == 4


def test_without_any_stream_there_is_nothing_to_take_a_snapshot_of(database: str) -> None:
    seoul = Seoul(database, ())
    try:
        seoul.at(kst(DAY, 0, 1))
        done = seoul.dispatch()
        assert (done.status, done.opened) == ("UNAVAILABLE", 0)
        assert done.words.startswith("NO SNAPSHOT – 2026-09-16")
        assert seoul.sql("select 1 from collect.sla_snapshots") == []
    finally:
        seoul.close()
