"""The verdict of 09:00: which window is judged, what is late, what a day without a verdict shows, and that it stays."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from include.engine import snapshot, upkeep
from include.engine.db import connect
from include.engine.snapshot import capture_at, cutoff
from include.ops import watch
from tests.engine.desk import beside, wait_until_blocked
from tests.engine.seoul import DART, DAY, FINRA, KRX, TWICE, Seoul, kst, opened

SATURDAY, SUNDAY, MONDAY = date(2026, 9, 19), date(2026, 9, 20), date(2026, 9, 21)


@pytest.fixture
def seoul(database: str) -> Iterator[Seoul]:
    """A Wednesday just past midnight in Seoul; the streams have been in service for a fortnight."""
    with opened(database, kst(DAY, 0, 0, 5)) as here:
        yield here


def good_morning(seoul: Seoul, day: date = DAY) -> None:
    """Everything due by 09:00 of a weekday was collected in good order."""
    seoul.at(kst(day, 8, 55))
    seoul.work(TWICE, kst(day, 3))
    seoul.work(FINRA, kst(day, 7, 35))
    seoul.work(KRX, kst(day, 8, 10))
    seoul.work(DART, kst(day, 8, 55))


# --- the verdict


def test_before_nine_there_are_no_items_and_nobody_is_late(seoul: Seoul) -> None:
    seoul.dispatch()
    found = seoul.read()
    assert (found.status, found.late, found.items) == ("PENDING", 0, ())
    assert seoul.capture() == "EARLY"
    assert seoul.read() == found
    assert seoul.alerts() == {}


def test_all_good_is_captured_told_and_dated(seoul: Seoul) -> None:
    seoul.dispatch()
    good_morning(seoul)
    seoul.at(kst(DAY, 9, 0, 0.02))
    assert seoul.capture() == "CAPTURED"
    found = seoul.read()
    assert (found.status, found.late, found.captured_by) == ("CAPTURED", 0, "the capturer")
    assert found.offset is not None
    assert timedelta() < found.offset < timedelta(seconds=5)
    assert found.captured_at == found.scheduled_at + found.offset
    assert found.scheduled_at == kst(DAY, 9)
    assert set(seoul.states().values()) == {"SUCCESS"}
    assert found.words.startswith("ALL GOOD – 09:00 of 2026-09-16: all 4 streams were complete")
    (told,) = seoul.alerts().items()
    assert told[0] == "snapshot/2026-09-16/CAPTURED"
    assert told[1].startswith("09:00 of 2026-09-16: all 4 streams were complete.")


def test_every_state_but_success_is_late(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 56))
    seoul.work(FINRA, kst(DAY, 7, 35), "FAILED", failure_reason="not published by its last try")
    seoul.work(KRX, kst(DAY, 8, 10), "RUNNING")
    seoul.work(TWICE, kst(DAY, 3), "BUDGET_EXHAUSTED")
    seoul.open(DART, kst(DAY, 8, 55))
    seoul.at(kst(DAY, 9))
    seoul.capture()
    assert seoul.states() == {
        "dart.disclosures": "PENDING",
        "ecos.observations": "BUDGET_EXHAUSTED",
        "finra.short_volume": "FAILED",
        "krx.prices": "RUNNING",
    }
    found = seoul.read()
    assert found.late == 4
    assert all(item.is_late for item in found.items or ())
    told = seoul.alerts()["snapshot/2026-09-16/CAPTURED"]
    assert "4 of 4 streams were LATE" in told
    assert "finra.short_volume FAILED (not published by its last try)" in told


def test_a_slot_without_a_cycle_is_not_started_and_late(seoul: Seoul) -> None:
    seoul.dispatch()
    good_morning(seoul)
    seoul.sql("delete from collect.cycles where stream = %s", KRX.name)
    seoul.at(kst(DAY, 9))
    seoul.capture()
    item = seoul.items()[KRX.name]
    assert (item.cycle_status, item.cycle_id, item.gate_at, item.is_late) == ("NOT_STARTED", None, None, True)
    assert (item.window_start, item.due_at, item.slot) == (kst(DAY, 8, 10), kst(DAY, 9), "2026-09-15T23:10:00Z")
    assert (item.session_date, item.run_date) == (date(2026, 9, 16), DAY)
    assert seoul.read().late == 1


def test_a_window_that_dispatch_made_and_nobody_opened_is_not_started(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 9))
    seoul.capture()
    assert set(seoul.states().values()) == {"NOT_STARTED"}
    assert seoul.items()[FINRA.name].cycle_id is not None
    assert seoul.items()[DART.name].cycle_id is None


def test_the_last_window_that_was_due_is_judged_not_a_later_one(seoul: Seoul) -> None:
    """DART's window of 08:55 is due at 09:00; one that is due a minute later has no say, done or not."""
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 59))
    seoul.work(DART, kst(DAY, 8, 50), "FAILED")
    seoul.work(DART, kst(DAY, 8, 55), "SUCCESS", fetched=7)
    seoul.work(DART, kst(DAY, 8, 56), "FAILED")
    seoul.at(kst(DAY, 9))
    seoul.capture()
    item = seoul.items()[DART.name]
    assert (item.cycle_status, item.window_start, item.fetched_count) == ("SUCCESS", kst(DAY, 8, 55), 7)


