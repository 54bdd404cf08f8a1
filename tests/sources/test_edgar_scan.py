"""The scan over all companies: each one's own fiscal years, as filed first and by the newest filing, in equal bytes."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from include.contract import CycleStatus, HostGroup, Mode, Outcome
from include.outputs import checks, releases
from include.sources.edgar import finance_file, scan_file
from include.sources.edgar.scan_lines import LINES
from include.sources.edgar.streams import SCAN_STREAM
from tests.sources import samples
from tests.sources.test_edgar_collecting import FIRST, Desk, Killed
from tests.sources.test_edgar_collecting import desk as desk

SCAN = replace(SCAN_STREAM, host_group=HostGroup("sec", timedelta(0)))


def scanned(*documents: dict[str, Any]) -> list[dict[str, Any]]:
    files = []
    for document in documents:
        target = io.BytesIO()
        finance_file.convert(json.dumps(document).encode(), int(document["cik"]), target)
        files.append(target.getvalue())
    piece, whole = io.BytesIO(), io.BytesIO()
    scan_file.piece((lambda body=body: io.BytesIO(body) for body in files), piece)  # type: ignore[misc]
    scan_file.join([io.BytesIO(piece.getvalue())], whole)
    return pq.read_table(whole).to_pylist()


def row(end: str, val: Any, filed: str, form: str = "10-K", start: str | None = None, **more: Any) -> dict[str, Any]:
    accn = more.pop("accn", f"0000000001-{filed[2:4]}-{filed[5:7]}{filed[8:]}00")
    given = {"end": end, "val": val, "accn": accn, "fy": int(filed[:4]) - 1, "fp": "FY", "form": form, "filed": filed}
    return given | ({"start": start} if start else {}) | more


def company(**concepts: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "cik": 1,
        "entityName": "One",
        "facts": {"us-gaap": {name: {"label": name, "description": None, "units": u} for name, u in concepts.items()}},
    }


def test_a_year_is_the_companys_own_and_what_restates_it_stands_beside_what_was_filed_first() -> None:
    # A year of 53 weeks that ends in February, a quarter with the same end, a restatement, a proxy, a year before.
    found = scanned(
        company(
            Revenues={
                "USD": [
                    row("2024-02-03", 500, "2024-03-20", start="2023-01-29"),
                    row("2024-02-03", 130, "2024-03-20", start="2023-10-29"),
                    row("2023-01-28", 400, "2024-03-20", start="2022-01-30"),
                    row("2024-02-03", 480, "2025-03-19", start="2023-01-29"),
                    row("2024-02-03", 500, "2025-05-01", form="DEF 14A", start="2023-01-29"),
                    row("2020-02-01", 1, "2020-03-20", start="2019-02-03"),
                ]
            },
            Assets={
                "CAD": [row("2024-02-03", 7, "2024-03-20")],
                "USD": [
                    row("2024-02-03", 9, "2024-03-20"),
                    row("2024-02-03", 8, "2024-06-05", form="10-Q", fp="Q1"),
                    row("2024-05-04", 8, "2024-06-05", form="10-Q", fp="Q1"),
                ],
            },
            EarningsPerShareBasic={"USD/shares": [row("2024-02-03", 1.25, "2024-03-20", start="2023-01-29")]},
        )
    )
    assert [(each["period_start"], each["period_end"], each["basis"]) for each in found] == [
        (date(2023, 1, 29), date(2024, 2, 3), "as_filed"),
        (date(2023, 1, 29), date(2024, 2, 3), "latest"),
    ], "the year before has no report of its own here"
    first, latest = found
    shown = ("revenue", "assets", "eps_basic", "currency", "fiscal_year", "form", "filed", "lines")
    assert [first[each] for each in shown] == [500, 9, Decimal("1.25"), "USD", 2023, "10-K", date(2024, 3, 20), 3]
    assert [latest[each] for each in shown] == [480, 8, Decimal("1.25"), "USD", 2023, "10-K", date(2025, 3, 19), 3]


def test_a_line_falls_back_only_where_the_report_lacks_it_and_says_so() -> None:
    (first, _) = scanned(
        company(
            # The total came later, in a filing of another kind: the report's own concept counts.
            Revenues={"USD": [row("2023-12-31", 999, "2024-08-01", form="8-K", start="2023-01-01")]},
            SalesRevenueNet={"USD": [row("2023-12-31", 100, "2024-02-20", start="2023-01-01")]},
            Assets={"USD": [row("2023-12-31", "1e30", "2024-02-20") | {"val": 10**33}]},
        )
    )
    assert (first["revenue"], first["fallbacks"]) == (100, "revenue=us-gaap:SalesRevenueNet")
    assert (first["assets"], first["left_out"]) == (None, "assets")


def test_a_first_year_that_is_shorter_counts_and_a_date_that_cannot_be_does_not() -> None:
    found = scanned(
        company(
            NetIncomeLoss={
                "USD": [
                    row("2023-12-31", -5, "2024-03-01", start="2023-06-15"),
                    row("2023-12-31", -2, "2024-03-01", start="2023-10-01"),
                    row("2050-12-31", 3, "2024-03-01", start="2050-01-01"),
                ]
            }
        ),
        {"cik": 2, "entityName": "None", "facts": {}},
    )
    assert [(each["cik"], each["period_start"], each["period_end"], each["net_income"]) for each in found] == [
        (1, date(2023, 6, 15), date(2023, 12, 31), -5)
    ] * 2


def test_real_companies_are_scanned_as_their_reports_say() -> None:
    folder = samples.SAMPLES / "sec"
    if not folder.exists():
        pytest.skip("the samples are not here")
    names = ("companyfacts_CIK0001835632_cut.json", "companyfacts_CIK0001997711_ifrs.json")
    documents = [json.loads((folder / name).read_text()) for name in names]
    found = {(each["cik"], str(each["period_end"]), each["basis"]): each for each in scanned(*documents)}
    marvell = found[1835632, "2022-01-29", "as_filed"]
    assert (marvell["revenue"], marvell["net_income"], marvell["form"]) == (4462383000, -421034000, "10-K")
    lpa = found[1997711, "2023-12-31", "as_filed"], found[1997711, "2023-12-31", "latest"]
    # Its shares were exchanged after the year: what was filed first and what stands are both there.
    assert [each["eps_basic"] for each in lpa] == [Decimal("0.019"), Decimal("0.11")]
    assert {each["currency"] for each in lpa} == {"USD"}
    for end, value in _plainly(documents[0]).items():
        assert found[1835632, end, "latest"]["assets"] == value


def _plainly(document: dict[str, Any]) -> dict[str, Decimal]:
    """The newest value of assets at the end of each fiscal year since 2021, found the most straightforward way."""
    rows = document["facts"]["us-gaap"]["Assets"]["units"]["USD"]
    income = document["facts"]["us-gaap"]["NetIncomeLoss"]["units"]["USD"]
    ends = {
        max(each["end"] for each in income if each["accn"] == accn and _is_year(each))
        for accn in {each["accn"] for each in income if each["form"] == "10-K"}
    }
    newest: dict[str, Decimal] = {}
    for each in sorted(rows, key=lambda one: (one["filed"], one["accn"])):
        if each["end"] in ends and each["end"] >= "2021":
            newest[each["end"]] = Decimal(each["val"])
    return newest


def _is_year(each: dict[str, Any]) -> bool:
    return 350 <= (date.fromisoformat(each["end"]) - date.fromisoformat(each["start"])).days + 1 <= 380


def test_there_are_thirty_three_lines_and_no_concept_names_two_that_differ_in_kind() -> None:
    assert len({line.name for line in LINES}) == len(LINES) == 33
    kinds: dict[tuple[str, str], set[str]] = {}
    for line in LINES:
        for concept in line.concepts:
            kinds.setdefault(concept, set()).add(line.kind)
        assert line.us
        assert line.ifrs
    assert all(len(each) == 1 for each in kinds.values())


def test_it_follows_what_changed_goes_on_after_a_kill_and_gives_the_same_bytes(desk: Desk) -> None:
    desk.switch("days", divisor=60)
    desk.collect()
    assert SCAN.making is not None
    assert SCAN.making.gather is not None
    small = replace(SCAN, making=replace(SCAN.making, gather=replace(SCAN.making.gather, batch=7)))
    seen: list[str] = []

    def kill(point: str) -> None:
        seen.append(point)
        if seen.count("made") == 3:
            raise Killed

    with pytest.raises(Killed):
        desk.poll(small, kill)
    pieces = sorted(desk.files.rglob("*.piece"))
    assert len(pieces) == 3
    before = [path.stat().st_mtime_ns for path in pieces]
    assert not (desk.files / scan_file.PATH).exists()
    # The next day's window goes on with the part; what was pieced together is taken as it is.
    desk.at(1)
    seen.clear()
    verdict = desk.poll(small)
    while verdict.status is not CycleStatus.SUCCESS:
        desk.place.at(desk.place.now() + timedelta(minutes=10))
        assert [path.stat().st_mtime_ns for path in pieces if path.exists()] in (before, [])
        verdict = desk.poll(small)
    assert verdict.outcome is Outcome.SUCCESS, verdict.words
    assert list(desk.files.rglob("*.piece")) == []
    bytes_of = (desk.files / scan_file.PATH).read_bytes()
    by_hand = io.BytesIO()
    piece = io.BytesIO()
    names = sorted((desk.files / "edgar" / "finance").rglob("*.parquet"), key=lambda path: path.name)
    scan_file.piece((_opener(path) for path in names), piece)
    rows = scan_file.join([io.BytesIO(piece.getvalue())], by_hand)
    assert by_hand.getvalue() == bytes_of
    assert rows > 2
    facts = checks.read(desk.files / scan_file.PATH, by_session=False)
    assert (facts.duplicates, facts.disorder, facts.rows) == (0, 0, rows)
    assert releases.release("edgar/scan").part_at(scan_file.PATH).name == "all"

    # Nothing changed: nothing is done. A company's file changed: it is made anew.
    desk.at(2)
    assert desk.poll(small).words.startswith("NOTHING DUE")
    desk.collect()
    desk.at(3)
    assert desk.poll(small).outcome is Outcome.SUCCESS
    (noted,) = desk.place.sql("select rows, sha256, parser_version from collect.made_files where stream = 'edgar.scan'")
    assert bytes(noted["sha256"]) == hashlib.sha256((desk.files / scan_file.PATH).read_bytes()).digest()
    held = (desk.files / scan_file.PATH).read_bytes()
    assert held != bytes_of
    (desk.files / scan_file.PATH).unlink()
    desk.place.do(SCAN, Mode.REPLAY, FIRST.date(), FIRST.date())
    assert (desk.files / scan_file.PATH).read_bytes() == held


def _opener(path: Path) -> Callable[[], io.BufferedReader]:
    return lambda: path.open("rb")
