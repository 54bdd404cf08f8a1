"""FRED's stand-in: its form, its clock, its vintages, its refusals and its switches."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from include.sandbox.exchange import Answer, Call, SwitchError, World
from include.sandbox.fred import Fred
from include.sandbox.fred_series import FREQUENCY_OF, ST_LOUIS, profile
from tests.fixtures_sandbox import MovableClock, Start

AT = datetime.fromisoformat("2026-09-15T18:20:00-04:00")
ALL = {"realtime_start": "1776-07-04", "realtime_end": "9999-12-31"}


@pytest.fixture
def fred(tmp_path: Path) -> Fred:
    return Fred(World(tmp_path, companies=300))


def ask(fred: Fred, endpoint: str, at: datetime = AT, drift: str | None = None, **params: str) -> Answer:
    query = urlencode({"api_key": "a" * 32, "file_type": "json", **params})
    return fred.answer(Call("GET", "api.stlouisfed.org", f"/fred/{endpoint}", query, {}, b"", at, drift=drift))


def read(fred: Fred, endpoint: str, at: datetime = AT, **params: str) -> Any:
    given = ask(fred, endpoint, at, **params)
    assert given.status == 200, given.body
    return json.loads(given.body)


def refused(fred: Fred, endpoint: str, at: datetime = AT, **params: str) -> tuple[int, str]:
    given = ask(fred, endpoint, at, **params)
    told = json.loads(given.body)
    assert told["error_code"] == given.status
    return given.status, told["error_message"]


def as_of(fred: Fred, series: str, at: datetime) -> dict[str, str]:
    """The values that FRED shows at an instant: its answer without a real-time period."""
    return {
        row["date"]: row["value"] for row in read(fred, "series/observations", at, series_id=series)["observations"]
    }


# --- form


def test_an_answer_has_the_upstreams_fields_in_its_order(fred: Fred) -> None:
    values = read(fred, "series/observations", series_id="GDP")
    assert list(values) == [
        "realtime_start", "realtime_end", "observation_start", "observation_end", "units", "output_type", "file_type",
        "order_by", "sort_order", "count", "offset", "limit", "observations",
    ]  # fmt: skip
    assert list(values["observations"][0]) == ["realtime_start", "realtime_end", "date", "value"]
    (item,) = read(fred, "series", series_id="GDP")["seriess"]
    assert list(item)[:5] == ["id", "realtime_start", "realtime_end", "title", "observation_start"]
    assert item["last_updated"][-3:] in ("-05", "-06")
    assert list(read(fred, "series/vintagedates", series_id="GDP"))[-1] == "vintage_dates"


def test_slashes_are_escaped_and_xml_is_the_default(fred: Fred) -> None:
    found = [ask(fred, "series", series_id=series).body for series in FREQUENCY_OF]
    assert any(b"https:\\/\\/example.org" in body for body in found)
    xml = ask(fred, "series/observations", series_id="GDP", file_type="xml")
    assert xml.body.startswith(b'<?xml version="1.0"')
    assert b"<observation realtime_start=" in xml.body
    no = ask(fred, "series", series_id="", file_type="xml")
    assert no.body.startswith(b'<?xml version="1.0"')
    assert b'<error code="400" message="Bad Request.' in no.body


@pytest.mark.parametrize("drift", ["renamed", "missing", "extra"])
def test_another_schema_on_command(fred: Fred, drift: str) -> None:
    rows = json.loads(ask(fred, "series/observations", drift=drift, series_id="GDP").body)["observations"]
    assert ("value" in rows[0]) is (drift == "extra")
    items = json.loads(ask(fred, "series", drift=drift, series_id="GDP").body)["seriess"]
    assert ("title" in items[0]) is (drift == "extra")


# --- vintages and the clock


@pytest.mark.parametrize("series", ["DGS10", "ICSA", "UNRATE", "GDP", "FPCPITOTLZGUSA"])
def test_every_day_shows_what_the_history_says_of_it(fred: Fred, series: str) -> None:
    window = {"realtime_start": "2022-01-01", "realtime_end": "9999-12-31"}
    rows = read(fred, "series/observations", series_id=series, **window)["observations"]
    for days in (0, 1, 40, 366, 1300):
        at = AT - timedelta(days=days)
        evening = datetime.combine(at.astimezone(ST_LOUIS).date(), datetime.max.time(), ST_LOUIS)
        today = f"{evening.date()}"
        told = {row["date"]: row["value"] for row in rows if row["realtime_start"] <= today <= row["realtime_end"]}
        shown = as_of(fred, series, evening)
        # What comes after the instant of the first question is in neither.
        assert days == 0 or shown == told


def test_what_is_not_published_yet_is_not_there(fred: Fred) -> None:
    changes = fred.shelf.published("UNRATE", AT)
    instant, day, text = changes[-1]
    before, after = as_of(fred, "UNRATE", instant - timedelta(seconds=1)), as_of(fred, "UNRATE", instant)
    assert before.get(f"{day}") != text
    assert after[f"{day}"] == text


def test_some_series_are_loaded_after_the_evenings_poll() -> None:
    late = [series for series in FREQUENCY_OF if profile(7, series, 12).is_late]
    assert 5 < len(late) < 40


def test_there_are_revisions_benchmarks_and_days_without_a_value(fred: Fred) -> None:
    rows = read(fred, "series/observations", series_id="UNRATE", **ALL)["observations"]
    by_day: dict[str, list[str]] = {}
    for row in rows:
        by_day.setdefault(row["date"], []).append(row["value"])
    assert max(map(len, by_day.values())) > 3
    benchmark = [row for row in rows if row["realtime_start"].startswith("2026-02-")]
    assert len(benchmark) > 12
    daily = read(fred, "series/observations", series_id="DGS10", realtime_start="2020-01-02", realtime_end="2026-09-15")
    texts = [row["value"] for row in daily["observations"] if row["date"].endswith("-12-25")]
    # Some of them are given later after all.
    assert texts.count(".") > len(texts) // 2


def test_periods_are_clipped_to_the_window(fred: Fred) -> None:
    window = {"realtime_start": "2025-12-31", "realtime_end": "2026-03-31"}
    rows = read(fred, "series/observations", series_id="DGS10", **window)["observations"]
    assert min(row["realtime_start"] for row in rows) == "2025-12-31"
    assert max(row["realtime_end"] for row in rows) == "2026-03-31"
    by_day: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        by_day.setdefault(row["date"], []).append((row["realtime_start"], row["realtime_end"]))
    for spans in by_day.values():
        for (_, end), (start, _) in pairwise(spans):
            assert date.fromisoformat(end) + timedelta(days=1) == date.fromisoformat(start)


def test_today_is_st_louis_day(fred: Fred) -> None:
    # 00:30 in New York is still the day before in St. Louis.
    at = datetime.fromisoformat("2026-09-16T00:30:00-04:00")
    assert read(fred, "series", at, series_id="GDP")["realtime_end"] == "2026-09-15"
    status, text = refused(fred, "series", at, series_id="GDP", realtime_end="2026-09-16")
    assert (status, "today's date (2026-09-15)" in text) == (400, True)


# --- refusals


def test_more_than_two_thousand_vintages_are_refused(fred: Fred) -> None:
    dates = read(fred, "series/vintagedates", series_id="DGS10")["vintage_dates"]
    assert len(dates) > 2_001
    status, text = refused(
        fred, "series/observations", series_id="DGS10", realtime_start=dates[0], realtime_end=dates[2000]
    )
    assert (status, "There are 2001 vintage dates" in text) == (400, True)
    read(fred, "series/observations", series_id="DGS10", realtime_start=dates[0], realtime_end=dates[1999])


def test_a_period_before_the_first_vintage_is_refused(fred: Fred) -> None:
    window = {"realtime_start": "1950-01-01", "realtime_end": "1954-12-31"}
    for endpoint in ("series", "series/observations"):
        status, text = refused(fred, endpoint, series_id="GDP", **window)
        assert (status, "does not exist in ALFRED" in text) == (400, True)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "series_id is not set"),
        ({"series_id": "GDP", "realtime_start": "01/02/2020"}, "YYYY-MM-DD"),
        ({"series_id": "GDP", "realtime_start": "2026-09-10", "realtime_end": "2026-09-01"}, "can not be after"),
        ({"series_id": "GDP", "realtime_start": "1700-01-01"}, "can not be before"),
        ({"series_id": "GDP", "limit": "100001"}, "between 1 and 100000"),
    ],
)
def test_what_cannot_be_is_refused_in_words(fred: Fred, params: dict[str, str], words: str) -> None:
    status, text = refused(fred, "series/observations", **params)
    assert status == 400
    assert words in text


def test_a_missing_key_and_an_unknown_path(fred: Fred) -> None:
    call = Call("GET", "api.stlouisfed.org", "/fred/series", "series_id=GDP&file_type=json", {}, b"", AT)
    assert b"api_key is not set" in fred.answer(call).body
    assert refused(fred, "serie", series_id="GDP") == (404, "Not Found")


# --- updates


def test_updates_name_the_series_of_a_span_newest_first(fred: Fred) -> None:
    span = {"start_time": "202609140000", "end_time": "202609152359"}
    found = read(fred, "series/updates", **span)
    times = [item["last_updated"] for item in found["seriess"]]
    assert found["count"] == len(times) > 10
    assert times == sorted(times, reverse=True)
    assert all("2026-09-14" <= text[:10] <= "2026-09-15" for text in times)
    assert len(read(fred, "series/updates", limit="3", **span)["seriess"]) == 3
    status, text = refused(fred, "series/updates", start_time="202609140000")
    assert (status, "together" in text) == (400, True)


# --- switches


def turn(fred: Fred, switch: str, **order: Any) -> None:
    fred.switch({"switch": switch, **order})


def test_a_series_may_be_unknown_withheld_or_without_vintages(fred: Fred) -> None:
    turn(fred, "unknown", series="GDP")
    assert "does not exist." in refused(fred, "series", series_id="GDP")[1]
    turn(fred, "withhold", series="UNRATE")
    assert refused(fred, "series/observations", series_id="UNRATE")[0] == 404
    read(fred, "series", series_id="UNRATE")
    turn(fred, "no_vintages", series="ICSA")
    assert "ALFRED" in refused(fred, "series", series_id="ICSA", **ALL)[1]
    assert as_of(fred, "ICSA", AT)
    turn(fred, "unknown", series="GDP", **{"is": False})
    read(fred, "series", series_id="GDP")


def test_values_are_revised_withdrawn_and_delayed_on_command(fred: Fred) -> None:
    turn(fred, "revise", series="GDP", date="2026-01-01", value="1.50", at="2026-09-15T09:00:00-05:00")
    turn(fred, "revise", series="GDP", date="2025-10-01", value=None, at="2026-09-15T09:00:00-05:00")
    shown = as_of(fred, "GDP", AT)
    assert shown["2026-01-01"] == "1.50"
    assert "2025-10-01" not in shown
    assert "2025-10-01" in as_of(fred, "GDP", AT - timedelta(days=1))
    instant, day, text = fred.shelf.published("UNRATE", AT)[-1]
    turn(fred, "delay", series="UNRATE", day=f"{instant.date()}", until="2026-09-20T08:00:00-05:00")
    assert as_of(fred, "UNRATE", AT).get(f"{day}") != text
    later = AT + timedelta(days=6)
    rows = read(
        fred, "series/observations", later, series_id="UNRATE", realtime_start="2026-09-01", realtime_end="9999-12-31"
    )
    assert ("2026-09-20", text) in {(row["realtime_start"], row["value"]) for row in rows["observations"]}


def test_descriptions_change_and_series_end_on_command(fred: Fred) -> None:
    turn(fred, "describe", series="GDP", at="2026-06-01T09:00:00-05:00", units="Billions of Chained 2030 Dollars")
    window = {"realtime_start": "2025-12-31", "realtime_end": "9999-12-31"}
    items = read(fred, "series", series_id="GDP", **window)["seriess"]
    assert [(item["realtime_start"], item["realtime_end"]) for item in items] == [
        ("2025-12-31", "2026-05-31"), ("2026-06-01", "9999-12-31"),
    ]  # fmt: skip
    turn(fred, "end", series="ICSA", last="2026-03-06", at="2026-04-01T09:00:00-05:00")
    (item,) = read(fred, "series", series_id="ICSA")["seriess"]
    assert item["title"].endswith("(DISCONTINUED)")
    assert max(as_of(fred, "ICSA", AT)) == "2026-03-06"


def test_pages_may_be_shorter_than_asked_for(fred: Fred) -> None:
    turn(fred, "page", n=20)
    first = read(fred, "series/observations", series_id="GDP", limit="100000")
    assert (len(first["observations"]), first["limit"]) == (20, 100000)
    assert first["count"] > 40
    second = read(fred, "series/observations", series_id="GDP", offset="20")
    assert second["observations"][0]["date"] > first["observations"][-1]["date"]


def test_requests_of_a_second_may_be_limited(fred: Fred) -> None:
    turn(fred, "limit", n=2)
    statuses = [ask(fred, "series", series_id="GDP").status for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert ask(fred, "series", AT + timedelta(seconds=1), series_id="GDP").status == 200


@pytest.mark.parametrize(
    "order",
    [
        {"switch": "explode"},
        {"switch": "unknown"},
        {"switch": "delay", "series": "GDP"},
        {"switch": "revise", "series": "GDP", "date": "2026-01-01", "value": 3, "at": "2026-09-15T09:00:00-05:00"},
        {"switch": "describe", "series": "GDP", "at": "2026-09-15T09:00:00-05:00"},
        {"switch": "key", "is": "rusty"},
        {"switch": "page", "n": 0},
    ],
)
def test_an_order_that_cannot_be_read_changes_nothing(fred: Fred, order: dict[str, Any]) -> None:
    before = fred.view()
    with pytest.raises(SwitchError):
        fred.switch(order)
    assert fred.view() == before


def test_switches_are_forgotten_on_command(fred: Fred) -> None:
    before = fred.view()
    turn(fred, "key", **{"is": "unknown"})
    assert "not registered" in refused(fred, "series", series_id="GDP")[1]
    turn(fred, "unknown", series="GDP")
    fred.reset()
    assert fred.view() == before
    read(fred, "series", series_id="GDP")


def test_a_key_is_not_kept_in_the_log(sandbox: Start) -> None:
    running = sandbox(clock=MovableClock(AT))
    key = "abcdefghijklmnopqrstuvwxyz012345"
    given = running.get(f"/api.stlouisfed.org/fred/series?series_id=GDP&file_type=json&api_key={key}")
    assert given.status_code == 200
    (entry,) = running.requests(host="api.stlouisfed.org")
    assert entry["kind"] == "series"
    assert key not in json.dumps(entry)
