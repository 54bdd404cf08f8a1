"""Files over all companies as a task: never of a sync that is at work or failed, and every end in words."""

from __future__ import annotations

import json
from datetime import timedelta

import psycopg
import pytest

from include.operators import notes
from include.operators.audit import AuditOperator
from include.operators.prebuild import PrebuildOperator
from include.operators.publish import BuildOperator, PushOperator
from include.outputs import outbox, prebuild, publisher
from include.outputs.lease import PublishLeaseLost, claim
from include.outputs.parquet import PartUnreadable
from include.outputs.prebuild import Prebuilt
from include.outputs.publisher import PublicationRefused, Published
from include.registry import source
from tests.operators.stage import Ti, context, turn
from tests.outputs import market
from tests.outputs.publishing import rows
from tests.outputs.test_dart_scans import statement

STREAMS = ("dart.finance", "dart.report")


@pytest.fixture(autouse=True)
def place(database, monkeypatch, tmp_path):
    monkeypatch.setattr(notes, "task", lambda context, words: None)
    monkeypatch.setattr(notes, "run", lambda context, words: None)
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", database)
    monkeypatch.setenv("DAYBOOK_OUTBOX_ROOT", str(tmp_path / "out box"))


def build():
    return PrebuildOperator(task_id="build", streams=STREAMS).work(context(), turn())


def incidents(database):
    found = rows(database, "select incident_key, text from ops.incidents where closed_at is null")
    return {row["incident_key"]: row["text"] for row in found}


def window(database, stream, at, status):
    outcome = {"SUCCESS": "success", "FAILED": "failed_retriable"}.get(status)
    with psycopg.connect(database) as connection:
        connection.execute(
            "insert into collect.cycles (stream, mode, slot, run_date, window_start, due_at, cycle_status, "
            "is_complete, outcome, finished_at, failure_reason, created_at, updated_at) values "
            "(%s, 'poll', %s, '2026-09-16', %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (stream, at, at, at, status, status == "SUCCESS", outcome, at if outcome else None,
             "unreachable" if status == "FAILED" else None, at, at),
        )  # fmt: skip


def test_it_builds_what_changed_once_the_sync_ended_well_and_nothing_of_one_that_failed(database):
    statement(database, "20260314000001", 2025, [100])
    window(database, "dart.finance", "2026-09-15T18:00:00Z", "SUCCESS")
    window(database, "dart.report", "2026-09-15T18:00:00Z", "PENDING")
    waits = build()
    assert (waits.how, waits.wait) == ("again", timedelta(minutes=5))
    assert waits.words == "WAITING – dart.report is still at work."
    window(database, "dart.report", "2026-09-16T06:00:00Z", "FAILED")
    skipped = build()
    assert skipped.how == "skipped"
    assert skipped.words.startswith("NOT BUILT – dart.report failed: unreachable.")
    assert market.files(database) == []
    window(database, "dart.report", "2026-09-16T18:00:00Z", "SUCCESS")
    built = build()
    assert (built.how, built.data["queued"], built.data["companies"]) == ("green", 1, 1)
    assert built.words == "BUILT – 1 of 1 companies read, 1 files new, 1 as before."
    assert build().words == "NOTHING – 0 of 1 companies read, 0 files new, 2 as before."
    lease = claim(database, prebuild.LEASE, "another run")
    busy = build()
    assert (busy.how, busy.wait) == ("again", timedelta(minutes=1))
    assert busy.words.startswith("WAITING – another run builds until")
    lease.give_back()
    assert incidents(database) == {}


