"""The first task of a run, over a real warehouse: it refuses in words, plans, and asks nobody."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from include.contract import Mode
from include.engine import windows
from include.engine.db import connect
from include.engine.jobs import progress
from include.operators import notes
from include.operators.check import CheckRequestOperator
from include.operators.endings import Failed, Interrupted
from tests.operators.stage import FINRA, STREAM, Ti, context
from tests.operators.test_request import DEFAULTS


@pytest.fixture
def told(monkeypatch):
    words = []
    monkeypatch.setattr(notes, "task", lambda context, text: None)
    monkeypatch.setattr(notes, "run", lambda context, text: words.append(text))
    return words


@pytest.fixture
def warehouse(database, monkeypatch, connected, told):
    """A warehouse whose clock shows Wednesday morning in Seoul."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", database)
    sql(
        database,
        "update collect.installation set is_sandbox = true,"
        " clock_offset = timestamptz '2026-09-16 08:40+09' - clock_timestamp()",
    )
    return database


def sql(url, statement):
    with connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return [tuple(row.values()) for row in cursor.fetchall()] if cursor.description else []


def check(run=None, **given):
    ti = Ti(task_id="check_request")
    operator = CheckRequestOperator(task_id="check_request", source="finra", streams=(STREAM.name,))
    lanes = operator.execute(context(ti, params={**DEFAULTS, **given}, conf=given, **(run or {})))
    return lanes, ti.pushed["request"]


RANGE = {"mode": "backfill", "start_date": "2026-09-03", "end_date": "2026-09-09"}


def test_a_poll_needs_no_lanes(warehouse, told):
    lanes, request = check()
    assert lanes == []
    assert (request["mode"], request["run_id"], request["streams"]) == ("poll", None, ["finra.short_volume"])
    assert told == ["POLL – finra.short_volume: what is due now"]


def test_a_run_on_a_schema_that_is_too_old_is_refused_in_words(warehouse, told):
    sql(warehouse, "update schema_version set version_num = '0005'")
    with pytest.raises(Failed, match="is at schema 0005"):
        check()
    assert told[0].startswith("REFUSED – The warehouse is at schema 0005")


def test_a_backfill_is_planned_and_worked_by_as_many_lanes_as_are_set(warehouse, monkeypatch):
    monkeypatch.setenv("DAYBOOK_LANES", "3")
    lanes, request = check(**RANGE)
    assert lanes == [1, 2, 3]
    assert progress(warehouse, request["run_id"]).open == 5
    assert sql(warehouse, "select requested_by from collect.job_runs") == [("admin",)]


def test_there_are_no_more_lanes_than_chunks(warehouse):
    lanes, _ = check(mode="backfill", start_date="2026-09-03", end_date="2026-09-03")
    assert lanes == [1]


def test_a_run_that_is_done_says_so_and_needs_no_lanes(warehouse):
    _, request = check(**RANGE)
    sql(
        warehouse,
        "update collect.cycles set cycle_status = 'SUCCESS', is_complete = true, outcome = 'success',"
        " finished_at = collect.clock()",
    )
    sql(warehouse, "update collect.job_runs set outcome = 'success', finished_at = collect.clock()")
    lanes, request = check(**RANGE)
    assert lanes == []
    assert request["is_over"]
    assert request["words"].startswith("ALREADY DONE")


def test_once_more_of_a_poll_is_a_backfill_of_what_its_window_was_responsible_for(warehouse):
    windows.declare(warehouse, FINRA.streams)
    windows.open_due(warehouse, STREAM)
    lanes, request = check(force=True)
    assert (lanes, request["mode"]) == ([1], "backfill")
    assert sql(warehouse, "select range_start::text, range_end::text, force from collect.job_runs") == [
        ("2026-09-15", "2026-09-15", True)
    ]


DONE = (
    "update collect.cycles set cycle_status = 'SUCCESS', is_complete = true, outcome = 'success',"
    " lease_token = null, lease_owner = null, lease_until = null, finished_at = collect.clock()"
)


def test_a_forced_run_whose_first_task_is_cleared_in_the_middle_forces_nothing_again(warehouse):
    check(**RANGE)
    check({"run_id": "early"}, **RANGE, force=True)
    sql(warehouse, DONE)
    _, request = check({"run_id": "early"}, **RANGE, force=True)
    assert request["words"].startswith("JOINED"), "it was forced while nothing was done yet, and that was its once"
    _, request = check({"run_id": "forced"}, **RANGE, force=True)
    assert request["words"].startswith("REOPENED")
    sql(warehouse, f"{DONE} where session_date > '2026-09-04'")
    _, request = check({"run_id": "forced"}, **RANGE, force=True)
    assert request["words"].startswith("JOINED")
    assert progress(warehouse, request["run_id"]).open == 2
    _, request = check({"run_id": "another"}, **RANGE, force=True)
    assert request["words"].startswith("REOPENED"), "another run asks once more, and gets it"
    assert progress(warehouse, request["run_id"]).open == 5


