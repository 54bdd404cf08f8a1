"""The releases: every category of published files, declared once.

Promises: a release names its table, its paths, how it is cut into parts, who may see it and under which terms;
everything about publication follows this declaration. Public needs a terms entry with a source and a date.
Never: no database, no file, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Literal

from include.contract import Table

WHOLE = "all"
_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")


class ReleaseError(Exception):
    """A release is declared or asked for in a way that cannot be; the text says what would do."""


@dataclass(frozen=True)
class Terms:
    """What an upstream allows to be done with its data, where it says so, and when that was read."""

    note: str
    source: str = ""
    read_on: date | None = None


@dataclass(frozen=True)
class Part:
    """One part of a release and the one file that holds it; `first` to before `after` bound its session dates."""

    name: str
    path: str
    first: date | None = None
    after: date | None = None


@dataclass(frozen=True)
class Release:
    """One category of published files.

    `table` is the qualified name of the table that it is made from, `path` the pattern of its files in the
    repository (`{month}` stands for YYYY-MM), `cut` how it is divided: by the month of the session date, or not
    at all. `open_items_of` names the listing whose items its rows are, where those that have departed are left out.
    `priority` orders the releases when several wait: small and urgent ones have small numbers.
    """

    name: str
    title: str
    table: str
    path: str
    cut: Literal["month", "whole"]
    terms: Terms
    visibility: Literal["private", "public"] = "private"
    open_items_of: str | None = None
    priority: int = 100

    def __post_init__(self) -> None:
        """Refuse a declaration that would publish wrongly.

        Raises:
            ReleaseError: public without terms, a path that does not fit the cut, or open items by month.
        """
        if self.visibility == "public" and not (self.terms.source and self.terms.read_on):
            raise ReleaseError(f"Release {self.name} is public, so its terms must name a source and a date.")
        if ("{month}" in self.path) != (self.cut == "month"):
            raise ReleaseError(f"The path {self.path!r} of release {self.name} does not fit its cut, {self.cut}.")
        if self.open_items_of and self.cut != "whole":
            raise ReleaseError(f"Release {self.name} is of the items that are open, so it is not cut into months.")

    def part(self, name: str) -> Part:
        """Return a part by its name: a month as YYYY-MM, or `all` where the release is not divided.

        Raises:
            ReleaseError: the release has no such part.
        """
        if self.cut == "whole" and name == WHOLE:
            return Part(name, self.path)
        match = _MONTH.fullmatch(name)
        if self.cut == "whole" or match is None:
            what = "is not divided" if self.cut == "whole" else "is divided by months (YYYY-MM)"
            raise ReleaseError(f"Release {self.name} {what}; it has no part {name!r}.")
        year, month = int(match[1]), int(match[2])
        after = date(year + month // 12, month % 12 + 1, 1)
        return Part(name, self.path.replace("{month}", name), date(year, month, 1), after)


_ALPACA = Terms("Alpaca's market data agreement forbids redistribution; published privately.")

_KRX = Terms("KRX forbids redistribution of its data; published privately.")

_ECOS = Terms("Of ECOS's statistics, those of other producers keep their own terms; published privately.")

_DART = Terms("OpenDART's terms of use bind who shows its data; published privately.")

_FRED = Terms("FRED's terms leave series of other owners to their own; published privately.")

_KRX = Terms("KRX's OpenAPI terms forbid redistribution and ask to be named (KRX statistics); published privately.")

_SEC = Terms("SEC filings are public records; published privately.")

RELEASES: tuple[Release, ...] = (
    Release(
        name="finra/short_volume",
        title="Short sale volume reported off exchange, by day, facility file and symbol (FINRA)",
        table="market.finra_short_volume",
        path="finra/short_volume/{month}.parquet",
        cut="month",
        terms=Terms("FINRA restricts redistribution of its files; published privately."),
    ),
    Release(
        name="fred/vintages",
        title="Economic series: every value from the day on which it became the published one (FRED)",
        table="market.fred_vintages",
        path="fred/vintages/{month}.parquet",
        cut="month",
        terms=_FRED,
    ),
    Release(
        name="fred/series",
        title="Economic series: what each one is, by the day from which that holds (FRED)",
        table="market.fred_series",
        path="fred/series/{month}.parquet",
        cut="month",
        terms=_FRED,
    ),
    Release(
        name="dart/disclosures",
        title="Filings of Korean companies by day of receipt, corrections and withdrawn ones too (DART)",
        table="dartbrief.disclosures",
        path="dart/disclosures/{month}.parquet",
        cut="month",
        terms=_DART,
    ),
    Release(
        name="metadata/dartList",
        title="Every company that DART numbers, as its list shows them now (DART)",
        table="filings.dart_corps",
        path="metadata/dartList.parquet",
        cut="whole",
        terms=_DART,
    ),
    Release(
        name="alpaca/bars_1d",
        title="US stocks: daily bars, raw and adjusted for splits, by symbol and feed (Alpaca)",
        table="market.alpaca_daily_bars",
        path="alpaca/bars_1d/{month}.parquet",
        cut="month",
        terms=_ALPACA,
    ),
    Release(
        name="alpaca/assets",
        title="US stocks that Alpaca knows, as listed now (Alpaca)",
        table="market.alpaca_assets",
        path="alpaca/assets.parquet",
        cut="whole",
        terms=_ALPACA,
    ),
    Release(
        name="alpaca/calendar",
        title="Trading days of the US stock market with their hours (Alpaca)",
        table="market.alpaca_calendar",
        path="alpaca/calendar.parquet",
        cut="whole",
        terms=_ALPACA,
    ),
    Release(
        name="ecos/values",
        title="Korean economic series: values by period, as shown now (ECOS)",
        table="market.ecos_values",
        path="ecos/values.parquet",
        cut="whole",
        terms=_ECOS,
    ),
    Release(
        name="ecos/series",
        title="Korean economic series: what each one is (ECOS)",
        table="market.ecos_series",
        path="ecos/series.parquet",
        cut="whole",
        terms=_ECOS,
    ),
    Release(
        name="kind/companies",
        title="Companies listed in Korea on KOSPI and KOSDAQ, as listed now (KIND)",
        table="market.kind_companies",
        path="kind/companies.parquet",
        cut="whole",
        terms=_KRX,
        open_items_of="kind.companies",
    ),
    Release(
        name="alpaca/bars_1m",
        title="US stocks: minute bars, extended hours too, by symbol and feed (Alpaca)",
        table="market.alpaca_intraday_bars",
        path="alpaca/bars_1m/{month}.parquet",
        cut="month",
        terms=_ALPACA,
        priority=200,
    ),
    Release(
        name="krx/prices",
        title="Korean stocks: daily prices as traded, by market and code (KRX)",
        table="market.krx_prices",
        path="krx/prices/{month}.parquet",
        cut="month",
        terms=_KRX,
    ),
    Release(
        name="krx/issues",
        title="Korean stocks: issues listed on each session (KRX)",
        table="market.krx_issues",
        path="krx/issues/{month}.parquet",
        cut="month",
        terms=_KRX,
    ),
    Release(
        name="krx/indices",
        title="Korean indices of stocks and derivatives by session (KRX)",
        table="market.krx_indices",
        path="krx/indices/{month}.parquet",
        cut="month",
        terms=_KRX,
    ),
    Release(
        name="krx/bond_indices",
        title="Korean indices of bonds by session (KRX)",
        table="market.krx_bond_indices",
        path="krx/bond_indices/{month}.parquet",
        cut="month",
        terms=_KRX,
    ),
    Release(
        name="sec/feed",
        title="SEC filings as the current feed first showed them, by party and role (SEC)",
        table="filings.sec_feed",
        path="sec/feed/{month}.parquet",
        cut="month",
        terms=_SEC,
    ),
    Release(
        name="sec/daily_index",
        title="SEC filings as the daily indexes list them, by party and form (SEC)",
        table="filings.sec_daily_index",
        path="sec/daily_index/{month}.parquet",
        cut="month",
        terms=_SEC,
    ),
    Release(
        name="sec/full_index",
        title="SEC filings as the quarterly indexes list them now, by party and form (SEC)",
        table="filings.sec_full_index",
        path="sec/full_index/{month}.parquet",
        cut="month",
        terms=_SEC,
        priority=200,
    ),
    Release(
        name="sec/company_filings",
        title="SEC filings of followed companies, as their own lists show them (SEC)",
        table="filings.sec_company_filings",
        path="sec/company_filings/{month}.parquet",
        cut="month",
        terms=_SEC,
    ),
    Release(
        name="sec/companies",
        title="Followed companies, as the SEC describes them now (SEC)",
        table="filings.sec_companies",
        path="sec/companies.parquet",
        cut="whole",
        terms=_SEC,
    ),
    Release(
        name="sec/tickers",
        title="Tickers and exchanges of companies, as listed now (SEC)",
        table="filings.sec_tickers",
        path="sec/tickers.parquet",
        cut="whole",
        terms=_SEC,
    ),
    Release(
        name="sec/texts",
        title="Complete SEC submissions as they were read (SEC)",
        table="filings.sec_texts",
        path="sec/texts/{month}.parquet",
        cut="month",
        terms=_SEC,
    ),
    Release(
        name="sec/documents",
        title="Documents of SEC filings, by filing and order (SEC)",
        table="filings.sec_documents",
        path="sec/documents/{month}.parquet",
        cut="month",
        terms=_SEC,
    ),
    Release(
        name="sec/headers",
        title="Headers of SEC filings: forms, dates, items (SEC)",
        table="filings.sec_headers",
        path="sec/headers/{month}.parquet",
        cut="month",
        terms=_SEC,
    ),
    Release(
        name="sec/header_parties",
        title="Parties of SEC filings as their headers describe them (SEC)",
        table="filings.sec_header_parties",
        path="sec/header_parties/{month}.parquet",
        cut="month",
        terms=_SEC,
    ),
    Release(
        name="sec/header_former_names",
        title="Former names of parties of SEC filings (SEC)",
        table="filings.sec_header_former_names",
        path="sec/header_former_names/{month}.parquet",
        cut="month",
        terms=_SEC,
    ),
    Release(
        name="sec/xbrl",
        title="What XBRL SEC filings had when they were read (SEC)",
        table="filings.sec_xbrl",
        path="sec/xbrl/{month}.parquet",
        cut="month",
        terms=_SEC,
    ),
    Release(
        name="sec/xbrl_instances",
        title="XBRL instances of SEC filings (SEC)",
        table="filings.sec_xbrl_instances",
        path="sec/xbrl_instances/{month}.parquet",
        cut="month",
        terms=_SEC,
    ),
    Release(
        name="sec/xbrl_facts",
        title="XBRL facts as filed with the SEC, with period, dimensions and unit (SEC)",
        table="filings.sec_xbrl_facts",
        path="sec/xbrl_facts/{month}.parquet",
        cut="month",
        terms=_SEC,
        priority=200,
    ),
    Release(
        name="sec/xbrl_footnotes",
        title="Footnotes of XBRL facts as filed with the SEC (SEC)",
        table="filings.sec_xbrl_footnotes",
        path="sec/xbrl_footnotes/{month}.parquet",
        cut="month",
        terms=_SEC,
        priority=200,
    ),
)


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
    """Return the releases that are made from these tables, each with its table, by priority."""
    declared = {table.qualified: table for table in tables}
    found = [(each, declared[each.table]) for each in RELEASES if each.table in declared]
    return tuple(sorted(found, key=lambda pair: pair[0].priority))
