"""The tasks that collect: what they leave to others, and the event that they send."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pytest
from airflow.sdk.execution_time.context import InletEventsAccessor

from include.engine import changes
from include.engine.changes import Untold
from include.operators import collect, lanes, notes, polling
from include.operators.collect import LaneOperator, PollOperator
from include.operators.endings import Ended, Interrupted
from tests.operators.stage import NOW, STREAM, Ti, asked, context, turn

pytestmark = pytest.mark.usefixtures("connected", "untold")

CHANGED = Untold(9, date(2026, 9, 16), date(2026, 9, 15), 7, None, [7], [9])


@pytest.fixture
def untold(monkeypatch):
    """What the rows say that nobody was told of, and what was confirmed."""
    found = SimpleNamespace(now=replace(CHANGED, changed=0), confirmed=[])
    monkeypatch.setattr(changes, "untold", lambda url, stream: found.now)
    monkeypatch.setattr(changes, "confirm", lambda url, told: found.confirmed.append(told))
    return found


def poll(ti, **run):
    given = context(ti, **run)
    operator = PollOperator(task_id="short_volume", stream=STREAM.name)
    return operator.work(given, turn()), given["outlet_events"].sent


def lane(ti):
    given = context(ti)
    operator = LaneOperator(task_id="short_volume_lanes", stream=STREAM.name, lane=2)
    return operator.work(given, turn()), given


@pytest.fixture
def polled(monkeypatch):
    calls = []

    def poll(worker, stream, asked, turn):
        calls.append((worker, stream, asked))
        return Ended("green", "DONE – all", {"cycle_id": 7})

    monkeypatch.setattr(polling, "poll", poll)
    return calls


@pytest.mark.parametrize(
    ("ti", "words"),
    [
        (Ti(), "check_request did not let the run through"),
        (asked(dry_run=True), "this is a dry run"),
        (asked(streams=["finra.other"]), "this run is limited to finra.other"),
        (asked("backfill", "r"), "mode=backfill is worked by the lanes"),
    ],
)
def test_a_task_for_which_there_is_nothing_is_skipped_in_words(polled, ti, words):
    ended, _ = poll(ti)
    assert ended.how == "skipped"
    assert words in ended.words
    assert polled == []


def test_rows_that_changed_are_told_through_the_alias(polled, untold):
    untold.now = CHANGED
    _, sent = poll(asked())
    assert sent == [
        (
            "finra.short_volume_changed",
            "finra.short_volume",
            {
                "stream": "finra.short_volume",
                "changed": 9,
                "kst_day": "2026-09-16",
                "session_date": "2026-09-15",
                "cycle_id": 7,
                "run_id": None,
                "told_by": "an-attempt",
            },
        )
    ]


def test_without_a_change_no_event_is_sent(polled):
    assert poll(asked())[1] == []


@pytest.mark.parametrize(
    "ended", [Ended("red", "FAILED – at last"), Ended("again", "WAITING"), Ended("green", "LANE DONE", tells=False)]
)
def test_no_event_is_sent_with_a_failure_or_before_the_end(monkeypatch, untold, ended):
    untold.now = CHANGED
    monkeypatch.setattr(polling, "poll", lambda *_: ended)
    assert poll(asked())[1] == []


def test_what_an_attempt_before_this_one_changed_is_told_by_this_one(monkeypatch, untold):
    untold.now = CHANGED
    monkeypatch.setattr(polling, "poll", lambda *_: Ended("green", "NOTHING TO DO – it is over"))
    assert len(poll(asked())[1]) == 1


@pytest.fixture
def airflow_has(monkeypatch):
    """The extras of a stream's events that Airflow shows."""
    shown = []
    monkeypatch.setattr(
        InletEventsAccessor, "_asset_events", property(lambda _: [SimpleNamespace(extra=one) for one in shown])
    )
    return shown


def confirm(operator):
    (callback,) = operator.on_success_callback
    callback({"task": operator, "ti": Ti()})


def test_what_was_told_is_confirmed_once_airflow_has_the_event_and_not_before(polled, untold, airflow_has):
    untold.now = CHANGED
    operator = PollOperator(task_id="short_volume", stream=STREAM.name)
    given = context(asked())
    operator.work(given, turn())
    assert untold.confirmed == []
    airflow_has += [extra for _, _, extra in given["outlet_events"].sent]
    confirm(operator)
    assert untold.confirmed == [CHANGED]


