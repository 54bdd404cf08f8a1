"""ECOS's stand-in: its form, its codes, its clock and its switches."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from include.sandbox.ecos import MESSAGES, Ecos, upstream
from include.sandbox.ecos_shelf import LISTED
from include.sandbox.exchange import Call, SwitchError, World

AT = datetime.fromisoformat("2026-09-15T08:20:00+09:00")


@pytest.fixture
def ecos(tmp_path: Path) -> Ecos:
    return Ecos(World(tmp_path, companies=50))


def ask(ecos: Ecos, rest: str, at: datetime = AT, key: str = "K", drift: str | None = None) -> dict[str, Any]:
    service, _, arguments = rest.partition("/")
    given = ecos.answer(
        Call("GET", "ecos.bok.or.kr", f"/api/{service}/{key}/json/kr/{arguments}", "", {}, b"", at, drift=drift)
    )
    assert given.status == 200
    return dict(json.loads(given.body))


def code(ecos: Ecos, rest: str, **more: Any) -> str:
    return str(ask(ecos, rest, **more)["RESULT"]["CODE"])


RATES = "StatisticSearch/1/1000/722Y001/D/20260101/20261231/0101000"


def test_an_answer_has_the_services_name_its_count_and_its_rows(ecos: Ecos) -> None:
    found = ask(ecos, RATES)["StatisticSearch"]
    assert list(found) == ["list_total_count", "row"]
    assert found["list_total_count"] == len(found["row"]) > 150
    assert list(found["row"][0])[:3] == ["STAT_CODE", "STAT_NAME", "ITEM_CODE1"]
    assert {row["ITEM_CODE2"] for row in found["row"]} == {None}
    # The cycle is not in the row.
    assert "CYCLE" not in found["row"][0]
    assert "20260912" not in {row["TIME"] for row in found["row"]}


@pytest.mark.parametrize("statistic", sorted(LISTED))
def test_the_list_of_items_says_what_can_be_asked_for(ecos: Ecos, statistic: str) -> None:
    items = ask(ecos, f"StatisticItemList/1/1000/{statistic}")["StatisticItemList"]["row"]
    levels: dict[str, list[dict[str, Any]]] = {}
    for row in items:
        levels.setdefault(row["GRP_CODE"], []).append(row)
    chosen = [rows[0] for rows in levels.values()]
    span = f"{chosen[0]['CYCLE']}/{chosen[0]['START_TIME']}/{chosen[0]['END_TIME']}"
    codes = "/".join(row["ITEM_CODE"] for row in chosen)
    found = ask(ecos, f"StatisticSearch/1/100000/{statistic}/{span}/{codes}")["StatisticSearch"]
    assert found["list_total_count"] == chosen[0]["DATA_CNT"]


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("StatisticSearch/1/10/ZZZZZZZ/D/20260101/20261231/0101000", "INFO-200"),
        ("StatisticSearch/1/10/722Y001/D/20260101/20261231/9999999", "INFO-200"),
        ("StatisticSearch/1/10/722Y001/Q/2026Q1/2026Q2/0101000", "INFO-200"),
        ("StatisticSearch/1/10/722Y001/D/20270101/20271231/0101000", "INFO-200"),
        ("StatisticItemList/1/10/ZZZZZZZ", "INFO-200"),
        ("StatisticSearch/1/10/722Y001/D/202601/202612/0101000", "ERROR-101"),
        ("StatisticSearch/x/10/722Y001/D/20260101/20261231/0101000", "ERROR-300"),
        ("StatisticSearch/1/900000/722Y001/D/20260101/20261231/0101000", "ERROR-301"),
        ("StatisticSearch/1/10/722Y001", "ERROR-100"),
    ],
)
def test_what_cannot_be_answered_is_a_code(ecos: Ecos, rest: str, expected: str) -> None:
    assert code(ecos, rest) == expected


def test_the_key_for_demonstrations_gives_ten_rows(ecos: Ecos) -> None:
    assert code(ecos, RATES, key="sample") == "ERROR-301"
    assert len(ask(ecos, RATES.replace("/1000/", "/10/"), key="sample")["StatisticSearch"]["row"]) == 10


def test_levels_that_are_left_out_mix_their_items(ecos: Ecos) -> None:
    mixed = ask(ecos, "StatisticSearch/1/1000/901Y033/M/202601/202603/A00")["StatisticSearch"]["row"]
    assert {row["ITEM_CODE2"] for row in mixed} == {"1", "2"}


def test_values_appear_in_the_evening_and_change_by_switch_alone(ecos: Ecos) -> None:
    noon, night = AT + timedelta(hours=4), AT + timedelta(hours=11)
    times = [{row["TIME"] for row in ask(ecos, RATES, at=at)["StatisticSearch"]["row"]} for at in (noon, night)]
    assert times[1] - times[0] == {"20260915"}
    ecos.switch(
        {
            "switch": "revise",
            "series": "722Y001.D.0101000",
            "period": "20260911",
            "value": "9.9",
            "at": noon.isoformat(),
        }
    )
    ecos.switch({"switch": "unit", "series": "722Y001.D.0101000", "unit": "%", "at": night.isoformat()})
    shown = [
        {
            row["TIME"]: (row["DATA_VALUE"], row["UNIT_NAME"])
            for row in ask(ecos, RATES, at=at)["StatisticSearch"]["row"]
        }["20260911"]
        for at in (AT, noon, night)
    ]
    assert shown[0][0] != "9.9"
    assert shown[1:] == [("9.9", "연%"), ("9.9", "%")]
    ecos.switch({"switch": "retire", "series": "722Y001.D.0101000", "at": night.isoformat()})
    assert code(ecos, RATES, at=night) == "INFO-200"
    ecos.reset()
    assert len(ask(ecos, RATES, at=night)["StatisticSearch"]["row"]) == len(times[1])


def test_too_many_calls_lock_out_for_half_an_hour(ecos: Ecos) -> None:
    ecos.switch({"switch": "limit", "n": 2})
    assert "StatisticSearch" in ask(ecos, RATES)
    assert "StatisticSearch" in ask(ecos, RATES)
    assert code(ecos, RATES) == "ERROR-602"
    assert code(ecos, RATES, at=AT + timedelta(minutes=29)) == "ERROR-602"
    assert "StatisticSearch" in ask(ecos, RATES, at=AT + timedelta(minutes=31))


def test_any_code_can_be_said_and_a_key_refused(ecos: Ecos) -> None:
    for each in MESSAGES:
        ecos.switch({"switch": "say", "code": each})
        assert code(ecos, RATES) == each
    assert "StatisticSearch" in ask(ecos, RATES)
    ecos.switch({"switch": "key", "is": "unknown"})
    assert code(ecos, RATES) == "INFO-100"
    ecos.switch({"switch": "key", "is": "good"})
    ecos.switch({"switch": "page", "n": 5})
    assert len(ask(ecos, RATES)["StatisticSearch"]["row"]) == 5


@pytest.mark.parametrize(("drift", "has"), [("renamed", False), ("missing", False), ("extra", True)])
def test_another_schema_on_command(ecos: Ecos, drift: str, has: bool) -> None:
    row = ask(ecos, RATES, drift=drift)["StatisticSearch"]["row"][0]
    assert ("DATA_VALUE" in row) is has


def test_the_key_stays_out_of_the_log(tmp_path: Path) -> None:
    mask = upstream(World(tmp_path)).mask
    assert mask("/api/StatisticSearch/SECRET/json/kr/1/10/722Y001") == "/api/StatisticSearch/***/json/kr/1/10/722Y001"


@pytest.mark.parametrize(
    "order",
    [
        {"switch": "nothing"},
        {"switch": "revise", "series": "ZZZ.D.1", "period": "2026", "value": "1", "at": AT.isoformat()},
        {"switch": "revise", "series": "722Y001.D.0101000", "period": "20260911", "value": 1, "at": AT.isoformat()},
        {"switch": "retire", "series": "722Y001.D.0101000", "at": "soon"},
        {"switch": "key", "is": "lost"},
        {"switch": "page", "n": 0},
        {"switch": "say", "code": "ERROR-1"},
    ],
)
def test_an_order_that_cannot_be_read_changes_nothing(ecos: Ecos, order: dict[str, Any]) -> None:
    before = ecos.view()
    with pytest.raises(SwitchError):
        ecos.switch(order)
    assert ecos.view() == before