def test_an_earlier_window_does_not_stand_in_for_the_one_that_was_due(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 59))
    seoul.work(DART, kst(DAY, 8, 50), "SUCCESS")
    seoul.at(kst(DAY, 9))
    seoul.capture()
    assert seoul.states()[DART.name] == "NOT_STARTED"


def test_a_make_up_window_that_was_due_too_is_the_one_judged(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 7, 40))
    seoul.work(FINRA, kst(DAY, 7, 35), "FAILED")
    seoul.at(kst(DAY, 7, 46))
    make_up = seoul.open(FINRA, kst(DAY, 7, 45), kind="make_up")
    seoul.claim(FINRA)
    seoul.settle(FINRA, "SUCCESS", fetched=3)
    seoul.at(kst(DAY, 9))
    seoul.capture()
    item = seoul.items()[FINRA.name]
    assert (item.cycle_id, item.cycle_status) == (make_up, "SUCCESS")


# --- days of the week, holidays, closures


def test_a_monday_is_judged_by_saturdays_window_of_new_york(seoul: Seoul) -> None:
    seoul.at(kst(SATURDAY, 7, 40))
    seoul.work(FINRA, kst(SATURDAY, 7, 35))
    seoul.at(kst(MONDAY, 0, 1))
    seoul.dispatch()
    good = replace(seoul, streams=(KRX, DART, TWICE))
    good.at(kst(MONDAY, 8, 55))
    good.work(TWICE, kst(MONDAY, 3))
    good.work(KRX, kst(MONDAY, 8, 10))
    good.work(DART, kst(MONDAY, 8, 55))
    seoul.at(kst(MONDAY, 9))
    seoul.capture(MONDAY)
    item = seoul.items(MONDAY)[FINRA.name]
    assert (item.cycle_status, item.run_date, item.session_date) == ("SUCCESS", SATURDAY, date(2026, 9, 18))
    assert seoul.read(MONDAY).late == 0


@pytest.mark.parametrize("day", [SATURDAY, SUNDAY])
def test_a_weekend_has_a_verdict_too_of_the_windows_before_it(seoul: Seoul, day: date) -> None:
    friday = date(2026, 9, 18)
    seoul.at(kst(friday, 20))
    seoul.work(KRX, kst(friday, 8, 10))
    seoul.work(DART, kst(friday, 19, 55))
    seoul.at(kst(SATURDAY, 7, 40))
    seoul.work(FINRA, kst(SATURDAY, 7, 35))
    seoul.at(kst(day, 0, 1))
    seoul.dispatch()
    seoul.at(kst(day, 3, 1))
    seoul.work(TWICE, kst(day, 3))
    seoul.at(kst(day, 9))
    assert seoul.capture(day) == "CAPTURED"
    assert seoul.read(day).late == 0
    assert seoul.items(day)[KRX.name].run_date == friday


