"""The tables of DART's statements and report items, declared once.

A row names the report that it is from, and none is ever taken away: after a correction DART gives the newer report's
rows only, and those of the older one stay beside them. What was asked for, and that there was nothing, are rows too.
"""

from __future__ import annotations

from include.contract import Column, Rule, Table

_SET = (
    Column("corp_code", "text", "Company as DART numbers it: eight digits"),
    Column("bsns_year", "smallint", "Business year, as asked for"),
    Column("reprt_code", "text", "11013 first quarter, 11012 half year, 11014 third quarter, 11011 whole year"),
    Column("period_end", "date", "Day on which the period ends where the year ends in December"),
)
_RECEIPT = Column("rcept_no", "text", "Receipt number of the report; empty where DART had no data of the period")
_COMPANY = Rule("company is not blank", "not_blank", ("corp_code",))

FINANCE_SETS = Table(
    schema="filings",
    name="dart_finance_sets",
    comment="Statements that DART was asked for, by company, period and basis: of which report, or none",
    columns=(
        *_SET,
        Column("fs_div", "text", "CFS consolidated, OFS separate"),
        _RECEIPT,
        Column("rows", "integer", "Rows of the answer"),
    ),
    key=("corp_code", "bsns_year", "reprt_code", "fs_div", "rcept_no"),
    session_date="period_end",
    rules=(_COMPANY,),
    replaces="nothing",
    is_published=False,
)

STATEMENTS = Table(
    schema="filings",
    name="dart_statements",
    comment="Statements as reported, row by row, of every report that they were restated in",
    columns=(
        Column("rcept_no", "text", "Receipt number of the report"),
        Column("fs_div", "text", "CFS consolidated, OFS separate: as asked for, the answer does not say"),
        Column("number", "integer", "Place in the answer, from 1"),
        *_SET,
        Column("sj_div", "text", "BS balance sheet, IS income, CIS comprehensive income, CF cash flow, SCE equity"),
        Column("sj_nm", "text", "Name of the statement", nullable=True),
        Column(
            "account_id", "text", "Element of the account; -표준계정코드 미사용- without a standard code", nullable=True
        ),
        Column("account_nm", "text", "Name of the account"),
        Column("account_detail", "text", "Component of equity, with | between its steps; - elsewhere", nullable=True),
        Column("thstrm_nm", "text", "Name of the period", nullable=True),
        Column("thstrm_amount", "numeric", "Amount; of a quarter's income its three months", nullable=True),
        Column("thstrm_add_amount", "numeric", "Amount since the year began", nullable=True),
        Column("frmtrm_nm", "text", "Name of the period before", nullable=True),
        Column(
            "frmtrm_amount", "numeric", "Amount of the period before; of a balance the end of last year", nullable=True
        ),
        Column("frmtrm_q_nm", "text", "Name of the same quarter of last year", nullable=True),
        Column("frmtrm_q_amount", "numeric", "Amount of the same quarter of last year", nullable=True),
        Column("frmtrm_add_amount", "numeric", "Amount of last year until the same day", nullable=True),
        Column("bfefrmtrm_nm", "text", "Name of the period before that", nullable=True),
        Column("bfefrmtrm_amount", "numeric", "Amount of the period before that; of whole years only", nullable=True),
        Column("ord", "text", "Order that DART gives, as text", nullable=True),
        Column("currency", "text", "Currency of the amounts", nullable=True),
        Column(
            "odd_amounts",
            "text",
            "Names of the amounts whose text is no number, with commas between them",
            nullable=True,
        ),
        Column("amounts_as_given", "jsonb", "Texts of amounts that are not simply the number", nullable=True),
    ),
    key=("rcept_no", "fs_div", "number"),
    session_date="period_end",
    rules=(_COMPANY, Rule("account has a name", "not_blank", ("account_nm",))),
    replaces="nothing",
)

REPORT_SETS = Table(
    schema="filings",
    name="dart_report_sets",
    comment="Items of reports that DART was asked for, by company, period and endpoint: of which report, or none",
    columns=(
        *_SET,
        Column("endpoint", "text", "Endpoint of the item, by its official name"),
        _RECEIPT,
        Column("rows", "integer", "Rows of the answer"),
    ),
    key=("corp_code", "bsns_year", "reprt_code", "endpoint", "rcept_no"),
    session_date="period_end",
    rules=(_COMPANY,),
    replaces="nothing",
    is_published=False,
)

REPORT_ITEMS = Table(
    schema="filings",
    name="dart_report_items",
    comment="Items of periodic reports as given, row by row, of every report that they were restated in",
    columns=(
        Column("rcept_no", "text", "Receipt number of the report"),
        Column("endpoint", "text", "Endpoint of the item, by its official name"),
        Column(
            "number", "integer", "Place in the answer, from 1; rows without a name of their own go on the one before"
        ),
        *_SET,
        Column("stlm_dt", "text", "Day of settlement, as given", nullable=True),
        Column(
            "item_group", "text", "Title of the group that the row stands in, where the item has groups", nullable=True
        ),
        Column("item_values", "jsonb", "Fields of the item by their official names, as given"),
    ),
    key=("rcept_no", "endpoint", "number"),
    session_date="period_end",
    rules=(_COMPANY,),
    replaces="nothing",
)
