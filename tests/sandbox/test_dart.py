"""DART's stand-in answers in the upstream's own form, with its limits and its ways of saying no."""

from __future__ import annotations

import io
import zipfile
from datetime import datetime, timedelta
from xml.etree import ElementTree

import pytest

from include.sandbox.dart_filings import SEOUL, Filings
from include.sandbox.dart_periodic import has_statements, has_subsidiaries
from tests.fixtures_sandbox import MovableClock, RunningSandbox, Start

NOON = datetime(2026, 9, 15, 12, 0, tzinfo=SEOUL)
LIST = "/opendart.fss.or.kr/api/list.json?crtfc_key=k"


@pytest.fixture
def dart(sandbox: Start) -> RunningSandbox:
    return sandbox(clock=MovableClock(NOON), companies=300)


@pytest.mark.parametrize(
    ("first", "last", "status"),
    [
        ("20260206", "20260506", "000"),
        ("20260206", "20260507", "100"),
        ("20260609", "20260909", "000"),
        ("20251215", "20260316", "100"),
        ("20260228", "20260531", "100"),
        ("20260129", "20260430", "100"),
        ("20260130", "20260430", "000"),
        ("20260916", "20260916", "013"),
        ("20260915", "20260914", "100"),
        ("2026-9-15", "20260915", "100"),
    ],
)
def test_without_a_company_three_calendar_months_are_the_most(
    dart: RunningSandbox, first: str, last: str, status: str
) -> None:
    assert dart.get(f"{LIST}&bgn_de={first}&end_de={last}").json()["status"] == status
    of_one = f"{LIST}&bgn_de=20250901&end_de=20260915&corp_code=00100000"
    assert dart.get(of_one).json()["status"] == "000"


def test_pages_add_up_and_rows_are_in_order_of_their_day(dart: RunningSandbox) -> None:
    asked = f"{LIST}&bgn_de=20260914&end_de=20260915&page_count=100&sort=date&sort_mth=asc"
    first = dart.get(asked).json()
    pages = [dart.get(f"{asked}&page_no={n}").json() for n in range(1, first["total_page"] + 1)]
    rows = [row for page in pages for row in page["list"]]
    assert first["total_page"] > 1
    assert len({row["rcept_no"] for row in rows}) == len(rows) == first["total_count"]
    assert [row["rcept_dt"] for row in rows] == sorted(row["rcept_dt"] for row in rows)
    assert dart.get(f"{asked}&page_no={first['total_page'] + 1}").json() == {
        "status": "013", "message": "조회된 데이타가 없습니다.",
    }  # fmt: skip
    newest = dart.get(asked.replace("sort_mth=asc", "sort_mth=desc")).json()["list"][0]
    assert newest == rows[-1]


def test_a_filing_is_there_from_its_second_on_and_is_marked_when_it_is_corrected(dart: RunningSandbox) -> None:
    inside = next(player for player in dart.inside.players if player.name == "dart")
    assert inside.view()["added"] == []
    clock = dart.clock
    assert isinstance(clock, MovableClock)
    dart.switch("dart", "add", title="사업보고서 (2025.12)", rcept_no="20260915000999", at="2026-09-15T12:30:00+09:00")
    titled = f"{LIST}&bgn_de=20260915&page_count=100&pblntf_ty=A"
    others = [row["rcept_no"] for row in dart.get(titled).json().get("list", ())]
    assert "20260915000999" not in others
    clock.at = NOON + timedelta(minutes=31)
    (row,) = [row for row in dart.get(titled).json()["list"] if row["rcept_no"] not in others]
    assert row["rm"] == "유"
    dart.switch(
        "dart", "add", title="[기재정정]사업보고서 (2025.12)", at="2026-09-15T12:40:00+09:00", corrects="20260915000999"
    )
    clock.at = NOON + timedelta(minutes=41)
    rows = dart.get(titled).json()["list"]
    assert sorted(row["rm"] for row in rows if row["rcept_no"] not in others) == ["유", "유정"]


def test_archives_say_no_in_xml_with_status_200(dart: RunningSandbox) -> None:
    dart.switch("dart", "quota", n=1)
    good = dart.get("/opendart.fss.or.kr/api/corpCode.xml?crtfc_key=k")
    with zipfile.ZipFile(io.BytesIO(good.content)) as archive:
        (name,) = archive.namelist()
        root = ElementTree.fromstring(archive.read(name))
    assert len(root) == 300 * 41
    assert root[-1].findtext("stock_code") == " "
    no = dart.get("/opendart.fss.or.kr/api/corpCode.xml?crtfc_key=k")
    assert (no.status_code, no.headers["content-type"]) == (200, "application/xml;charset=UTF-8")
    assert ElementTree.fromstring(no.content).findtext("status") == "020"
    # Another key has a day of its own.
    assert dart.get("/opendart.fss.or.kr/api/corpCode.xml?crtfc_key=k2").content[:2] == b"PK"
    assert "crtfc_key=k" not in str(dart.requests())


