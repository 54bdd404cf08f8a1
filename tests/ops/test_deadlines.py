"""Deadlines: only scheduled runs and windows that are not over are told, once, under the window's own key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from include.engine import lookout
from include.ops import deadlines
from include.registry import stream
from tests.engine.seoul import DAY, Seoul, kst

FINRA = stream("finra.short_volume")
SLOT, START = "2026-09-15T22:35:00Z", kst(DAY, 7, 35)


@pytest.fixture
def seoul(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seoul]:
    """Wednesday, an hour and a bit after FINRA's window of Tuesday evening opened."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", database)
    here = Seoul(database, (FINRA,))
    here.at(kst(DAY, 0, 1))
    here.activated()
    here.dispatch()
    here.at(START + FINRA.schedule.allowance + deadlines.GRACE)
    yield here
    here.close()


def missed(dag_id: str, instant: Any, what: str = "system", run_type: str = "scheduled") -> None:
    """What Airflow's triggerer calls, with what it gives: a run as its REST API shows it."""
    run = {
        "dag_id": dag_id, "dag_run_id": "x", "run_type": run_type,
        "logical_date": instant.isoformat() if instant else None,
    }  # fmt: skip
    asyncio.run(deadlines.missed(what=what, context={"dag_run": run, "deadline": {"id": "1"}}))


def test_a_window_that_is_not_over_is_told_under_its_own_key_and_once(seoul: Seoul) -> None:
    missed("finra", START, "windows")
    missed("finra", START, "windows")
    seoul.advance(minutes=1)
    lookout.look(seoul.url, seoul.streams)
    assert [key for key in seoul.alerts() if key.startswith("past-due/")] == [f"past-due/finra.short_volume/{SLOT}"]


@pytest.mark.parametrize("run_type", ["manual", "backfill", "asset_triggered"])
def test_a_run_that_was_not_scheduled_is_told_of_nobody(seoul: Seoul, run_type: str) -> None:
    missed("finra", START, "windows", run_type)
    assert seoul.alerts() == {}


def test_a_run_without_a_logical_date_is_told_of_nobody(seoul: Seoul) -> None:
    missed("finra", None, "windows")
    assert seoul.alerts() == {}


@pytest.mark.parametrize("status", ["SUCCESS", "FAILED", "BUDGET_EXHAUSTED"])
def test_a_window_that_is_over_is_told_of_nobody_whatever_became_of_the_run(seoul: Seoul, status: str) -> None:
    seoul.work(FINRA, START, status)
    missed("finra", START, "windows")
    assert seoul.alerts() == {}


def test_a_deadline_of_long_ago_is_dropped_where_a_later_window_is_over(seoul: Seoul) -> None:
    """An unpaused DAG gets its newest slot at once, hours late."""
    seoul.work(FINRA, START)
    missed("finra", START - timedelta(days=1), "windows")
    assert seoul.alerts() == {}


def test_a_day_that_was_dispatched_is_told_of_nobody_and_one_that_was_not_is(seoul: Seoul) -> None:
    missed("dispatch", kst(DAY))
    assert seoul.alerts() == {}
    tomorrow = DAY + timedelta(days=1)
    seoul.at(kst(tomorrow, 0, 31))
    missed("dispatch", kst(tomorrow))
    assert list(seoul.alerts()) == [f"deadline/dispatch/{tomorrow}"]


def test_a_snapshot_that_nobody_took_by_two_past_nine_is_told_and_so_is_its_end(seoul: Seoul) -> None:
    seoul.at(kst(DAY, 9, 2))
    missed("sla_capture", kst(DAY, 8, 58))
    assert list(seoul.alerts()) == [f"deadline/sla_capture/{DAY}"]
    seoul.capture()
    lookout.look(seoul.url, seoul.streams)
    assert "the snapshot of 2026-09-16 is final" in str(seoul.alerts())


def test_a_snapshot_that_somebody_else_took_is_told_of_nobody(seoul: Seoul) -> None:
    seoul.at(kst(DAY, 9))
    seoul.capture(who="the first writer")
    before = seoul.alerts()
    missed("sla_capture", kst(DAY, 8, 58))
    assert seoul.alerts() == before


def test_a_silent_upkeep_and_the_watcher_tell_one_thing(seoul: Seoul) -> None:
    begun = seoul.now()
    lookout.show_life(seoul.url)
    seoul.advance(minutes=7)
    missed("upkeep", begun)
    lookout.listen(seoul.url, begun)
    assert len(seoul.alerts()) == 1
    assert "SILENT" in next(iter(seoul.alerts().values()))


def test_an_upkeep_that_was_late_and_ran_since_is_told_of_nobody(seoul: Seoul) -> None:
    begun = seoul.now()
    seoul.advance(minutes=5)
    lookout.show_life(seoul.url)
    seoul.advance(minutes=2)
    missed("upkeep", begun)
    assert seoul.alerts() == {}


def test_the_calendar_of_the_demo_and_the_real_one_do_not_meet(seoul: Seoul) -> None:
    """Airflow's schedule is never simulated: a slot that the simulated clock has not reached is told of nobody."""
    missed("finra", kst(date(2027, 3, 1), 8, 35), "windows")
    missed("sla_capture", kst(date(2027, 3, 1), 8, 58))
    missed("upkeep", kst(date(2027, 3, 1), 8, 58))
    assert seoul.alerts() == {}
