"""DART's files by company and over all companies: what readers find in them, from rows alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq

from include.outputs import dart_scans, outbox, prebuild, releases
from tests.outputs import market
from tests.outputs.publishing import rows

META = "'u', 7, timestamptz '2026-09-15 00:00+00', 1, 1, 1, null"
SAMSUNG, OTHER = "00126380", "00164779"
ANNUAL, QUARTER = "사업보고서", "분기보고서"


def insert(url: str, table: str, names: str, *values: tuple[Any, ...]) -> None:
    """Rows of a table, with the engine's own columns."""
    own = "unit, fetch_id, sent_at, parser_version, cycle_id, attempt, extra"
    with psycopg.connect(url) as connection:
        for row in values:
            places = ", ".join(["%s"] * len(row))
            connection.execute(f"insert into filings.{table} ({names}, {own}) values ({places}, {META})", row)  # type: ignore[arg-type]


def report(url: str, number: str, title: str, period: str, *chapters: tuple[str, str], corp: str = SAMSUNG) -> None:
    """A report's document with its chapters."""
    day, kind = f"{number[:4]}-{number[4:6]}-{number[6:8]}", f"{title} ({period})"
    insert(
        url,
        "dart_documents",
        "rcept_no, corp_code, corp_name, stock_code, year, rcept_date, report_type, report_period, is_correction, "
        "main_file, encoding, replaced_bytes, sections, tables, characters",
        (
            number,
            corp,
            "삼성전자",
            "005930",
            period[:4],
            day,
            kind,
            period,
            False,
            "m",
            "utf-8",
            0,
            len(chapters),
            0,
            99,
        ),
    )
    insert(
        url,
        "dart_docs",
        "rcept_no, section_order, corp_code, corp_name, stock_code, year, rcept_date, report_type, section_level, "
        "section_title, section_path, section_content, section_tables",
        *(
            (number, n, corp, "삼성전자", "005930", period[:4], day, kind, 1, path, path, text, 0)
            for n, (path, text) in enumerate(chapters)
        ),
    )


def statement(url: str, number: str, year: int, amounts: list[int], corp: str = SAMSUNG) -> None:
    """A set of statements of a year's report."""
    insert(
        url,
        "dart_finance_sets",
        "corp_code, bsns_year, reprt_code, period_end, fs_div, rcept_no, rows",
        (corp, year, "11011", f"{year}-12-31", "CFS", number, len(amounts)),
    )
    insert(
        url,
        "dart_statements",
        "rcept_no, fs_div, number, corp_code, bsns_year, reprt_code, period_end, sj_div, account_nm, thstrm_amount",
        *(
            (number, "CFS", n + 1, corp, year, "11011", f"{year}-12-31", "BS", f"자산{n}", amount)
            for n, amount in enumerate(amounts)
        ),
    )


def item(url: str, number: str, endpoint: str, values: list[str], corp: str = SAMSUNG) -> None:
    """An item of a report."""
    insert(
        url,
        "dart_report_sets",
        "corp_code, bsns_year, reprt_code, period_end, endpoint, rcept_no, rows",
        (corp, 2025, "11011", "2025-12-31", endpoint, number, len(values)),
    )
    insert(
        url,
        "dart_report_items",
        "rcept_no, endpoint, number, corp_code, bsns_year, reprt_code, period_end, item_values",
        *((number, endpoint, n + 1, corp, 2025, "11011", "2025-12-31", value) for n, value in enumerate(values)),
    )


