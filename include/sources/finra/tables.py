"""FINRA's tables, declared once."""

from __future__ import annotations

from include.contract import Column, Rule, Table

SHORT_VOLUME = Table(
    schema="market",
    name="finra_short_volume",
    comment="Short sale volume reported off exchange, by trade date, facility file and symbol (FINRA)",
    columns=(
        Column("session_date", "date", "Trade date, New York"),
        Column(
            "facility",
            "text",
            "File that says so: CNMS (consolidated NMS) or one facility; CNMS is the sum of FNSQ, FNQC, FNYX and FNRA",
        ),
        Column("symbol", "text", "Symbol as FINRA spells it; case is significant"),
        Column("short_volume", "numeric", "Shares sold short, short exempt included", precision=(20, 6)),
        Column(
            "short_exempt_volume",
            "numeric",
            "Of these, short exempt; null before 2011-02-28, when the file had no such column",
            nullable=True,
            precision=(20, 6),
        ),
        Column(
            "total_volume",
            "numeric",
            "Shares traded, short and long, as reported to the facility",
            precision=(20, 6),
        ),
        Column("market", "text", "Facility codes as given, e.g. B,Q,N"),
    ),
    key=("session_date", "facility", "symbol"),
    session_date="session_date",
    rules=(
        Rule("trade date is the file's date", "in_unit", ("session_date",)),
        Rule("symbol is not blank", "not_blank", ("symbol",)),
        Rule("short volume is not negative", "not_negative", ("short_volume",)),
        Rule("short exempt volume is not negative", "not_negative", ("short_exempt_volume",)),
        Rule("short volume is at most total volume", "at_most", ("short_volume", "total_volume")),
        Rule("short exempt volume is at most short volume", "at_most", ("short_exempt_volume", "short_volume")),
    ),
    replaces="unit",
)
