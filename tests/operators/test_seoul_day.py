"""The tasks of a day in Seoul over a real warehouse: dispatch, capture, maintenance, control, audit."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from include.engine import audit, incidents, issues, lookout, snapshot
from include.engine.db import connect, query, transaction
from include.operators import airflow_runs, declared, notes, telling
from include.operators.audit import AuditOperator
from include.operators.capture import CaptureOperator
from include.operators.control import ControlOperator
from include.operators.dispatch import DispatchOperator
from include.operators.endings import Failed
from include.operators.maintenance import MaintenanceOperator
from include.ops import github
from tests.engine.desk import wait_until_blocked
from tests.engine.seoul import DAY, Seoul, kst
from tests.fixtures_sandbox import Start
from tests.operators.stage import FINRA, STREAM, Ti, context

WINDOW = kst(DAY, 7, 35)


@pytest.fixture
def seoul(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seoul]:
    """A minute past midnight; FINRA has been in service for a fortnight."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", database)
    monkeypatch.delenv("AIRFLOW_CONN_SLACK", raising=False)
    for name in ("run", "task"):
        monkeypatch.setattr(notes, name, lambda context, words: None)
    here = Seoul(database, FINRA.streams)
    here.at(kst(DAY, 0, 1))
    here.activated()
    snapshot.mark_missed(database)
    lookout.show_life(database, lookout.MAINTENANCE)
    here.sql("delete from ops.alerts")
    here.sql("delete from ops.incidents")
    yield here
    here.close()


def ran(operator: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    """Run a task once; its words and what it pushed."""
    ti = Ti(dag_id=operator.task_id, task_id=operator.task_id)
    operator.execute(context(ti, **more))
    return operator.outcome, ti.pushed["outcome"]


# --- dispatch


def test_dispatch_writes_the_day_down_once(seoul: Seoul) -> None:
    operator = DispatchOperator(task_id="dispatch", sources=[FINRA])
    words, data = ran(operator)
    assert words.startswith("DISPATCHED – 2026-09-16: 1 windows made, 1 streams expected at 09:00")
    assert (data["opened"], data["expected"], data["status"]) == (1, 1, "PENDING")
    assert ran(operator)[0] == "NOTHING TO DO – 2026-09-16 is dispatched; the snapshot is PENDING."


# --- capture


def good(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 0))
    seoul.work(STREAM, WINDOW)


def test_the_capturer_is_there_at_nine_and_says_how_late_it_was(seoul: Seoul) -> None:
    good(seoul)
    seoul.at(kst(DAY, 8, 59, 58.5))
    words, data = ran(CaptureOperator(task_id="capture"))
    assert words.startswith("ALL GOOD – 09:00 of 2026-09-16: all 1 streams were complete (taken ")
    assert (data["status"], data["late"], data["by_this_call"]) == ("CAPTURED", 0, True)
    assert 0 <= data["offset_ms"] < 1_000
    assert seoul.read().captured_by == "sla_capture of manual-1"


def test_a_capture_asks_no_upstream(seoul: Seoul, monkeypatch: pytest.MonkeyPatch) -> None:
    from include.engine import http

    monkeypatch.setattr(http, "send", lambda *a, **k: pytest.fail("the capture asked an upstream"))
    monkeypatch.setattr(http, "client", lambda *a, **k: pytest.fail("the capture asked an upstream"))
    seoul.dispatch()
    seoul.at(kst(DAY, 9))
    ran(CaptureOperator(task_id="capture"))
    assert seoul.sql("select 1 from collect.fetches") == []


def test_a_capture_that_starts_late_takes_what_the_gate_allows_and_does_not_pretend(seoul: Seoul) -> None:
    good(seoul)
    seoul.at(kst(DAY, 9, 3))
    words, data = ran(CaptureOperator(task_id="capture"))
    assert data["by_this_call"]
    assert data["offset_ms"] >= 180_000
    assert f"taken {round(data['offset_ms'])} ms after the cutoff" in words


def test_a_capture_after_somebody_elses_says_whose_it_is(seoul: Seoul) -> None:
    good(seoul)
    seoul.at(kst(DAY, 9, 0, 1))
    seoul.capture(who="the first writer")
    words, data = ran(CaptureOperator(task_id="capture"))
    assert not data["by_this_call"]
    assert "by the first writer" in words
    assert words.endswith("It was so before this call.")


