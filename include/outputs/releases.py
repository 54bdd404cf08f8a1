"""The releases: every category of published files, each declared once, in one entry.

Promises: everything about publication follows these declarations. Names are `family/data set`, with a file's own name
behind where a data set has several; columns are written with underscores everywhere. Never: no database, no file, no
network.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from include.contract import Table
from include.outputs import shapes, shapes_dart
from include.outputs.release import BULK as BULK
from include.outputs.release import Part as Part
from include.outputs.release import Release as Release
from include.outputs.release import ReleaseError as ReleaseError
from include.outputs.release import Terms as Terms

_ALPACA = Terms("Alpaca's market data agreement forbids redistribution; published privately.")
_ECOS = Terms("Of ECOS's statistics, those of other producers keep their own terms; published privately.")
_DART = Terms("OpenDART's terms of use bind who shows its data; published privately.")
_FINRA = Terms("FINRA restricts redistribution of its files; published privately.")
_FRED = Terms("FRED's terms leave series of other owners to their own; published privately.")
_KRX = Terms("KRX's OpenAPI terms forbid redistribution and ask to be named (KRX statistics); published privately.")
_SEC = Terms("SEC filings are public records; published privately.")


def _months(name: str, title: str, table: str, terms: Terms, **more: Any) -> Release:
    """A release with a file for each month of the session date."""
    return Release(name, title, table, f"{name}/{{month}}.parquet", "month", terms, **more)


def _whole(name: str, title: str, table: str, terms: Terms, **more: Any) -> Release:
    """A release of one file."""
    return Release(name, title, table, f"{name}.parquet", "whole", terms, **more)


def _view(name: str, title: str, shape: Table, terms: Terms, made_from: tuple[str, ...], **more: Any) -> Release:
    """A release of one file, read from a view."""
    return _whole(name, title, shape.qualified, terms, shape=shape, made_from=made_from, **more)


def _companies(name: str, title: str, shape: Table, terms: Terms, made_from: tuple[str, ...]) -> Release:
    """A release of a file for each company: large, as all of them may change at once."""
    path = f"{name}/{{company}}.parquet"
    return Release(
        name, title, shape.qualified, path, "company", terms, shape=shape, made_from=made_from, priority=BULK
    )


# Tables that no stream writes, and that releases are made from.
OURS = frozenset({"dartbrief.analysis_cache"})

RELEASES: tuple[Release, ...] = (
    _months(
        "finra/short_volume",
        "Short sale volume reported off exchange, by day, facility file and symbol (FINRA)",
        "market.finra_short_volume",
        _FINRA,
        calendar="XNYS",
    ),
    _view(
        "macro/fred/observations",
        "Economic series: every value with the days on which it was the published one (FRED)",
        shapes.FRED_OBSERVATIONS,
        _FRED,
        ("market.fred_vintages",),
        newest=("series_id", "realtime_start"),
    ),
    _view(
        "macro/fred/series",
        "Economic series: what each one is, what is held of it and since when (FRED)",
        shapes.FRED_SERIES,
        _FRED,
        ("market.fred_series", "market.fred_vintages"),
        newest=("series_id", "latest_vintage"),
    ),
    _months(
        "disclosures",
        "Filings of Korean companies by day of receipt, corrections and withdrawn ones too (DART)",
        "dartbrief.disclosures",
        _DART,
        priority=50,
    ),
    _companies(
        "dart/finance",
        "Statements of Korean companies as reported, by company, with every report that restated them (DART)",
        shapes_dart.FINANCE,
        _DART,
        ("filings.dart_statements", "filings.dart_corps"),
    ),
    _companies(
        "dart/report",
        "Items of Korean companies' periodic reports as given, by company (DART)",
        shapes_dart.REPORT,
        _DART,
        ("filings.dart_report_items", "filings.dart_corps"),
    ),
    _companies(
        "dart/docs",
        "Text of Korean companies' periodic reports, by company and chapter (DART)",
        shapes_dart.DOCS,
        _DART,
        ("filings.dart_docs",),
    ),
    Release(
        "dart/scan",
        "All Korean companies at once: what changed between reports, statements, items by type (DART)",
        "",
        "dart/scan/{scan}.parquet",
        "scan",
        _DART,
        made_from=(
            "filings.dart_statements",
            "filings.dart_report_items",
            "filings.dart_docs",
            "filings.dart_corps",
            "dartbrief.disclosures",
        ),
    ),
    # Off: the SEC's own bulk file is the original, and 18,000 files are a day's commits.
    Release(
        "edgar/finance",
        "Facts of companies that file with the SEC, by company, as its bulk file has them (SEC)",
        "",
        "edgar/finance/{folder}/{company}.parquet",
        "company",
        _SEC,
        made_by="edgar.facts",
        priority=BULK + 100,
        is_on=False,
    ),
    Release(
        "edgar/docs",
        "Annual and quarterly reports of companies that file with the SEC, by company and item (SEC)",
        shapes.SEC_SECTIONS.qualified,
        "edgar/docs/{folder}/{company}.parquet",
        "company",
        _SEC,
        shape=shapes.SEC_SECTIONS,
        made_from=("filings.sec_sections",),
        priority=BULK,
    ),
    Release(
        "edgar/scan",
        "Fiscal years of companies that file with the SEC since 2021: 33 lines, as filed and as they stand (SEC)",
        "",
        "edgar/scan/finance.parquet",
        "whole",
        _SEC,
        made_by="edgar.scan",
    ),
    Release(
        "edgar/meta",
        "Quarterly statement data sets of the SEC: submissions, presentation, tags, each by quarter (SEC)",
        "",
        "edgar/meta/{set}.parquet",
        "set",
        _SEC,
        made_by="edgar.statements",
    ),
    Release(
        "analyses",
        "Summaries of Korean filings by a language model, by month of receipt",
        shapes.ANALYSES.qualified,
        "analyses/{month}.parquet",
        "month",
        _DART,
        shape=shapes.ANALYSES,
        made_from=("dartbrief.analysis_cache",),
        priority=50,
    ),
    _whole(
        "metadata/dartList",
        "Every company that DART numbers, as its list shows them now (DART)",
        "filings.dart_corps",
        _DART,
    ),
    _months(
        "alpaca/bars/1d",
        "US stocks: daily bars, raw and adjusted for splits, by symbol and feed (Alpaca)",
        "market.alpaca_daily_bars",
        _ALPACA,
        calendar="XNYS",
    ),
    _whole(
        "alpaca/assets",
        "US stocks that Alpaca knows, as listed now (Alpaca)",
        "market.alpaca_assets",
        _ALPACA,
        open_items_of="alpaca.assets",
    ),
    _whole(
        "alpaca/calendar",
        "Trading days of the US stock market with their hours (Alpaca)",
        "market.alpaca_calendar",
        _ALPACA,
    ),
    _view(
        "macro/ecos/observations",
        "Korean economic series: every value with the days on which it was shown (ECOS)",
        shapes.ECOS_OBSERVATIONS,
        _ECOS,
        ("market.ecos_values",),
        newest=("series_id", "date"),
    ),
    _view(
        "macro/ecos/series",
        "Korean economic series: what each one is and what is held of it (ECOS)",
        shapes.ECOS_SERIES,
        _ECOS,
        ("market.ecos_series", "market.ecos_values"),
        newest=("series_id", "latest_date"),
    ),
    _whole(
        "metadata/corpList",
        "Companies listed in Korea on KOSPI and KOSDAQ, as listed now (KIND)",
        "market.kind_companies",
        _KRX,
        open_items_of="kind.companies",
    ),
    _months(
        "alpaca/bars/1m",
        "US stocks: minute bars, extended hours too, by symbol and feed (Alpaca)",
        "market.alpaca_intraday_bars",
        _ALPACA,
        calendar="XNYS",
        priority=BULK,
    ),
    _months(
        "krx/prices",
        "Korean stocks: daily prices as traded, by market and code (KRX)",
        "market.krx_prices",
        _KRX,
        calendar="XKRX",
        whole_days_in="market.krx_sessions",
    ),
    _months(
        "krx/issues",
        "Korean stocks: issues listed on each session (KRX)",
        "market.krx_issues",
        _KRX,
        calendar="XKRX",
        whole_days_in="market.krx_issue_sessions",
    ),
    _months(
        "krx/indices",
        "Korean indices of stocks and derivatives by session (KRX)",
        "market.krx_indices",
        _KRX,
        calendar="XKRX",
    ),
    _months(
        "krx/bond_indices", "Korean indices of bonds by session (KRX)", "market.krx_bond_indices", _KRX, calendar="XKRX"
    ),
    _months(
        "sec/feed",
        "SEC filings as the current feed first showed them, by party and role (SEC)",
        "filings.sec_feed",
        _SEC,
    ),
    _months(
        "sec/daily_index",
        "SEC filings as the daily indexes list them, by party and form (SEC)",
        "filings.sec_daily_index",
        _SEC,
    ),
    _months(
        "sec/full_index",
        "SEC filings as the quarterly indexes list them now, by party and form (SEC)",
        "filings.sec_full_index",
        _SEC,
        priority=BULK,
    ),
    _months(
        "sec/company_filings",
        "SEC filings of followed companies, as their own lists show them (SEC)",
        "filings.sec_company_filings",
        _SEC,
    ),
    _whole("sec/companies", "Followed companies, as the SEC describes them now (SEC)", "filings.sec_companies", _SEC),
    _whole("sec/tickers", "Tickers and exchanges of companies, as listed now (SEC)", "filings.sec_tickers", _SEC),
    _months("sec/texts", "Complete SEC submissions as they were read (SEC)", "filings.sec_texts", _SEC),
    _months("sec/documents", "Documents of SEC filings, by filing and order (SEC)", "filings.sec_documents", _SEC),
    _months("sec/headers", "Headers of SEC filings: forms, dates, items (SEC)", "filings.sec_headers", _SEC),
    _months(
        "sec/header_parties",
        "Parties of SEC filings as their headers describe them (SEC)",
        "filings.sec_header_parties",
        _SEC,
    ),
    _months(
        "sec/header_former_names",
        "Former names of parties of SEC filings (SEC)",
        "filings.sec_header_former_names",
        _SEC,
    ),
    _months("sec/xbrl", "What XBRL SEC filings had when they were read (SEC)", "filings.sec_xbrl", _SEC),
    _months("sec/xbrl_instances", "XBRL instances of SEC filings (SEC)", "filings.sec_xbrl_instances", _SEC),
    _months(
        "sec/xbrl_facts",
        "XBRL facts as filed with the SEC, with period, dimensions and unit (SEC)",
        "filings.sec_xbrl_facts",
        _SEC,
        priority=BULK,
    ),
    _months(
        "sec/xbrl_footnotes",
        "Footnotes of XBRL facts as filed with the SEC (SEC)",
        "filings.sec_xbrl_footnotes",
        _SEC,
        priority=BULK,
    ),
)


def made() -> tuple[Release, ...]:
    """Return the releases that take the files that a stream has made, those that are switched on."""
    return tuple(each for each in RELEASES if each.made_by and each.is_on)


def release(name: str) -> Release:
    """Return a release by its name.

    Raises:
        ReleaseError: there is none.
    """
    for candidate in RELEASES:
        if candidate.name == name:
            return candidate
    raise ReleaseError(f"There is no release {name!r}; there are {', '.join(r.name for r in RELEASES)}.")


def fed_by(tables: Iterable[Table]) -> tuple[tuple[Release, Table], ...]:
    """Return the releases that are made from these tables, each with what declares its columns, by priority."""
    declared = {table.qualified: table for table in tables}
    names = OURS | set(declared)
    found = [
        (each, each.shape or declared[each.table])
        for each in RELEASES
        if each.is_on and each.cut != "scan" and names & set(each.tables)
    ]
    return tuple(sorted(found, key=lambda pair: pair[0].priority))


def feeding(tables: Iterable[Table]) -> list[str]:
    """Return the names under which changes of these tables are counted that some release is made from."""
    declared = {table.qualified for table in tables} | OURS
    return sorted({mark for each in RELEASES if each.is_on and declared & set(each.tables) for mark in each.marks})
