"""Whole mornings by their tasks on the simulated clock: whatever is stopped, killed or closed, the verdict is right."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import date, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from include.contract import Source
from include.engine import audit, cycle, snapshot, windows
from include.engine.db import connect
from include.operators import declared, notes
from include.operators.capture import CaptureOperator
from include.operators.dispatch import DispatchOperator
from include.operators.upkeep import UpkeepOperator
from include.ops import watch
from tests.engine.desk import beside, wait_until_blocked
from tests.engine.seoul import DAY, Seoul, kst
from tests.engine.seoul import FINRA as FINRA_STREAM
from tests.engine.seoul import KRX as KRX_STREAM
from tests.operators.stage import FINRA as DECLARED
from tests.operators.stage import Ti, context

STREAMS = (FINRA_STREAM, KRX_STREAM)
SOURCES = tuple(
    Source(stream.source, stream.source, stream.source, DECLARED.hosts, (stream,), False, "terms") for stream in STREAMS
)


class AirflowTi(Ti):
    """A task instance that can be asked about DAGs."""

    def get_dag(self, dag_id: str) -> Any:
        return SimpleNamespace(is_paused=False)


@pytest.fixture
def seoul(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seoul]:
    """FINRA and KRX have been in service for a month; each test says what day it is."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", database)
    monkeypatch.delenv("AIRFLOW_CONN_SLACK", raising=False)
    for name in ("run", "task"):
        monkeypatch.setattr(notes, name, lambda context, words: None)
    here = Seoul(database, STREAMS)
    here.at(kst(date(2026, 8, 1)))
    windows.declare(database, STREAMS)
    yield here
    here.close()
    declared._SOURCES.clear()


def midnight(seoul: Seoul, day: date) -> None:
    """A day begins: what came before is past, and dispatch runs."""
    seoul.at(kst(day, 0, 0, 2))
    snapshot.mark_missed(seoul.url)
    for table in ("alerts", "incidents"):
        seoul.sql(f"delete from ops.{table}")
    DispatchOperator(task_id="dispatch", sources=SOURCES).execute(context(Ti()))


def collected(seoul: Seoul, day: date = DAY) -> None:
    """Both streams do what is due before nine."""
    for stream, hour, minute in ((FINRA_STREAM, 7, 35), (KRX_STREAM, 8, 10)):
        seoul.at(kst(day, hour, minute, 5))
        windows.open_due(seoul.url, stream)
        if seoul.claim(stream) is not None:
            seoul.settle(stream, "SUCCESS", fetched=10)


def capture(operator: CaptureOperator | None = None) -> str:
    """The capture task runs to its end; its words."""
    operator = operator or CaptureOperator(task_id="capture")
    operator.execute(context(Ti(task_id="capture")))
    return str(operator.outcome)


def upkeep() -> str:
    """Upkeep looks once; its words."""
    operator = UpkeepOperator(task_id="look", sources=SOURCES)
    operator.execute(context(AirflowTi()))
    return operator.outcome


# --- what has a connection


