"""Periods of which a later report gives other amounts are recognised and told; both versions are kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from include import registry
from include.engine import audit, windows
from tests.sources.places import Place

CORP = "00999991"
NOW = datetime.fromisoformat("2026-09-15T05:00:00+09:00")
# Statement, account, and its amounts: this period, since the year began, the period before, that since its year began.
Row = tuple[str, str, int | None, int | None, int | None, int | None]


class Shelf(Place):
    def add(self, table: str, row: dict[str, Any]) -> None:
        names = ", ".join(row)
        self.sql(f"insert into {table} ({names}) values ({', '.join(['%s'] * len(row))})", *row.values())


def hold(here: Shelf, number: str, year: int, code: str, *rows: Row, basis: str = "CFS", days_ago: int = 0) -> None:
    """Hold a report's statements on one basis as if DART had given them some days ago."""
    at = NOW - timedelta(days=days_ago)
    common: dict[str, Any] = {
        "corp_code": CORP, "bsns_year": year, "reprt_code": code, "period_end": date(year, 12, 31), "fs_div": basis,
        "rcept_no": number, "unit": "u", "fetch_id": 1, "sent_at": at, "parser_version": 1, "cycle_id": 1, "attempt": 1,
    }  # fmt: skip
    here.add("filings.dart_finance_sets", common | {"rows": len(rows)})
    here.sql(
        "insert into dartbrief.disclosures (rcept_no, corp_code, corp_name, corp_type, report_name, submitter, "
        "rcept_dt, remark, base_title, is_correction, unit, fetch_id, sent_at, parser_version, cycle_id, "
        "attempt) values (%s, %s, 'n', 'Y', 't', 'n', %s, '', 't', false, 'u', 1, %s, 1, 1, 1) on conflict do nothing",
        number, CORP, at.date(), at,
    )  # fmt: skip
    for place, (statement, account, *amounts) in enumerate(rows, start=1):
        names = ("thstrm_amount", "thstrm_add_amount", "frmtrm_amount", "frmtrm_add_amount")
        values = {name: None if each is None else Decimal(each) for name, each in zip(names, amounts, strict=True)}
        row = {"number": place, "sj_div": statement, "account_id": f"ifrs-full_{account}", "account_nm": account}
        here.add("filings.dart_statements", common | row | values)


def restated(here: Place) -> set[tuple[Any, ...]]:
    rows = here.sql("select * from filings.dart_restated_periods")
    names = ("bsns_year", "reprt_code", "fs_div", "how", "reported_in", "restated_in", "accounts", "first_account")
    return {tuple(row[name] for name in names) for row in rows}


def test_other_amounts_of_the_same_period_are_restated_and_nothing_else_is(place: Callable[[], Place]) -> None:
    made = place()
    here = Shelf(made.url, made.raw)
    here.at(NOW)
    first, corrected, next_year = "20250320000001", "20250410000001", "20260320000001"
    quarter, next_quarter = "20250515000001", "20260515000001"
    hold(here, first, 2024, "11011", ("BS", "Assets", 100, None, 90, None), ("IS", "Revenue", 50, None, 40, None),
         ("IS", "Twice", 1, None, None, None), ("IS", "Twice", 2, None, None, None),
         ("SCE", "Equity", 7, None, 6, None), ("IS", "Left", 3, None, None, None), days_ago=500)  # fmt: skip
    # A correction: one amount differs, one account is new, one that stands twice is compared with nothing.
    hold(here, corrected, 2024, "11011", ("BS", "Assets", 101, None, 90, None), ("IS", "Revenue", 50, None, 40, None),
         ("IS", "Twice", 8, None, None, None), ("IS", "Twice", 9, None, None, None),
         ("IS", "New", 3, None, None, None), days_ago=480)  # fmt: skip
    # The other basis is another statement.
    hold(here, first, 2024, "11011", ("BS", "Assets", 70, None, 60, None), basis="OFS", days_ago=500)
    hold(here, quarter, 2025, "11013", ("BS", "Assets", 110, None, 101, None), ("IS", "Revenue", 12, 12, None, 9),
         days_ago=400)  # fmt: skip
    # A year on: the revenue of the year before is another, its assets are as corrected; equity is left out.
    hold(here, next_year, 2025, "11011", ("BS", "Assets", 120, None, 101, None), ("IS", "Revenue", 60, None, 55, None),
         ("SCE", "Equity", 9, None, 99, None), days_ago=3)  # fmt: skip
    hold(here, next_quarter, 2026, "11013", ("BS", "Assets", 130, None, 121, None), ("IS", "Revenue", 20, 20, 12, 11),
         days_ago=2)  # fmt: skip
    assert restated(here) == {
        (2024, "11011", "CFS", "correction", first, corrected, 1, "Assets"),
        (2024, "11011", "CFS", "comparative", corrected, next_year, 1, "Revenue"),
        # The end of the year, as a quarter's balance gives it; and the same quarter of the year before.
        (2025, "11011", "CFS", "comparative", next_year, next_quarter, 1, "Assets"),
        (2025, "11013", "CFS", "comparative", quarter, next_quarter, 1, "Revenue"),
    }
    # What became known within the week is told by the audit, with where to look.
    streams = registry.source("dart").streams
    windows.declare(here.url, streams)
    audit.audit(here.url, streams, None, audit.Limits(), "a test", has_github=False)
    (told,) = here.sql("select closed_at, text from ops.incidents where incident_key = 'doubtful/dart.finance'")
    assert told["closed_at"] is None
    assert "3 statements of 1 companies" in told["text"]
    assert "filings.dart_restated_periods" in told["text"]
    # What came lately and was received long ago, as by a backfill of years, is in the view and no news.
    here.sql("update filings.dart_finance_sets set sent_at = collect.clock()")
    assert len(restated(here)) == 4
    (doubt,) = here.sql("select says from filings.dart_doubts")
    assert doubt["says"].startswith("3 statements of 1 companies")
    here.at(NOW + timedelta(days=8))
    audit.audit(here.url, streams, None, audit.Limits(), "a test", has_github=False)
    (told,) = here.sql("select closed_at from ops.incidents where incident_key = 'doubtful/dart.finance'")
    assert told["closed_at"] is not None
