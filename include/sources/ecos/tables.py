"""ECOS's tables, declared once: values by period, and what each series is.

ECOS shows the newest value alone and does not say when it was published. What a value was before, and until when, is in
the history, by when we asked; the function of the migration reads both.
"""

from __future__ import annotations

from include.contract import Column, Rule, Table

# Digits that a number is kept with, and how many of them stand behind the point; the text is kept whatever they are.
DIGITS, DECIMALS = 38, 15
_NAMED = Rule("series is not blank", "not_blank", ("series_id",))

VALUES = Table(
    schema="market",
    name="ecos_values",
    comment="Values of Korean economic series by period, as shown now; what they were is in the history (ECOS)",
    columns=(
        Column("series_id", "text", "Series: statistic, cycle and item codes, e.g. 722Y001.D.0101000"),
        Column("period", "text", "Period as ECOS writes it for the cycle, e.g. 2026Q3"),
        Column("period_start", "date", "First day of the period; of the second half of a month the 16th"),
        Column("value_text", "text", "Value as given, with its digits; null where it is missing", nullable=True),
        Column(
            "value",
            "numeric",
            "The same as a number; null where it is missing",
            nullable=True,
            precision=(DIGITS, DECIMALS),
        ),
        Column(
            "unit_name", "text", "Unit of the value, e.g. 연% or 2020=100; a new base year is a new unit", nullable=True
        ),
        Column("weight", "text", "Weight as given, null where there is none", nullable=True),
    ),
    key=("series_id", "period"),
    session_date="period_start",
    rules=(_NAMED,),
    replaces="unit",
)

SERIES = Table(
    schema="market",
    name="ecos_series",
    comment="What each series is, as ECOS's list of items described it when a stretch of it was read (ECOS)",
    columns=(
        Column("series_id", "text", "Series: statistic, cycle and item codes, e.g. 722Y001.D.0101000"),
        Column("stretch", "text", "What was read with it: a year of a daily series, all of any other"),
        Column("statistic", "text", "Code of the statistic"),
        Column("statistic_name", "text", "Its name"),
        Column("cycle", "text", "A, S, Q, M, SM or D: by year, half-year, quarter, month, half-month or day"),
        Column("item_codes", "jsonb", "Item codes, one for each level"),
        Column("item_names", "jsonb", "Their names"),
        Column("unit_name", "text", "Unit of the values, null where it is not said", nullable=True),
        Column("begins", "text", "First period that ECOS has, null where it is not said", nullable=True),
    ),
    key=("series_id", "stretch"),
    session_date=None,
    rules=(_NAMED,),
    replaces="unit",
)