def test_of_a_source_that_never_had_a_connection_nothing_is_expected_until_it_has_one(
    seoul: Seoul, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is taken away again is a fault, and late."""
    seoul.sql("delete from collect.streams where stream = %s", KRX_STREAM.name)
    monkeypatch.setenv("AIRFLOW_CONN_FINRA", DECLARED.hosts[0])
    monkeypatch.delenv("AIRFLOW_CONN_KRX", raising=False)
    midnight(seoul, DAY)
    seoul.at(kst(DAY, 8, 10, 5))
    seoul.work(FINRA_STREAM, kst(DAY, 7, 35))
    assert windows.open_due(seoul.url, KRX_STREAM) is None
    assert "krx" not in upkeep()
    seoul.at(kst(DAY, 8, 59, 58))
    assert capture().startswith("ALL GOOD – 09:00 of 2026-09-16: all 1 streams were complete")
    seoul.at(kst(DAY, 10))
    assert "krx" not in upkeep()
    assert seoul.sql("select 1 from ops.incidents where incident_key like '%%krx%%'") == []
    limits = audit.Limits()
    lines = audit.audit(seoul.url, STREAMS, None, limits, "a test", has_github=False)
    (line,) = [line for line in lines if "krx" in line]
    assert line == (
        "NOT IN SERVICE – krx.prices: no connection to krx was ever there; with one it comes into service by itself"
    )

    tomorrow = DAY + timedelta(days=1)
    monkeypatch.setenv("AIRFLOW_CONN_KRX", "https://example.invalid")
    midnight(seoul, tomorrow)
    monkeypatch.delenv("AIRFLOW_CONN_KRX")
    midnight(seoul, tomorrow)
    assert {row["stream"] for row in seoul.sql("select stream from collect.streams where active")} == {
        FINRA_STREAM.name, KRX_STREAM.name,
    }  # fmt: skip
    seoul.at(kst(tomorrow, 8, 59, 58))
    seoul.work(FINRA_STREAM, kst(tomorrow, 7, 35))
    assert capture().startswith("LATE – 09:00 of 2026-09-17: 1 of 2 streams were late: krx.prices NOT_STARTED")


def test_a_poll_brings_its_stream_into_service_and_what_an_operator_retired_stays_so(seoul: Seoul) -> None:
    seoul.sql("delete from collect.streams")
    windows.declare(seoul.url, STREAMS, is_connected=lambda stream: False)
    assert windows.open_due(seoul.url, KRX_STREAM) is None
    assert "out of service" in str(windows.standing(seoul.url, KRX_STREAM).frozen)
    seoul.at(kst(DAY, 8, 30))
    windows.declare(seoul.url, (KRX_STREAM,))
    assert windows.open_due(seoul.url, KRX_STREAM) is not None
    row = seoul.one("select activated_at, service_why from collect.streams where stream = %s", KRX_STREAM.name)
    assert (row["activated_at"] >= kst(DAY, 8, 30), row["service_why"]) == (True, None)
    seoul.sql("select collect.serve(%s, true, 'soon', 'kim')", FINRA_STREAM.name)
    seoul.sql("select collect.serve(%s, false, 'not any more', 'kim')", FINRA_STREAM.name)
    windows.declare(seoul.url, STREAMS)
    assert seoul.one("select active from collect.streams where stream = %s", FINRA_STREAM.name) == {"active": False}


# --- what is stopped or killed


def test_a_scheduler_that_stops_over_nine_leaves_the_resident_capture_alone(seoul: Seoul) -> None:
    """It was started at 08:58 and reports to the api-server by itself."""
    midnight(seoul, DAY)
    collected(seoul)
    seoul.at(kst(DAY, 8, 59, 58))
    assert capture().startswith("ALL GOOD – 09:00 of 2026-09-16: all 2 streams were complete")
    seoul.at(kst(DAY, 9, 0, 5))
    assert "MISSED" not in upkeep()
    assert seoul.read().captured_by == "sla_capture of manual-1"


def test_a_scheduler_that_stopped_before_the_capture_and_is_back_at_five_past_the_second_takes_it_late_and_exact(
    seoul: Seoul,
) -> None:
    midnight(seoul, DAY)
    collected(seoul)
    seoul.at(kst(DAY, 9, 0, 5))
    upkeep()
    assert seoul.read().status == "PENDING", "upkeep wrote no state, so there was nothing to put on a side"
    assert capture().startswith("ALL GOOD – ")
    found = seoul.read()
    assert found.offset is not None
    assert timedelta(seconds=5) <= found.offset < timedelta(minutes=1)


def test_what_was_written_while_the_scheduler_was_away_is_on_its_right_side(seoul: Seoul) -> None:
    """A worker that lives on finishes at 09:00:02: the snapshot is of nine, and was taken by that worker."""
    midnight(seoul, DAY)
    collected_but_krx(seoul)
    seoul.at(kst(DAY, 9, 0, 2))
    seoul.settle(KRX_STREAM, "SUCCESS", fetched=10)
    seoul.at(kst(DAY, 9, 0, 5))
    assert capture().startswith("LATE – 09:00 of 2026-09-16: 1 of 2 streams were late: krx.prices RUNNING")
    assert seoul.read().captured_by == "a worker"


def collected_but_krx(seoul: Seoul) -> None:
    seoul.at(kst(DAY, 7, 35, 5))
    seoul.work(FINRA_STREAM, kst(DAY, 7, 35))
    seoul.at(kst(DAY, 8, 10, 5))
    windows.open_due(seoul.url, KRX_STREAM)
    assert seoul.claim(KRX_STREAM) is not None


def test_a_holder_that_vanished_is_running_at_nine_although_upkeep_ends_its_lease_first(seoul: Seoul) -> None:
    midnight(seoul, DAY)
    collected_but_krx(seoul)
    seoul.sql("update collect.cycles set lease_until = %s where cycle_status = 'RUNNING'", kst(DAY, 8, 59))
    seoul.at(kst(DAY, 9, 0, 30))
    words = upkeep()
    assert "its holder vanished; FAILED now" in words
    assert seoul.states() == {"finra.short_volume": "SUCCESS", "krx.prices": "RUNNING"}
    assert seoul.read().captured_by == "recovery"


@pytest.mark.parametrize("by", ["upkeep", "the watcher, as Airflow is dead"])
def test_still_pending_at_five_past_nine_is_missed_whoever_looks_first(seoul: Seoul, by: str) -> None:
    midnight(seoul, DAY)
    collected_but_krx(seoul)
    seoul.sql("update collect.cycles set lease_until = %s where cycle_status = 'RUNNING'", kst(DAY, 8, 59))
    seoul.at(kst(DAY, 9, 5, 1))
    if by == "upkeep":
        assert "the snapshot of 2026-09-16 is MISSED now" in upkeep()
    else:
        watch.one_round(seoul.url, "watcher", has_slack=False)
    found = seoul.read()
    assert (found.status, found.late, found.items) == ("MISSED", None, None)
    assert capture().startswith("MISSED – ")
    assert [key for key in seoul.alerts() if key.startswith("snapshot/")] == ["snapshot/2026-09-16/MISSED"]


def test_a_capture_that_is_killed_is_tried_again_at_once(seoul: Seoul) -> None:
    midnight(seoul, DAY)
    collected(seoul)
    seoul.at(kst(DAY, 8, 59, 50))
    first = CaptureOperator(task_id="capture")
    killer = threading.Timer(0.3, first.on_kill)
    killer.start()
    assert capture(first).startswith("STOPPED – ")
    killer.join()
    seoul.at(kst(DAY, 8, 59, 59))
    assert capture().startswith("ALL GOOD – ")


def test_a_capture_whose_session_is_killed_behind_the_gate_leaves_it_to_who_holds_it(seoul: Seoul) -> None:
    """The session that waits for the gate dies; a session of the next attempt takes the snapshot."""
    midnight(seoul, DAY)
    collected_but_krx(seoul)
    seoul.at(kst(DAY, 8, 59, 59.9))
    with connect(seoul.url) as writer:
        values = seoul.settling(KRX_STREAM, "SUCCESS", fetched=10)
        writer.execute("select collect.settle(%(cycle)s, %(token)s, %(status)s, %(facts)s)", values)
        seoul.at(kst(DAY, 9, 0, 0.5))
        taking = beside(lambda: snapshot.capture_at(seoul.url, kst(DAY, 9), "sla_capture", nap=lambda seconds: None))
        wait_until_blocked(seoul.url)
        killed = seoul.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'daybook capture' and wait_event_type = 'Lock' and datname = current_database()"
        )
        assert killed
        writer.commit()
    assert taking.result().snapshot.status == "CAPTURED"
    assert seoul.states() == {"finra.short_volume": "SUCCESS", "krx.prices": "SUCCESS"}


def test_a_dispatch_that_ran_at_eight_only_is_in_time(seoul: Seoul) -> None:
    seoul.at(kst(DAY, 7, 35, 5))
    seoul.work(FINRA_STREAM, kst(DAY, 7, 35))
    midnight_at_eight(seoul)
    seoul.at(kst(DAY, 8, 10, 5))
    seoul.work(KRX_STREAM, kst(DAY, 8, 10))
    seoul.at(kst(DAY, 8, 59, 59))
    assert capture().startswith("ALL GOOD – ")


def midnight_at_eight(seoul: Seoul) -> None:
    seoul.at(kst(DAY, 8))
    snapshot.mark_missed(seoul.url)
    DispatchOperator(task_id="dispatch", sources=SOURCES).execute(context(Ti()))


# --- first deployment


def test_a_first_deployment_at_ten_is_unavailable_that_day_and_judged_the_next(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", database)
    for name in ("FINRA", "KRX"):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", "https://example.invalid")
    for name in ("run", "task"):
        monkeypatch.setattr(notes, name, lambda context, words: None)
    here = Seoul(database, STREAMS)
    here.at(kst(DAY, 10))
    # Unpausing creates the newest slot of each DAG at once, hours late.
    dispatching = DispatchOperator(task_id="dispatch", sources=SOURCES)
    dispatching.execute(context(Ti()))
    assert dispatching.outcome.startswith("NO SNAPSHOT – 2026-09-16: no stream was in service at 09:00.")
    assert capture().startswith("NOTHING TO TAKE – ")
    upkeep()
    assert here.read().status == snapshot.UNAVAILABLE
    assert here.alerts() == {}, "nobody is late, and nobody is told"
    tomorrow = DAY + timedelta(days=1)
    midnight(here, tomorrow)
    collected(here, tomorrow)
    here.at(kst(tomorrow, 8, 59, 59))
    assert capture().startswith("ALL GOOD – 09:00 of 2026-09-17: all 2 streams were complete")
    here.close()
    declared._SOURCES.clear()


# --- days of every kind


@pytest.mark.parametrize(
    ("day", "finra", "krx"),
    [
        pytest.param(date(2026, 9, 19), (date(2026, 9, 19), date(2026, 9, 18)), date(2026, 9, 18), id="Saturday"),
        pytest.param(date(2026, 9, 20), (date(2026, 9, 19), date(2026, 9, 18)), date(2026, 9, 18), id="Sunday"),
        pytest.param(date(2026, 9, 21), (date(2026, 9, 19), date(2026, 9, 18)), date(2026, 9, 21), id="Monday"),
        pytest.param(date(2026, 9, 8), (date(2026, 9, 8), date(2026, 9, 4)), date(2026, 9, 8), id="after Labor Day"),
        pytest.param(date(2026, 9, 25), (date(2026, 9, 25), date(2026, 9, 24)), date(2026, 9, 25), id="Chuseok"),
    ],
)
def test_each_kind_of_day_is_judged_by_the_last_window_that_was_due(
    seoul: Seoul, day: date, finra: tuple[date, date], krx: date
) -> None:
    """FINRA's run_date and session, and KRX's run_date, as the verdict of a day shows them."""
    for back in (2, 1, 0):
        midnight(seoul, day - timedelta(days=back))
        collected(seoul, day - timedelta(days=back))
    seoul.at(kst(day, 8, 59, 59))
    assert capture().startswith(f"ALL GOOD – 09:00 of {day}: all 2 streams were complete")
    items = seoul.items(day)
    assert (items["finra.short_volume"].run_date, items["finra.short_volume"].session_date) == finra
    assert items["krx.prices"].run_date == krx


def test_on_a_monday_a_saturday_that_failed_is_late(seoul: Seoul) -> None:
    saturday, monday = date(2026, 9, 19), date(2026, 9, 21)
    midnight(seoul, saturday)
    seoul.at(kst(saturday, 7, 35, 5))
    seoul.work(FINRA_STREAM, kst(saturday, 7, 35), "FAILED")
    midnight(seoul, monday)
    seoul.at(kst(monday, 8, 10, 5))
    seoul.work(KRX_STREAM, kst(monday, 8, 10))
    seoul.at(kst(monday, 8, 59, 59))
    assert capture().startswith("LATE – 09:00 of 2026-09-21: 1 of 2 streams were late: finra.short_volume FAILED")


def test_the_capture_makes_no_slice_work(seoul: Seoul, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycle, "work", lambda *a, **k: pytest.fail("the capture collected something"))
    midnight(seoul, DAY)
    seoul.at(kst(DAY, 9))
    assert capture().startswith("LATE – 09:00 of 2026-09-16: 2 of 2 streams were late")