def test_a_capture_on_a_day_that_was_missed_makes_nothing_up(seoul: Seoul) -> None:
    seoul.at(kst(DAY, 9, 6))
    snapshot.mark_missed(seoul.url)
    words, data = ran(CaptureOperator(task_id="capture"))
    assert words.startswith("MISSED – ")
    assert (data["status"], data["late"]) == ("MISSED", None)


def test_a_first_deployment_at_ten_has_nothing_to_take(database: str, seoul: Seoul) -> None:
    seoul.sql("delete from collect.streams")
    seoul.at(kst(DAY + timedelta(days=1), 10))
    words, _ = ran(CaptureOperator(task_id="capture"))
    assert words.startswith("NOTHING TO TAKE – 09:00 of 2026-09-17 was not prepared")


def test_whoever_starts_it_in_the_night_is_told_and_holds_no_worker(seoul: Seoul) -> None:
    seoul.dispatch()
    words, _ = ran(CaptureOperator(task_id="capture"))
    assert words.startswith("TOO EARLY – the snapshot of 2026-09-16 is taken at 09:00 in Seoul, in 8:58:")
    assert seoul.read().status == "PENDING"


def test_a_killed_capture_leaves_the_snapshot_to_the_first_writer(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 59, 50))
    operator = CaptureOperator(task_id="capture")
    killer = threading.Timer(0.5, operator.on_kill)
    killer.start()
    operator.execute(context(Ti(task_id="capture")))
    killer.join()
    assert operator.outcome.startswith("STOPPED – ")
    assert seoul.read().status == "PENDING"
    seoul.at(kst(DAY, 9, 0, 3))
    seoul.work(STREAM, WINDOW)
    found = seoul.read()
    assert (found.status, found.late, found.captured_by) == ("CAPTURED", 1, "open finra.short_volume")


def test_the_verdict_is_sent_right_after(seoul: Seoul, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[list[str]] = []
    monkeypatch.setattr(telling, "send", lambda url, *a, **k: sent.append(list(seoul.alerts())) or "")
    seoul.dispatch()
    seoul.at(kst(DAY, 9))
    ran(CaptureOperator(task_id="capture"))
    assert sent == [["snapshot/2026-09-16/CAPTURED"]]


# --- maintenance


def seen_rows(seoul: Seoul, count: int) -> None:
    """Seen rows of three days ago whose cycle is over, and as many of one that is not."""
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 0))
    over = seoul.work(STREAM, WINDOW)
    waits = seoul.sql(
        "insert into collect.cycles (stream, mode, slot, run_id, created_at, updated_at)"
        " values ('x', 'backfill', 'r/1', 'r', collect.clock(), collect.clock()) returning cycle_id"
    )[0]["cycle_id"]
    for cycle in (over, waits):
        seoul.sql(
            "insert into collect.seen_items select %s, n::text, collect.clock() - interval '3 days'"
            " from generate_series(1, %s) n",
            cycle,
            count,
        )


def test_maintenance_deletes_a_thousand_orphans_at_most_and_tells_what_is_left(seoul: Seoul) -> None:
    seen_rows(seoul, 1_500)
    words, data = ran(MaintenanceOperator(task_id="clean"))
    assert (data["seen_rows"], data["seen_rows_older_than_48h"]) == (1_000, 500)
    assert words.startswith("CLEANED – 1000 seen rows")
    (open_one,) = incidents.listed(seoul.url)
    assert (open_one["incident_key"], open_one["severity"]) == ("housekeeping/seen_rows_older_than_48h", "critical")
    ran(MaintenanceOperator(task_id="clean"))
    assert incidents.listed(seoul.url) == []
    assert seoul.one("select count(*) as n from collect.seen_items")["n"] == 1_500, "those of an open cycle stay"


def test_one_orphan_is_a_warning(seoul: Seoul) -> None:
    from include.engine import housekeeping

    seen_rows(seoul, 1)
    assert housekeeping.measure(seoul.url) == 1
    assert incidents.listed(seoul.url)[0]["severity"] == "warning"


