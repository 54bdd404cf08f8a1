"""The columns of DART's files by company and over all companies, as readers of such data know them.

Promises: a company is named by its number at DART everywhere, as stock codes are used again after a delisting; the code
stands beside it. Amounts are exact: their text, where the number of digits is not bounded. Never: nothing is read here.
"""

from __future__ import annotations

from dataclasses import replace

from include.contract import Column, Table

_CORP = Column("corp_code", "text", "Company as DART numbers it")
_CODE = Column("stock_code", "text", "Stock code; a delisted company keeps it, and another may get it", True)
_NAME = Column("corp_name", "text", "Name of the company", True)
_YEAR = Column("bsns_year", "smallint", "Business year")
_PERIOD = Column("reprt_code", "text", "11013 first quarter, 11012 half year, 11014 third quarter, 11011 whole year")
_PERIOD_NAME = Column("reprt_nm", "text", "The same in words", True)
_RECEIPT = Column("rcept_no", "text", "Receipt number of the report")
_NUMBER = Column("number", "integer", "Place in DART's answer, from 1")
_HOLDS = Column("is_current", "boolean", "No later report took its place")
_END = Column("period_end", "date", "Day on which the period ends where the year ends in December")


def _text(name: str, comment: str) -> Column:
    return Column(name, "text", comment, True)


def _amount(name: str, comment: str) -> Column:
    return Column(name, "numeric", comment, True)


FINANCE = Table(
    "publish",
    "dart_finance",
    "Statements of a company as reported, row by row, of every report (DART)",
    (
        _CORP,
        _YEAR,
        _PERIOD,
        _PERIOD_NAME,
        Column("fs_div", "text", "CFS consolidated, OFS separate"),
        _text("fs_nm", "The same in words"),
        _RECEIPT,
        _NUMBER,
        _HOLDS,
        _CODE,
        _NAME,
        _END,
        Column("sj_div", "text", "BS balance sheet, IS income, CIS comprehensive income, CF cash flow, SCE equity"),
        _text("sj_nm", "Name of the statement"),
        _text("account_id", "Element of the account"),
        Column("account_nm", "text", "Name of the account"),
        _text("account_detail", "Component of equity"),
        _text("thstrm_nm", "Name of the period"),
        _amount("thstrm_amount", "Amount; of a quarter's income its three months"),
        _amount("thstrm_add_amount", "Amount since the year began"),
        _text("frmtrm_nm", "Name of the period before"),
        _amount("frmtrm_amount", "Amount of the period before"),
        _text("frmtrm_q_nm", "Name of the same quarter of last year"),
        _amount("frmtrm_q_amount", "Amount of the same quarter of last year"),
        _amount("frmtrm_add_amount", "Amount of last year until the same day"),
        _text("bfefrmtrm_nm", "Name of the period before that"),
        _amount("bfefrmtrm_amount", "Amount of the period before that"),
        _text("ord", "Order that DART gives"),
        _text("currency", "Currency of the amounts"),
    ),
    key=("corp_code", "bsns_year", "reprt_code", "fs_div", "rcept_no", "number"),
    session_date=None,
)
SCAN_FINANCE = replace(FINANCE, name="dart_scan_finance", comment="Statements of all companies that hold (DART)")

_ITEM = (
    _CORP,
    _YEAR,
    _PERIOD,
    _PERIOD_NAME,
    Column("endpoint", "text", "Type of the item, by its official name"),
    _RECEIPT,
    _NUMBER,
    _HOLDS,
    _CODE,
    _NAME,
    _END,
    _text("stlm_dt", "Day of settlement, as given"),
    _text("item_group", "Title of the group that the row stands in"),
)
ITEM_COLUMNS = frozenset(column.name for column in _ITEM)
REPORT = Table(
    "publish",
    "dart_report",
    "Items of a company's periodic reports as given, of every report (DART)",
    (*_ITEM, Column("item_values", "jsonb", "Fields of the item by their official names, as given")),
    key=("corp_code", "bsns_year", "reprt_code", "endpoint", "rcept_no", "number"),
    session_date=None,
)


def scan_report(fields: tuple[str, ...]) -> Table:
    """Return the shape of one type of report items, each field a column of text."""
    return replace(
        REPORT,
        name="dart_scan_report",
        comment="Items of one type of all companies' periodic reports that hold (DART)",
        columns=(*_ITEM, *(_text(name, "Field of the item, as given") for name in fields)),
    )


DOCS = Table(
    "publish",
    "dart_docs",
    "Chapters of a company's periodic reports in order (DART)",
    (
        _CORP,
        _RECEIPT,
        Column("section_order", "integer", "Place among the chapters of the report, from 0"),
        _NAME,
        _CODE,
        Column("year", "text", "Year of the report's period"),
        Column("rcept_date", "date", "Day of receipt"),
        Column("report_type", "text", "Title of the report"),
        Column("section_level", "smallint", "How deep the chapter stands"),
        Column("section_title", "text", "Title of the chapter"),
        Column("section_path", "text", "Titles of the chapters that it stands in, and its own"),
        Column("section_content", "text", "Text of the chapter without that of those within it"),
    ),
    key=("corp_code", "rcept_no", "section_order"),
    session_date=None,
)

SCAN_CHANGES = Table(
    "publish",
    "dart_scan_changes",
    "What changed between a company's consecutive comparable reports, by chapter (DART)",
    (
        _CORP,
        Column("report_type", "text", "Kind of both reports"),
        Column("from_period", "text", "Period of the earlier report"),
        Column("to_period", "text", "Period of the later one"),
        Column("section_path", "text", "Titles of the chapters that it stands in, and its own"),
        Column("nth", "integer", "Which of several with that path"),
        Column("section_title", "text", "Title of the chapter"),
        Column("change_type", "text", "appeared, disappeared, numeric, structural (size moved by over 50 %), wording"),
        Column("preview", "text", "First 200 characters of the later text, or of what disappeared"),
        _CODE,
        Column("size_a", "integer", "Characters before"),
        Column("size_b", "integer", "Characters after"),
        Column("size_delta", "integer", "The difference"),
        Column("from_rcept_no", "text", "Receipt number of the earlier report"),
        Column("to_rcept_no", "text", "Receipt number of the later one"),
    ),
    key=("corp_code", "report_type", "to_period", "section_path", "nth"),
    session_date=None,
)