def test_on_a_holiday_of_new_york_its_window_is_there_and_asks_for_the_session_before(database: str) -> None:
    """Labor Day, Monday 7 September 2026: cron knows no holidays, the calendar does, and nothing is due."""
    tuesday = date(2026, 9, 8)
    with opened(database, kst(tuesday, 0, 1)) as seoul:
        seoul.dispatch()
        seoul.at(kst(tuesday, 8, 59))
        seoul.work(FINRA, kst(tuesday, 7, 35), "SUCCESS", fetched=0, success_reason="nothing_due")
        seoul.at(kst(tuesday, 9))
        seoul.capture(tuesday)
        item = seoul.items(tuesday)[FINRA.name]
    assert (item.cycle_status, item.is_late, item.abnormal) == ("SUCCESS", False, False)
    assert item.session_date == date(2026, 9, 4)


def test_on_a_closure_of_the_korean_market_its_windows_are_judged_all_the_same(seoul: Seoul) -> None:
    """Chuseok, Thursday 24 and Friday 25 September 2026."""
    friday = date(2026, 9, 25)
    seoul.at(kst(friday, 0, 1))
    seoul.dispatch()
    good_morning(seoul, friday)
    seoul.at(kst(friday, 9))
    seoul.capture(friday)
    item = seoul.items(friday)[KRX.name]
    assert (item.cycle_status, item.session_date) == ("SUCCESS", date(2026, 9, 23))
    assert seoul.read(friday).late == 0


# --- what an item says


def test_a_frozen_stream_stays_expected_and_its_item_says_by_whom(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 7))
    seoul.sql("select * from collect.control('source', 'krx', 'frozen', 'KRX asked us to wait', 'kim')")
    seoul.at(kst(DAY, 8, 15))
    assert seoul.open(KRX, kst(DAY, 8, 10)) is None
    seoul.at(kst(DAY, 9))
    seoul.capture()
    item = seoul.items()[KRX.name]
    assert (item.cycle_status, item.is_late, item.frozen) == ("NOT_STARTED", True, True)
    assert item.frozen_why == "source krx is frozen since 2026-09-16 07:00 KST by kim: KRX asked us to wait"
    assert not seoul.items()[FINRA.name].frozen
    assert "KRX asked us to wait" in seoul.alerts()["snapshot/2026-09-16/CAPTURED"]


HEALTH = (
    (["SUCCESS"], False),
    (["FAILED"], True),
    (["FAILED", "SUCCESS"], False),
    (["FAILED", "BUDGET_EXHAUSTED"], True),
    (["SUCCESS", "BUDGET_EXHAUSTED"], False),
    (["FAILED", "RUNNING"], True),
    (["SUCCESS", "RUNNING"], False),
    (["BUDGET_EXHAUSTED"], False),
    (["EMPTY"], True),
    (["EMPTY", "SUCCESS"], False),
)


def test_health_is_set_by_failure_and_emptiness_and_cleared_by_success_alone(database: str) -> None:
    streams = tuple(replace(DART, name=f"dart.{'_'.join(states).lower()}") for states, _ in HEALTH)
    with opened(database, kst(DAY, 0, 1), streams) as seoul:
        seoul.dispatch()
        seoul.at(kst(DAY, 8, 56))
        for stream, (states, _) in zip(streams, HEALTH, strict=True):
            for n, state in enumerate(states):
                start = kst(DAY, 8, 55 - 5 * (len(states) - 1 - n))
                if state == "EMPTY":
                    seoul.work(stream, start, "SUCCESS", fetched=0, abnormal=True)
                else:
                    seoul.work(stream, start, state)
        seoul.at(kst(DAY, 9))
        seoul.capture()
        found = {name: item.abnormal for name, item in seoul.items().items()}
    assert found == {stream.name: abnormal for stream, (_, abnormal) in zip(streams, HEALTH, strict=True)}


GUARDED = (
    (False, "SUCCESS", {"fetched": 5}, False),
    (False, "SUCCESS", {"fetched": 0}, True),
    (False, "FAILED", {"fetched": 5}, True),
    (False, "BUDGET_EXHAUSTED", {"fetched": 5}, True),
    (False, "RUNNING", {}, True),
    (True, "SUCCESS", {"fetched": 5, "seen": 5, "missed": 1, "closed": 0}, False),
    (True, "SUCCESS", {"fetched": 5, "seen": 5}, True),
)