def built(url: str, root: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of every file of the scan, built now; those that are as before as well."""
    prebuild.prebuild(url, releases.release("dart/scan"), dart_scans.scans, str(root), "a run")
    newest = {file["path"]: file for file in market.files(url)}
    return {
        path.removeprefix("dart/scan/").removesuffix(".parquet"): pq.read_table(
            root / f"{file['sha256'].hex()}.parquet"
        ).to_pylist()
        for path, file in newest.items()
    }


def test_the_scan_compares_reports_of_one_kind_and_holds_what_is_current(database: str, root: Path) -> None:
    before = [
        ("1", "매출 100"),
        ("2", "같다"),
        ("3", "말 그대로"),
        ("4", "짧다"),
        ("5", "사라진다"),
        ("6", "표"),
        ("6", "a"),
    ]
    after = [
        ("1", "매출 1,200"),
        ("2", "같다"),
        ("3", "말 다르게"),
        ("4", "짧지 않고 아주 길다"),
        ("6", "표"),
        ("6", "b"),
        ("7", "새"),
    ]
    report(database, "20250314000001", ANNUAL, "2024.12", *before)
    report(database, "20260314000001", ANNUAL, "2025.12", *after)
    report(database, "20250514000001", QUARTER, "2025.03", ("1", "매출 30"))
    report(database, "20251114000001", QUARTER, "2025.09", ("1", "매출 90"))
    statement(database, "20260314000001", 2025, [100, 9_007_199_254_740_993])
    statement(database, "20260401000001", 2025, [101, 9_007_199_254_740_993])
    statement(database, "20200314000001", 2019, [1])
    item(database, "20260314000001", "empSttus", ['{"fo_bbm": "반도체", "sm": "1,000"}'])
    item(database, "20260314000001", "alotMatter", ['{"se": "주당액면가액", "thstrm": "100"}', '{"se": "x"}'])
    files = built(database, root)
    assert set(files) == {"changes", "finance", "report/alotMatter", "report/empSttus"}
    # The two quarters are not of one part of the year, so they are compared with nothing.
    assert [(r["report_type"], r["from_period"], r["to_period"], r["section_path"], r["nth"], r["change_type"])
            for r in files["changes"]] == [
        (ANNUAL, "2024.12", "2025.12", "1", 1, "numeric"),
        (ANNUAL, "2024.12", "2025.12", "3", 1, "wording"),
        (ANNUAL, "2024.12", "2025.12", "4", 1, "structural"),
        (ANNUAL, "2024.12", "2025.12", "5", 1, "disappeared"),
        (ANNUAL, "2024.12", "2025.12", "6", 2, "wording"),
        (ANNUAL, "2024.12", "2025.12", "7", 1, "appeared"),
    ]  # fmt: skip
    first = files["changes"][0]
    assert (first["stock_code"], first["size_a"], first["size_b"], first["size_delta"]) == ("005930", 6, 8, 2)
    assert (first["preview"], first["from_rcept_no"]) == ("매출 1,200", "20250314000001")
    assert [(r["rcept_no"], r["thstrm_amount"], r["reprt_nm"]) for r in files["finance"]] == [
        ("20260401000001", "101", "4분기"),
        ("20260401000001", "9007199254740993", "4분기"),
    ]
    assert [(r["se"], r["thstrm"]) for r in files["report/alotMatter"]] == [("주당액면가액", "100"), ("x", None)]
    assert (files["report/empSttus"][0]["fo_bbm"], files["report/empSttus"][0]["sm"]) == ("반도체", "1,000")


def test_a_company_has_a_file_of_its_own_and_only_one_that_changed_is_made_again(database: str, root: Path) -> None:
    statement(database, "20260314000001", 2025, [100])
    statement(database, "20260314000002", 2025, [7], corp=OTHER)
    release = releases.release("dart/finance")
    assert release.shape is not None
    made = outbox.build(database, release, release.shape, str(root), "a run")
    assert set(made.queued) == {SAMSUNG, OTHER}
    statement(database, "20260401000001", 2025, [101])
    assert outbox.build(database, release, release.shape, str(root), "a run").queued == (SAMSUNG,)
    file = market.files(database)[-1]
    assert file["path"] == f"dart/finance/{SAMSUNG}.parquet"
    found = pq.read_table(root / f"{file['sha256'].hex()}.parquet").to_pylist()
    # What was restated stays beside what holds.
    assert [(r["rcept_no"], r["thstrm_amount"], r["is_current"]) for r in found] == [
        ("20260314000001", "100", False),
        ("20260401000001", "101", True),
    ]
    # A name that changed stands in the files of the company, so they are made again; of others nothing is made.
    corps = "corp_code, corp_name, stock_code, modify_date"
    insert(
        database,
        "dart_corps",
        corps,
        (SAMSUNG, "삼성전자", "005930", "2026-01-01"),
        ("00999999", "나", None, "2026-01-01"),
    )
    assert outbox.build(database, release, release.shape, str(root), "a run").queued == (SAMSUNG,)
    assert rows(database, "select partition from publish.stale where table_name = 'filings.dart_corps:company'") == [
        {"partition": SAMSUNG}
    ]


def test_nothing_is_built_while_a_feeding_stream_is_at_work_or_after_one_failed(database: str) -> None:
    def window(stream: str, at: str, status: str) -> None:
        outcome = {"SUCCESS": "success", "FAILED": "failed_retriable"}.get(status)
        with psycopg.connect(database) as connection:
            connection.execute(
                "insert into collect.cycles (stream, mode, slot, run_date, window_start, due_at, cycle_status, "
                "is_complete, outcome, finished_at, failure_reason, created_at, updated_at) values "
                "(%s, 'poll', %s, '2026-09-16', %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (stream, at, at, at, status, status == "SUCCESS", outcome, at if outcome else None,
                 "unreachable" if status == "FAILED" else None, at, at),
            )  # fmt: skip

    streams = ("dart.finance", "dart.report")
    assert prebuild.unready(database, streams) == []
    window("dart.finance", "2026-09-15T18:00:00Z", "FAILED")
    window("dart.report", "2026-09-15T18:00:00Z", "SUCCESS")
    assert [row["cycle_status"] for row in prebuild.unready(database, streams)] == ["FAILED"]
    window("dart.finance", "2026-09-16T06:00:00Z", "SUCCESS")
    assert prebuild.unready(database, streams) == []
    window("dart.report", "2026-09-16T06:00:00Z", "PENDING")
    assert [row["stream"] for row in prebuild.unready(database, streams)] == ["dart.report"]
