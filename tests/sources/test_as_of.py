"""What was known on a day is told as it was known then: no later filing, correction, mark or revision shows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from tests.sources.rows import Warehouse, at, opened


@pytest.fixture
def warehouse(database: str) -> Iterator[Warehouse]:
    with opened(database) as found:
        yield found


def test_facts_are_those_of_filings_made_by_then_and_read_as_they_were_held_then(warehouse: Warehouse) -> None:
    def fact(accession: str, value: int, filed: str, sent: str, **more: Any) -> None:
        table = "filings.edgar_facts_history" if more else "filings.edgar_facts"
        key = {"taxonomy": "us-gaap", "concept": "Revenues", "measure": "USD", "is_instant": False, "copy": 0}
        period = {"start_date": "2025-01-01", "end_date": "2025-12-31", "filed_date": filed}
        numbers = {"value": value, "value_text": str(value)}
        warehouse.put(table, cik=7, accession=accession, sent_at=sent, **key, **period, **numbers, **more)

    def known(day: date) -> list[Any]:
        return warehouse.ask("select value, accession from filings.edgar_facts_as_of(%s) where cik = 7", day)

    # Collected long after it was filed, restated a year later; of the second the SEC mended a value, and took it back.
    fact("a-1", 100, "2026-02-01", "2026-06-01")
    fact("a-2", 110, "2027-02-01", "2027-02-01T20:00", ended_at="2027-03-01", reason="revised")
    fact("a-2", 999, "2027-02-01", "2027-02-01T20:00", ended_at="2027-02-15", reason="parser")
    fact("a-2", 111, "2027-02-01", "2027-03-01", ended_at="2027-05-01", reason="withdrawn")
    assert known(date(2026, 1, 31)) == []
    assert known(date(2026, 2, 1)) == [(100, "a-1")]
    assert known(date(2027, 1, 31)) == [(100, "a-1")]
    assert known(date(2027, 2, 1)) == [(110, "a-2")]
    assert known(date(2027, 3, 1)) == [(111, "a-2")]
    # The end of the day is New York's: five hours of the first of May in London are still the last of April there.
    assert known(date(2027, 4, 29)) == [(111, "a-2")]
    assert known(date(2027, 4, 30)) == [(100, "a-1")]


def test_xbrl_facts_are_known_from_their_acceptance_and_without_a_header_from_the_days_end(
    warehouse: Warehouse,
) -> None:
    def fact(accession: str, value: str, year: int) -> None:
        names = {
            "namespace": f"http://fasb.org/us-gaap/{year}",
            "concept": "Assets",
            "entity_scheme": "s",
            "entity": "7",
        }
        period = {"period_type": "instant", "period_end": "2025-12-31", "filed_date": "2026-02-03", "context_id": "c"}
        numbers = {"is_nil": False, "value_text": value, "value": Decimal(value), "measure": "USD"}
        place = {"accession": accession, "instance": "i.xml", "number": 1, "sent_at": "2026-02-05"}
        warehouse.put("filings.sec_xbrl_facts", **place, **names, **period, **numbers)

    def known(instant: str) -> list[Any]:
        question = "select taxonomy, value_text from filings.sec_facts_as_of(%s) where entity = '7'"
        return warehouse.ask(question, at(instant))

    fact("a-1", "10.50", 2025)
    fact("a-2", "10.75", 2026)
    flags = {"is_private_to_public": False, "parties": 1, "unknown_labels": 0, "renamed_labels": 0, "items": []}
    header = {"filed_date": "2026-02-03", "dialect": "sgml", "accepted_at": "2026-02-03T21:05"}
    warehouse.put("filings.sec_headers", accession="a-1", sent_at="2026-02-05", **header, **flags)
    assert known("2026-02-03T21:04") == []
    assert known("2026-02-03T21:05") == [("http://fasb.org/us-gaap", "10.50")]
    assert known("2026-02-04T04:59") == [("http://fasb.org/us-gaap", "10.50")]
    assert known("2026-02-04T05:00") == [("http://fasb.org/us-gaap", "10.75")]


def filing(warehouse: Warehouse, number: str, sent: str, remark: str = "", *, fixes: bool = False, **more: Any) -> None:
    """Put a filing as the list showed it; with `ended_at` and `reason` into the history."""
    table = "dartbrief.disclosures_history" if more else "dartbrief.disclosures"
    names = {
        "corp_code": "00000007",
        "corp_name": "가나",
        "corp_type": "Y",
        "submitter": "가나",
        "stock_code": "000070",
    }
    title = {"base_title": "사업보고서", "report_period": "2025.12", "report_name": "사업보고서 (2025.12)"}
    when = {"rcept_dt": f"{number[:4]}-{number[4:6]}-{number[6:8]}", "sent_at": sent}
    warehouse.put(table, rcept_no=number, remark=remark, is_correction=fixes, **names, **title, **when, **more)


FIRST, SECOND, LATE = "20260310000001", "20260320000002", "20260325000003"


def test_disclosures_are_the_list_as_it_stood_with_the_marks_and_corrections_of_then(warehouse: Warehouse) -> None:
    def known(instant: str) -> dict[str, Any]:
        question = (
            "select rcept_no, is_corrected, is_withdrawn, superseded_by, was_seen from dartbrief.disclosures_as_of(%s)"
        )
        return {row[0]: row[1:] for row in warehouse.ask(question, at(instant))}

    filing(warehouse, FIRST, "2026-03-10T01:00", ended_at="2026-03-20T01:00", reason="revised")
    filing(warehouse, FIRST, "2026-03-20T01:00", "정")
    filing(warehouse, SECOND, "2026-03-20T01:00", fixes=True, ended_at="2026-03-22T01:00", reason="revised")
    filing(warehouse, SECOND, "2026-03-22T01:00", "철", fixes=True)
    # Collected by a backfill in April, when it was withdrawn already; nobody saw when.
    filing(warehouse, LATE, "2026-04-10T01:00", "철", fixes=True)
    assert known("2026-03-10T00:59") == {}
    assert known("2026-03-20T00:59") == {FIRST: (False, False, None, True)}
    assert known("2026-03-20T01:00") == {FIRST: (True, False, SECOND, True), SECOND: (False, False, None, True)}
    assert known("2026-03-22T01:00")[SECOND] == (False, True, None, True)
    # It counts from the end of its day in Seoul.
    assert LATE not in known("2026-03-25T14:59")
    assert known("2026-03-25T15:00")[LATE] == (False, None, None, False)
    assert known("2026-04-10T01:00")[LATE] == (False, True, None, True)
    # A row that the list no longer shows is there until then.
    filing(warehouse, "20260401000009", "2026-04-01T01:00", ended_at="2026-04-05T01:00", reason="withdrawn")
    assert "20260401000009" in known("2026-04-05T00:59")
    assert "20260401000009" not in known("2026-04-05T01:00")


def test_statements_are_those_of_the_newest_report_that_held(warehouse: Warehouse) -> None:
    def statement(number: str, amount: str) -> None:
        of = {"corp_code": "00000007", "bsns_year": 2025, "reprt_code": "11011", "period_end": "2025-12-31"}
        line = {
            "fs_div": "CFS",
            "number": 1,
            "sj_div": "BS",
            "account_nm": "자산총계",
            "thstrm_amount": Decimal(amount),
        }
        warehouse.put("filings.dart_statements", rcept_no=number, sent_at="2026-05-01", **of, **line)

    def known(day: date) -> list[Any]:
        question = "select rcept_no, thstrm_amount from filings.dart_statements_as_of(%s) where corp_code = '00000007'"
        return warehouse.ask(question, day)

    statement(FIRST, "1000000000000000001")
    statement(SECOND, "1000000000000000002")
    filing(warehouse, SECOND, "2026-03-22T01:00", "철", fixes=True)
    assert known(date(2026, 3, 9)) == []
    assert known(date(2026, 3, 10)) == [(FIRST, Decimal("1000000000000000001"))]
    assert known(date(2026, 3, 20)) == [(SECOND, Decimal("1000000000000000002"))]
    # The correction was withdrawn, so what it corrected holds again.
    assert known(date(2026, 3, 22)) == [(FIRST, Decimal("1000000000000000001"))]


def test_macro_series_are_told_together_by_vintage_or_by_collection(warehouse: Warehouse) -> None:
    for day, value in (("2026-02-01", "1.5"), ("2026-03-01", "1.6")):
        of = {"series_id": "GDP", "observation_date": "2025-10-01", "realtime_start": day, "is_withdrawn": False}
        warehouse.put("market.fred_vintages", sent_at="2026-06-01", value_text=value, value=Decimal(value), **of)
    shown = {"series_id": "722Y001.D", "period": "20260201", "period_start": "2026-02-01"}
    was = {"value_text": "2.5", "value": Decimal("2.5"), "ended_at": "2026-03-05", "reason": "revised"}
    warehouse.put("market.ecos_values_history", sent_at="2026-02-02", **shown, **was)
    warehouse.put("market.ecos_values", sent_at="2026-03-05", value_text="2.75", value=Decimal("2.75"), **shown)

    def known(day: date) -> list[Any]:
        return warehouse.ask("select source, value_text from market.macro_as_of(%s) order by 1, 2", day)

    assert known(date(2026, 1, 31)) == []
    assert known(date(2026, 2, 28)) == [("ecos", "2.5"), ("fred", "1.5")]
    assert known(date(2026, 3, 4)) == [("ecos", "2.5"), ("fred", "1.6")]
    assert known(date(2026, 3, 5)) == [("ecos", "2.75"), ("fred", "1.6")]
