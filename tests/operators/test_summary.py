"""What a run came to, by the rows and not by the states of tasks."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from include.contract import Outcome
from include.engine import jobs, upkeep, windows
from include.operators import notes, summary, telling
from include.operators.endings import Failed
from include.operators.summary import SummaryOperator
from tests.operators.stage import Ti, asked, context, progress, row

ONE, TWO = "finra.one", "finra.two"


@pytest.fixture(autouse=True)
def told(monkeypatch, connected):
    words = []
    monkeypatch.setattr(notes, "task", lambda context, text: None)
    monkeypatch.setattr(notes, "run", lambda context, text: words.append(text))
    monkeypatch.setattr(telling, "send", lambda url, owner, **limits: words.append(f"alerts sent by {owner}"))
    return words


def outcome(how, words, cycle_id=None, **facts):
    return {"how": how, "words": words, "cycle_id": cycle_id, **facts}


def polls(monkeypatch, rows, **outcomes):
    monkeypatch.setattr(windows, "rows_of", lambda url, numbers: {n: rows[n] for n in numbers})
    return summary.polls("", {f"finra.{name}": found for name, found in outcomes.items()})


def test_one_stream_speaks_for_the_run(monkeypatch):
    ended = polls(monkeypatch, {7: row()}, one=outcome("green", "DONE – all", 7))
    assert (ended.how, ended.words) == ("green", "DONE – all")
    assert ended.data["streams"] == {ONE: "SUCCESS"}


def test_one_stream_that_failed_makes_the_run_red_and_is_named_first(monkeypatch):
    rows = {7: row(), 8: row("FAILED", failure_reason="x")}
    ended = polls(monkeypatch, rows, one=outcome("green", "DONE – one", 7), two=outcome("red", "FAILED – two", 8))
    assert (ended.how, ended.words) == ("red", "FAILED – two; DONE – one")


def test_a_task_that_was_marked_a_success_by_hand_changes_nothing(monkeypatch):
    """Its window failed, and the row says so."""
    ended = polls(monkeypatch, {7: row("FAILED", failure_reason="x")}, one=outcome("green", "DONE – all", 7))
    assert ended.how == "red"


@pytest.mark.parametrize("rows", [{7: row("PENDING")}, {}])
def test_a_window_that_still_waits_is_not_finished(monkeypatch, rows):
    ended = polls(monkeypatch, rows, one=outcome("again", "WAITING – for it", 7 if rows else None))
    assert ended.how == "red"
    assert ended.words.startswith("NOT FINISHED – finra.one still waits")


def test_a_task_that_ended_without_a_word_is_red(monkeypatch):
    ended = polls(monkeypatch, {}, one=None)
    assert ended.how == "red"
    assert "the task one ended without a word" in ended.words


def test_a_run_whose_windows_belong_to_others_is_skipped(monkeypatch):
    ended = polls(monkeypatch, {7: row("RUNNING")}, one=outcome("skipped", "ANOTHER RUN – has it", 7))
    assert (ended.how, ended.words) == ("skipped", "ANOTHER RUN – has it")


def job(monkeypatch, state, outcome=None, holders=()):
    monkeypatch.setattr(jobs, "conclude", lambda url, run_id: (outcome, state))
    monkeypatch.setattr(upkeep, "holders", lambda url, run_id, stream: dict.fromkeys(holders))
    return summary.job("", "r", [ONE], "manual-1")


@pytest.mark.parametrize(
    ("facts", "outcome", "how", "word"),
    [
        ({"total": 3, "done": 3, "rows_new": 9}, Outcome.SUCCESS, "green", "DONE"),
        ({"total": 3, "done": 3, "partial": 1}, Outcome.PARTIAL, "green", "PARTIAL"),
        ({"total": 3, "done": 2, "out_of_budget": 1}, Outcome.PARTIAL, "green", "BUDGET"),
        ({"total": 3, "done": 2, "failed": 1}, Outcome.PARTIAL, "red", "PARTIAL"),
        ({"total": 3, "failed": 3}, Outcome.FAILED_RETRIABLE, "red", "FAILED"),
        ({"total": 3, "done": 2, "open": 1}, None, "red", "NOT FINISHED"),
        ({}, Outcome.SUCCESS, "green", "NOTHING TO DO"),
    ],
)
def test_a_job_run_ends_as_its_chunks_did(monkeypatch, facts, outcome, how, word):
    ended = job(monkeypatch, progress(**facts), outcome)
    assert (ended.how, ended.words.partition(" – ")[0]) == (how, word)


def test_chunks_that_another_run_works_on_are_left_to_it(monkeypatch):
    ended = job(monkeypatch, progress(total=2, done=1, running=1), holders=["finra.x_lanes[0] of other on there/1/a"])
    assert ended.how == "skipped"
    assert "finra.x_lanes[0] of other" in ended.words


def test_chunks_that_a_vanished_lane_of_this_run_holds_are_not_finished(monkeypatch):
    ended = job(monkeypatch, progress(total=2, done=1, running=1), holders=["finra.x_lanes[0] of manual-1 on here/1/a"])
    assert ended.how == "red"
    assert ended.words.startswith("NOT FINISHED")


def test_a_run_that_was_not_let_through_is_red_and_keeps_the_note_of_the_check(told):
    with pytest.raises(Failed, match="NOT DONE – check_request did not let the run through"):
        SummaryOperator(task_id="summary").execute(context(Ti()))
    assert told == []


@pytest.mark.parametrize("fact", ["dry_run", "is_over"])
def test_a_run_without_work_repeats_what_the_check_said(told, fact):
    SummaryOperator(task_id="summary").execute(
        context(asked("backfill", "r", words="ALREADY DONE – r", **{fact: True}))
    )
    assert told == ["ALREADY DONE – r"]


def test_the_operator_reads_what_the_polls_left_and_has_the_last_word(monkeypatch, told):
    monkeypatch.setattr(windows, "rows_of", lambda url, numbers: {})
    ti = asked()
    ti.pulled["short_volume", "outcome"] = outcome("skipped", "ANOTHER RUN – has it")
    with pytest.raises(AirflowSkipException):
        SummaryOperator(task_id="summary").execute(context(ti))
    # What the tasks had to tell Slack goes out right after the commits that made it.
    assert told == ["ANOTHER RUN – has it", f"alerts sent by summary of {ti.run_id}"]
    assert ti.pushed["outcome"]["how"] == "skipped"