def test_an_item_says_whether_its_state_forbids_the_delta(database: str) -> None:
    streams = tuple(replace(DART, name=f"dart.s{n}", listing=listing) for n, (listing, _, _, _) in enumerate(GUARDED))
    with opened(database, kst(DAY, 0, 1), streams) as seoul:
        seoul.dispatch()
        seoul.at(kst(DAY, 8, 56))
        for stream, (_, status, facts, _) in zip(streams, GUARDED, strict=True):
            seoul.work(stream, kst(DAY, 8, 55), status, **facts)
        seoul.at(kst(DAY, 9))
        seoul.capture()
        found = [item.close_guarded for item in seoul.items().values()]
    assert found == [guarded for _, _, _, guarded in GUARDED]


# --- activation, dispatch, missed


def test_a_first_deployment_at_ten_has_no_snapshot_of_that_day_but_of_the_next(database: str) -> None:
    seoul = Seoul(database)
    seoul.at(kst(DAY, 10))
    seoul.dispatch()
    assert seoul.capture() == "NO_HEADER"
    assert upkeep.recover(seoul.url) == []
    found = seoul.read()
    assert (found.status, found.late, found.items) == ("UNAVAILABLE", None, None)
    assert seoul.read(date(2026, 9, 1)).status == "UNAVAILABLE"
    taken = capture_at(seoul.url, cutoff(DAY), "sla_capture")
    assert not taken.by_this_call
    assert taken.words.startswith("NOTHING TO TAKE – 09:00 of 2026-09-16")
    tomorrow = DAY + timedelta(days=1)
    seoul.at(kst(tomorrow, 0, 1))
    assert seoul.dispatch().status == "PENDING"
    seoul.at(kst(tomorrow, 9))
    assert seoul.capture(tomorrow) == "CAPTURED"
    # What had a window since it was activated, and nothing else.
    assert set(seoul.states(tomorrow)) == {FINRA.name, KRX.name, DART.name, TWICE.name}


def test_a_stream_without_a_due_window_since_its_activation_is_not_applicable_and_not_late(seoul: Seoul) -> None:
    new = replace(KRX, name="krx.indices")
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 30))
    here = replace(seoul, streams=(*seoul.streams, new))
    here.dispatch()
    here.at(kst(DAY, 9))
    here.capture()
    assert new.name not in here.items()
    assert KRX.name in here.items()


def test_a_stream_activated_in_the_night_is_expected_with_its_first_due_window(seoul: Seoul) -> None:
    new = replace(KRX, name="krx.indices")
    seoul.dispatch()
    seoul.at(kst(DAY, 2))
    here = replace(seoul, streams=(*seoul.streams, new))
    assert here.dispatch().expected == 1
    here.at(kst(DAY, 9))
    here.capture()
    assert here.states()[new.name] == "NOT_STARTED"


def test_a_window_that_was_opened_although_older_than_the_activation_is_judged(database: str) -> None:
    """The first day of an installation: what was due before it began and was collected all the same."""
    seoul = Seoul(database, (FINRA, KRX))
    seoul.at(kst(DAY, 8, 40))
    assert seoul.dispatch().status == "PENDING"
    seoul.work(FINRA, kst(DAY, 7, 35))
    seoul.at(kst(DAY, 9))
    seoul.capture()
    assert seoul.states() == {FINRA.name: "SUCCESS"}


def test_a_stream_that_left_service_before_nine_is_not_expected_and_one_after_nine_is(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 59))
    seoul.sql("select collect.serve(%s, false, 'superseded', 'kim')", KRX.name)
    seoul.at(kst(DAY, 9, 0, 1))
    seoul.sql("select collect.serve(%s, false, 'superseded', 'kim')", DART.name)
    found = seoul.read()
    assert found.status == "CAPTURED"
    assert found.captured_by == "service of dart.disclosures by kim"
    assert set(seoul.items()) == {FINRA.name, DART.name, TWICE.name}