def test_maintenance_removes_what_a_killed_worker_left_a_day_ago_and_says_how_much(
    seoul: Seoul, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DAYBOOK_STATE", str(tmp_path))
    left = tmp_path / "raw" / ".incoming" / "put-left"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    assert ran(MaintenanceOperator(task_id="clean"))[1]["drafts"] == 0
    os.utime(left, (0, 0))
    words, data = ran(MaintenanceOperator(task_id="clean"))
    assert (data["drafts"], left.exists()) == (1, False)
    assert words.startswith("CLEANED – ")
    assert "; 1 drafts of killed workers removed (0.0 MB)" in words


def test_maintenance_deletes_nothing_else(seoul: Seoul) -> None:
    good(seoul)
    seoul.at(kst(DAY, 9))
    seoul.capture()
    seoul.advance(days=400)
    kept = ("cycles", "streams", "sla_snapshots", "sla_snapshot_sources", "sla_expectations", "host_groups")
    before = {name: seoul.sql(f"select * from collect.{name} order by 1, 2") for name in kept}
    ran(MaintenanceOperator(task_id="clean"))
    assert {name: seoul.sql(f"select * from collect.{name} order by 1, 2") for name in kept} == before


def test_airflows_old_runs_are_cleaned_by_setting(seoul: Seoul, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[timedelta | None] = []
    monkeypatch.setattr(airflow_runs, "clean", lambda kept, most, stop: asked.append(kept.keep_runs) or (7, ""))
    assert ran(MaintenanceOperator(task_id="clean"))[1]["runs"] == 7
    monkeypatch.setenv("DAYBOOK_KEEP_RUNS", "0")
    assert ran(MaintenanceOperator(task_id="clean"))[1]["runs"] == 0
    assert asked == [timedelta(days=30)]


# --- control


def change(**params: Any) -> tuple[str, dict[str, Any]]:
    asked = {"action": "freeze", "scope": "source", "name": "finra", "reason": "they asked us to", **params}
    return ran(ControlOperator(task_id="change", sources=[FINRA]), params=asked, conf=asked)


def test_a_control_says_who_why_and_since_when(seoul: Seoul) -> None:
    words, data = change()
    assert data["state"] == "frozen"
    assert "source finra is frozen, since 2026-09-16 00:01 KST by admin: they asked us to." in words
    row = seoul.one("select changed_by, reason from collect.controls")
    assert (row["changed_by"], row["reason"]) == ("admin", "they asked us to")
    assert change(action="resume", reason="they are well")[1]["state"] == "running"


@pytest.mark.parametrize(
    "params", [{"reason": ""}, {"name": "nobody"}, {"scope": "stream", "name": "finra"}, {"mode": "poll"}]
)
def test_a_control_that_cannot_be_is_red_in_words_and_changes_nothing(seoul: Seoul, params: dict[str, Any]) -> None:
    asked = {"action": "freeze", "scope": "source", "name": "finra", "reason": "why", **params}
    operator = ControlOperator(task_id="change", sources=[FINRA])
    known = {name: value for name, value in asked.items() if name != "mode"}
    with pytest.raises(Failed, match="REFUSED"):
        operator.execute(context(Ti(), params=known, conf=asked))
    assert seoul.sql("select * from collect.controls") == []


# --- audit


def test_the_audit_says_of_every_stream_how_it_stands(seoul: Seoul, caplog: pytest.LogCaptureFixture) -> None:
    good(seoul)
    seoul.sql(
        "insert into collect.checkpoints (stream, session_date, cycle_id, updated_at)"
        " values (%s, '2026-09-15', 1, collect.clock())",
        STREAM.name,
    )
    seoul.at(kst(DAY, 8, 45))
    words, data = ran(AuditOperator(task_id="audit", sources=[FINRA]))
    assert words == "ALL WELL – 1 streams, no incident is open."
    assert data["streams"] == 1


def test_the_audit_is_green_and_names_what_is_ill(seoul: Seoul) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 45))
    words, data = ran(AuditOperator(task_id="audit", sources=[FINRA]))
    assert words.startswith("2 OPEN – error past-due/finra.short_volume; warning lag/finra.short_volume")
    assert data["keys"] == ["past-due/finra.short_volume", "lag/finra.short_volume"]


