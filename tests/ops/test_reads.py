"""What is shown is what the rows say, and a page follows the one before."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from include.contract import Mode
from include.engine import controls, jobs, snapshot
from include.ops.api.cycles import log_link
from include.ops.paused import Paused
from tests.engine.seoul import DART, FINRA, KRX, Seoul, kst
from tests.ops.conftest import Api


def by_stream(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {item["stream"]: item for item in items}


# --- the snapshot


def test_before_nine_nothing_is_late_and_nothing_is_listed(api: Api, seoul: Seoul) -> None:
    seoul.at(kst(hour=0))
    seoul.dispatch()
    seoul.at(kst(hour=8, minute=59))
    found = api.read("/slaSnapshot", date="2026-09-16")
    assert (found["captureStatus"], found["lateBeforeNotificationCount"], found["items"]) == ("PENDING", 0, [])
    assert found["scheduledAt"] == "2026-09-16T09:00:00+09:00"
    assert api.read("/slaSnapshot") == found


def test_a_captured_snapshot_is_shown_with_its_items_and_its_offset(api: Api, seoul: Seoul) -> None:
    seoul.at(kst(hour=0))
    seoul.dispatch()
    seoul.at(kst(hour=7, minute=36))
    seoul.work(FINRA, kst(hour=7, minute=35))
    seoul.at(kst(hour=9, second=0.25))
    seoul.capture()
    found = api.read("/slaSnapshot", date="2026-09-16")
    items = by_stream(found["items"])
    late = sum(item["isLate"] for item in items.values())
    assert (found["captureStatus"], found["lateBeforeNotificationCount"]) == ("CAPTURED", late)
    assert late == len(items) - 1
    assert items["finra.short_volume"]["cycleStatus"] == "SUCCESS"
    assert 250 <= found["captureOffsetMs"] < 2_000
    last = api.read("/summary")["lastSnapshot"]
    assert (last["snapshotDate"], last["lateCount"]) == ("2026-09-16", late)
    assert last["captureOffsetMs"] == found["captureOffsetMs"]


def test_where_there_is_no_verdict_there_is_no_number(api: Api, seoul: Seoul) -> None:
    seoul.at(kst(hour=9, minute=30))
    snapshot.mark_missed(seoul.url)
    controls.apply(seoul.url, controls.Change("off", "dispatch", "", "a test", "a holiday"))
    seoul.at(kst(date(2026, 9, 17), hour=9, minute=30))
    seoul.dispatch()
    for day, status in (("2026-09-16", "MISSED"), ("2026-09-17", "NOT_APPLICABLE"), ("2030-01-01", "UNAVAILABLE")):
        found = api.read("/slaSnapshot", date=day)
        assert found["captureStatus"] == status
        assert found["lateBeforeNotificationCount"] is None
        assert found["items"] is None
        assert (found["missReason"] is not None) == (status == "MISSED")


def test_a_cutoff_that_passed_without_a_verdict_shows_neither_zero_nor_items(api: Api, seoul: Seoul) -> None:
    seoul.at(kst(hour=0))
    seoul.dispatch()
    seoul.at(kst(hour=9, minute=1))
    found = api.read("/slaSnapshot")
    assert (found["captureStatus"], found["lateBeforeNotificationCount"], found["items"]) == ("PENDING", None, None)


# --- the summary


def test_the_summary_tells_states_freshness_lag_and_what_waits(api: Api, seoul: Seoul) -> None:
    seoul.at(kst(hour=7, minute=36))
    seoul.work(FINRA, kst(hour=7, minute=35))
    seoul.at(kst(hour=8, minute=6))
    for minute in (0, 5):
        seoul.work(DART, kst(hour=8, minute=minute), "FAILED" if minute else "SUCCESS")
    seoul.at(kst(hour=8, minute=11))
    seoul.work(DART, kst(hour=8, minute=10), "BUDGET_EXHAUSTED")
    seoul.sql(
        "insert into collect.pending (stream, key, why, next_try_at, created_at, updated_at)"
        " select 'finra.short_volume', n::text, 'failed', collect.clock(), collect.clock(), collect.clock()"
        " from generate_series(1, 3) n"
    )
    seoul.at(kst(hour=8, minute=30))
    found = api.read("/summary")
    assert datetime.fromisoformat(found["asOf"]).utcoffset() == timedelta(hours=9)
    streams = by_stream(found["streams"])
    finra, dart, krx = streams[FINRA.name], streams[DART.name], streams[KRX.name]
    assert (finra["cycleStatus"], finra["isLate"], finra["windowsBehind"]) == ("SUCCESS", False, 0)
    assert 50 * 60 <= finra["freshnessSeconds"] <= 60 * 60
    assert finra["pending"] == 3
    assert finra["sessionDate"] == "2026-09-15"
    assert (dart["cycleStatus"], dart["isLate"], dart["budgetExhaustedReason"]) == (
        "BUDGET_EXHAUSTED",
        True,
        "ITEM_LIMIT",
    )
    assert dart["windowsBehind"] == 2
    assert dart["abnormal"] is True
    assert dart["today"] == {
        "runDate": "2026-09-16",
        "windows": 3,
        "byStatus": {"SUCCESS": 1, "FAILED": 1, "BUDGET_EXHAUSTED": 1},
    }
    assert dart["last30Days"] == {"days": 30, "succeeded": 1, "failed": 1, "outOfBudget": 1, "successRate": 0.5}
    assert krx["cycleStatus"] is None
    assert krx["last30Days"]["successRate"] is None
    assert krx["freshnessSeconds"] is None
    assert api.read("/streams")[0]["stream"] == found["streams"][0]["stream"]


def test_the_rate_is_of_thirty_days_and_no_more(api: Api, seoul: Seoul) -> None:
    seoul.sql(
        "insert into collect.cycles (stream, mode, slot, run_date, window_start, due_at, cycle_status, is_complete,"
        " outcome, finished_at, created_at, updated_at)"
        " select %s, 'poll', d::text, (d at time zone 'Asia/Seoul')::date, d, d, 'SUCCESS', true, 'success', d, d, d"
        " from generate_series(timestamptz '2026-07-01 08:10+09', timestamptz '2026-09-15 08:10+09', '1 day') d",
        KRX.name,
    )
    assert by_stream(api.read("/summary")["streams"])[KRX.name]["last30Days"]["succeeded"] == 29


def test_the_orphan_metric_counts_only_rows_whose_cycle_is_over(api: Api, seoul: Seoul) -> None:
    def metric() -> dict[str, Any]:
        found: dict[str, Any] = api.read("/summary")["seenRowsOlderThan48h"]
        return found

    seoul.at(kst(hour=8, minute=1))
    over = seoul.work(DART, kst(hour=8))
    running = seoul.work(FINRA, kst(hour=7, minute=35), "RUNNING")
    assert metric() == {"count": 0, "level": "ok"}
    add = (
        "insert into collect.seen_items (cycle_id, item_key, seen_at)"
        " select %s, g::text, collect.clock() - %s::interval from generate_series(%s::int, %s::int) g"
    )
    seoul.sql(add, running, "3 days", 1, 2_000)
    seoul.sql(add, over, "47 hours", 1, 50)
    assert metric() == {"count": 0, "level": "ok"}
    seoul.sql(add, over, "49 hours", 51, 51)
    assert metric() == {"count": 1, "level": "warning"}
    seoul.sql(add, over, "49 hours", 52, 1_050)
    assert metric() == {"count": 1_000, "level": "critical"}


def test_since_yesterday_tells_expired_leases_refused_writes_and_intervals_kept(api: Api, seoul: Seoul) -> None:
    seoul.sql("update collect.host_groups set interval = '500 ms' where host_group = 'dart'")
    cycle = seoul.work(DART, kst(hour=7, minute=55), "RUNNING")
    seoul.advance(days=365 * 11)
    seoul.sql("select collect.recover(null, 10)")
    now = seoul.now()
    for kind, age in (("refused", 1), ("refused", 2), ("refused", 75), ("expired", 80)):
        seoul.sql(
            "insert into collect.lease_events (at, kind, cycle_id, stream, attempt, holder, words)"
            " values (%s, %s, %s, %s, 1, 'somebody', 'a test')",
            now - timedelta(hours=age),
            kind,
            cycle,
            DART.name,
        )
    for ago in (10.0, 9.0, 8.6, 0.0):
        seoul.sql(
            "insert into collect.fetches (stream, cycle_id, attempt, request_key, unit, sent_at, received_at,"
            " answer_class) values (%s, %s, 1, 'k', 'u', %s, %s, 'absent')",
            DART.name,
            cycle,
            now - timedelta(seconds=ago),
            now,
        )
    found = api.read("/summary")["sinceYesterday"]
    assert (found["leasesExpired"], found["staleWritesRefused"]) == (1, 2)
    assert found["since"].endswith("T00:00:00+09:00")
    kept = {each["hostGroup"]: each for each in found["intervals"]}
    dart = kept["dart"]
    assert (dart["declaredMs"], dart["shortestMs"], dart["isKept"], dart["requests"]) == (500, 400, False, 4)
    assert (kept["krx"]["shortestMs"], kept["krx"]["isKept"], kept["krx"]["requests"]) == (None, None, 0)


def test_controls_and_paused_dags_are_shown_with_who_why_and_since_when(api: Api, seoul: Seoul) -> None:
    controls.apply(seoul.url, controls.Change("freeze", "stream", DART.name, "mina", "the list is wrong"))
    api.paused.append(Paused("krx", "mina", kst(hour=7)))
    api.paused.append(Paused("fred", None, None))
    found = api.read("/summary")
    (control,) = found["controls"]
    assert (control["state"], control["changedBy"], control["reason"]) == ("frozen", "mina", "the list is wrong")
    assert datetime.fromisoformat(control["changedAt"]).utcoffset() == timedelta(hours=9)
    assert found["pausedDags"] == [
        {"dagId": "krx", "pausedBy": "mina", "since": "2026-09-16T07:00:00+09:00"},
        {"dagId": "fred", "pausedBy": None, "since": None},
    ]
    streams = by_stream(found["streams"])
    assert streams[KRX.name]["pausedDag"]["pausedBy"] == "mina"
    assert "mina" in streams[DART.name]["heldWhy"]
    assert streams[FINRA.name]["pausedDag"] is None
    assert streams[FINRA.name]["heldWhy"] is None


def test_a_silent_airflow_database_is_said_and_hides_nothing_else(api: Api, seoul: Seoul) -> None:
    from sqlalchemy.exc import OperationalError

    def away() -> list[Paused]:
        raise OperationalError("select", {}, Exception("gone"))

    api.app.state.paused_dags = away
    found = api.read("/summary")
    assert found["pausedDags"] is None
    assert "not known" in found["pausedDagsUnknown"]
    assert len(found["streams"]) == 4


def test_who_paused_a_dag_is_read_from_airflows_own_log(token: Any) -> None:
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.log import Log
    from airflow.utils.session import create_session

    from include.ops.paused import paused_dags

    with create_session() as session:
        session.merge(DagBundleModel(name="a-bundle"))
        session.flush()
        for name, is_paused in (("paused_one", True), ("never_unpaused", True), ("running_one", False)):
            session.merge(DagModel(dag_id=name, bundle_name="a-bundle", is_paused=is_paused, is_stale=False))
        for extra in ('{"is_paused": true, "method": "PATCH"}', '{"is_paused": false}', "nothing to read", None):
            session.add(
                Log(event="patch_dag", dag_id="paused_one", owner="mina", owner_display_name="Mina", extra=extra)
            )
    found = {each.dag_id: each for each in paused_dags()}
    assert found["paused_one"].who == "mina"
    assert found["paused_one"].since is not None
    assert found["never_unpaused"] == Paused("never_unpaused", None, None)
    assert "running_one" not in found


# --- cycles and runs


def filled(seoul: Seoul) -> dict[str, int]:
    """Some windows in some states, and the chunks of a run."""
    seoul.at(kst(hour=8, minute=30))
    made = {"good": seoul.work(FINRA, kst(hour=7, minute=35))}
    for minute in range(0, 25, 5):
        made[f"dart {minute}"] = seoul.work(
            DART, kst(hour=8, minute=minute), {10: "FAILED", 15: "BUDGET_EXHAUSTED"}.get(minute, "SUCCESS")
        )
    made["running"] = seoul.work(KRX, kst(hour=8, minute=10), "RUNNING")
    request = jobs.JobRequest(
        Mode.BACKFILL, (FINRA,), date(2026, 9, 1), date(2026, 9, 15), run_id="a-run", who="mina", reason="gaps"
    )
    jobs.start(seoul.url, request)
    jobs.plan(seoul.url, request, FINRA)
    return made


def test_cycles_are_found_by_every_filter_and_in_pages_of_any_size(api: Api, seoul: Seoul) -> None:
    made = filled(seoul)
    everything = [item["cycleId"] for page in api.pages("/cycles", limit=500) for item in page]
    assert everything == sorted(everything, reverse=True)
    assert len(everything) == len(seoul.cycles())
    for limit in (1, 3, 7):
        pages = api.pages("/cycles", limit=limit)
        assert [item["cycleId"] for page in pages for item in page] == everything
        assert all(len(page) == limit for page in pages[:-1])
    chunks = [item["cycleId"] for page in api.pages("/cycles", runId="a-run", limit=4) for item in page]
    assert len(chunks) == 11
    assert chunks == sorted(set(everything) - set(made.values()), reverse=True)
    for filters, count in (({"mode": "backfill"}, 11), ({"mode": "replay"}, 0), ({"status": "PENDING"}, 11)):
        assert sum(map(len, api.pages("/cycles", runId="a-run", **filters, limit=4))) == count, filters
    assert api.read("/cycles", runId="a-run", stream=KRX.name)["items"] == []
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({"stream": DART.name, "status": "FAILED"}, {"dart 10"}),
        ({"status": "BUDGET_EXHAUSTED"}, {"dart 15"}),
        ({"mode": "poll"}, set(made)),
        ({"status": "RUNNING"}, {"running"}),
        ({"runDateFrom": "2026-09-16", "runDateTo": "2026-09-16"}, set(made)),
        ({"runDateFrom": "2026-09-17"}, set()),
        ({"runDateTo": "2026-09-15"}, set()),
        ({"runDateFrom": "2026-09-16", "stream": FINRA.name}, {"good"}),
        ({"stream": "no.such"}, set()),
    ]
    for filters, names in cases:
        for limit in (2, 500):
            found = [item["cycleId"] for page in api.pages("/cycles", **filters, limit=limit) for item in page]
            assert found == sorted({made[name] for name in names}, reverse=True), filters


def test_one_cycle_shows_its_slices_its_fetches_and_the_way_to_its_log(api: Api, seoul: Seoul) -> None:
    cycle = seoul.work(FINRA, kst(hour=7, minute=35))
    seoul.sql(
        "update collect.cycles set worked_by = 'finra.collect_short_volume[2] of scheduled__2026-09-15T22:35:00+00:00"
        " on host/12/ab' where cycle_id = %s",
        cycle,
    )
    seoul.sql(
        "insert into collect.fetches (stream, cycle_id, attempt, request_key, unit, sent_at, received_at, answer_class,"
        " size, tries, error)"
        " select %s, %s, 1 + g / 100, 'k' || g, 'u', collect.clock(), collect.clock(), 'error', 10, 2, 'cut'"
        " from generate_series(0, 249) g",
        FINRA.name,
        cycle,
    )
    found = api.read(f"/cycles/{cycle}")
    assert [(s["attempt"], s["requests"], s["tries"], s["failures"], s["bytes"]) for s in found["slices"]] == [
        (1, 100, 200, 100, 1_000),
        (2, 100, 200, 100, 1_000),
        (3, 50, 100, 50, 500),
    ]
    assert found["logLink"] == (
        "/dags/finra/runs/scheduled__2026-09-15T22%3A35%3A00%2B00%3A00/tasks/collect_short_volume/mapped/2"
    )
    assert [fetch["requestKey"] for fetch in found["fetches"]] == [f"k{n}" for n in range(100)]
    rest = api.read(f"/cycles/{cycle}/fetches", cursor=found["fetchesNextCursor"], limit=500)
    assert [fetch["requestKey"] for fetch in rest["items"]] == [f"k{n}" for n in range(100, 250)]
    assert rest["nextCursor"] is None


@pytest.mark.parametrize(
    ("worked_by", "link"),
    [
        (None, None),
        ("host/12/abcdef", None),
        ("finra.poll of manual__1 on host/1/ab", "/dags/finra/runs/manual__1/tasks/poll"),
        ("finra.group.poll of a b on host/1/ab", None),
    ],
)
def test_a_log_link_is_given_where_a_task_of_airflow_worked(worked_by: str | None, link: str | None) -> None:
    assert log_link(worked_by) == link
    assert log_link(worked_by, "/airflow") == (link and f"/airflow{link}")


def test_runs_are_the_history_and_leave_out_what_is_no_run(api: Api, seoul: Seoul) -> None:
    made = filled(seoul)
    found = {item["cycleId"]: item for page in api.pages("/runs", limit=2) for item in page}
    assert set(found) == {made[name] for name in made if name not in ("running", "dart 15")}
    failed = found[made["dart 10"]]
    assert (failed["runStatus"], failed["cycleStatus"]) == ("FAILED", "FAILED")
    assert (failed["isBudgetExhausted"], failed["budgetExhaustedReason"]) == (False, None)
    only = [item["cycleId"] for page in api.pages("/runs", runStatus="FAILED", stream=DART.name) for item in page]
    assert only == [made["dart 10"]]
    assert api.read("/runs", runDateTo="2026-09-15")["items"] == []


def test_a_job_run_shows_progress_pace_and_when_it_would_end(api: Api, seoul: Seoul) -> None:
    filled(seoul)
    (run,) = api.read("/jobRuns", isOpen=True)["items"]
    assert (run["runId"], run["requestedBy"], run["reason"], run["outcome"]) == ("a-run", "mina", "gaps", None)
    before = api.read("/jobRuns/a-run")
    assert (before["chunksPerHour"], before["expectedEnd"]) == (None, None)
    seoul.advance(minutes=1)
    seoul.sql(
        "update collect.cycles set cycle_status = 'SUCCESS', is_complete = true, outcome = 'success',"
        " started_at = collect.clock() - interval '30 minutes', finished_at = collect.clock()"
        " where cycle_id in (select cycle_id from collect.cycles where run_id = 'a-run' order by cycle_id limit 5)"
    )
    seoul.sql(
        "update collect.cycles set cycle_status = 'FAILED', outcome = 'failed_retriable', failure_reason = 'cut',"
        " failure_kind = 'retriable', finished_at = collect.clock() where cycle_id ="
        " (select max(cycle_id) from collect.cycles where run_id = 'a-run')"
    )
    found = api.read("/jobRuns/a-run")
    progress = found["progress"]
    assert (progress["total"], progress["done"], progress["failed"], progress["open"]) == (11, 5, 1, 5)
    assert progress["isPlanned"] is True
    assert progress["lastGood"].startswith("a-run/2026-09-")
    assert progress["restartAt"].startswith("a-run/2026-09-")
    assert progress["firstFailure"].endswith(": cut")
    assert found["byStream"][0] == {"stream": FINRA.name, **progress}
    assert found["chunksPerHour"] == pytest.approx(12, rel=0.05)
    assert datetime.fromisoformat(found["expectedEnd"]) == pytest.approx(
        seoul.now() + timedelta(hours=5 / found["chunksPerHour"]), abs=timedelta(seconds=20)
    )


def test_pending_keys_and_alerts_are_listed_in_pages(api: Api, seoul: Seoul) -> None:
    seoul.sql(
        "insert into collect.pending (stream, key, why, next_try_at, given_up_at, last_error, created_at, updated_at)"
        " select s, 'key ' || n, case when n % 2 = 0 then 'failed' else 'recheck' end,"
        "        case when n <> 4 then collect.clock() end, case when n = 4 then collect.clock() end, 'cut',"
        "        collect.clock(), collect.clock()"
        " from unnest(array['finra.short_volume', 'krx.prices']) s, generate_series(1, 5) n"
    )
    found = [(i["stream"], i["key"]) for page in api.pages("/pending", limit=3) for i in page]
    assert found == sorted(found)
    assert len(found) == 10
    given_up = [i for page in api.pages("/pending", givenUp=True, limit=1) for i in page]
    assert [(i["stream"], i["key"]) for i in given_up] == [("finra.short_volume", "key 4"), ("krx.prices", "key 4")]
    assert len(api.read("/pending", why="recheck", stream="krx.prices")["items"]) == 3
    seoul.sql(
        "insert into ops.alerts (alert_key, severity, text, next_try_at, created_at, sent_at)"
        " select 'k' || n, 'warning', 't', collect.clock(), collect.clock(), case when n < 3 then collect.clock() end"
        " from generate_series(1, 5) n"
    )
    assert [i["alertKey"] for page in api.pages("/alerts", limit=2) for i in page] == ["k5", "k4", "k3", "k2", "k1"]
    assert [i["alertKey"] for i in api.read("/alerts", isSent=True)["items"]] == ["k2", "k1"]
    assert api.read("/alerts", severity="critical")["items"] == []


def test_incidents_are_shown_open_or_over_and_the_open_ones_at_a_glance(api: Api, seoul: Seoul) -> None:
    for key, severity in (("failing/dart.disclosures", "warning"), ("snapshot/2026-09-15", "critical")):
        seoul.sql(
            "insert into ops.incidents (incident_key, stream, severity, text, opened_at, seen_at, told_at)"
            " values (%s, %s, %s, 'a test', collect.clock(), collect.clock(), collect.clock())",
            key,
            DART.name if "dart" in key else None,
            severity,
        )
    assert [i["severity"] for i in api.read("/summary")["incidents"]] == ["critical", "warning"]
    seoul.sql("update ops.incidents set closed_at = collect.clock(), closed_text = 'it works' where stream is not null")
    assert [i["kind"] for i in api.read("/summary")["incidents"]] == ["snapshot"]
    assert [i["kind"] for page in api.pages("/incidents", limit=1) for i in page] == ["snapshot", "failing"]
    (over,) = api.read("/incidents", isOpen=False)["items"]
    assert (over["stream"], over["closedText"]) == (DART.name, "it works")
    assert api.read("/incidents", stream=DART.name, isOpen=True)["items"] == []


# --- what is refused, and what never gets out


def test_a_cursor_is_good_for_its_own_list_alone(api: Api, seoul: Seoul) -> None:
    filled(seoul)
    cursor = api.read("/cycles", limit=1)["nextCursor"]
    for path, params in (
        ("/cycles", {"cursor": cursor, "stream": DART.name}),
        ("/runs", {"cursor": cursor}),
        ("/pending", {"cursor": cursor}),
        ("/cycles", {"cursor": "nonsense"}),
        ("/cycles", {"cursor": cursor[:-3]}),
        ("/cycles", {"cursor": "é"}),
        ("/cycles", {"cursor": "W10"}),
    ):
        answer = api.get(path, **params)
        assert answer.status_code == 400
        assert "nextCursor" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/cycles", {"limit": 0}),
        ("/cycles", {"limit": 501}),
        ("/cycles", {"status": "DONE"}),
        ("/cycles", {"runDateFrom": "yesterday"}),
        ("/cycles", {"stream": "a\x00b"}),
        ("/slaSnapshot", {"date": "2026-02-30"}),
        ("/cycles/0", {}),
        ("/cycles/99999999999999999999", {}),
        ("/runs", {"runStatus": "BUDGET_EXHAUSTED"}),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(api: Api, path: str, params: dict[str, Any]) -> None:
    answer = api.get(path, **params)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    (fault, *_) = answer.json()["errors"]
    assert fault["where"]
    assert fault["what"]


def test_extras_that_only_airflows_hook_knows_keep_nobody_from_the_warehouse(
    token: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from include.ops.api import app

    setting = {"conn_type": "postgres", "host": "db", "login": "u", "password": "p@/", "schema": "daybook", "port": 5}
    setting["extra"] = {"cursor": "dictcursor", "sslmode": "require", "nested": {"a": 1}}
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps(setting))
    assert app._warehouse() == "postgresql://u:p%40%2F@db:5/daybook?sslmode=require"


def test_a_database_that_is_away_is_said_without_its_address(api: Api, seoul: Seoul) -> None:
    api.app.state.warehouse._url = lambda: "postgresql://someone:hunter2@127.0.0.1:9/daybook"
    answer = api.get("/summary")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "10"
    assert "hunter2" not in answer.text
    assert "127.0.0.1" not in answer.text


def test_no_token_of_a_lease_gets_out(api: Api, seoul: Seoul) -> None:
    made = filled(seoul)
    token = str(seoul.one("select lease_token from collect.cycles where cycle_status = 'RUNNING'")["lease_token"])
    for path in ("/summary", "/cycles", f"/cycles/{made['running']}", "/runs", "/controls"):
        text = api.get(path, "admin").text
        assert token not in text
        assert not re.search(r"[Tt]oken", text)


def test_every_instant_has_an_offset_and_every_name_is_camel_case(api: Api, seoul: Seoul) -> None:
    made = filled(seoul)
    seoul.capture()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                assert re.fullmatch(r"[a-z][A-Za-z0-9]*|[A-Z_]+", name), name
                ends = ("At", "Until", "windowStart", "since", "asOf")
                if isinstance(inner, str) and name.endswith(ends) and name != "restartAt":
                    assert datetime.fromisoformat(inner).utcoffset() == timedelta(hours=9), name
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    for path in ("/summary", "/cycles", f"/cycles/{made['good']}", "/runs", "/slaSnapshot", "/jobRuns/a-run"):
        look(api.read(path))


# --- the warehouse


def test_reads_cannot_write_and_cannot_hang(api: Api, seoul: Seoul) -> None:
    with api.app.state.warehouse.reading() as (connection, _):
        settings = {
            name: connection.execute(f"show {name}").fetchone()[name]
            for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        }
        assert settings == {
            "statement_timeout": "10s",
            "lock_timeout": "2s",
            "idle_in_transaction_session_timeout": "30s",
        }
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), connection.transaction():
            connection.execute("update collect.streams set title = 'x'")


def test_connections_are_few_are_given_back_and_are_replaced_when_they_die(api: Api, seoul: Seoul) -> None:
    def open_ones() -> int:
        counted = "select count(*) as n from pg_stat_activity where application_name = 'daybook api'"
        return int(seoul.one(counted + " and datname = current_database()")["n"])

    for _ in range(10):
        api.read("/controls")
        assert api.get("/cycles/7").status_code == 404
        assert api.get("/cycles", cursor="x").status_code == 400
    assert open_ones() <= 1
    seoul.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'daybook api'")
    api.read("/controls")


def test_when_all_connections_are_taken_it_is_said_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from include.ops.api import warehouse

    monkeypatch.setattr(warehouse, "PATIENCE_SECONDS", 0.05)
    held = [api.app.state.warehouse._turns.acquire(timeout=1) for _ in range(warehouse.MOST)]
    assert all(held)
    assert api.get("/controls").status_code == 503
    api.app.state.warehouse._turns.release()
    assert api.get("/controls").status_code == 200
    for _ in held[1:]:
        api.app.state.warehouse._turns.release()
