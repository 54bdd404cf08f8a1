"""Parquet files say exactly what the table says, in the same bytes every time."""

from __future__ import annotations

import hashlib
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from include.contract import Column, Table
from include.engine.db import connect
from include.outputs import parquet
from include.outputs.releases import Part, Release, Terms
from tests.outputs import market

MONTH = "2026-09"


def written(url: str, file: Path, release: Release = market.RELEASE, table: Table = market.TABLE) -> parquet.Written:
    with connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        part = release.part(MONTH) if release.cut == "month" else release.part("all")
        with connection.transaction():
            return parquet.write(connection, release, table, part, file)


def rows(file: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(file).to_pylist())


def test_the_same_rows_give_the_same_bytes_in_whatever_order_they_were_written(database: str, tmp_path: Path) -> None:
    some = market.month(MONTH, symbols=50)
    market.save(database, some)
    first = written(database, tmp_path / "a")
    market.empty(database, MONTH)
    market.save(database, reversed(some))
    second = written(database, tmp_path / "b")
    assert first.sha256 == second.sha256
    assert first.content_hash == second.content_hash
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert hashlib.sha256((tmp_path / "a").read_bytes()).digest() == first.sha256


def test_the_content_hash_does_not_depend_on_how_the_rows_are_packed(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    market.save(database, market.month(MONTH, symbols=50))
    first = written(database, tmp_path / "a")
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 7)
    monkeypatch.setattr(parquet, "_COMPRESSION_LEVEL", 1)
    second = written(database, tmp_path / "b")
    assert first.sha256 != second.sha256
    assert first.content_hash == second.content_hash
    assert rows(tmp_path / "a") == rows(tmp_path / "b")


def test_one_changed_value_changes_the_content_hash(database: str, tmp_path: Path) -> None:
    market.save(database, market.month(MONTH))
    first = written(database, tmp_path / "a")
    market.save(database, [market.row(date(2026, 9, 1), "SYM0003", "3.000002")])
    assert written(database, tmp_path / "b").content_hash != first.content_hash


def test_decimals_are_exact_to_the_last_digit(database: str, tmp_path: Path) -> None:
    short = ["99999999999899.999999", "0.000001", "0", "12345678901234.100000"]
    market.save(database, [market.row(date(2026, 9, 1), f"S{n}", text) for n, text in enumerate(short)])
    written(database, tmp_path / "a")
    found = {row["symbol"]: row["short_volume"] for row in rows(tmp_path / "a")}
    assert found == {f"S{n}": Decimal(text) for n, text in enumerate(short)}
    assert all(value.as_tuple().exponent == -6 for value in found.values())
    assert str(pq.read_schema(tmp_path / "a").field("short_volume").type) == "decimal128(20, 6)"


@pytest.mark.parametrize(
    "symbol",
    [
        "NA",
        "TRUE",
        "NULL",
        "NaN",
        "null",
        "nan",
        "",
        " ",
        "1E5",
        "0012",
        "\\N",
        "\\.",
        'A"B',
        "A,B",
        "A\nB",
        "A\r\nB",
        "é샘",
    ],
)
def test_a_symbol_that_looks_like_something_else_stays_text(database: str, tmp_path: Path, symbol: str) -> None:
    market.save(database, [market.row(date(2026, 9, 1), symbol)])
    written(database, tmp_path / "a")
    assert [row["symbol"] for row in rows(tmp_path / "a")] == [symbol]


def test_null_and_nothing_else_is_null(database: str, tmp_path: Path) -> None:
    day = date(2026, 9, 1)
    market.save(database, [market.row(day, "A", exempt=None), market.row(day, "B", exempt="0")])
    written(database, tmp_path / "a")
    assert [row["short_exempt_volume"] for row in rows(tmp_path / "a")] == [None, Decimal(0)]


def test_rows_stand_in_key_order_by_bytes_and_keep_their_case(database: str, tmp_path: Path) -> None:
    symbols = ["b", "B", "a", "Z", "É", "BRK/B", "BRKB", "_"]
    market.save(database, [market.row(date(2026, 9, 1), symbol) for symbol in symbols])
    written(database, tmp_path / "a")
    assert [row["symbol"] for row in rows(tmp_path / "a")] == sorted(symbols, key=lambda text: text.encode())


def test_a_file_holds_its_month_and_nothing_of_its_neighbours(database: str, tmp_path: Path) -> None:
    days = [date(2026, 8, 31), date(2026, 9, 1), date(2026, 9, 30), date(2026, 10, 1)]
    market.save(database, [market.row(day, "A") for day in days], fetch=8)
    found = written(database, tmp_path / "a")
    assert [row["session_date"] for row in rows(tmp_path / "a")] == days[1:3]
    assert (found.rows, found.first_session, found.last_session, found.newest_fetch) == (2, days[1], days[2], 8)


def test_the_file_says_when_its_values_were_fetched(database: str, tmp_path: Path) -> None:
    market.save(database, market.month(MONTH, symbols=1, days=[1]))
    written(database, tmp_path / "a")
    assert [row["sent_at"] for row in rows(tmp_path / "a")] == [market.SENT]
    assert str(pq.read_schema(tmp_path / "a").field("sent_at").type) == "timestamp[us, tz=UTC]"


