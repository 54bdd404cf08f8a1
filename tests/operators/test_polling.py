"""One tick of a poll, row by row of the table of what the operator sees."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from include.contract import CycleStatus, Outcome
from include.operators.polling import Asked, poll
from tests.operators.stage import COUNTS, NOW, OWNER, STREAM, ScriptedEngine, row, turn, verdict, worker

FIRST, AGAIN = Asked(None, is_repeat=False), Asked(None, is_repeat=True)


def tick(engine: ScriptedEngine, asked: Asked = FIRST, **of_turn: object):
    return poll(worker(), STREAM, asked, turn(**of_turn))


def test_all_read_and_applied_is_green_and_tells(engine):
    engine.script = [verdict(CycleStatus.SUCCESS, "DONE – all", counts=COUNTS)]
    ended = tick(engine)
    assert (ended.how, ended.words, ended.tells) == ("green", "DONE – all", True)
    assert ended.data["cycle_id"] == 7


def test_some_keys_failed_is_green_and_begins_with_partial(engine):
    engine.script = [verdict(CycleStatus.SUCCESS, "PARTIAL – one key", outcome=Outcome.PARTIAL)]
    ended = tick(engine)
    assert (ended.how, ended.words) == ("green", "PARTIAL – one key")
    assert ended.data["outcome"] == "partial"


def test_nothing_due_is_green_and_says_why(engine):
    engine.script = [verdict(CycleStatus.SUCCESS, "NOTHING DUE – a holiday")]
    assert tick(engine).how == "green"


def test_not_published_yet_waits_until_the_next_try(engine):
    engine.newest = [row("PENDING")]
    engine.script = [verdict(CycleStatus.PENDING, "WAITING – for it", next_eligible_at=NOW + timedelta(minutes=25))]
    ended = tick(engine)
    assert (ended.how, ended.wait) == ("again", timedelta(minutes=25))


@pytest.mark.parametrize("outcome", [Outcome.FAILED_RETRIABLE, Outcome.FAILED_TERMINAL])
def test_a_window_that_failed_is_red(engine, outcome):
    engine.script = [verdict(CycleStatus.FAILED, "FAILED – at last", outcome=outcome)]
    ended = tick(engine)
    assert (ended.how, ended.words) == ("red", "FAILED – at last")


def test_a_budget_that_was_reached_is_green(engine):
    engine.script = [verdict(CycleStatus.BUDGET_EXHAUSTED, "BUDGET – 5,000 items")]
    assert tick(engine).how == "green"


def test_slices_follow_each_other_until_the_window_is_over(engine):
    going_on = verdict(CycleStatus.PENDING, "GOING ON – more")
    engine.script = [going_on, going_on, verdict(CycleStatus.SUCCESS, "DONE – all")]
    assert tick(engine).words == "DONE – all"
    assert len(engine.asked) == 4, "after the end it looks whether another window is due by now"


def test_a_tick_that_has_used_its_time_is_called_again(engine):
    engine.script = [verdict(CycleStatus.PENDING, "GOING ON – more"), verdict(CycleStatus.SUCCESS, "not reached")]
    ended = tick(engine, began=time.monotonic() - 500)
    assert (ended.how, ended.words) == ("again", "GOING ON – more")


def test_a_window_that_opened_meanwhile_is_worked_too(engine):
    engine.script = [verdict(CycleStatus.SUCCESS, "DONE – one"), verdict(CycleStatus.SUCCESS, "DONE – two")]
    assert tick(engine).words == "DONE – two; before it: DONE – one"
    assert engine.opened == 3


def test_a_tick_of_a_poll_works_ten_windows_at_most(engine):
    engine.script = [verdict(CycleStatus.SUCCESS, f"DONE – {n}") for n in range(11)]
    ended = tick(engine)
    assert (ended.how, len(engine.asked)) == ("green", 10)
    assert ended.words.startswith("DONE – 9; before it: DONE – 8")


def test_a_stopped_tick_has_given_its_lease_back_and_goes_on_later(engine):
    engine.script = [verdict(CycleStatus.PENDING, "STOPPED – given back", is_stopped=True)]
    assert tick(engine).how == "again"


def test_another_run_that_owns_the_window_is_named_and_this_one_is_skipped(engine):
    engine.newest = [row("RUNNING", lease_owner="finra.short_volume of other on there/2/b", lease_until=NOW)]
    ended = tick(engine)
    assert ended.how == "skipped"
    assert ended.words.startswith("ANOTHER RUN – window 2026-09-16 07:35 KST, session 2026-09-15 is worked by finra.")
    assert "until 2026-09-16 09:40 KST" in ended.words


def test_a_lease_of_an_attempt_before_this_one_is_waited_for_and_taken_over(engine):
    held = row("RUNNING", lease_owner=f"{OWNER} on here/1/b", lease_until=NOW + timedelta(minutes=4))
    engine.newest = [held, held, row("PENDING")]
    engine.script = [None, verdict(CycleStatus.SUCCESS, "DONE – taken over")]
    assert tick(engine, AGAIN).words == "DONE – taken over"


def test_an_attempt_that_vanished_with_its_lease_is_waited_for(engine, monkeypatch):
    monkeypatch.setattr("include.operators.tick.HANDOVER_SECONDS", 0)
    engine.newest = [row("RUNNING", lease_owner=f"{OWNER} on here/1/b", lease_until=NOW + timedelta(minutes=4))]
    ended = tick(engine, AGAIN)
    assert (ended.how, ended.wait) == ("again", timedelta(minutes=4))
    assert "vanished" in ended.words


@pytest.mark.parametrize(("status", "how"), [("SUCCESS", "green"), ("BUDGET_EXHAUSTED", "green"), ("FAILED", "red")])
def test_cleared_after_the_window_was_over_it_ends_so_and_says_when_by_whom_and_what_repeats_it(engine, status, how):
    owner = "finra.short_volume of manual-0 on there/2/b"
    engine.newest = [row(status, failure_reason="lease expired" if status == "FAILED" else None, worked_by=owner)]
    ended = tick(engine, AGAIN)
    assert ended.how == how
    assert "was over at 2026-09-16 09:10 KST, by finra.short_volume of manual-0 (" in ended.words
    _, _, conf = ended.words.partition("trigger with ")
    assert json.loads(conf) == {
        "mode": "backfill", "streams": ["finra.short_volume"], "start_date": "2026-09-15", "end_date": "2026-09-15",
        "force": True,
    }  # fmt: skip


def test_a_cleared_scheduled_run_ends_as_its_own_window_did_not_as_the_newest(engine):
    engine.newest = [row("SUCCESS")]
    engine.own = row("FAILED", failure_reason="not published by its last try", cycle_id=3)
    assert tick(engine, Asked("2026-09-14T22:35:00Z", is_repeat=True)).how == "red"


@pytest.mark.parametrize("status", ["SUCCESS", "FAILED"])
def test_a_run_for_which_nothing_is_eligible_is_green_and_says_what_would_do_it(engine, status):
    engine.newest = [row(status)]
    ended = tick(engine)
    assert ended.how == "green"
    assert ended.words.startswith("NOTHING TO DO – window 2026-09-16 07:35 KST, session 2026-09-15")
    assert "The next window opens at 2026-09-17 07:35 KST" in ended.words
    assert "cycle_id" not in ended.data, "the summary must not take that window for this run's"


def test_what_shows_today_alone_is_not_said_to_have_a_past_that_could_be_collected(engine):
    engine.newest = [row("SUCCESS")]
    ended = poll(worker(), replace(STREAM, snapshot_only="it shows today and no other day."), FIRST, turn())
    assert ended.words.endswith("It cannot be collected once more: it shows today and no other day.")
    assert "backfill" not in ended.words
    again = poll(worker(), replace(STREAM, snapshot_only="it shows today alone."), AGAIN, turn())
    assert "backfill" not in again.words


def test_a_frozen_stream_is_skipped_with_the_reason(engine):
    engine.newest, engine.frozen = [row("PENDING")], "source finra is frozen by me: maintenance"
    ended = tick(engine)
    assert ended.how == "skipped"
    assert ended.words.startswith("FROZEN – ")
    assert "maintenance" in ended.words


@pytest.mark.parametrize("held", ["frozen", "off"])
def test_a_window_that_is_not_opened_while_frozen_or_off_is_said_to_be_so(engine, held):
    engine.newest = [row("SUCCESS", window_start=NOW - timedelta(days=1))]
    setattr(engine, held, "is so since yesterday by me: maintenance")
    ended = tick(engine)
    assert ended.how == "skipped"
    assert ended.words.startswith("FROZEN – the window of 2026-09-16 07:35 KST is not opened: is so since yesterday")


def test_a_window_that_waits_is_waited_for(engine):
    engine.newest = [row("PENDING", next_eligible_at=NOW + timedelta(minutes=20))]
    ended = tick(engine)
    assert (ended.how, ended.wait) == ("again", timedelta(minutes=20))


def test_a_lost_lease_takes_the_verdict_of_the_row(engine):
    engine.newest = [row("FAILED", failure_reason="lease expired")]
    engine.script = [verdict(None, "LEASE LOST – too late", is_refused=True)]
    ended = tick(engine)
    assert ended.how == "red"
    assert "lease expired" in ended.words


def test_a_stream_that_was_never_due_is_green(engine):
    assert tick(engine).words.startswith("NOTHING TO DO – no window of finra.short_volume was ever due")