def test_a_run_that_was_forced_from_the_start_forces_nothing_when_it_is_cleared(warehouse):
    check({"run_id": "forced"}, **RANGE, force=True)
    sql(warehouse, DONE)
    sql(warehouse, "update collect.job_runs set outcome = 'success', finished_at = collect.clock()")
    _, request = check({"run_id": "forced"}, **RANGE, force=True)
    assert request["words"].startswith("ALREADY DONE")
    assert "to force it again trigger a new run" in request["words"]
    assert request["is_over"]


def test_once_more_of_nothing_is_refused(warehouse):
    with pytest.raises(Failed, match=r"No window of finra.short_volume has run yet"):
        check(force=True)


def test_a_poll_of_keys_is_asked_anew_by_each_run(warehouse):
    for run in ("manual-1", "manual-2"):
        lanes, request = check({"run_id": run}, keys=["CNMS"])
        assert (lanes, request["mode"], request["run_id"]) == ([], "poll", f"poll.finra.{run}")
    assert (
        sql(warehouse, "select session_date::text, chunk->'keys' from collect.cycles") == [("2026-09-15", ["CNMS"])] * 2
    )


def test_airflows_backfill_form_collects_what_the_window_was_responsible_for(warehouse):
    # Monday was Labor Day, so its window was responsible for Friday's session.
    monday_evening = datetime(2026, 9, 7, 22, 35, tzinfo=UTC)
    lanes, request = check({"run_type": "backfill", "logical_date": monday_evening})
    assert (lanes, request["mode"]) == ([1], "backfill")
    assert sql(warehouse, "select range_start::text, range_end::text, force from collect.job_runs") == [
        ("2026-09-04", "2026-09-04", True)
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"modee": "replay"}, "modee is no parameter"),
        ({"mode": "backfill"}, "needs start_date and end_date"),
        ({"mode": "backfill", "start_date": "2026-09-09", "end_date": "2026-09-03"}, "is before start_date"),
        ({"mode": "replay", "start_date": "2026-09-03", "end_date": "2026-09-09"}, "needs a reason"),
        ({**RANGE, "keys": ["XXXX"]}, "has no key XXXX; its keys are facilities"),
        ({"keys": ["XXXX"]}, "has no key XXXX"),
        ({**RANGE, "start_date": "2027-01-04", "end_date": "2027-01-05"}, "is in the future"),
    ],
)
def test_what_cannot_be_is_refused_in_words_and_writes_nothing(warehouse, told, given, words):
    with pytest.raises(Failed, match=words):
        check(**given)
    assert told[-1].startswith("REFUSED – ")
    assert sql(warehouse, "select count(*) from collect.job_runs") == [(0,)]


def test_a_run_name_that_belongs_to_another_request_is_refused(warehouse):
    check(**RANGE, run_id="mine")
    with pytest.raises(Failed, match="run_id mine belongs to another request"):
        check(**{**RANGE, "end_date": "2026-09-10"}, run_id="mine")


@pytest.mark.parametrize("given", [{}, RANGE, {**RANGE, "mode": "replay", "reason": "try"}, {"keys": ["CNMS"]}])
def test_a_dry_run_shows_the_plan_and_writes_nothing(warehouse, told, given):
    lanes, request = check(**given, dry_run=True)
    assert lanes == []
    assert request["dry_run"]
    assert told[-1].startswith("DRY RUN – ")
    for table in ("job_runs", "cycles", "streams", "host_groups"):
        assert sql(warehouse, f"select count(*) from collect.{table}") == [(0,)], table


def test_a_dry_run_of_a_poll_names_window_session_and_requests(warehouse, told):
    check(dry_run=True)
    assert "window 2026-09-16 07:35 KST, session 2026-09-15: 6 requests, about 0:00:06" in told[-1]


@pytest.mark.parametrize("mode", ["poll", "backfill"])
def test_a_missing_connection_is_named_before_anything_is_written(warehouse, monkeypatch, mode):
    monkeypatch.delenv("AIRFLOW_CONN_FINRA")
    with pytest.raises(Failed, match="Connection finra is missing"):
        check(**(RANGE if mode == "backfill" else {}))
    assert sql(warehouse, "select count(*) from collect.job_runs") == [(0,)]


def test_a_replay_needs_no_connection_to_the_upstream(warehouse, monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_FINRA")
    _, request = check(**{**RANGE, "mode": "replay", "reason": "try"})
    assert request["mode"] == Mode.REPLAY


def test_a_warehouse_that_is_away_is_tried_again(connected, told):
    with pytest.raises(Interrupted, match="the warehouse does not answer"):
        check()
