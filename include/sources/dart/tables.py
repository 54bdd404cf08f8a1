"""DART's tables, declared once."""

from __future__ import annotations

from include.contract import Column, Rule, Table

DISCLOSURES = Table(
    schema="dartbrief",
    name="disclosures",
    comment="Filings of Korean companies as DART's list shows them, corrections and withdrawn ones too",
    columns=(
        Column("rcept_no", "text", "Receipt number: fourteen digits; not in order of time within a day"),
        Column("corp_code", "text", "Company as DART numbers it: eight digits"),
        Column("corp_name", "text", "Company's name; of a listed one its short name"),
        Column("stock_code", "text", "Stock code of six characters; null where it has none", nullable=True),
        Column("corp_type", "text", "Market as the list says it now: Y KOSPI, K KOSDAQ, N KONEX, E other"),
        Column("report_name", "text", "Title as given, with its marks and period"),
        Column("submitter", "text", "Who filed it; often not the company itself"),
        Column("rcept_dt", "date", "Day of receipt in Seoul; what comes after 18:00 may have the next one"),
        Column("remark", "text", "Letters as given: 유 코 채 넥 공 연, 정 was corrected later, 철 was withdrawn"),
        Column("base_title", "text", "Title without marks and period: what a correction and its original share"),
        Column("report_period", "text", "Period that the title names, as YYYY.MM", nullable=True),
        Column("is_correction", "boolean", "Whether its title says that it takes the place of an earlier filing"),
    ),
    key=("rcept_no",),
    session_date="rcept_dt",
    rules=(
        Rule("receipt number is not blank", "not_blank", ("rcept_no",)),
        Rule("company is not blank", "not_blank", ("corp_code",)),
        Rule("title is not blank", "not_blank", ("report_name",)),
    ),
    # What was filed was filed: a list that no longer shows it takes nothing from us.
    replaces="nothing",
    kept=(Column("created_at", "timestamptz", "When the request was sent whose answer first showed it"),),
)

CORPS = Table(
    schema="filings",
    name="dart_corps",
    comment="Every company that DART numbers, listed or not, as its list shows them now",
    columns=(
        Column("corp_code", "text", "Company as DART numbers it: eight digits"),
        Column("corp_name", "text", "Name; several companies may have the same"),
        Column("corp_eng_name", "text", "Name in English as given", nullable=True),
        Column("stock_code", "text", "Stock code; delisted ones keep it, null where it never had one", nullable=True),
        Column("modify_date", "date", "Day on which DART last changed these data"),
    ),
    key=("corp_code",),
    session_date=None,
    rules=(
        Rule("company is not blank", "not_blank", ("corp_code",)),
        Rule("name is not blank", "not_blank", ("corp_name",)),
    ),
)
