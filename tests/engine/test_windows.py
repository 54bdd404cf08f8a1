"""When a stream may ask: make-up windows, days on which the calendar is wrong, and the changes of clocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from include.calendars import SEOUL, calendar, last_instant, next_instant, window_for
from include.contract import CycleStatus, Outcome
from include.engine import windows
from tests.engine.cdn import Trouble
from tests.engine.desk import FRIDAY, MONDAY, NEW_YORK, STREAM, THURSDAY, TUESDAY, WEDNESDAY, Desk, ny

NEXT_MONDAY = date(2026, 9, 21)
SUCCESS, FAILED = CycleStatus.SUCCESS, CycleStatus.FAILED


@pytest.fixture
def plain(desk: Desk) -> Desk:
    """Without rereading, where a test counts requests for something else."""
    desk.stream = replace(STREAM, recheck=None)
    return desk


def first_word(text: str) -> str:
    return text.partition(" –")[0]


# --- make-up windows


def broken(desk: Desk, count: int = 4) -> None:
    desk.cdn.trouble("CNMS", TUESDAY, *[Trouble(503)] * count)


def test_a_failure_that_may_pass_is_made_up_for_ten_and_forty_minutes_and_four_hours_later(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    starts = [ny(TUESDAY, 18, 35) + offset for offset in (timedelta(0), *STREAM.schedule.make_up)]
    for start in starts:
        broken(desk)
        desk.at(start + timedelta(seconds=30))
        assert desk.poll().status is FAILED
        desk.at(start + timedelta(minutes=5))
        assert desk.tick() is None
    desk.at(ny(TUESDAY, 23, 59))
    assert desk.tick() is None
    rows = desk.cycles()
    assert [row["window_start"] for row in rows] == starts
    assert [row["kind"] for row in rows] == ["scheduled", "make_up", "make_up", "make_up"]
    assert {row["session_date"] for row in rows} == {TUESDAY}
    assert {row["failure_kind"] for row in rows} == {"retriable"}


def test_a_make_up_window_asks_only_for_what_is_not_held(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    broken(desk)
    desk.poll()
    desk.cdn.forget()
    desk.at(ny(TUESDAY, 18, 45, 30))
    verdict = desk.poll()
    assert verdict.status is SUCCESS
    assert desk.cdn.asked() == ["CNMSshvol20260915.txt"]
    assert desk.checkpoint() == TUESDAY
    desk.at(ny(TUESDAY, 22, 40))
    assert desk.tick() is None


def test_a_window_after_midnight_in_seoul_makes_up_for_the_session_of_the_window_before(desk: Desk) -> None:
    desk.cdn.publish(FRIDAY)
    desk.at(ny(FRIDAY))
    desk.cdn.trouble("CNMS", FRIDAY, *[Trouble(503)] * 4)
    desk.poll()
    desk.at(ny(FRIDAY, 22, 36))
    desk.poll()
    assert {(row["kind"], row["session_date"]) for row in desk.cycles()} == {
        ("scheduled", FRIDAY),
        ("make_up", FRIDAY),
    }


def test_what_was_refused_for_good_is_not_made_up_for(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("CNMS", TUESDAY, Trouble(403, {"Content-Type": "text/html"}, b"<html>go away</html>"))
    assert desk.poll().status is FAILED
    desk.cdn.forget()
    for hour in (19, 20, 22, 23):
        desk.at(ny(TUESDAY, hour, 45))
        assert desk.tick() is None
    assert desk.cdn.requests == []


def test_a_window_that_waited_in_vain_is_not_made_up_for(desk: Desk) -> None:
    desk.poll()
    desk.at(ny(WEDNESDAY, 0, 1))
    assert desk.poll().status is FAILED
    desk.cdn.forget()
    desk.at(ny(WEDNESDAY, 9, 0))
    assert desk.tick() is None
    assert desk.cdn.requests == []


def test_a_stream_without_make_up_windows_is_left_alone_for_the_day(desk: Desk) -> None:
    desk.stream = replace(STREAM, schedule=replace(STREAM.schedule, make_up=()))
    desk.cdn.publish(TUESDAY)
    broken(desk)
    desk.poll()
    desk.at(ny(TUESDAY, 23, 0))
    assert desk.tick() is None


def test_a_window_that_nobody_opened_in_time_opens_when_somebody_looks(desk: Desk) -> None:
    """The scheduler was down over the instant; the window keeps its own name and is only late."""
    desk.cdn.publish(TUESDAY)
    desk.at(ny(TUESDAY, 23, 50))
    assert desk.poll().status is SUCCESS
    row = desk.cycle()
    assert (row["window_start"], row["kind"]) == (ny(TUESDAY, 18, 35), "scheduled")
    assert row["finished_at"] > row["due_at"]


# --- the calendar is wrong


def test_a_day_that_stays_empty_between_filled_ones_is_proposed_as_closed(desk: Desk) -> None:
    desk.cdn.publish(MONDAY)
    desk.at(ny(MONDAY))
    desk.poll()
    desk.at(ny(TUESDAY))
    desk.poll()
    desk.at(ny(WEDNESDAY, 0, 1))
    desk.poll()
    assert desk.sql("select * from collect.calendar_exceptions") == []
    desk.cdn.publish(WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (SUCCESS, Outcome.PARTIAL)
    row = desk.one("select * from collect.calendar_exceptions")
    assert (row["calendar"], row["day"], row["state"]) == ("XNYS", TUESDAY, "proposed")
    assert "has for later sessions" in row["reason"]


def test_a_proposal_changes_nothing_until_an_operator_decides(desk: Desk) -> None:
    test_a_day_that_stays_empty_between_filled_ones_is_proposed_as_closed(desk)
    assert desk.pending("not_published")
    desk.cdn.publish(THURSDAY)
    desk.cdn.forget()
    desk.at(ny(THURSDAY))
    desk.poll()
    assert len(desk.cdn.asked(day=TUESDAY)) >= 5


def test_a_day_decided_closed_is_no_longer_asked_for_and_its_keys_wait_for_another_word(desk: Desk) -> None:
    test_a_day_that_stays_empty_between_filled_ones_is_proposed_as_closed(desk)
    decide(desk, TUESDAY, "closed")
    for day in (THURSDAY, FRIDAY, NEXT_MONDAY):
        desk.cdn.publish(day)
        desk.cdn.forget()
        desk.at(ny(day))
        verdict = desk.poll()
        assert verdict.outcome is Outcome.SUCCESS
        assert desk.cdn.asked(day=TUESDAY) == []
    assert len([key for key in desk.pending() if "2026-09-15" in key]) == 6


def test_a_day_decided_closed_in_advance_is_not_asked_for_at_all(plain: Desk) -> None:
    plain.cdn.publish(MONDAY)
    plain.at(ny(MONDAY))
    plain.poll()
    decide(plain, TUESDAY, "closed")
    plain.cdn.forget()
    plain.at(ny(TUESDAY))
    assert first_word(plain.poll().words) == "NOTHING DUE"
    assert plain.cdn.requests == []


def test_a_day_decided_open_against_the_calendar_is_asked_for(plain: Desk) -> None:
    labor_day = date(2026, 9, 7)
    decide(plain, labor_day, "open")
    plain.cdn.publish(labor_day)
    plain.at(ny(labor_day))
    assert plain.poll().status is SUCCESS
    assert plain.held_days() == {labor_day}


def decide(desk: Desk, day: date, state: str) -> None:
    windows.decide(desk.url, "XNYS", day, state, who="somebody", why="seen on the exchange's page")


# --- daylight saving


@pytest.mark.parametrize(
    ("day", "utc_hour"),
    [
        (date(2026, 3, 6), 23),
        (date(2026, 3, 9), 22),  # the Monday after clocks went forward
        (date(2026, 10, 30), 22),
        (date(2026, 11, 2), 23),  # the Monday after they went back
    ],
)
def test_windows_open_by_new_yorks_clock_in_summer_and_winter(plain: Desk, day: date, utc_hour: int) -> None:
    plain.cdn.publish(day)
    plain.at(ny(day, 18, 34))
    plain.tick()
    assert plain.cdn.asked(day=day) == []
    plain.at(ny(day, 18, 36))
    assert plain.poll().status is SUCCESS
    row = plain.cycle()
    assert (row["window_start"].hour, row["window_start"].minute, row["session_date"]) == (utc_hour, 35, day)
    assert plain.held_days() == {day}


def test_no_window_is_skipped_or_doubled_over_a_year() -> None:
    schedule = STREAM.schedule
    at, end = ny(date(2026, 1, 1), 0, 0), ny(date(2027, 1, 1), 0, 0)
    starts: list[datetime] = []
    while (at := next_instant(schedule.cron, schedule.timezone, at)) < end:
        starts.append(at)
    local = [start.astimezone(NEW_YORK) for start in starts]
    assert {(start.hour, start.minute) for start in local} == {(18, 35)}
    weekdays = [d for d in (date(2026, 1, 1) + timedelta(days=n) for n in range(365)) if d.weekday() < 5]
    assert [start.date() for start in local] == weekdays
    for start in starts[::17]:
        for moment in (start, start + timedelta(minutes=1), start + timedelta(hours=5)):
            assert last_instant(schedule.cron, schedule.timezone, moment) == start


def test_an_hour_that_does_not_exist_and_one_that_comes_twice_have_one_window_each() -> None:
    for day, cron in ((date(2026, 3, 8), "30 2 * * *"), (date(2026, 11, 1), "30 1 * * *")):
        start = ny(day, 0, 0)
        found = []
        at = start
        while (at := next_instant(cron, "America/New_York", at)) < start + timedelta(days=1):
            found.append(at)
        assert len(found) == 1
        for minutes in range(0, 60 * 26, 7):
            instant = found[0] + timedelta(minutes=minutes)
            if instant < next_instant(cron, "America/New_York", found[0]):
                assert last_instant(cron, "America/New_York", instant) <= instant


def test_a_window_is_named_by_its_instant_whoever_asks() -> None:
    days = calendar("XNYS")
    one = window_for(STREAM, ny(TUESDAY, 18, 35), days)
    assert one == window_for(STREAM, ny(TUESDAY, 18, 35).astimezone(SEOUL), days)
    assert one.slot == "2026-09-15T22:35:00Z"
    assert one.due_at - one.start == STREAM.schedule.allowance


def test_a_window_that_the_next_one_closes_is_told_in_the_same_transaction(desk: Desk) -> None:
    assert desk.poll().status is CycleStatus.PENDING
    desk.cdn.publish(WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    desk.poll()
    closed, _ = desk.cycles()
    assert (closed["cycle_status"], closed["failure_reason"]) == ("FAILED", "not published by its last try")
    told = desk.one("select * from ops.alerts where alert_key = %s", f"cycle/{closed['cycle_id']}/FAILED")
    assert told["created_at"] >= closed["finished_at"]
    assert "session 2026-09-15" in told["text"]
    assert "mode=backfill" in told["text"]


def test_a_day_behind_the_checkpoint_that_is_open_after_all_is_asked_for_by_itself(plain: Desk) -> None:
    saturday = date(2026, 9, 19)
    plain.cdn.publish(FRIDAY)
    plain.at(ny(FRIDAY))
    plain.poll()
    plain.cdn.publish(NEXT_MONDAY)
    plain.at(ny(NEXT_MONDAY))
    plain.poll()
    assert plain.checkpoint() == NEXT_MONDAY
    windows.decide(plain.url, "XNYS", saturday, "open", "an operator", "a special session")
    tuesday = NEXT_MONDAY + timedelta(days=1)
    plain.cdn.publish(tuesday)
    plain.at(ny(tuesday))
    assert plain.poll().status is SUCCESS
    assert len(plain.cdn.asked(day=saturday)) == 6
    assert {entry["why"] for entry in plain.pending().values()} == {"not_published"}
    plain.cdn.publish(saturday)
    wednesday = tuesday + timedelta(days=1)
    plain.cdn.publish(wednesday)
    plain.at(ny(wednesday))
    assert plain.poll().status is SUCCESS
    assert saturday in plain.held_days()
    asked = len(plain.cdn.asked(day=saturday))
    thursday = wednesday + timedelta(days=1)
    plain.cdn.publish(thursday)
    plain.at(ny(thursday))
    plain.poll()
    assert len(plain.cdn.asked(day=saturday)) <= asked + 1
    assert plain.checkpoint() == thursday


def test_a_closed_day_that_gave_data_in_a_backfill_is_proposed_as_open(plain: Desk) -> None:
    labor_day = date(2026, 9, 7)
    plain.cdn.publish(labor_day, facilities=("CNMS",))
    plain.backfill(labor_day)
    proposal = plain.one("select * from collect.calendar_exceptions")
    assert (proposal["calendar"], proposal["day"], proposal["state"]) == ("XNYS", labor_day, "proposed")
    assert "which the calendar calls closed" in proposal["reason"]
    assert plain.held_days() == {labor_day}


def test_an_expected_day_that_a_backfill_finds_empty_beside_a_filled_one_is_proposed_as_closed(plain: Desk) -> None:
    plain.cdn.publish(TUESDAY)
    plain.backfill(MONDAY, TUESDAY)
    proposal = plain.one("select * from collect.calendar_exceptions")
    assert (proposal["day"], proposal["state"]) == (MONDAY, "proposed")
    assert "but has for later sessions" in proposal["reason"]


# --- the calendar is wrong and the upstream says "nothing" rather than "not yet"


def exceptions(desk: Desk) -> dict[date, str]:
    return {row["day"]: row["state"] for row in desk.sql("select day, state from collect.calendar_exceptions")}


def test_a_session_that_is_answered_with_nothing_between_filled_ones_is_proposed_as_closed(plain: Desk) -> None:
    plain.cdn.publish(MONDAY)
    plain.at(ny(MONDAY))
    plain.poll()
    plain.cdn.publish(TUESDAY, rows={})
    plain.at(ny(TUESDAY))
    assert (plain.poll().status, plain.checkpoint()) == (SUCCESS, TUESDAY)
    assert exceptions(plain) == {}
    plain.cdn.publish(WEDNESDAY)
    plain.at(ny(WEDNESDAY))
    assert plain.poll().outcome is Outcome.SUCCESS
    assert exceptions(plain) == {TUESDAY: "proposed"}
    # An operator's word stays, whatever is seen later.
    decide(plain, TUESDAY, "rejected")
    plain.cdn.publish(THURSDAY)
    plain.at(ny(THURSDAY))
    plain.poll()
    assert exceptions(plain) == {TUESDAY: "rejected"}


def test_two_closures_in_a_row_are_both_proposed_whichever_kind_of_nothing_they_were(plain: Desk) -> None:
    for day, rows in ((MONDAY, None), (TUESDAY, {})):
        plain.cdn.publish(day, rows=rows)
        plain.at(ny(day))
        plain.poll()
    plain.at(ny(WEDNESDAY))
    plain.poll()
    plain.cdn.publish(THURSDAY)
    plain.at(ny(THURSDAY))
    plain.poll()
    assert exceptions(plain) == {TUESDAY: "proposed", WEDNESDAY: "proposed"}


def test_a_backfill_proposes_a_day_without_anything_in_whatever_order_it_is_collected(plain: Desk) -> None:
    plain.cdn.publish(MONDAY, rows={})
    plain.backfill(MONDAY)
    assert exceptions(plain) == {}
    plain.cdn.publish(TUESDAY)
    plain.backfill(TUESDAY)
    assert exceptions(plain) == {MONDAY: "proposed"}
    plain.sql("delete from collect.calendar_exceptions")
    plain.backfill(MONDAY, force=True)
    assert exceptions(plain) == {MONDAY: "proposed"}


def test_a_day_is_not_proposed_where_not_all_of_it_was_asked_for_or_answered(plain: Desk) -> None:
    """One facility says nothing of a day; that the day is missing is known only when all have."""
    plain.cdn.publish(TUESDAY)
    plain.backfill(TUESDAY)
    plain.cdn.publish(MONDAY, rows={})
    plain.backfill(MONDAY, keys=("CNMS", "FNRA"))
    assert exceptions(plain) == {}
    plain.cdn.trouble("FORF", MONDAY, *[Trouble(500)] * 12)
    plain.backfill(MONDAY)
    assert exceptions(plain) == {}
    plain.cdn.put("FORF", MONDAY, {"AAPL": (1, 0, 2)})
    plain.backfill(MONDAY)
    assert exceptions(plain) == {}
    assert plain.held_days() == {MONDAY, TUESDAY}


def test_no_day_is_proposed_on_a_calendar_without_closed_days(plain: Desk) -> None:
    plain.stream = replace(plain.stream, calendar="DAILY")
    plain.declare()
    plain.cdn.publish(MONDAY, rows={})
    plain.cdn.publish(TUESDAY)
    plain.backfill(MONDAY, TUESDAY)
    assert plain.held_days() == {TUESDAY}
    assert exceptions(plain) == {}


def test_federal_days_are_told_by_the_rules_of_the_law() -> None:
    days = calendar("US_FEDERAL")
    year = [date(2026, 1, 1) + timedelta(days=n) for n in range(365)]
    closed = [day for day in year if day.weekday() < 5 and not days.is_session(day)]
    assert [f"{day:%m-%d}" for day in closed] == [
        "01-01", "01-19", "02-16", "05-25", "06-19", "07-03", "09-07", "10-12", "11-11", "11-26", "12-25",
    ]  # fmt: skip
    # Good Friday, on which the exchange is closed; Columbus Day, on which it is open.
    assert days.is_session(date(2026, 4, 3))
    assert calendar("XNYS").is_session(date(2026, 10, 12))
    # New Year's Day of a Saturday is kept the year before; Juneteenth was no holiday of the offices in 2021.
    assert not days.is_session(date(2021, 12, 31))
    assert days.is_session(date(2021, 6, 18))
    assert calendar("US_FEDERAL", {date(2026, 12, 24): False}).sessions(date(2026, 12, 23), date(2026, 12, 28)) == [
        date(2026, 12, 23),
        date(2026, 12, 28),
    ]
