"""Incidents: opened and closed by whoever finds it so, told when they open, get worse, last a day, and end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from include.engine import incidents
from include.engine.db import connect
from tests.engine.desk import beside, wait_until_blocked
from tests.engine.seoul import DAY, Seoul, kst

KEY = "kind/of thing"


@pytest.fixture
def seoul(database: str) -> Iterator[Seoul]:
    here = Seoul(database)
    here.at(kst(DAY, 10))
    yield here
    here.close()


def see(seoul: Seoul, severity: incidents.Severity = "warning", **more: Any) -> bool:
    with connect(seoul.url, autocommit=True) as connection:
        return incidents.open(connection, key=KEY, severity=severity, text=f"it is {severity}", **more)


def end(seoul: Seoul) -> int:
    with connect(seoul.url, autocommit=True) as connection:
        return incidents.close(connection, [KEY], "it is gone")


def rows(seoul: Seoul) -> list[dict[str, Any]]:
    return seoul.sql("select * from ops.incidents order by incident_id")


def test_an_incident_is_told_when_it_opens_and_not_each_time_it_is_seen(seoul: Seoul) -> None:
    assert [see(seoul) for _ in range(3)] == [True, False, False]
    (row,) = rows(seoul)
    assert (row["kind"], row["seen_count"], row["told_count"], row["closed_at"]) == ("kind", 3, 1, None)
    assert list(seoul.alerts().values()) == ["it is warning"]


def test_it_is_told_again_when_it_gets_worse_and_keeps_the_worst(seoul: Seoul) -> None:
    assert see(seoul)
    assert see(seoul, "critical")
    assert not see(seoul, "error")
    assert rows(seoul)[0]["severity"] == "critical"
    assert rows(seoul)[0]["text"] == "it is error"
    assert list(seoul.alerts().values()) == ["it is warning", "it is critical"]


def test_what_lasts_is_told_once_more_after_a_day_and_not_before(seoul: Seoul) -> None:
    see(seoul)
    seoul.advance(hours=19)
    assert not see(seoul)
    seoul.advance(hours=2)
    assert see(seoul)
    assert not see(seoul)
    assert len(seoul.alerts()) == 2


def test_that_it_is_over_is_told_once_with_when_it_began(seoul: Seoul) -> None:
    see(seoul)
    seoul.advance(hours=1)
    assert [end(seoul), end(seoul)] == [1, 0]
    recovered = list(seoul.alerts().values())[-1]
    assert recovered == "RECOVERED: it is gone (It began 2026-09-16 10:00 KST: it is warning)"
    assert rows(seoul)[0]["closed_text"] == "it is gone"


def test_one_that_comes_back_is_another_and_told_again(seoul: Seoul) -> None:
    see(seoul)
    end(seoul)
    assert see(seoul)
    assert [row["closed_at"] is None for row in rows(seoul)] == [False, True]
    assert len(seoul.alerts()) == 3


def test_a_fact_with_a_key_of_its_own_is_told_once_whoever_finds_it(seoul: Seoul) -> None:
    assert [see(seoul, alert_key="past-due/x/slot") for _ in range(2)] == [True, False]
    assert list(seoul.alerts()) == ["past-due/x/slot"]


def test_a_fact_that_was_told_as_over_and_is_back_is_told_again(seoul: Seoul) -> None:
    """Whoever read that it is over would never hear of it any more."""
    see(seoul, alert_key="past-due/x/slot")
    end(seoul)
    assert see(seoul, alert_key="past-due/x/slot")
    told = list(seoul.alerts())
    assert [key.endswith("/recovered") for key in told] == [False, True, False]
    assert told[2].startswith("past-due/x/slot/")


def test_a_fact_with_a_key_of_its_own_is_told_again_when_it_gets_worse_or_lasts_a_day(seoul: Seoul) -> None:
    see(seoul, alert_key="past-due/x/slot")
    assert see(seoul, "critical", alert_key="past-due/x/slot")
    seoul.advance(hours=21)
    assert see(seoul, "critical", alert_key="past-due/x/slot")
    assert list(seoul.alerts().values()) == ["it is warning", "it is critical", "it is critical"]
    assert rows(seoul)[0]["told_count"] == 3


def test_two_who_find_it_at_once_open_one(seoul: Seoul) -> None:
    with connect(seoul.url) as first:
        incidents.open(first, key=KEY, severity="warning", text="by the first")
        second = beside(lambda: see(seoul))
        wait_until_blocked(seoul.url)
        first.commit()
    assert second.result() is False
    (row,) = rows(seoul)
    assert row["seen_count"] == 2


def test_what_is_rolled_back_was_never_opened_nor_told(seoul: Seoul) -> None:
    with connect(seoul.url) as connection:
        incidents.open(connection, key=KEY, severity="warning", text="x")
        connection.rollback()
    assert rows(seoul) == []
    assert seoul.alerts() == {}


def test_the_worst_of_what_lasts_is_listed_first_and_what_ended_only_where_asked_for(seoul: Seoul) -> None:
    with connect(seoul.url, autocommit=True) as connection:
        for key, severity in (("a/1", "warning"), ("a/2", "critical"), ("a/3", "error")):
            incidents.open(connection, key=key, severity=severity, text="x")  # type: ignore[arg-type]
        incidents.close(connection, ["a/3"], "gone")
    assert [row["incident_key"] for row in incidents.listed(seoul.url)] == ["a/2", "a/1"]
    since = seoul.now() - timedelta(hours=1)
    assert [row["incident_key"] for row in incidents.listed(seoul.url, since)] == ["a/2", "a/1", "a/3"]