def test_the_audit_minds_messages_that_wait_for_slack_and_lets_go_when_none_does(seoul: Seoul) -> None:
    seoul.sql(
        "insert into ops.alerts (alert_key, severity, text, next_try_at, created_at)"
        " select 'a/1', 'info', 'x', t, t from collect.clock() t"
    )
    seoul.advance(hours=2)
    assert "outbox/slack" in ran(AuditOperator(task_id="audit", sources=[FINRA]))[1]["keys"]
    seoul.sql("update ops.alerts set sent_at = collect.clock() where alert_key = 'a/1'")
    words = ran(AuditOperator(task_id="audit", sources=[FINRA]))[1]["keys"]
    assert "outbox/slack" in words, "its own message still waits, though not for long"
    seoul.sql("update ops.alerts set sent_at = collect.clock()")
    assert "outbox/slack" not in ran(AuditOperator(task_id="audit", sources=[FINRA]))[1]["keys"]


def found(seoul: Seoul) -> dict[str, str]:
    """Audit, and give the open incidents by key."""
    ran(AuditOperator(task_id="audit", sources=[FINRA]))
    return {row["incident_key"]: row["text"] for row in incidents.listed(seoul.url)}


def test_daily_work_that_never_came_is_missed_and_lets_go_when_it_did(seoul: Seoul) -> None:
    good(seoul)
    seoul.sql("delete from ops.signs_of_life")
    assert "never did" in found(seoul)["silent/maintenance"]
    ran(MaintenanceOperator(task_id="clean"))
    assert "silent/maintenance" not in found(seoul)
    seoul.advance(hours=27)
    assert {"silent/audit", "silent/maintenance"} <= looked(seoul).keys()
    found(seoul)
    assert "silent/audit" not in looked(seoul)


def looked(seoul: Seoul) -> dict[str, str]:
    lookout.look(seoul.url, FINRA.streams)
    return {row["incident_key"]: row["text"] for row in incidents.listed(seoul.url)}


def test_green_days_that_bring_nothing_are_told_where_something_always_came(seoul: Seoul) -> None:
    cycles(seoul, news=[5] * 20 + [0, 0])
    assert "quiet/finra.short_volume" not in found(seoul), "two days may be"
    seoul.sql("delete from collect.cycles")
    cycles(seoul, news=[5] * 18 + [0, 5, 0, 0, 0])
    assert "brought nothing new" in found(seoul)["quiet/finra.short_volume"]
    seoul.sql("update collect.cycles set new_count = 1 where run_date = %s", DAY)
    assert "quiet/finra.short_volume" not in found(seoul)


def cycles(seoul: Seoul, news: list[int]) -> None:
    """Good windows, the last one today, with so many new rows each."""
    for back, new in enumerate(reversed(news)):
        start = kst(DAY, 0, 0) - timedelta(days=back)
        seoul.sql(
            "insert into collect.cycles (stream, slot, mode, kind, window_start, due_at, run_date, session_date,"
            " cycle_status, outcome, is_complete, new_count, finished_at, created_at, updated_at)"
            " values (%s, %s, 'poll', 'scheduled', %s, %s, %s, %s, 'SUCCESS', 'success', true, %s, %s, %s, %s)",
            *(STREAM.name, f"{start:%Y-%m-%d}", start, start, start.date(), start.date(), new, start, start, start),
        )


def test_a_repository_with_too_many_commits_is_to_be_squashed_and_counted_anew(seoul: Seoul) -> None:
    good(seoul)
    seoul.sql(
        "insert into publish.commits (release, repository, files, bytes, state, created_by, created_at, confirmed_at)"
        " select 'r', 'me/private', 1, 1, case when n <= 3001 then 'confirmed' else 'failed' end, 'x', t, t"
        " from generate_series(1, 3100) n, collect.clock() t"
    )
    assert "3,001 commits" in found(seoul)["commits/me/private"]
    assert audit.squashed(seoul.url, "me/other", "me") is False
    assert audit.squashed(seoul.url, "me/private", "me") is True
    assert "commits/me/private" not in found(seoul)


