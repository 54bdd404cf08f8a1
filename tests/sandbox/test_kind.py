"""KIND's stand-in: its form, its encoding, its clock and its switches."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from include.sandbox.exchange import Answer, Call, SwitchError, World
from include.sandbox.kind import HEADINGS, SHOWN, Kind
from include.sandbox.kind_market import KONEX, KOSDAQ, KOSPI

AT = datetime.fromisoformat("2026-09-15T08:00:00+09:00")
QUERY = "method=download&searchType=13"


@pytest.fixture
def kind(tmp_path: Path) -> Kind:
    return Kind(World(tmp_path, companies=60))


def ask(kind: Kind, at: datetime = AT, query: str = QUERY, **more: Any) -> Answer:
    method = more.pop("method", "GET")
    return kind.answer(Call(method, "kind.krx.co.kr", "/corpgeneral/corpList.do", query, {}, b"", at, **more))


def codes(kind: Kind, at: datetime = AT, query: str = QUERY) -> list[str]:
    text = ask(kind, at, query).body.decode("cp949")
    return [part.partition("<")[0] for part in text.split('text-align:center;">')[1:]]


def test_the_body_is_a_table_in_the_portals_encoding_under_another_name(kind: Kind) -> None:
    given = ask(kind)
    assert dict(given.headers)["Content-Type"].startswith("application/vnd.ms-excel")
    text = given.body.decode("cp949")
    assert all(f">{heading}</th>" in text for heading in HEADINGS)
    assert text.rstrip().endswith("</html>")
    # A syllable that only the larger of the two encodings has, and what must be escaped.
    assert "똠방각하".encode("cp949") in given.body
    assert "R&amp;D" in text
    with pytest.raises(UnicodeDecodeError):
        given.body.decode("utf-8")


def test_the_list_is_whole_whatever_is_asked_for_and_of_one_market_where_that_is(kind: Kind) -> None:
    everybody = codes(kind)
    assert len(everybody) == len(set(everybody)) == 63
    assert sorted(everybody) == sorted(codes(kind, query=f"{QUERY}&currentPageSize=15"))
    by_market = [codes(kind, query=f"{QUERY}&marketType={name}") for name in ("stockMkt", "kosdaqMkt", "konexMkt")]
    assert sorted(code for market in by_market for code in market) == sorted(everybody)
    assert len(by_market[2]) == 3
    assert any(not code.isdigit() for code in everybody)
    assert any(code.startswith("00") for code in everybody)


def test_what_happens_shows_from_its_instant_on(kind: Kind) -> None:
    code = codes(kind)[7]
    later = AT + timedelta(days=1)
    kind.switch({"switch": "list", "code": "0042K0", "market": KONEX, "at": later.isoformat()})
    kind.switch({"switch": "delist", "code": code, "at": later.isoformat()})
    kind.switch({"switch": "change", "code": "0015G0", "at": later.isoformat(), "name": "새이름", "market": KOSPI})
    kind.switch({"switch": "hide", "code": "004840", "day": later.date().isoformat()})
    assert {"0042K0"}.isdisjoint(codes(kind))
    assert {code, "004840"} <= set(codes(kind))
    assert "0042K0" in codes(kind, later)
    assert {code, "004840"}.isdisjoint(codes(kind, later))
    assert "새이름" in ask(kind, later).body.decode("cp949")
    assert "0015G0" in codes(kind, later, f"{QUERY}&marketType=stockMkt")
    # A day without a row is no departure.
    assert "004840" in codes(kind, later + timedelta(days=1))
    kind.reset()
    assert codes(kind, later) == codes(kind)


@pytest.mark.parametrize("what", sorted(SHOWN))
def test_a_page_is_shown_in_place_of_the_list_for_as_long_as_it_was_ordered(kind: Kind, what: str) -> None:
    until = AT + timedelta(hours=1)
    kind.switch({"switch": "show", "what": what, "from": AT.isoformat(), "until": until.isoformat()})
    usual = ask(kind, AT - timedelta(seconds=1)).body
    assert ask(kind).body not in (usual, ask(kind, until).body)
    assert len(ask(kind, until).body) == len(usual)


@pytest.mark.parametrize(
    ("drift", "heading", "is_there"),
    [("renamed", "결산월", False), ("missing", "지역", False), ("extra", "영문명", True)],
)
def test_another_schema_on_command(kind: Kind, drift: str, heading: str, is_there: bool) -> None:
    assert (f">{heading}</th>" in ask(kind, drift=drift).body.decode("cp949")) is is_there


@pytest.mark.parametrize(
    "order",
    [
        {"switch": "nothing"},
        {"switch": "list", "code": 4840, "at": AT.isoformat()},
        {"switch": "list", "code": "004841", "market": "NASDAQ", "at": AT.isoformat()},
        {"switch": "list", "code": "004841", "at": "tomorrow"},
        {"switch": "change", "code": "004840", "at": AT.isoformat()},
        {"switch": "hide", "code": "004840", "day": "never"},
        {"switch": "show", "what": "fireworks", "from": AT.isoformat(), "until": AT.isoformat()},
        {"switch": "show", "what": "small", "share": 2, "from": AT.isoformat(), "until": AT.isoformat()},
    ],
)
def test_an_order_that_cannot_be_read_changes_nothing(kind: Kind, order: dict[str, Any]) -> None:
    before = codes(kind)
    with pytest.raises(SwitchError):
        kind.switch(order)
    assert codes(kind) == before
    assert KOSDAQ in ask(kind).body.decode("cp949")


def test_any_other_page_is_one_without_a_list(kind: Kind) -> None:
    assert "조회된 결과값이 없습니다." in ask(kind, query="method=loadInitPage").body.decode()