def test_still_pending_at_five_past_is_missed_without_items(seoul: Seoul) -> None:
    seoul.dispatch()
    good_morning(seoul)
    seoul.at(kst(DAY, 9, 4, 50))
    assert snapshot.mark_missed(seoul.url) == []
    seoul.at(kst(DAY, 9, 5))
    assert snapshot.mark_missed(seoul.url) == ["the snapshot of 2026-09-16 is MISSED now"]
    found = seoul.read()
    assert (found.status, found.late, found.items, found.captured_at) == ("MISSED", None, None, None)
    assert "neither the capturer nor any writer" in (found.miss_reason or "")
    assert seoul.sql("select * from collect.sla_snapshot_sources") == []
    assert list(seoul.alerts()) == ["snapshot/2026-09-16/MISSED"]
    assert seoul.capture() == "ALREADY_MISSED"
    assert snapshot.mark_missed(seoul.url) == []


def test_the_grace_is_a_setting(seoul: Seoul, monkeypatch: pytest.MonkeyPatch) -> None:
    seoul.dispatch()
    monkeypatch.setenv("DAYBOOK_SNAPSHOT_GRACE", "60")
    seoul.at(kst(DAY, 9, 1, 1))
    assert upkeep.recover(seoul.url) == ["the snapshot of 2026-09-16 is MISSED now"]


def test_upkeep_looks_at_the_gate_before_it_ends_a_lease(seoul: Seoul) -> None:
    """Its own recovery is a state write: the other way round it would take the snapshot that it should call missed."""
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 56))
    seoul.open(DART, kst(DAY, 8, 55))
    seoul.claim(DART, ttl="5 minutes")
    seoul.at(kst(DAY, 9, 6))
    told = upkeep.recover(seoul.url)
    assert told[0] == "the snapshot of 2026-09-16 is MISSED now"
    assert "its holder vanished" in told[1]
    assert seoul.read().status == "MISSED"


def test_the_watcher_marks_it_missed_though_airflow_is_dead(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 9, 5, 1))
    assert "alerts wait in ops.alerts" in watch.one_round(seoul.url, "the watcher", has_slack=False)
    assert seoul.read().status == "MISSED"
    assert list(seoul.alerts()) == ["snapshot/2026-09-16/MISSED"]


def test_a_recovery_within_the_grace_takes_the_snapshot_and_the_lease_was_running_in_it(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 56))
    seoul.open(DART, kst(DAY, 8, 55))
    seoul.claim(DART, ttl="3 minutes")
    seoul.at(kst(DAY, 9, 0, 2))
    (told,) = upkeep.recover(seoul.url)
    assert "its holder vanished" in told
    assert seoul.read().captured_by == "recovery"
    assert seoul.states()[DART.name] == "RUNNING"
    assert seoul.cycles(DART)[-1]["cycle_status"] == "FAILED"


def test_an_active_day_without_a_header_is_missed_and_so_are_the_days_before_it(seoul: Seoul) -> None:
    rows = seoul.sql("select snapshot_date as day, capture_status as status from collect.sla_snapshots order by 1")
    # In service since just past midnight of the second: every day since then, up to the last one that is over.
    assert [row["day"] for row in rows] == [date(2026, 9, 2) + timedelta(days=n) for n in range(14)]
    assert {row["status"] for row in rows} == {"MISSED"}
    seoul.at(kst(DAY, 9, 4, 50))
    assert snapshot.mark_missed(seoul.url) == []
    seoul.at(kst(DAY, 9, 5))
    assert snapshot.mark_missed(seoul.url) == ["the snapshot of 2026-09-16 is MISSED now"]
    assert seoul.read().miss_reason == "dispatch did not run before the cutoff, so nothing was expected"
    assert seoul.dispatch().status == "MISSED"


def test_a_dispatch_after_nine_prepares_no_verdict(seoul: Seoul) -> None:
    seoul.at(kst(DAY, 9, 1))
    assert seoul.dispatch().words.startswith("MISSED – 2026-09-16: nothing was prepared before 09:00")
    assert seoul.read().status == "MISSED"
    assert list(seoul.alerts()) == ["snapshot/2026-09-16/MISSED"]


