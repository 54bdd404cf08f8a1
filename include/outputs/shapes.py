"""The columns of files that are read from views: made for readers, and the same for every source of a kind.

Promises: names are those that readers of such data know, with underscores everywhere; amounts stay decimals, and beside
a number stands the text that the publisher gave. Never: nothing is read here.
"""

from __future__ import annotations

from include.contract import Column, Table

_SERIES = Column("series_id", "text", "Series as its publisher names it")
_VALUE = Column("value", "numeric", "The value; null where it is published as missing", True, (38, 15))
_GIVEN = Column("value_text", "text", "The same as given, with its digits", True)
_UNTIL = "The last day on which it was; 9999-12-31: it still is"

FRED_OBSERVATIONS = Table(
    "publish",
    "macro_fred_observations",
    "Values of economic series with the days on which each was the published one (FRED)",
    (
        _SERIES,
        Column("date", "date", "First day of the period that it is for"),
        _VALUE,
        _GIVEN,
        Column("realtime_start", "date", "The first day in St. Louis on which it was the published one"),
        Column("realtime_end", "date", _UNTIL),
    ),
    key=("series_id", "date", "realtime_start"),
    session_date=None,
)

ECOS_OBSERVATIONS = Table(
    "publish",
    "macro_ecos_observations",
    "Values of Korean economic series with the days on which each was seen to be shown (ECOS)",
    (
        _SERIES,
        Column("date", "date", "First day of the period that it is for"),
        _VALUE,
        _GIVEN,
        Column("realtime_start", "date", "The day in Seoul on which it was first seen; ECOS itself keeps no vintages"),
        Column("realtime_end", "date", _UNTIL),
        Column("period", "text", "The period as ECOS writes it"),
        Column("unit", "text", "Unit of the value", True),
    ),
    key=("series_id", "date", "realtime_start"),
    session_date=None,
)

_MANIFEST = (
    Column("source", "text", "Who publishes it"),
    _SERIES,
    Column("label", "text", "What it is, in the publisher's words"),
    Column("frequency", "text", "How often there is a value, as the publisher names it"),
    Column("unit", "text", "Unit of the values", True),
    Column("description", "text", "The publisher's notes", True),
    Column("row_count", "bigint", "Observations that are held"),
    Column("start_date", "date", "The first of them", True),
    Column("latest_date", "date", "The last of them", True),
    Column("first_vintage", "date", "The first day on which one of its values was the published one", True),
    Column("latest_vintage", "date", "The last day on which one of them changed", True),
    Column("status", "text", "ok, discontinued by its publisher, or empty: nothing is held of it"),
)

FRED_SERIES = Table(
    "publish",
    "macro_fred_series",
    "What each economic series is, and what is held of it (FRED)",
    _MANIFEST,
    key=("series_id",),
    session_date=None,
)

ECOS_SERIES = Table(
    "publish",
    "macro_ecos_series",
    "What each Korean economic series is, and what is held of it (ECOS)",
    _MANIFEST,
    key=("series_id",),
    session_date=None,
)

ANALYSES = Table(
    "publish",
    "analyses",
    "Summaries of Korean filings by a language model, as readers see them",
    (
        Column("rcept_no", "text", "Receipt number of the filing"),
        Column("rcept_date", "date", "Day of receipt"),
        Column("corp_code", "text", "Company as DART numbers it"),
        Column("corp_name", "text", "Its name"),
        Column("stock_code", "text", "Its stock code", True),
        Column("report_name", "text", "Title of the filing"),
        Column("kind", "text", "Kind of filing, which chose the prompt", True),
        Column("sentiment", "text", "positive, negative or neutral", True),
        Column("summary", "text", "The summary"),
        Column("key_points", "text", "Its points, joined by |||", True),
        Column("model", "text", "Model that wrote it", True),
        Column("prompt_version", "text", "Wording of the prompt", True),
        Column("completed_at", "timestamptz", "When it was accepted"),
    ),
    key=("rcept_no",),
    session_date="rcept_date",
)

SEC_SECTIONS = Table(
    "publish",
    "sec_sections",
    "Annual and quarterly reports of a company that files with the SEC, by report and item (SEC)",
    (
        Column("company", "text", "Company, by its number at the SEC in ten digits"),
        Column("accession", "text", "Number of the filing, with its dashes"),
        Column("number", "integer", "Place in the report, from 0; 0 is what stands before the first item"),
        Column("company_name", "text", "Name of the company in the header", nullable=True),
        Column("form", "text", "Form of the report"),
        Column("filed_date", "date", "Day on which it was filed"),
        Column("period_of_report", "date", "Period that it reports on", nullable=True),
        Column("part", "text", "Part of the form, I to IV", nullable=True),
        Column("item", "text", "Item of the form, e.g. 1A; null before the first", nullable=True),
        Column("title", "text", "Heading of the item as given"),
        Column("content", "text", "Its text: a line for a paragraph, and for a row with tabs between cells"),
    ),
    key=("company", "accession", "number"),
    session_date=None,
)