def test_too_many_requests_of_a_minute_block_the_address_for_a_day_whatever_the_key(dart: RunningSandbox) -> None:
    clock = dart.clock
    assert isinstance(clock, MovableClock)
    dart.switch("dart", "limit", n=2)
    codes = [dart.get(LIST.replace("=k", f"={key}")).status_code for key in ("a", "b", "c")]
    assert codes == [200, 200, 403]
    clock.advance(hours=23)
    assert dart.get(LIST).status_code == 403
    clock.advance(hours=2)
    assert dart.get(LIST).status_code == 200


def test_an_order_that_cannot_be_read_changes_nothing(dart: RunningSandbox) -> None:
    before = dart.control("GET", "dart")
    for order in (
        {"switch": "nothing"}, {"switch": "say", "status": "999"}, {"switch": "add", "title": ""},
        {"switch": "withdraw", "rcept_no": "1", "at": "2026-09-15T12:00:00+09:00"}, {"switch": "quota", "n": "many"},
    ):  # fmt: skip
        answer = dart_order(dart, order)
        assert answer == 400
    assert {name: value for name, value in dart.control("GET", "dart").items() if name != "used"} == {
        name: value for name, value in before.items() if name != "used"
    }


def dart_order(dart: RunningSandbox, order: dict[str, object]) -> int:
    import httpx

    return httpx.post(f"{dart.url}/_sandbox/switches", json={"upstream": "dart", **order}, timeout=30).status_code


def test_a_document_is_an_archive_and_until_it_is_there_xml_says_so(dart: RunningSandbox) -> None:
    row = dart.get(f"{LIST}&bgn_de=20260914&end_de=20260914&sort_mth=asc").json()["list"][0]
    asked = f"/opendart.fss.or.kr/api/document.xml?crtfc_key=k&rcept_no={row['rcept_no']}"
    dart.switch("dart", "document", rcept_no=row["rcept_no"], at=(NOON + timedelta(hours=3)).isoformat())
    early = dart.get(asked)
    assert (early.status_code, ElementTree.fromstring(early.content).findtext("status")) == (200, "014")
    dart.switch("dart", "document", rcept_no=row["rcept_no"], at=NOON.isoformat())
    there = dart.get(asked).content
    assert zipfile.ZipFile(io.BytesIO(there)).namelist() == [f"{row['rcept_no']}.xml"]
    dart.switch("dart", "cut", rcept_no=row["rcept_no"])
    cut = dart.get(asked).content
    assert cut.startswith(b"PK\x03\x04")
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(io.BytesIO(cut))
    nothing = dart.get(asked.replace(row["rcept_no"], "20260914009999")).content
    assert ElementTree.fromstring(nothing).findtext("status") == "014"
    page = dart.get(f"/dart.fss.or.kr/dsaf001/main.do?rcpNo={row['rcept_no']}")
    assert row["rcept_no"] in page.text
    assert dart.control("GET", "dart")["shortest_between_pages"] is None
    dart.get(f"/dart.fss.or.kr/dsaf001/main.do?rcpNo={row['rcept_no']}")
    assert dart.control("GET", "dart")["shortest_between_pages"] == 0


def test_a_period_has_the_data_of_its_newest_report_once_they_are_there_and_nothing_in_the_place_of_a_basis(
    dart: RunningSandbox,
) -> None:
    clock = dart.clock
    assert isinstance(clock, MovableClock)
    players = {player.name: player for player in dart.inside.players}
    assert players["dart"].view()["out"] == {}
    filings = Filings(7, 300)
    report, correction = next(
        each
        for company in range(300)
        if has_subsidiaries(company, 2026) and has_statements(300, company)
        for each in [filings.market.of_company(company, 2026, "11012", NOON)]
        if len(each) == 2
    )
    corp = filings.listed[report.company].corp_code
    of_one = f"corp_code={corp}&bsns_year=2026&reprt_code=11012"
    asked = f"/opendart.fss.or.kr/api/fnlttSinglAcntAll.json?crtfc_key=k&{of_one}&fs_div="
    clock.at = report.has_data_at - timedelta(seconds=1)
    assert dart.get(asked + "OFS").json()["status"] == "013"
    numbers = []
    for each in (report, correction):
        clock.at = each.has_data_at
        consolidated, separate = (dart.get(asked + basis).json()["list"] for basis in ("CFS", "OFS"))
        assert consolidated != separate
        (number,) = {row["rcept_no"] for row in (*consolidated, *separate)}
        numbers.append(number)
    assert numbers == [filings.market.number(report), filings.market.number(correction)]
    assert numbers[0] < numbers[1]
    assert dart.get(asked + "XFS").json()["status"] == "100"
    item = "/opendart.fss.or.kr/api/stockTotqySttus.json?crtfc_key=k&"
    assert dart.get(item + of_one).json()["list"][0]["rcept_no"] == numbers[1]
    assert dart.get(item + of_one.replace("11012", "11015")).json()["status"] == "100"
    assert dart.get(item.replace("stockTotqySttus", "newCapScritsNrdmpBlce") + of_one).status_code == 404
    dart.switch("dart", "out", endpoint="stockTotqySttus")
    assert dart.get(item + of_one).headers["content-type"].startswith("text/html")