def test_with_dispatch_off_the_day_is_not_applicable(seoul: Seoul) -> None:
    seoul.sql("select * from collect.control('dispatch', '*', 'off', 'moving house', 'kim')")
    assert seoul.dispatch().opened == 0
    found = seoul.read()
    assert (found.status, found.late, found.items) == ("NOT_APPLICABLE", None, None)
    seoul.sql("select * from collect.control('dispatch', '*', 'on', 'moved', 'kim')")
    seoul.at(kst(DAY, 9))
    assert seoul.capture() == "ALREADY_NOT_APPLICABLE"
    assert seoul.alerts() == {}


def test_dispatch_switched_off_in_the_night_is_read_at_the_cutoff(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8))
    seoul.sql("select * from collect.control('dispatch', '*', 'off', 'moving house', 'kim')")
    seoul.at(kst(DAY, 9))
    assert seoul.capture() == "NOT_APPLICABLE"
    assert seoul.read().status == "NOT_APPLICABLE"


def test_dispatch_switched_off_in_the_night_is_no_missed_day_though_nobody_was_there_at_nine(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8))
    seoul.sql("select * from collect.control('dispatch', '*', 'off', 'moving house', 'kim')")
    seoul.at(kst(DAY, 9, 5))
    assert snapshot.mark_missed(seoul.url) == ["the snapshot of 2026-09-16 is NOT_APPLICABLE now"]
    found = seoul.read()
    assert (found.status, found.late, found.items, found.miss_reason) == ("NOT_APPLICABLE", None, None, None)
    assert seoul.alerts() == {}


def test_a_day_without_a_header_while_dispatch_was_off_is_not_applicable_and_not_missed(seoul: Seoul) -> None:
    seoul.sql("select * from collect.control('dispatch', '*', 'off', 'moving house', 'kim')")
    seoul.at(kst(DAY, 9, 5))
    assert snapshot.mark_missed(seoul.url) == ["the snapshot of 2026-09-16 is NOT_APPLICABLE now"]


def test_a_day_that_nothing_was_captured_on_because_everything_stood_still_is_captured_exactly_by_who_comes_first(
    seoul: Seoul,
) -> None:
    """Nothing passed the gate since the cutoff, so at ten the state is still that of nine, and says how late it is."""
    seoul.dispatch()
    good_morning(seoul)
    seoul.at(kst(DAY, 10))
    taken = capture_at(seoul.url, cutoff(DAY), "sla_capture")
    assert taken.by_this_call
    assert taken.snapshot.late == 0
    assert taken.snapshot.offset is not None
    assert taken.snapshot.offset >= timedelta(hours=1)


def test_a_whole_night_is_caught_up_by_the_first_writer_of_the_next_day(seoul: Seoul) -> None:
    seoul.dispatch()
    good_morning(seoul)
    tomorrow = DAY + timedelta(days=1)
    seoul.at(kst(tomorrow, 0, 1))
    assert seoul.dispatch().status == "PENDING"
    assert seoul.read().captured_by == "dispatch"
    assert seoul.read().late == 0
    assert seoul.read(tomorrow).status == "PENDING"


# --- it stays what it is


FINAL = (
    "update collect.sla_snapshots set late_count = 0",
    "update collect.sla_snapshots set capture_status = 'PENDING'",
    "update collect.sla_snapshots set capture_status = 'MISSED', miss_reason = 'x'",
    "update collect.sla_snapshots set snapshot_date = snapshot_date + 1",
    "delete from collect.sla_snapshots",
    "truncate collect.sla_snapshots",
    "update collect.sla_snapshot_sources set cycle_status = 'SUCCESS', is_late = false",
    "delete from collect.sla_snapshot_sources",
    "truncate collect.sla_snapshot_sources",
    'insert into collect.sla_snapshot_sources select (jsonb_populate_record(i, \'{"stream": "another"}\')).*'
    " from collect.sla_snapshot_sources i limit 1",
    'insert into collect.sla_snapshots select (jsonb_populate_record(s, \'{"snapshot_date": "2026-09-30",'
    ' "scheduled_at": "2026-09-30T00:00:00Z"}\')).* from collect.sla_snapshots s where capture_status = \'CAPTURED\'',
    "update collect.sla_expectations set slot = 'x'",
    "delete from collect.sla_expectations",
    "truncate collect.sla_expectations",
    "insert into collect.sla_expectations"
    " select snapshot_date, 'another', slot, run_date, window_start, due_at, session_date, created_at"
    " from collect.sla_expectations limit 1",
)


