"""The analysis as tasks: filings go from the queue to their verdicts through the real client, every end in words."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException, TaskDeferred

from include import registry
from include.operators import analysing, notes
from include.operators.analysing import AnalysisTrigger, AwaitOperator, LookOperator, SubmitOperator, schedule
from include.operators.endings import Failed
from tests.analysis.conftest import office
from tests.analysis.office import Office
from tests.operators.stage import Ti, context, turn

__all__ = ["office"]

POLL = {"mode": "poll", "start_date": None, "end_date": None, "reason": ""}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "task", lambda context, words: None)
    monkeypatch.setattr(notes, "run", lambda context, words: None)


@pytest.fixture
def here(office: Office, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Office:
    """The office, named by connections and settings."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", office.place.url)
    dart = {"conn_type": "http", "host": "https://opendart.fss.or.kr", "password": "k" * 40}
    monkeypatch.setenv("AIRFLOW_CONN_DART", json.dumps(dart))
    monkeypatch.setenv("DAYBOOK_SANDBOX_URL", office.running.url)
    monkeypatch.setenv("DAYBOOK_RAW_ROOT", str(tmp_path / "raw"))
    monkeypatch.setenv("AI_CONCURRENCY", "3")
    monkeypatch.setenv("SCHEDULER_IDLE_POLL_MS", "50")
    monkeypatch.setenv("LLM_POLL_INTERVAL_MS", "50")
    office.switch("seconds", value=0.1)
    return office


def look(**params: Any) -> str:
    operator = LookOperator(task_id="look", readings=registry.bodies())
    operator.execute(context(params={**POLL, **params}))
    return operator.outcome


def submit() -> Any:
    operator = SubmitOperator(task_id="submit", source=registry.source("dart"), readings=registry.bodies())
    return operator.work(context(), turn())


def answers(found: list[Any]) -> None:
    """What the triggerer does."""

    async def first() -> Any:
        async for event in AnalysisTrigger(60.0).run():
            return event.payload
        raise AssertionError("the trigger ends with an event")

    found.append(asyncio.run(first()))


def file(office: Office, count: int) -> list[str]:
    """Filings that the stand-in has documents of."""
    found = []
    at = office.place.now().isoformat()
    for n in range(count):
        title = ("단일판매ㆍ공급계약체결", "주주총회소집결의")[n % 2]
        number = office.running.switch("dart", "add", at=at, title=title)["dart"]["added"][-1]
        office.running.switch("dart", "document", rcept_no=number, at=at)
        office.sql(
            "update dartbrief.analysis_cache set rcept_no = %s where rcept_no = %s", number, office.file(n, title)
        )
        found.append(number)
    return found


def test_filings_go_from_the_queue_to_their_verdicts_never_more_than_permitted(here: Office) -> None:
    numbers = file(here, 7)
    assert look().startswith("WORKING – 7 wait")
    events: list[Any] = []
    triggerer = threading.Thread(target=answers, args=(events,))
    triggerer.start()
    ended = submit()
    triggerer.join()
    assert (ended.how, ended.data) == ("green", {"submitted": 7}), ended.words
    assert (events[0]["outcomes"], events[0]["is_quiet"]) == ({"completed": 7}, True)
    assert {here.status(number) for number in numbers} == {"COMPLETED"}
    assert here.made() == dict.fromkeys(numbers, 1)
    assert here.running.control("GET", "llm")["most_at_once"] <= 3
    AwaitOperator(task_id="answers").resume(context(Ti(others={"submit": "success"})), events[0])
    with pytest.raises(AirflowSkipException, match="NOTHING TO DO"):
        look()


def test_the_trigger_keeps_nothing_but_how_long_it_looks(here: Office) -> None:
    with pytest.raises(TaskDeferred) as deferred:
        AwaitOperator(task_id="answers").execute(context())
    name, kept = deferred.value.trigger.serialize()
    assert (name, kept) == ("include.operators.analysing.AnalysisTrigger", {"seconds": 540.0, "least": 0.0})