@pytest.mark.parametrize(
    ("result", "how", "words"),
    [
        (Prebuilt(companies=200, of=2_700, left=2_500), "again", "GOING ON – 200 companies read, 2500 to go."),
        (PublishLeaseLost("taken over."), "again", "LEASE LOST – taken over. What was read is kept."),
        (PartUnreadable("finance cannot be written: x."), "red", "FAILED – finance cannot be written: x. Readers keep"),
        (OSError(28, "No space left on device"), "red", "FAILED – the outbox cannot be written: [Errno 28]"),
        (ZeroDivisionError("of itself"), None, "nobody foresaw this (ZeroDivisionError): of itself"),
    ],
)
def test_every_other_end_is_told_and_one_that_failed_is_an_incident_until_it_ends_well(
    database, monkeypatch, result, how, words
):
    def play(*arguments, **named):
        if isinstance(result, Exception):
            raise result
        return result

    with monkeypatch.context() as patched:
        patched.setattr(prebuild, "prebuild", play)
        if how is None:
            with pytest.raises(ZeroDivisionError):
                build()
        else:
            ended = build()
            assert ended.how == how
            assert ended.words.startswith(words)
    told = incidents(database)
    if how == "again":
        assert told == {}
        return
    assert words in told["unpublished/prebuild"]
    assert "readers have what was sent before" in told["unpublished/prebuild"]
    assert build().how == "green"
    assert incidents(database) == {}


def test_a_build_and_a_push_that_fail_are_incidents_of_their_own_told_once(database, monkeypatch):
    def fails(*arguments, **named):
        raise OSError(28, "No space left on device")

    build = BuildOperator(task_id="build", tables=[market.TABLE])
    push = PushOperator(task_id="push")
    red = {("build", "outcome"): {"how": "red", "words": "FAILED – no room."}}
    with monkeypatch.context() as patched:
        patched.setattr(outbox, "build", fails)
        assert build.work(context(), turn()).how == "red"
        # There is no connection huggingface: nothing can be pushed, and that is told as well.
        assert push.work(context(), turn()).how == "red"
    assert {"unpublished/build", "unpublished/push"} == incidents(database).keys()
    assert "huggingface" in incidents(database)["unpublished/push"]
    hub = {"conn_type": "http", "host": "http://127.0.0.1:1", "password": "t", "extra": {"namespace": "me"}}
    monkeypatch.setenv("AIRFLOW_CONN_HUGGINGFACE", json.dumps(hub))
    # A push that is red for the build alone opens nothing of its own.
    monkeypatch.setattr(publisher, "publish", lambda *arguments, **named: Published())
    assert push.work(context(), turn()).how == "green"
    assert push.work(context(Ti(red)), turn()).how == "red"
    assert {"unpublished/build"} == incidents(database).keys()
    assert build.work(context(), turn()).how == "green"
    assert incidents(database) == {}
    monkeypatch.setattr(publisher, "publish", lambda *arguments, **named: _refuse())
    push.work(context(), turn())
    push.work(context(), turn())
    assert "refuses the token" in incidents(database)["unpublished/push"]
    told = rows(database, "select text from ops.alerts where text like '%refuses the token%'")
    assert len(told) == 1


def _refuse():
    raise PublicationRefused("The Hub refuses the token.")


def test_the_audit_says_why_publication_lags_whoever_is_put_off_or_paused_and_misses_a_prebuild(database):
    def audited():
        AuditOperator(task_id="audit", sources=[source("dart"), source("finra")]).work(context(), turn())
        return {key: text for key, text in incidents(database).items() if key.startswith("publication/")}

    assert audited() == {}
    statement(database, "20260314000001", 2025, [100])
    with psycopg.connect(database) as connection:
        connection.execute("update publish.stale set marked_at = collect.clock() - interval '7 hours'")
        connection.execute(
            "insert into publish.leases (name, put_off_until, put_off_reason, updated_at) values "
            "('hub', collect.clock() + interval '1 hour', 'HTTP 503 for days', collect.clock())"
        )
    market.save(database, market.month("2026-09"))
    with psycopg.connect(database) as connection:
        connection.execute("update publish.stale set marked_at = collect.clock() - interval '7 hours'")
    told = audited()
    assert told.keys() == {"publication/hub", "publication/dart/scan"}
    assert "The Hub asked for patience: HTTP 503 for days" in told["publication/hub"]
    assert "builds nothing while a stream that feeds it has failed" in told["publication/dart/scan"]
    with psycopg.connect(database) as connection:
        connection.execute(
            "insert into ops.paused_jobs (job, since, seen_at) select j, collect.clock(), collect.clock() "
            "from unnest(array['publish', 'prebuild']) j"
        )
    assert all("PAUSED in Airflow" in text for text in audited().values())
    assert build().how == "green"
    assert audited().keys() == {"publication/hub"}
