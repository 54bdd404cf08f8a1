"""The watcher: with the database and Slack alone it tells that Airflow's scheduler is silent, and what is past due."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from include.engine import lookout
from include.ops import watch
from tests.engine.seoul import DAY, Seoul, kst

SILENT = "silent/scheduler"


@pytest.fixture
def seoul(database: str) -> Iterator[Seoul]:
    here = Seoul(database, ())
    here.at(kst(DAY, 10))
    yield here
    here.close()


def rounds(seoul: Seoul, since_minutes: float) -> list[str]:
    """One round of a watcher that has listened for so long; the open incidents."""
    since = seoul.one("select collect.clock() - %s * interval '1 minute' as t", since_minutes)["t"]
    watch.one_round(seoul.url, "watcher", has_slack=False, since=since)
    return [row["incident_key"] for row in seoul.sql("select incident_key from ops.incidents where closed_at is null")]


def test_upkeep_that_ran_five_minutes_ago_is_not_silent(seoul: Seoul) -> None:
    lookout.show_life(seoul.url)
    seoul.advance(minutes=5)
    assert rounds(seoul, 60) == []


def test_upkeep_that_is_silent_for_six_minutes_is_told_once_and_its_return_too(seoul: Seoul) -> None:
    lookout.show_life(seoul.url)
    seoul.advance(minutes=6, seconds=1)
    assert rounds(seoul, 60) == [SILENT]
    assert rounds(seoul, 60) == [SILENT]
    (told,) = seoul.alerts().values()
    assert "scheduler is SILENT: upkeep, which runs every two minutes, last did at 2026-09-16 10:00 KST" in told
    lookout.show_life(seoul.url)
    assert rounds(seoul, 60) == []
    _, recovered = seoul.alerts().values()
    assert recovered.startswith("RECOVERED: Airflow's scheduler runs")


def test_nobody_was_silent_before_the_watcher_began_to_listen(seoul: Seoul) -> None:
    """A stack that was down over night starts both at once."""
    lookout.show_life(seoul.url)
    seoul.advance(hours=9)
    assert rounds(seoul, 5) == []
    assert rounds(seoul, 7) == [SILENT]


def test_a_scheduler_that_never_came_up_is_told_too(seoul: Seoul) -> None:
    assert rounds(seoul, 5) == []
    assert rounds(seoul, 7) == [SILENT]


def test_the_watcher_looks_for_what_is_past_due_though_airflow_is_dead(
    seoul: Seoul, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(watch.lookout, "look", lambda url, streams: looked.extend(s.name for s in streams) or [])
    watch.one_round(seoul.url, "watcher", has_slack=False, looks=True)
    assert "finra.short_volume" in looked
