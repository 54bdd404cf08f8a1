"""Files that are read from views: series of FRED and ECOS with the days on which they held, analyses of filings."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq

from include import registry
from include.outputs import releases
from include.outputs.outbox import build
from tests.outputs import market

TABLES = {table.qualified: table for stream in registry.streams() for table in stream.tables}
FOR_EVER = date(9999, 12, 31)


def save(url: str, table: str, *rows: tuple[Any, ...], sent: datetime, history: tuple[Any, ...] = ()) -> None:
    """Write rows and mark what they are in, as an apply does."""
    given = TABLES[table].column_names
    names = [*given, "unit", "fetch_id", "sent_at", "parser_version", "cycle_id", "attempt"]
    more = ["ended_at", "reason"] if history else []
    values = ", ".join(["%s"] * len([*names, *more]))
    with psycopg.connect(url) as connection:
        for row in rows:
            connection.execute(
                f"insert into {table}{'_history' if history else ''} ({', '.join([*names, *more])}) values ({values})",  # type: ignore[arg-type]
                (*row, "unit", 7, sent, 1, 1, 1, *history),
            )
        connection.execute(
            "insert into publish.stale (table_name, partition, marked_at) values (%s, '2026-09', collect.clock()) "
            "on conflict (table_name, partition) do update set version = stale.version + 1",
            (table,),
        )


def published(url: str, root: Path, name: str) -> list[dict[str, Any]]:
    """The rows of the one file of a release, built now."""
    release = releases.release(name)
    assert release.shape is not None
    build(url, release, release.shape, str(root), "a run")
    file = [each for each in market.files(url) if each["release"] == name][-1]
    assert file["newest_fetch"] == 7
    rows: list[dict[str, Any]] = pq.read_table(root / f"{file['sha256'].hex()}.parquet").to_pylist()
    return rows


def test_a_series_of_fred_is_published_with_its_vintages_and_one_without_values_says_so(
    database: str, root: Path
) -> None:
    sent = datetime(2026, 9, 15, 23, 0, tzinfo=UTC)
    save(
        database,
        "market.fred_vintages",
        ("GDP", date(2026, 4, 1), date(2026, 7, 30), "100.5", Decimal("100.5"), False),
        ("GDP", date(2026, 4, 1), date(2026, 8, 27), "101.25", Decimal("101.25"), False),
        ("GDP", date(2026, 1, 1), date(2026, 4, 30), ".", None, False),
        ("GDP", date(2025, 10, 1), date(2026, 1, 30), "99", Decimal(99), False),
        ("GDP", date(2025, 10, 1), date(2026, 2, 1), None, None, True),
        sent=sent,
    )
    described = (False, "Gross Domestic Product", "Quarterly", "Q", "Billions", "Bil", "SAAR", "SAAR", "Notes", True)
    ended = (False, "Old one (DISCONTINUED)", "Daily", "D", "Percent", "%", "NSA", "NSA", None, True)
    series = [("GDP", date(2026, 1, 1), *described), ("OLD", date(2026, 1, 1), *ended)]
    save(database, "market.fred_series", *series, sent=sent)
    rows = published(database, root, "macro/fred/observations")
    assert [(r["date"], r["value_text"], r["realtime_start"], r["realtime_end"]) for r in rows] == [
        (date(2025, 10, 1), "99", date(2026, 1, 30), date(2026, 1, 31)),
        (date(2026, 1, 1), ".", date(2026, 4, 30), FOR_EVER),
        (date(2026, 4, 1), "100.5", date(2026, 7, 30), date(2026, 8, 26)),
        (date(2026, 4, 1), "101.25", date(2026, 8, 27), FOR_EVER),
    ]
    assert rows[3]["value"] == Decimal("101.25")
    gdp, old = published(database, root, "macro/fred/series")
    assert (gdp["label"], gdp["row_count"], gdp["start_date"], gdp["latest_date"], gdp["status"]) == (
        "Gross Domestic Product", 3, date(2025, 10, 1), date(2026, 4, 1), "ok",
    )  # fmt: skip
    assert (gdp["first_vintage"], gdp["latest_vintage"]) == (date(2026, 1, 30), date(2026, 8, 27))
    assert (old["row_count"], old["status"]) == (0, "empty")


def test_a_series_of_ecos_keeps_what_it_was_before_a_revision(database: str, root: Path) -> None:
    first, second = datetime(2026, 9, 1, 23, 0, tzinfo=UTC), datetime(2026, 9, 10, 23, 0, tzinfo=UTC)
    name = "722Y001.D.0101000"
    values = "market.ecos_values"
    save(database, values, (name, "20260901", date(2026, 9, 1), "2.5", Decimal("2.5"), "연%", None), sent=second)
    before = (name, "20260901", date(2026, 9, 1), "2.50", Decimal("2.50"), "연%", None)
    save(database, values, before, sent=first, history=(second, "revised"))
    # Replaced on the very day, and read otherwise by a newer parser: shown at the end of no day.
    save(database, values, (*before[:3], "9", Decimal(9), "연%", None), sent=second, history=(second, "revised"))
    save(database, values, (*before[:3], "8", Decimal(8), "연%", None), sent=first, history=(second, "parser"))
    series = (
        name,
        "2026",
        "722Y001",
        "한국은행 기준금리",
        "D",
        '["0101000"]',
        '["한국은행 기준금리"]',
        "연%",
        "19990506",
    )
    save(database, "market.ecos_series", series, sent=first)
    rows = published(database, root, "macro/ecos/observations")
    assert [(r["value_text"], r["realtime_start"], r["realtime_end"]) for r in rows] == [
        ("2.50", date(2026, 9, 2), date(2026, 9, 10)),
        ("2.5", date(2026, 9, 11), FOR_EVER),
    ]
    (told,) = published(database, root, "macro/ecos/series")
    assert (told["label"], told["frequency"], told["unit"], told["row_count"], told["status"]) == (
        "한국은행 기준금리: 한국은행 기준금리", "D", "연%", 1, "ok",
    )  # fmt: skip


def test_analyses_are_published_by_month_of_receipt_once_they_are_there(database: str, root: Path) -> None:
    number = "20260915000123"
    with psycopg.connect(database) as connection:
        connection.execute("alter table dartbrief.disclosures disable trigger user")
        connection.execute(
            "insert into dartbrief.disclosures (rcept_no, corp_code, corp_name, stock_code, corp_type, report_name, "
            "submitter, rcept_dt, remark, base_title, is_correction, unit, fetch_id, sent_at, parser_version, "
            "cycle_id, attempt) values (%s, '00126380', '삼성전자', '005930', 'Y', '공시', '삼성전자', "
            "'2026-09-15', '', '공시', false, 'u', 7, collect.clock(), 1, 1, 1)",
            (number,),
        )
        connection.execute(
            "insert into dartbrief.analysis_cache (rcept_no, status, created_at, updated_at) "
            "values (%s, 'PENDING', collect.clock(), collect.clock())",
            (number,),
        )
        connection.execute("update dartbrief.analysis_cache set retry_count = 1")
    release = releases.release("analyses")
    assert release.shape is not None
    assert build(database, release, release.shape, str(root), "a run").unchanged == ()
    with psycopg.connect(database) as connection:
        connection.execute(
            "update dartbrief.analysis_cache set status = 'COMPLETED', summary = '요약', key_points_json = '[]', "
            "sentiment = 'neutral', model = 'm', prompt_version = 'v1', completed_at = collect.clock()"
        )
    (row,) = published(database, root, "analyses")
    assert (row["rcept_no"], row["rcept_date"], row["summary"], row["stock_code"]) == (
        number, date(2026, 9, 15), "요약", "005930",
    )  # fmt: skip
    assert market.files(database)[-1]["path"] == "analyses/2026-09.parquet"
