"""What every tick does around its work: tell what happened, leave as it ended, and mind that it may be killed."""

from __future__ import annotations

import psycopg
import pytest
from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSkipException
from structlog.contextvars import get_contextvars

from include.engine.surrender import WarehouseAway
from include.operators import notes, tick
from include.operators.endings import Ended, Failed, Interrupted
from include.operators.resolve import ConnectionUnfit
from include.operators.tick import Tick
from tests.operators.stage import Ti, context


class Told:
    def __init__(self, monkeypatch):
        self.task, self.run = [], []
        monkeypatch.setattr(notes, "task", lambda context, words: self.task.append(words))
        monkeypatch.setattr(notes, "run", lambda context, words: self.run.append(words))


@pytest.fixture
def told(monkeypatch):
    return Told(monkeypatch)


class Scripted(Tick):
    """Ends as it is told."""

    def __init__(self, *, ending=None, **arguments):
        super().__init__(task_id="scripted", **arguments)
        self.ending = ending

    def work(self, context, turn):
        self.turn = turn
        if isinstance(self.ending, Exception):
            raise self.ending
        return self.ending


def poke(ending, ti=None, **facts):
    operator, ti = Scripted(ending=ending), ti or Ti()
    try:
        operator.poke({**context(ti), **facts})
    finally:
        operator.left = ti
    return operator


@pytest.mark.parametrize(
    ("how", "raised"), [("red", Failed), ("skipped", AirflowSkipException), ("again", AirflowRescheduleException)]
)
def test_every_end_is_told_before_the_task_leaves(told, how, raised):
    operator = Scripted(ending=Ended(how, "WORD – why", {"cycle_id": 7}))
    ti = Ti()
    with pytest.raises(raised):
        operator.poke(context(ti))
    assert ti.pushed["outcome"] == {"cycle_id": 7, "how": how, "words": "WORD – why"}
    assert operator.outcome == "WORD – why"
    assert told.task == ["WORKING – attempt 1", "WORD – why"]


def test_a_green_end_returns(told):
    assert poke(Ended("green", "DONE – all")).outcome == "DONE – all"
    assert told.run == ["DONE – all"]


def test_a_skipped_task_leaves_the_note_of_the_run_to_others(told):
    with pytest.raises(AirflowSkipException):
        poke(Ended("skipped", "SKIPPED – nothing for it"))
    assert told.run == []


def test_a_tick_that_is_called_again_does_not_say_that_it_begins(told):
    poke(Ended("green", "DONE – all"), task_reschedule_count=3)
    assert told.task == ["DONE – all"]


def test_a_killed_task_sees_it_and_says_nothing_any_more(told):
    """A cleared task has a successor at once, which has the word."""

    class Killed(Scripted):
        def work(self, context, turn):
            assert not turn.stop()
            self.on_kill()
            assert turn.stop()
            return Ended("again", "STOPPED – given back")

    ti = Ti()
    with pytest.raises(AirflowRescheduleException):
        Killed().poke(context(ti))
    assert ti.pushed == {}
    assert told.task == ["WORKING – attempt 1"]


def test_a_task_whose_supervisor_is_gone_stops(told, monkeypatch):
    operator = Scripted(ending=Ended("green", "DONE – all"))
    parents = iter([11, 11, 1])
    monkeypatch.setattr(tick.os, "getppid", lambda: next(parents))
    operator.poke(context())
    assert operator.turn.stop()


def test_a_warehouse_that_does_not_answer_is_tried_again_without_a_stack_trace(told):
    with pytest.raises(Interrupted, match=r"INTERRUPTED – the warehouse does not answer: gone$"):
        poke(psycopg.OperationalError("gone\nand more"))
    assert told.task[-1] == "INTERRUPTED – the warehouse does not answer: gone"


def test_a_warehouse_that_goes_away_in_a_slice_leaves_a_note_that_says_what_was_kept(told):
    words = "window 2026-09-16 07:35 KST: the warehouse does not answer (gone). Every answer that was stored is kept."
    with pytest.raises(Interrupted):
        poke(WarehouseAway(words))
    assert told.task[-1] == f"INTERRUPTED – {words}"


def test_a_missing_connection_is_a_refusal(told):
    with pytest.raises(Failed, match="REFUSED – Connection finra is missing"):
        poke(ConnectionUnfit("Connection finra is missing."))


def test_a_bug_is_shown_with_its_trace(told):
    with pytest.raises(ZeroDivisionError):
        poke(ZeroDivisionError())


def test_the_owner_of_a_lease_names_the_task_the_lane_and_the_run(told):
    turn = poke(Ended("green", "DONE – all"), Ti(task_id="short_volume_lanes", map_index=2)).turn
    assert turn.owner == "finra.short_volume_lanes[2] of manual-1"
    assert turn.is_mine("finra.short_volume_lanes[2] of manual-1 on here/1/a")
    assert not turn.is_mine("finra.short_volume_lanes[2] of manual-11 on here/1/a")
    assert not turn.is_mine(None)


def test_what_a_task_says_at_its_end_carries_stream_window_and_attempt(told, monkeypatch):
    said = []

    class Collecting(Scripted):
        about = "finra.short_volume"

    operator = Collecting(ending=Ended("green", "DONE – all", {"cycle_id": 7, "slot": "s", "attempt": 2}))
    monkeypatch.setattr(operator, "work", lambda context, turn: said.append(get_contextvars()) or operator.ending)
    monkeypatch.setattr(notes, "task", lambda context, words: said.append(get_contextvars()))
    operator.poke(context(Ti()))
    stream = {"stream": "finra.short_volume"}
    assert said == [stream, stream, {**stream, "cycle_id": 7, "window": "s", "attempt": 2}]
    assert get_contextvars() == {}