def test_nothing_of_a_final_snapshot_can_be_changed_added_or_taken_away(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 9))
    seoul.capture()
    before = seoul.read()
    untouched = seoul.sql("select * from collect.sla_snapshots order by snapshot_date")
    for statement in FINAL:
        for role in ("origin", "replica"):
            with connect(seoul.url) as connection:
                connection.execute(f"set session_replication_role = {role}")  # type: ignore[arg-type]
                with pytest.raises(psycopg.errors.RaiseException):
                    connection.execute(statement)  # type: ignore[arg-type]
    assert seoul.read() == before
    assert seoul.sql("select * from collect.sla_snapshots order by snapshot_date") == untouched


def test_no_transaction_ends_with_a_header_half_captured(seoul: Seoul) -> None:
    seoul.dispatch()
    with connect(seoul.url) as connection:
        connection.execute(
            "update collect.sla_snapshots set capture_status = 'CAPTURING' where snapshot_date = %s", (DAY,)
        )
        with pytest.raises(psycopg.errors.RaiseException, match="left half captured"):
            connection.commit()
    assert seoul.read().status == "PENDING"


def test_a_missed_snapshot_stays_missed(seoul: Seoul) -> None:
    seoul.at(kst(DAY, 9, 5))
    seoul.dispatch()
    for statement in ("update collect.sla_snapshots set miss_reason = 'x'", "delete from collect.sla_snapshots"):
        with pytest.raises(psycopg.errors.RaiseException):
            seoul.sql(statement)
    assert seoul.capture() == "ALREADY_MISSED"


def test_who_works_with_the_engine_needs_no_right_to_write_snapshots(seoul: Seoul) -> None:
    """A role that may write everything else passes the gate and takes the snapshot, but writes none by itself."""
    seoul.dispatch()
    name = seoul.one("select current_database() as name")["name"] + "_worker"
    kept = "collect.sla_snapshots, collect.sla_expectations, collect.sla_snapshot_sources"
    with connect(seoul.url, autocommit=True) as connection:
        run: Any = connection.execute
        run(f"create role {name}")
        try:
            run(f"grant usage on schema collect, ops to {name}")
            run(f"grant select, insert, update, delete on all tables in schema collect to {name}")
            run(f"revoke insert, update, delete on {kept} from {name}")
            seoul.at(kst(DAY, 9, 0, 1))
            run(f"set role {name}")
            for table in kept.split(", "):
                for statement in (f"delete from {table}", f"insert into {table} default values"):
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        run(statement)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                run("select collect.end_missed('2026-09-16', collect.clock(), 'x', 'y')")
            assert connection.execute("select path from collect.pass_gate('a worker')").fetchone() == {
                "path": "captured"
            }
            run("reset role")
        finally:
            run("reset role")
            run(f"drop owned by {name}")
            run(f"drop role {name}")
    assert seoul.read().captured_by == "a worker"


# --- the resident capturer


def test_the_capturer_waits_for_nine_by_the_databases_clock_and_records_its_offset(seoul: Seoul) -> None:
    seoul.dispatch()
    good_morning(seoul)
    seoul.at(kst(DAY, 8, 59, 59))
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        threading.Event().wait(seconds)

    taken = capture_at(seoul.url, cutoff(DAY), "sla_capture", nap=nap)
    assert taken.by_this_call
    assert taken.words.startswith("ALL GOOD – 09:00 of 2026-09-16: all 4 streams were complete (taken ")
    assert taken.snapshot.offset is not None
    assert timedelta() <= taken.snapshot.offset < timedelta(seconds=1)
    assert 0.3 < sum(naps) < 2


def test_the_capturer_notices_a_clock_that_is_moved_while_it_waits(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 58))
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            seoul.at(kst(DAY, 8, 59, 59.9))
        elif len(naps) > 3:
            threading.Event().wait(seconds)

    taken = capture_at(seoul.url, cutoff(DAY), "sla_capture", nap=nap)
    assert taken.by_this_call
    assert max(naps) <= snapshot.LOOK_SECONDS
    assert taken.snapshot.offset is not None
    assert taken.snapshot.offset < timedelta(seconds=1)