def test_columns_types_and_comments_follow_the_declaration(database: str, tmp_path: Path) -> None:
    market.save(database, market.month(MONTH, symbols=1))
    written(database, tmp_path / "a")
    schema = pq.read_schema(tmp_path / "a")
    assert schema.names == [*market.TABLE.column_names, "sent_at"]
    for column in market.TABLE.columns:
        field = schema.field(column.name)
        assert field.metadata[b"comment"].decode() == column.comment
        assert field.nullable == column.nullable
    assert schema.metadata[b"key"] == b"session_date,facility,symbol"
    assert b"redistribution" in schema.metadata[b"terms"]


def test_a_part_without_rows_is_a_file_with_the_schema_and_no_rows(database: str, tmp_path: Path) -> None:
    found = written(database, tmp_path / "a")
    assert found.rows == 0
    assert found.first_session is None
    assert pq.read_schema(tmp_path / "a").names == [*market.TABLE.column_names, "sent_at"]


EVERYTHING = Table(
    schema="market",
    name="everything",
    comment="One column of every type",
    columns=(
        Column("name", "text", "Text"),
        Column("exact", "numeric", "As many digits as given", nullable=True),
        Column("big", "bigint", "Whole number", nullable=True),
        Column("middle", "integer", "Whole number", nullable=True),
        Column("small", "smallint", "Whole number", nullable=True),
        Column("flag", "boolean", "Yes or no", nullable=True),
        Column("day", "date", "Day", nullable=True),
        Column("at", "timestamptz", "Instant", nullable=True),
        Column("extra", "jsonb", "Whatever", nullable=True),
        Column("wide", "numeric", "More digits than a parquet decimal has", nullable=True, precision=(50, 10)),
        Column("narrow", "numeric", "Few digits", nullable=True, precision=(4, 2)),
    ),
    key=("name",),
    session_date=None,
)
WHOLE = Release("test/everything", "Everything", "market.everything", "test/everything.parquet", "whole", Terms("None"))


@pytest.fixture
def everything(database: str) -> str:
    with psycopg.connect(database) as connection:
        connection.execute(
            "create table market.everything (name text primary key, exact numeric, big bigint, middle integer, "
            "small smallint, flag boolean, day date, at timestamptz, extra jsonb, wide numeric(50,10), "
            "narrow numeric(4,2), fetch_id bigint, sent_at timestamptz)"
        )
        connection.execute(
            "insert into market.everything values ('a', 1.50, 9223372036854775807, -1, 7, true, '0999-12-31', "
            "'2026-09-16 08:40:00.000001+09', '{\"b\": [1, \"x\"]}', "
            "1234567890123456789012345678901234567890.5, -0.1, 3, now()),"
            "('b', null, null, null, null, false, null, null, null, null, null, 2, now())"
        )
    return database


def test_every_type_comes_through_exactly(everything: str, tmp_path: Path) -> None:
    found = written(everything, tmp_path / "a", WHOLE, EVERYTHING)
    first, second = rows(tmp_path / "a")
    assert first["exact"] == "1.50"
    assert (first["big"], first["middle"], first["small"], first["flag"]) == (9223372036854775807, -1, 7, True)
    assert first["day"] == date(999, 12, 31)
    assert first["at"].isoformat() == "2026-09-15T23:40:00.000001+00:00"
    assert first["extra"] == '{"b": [1, "x"]}'
    assert first["wide"] == "1234567890123456789012345678901234567890.5000000000"
    assert first["narrow"] == Decimal("-0.10")
    assert second["flag"] is False
    assert [second[name] for name in ("exact", "big", "day", "at", "extra", "wide", "narrow")] == [None] * 7
    assert found.newest_fetch == 3


def test_a_server_with_another_date_style_and_zone_gives_the_same_bytes(everything: str, tmp_path: Path) -> None:
    first = written(everything, tmp_path / "a", WHOLE, EVERYTHING)
    with psycopg.connect(everything) as connection:
        name = psycopg.sql.Identifier(connection.info.dbname)
        for setting in ("datestyle = 'German, DMY'", "timezone = 'Asia/Seoul'", "client_encoding = 'LATIN1'"):
            connection.execute(psycopg.sql.SQL("alter database {} set " + setting).format(name))
    second = written(everything, tmp_path / "b", WHOLE, EVERYTHING)
    assert first.sha256 == second.sha256
    assert first.content_hash == second.content_hash


def test_a_value_that_does_not_fit_its_type_is_told_with_its_column(everything: str, tmp_path: Path) -> None:
    with psycopg.connect(everything) as connection:
        connection.execute("update market.everything set narrow = 'NaN'")
    with pytest.raises(parquet.PartUnreadable, match=r"test/everything all.*column.*NaN"):
        written(everything, tmp_path / "a", WHOLE, EVERYTHING)


def test_a_table_without_session_date_cannot_be_cut_by_months(everything: str, tmp_path: Path) -> None:
    part = Part("2026-09", "x", date(2026, 9, 1), date(2026, 10, 1))
    with connect(everything) as connection, pytest.raises(parquet.PartUnreadable, match="session date"):
        parquet.write(connection, WHOLE, EVERYTHING, part, tmp_path / "a")
