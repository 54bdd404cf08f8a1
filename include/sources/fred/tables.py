"""FRED's tables, declared once: what was published when, and what each series is.

Both hold things that happened on a day in St. Louis and never change: a value that became the published one, a
description that came into force. Until when they held follows from the next row; the views of the migration say it.
"""

from __future__ import annotations

from datetime import date

from include.contract import Column, Rule, Table

# FRED's own first day, for values of series without vintages: nobody knows since when they were the published ones.
UNKNOWN_DAY = date(1776, 7, 4)

# Digits that a number is kept with, and how many of them stand behind the point; the text is kept whatever they are.
DIGITS, DECIMALS = 38, 15

VINTAGES = Table(
    schema="market",
    name="fred_vintages",
    comment="Values of economic series, each from the day in St. Louis on which it became the published one (FRED)",
    columns=(
        Column("series_id", "text", "Series as FRED names it"),
        Column("observation_date", "date", "First day of the period that it is for; of a week the day that FRED names"),
        Column(
            "realtime_start",
            "date",
            "Day in St. Louis at whose end this was the published value; 1776-07-04 where FRED keeps no vintages",
        ),
        Column("value_text", "text", "Value as given, with its digits; '.' is published as missing", nullable=True),
        Column(
            "value",
            "numeric",
            "The same as a number; null where it is missing or withdrawn, or has more digits than fit",
            nullable=True,
            precision=(DIGITS, DECIMALS),
        ),
        Column("is_withdrawn", "boolean", "From this day on the observation was not published any more"),
    ),
    key=("series_id", "observation_date", "realtime_start"),
    session_date="realtime_start",
    rules=(Rule("series is not blank", "not_blank", ("series_id",)),),
    # An upstream that shortens a series takes nothing from us.
    replaces="nothing",
)

SERIES = Table(
    schema="market",
    name="fred_series",
    comment="What each series is, from the day on which the description came into force (FRED)",
    columns=(
        Column("series_id", "text", "Series as FRED names it"),
        Column(
            "realtime_start",
            "date",
            "Day in St. Louis from which the description held; the first of a year where it held before",
        ),
        Column("is_carried", "boolean", "It held before that day already: realtime_start is no change"),
        Column("title", "text", "Title; dead series end with (DISCONTINUED)"),
        Column("frequency", "text", "Frequency in words, e.g. Weekly, Ending Friday"),
        Column("frequency_short", "text", "D, W, BW, M, Q, SA, A or NA"),
        Column("units", "text", "Unit of the values, e.g. Billions of Chained 2017 Dollars"),
        Column("units_short", "text", "The same, short"),
        Column("seasonal_adjustment", "text", "Seasonal adjustment in words"),
        Column("seasonal_adjustment_short", "text", "SA, NSA, SAAR …"),
        Column("notes", "text", "Notes as given, with their line breaks", nullable=True),
        Column("has_observations", "boolean", "False where FRED does not give the values through its interface"),
    ),
    key=("series_id", "realtime_start"),
    session_date="realtime_start",
    rules=(
        Rule("series is not blank", "not_blank", ("series_id",)),
        Rule("title is not blank", "not_blank", ("title",)),
    ),
    replaces="nothing",
)
