"""Poll windows: the right sessions held, no hole, no needless request, whatever is late, closed or down."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from include.calendars import calendar
from include.contract import Budget, CycleStatus, Mode, Outcome, Recheck
from include.engine import asking, cycle
from include.engine.db import connect, query
from tests.engine.cdn import FACILITIES, Trouble
from tests.engine.desk import FRIDAY, MONDAY, SMALL, STREAM, THURSDAY, TUESDAY, WEDNESDAY, Desk, ny

REQUIRED = tuple(name for name in FACILITIES if name != "FNRA")
PENDING, SUCCESS, FAILED, EXHAUSTED = (
    CycleStatus.PENDING,
    CycleStatus.SUCCESS,
    CycleStatus.FAILED,
    CycleStatus.BUDGET_EXHAUSTED,
)

# Without rereading, where a test counts requests for something else.
PLAIN = replace(STREAM, recheck=None)


@pytest.fixture
def plain(desk: Desk) -> Desk:
    desk.stream = PLAIN
    return desk


def first_word(text: str) -> str:
    return text.partition(" –")[0]


# --- an ordinary evening


def test_a_session_is_asked_for_once_and_held(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (SUCCESS, Outcome.SUCCESS)
    assert first_word(verdict.words) == "DONE"
    assert "window 2026-09-16 07:35 KST, session 2026-09-15" in verdict.words
    assert Counter(desk.cdn.asked()) == {f"{name}shvol20260915.txt": 1 for name in FACILITIES}
    assert desk.checkpoint() == TUESDAY
    assert desk.pending("failed", "not_published", "discovered") == {}
    row = desk.cycle()
    assert (row["run_date"], row["session_date"]) == (WEDNESDAY, TUESDAY)
    assert (row["new_count"], row["detail_request_count"], row["detail_failure_count"]) == (15, 6, 0)
    assert desk.alerts() == []


def test_a_window_that_is_done_is_not_worked_again(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    desk.poll()
    desk.advance(minutes=30)
    assert desk.tick() is None
    assert len(desk.cycles()) == 1


def test_fridays_session_is_collected_by_a_window_with_saturdays_run_date(plain: Desk) -> None:
    plain.at(ny(FRIDAY))
    plain.cdn.publish(FRIDAY)
    plain.poll()
    row = plain.cycle()
    assert (row["run_date"], row["session_date"]) == (date(2026, 9, 19), FRIDAY)
    assert plain.held_days() == {FRIDAY}


def test_before_the_window_nothing_of_the_day_is_asked(plain: Desk) -> None:
    plain.cdn.publish(MONDAY)
    plain.cdn.publish(TUESDAY)
    plain.at(ny(TUESDAY, 18, 34, 50))
    plain.poll()
    assert plain.cycle()["session_date"] == MONDAY
    assert plain.cdn.asked(day=TUESDAY) == []


# --- nothing due


def test_on_a_holiday_no_request_is_made(plain: Desk) -> None:
    """Labor Day: the window opens, and its session is Friday's, which is held."""
    friday, labor_day = date(2026, 9, 4), date(2026, 9, 7)
    plain.cdn.publish(friday)
    plain.at(ny(friday))
    plain.poll()
    plain.cdn.forget()
    plain.at(ny(labor_day))
    verdict = plain.poll()
    assert (verdict.status, first_word(verdict.words)) == (SUCCESS, "NOTHING DUE")
    assert plain.cdn.requests == []
    assert plain.cycle()["success_reason"] == "nothing_due"


def test_rechecks_do_not_make_a_holiday_ask(desk: Desk) -> None:
    friday, labor_day, tuesday = date(2026, 9, 4), date(2026, 9, 7), date(2026, 9, 8)
    desk.cdn.publish(friday)
    desk.cdn.publish(tuesday)
    desk.at(ny(friday))
    desk.poll()
    desk.cdn.forget()
    desk.at(ny(labor_day))
    assert first_word(desk.poll().words) == "NOTHING DUE"
    assert desk.cdn.requests == []
    desk.at(ny(tuesday))
    desk.poll()
    assert len(desk.cdn.asked(day=friday)) == 6