def test_two_capturers_take_one_snapshot(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 59, 59.4))
    both = [beside(lambda: capture_at(seoul.url, cutoff(DAY), "sla_capture")) for _ in range(2)]
    results = [each.result() for each in both]
    assert sorted(taken.by_this_call for taken in results) == [False, True]
    assert results[0].snapshot == results[1].snapshot
    assert len(seoul.alerts()) == 1


def test_a_capturer_that_is_told_to_stop_takes_nothing(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 58))
    taken = capture_at(seoul.url, cutoff(DAY), "sla_capture", may_go_on=lambda: False)
    assert taken.is_stopped
    assert not taken.by_this_call
    assert seoul.read().status == "PENDING"


def test_a_capturer_whose_connection_is_cut_comes_back_in_time(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 59, 58.8))
    cut: list[int] = []

    def nap(seconds: float) -> None:
        if not cut:
            rows = seoul.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'daybook capture' and datname = current_database()"
            )
            cut.append(len(rows))
        threading.Event().wait(seconds)

    taken = capture_at(seoul.url, cutoff(DAY), "sla_capture", nap=nap)
    assert cut == [1]
    assert taken.by_this_call


def test_a_capturer_behind_the_gate_takes_it_as_soon_as_it_is_free(seoul: Seoul) -> None:
    """A write that passed the gate before nine and commits after it is in the snapshot."""
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 59))
    seoul.work(KRX, kst(DAY, 8, 10), "RUNNING")
    with connect(seoul.url) as writer:
        writer.execute(
            "select collect.settle(%(cycle)s, %(token)s, %(status)s, %(facts)s)",
            seoul.settling(KRX, "SUCCESS", fetched=3),
        )
        seoul.at(kst(DAY, 9, 0, 1))
        taking = beside(lambda: capture_at(seoul.url, cutoff(DAY), "sla_capture"))
        wait_until_blocked(seoul.url)
        writer.commit()
    assert taking.result().by_this_call
    item = seoul.items()[KRX.name]
    assert (item.cycle_status, item.fetched_count) == ("SUCCESS", 3)
    assert item.gate_at is not None
    assert item.gate_at < kst(DAY, 9)


# --- history


def test_history_has_one_row_for_each_window_that_succeeded_or_failed(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 56))
    good = seoul.work(TWICE, kst(DAY, 3))
    bad = seoul.work(FINRA, kst(DAY, 7, 35), "FAILED")
    seoul.work(KRX, kst(DAY, 8, 10), "BUDGET_EXHAUSTED")
    seoul.work(DART, kst(DAY, 8, 55), "RUNNING")
    seoul.sql(
        "insert into collect.cycles"
        " (stream, mode, slot, run_id, cycle_status, is_complete, outcome, finished_at, created_at, updated_at)"
        " select %s, 'backfill', 'r/1', 'r', 'SUCCESS', true, 'success', t, t, t from collect.clock() t",
        FINRA.name,
    )
    rows = seoul.sql("select cycle_id, run_status, source from collect.run_history order by cycle_id")
    assert {(row["cycle_id"], row["run_status"], row["source"]) for row in rows} == {
        (good, "SUCCESS", "ecos"),
        (bad, "FAILED", "finra"),
    }


def test_a_reader_sees_a_header_with_all_its_items_or_none(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 9))
    with connect(seoul.url) as capturing:
        capturing.execute("select collect.capture(%s, 'the capturer')", (DAY,))
        found = seoul.read()
        # The cutoff has passed and the verdict is not known yet: that is not "nobody is late".
        assert (found.status, found.late, found.items) == ("PENDING", None, None)
        capturing.commit()
    assert len(seoul.read().items or ()) == 4


def test_instants_are_read_with_their_zone(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 9))
    seoul.capture()
    found = seoul.read()
    moments: list[datetime | None] = [found.scheduled_at, found.captured_at]
    for item in found.items or ():
        moments += [item.window_start, item.due_at]
    assert all(moment is not None and moment.tzinfo is not None for moment in moments)
