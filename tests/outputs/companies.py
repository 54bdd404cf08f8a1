"""A made-up market of companies with statements, to build files over all of them from: tables, marks and rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg

from include.contract import Column, Table
from include.outputs.release import Release, Terms
from include.outputs.scans import Scan

SHAPE = Table(
    "publish",
    "toy_statements",
    "Statements of a made-up market",
    (
        Column("corp_code", "text", "Company"),
        Column("year", "integer", "Year"),
        Column("number", "integer", "Place"),
        Column("account", "text", "Account", True),
        Column("amount", "numeric", "Amount", True),
    ),
    key=("corp_code", "year", "number"),
    session_date=None,
)
RELEASE = Release(
    "toy/scan",
    "Everything over all companies",
    "publish.toy",
    "toy/scan/{scan}.parquet",
    "scan",
    Terms("None"),
    made_from=("filings.toy",),
)
SCANS = (
    Scan("all", SHAPE),
    Scan("report/x", replace(SHAPE, columns=(*SHAPE.columns, Column("note", "text", "Note", True))),
         ("account", "x"), "more", ("note",)),
)  # fmt: skip


def make(url: str) -> None:
    """Make the table, its view and its marks by company."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "create table filings.toy (corp_code text, year int, number int, account text, amount numeric, more jsonb, "
            "fetch_id bigint, sent_at timestamptz, primary key (corp_code, year, number))"
        )
        connection.execute("create view publish.toy_statements as select * from filings.toy")
        for event, rows in (("insert", "new table as"), ("update", "new table as"), ("delete", "old table as")):
            connection.execute(
                f"create trigger toy_{event} after {event} on filings.toy referencing {rows} changed "  # type: ignore[arg-type]
                "for each statement execute function publish.mark_companies()"
            )


def fill(url: str, companies: int, rows: int = 6) -> None:
    """Rows for so many companies, a third of them of the account x."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "insert into filings.toy select lpad((100000 + c)::text, 8, '0'), 2020 + n / 100, n, "
            "case n %% 3 when 0 then 'x' else '가' || n end, n + c / 7.0, jsonb_build_object('note', 'of ' || c), "
            "c * 10 + n, timestamptz '2026-09-15 00:00+00' from generate_series(1, %s) c, generate_series(1, %s) n",
            (companies, rows),
        )


def change(url: str, company: int, amount: str = "99.5") -> None:
    """Another amount for a company."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "update filings.toy set amount = %s where corp_code = lpad((100000 + %s)::text, 8, '0') and number = 2",
            (amount, company),
        )


def remove(url: str, company: int) -> None:
    """All rows of a company are withdrawn."""
    with psycopg.connect(url) as connection:
        connection.execute("delete from filings.toy where corp_code = lpad((100000 + %s)::text, 8, '0')", (company,))


def scans(connection: psycopg.Connection[Any]) -> tuple[Scan, ...]:
    """The parts of the release."""
    return SCANS