def test_on_a_weekend_no_window_opens(plain: Desk) -> None:
    plain.cdn.publish(FRIDAY)
    plain.at(ny(FRIDAY))
    plain.poll()
    for day in (date(2026, 9, 19), date(2026, 9, 20)):
        plain.at(ny(day))
        assert plain.tick() is None
    assert len(plain.cycles()) == 1


# --- not yet


def test_what_is_not_published_yet_waits_for_its_next_try(desk: Desk) -> None:
    verdict = desk.poll()
    assert (verdict.status, first_word(verdict.words)) == (PENDING, "WAITING")
    assert "not published yet" in verdict.words
    assert verdict.next_eligible_at == ny(TUESDAY, 19, 0)
    row = desk.cycle()
    assert (row["cycle_status"], row["failure_reason"]) == (PENDING, None)
    assert desk.tick() is None
    assert desk.checkpoint() is None
    assert desk.alerts() == []


def test_a_late_file_is_taken_by_the_next_try_and_only_what_is_missing_is_asked(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY, facilities=("CNMS", "FNSQ", "FNRA"))
    desk.poll()
    assert len(desk.rows()) == 6
    desk.cdn.forget()
    desk.cdn.publish(TUESDAY)
    desk.at(ny(TUESDAY, 19, 0, 1))
    verdict = desk.poll()
    assert verdict.status is SUCCESS
    assert desk.cdn.asked() == [f"{name}shvol20260915.txt" for name in ("FNQC", "FNYX", "FORF")]
    assert len(desk.cycles()) == 1
    assert desk.checkpoint() == TUESDAY


def test_tries_follow_the_schedule_until_the_last(desk: Desk) -> None:
    verdict = desk.poll()
    tries = 1
    while verdict.status is PENDING:
        assert verdict.next_eligible_at is not None
        desk.at(verdict.next_eligible_at + timedelta(seconds=1))
        verdict = desk.poll()
        tries += 1
    # 18:40, 19:00, and every half hour to midnight; past it the window is over.
    assert tries == 12
    assert Counter(desk.cdn.asked("CNMS")) == {"CNMSshvol20260915.txt": 12}


def test_past_the_last_try_the_window_has_failed_and_its_keys_are_pending(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY, facilities=("CNMS",))
    desk.poll()
    desk.at(ny(WEDNESDAY, 0, 1))
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (FAILED, Outcome.FAILED_RETRIABLE)
    row = desk.cycle()
    assert (row["failure_reason"], row["failure_kind"]) == ("not published by its last try", "retriable")
    missing = desk.pending("not_published")
    assert sorted(missing) == [f"{name}/2026-09-15" for name in ("FNQC", "FNSQ", "FNYX", "FORF")]
    assert all(entry["attempts"] == 1 and entry["last_error"] for entry in missing.values())
    assert desk.checkpoint() is None
    assert len(desk.alerts()) == 1
    assert "mode=backfill" in verdict.words


def test_a_missing_adf_file_does_not_make_the_session_partial(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY, facilities=REQUIRED)
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome, verdict.is_partial) == (SUCCESS, Outcome.SUCCESS, False)
    assert desk.checkpoint() == TUESDAY
    # It may still come: it is read again with the others, and holds nothing up.
    assert desk.pending()["FNRA/2026-09-15"]["why"] == "recheck"


def test_an_adf_file_that_comes_later_is_taken(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY, facilities=REQUIRED)
    desk.poll()
    desk.cdn.publish(WEDNESDAY)
    desk.cdn.put("FNRA", TUESDAY, {"AAPL": (1, 0, 2, "D")})
    desk.at(ny(WEDNESDAY))
    desk.poll()
    assert desk.values("FNRA", TUESDAY) == {"AAPL": "1"}


# --- late