def test_a_new_audit_replaces_one_that_still_runs_which_then_writes_nothing_more(
    seoul: Seoul, monkeypatch: pytest.MonkeyPatch
) -> None:
    good(seoul)
    measure = audit.housekeeping.measure

    def overtaken(url: str) -> int:
        monkeypatch.setattr(audit.housekeeping, "measure", measure)
        assert ran(AuditOperator(task_id="audit", sources=[FINRA]))[0].startswith("2 OPEN")
        seoul.sql("insert into publish.commits (release, repository, files, bytes, state, created_by, created_at,"
                  " confirmed_at) select 'r', 'me/private', 1, 1, 'confirmed', 'x', t, t"
                  " from generate_series(1, 3100), collect.clock() t")  # fmt: skip
        return 0

    monkeypatch.setattr(audit.housekeeping, "measure", overtaken)
    operator = AuditOperator(task_id="audit", sources=[FINRA])
    with pytest.raises(AirflowSkipException, match="REPLACED – a newer audit has taken the place of audit 1"):
        operator.execute(context(Ti(dag_id="audit", task_id="audit")))
    keys = {row["incident_key"].partition("/")[0] for row in incidents.listed(seoul.url)}
    assert keys == {"past-due", "lag"}, "what it would have found it leaves to the newer one"
    assert [row["replaced_by"] for row in seoul.sql("select * from ops.audits order by 1")] == [2, None]


def test_a_newer_audit_waits_for_what_an_older_one_is_just_writing(seoul: Seoul) -> None:
    begun = seoul.one("select ops.begin_audit('one') as audit_id")["audit_id"]
    with transaction(seoul.url) as connection:
        assert connection.execute(query("audit.hold"), {"audit": begun}).fetchone() is not None
        other = connect(seoul.url, application="newer", autocommit=True)
        thread = threading.Thread(target=lambda: other.execute(query("audit.begin"), {"owner": "two"}))
        thread.start()
        wait_until_blocked(seoul.url)
        assert issues.want(connection, opens=True) == 0
    thread.join(10)
    other.close()
    with transaction(seoul.url) as connection:
        assert connection.execute(query("audit.hold"), {"audit": begun}).fetchone() is None


def test_incidents_become_issues_where_github_is_there_and_are_told_without_it_all_the_same(
    seoul: Seoul, sandbox: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    seoul.dispatch()
    seoul.at(kst(DAY, 8, 45))
    assert len(found(seoul)) == 2
    assert seoul.sql("select * from ops.issues") == []
    running = sandbox(clock=lambda: seoul.one("select collect.clock() as at")["at"])
    monkeypatch.setattr(github, "PAUSE_SECONDS", 0.0)
    connection = {"conn_type": "http", "host": f"{running.url}/api.github.com", "password": "a-secret-of-github"}
    monkeypatch.setenv("AIRFLOW_CONN_GITHUB", json.dumps(connection))
    words, _ = ran(AuditOperator(task_id="audit", sources=[FINRA]))
    assert words.endswith("Issues are not sent, as the connection github lacks something.")
    monkeypatch.setenv("AIRFLOW_CONN_GITHUB", json.dumps(connection | {"extra": {"repository": "me/incidents"}}))
    running.fault(match={"host": "api.github.com"}, n=None, status=503)
    words, data = ran(AuditOperator(task_id="audit", sources=[FINRA]))
    assert "GitHub takes no issues for now (HTTP 503" in words
    assert data["open"] == 2
    running.control("DELETE", "faults")
    seoul.advance(minutes=5)
    assert telling.send_issues(seoul.url, "upkeep") == "2 issues brought up to date on GitHub"
    (repository,) = running.control("GET", "github")["repositories"]
    assert [each["title"] for each in repository["issues"]] == [
        "[error] past-due/finra.short_volume", "[warning] lag/finra.short_volume"
    ]  # fmt: skip
    assert all(row["issue_url"] for row in incidents.listed(seoul.url))
    seoul.sql("update ops.issues set version = version + 1, wanted_at = collect.clock() - interval '7 hours',"
              " next_try_at = 'infinity'")  # fmt: skip
    assert "2 issues wait for GitHub" in found(seoul)["outbox/github"]
    monkeypatch.delenv("AIRFLOW_CONN_GITHUB")
    assert "outbox/github" not in found(seoul), "where none are wanted, none are missed"


def test_the_tasks_find_their_sources_in_a_process_that_read_the_dag_file(seoul: Seoul) -> None:
    declared._SOURCES.clear()
    DispatchOperator(task_id="dispatch", sources=[FINRA])
    assert declared.source("finra") is FINRA