def test_answers_are_looked_for_as_long_as_the_submitter_is_there_and_counted_to_the_end() -> None:
    """Whoever ended while the submitter claims one more would leave its answer, and the slot, to nobody."""
    operator = AwaitOperator(task_id="answers")
    for state, event in (
        ("running", {"outcomes": {"completed": 7}, "is_quiet": True}),
        ("up_for_reschedule", {"outcomes": {"completed": 7}, "is_quiet": True}),
        ("success", {"outcomes": {"completed": 7}, "is_quiet": False}),
    ):
        with pytest.raises(TaskDeferred) as deferred:
            operator.resume(context(Ti(others={"submit": state})), event)
        assert deferred.value.kwargs == {"so_far": {"completed": 7}}
        assert deferred.value.trigger.serialize()[1] == {"seconds": 540.0, "least": 10.0}
    last = {"outcomes": {"completed": 1, "failed": 2}, "is_quiet": True}
    operator.resume(context(Ti(others={"submit": "success"})), last, so_far={"completed": 7})
    assert operator.outcome == "DONE – 8 completed, 2 failed."


def test_a_submitter_that_is_cleared_by_itself_does_not_wait_for_answers_that_nobody_looks_for(
    here: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysing, "ASK_SECONDS", 0.0)
    numbers = file(here, 2)
    look()
    operator = SubmitOperator(task_id="submit", source=registry.source("dart"), readings=registry.bodies())
    ended = operator.work(context(Ti(others={"answers": "success"})), turn())
    assert (ended.how, "the next run looks" in ended.words) == ("green", True), ended.words
    given = here.made()
    assert given
    assert {here.status(number) for number in given} == {"PROCESSING"}
    # The next run: both tasks, all of them.
    events: list[Any] = []
    triggerer = threading.Thread(target=answers, args=(events,))
    triggerer.start()
    assert submit().how == "green"
    triggerer.join()
    assert here.made() == dict.fromkeys(numbers, 1)


def test_a_trigger_ends_where_something_waits_that_nobody_gives_to_the_model(
    here: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysing, "QUIET_SECONDS", 0.3)
    here.file(1)
    events: list[Any] = []
    answers(events)
    assert (events[0]["outcomes"], events[0]["is_quiet"]) == ({}, True)


def test_without_a_model_it_is_said_what_to_set(here: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAYBOOK_SANDBOX_URL")
    events: list[Any] = []
    answers(events)
    assert "LLM_BASE_URL" in events[0]["refused"]
    with pytest.raises(Failed, match="LLM_BASE_URL"):
        AwaitOperator(task_id="answers").resume(context(), events[0])


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"mode": "backfill"}, "start_date"),
        ({"mode": "backfill", "start_date": "2026-09-02", "end_date": "2026-09-01"}, "after"),
        ({"mode": "replay", "start_date": "2026-09-01", "end_date": "2026-09-02"}, "reason"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_in_words(here: Office, params: dict[str, Any], word: str) -> None:
    with pytest.raises(Failed, match=word):
        look(**params)


def test_older_filings_are_asked_for_by_a_backfill(here: Office) -> None:
    here.file(1, day="2026-05-04")
    with pytest.raises(AirflowSkipException):
        look()
    days = {"start_date": "2026-05-01", "end_date": "2026-05-31"}
    assert "1 filings are asked for" in look(mode="backfill", **days)


def test_it_runs_by_itself_only_where_somebody_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk import Asset, CronTriggerTimetable

    timetable, asset = CronTriggerTimetable("* * * * *", timezone="Asia/Seoul"), Asset("dart.disclosures")
    monkeypatch.delenv("ANALYSIS_SCHEDULER_AUTO_START", raising=False)
    assert schedule(asset, timetable) is None
    monkeypatch.setenv("ANALYSIS_SCHEDULER_AUTO_START", "true")
    assert schedule(asset, timetable) is not None