def test_a_session_that_no_window_got_is_taken_by_the_next(desk: Desk) -> None:
    desk.poll()
    desk.at(ny(WEDNESDAY, 0, 1))
    desk.poll()
    desk.cdn.publish(TUESDAY)
    desk.cdn.publish(WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    verdict = desk.poll()
    assert verdict.status is SUCCESS
    assert desk.held_days() == {TUESDAY, WEDNESDAY}
    assert desk.checkpoint() == WEDNESDAY
    assert desk.pending("not_published", "failed", "discovered") == {}


def test_a_session_of_a_window_that_a_newer_one_closed_is_not_lost(desk: Desk) -> None:
    """Also where it was the stream's very first window, so that no checkpoint remembers it."""
    desk.poll()
    assert desk.cycle()["cycle_status"] == PENDING
    desk.cdn.publish(TUESDAY)
    desk.cdn.publish(WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    desk.poll()
    assert [row["cycle_status"] for row in desk.cycles()] == [FAILED, SUCCESS]
    assert desk.held_days() == {TUESDAY, WEDNESDAY}


def test_a_session_of_a_window_whose_holder_vanished_is_not_lost(desk: Desk) -> None:
    desk.open_poll(ny(TUESDAY, 18, 35))
    desk.claimed()
    desk.cdn.publish(TUESDAY)
    desk.cdn.publish(WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    desk.poll()
    assert [row["cycle_status"] for row in desk.cycles()] == [FAILED, SUCCESS]
    assert desk.held_days() == {TUESDAY, WEDNESDAY}


def test_a_late_session_is_asked_for_daily_ten_times_and_then_weekly(plain: Desk) -> None:
    """Sixty days on which everything else is published in time."""
    days = calendar("XNYS")
    missing = MONDAY
    plain.stream = SMALL
    asked: list[date] = []
    plain.at(ny(missing))
    plain.poll()
    plain.at(ny(TUESDAY, 0, 1))
    assert plain.poll().status is FAILED
    day = missing
    for _ in range(45):
        day = days.session_offset(day, 1)
        plain.cdn.publish(day, {"AAPL": (1, 0, 2)}, facilities=("CNMS",))
        plain.cdn.forget()
        plain.at(ny(day))
        verdict = plain.poll()
        was_asked = bool(plain.cdn.asked("CNMS", missing))
        assert verdict.outcome is (Outcome.PARTIAL if was_asked else Outcome.SUCCESS)
        if was_asked:
            asked.append(day)
    gaps = [(later - earlier).days for earlier, later in pairwise(asked)]
    assert gaps[:8] == [1, 1, 1, 3, 1, 1, 1, 1], gaps
    assert len(gaps) > 12
    assert all(gap == 7 for gap in gaps[10:]), gaps
    # It never became "no data": it is still pending, and taken on a day on which it is there.
    plain.cdn.publish(missing)
    for _ in range(5):
        day = days.session_offset(day, 1)
        plain.cdn.publish(day)
        plain.at(ny(day))
        plain.poll()
    assert missing in plain.held_days()
    assert plain.pending() == {}


def test_a_session_still_missing_is_asked_for_once_a_window_not_at_each_of_its_tries(plain: Desk) -> None:
    plain.poll()
    plain.at(ny(WEDNESDAY, 0, 1))
    plain.poll()
    plain.cdn.forget()
    plain.at(ny(WEDNESDAY))
    verdict = plain.poll()
    for _ in range(3):
        assert verdict.status is PENDING
        assert verdict.next_eligible_at is not None
        plain.at(verdict.next_eligible_at + timedelta(seconds=1))
        verdict = plain.poll()
    assert len(plain.cdn.asked("CNMS", WEDNESDAY)) == 4
    assert len(plain.cdn.asked("CNMS", TUESDAY)) == 1


# --- rechecks and revisions


def test_a_session_is_read_again_in_its_next_five_windows_with_its_validators(desk: Desk) -> None:
    days = calendar("XNYS")
    sessions = days.sessions(TUESDAY, date(2026, 9, 25))
    for day in sessions:
        desk.cdn.publish(day)
        desk.at(ny(day))
        assert desk.poll().status is SUCCESS
    again = [one for one in desk.cdn.requests if one.name == "CNMSshvol20260915.txt"]
    assert [one.status for one in again] == [200, 304, 304, 304, 304, 304]
    assert all("if-none-match" in one.headers for one in again[1:])
    assert "CNMS/2026-09-15" not in desk.pending()
    classes = Counter(row["answer_class"] for row in desk.sql("select answer_class from collect.fetches"))
    assert classes["unchanged"] > 0
    assert desk.one("select count(*) as n from collect.raw_objects")["n"] == len({*desk.cdn.files.values()})


def test_a_revision_replaces_the_rows_and_keeps_the_old_ones_in_the_history(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    desk.poll()
    desk.cdn.put("CNMS", TUESDAY, {"AAPL": ("11.5", 1, "20.25"), "ABRpD": (1, 0, 2), "NA": (3, 0, 4)})
    desk.cdn.publish(WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    verdict = desk.poll()
    assert (verdict.counts.new, verdict.counts.changed) == (15, 1)
    assert desk.values()["AAPL"] == "11.5"
    (old,) = desk.history()
    assert (old["symbol"], str(old["short_volume"]), old["reason"]) == ("AAPL", "10.500000", "revised")
    assert old["sent_at"] < old["ended_at"] < desk.now()


def test_a_failed_recheck_holds_nothing_up_and_comes_again(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    desk.poll()
    desk.cdn.publish(WEDNESDAY)
    desk.cdn.trouble("CNMS", TUESDAY, *[Trouble(500)] * 4)
    desk.at(ny(WEDNESDAY))
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (SUCCESS, Outcome.PARTIAL)
    assert desk.checkpoint() == WEDNESDAY
    assert desk.pending()["CNMS/2026-09-15"]["why"] == "failed"
    desk.cdn.publish(THURSDAY)
    desk.at(ny(THURSDAY))
    assert desk.poll().outcome is Outcome.SUCCESS
    assert desk.pending()["CNMS/2026-09-15"]["why"] == "recheck"


def test_a_backfill_does_not_end_the_rechecks_of_a_recent_session(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    desk.poll()
    before = desk.pending("recheck")
    assert len(before) == 6
    desk.backfill(TUESDAY)
    assert sorted(desk.pending("recheck")) == sorted(before)


# --- after days of downtime


def test_after_ten_dead_days_the_first_window_catches_up_newest_first(plain: Desk) -> None:
    days = calendar("XNYS")
    plain.cdn.publish(TUESDAY)
    plain.poll()
    missed = days.sessions(WEDNESDAY, date(2026, 9, 29))
    assert len(missed) == 10
    for day in missed:
        plain.cdn.publish(day)
    plain.cdn.forget()
    plain.at(ny(missed[-1]))
    verdict = plain.poll()
    assert verdict.status is SUCCESS
    asked = [name[9:17] for name in plain.cdn.asked("CNMS")]
    assert asked == [f"{day:%Y%m%d}" for day in reversed(missed)]
    assert len(plain.cdn.requests) == 60
    assert plain.held_days() == {TUESDAY, *missed}
    assert plain.checkpoint() == missed[-1]
    # Windows that never ran are not invented afterwards.
    assert len(plain.cycles()) == 2


def test_a_catch_up_keeps_to_its_budget_and_the_checkpoint_to_whole_ground(plain: Desk) -> None:
    """Four days' worth of details a day: what is left out is counted, stays due, and is taken by the next window."""
    days = calendar("XNYS")
    plain.stream = replace(PLAIN, budget=replace(PLAIN.budget, day_details=24, reason="a test"))
    plain.cdn.publish(TUESDAY)
    plain.poll()
    missed = days.sessions(WEDNESDAY, date(2026, 9, 29))
    for day in missed:
        plain.cdn.publish(day)
    plain.cdn.forget()
    plain.at(ny(missed[-1]))
    verdict = plain.poll()
    assert (verdict.status, verdict.outcome, first_word(verdict.words)) == (EXHAUSTED, Outcome.SUCCESS, "BUDGET")
    row = plain.cycle()
    assert (row["budget_exhausted_reason"], row["detail_request_count"], row["detail_skipped_count"]) == (
        "DETAIL_LIMIT",
        24,
        36,
    )
    assert row["is_complete"] is False
    assert plain.held_days() == {TUESDAY, *missed[-4:]}
    assert plain.checkpoint() == TUESDAY
    day = missed[-1]
    for _ in range(3):
        day = days.session_offset(day, 1)
        plain.cdn.publish(day)
        plain.at(ny(day))
        plain.poll()
    assert set(missed) <= plain.held_days()
    assert plain.checkpoint() == day
    assert Counter(plain.cdn.asked()).most_common(1)[0][1] == 1
    told, recovered = plain.alerts()
    assert "has run out of its day's budget 2 days running" in told
    assert recovered.startswith("RECOVERED: finra.short_volume is well again")


def test_a_window_that_begins_with_the_days_budget_spent_ends_without_a_request(plain: Desk) -> None:
    """Summed over the stream's windows of one KST date: the make-up window of the same day has nothing left."""
    plain.stream = replace(PLAIN, budget=replace(PLAIN.budget, day_details=3, reason="a test"))
    plain.cdn.publish(TUESDAY)
    assert plain.poll().status is EXHAUSTED
    assert len(plain.cdn.requests) == 3
    plain.open_poll(ny(TUESDAY, 19, 5), kind="make_up")
    plain.at(ny(TUESDAY, 19, 6))
    plain.cdn.forget()
    verdict = plain.poll()
    assert (verdict.status, verdict.requests) == (EXHAUSTED, 0)
    assert plain.cdn.requests == []
    plain.at(ny(WEDNESDAY))
    plain.poll()
    assert len(plain.cdn.requests) == 3


def test_items_count_against_the_day_too(plain: Desk) -> None:
    plain.stream = replace(PLAIN, budget=replace(PLAIN.budget, day_items=100, reason="a test"))
    many = {f"S{number}": (1, 0, 2) for number in range(80)}
    plain.cdn.publish(TUESDAY, many)
    verdict = plain.poll()
    assert verdict.status is EXHAUSTED
    assert plain.cycle()["budget_exhausted_reason"] == "ITEM_LIMIT"
    assert 0 < len(plain.cdn.requests) < 6


def test_a_slice_that_used_its_budget_goes_on_at_once_with_the_rest(plain: Desk) -> None:
    plain.stream = replace(PLAIN, budget=Budget(day_items=10**6, slice_items=60, slice_seconds=60, reason="a test"))
    plain.cdn.publish(TUESDAY, {f"S{number}": (1, 0, 2) for number in range(80)})
    verdicts = [plain.poll()]
    while verdicts[-1].status is PENDING:
        assert first_word(verdicts[-1].words) == "GOING ON"
        assert verdicts[-1].next_eligible_at is None
        verdicts.append(plain.poll())
    assert len(verdicts) > 3
    assert verdicts[-1].status is SUCCESS
    assert Counter(plain.cdn.asked()).most_common(1)[0][1] == 1
    assert len(plain.cycles()) == 1
    row = plain.cycle()
    assert (row["attempt"], row["new_count"]) == (len(verdicts), 400)


@pytest.fixture
def slow(plain: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Each answer takes a minute on the worker's own clock, and a slice has two."""
    plain.stream = replace(PLAIN, budget=replace(PLAIN.budget, slice_seconds=90))
    plain.cdn.publish(TUESDAY)
    answers: list[str] = []
    plain.cdn.before = answers.append
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 60 * len(answers))
    monkeypatch.setattr(asking, "time", clock)
    monkeypatch.setattr(cycle, "time", clock)
    return plain


def test_a_slice_that_used_its_time_says_so_on_the_cycle_and_the_next_slice_goes_on(slow: Desk) -> None:
    verdicts = [slow.poll()]
    while verdicts[-1].status is PENDING:
        assert first_word(verdicts[-1].words) == "GOING ON"
        assert "SLICE_TIME_LIMIT" in verdicts[-1].words
        assert (slow.cycle()["budget_exhausted_reason"], slow.cycle()["next_eligible_at"]) == ("SLICE_TIME_LIMIT", None)
        verdicts.append(slow.poll())
    assert [verdict.requests for verdict in verdicts] == [2, 2, 2]
    assert (verdicts[-1].outcome, slow.cycle()["budget_exhausted_reason"]) == (Outcome.SUCCESS, None)


def test_a_window_whose_next_one_opens_between_two_of_its_slices_is_out_of_budget_and_hands_on(slow: Desk) -> None:
    """It was published and did not fail: there was more to do than time for it."""
    assert slow.poll().status is PENDING
    slow.cdn.publish(WEDNESDAY)
    slow.at(ny(WEDNESDAY))
    while slow.poll().status is PENDING:
        pass
    first, second = slow.cycles()
    assert (first["cycle_status"], first["budget_exhausted_reason"]) == (EXHAUSTED, "SLICE_TIME_LIMIT")
    assert (first["outcome"], first["is_complete"], first["abnormal"]) == (Outcome.SUCCESS, False, None)
    assert second["cycle_status"] == SUCCESS
    assert slow.alerts() == []
    assert slow.held_days() == {TUESDAY, WEDNESDAY}
    assert slow.checkpoint() == WEDNESDAY
    assert Counter(slow.cdn.asked()).most_common(1)[0][1] == 1


def test_windows_that_run_out_of_budget_between_slices_are_told_on_the_second_day(slow: Desk) -> None:
    """Nobody settles such a window: whoever opens the next one knows."""
    assert slow.poll().status is PENDING
    for day, told in ((WEDNESDAY, 0), (THURSDAY, 1)):
        slow.cdn.publish(day)
        slow.at(ny(day))
        assert slow.poll().status is PENDING
        assert len([text for text in slow.alerts() if "out of its day's budget 2 days running" in text]) == told
    while slow.poll().status is PENDING:
        pass
    assert "RECOVERED" in slow.alerts()[-1]


def test_a_window_that_was_stopped_and_never_taken_up_again_is_not_blamed_on_the_upstream(plain: Desk) -> None:
    plain.cdn.publish(TUESDAY)
    assert plain.poll(stop=lambda: len(plain.cdn.asked()) > 0).is_stopped
    plain.cdn.publish(WEDNESDAY)
    plain.at(ny(WEDNESDAY))
    assert plain.poll().status is SUCCESS
    first, _ = plain.cycles()
    assert (first["cycle_status"], first["failure_reason"]) == (FAILED, "stopped, and not taken up again")
    (told,) = [text for text in plain.alerts() if "RECOVERED" not in text]
    assert "stopped, and not taken up again" in told
    assert "published" not in told
    assert plain.held_days() == {TUESDAY, WEDNESDAY}


def test_a_worker_that_dies_in_its_next_slice_leaves_no_budget_to_be_blamed(slow: Desk) -> None:
    assert slow.poll().status is PENDING
    slow.claimed()
    assert slow.cycle()["budget_exhausted_reason"] is None


# --- nothing where there should be something


def test_a_session_answered_with_nothing_where_that_is_never_right_is_asked_for_again_seldom_and_for_long(
    plain: Desk,
) -> None:
    plain.stream = replace(SMALL, empty_can_be_right=False)
    plain.declare()
    plain.cdn.publish(TUESDAY, {})
    verdict = plain.poll()
    assert (verdict.status, plain.cycle()["abnormal"]) == (SUCCESS, True)
    (entry,) = plain.pending().values()
    assert (entry["why"], entry["next_try_at"] - plain.now() > timedelta(days=6)) == ("asked_none", True)
    plain.cdn.forget()
    plain.cdn.publish(WEDNESDAY)
    plain.at(ny(WEDNESDAY))
    plain.poll()
    assert plain.cdn.asked(day=TUESDAY) == []
    # A week later it is asked for once more, also where the upstream says that nothing has changed.
    plain.cdn.publish(date(2026, 9, 22))
    plain.at(ny(date(2026, 9, 22)))
    plain.poll()
    assert [one.status for one in plain.cdn.requests if "20260915" in one.name] == [304]
    assert plain.pending()["CNMS/2026-09-15"]["attempts"] == 2
    plain.cdn.publish(TUESDAY)
    plain.cdn.publish(date(2026, 9, 29))
    plain.at(ny(date(2026, 9, 29)))
    plain.poll()
    assert TUESDAY in plain.held_days()
    assert "CNMS/2026-09-15" not in plain.pending()


def test_the_last_words_of_a_window_tell_of_all_its_slices(plain: Desk) -> None:
    plain.stream = replace(PLAIN, budget=Budget(day_items=10**6, slice_items=60, slice_seconds=60, reason="a test"))
    plain.cdn.publish(TUESDAY, {f"S{number}": (1, 0, 2) for number in range(80)})
    while (verdict := plain.poll()).status is PENDING:
        assert verdict.counts.new < 400
    assert verdict.words.startswith("DONE")
    assert f"(400 rows read, 400 new; {len(plain.cdn.requests)} requests)" in verdict.words


# --- stopped in good order


def test_a_stopped_slice_gives_back_at_once_and_the_next_attempt_applies_what_it_stored(plain: Desk) -> None:
    plain.cdn.publish(TUESDAY)
    points: list[str] = []
    verdict = plain.poll(signal=points.append, stop=lambda: points.count("stored") >= 2)
    assert (verdict.status, verdict.is_stopped, first_word(verdict.words)) == (PENDING, True, "STOPPED")
    assert len(plain.cdn.requests) == 2
    assert plain.rows() == []
    row = plain.cycle()
    assert (row["cycle_status"], row["lease_token"], row["next_eligible_at"]) == (PENDING, None, None)
    assert plain.poll().status is SUCCESS
    assert Counter(plain.cdn.asked()) == {f"{name}shvol20260915.txt": 1 for name in FACILITIES}
    assert len(plain.rows()) == 15


def test_a_worker_that_is_stopped_before_it_claims_has_nothing_to_give_back(plain: Desk) -> None:
    plain.cdn.publish(TUESDAY)
    assert plain.tick(stop=lambda: True) is None
    row = plain.cycle()
    assert (row["cycle_status"], row["attempt"], row["worked_by"]) == (PENDING, 0, None)
    assert plain.poll().status is SUCCESS


def test_a_worker_that_is_told_to_stop_in_the_middle_of_an_answer_drops_it_and_the_next_asks_again(
    plain: Desk,
) -> None:
    plain.cdn.publish(TUESDAY)
    stopped: list[str] = []
    plain.cdn.before = stopped.append
    verdict = plain.poll(stop=lambda: bool(stopped))
    assert verdict.is_stopped
    assert plain.rows() == []
    plain.cdn.before = lambda name: None
    assert plain.poll().status is SUCCESS
    assert Counter(plain.cdn.asked()) == {f"{n}shvol20260915.txt": 2 if n == "CNMS" else 1 for n in FACILITIES}


def test_a_worker_that_is_told_to_stop_while_it_waits_sends_nothing_more(plain: Desk) -> None:
    plain.cdn.publish(TUESDAY)
    plain.cdn.trouble("CNMS", TUESDAY, Trouble(503))
    naps: list[float] = []
    verdict = plain.poll(nap=naps.append, stop=lambda: bool(naps))
    assert verdict.is_stopped
    assert plain.cdn.asked() == ["CNMSshvol20260915.txt"]
    assert max(naps) <= 1.0
    assert plain.poll().status is SUCCESS


def test_two_workers_never_work_one_window_at_a_time(plain: Desk) -> None:
    plain.cdn.publish(TUESDAY)
    others: list[Any] = []

    def meanwhile(name: str) -> None:
        others.append(plain.tick())

    plain.cdn.before = meanwhile
    assert plain.poll().status is SUCCESS
    assert others == [None] * 6
    assert len(plain.cdn.requests) == 6


# --- what an operator may have set


def test_no_window_opens_for_a_stream_that_is_frozen_or_out_of_service(plain: Desk) -> None:
    plain.cdn.publish(TUESDAY)
    plain.sql("insert into collect.controls values ('all', '*', 'frozen', 'a test', 'somebody', collect.clock())")
    assert plain.tick() is None
    assert plain.cycles() == []
    plain.sql("delete from collect.controls")
    plain.sql("update collect.streams set active = false")
    assert plain.tick() is None
    assert plain.cycles() == []
    plain.sql("update collect.streams set active = true")
    assert plain.poll().status is SUCCESS
    assert plain.cdn.requests


def test_declaring_again_keeps_what_runs_and_what_an_operator_set(desk: Desk) -> None:
    desk.sql("update collect.streams set active = false")
    with connect(desk.url, autocommit=True) as connection:
        connection.execute(query("hosts.block"), {"group": "finra", "penalty": timedelta(hours=1), "reason": "a test"})
    before = desk.one("select * from collect.host_groups"), desk.one("select * from collect.streams")
    desk.declare()
    assert (desk.one("select * from collect.host_groups"), desk.one("select * from collect.streams")) == before


def test_a_poll_does_not_know_the_sources_by_name(plain: Desk) -> None:
    """The same engine works a stream that it has never heard of, with its own name, hours and rechecks."""
    other = replace(
        STREAM, name="another.files", recheck=Recheck(1), schedule=replace(STREAM.schedule, cron="0 21 * * *")
    )
    plain.stream = other
    plain.declare()
    plain.cdn.publish(TUESDAY)
    plain.at(ny(TUESDAY, 21, 5))
    assert plain.poll().status is SUCCESS
    assert plain.sql("select distinct stream from collect.fetches") == [{"stream": "another.files"}]
    assert plain.claim(Mode.POLL) is None
