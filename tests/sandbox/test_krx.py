"""The stand-in speaks as KRX's OpenAPI does: texts, an empty block for every kind of nothing, keys, quota, switches."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from include.calendars import calendar
from include.sandbox.krx_forms import percent
from tests.fixtures_sandbox import MovableClock, RunningSandbox, Start

KEY = {"AUTH_KEY": "a key"}
SEOUL = ZoneInfo("Asia/Seoul")
KOSPI, KOSDAQ, KONEX = "sto/stk_bydd_trd", "sto/ksq_bydd_trd", "sto/knx_bydd_trd"


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(datetime(2026, 9, 15, 9, 0, tzinfo=SEOUL))


@pytest.fixture
def krx(sandbox: Start, clock: MovableClock) -> RunningSandbox:
    # Built once in a process, which takes seconds, and on a busy machine longer than a caller waits.
    assert calendar("XKRX").is_session(date(2026, 9, 14))
    return sandbox(clock=clock, companies=40)


def ask(krx: RunningSandbox, service: str, day: str, headers: dict[str, str] | None = None) -> httpx.Response:
    path = f"/data-dbg.krx.co.kr/svc/apis/{service}"
    return krx.get(path, params={"basDd": day}, headers=KEY if headers is None else headers)


def rows(krx: RunningSandbox, service: str, day: str) -> list[dict[str, str]]:
    answer = ask(krx, service, day)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, str]] = answer.json()["OutBlock_1"]
    return found


def test_every_value_is_a_text_and_a_row_adds_up(krx: RunningSandbox) -> None:
    found = rows(krx, KOSPI, "20260914")
    assert list(found[0]) == [
        "BAS_DD", "ISU_CD", "ISU_NM", "MKT_NM", "SECT_TP_NM", "TDD_CLSPRC", "CMPPREVDD_PRC", "FLUC_RT", "TDD_OPNPRC",
        "TDD_HGPRC", "TDD_LWPRC", "ACC_TRDVOL", "ACC_TRDVAL", "MKTCAP", "LIST_SHRS",
    ]  # fmt: skip
    assert all(type(value) is str for row in found for value in row.values())
    before = {row["ISU_CD"]: int(row["TDD_CLSPRC"]) for row in rows(krx, KOSPI, "20260911")}
    for row in found:
        assert int(row["TDD_CLSPRC"]) - int(row["CMPPREVDD_PRC"]) == before[row["ISU_CD"]]
        assert int(row["MKTCAP"]) == int(row["TDD_CLSPRC"]) * int(row["LIST_SHRS"])
    # The same row with the suffix, and a sample of the market it is for.
    assert rows(krx, f"{KOSPI}.json", "20260914") == found
    assert {"005930", "28513K"} <= {row["ISU_CD"] for row in found}
    assert {row["MKT_NM"] for row in rows(krx, KOSDAQ, "20260914")} == {"KOSDAQ", "KOSDAQ GLOBAL"}


def test_a_session_appears_on_the_morning_of_the_next_one(krx: RunningSandbox, clock: MovableClock) -> None:
    assert rows(krx, KONEX, "20260914")
    clock.at = datetime(2026, 9, 15, 7, 59, tzinfo=SEOUL)
    assert not rows(krx, KONEX, "20260914")
    assert rows(krx, KONEX, "20260911")
    # Over the holidays nothing appears: Wednesday's session comes on Monday.
    clock.at = datetime(2026, 9, 25, 12, 0, tzinfo=SEOUL)
    assert not rows(krx, KONEX, "20260923")
    clock.at = datetime(2026, 9, 28, 8, 6, tzinfo=SEOUL)
    assert rows(krx, KONEX, "20260923")


@pytest.mark.parametrize("day", ["20260913", "20260501", "20260915", "20990101", "20091230", "", "20261399"])
def test_every_kind_of_nothing_is_the_same_empty_block(krx: RunningSandbox, day: str) -> None:
    assert ask(krx, KOSPI, day).text == '{"OutBlock_1":[]}'


def test_isu_cd_is_the_isin_in_the_master_alone(krx: RunningSandbox) -> None:
    listed = rows(krx, "sto/ksq_isu_base_info", "20260914")
    assert all(len(row["ISU_CD"]) == 12 for row in listed)
    assert {row["ISU_SRT_CD"] for row in listed} == {row["ISU_CD"] for row in rows(krx, KOSDAQ, "20260914")}
    assert "BAS_DD" not in listed[0]


def test_keys_services_and_calls_are_refused_in_krxs_words(krx: RunningSandbox) -> None:
    assert ask(krx, KOSPI, "20260914", headers={}).json() == {"respMsg": "Unauthorized Key", "respCode": "401"}
    assert ask(krx, "sto/none_such", "20260914").status_code == 403
    krx.switch("krx", "refuse", service=KOSPI)
    refused = ask(krx, KOSPI, "20260914")
    assert (refused.status_code, refused.json()["respMsg"]) == (401, "Unauthorized API Call")
    assert rows(krx, KOSDAQ, "20260914")
    krx.switch("krx", "quota", n=2)
    assert rows(krx, KOSDAQ, "20260914")
    assert ask(krx, KOSDAQ, "20260914").status_code == 429


def test_what_happens_to_an_issue_is_seen_from_its_day_on(krx: RunningSandbox) -> None:
    krx.switch("krx", "halt", code="005930", first="2026-09-09", last="2026-09-10")
    krx.switch("krx", "split", code="005930", day="2026-09-11", ratio=50)
    krx.switch("krx", "move", code="112190", day="2026-09-10", market="KOSDAQ")
    krx.switch("krx", "end", code="0099X0", last="2026-09-09")
    krx.switch("krx", "list", code="0123A0", day="2026-09-10", market="KOSDAQ")

    def codes(service: str, day: str) -> set[str]:
        return {row["ISU_CD"] for row in rows(krx, service, day)}

    def electronics(day: str) -> dict[str, str]:
        return next(row for row in rows(krx, KOSPI, day) if row["ISU_CD"] == "005930")

    halted, after = electronics("20260910"), electronics("20260911")
    assert [halted[name] for name in ("TDD_OPNPRC", "TDD_HGPRC", "TDD_LWPRC", "ACC_TRDVOL", "CMPPREVDD_PRC")] == [
        "0"
    ] * 5
    assert halted["TDD_CLSPRC"] == electronics("20260908")["TDD_CLSPRC"]
    assert int(after["TDD_CLSPRC"]) - int(after["CMPPREVDD_PRC"]) == int(halted["TDD_CLSPRC"]) // 50
    assert int(after["LIST_SHRS"]) == 50 * int(halted["LIST_SHRS"])
    assert {"112190", "0099X0"} <= codes(KONEX, "20260909")
    assert not {"112190", "0099X0"} & codes(KONEX, "20260910")
    assert {"112190", "0123A0"} <= codes(KOSDAQ, "20260910")
    assert "0123A0" not in codes(KOSDAQ, "20260909")


def test_closed_days_and_placeholders_come_by_switch(krx: RunningSandbox) -> None:
    assert rows(krx, KOSPI, "20260910")
    krx.switch("krx", "close", day="2026-09-10")
    assert not rows(krx, KOSPI, "20260910")
    krx.switch("krx", "placeholders", day="2026-09-10")
    assert {row["TDD_CLSPRC"] for row in rows(krx, KOSPI, "20260910")} == {"-"}
    assert krx.control("GET", "krx")["closed"] == ["2026-09-10"]
    krx.control("DELETE", "krx")
    assert krx.control("GET", "krx")["closed"] == []


@pytest.mark.parametrize(
    "order",
    [
        {"switch": "none such"},
        {"switch": "close", "day": "yesterday"},
        {"switch": "refuse", "service": "sto/other"},
        {"switch": "move", "code": "112190", "day": "2026-09-10", "market": "NASDAQ"},
        {"switch": "split", "code": "112190", "day": "2026-09-10", "ratio": 1},
        {"switch": "halt", "code": "1", "first": "2026-09-10", "last": "2026-09-11"},
        {"switch": "quota", "n": 0},
        {"switch": "partial", "day": "2026-09-10", "percent": 100, "until": "2026-09-10T08:00:00+09:00"},
    ],
)
def test_a_switch_that_cannot_be_read_changes_nothing(krx: RunningSandbox, order: dict[str, Any]) -> None:
    before = krx.control("GET", "krx")
    answer = httpx.post(f"{krx.url}/_sandbox/switches", json={"upstream": "krx", **order}, timeout=30)
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert krx.control("GET", "krx") == before


def test_percents_are_rounded_as_a_person_would() -> None:
    assert [percent(8500, 252500), percent(-25, 1831), percent(0, 521), percent(-1, 10**6)] == [
        "3.37", "-1.37", "0.00", "0.00",
    ]  # fmt: skip


def test_a_market_of_the_real_size_has_its_shares_of_codes_with_letters(sandbox: Start, clock: MovableClock) -> None:
    large = sandbox(clock=clock, companies=2_800)
    found = [row["ISU_CD"] for service in (KOSPI, KOSDAQ, KONEX) for row in rows(large, service, "20260914")]
    assert len(found) == len(set(found)) > 2_700
    assert 100 < sum(not code.isdigit() for code in found) < 300
    assert date(2026, 9, 14).strftime("%Y%m%d") == rows(large, KONEX, "20260914")[0]["BAS_DD"]
