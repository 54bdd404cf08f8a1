"""One tick of a lane: chunks until none is left, one must wait, or the upstream refuses."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest

from include.contract import CycleStatus, Mode, Outcome
from include.operators.lanes import Job, work
from tests.operators.stage import NOW, OWNER, STREAM, progress, turn, verdict, worker

DONE = verdict(CycleStatus.SUCCESS, "DONE – a chunk")


def tick(job=None, **of_turn):
    return work(worker(), STREAM, job or Job("r", Mode.BACKFILL), turn(**of_turn))


@pytest.mark.parametrize("mode", list(Mode))
def test_a_lane_works_the_chunks_of_its_run_in_its_mode(engine, mode):
    engine.script = [DONE, DONE]
    engine.progress = progress(total=2, done=2)
    assert tick(Job("r", mode)).how == "green"
    assert engine.asked == [(str(mode), "r")] * 3


def test_the_lane_after_which_nothing_is_left_tells_what_changed(engine):
    engine.script = [DONE]
    engine.progress = progress(total=9, done=9, rows_new=5, rows_changed=2, rows_withdrawn=1)
    ended = tick()
    assert (ended.how, ended.tells) == ("green", True)
    assert ended.words.startswith("DONE – 9 of 9 chunks done")


def test_a_lane_that_finds_all_settled_tells_too_as_who_settled_it_may_have_been_killed(engine):
    engine.progress = progress(total=9, done=9, rows_new=5)
    assert tick().tells


def test_a_lane_does_not_wait_for_other_lanes_and_leaves_the_telling_to_them(engine):
    engine.progress = progress(total=9, done=8, running=1)
    ended = tick()
    assert ended.how == "green"
    assert ended.words.startswith("LANE DONE – 8 of 9")
    assert not ended.tells


def test_a_lane_that_is_stopped_before_it_claims_leaves_at_once(engine):
    """The chunk is another's, or nobody's; there is nothing to give back and nothing to wait for."""
    engine.progress = progress(total=9, done=8, open=1)
    ended = tick(stop=lambda: True)
    assert (ended.how, ended.words) == ("again", "STOPPED – nothing was claimed; the next attempt goes on.")
    assert len(engine.asked) == 1


def test_a_lane_waits_for_chunks_that_wait(engine):
    engine.progress = progress(total=9, done=8, open=1)
    engine.next_eligible = NOW + timedelta(minutes=1)
    ended = tick()
    assert (ended.how, ended.wait) == ("again", timedelta(minutes=1))


WAITING = verdict(CycleStatus.PENDING, "AGAIN – in a minute", next_eligible_at=NOW + timedelta(minutes=9))


def test_a_chunk_that_must_wait_holds_no_other_up(engine):
    engine.script = [WAITING, DONE, DONE]
    engine.progress, engine.next_eligible = progress(total=3, done=2, open=1), NOW + timedelta(minutes=9)
    ended = tick()
    assert len(engine.asked) == 4, "the two others, and once more to see that nothing else is eligible"
    assert (ended.how, ended.wait) == ("again", timedelta(minutes=9))
    assert ended.words.startswith("WAITING – 2 of 3 chunks done, 1 waiting; asked again at 2026-09-16 09:49 KST")


def test_an_upstream_that_may_not_be_asked_is_waited_for_by_all_chunks(engine):
    engine.script = [replace(WAITING, is_held=True), DONE]
    ended = tick()
    assert (ended.how, ended.wait, len(engine.asked)) == ("again", timedelta(minutes=9), 1)


def chunks(count, status=CycleStatus.SUCCESS):
    return [replace(verdict(status, "DONE – a chunk"), cycle_id=number) for number in range(count)]


def test_a_tick_claims_ten_cycles_at_most_then_gives_its_place_back_and_says_so(engine):
    engine.script = chunks(11)
    engine.progress = progress(total=40, done=10, open=30)
    ended = tick()
    assert (ended.how, ended.wait, len(engine.asked)) == ("again", timedelta(seconds=30), 10)
    assert ended.words.startswith("GOING ON – 10 of 40 chunks done, 30 waiting. This tick has worked 10 chunks")


def test_slices_of_one_chunk_are_one_cycle_of_the_ten(engine):
    engine.script = [verdict(CycleStatus.PENDING, "GOING ON – more")] * 12 + [DONE]
    engine.progress = progress(total=1, done=1)
    assert (tick().how, len(engine.asked)) == ("green", 14)


def test_a_lane_whose_tenth_chunk_was_the_last_ends_at_once(engine):
    engine.script = chunks(10)
    engine.progress = progress(total=10, done=10)
    assert (tick().how, len(engine.asked)) == ("green", 10)


def test_what_the_upstream_refuses_for_good_stops_the_lane_at_once(engine):
    engine.script = [verdict(CycleStatus.FAILED, "FAILED – no access", outcome=Outcome.FAILED_TERMINAL), DONE]
    ended = tick()
    assert ended.how == "red"
    assert ended.words.startswith("FAILED – no access The chunks that are left wait")
    assert len(engine.asked) == 1


def test_a_chunk_that_failed_does_not_stop_the_others_but_ends_the_lane_red(engine):
    engine.script = [verdict(CycleStatus.FAILED, "FAILED – once", outcome=Outcome.FAILED_RETRIABLE), DONE]
    engine.progress = progress(total=2, done=1, failed=1, first_failure="r/2026-09-01: answers failed")
    ended = tick()
    assert ended.how == "red"
    assert "First: r/2026-09-01: answers failed" in ended.words
    assert "run_id=r" in ended.words


@pytest.mark.parametrize(("facts", "word"), [({"out_of_budget": 1}, "BUDGET"), ({"partial": 1}, "PARTIAL")])
def test_budget_and_partial_are_green_and_say_so_first(engine, facts, word):
    engine.progress = progress(total=2, done=2, **facts)
    ended = tick()
    assert (ended.how, ended.words.partition(" – ")[0]) == ("green", word)


def test_a_tick_that_has_used_its_time_is_called_again(engine):
    engine.script = [DONE, DONE]
    assert tick(began=time.monotonic() - 500).how == "again"
    assert len(engine.asked) == 1


def test_a_lane_that_lost_a_lease_goes_on_with_the_next_chunk(engine):
    engine.script = [verdict(None, "LEASE LOST – of one", is_refused=True), DONE]
    engine.progress = progress(total=2, done=2)
    assert tick().how == "green"


def test_a_frozen_stream_is_waited_for(engine):
    engine.progress, engine.frozen = progress(total=2, open=2), "stream is frozen by me: why"
    engine.newest = []
    ended = tick()
    assert (ended.how, ended.wait) == ("again", timedelta(minutes=5))
    assert ended.words.startswith("FROZEN – ")


def test_a_killed_attempt_of_this_lane_is_waited_for_until_its_lease_ends(engine, monkeypatch):
    monkeypatch.setattr("include.operators.tick.HANDOVER_SECONDS", 0)
    engine.progress = progress(total=2, done=1, running=1)
    engine.holders = {f"{OWNER} on here/1/b": NOW + timedelta(minutes=3)}
    ended = tick()
    assert (ended.how, ended.wait) == ("again", timedelta(minutes=3))