@pytest.mark.parametrize("shown", [[], [None], [{"told_by": "an-attempt-before"}]], ids=["none", "bare", "another's"])
def test_an_event_that_airflow_refused_with_the_success_stays_untold(polled, untold, airflow_has, shown):
    """A task that was cleared or marked meanwhile: Airflow answers 409, and calls the callback all the same."""
    untold.now = CHANGED
    airflow_has += shown
    operator = PollOperator(task_id="short_volume", stream=STREAM.name)
    operator.work(context(asked()), turn())
    confirm(operator)
    assert untold.confirmed == []


def test_a_task_that_told_nothing_asks_airflow_for_no_event(polled, untold, monkeypatch):
    monkeypatch.setattr(collect, "_has_event", lambda *_: pytest.fail("nothing was told"))
    operator = PollOperator(task_id="short_volume", stream=STREAM.name)
    operator.work(context(asked()), turn())
    confirm(operator)


@pytest.mark.parametrize(
    ("run", "ti", "slot", "is_repeat"),
    [
        ({}, {}, None, False),
        ({"run_type": "scheduled", "logical_date": NOW}, {}, "2026-09-16T00:40:00Z", False),
        ({"run_type": "manual", "logical_date": NOW}, {}, None, False),
        ({}, {"try_number": 2}, None, True),
    ],
)
def test_a_poll_knows_its_window_and_whether_it_was_here_before(polled, run, ti, slot, is_repeat):
    instance = asked()
    vars(instance).update(ti)
    poll(instance, **run)
    ((worker, stream, question),) = polled
    assert question == polling.Asked(slot, is_repeat)
    assert stream is STREAM
    assert worker.owner.startswith("finra.short_volume of manual-1 on ")


def test_the_newest_of_named_keys_is_a_run_of_its_own(monkeypatch):
    jobs = []
    monkeypatch.setattr(lanes, "work", lambda worker, stream, job, turn: jobs.append(job) or Ended("green", "DONE"))
    poll(asked(run_id="poll.finra.manual-1"))
    assert jobs == [lanes.Job("poll.finra.manual-1", "poll")]


@pytest.mark.parametrize("mode", ["backfill", "replay"])
def test_a_lane_works_for_the_run_and_says_so_on_its_label(monkeypatch, mode):
    jobs = []
    monkeypatch.setattr(
        lanes, "work", lambda worker, stream, job, turn: jobs.append(job) or Ended("green", "DONE – all")
    )
    ended, given = lane(asked(mode, "r"))
    assert jobs == [lanes.Job("r", mode)]
    assert ended.how == "green"
    assert given["lane"] == "lane 2: done"


def test_a_replay_needs_no_connection_to_the_upstream(monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_FINRA")
    monkeypatch.setattr(lanes, "work", lambda *_: Ended("green", "REPLAYED"))
    assert lane(asked("replay", "r"))[0].how == "green"


@pytest.mark.parametrize("kind", [PollOperator, LaneOperator])
def test_no_secret_is_in_what_a_task_leaves_behind_when_the_warehouse_is_away(monkeypatch, caplog, kind):
    secret = "b7c1-never-shown"
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", f"postgresql://nobody:{secret}@127.0.0.1:1/nothing")
    monkeypatch.setenv(
        "AIRFLOW_CONN_FINRA", f'{{"conn_type": "http", "host": "cdn.finra.org", "password": "{secret}"}}'
    )
    left = []
    monkeypatch.setattr(notes, "task", lambda context, words: left.append(words))
    monkeypatch.setattr(notes, "run", lambda context, words: left.append(words))
    ti = asked() if kind is PollOperator else asked("backfill", "r")
    operator = kind(task_id="short_volume", stream=STREAM.name)
    with pytest.raises(Interrupted) as ended:
        operator.execute(context(ti))
    left += [str(ended.value), operator.outcome, str(ti.pushed), caplog.text]
    assert "the warehouse does not answer" in str(ended.value)
    assert secret not in "".join(left)
    assert operator.template_fields == ("outcome",), "nothing else is rendered"


def test_an_asset_is_the_stream_itself():
    assert collect.asset(STREAM.name).name == "finra.short_volume"
