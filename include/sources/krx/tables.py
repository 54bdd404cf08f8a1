"""KRX's tables, declared once."""

from __future__ import annotations

from include.contract import Column, Rule, Table, Usual

_DAY = Column("session_date", "date", "Session, Seoul")
_MARKET = Column("market", "text", "KOSPI, KOSDAQ or KONEX, by the service that gave the row and not by its label")
_CODE = Column("code", "text", "Short code of six digits and letters, e.g. 005930 or 28513K; leading zeros matter")
_LABEL = "Market as KRX labels the row, e.g. KOSDAQ or KOSDAQ GLOBAL"
_SECTION = "Section of the market, or a class under supervision, e.g. 벤처기업부; null where KRX gives none"
_IN_UNIT = Rule("the session is the one that was asked for", "in_unit", ("session_date",))

PRICES = Table(
    schema="market",
    name="krx_prices",
    comment="Stocks by session as traded at KRX alone: prices in won, not adjusted, with volume and shares (KRX)",
    columns=(
        _DAY,
        _MARKET,
        _CODE,
        Column("name", "text", "Name on that day; companies rename"),
        Column("market_label", "text", _LABEL),
        Column("section", "text", _SECTION, nullable=True),
        Column(
            "close",
            "bigint",
            "Closing price, won; the last one where nothing was traded; null where KRX gives none",
            nullable=True,
        ),
        Column(
            "change",
            "bigint",
            "Close less the base price, won; the base price is the close before, but for splits and the like",
            nullable=True,
        ),
        Column("change_percent", "numeric", "The same in percent of the base price", nullable=True),
        Column("open", "bigint", "First price, won; null where it was given as 0", nullable=True),
        Column("high", "bigint", "Highest price, won; null where it was given as 0", nullable=True),
        Column("low", "bigint", "Lowest price, won; null where it was given as 0", nullable=True),
        Column("volume", "bigint", "Shares traded", nullable=True),
        Column("traded_value", "bigint", "Value traded, won", nullable=True),
        Column("market_cap", "bigint", "Market capitalisation, won", nullable=True),
        Column("listed_shares", "bigint", "Shares listed; new ones count from the day of their listing", nullable=True),
        Column(
            "is_untraded",
            "boolean",
            "Open, high and low were given as 0: halted, or nobody traded; KRX gives both alike",
        ),
    ),
    key=("session_date", "market", "code"),
    session_date="session_date",
    rules=(
        _IN_UNIT,
        Rule("close is not negative", "not_negative", ("close",)),
        Rule("open is not negative", "not_negative", ("open",)),
        Rule("volume is not negative", "not_negative", ("volume",)),
        Rule("traded value is not negative", "not_negative", ("traded_value",)),
        Rule("market capitalisation is not negative", "not_negative", ("market_cap",)),
        Rule("listed shares are not negative", "not_negative", ("listed_shares",)),
        Rule("low is at most high", "at_most", ("low", "high")),
        Rule("low is at most open", "at_most", ("low", "open")),
        Rule("open is at most high", "at_most", ("open", "high")),
    ),
    usual=tuple(Usual(name, 0.05) for name in ("close", "volume", "market_cap", "listed_shares")),
)

ISSUES = Table(
    schema="market",
    name="krx_issues",
    comment="Issues listed on each session, with their codes, names and classes (KRX)",
    columns=(
        _DAY,
        _MARKET,
        _CODE,
        Column("isin", "text", "ISIN; it cannot be made from the code"),
        Column("name", "text", "Full name in Korean"),
        Column("short_name", "text", "Short name in Korean, as daily trade has it", nullable=True),
        Column("english_name", "text", "Name in English", nullable=True),
        Column("listed_on", "date", "Day of the listing", nullable=True),
        Column("market_label", "text", _LABEL),
        Column("security_group", "text", "What it is: share, depositary receipt, REIT …, in Korean"),
        Column("section", "text", _SECTION, nullable=True),
        Column("share_kind", "text", "Common or preferred share, in Korean", nullable=True),
        Column("par_value_text", "text", "Par value as given; a word for shares without one"),
        Column("par_value", "numeric", "The same as a number; null where there is none", nullable=True),
        Column("listed_shares", "bigint", "Shares listed", nullable=True),
    ),
    key=("session_date", "market", "code"),
    session_date="session_date",
    rules=(_IN_UNIT, Rule("listed shares are not negative", "not_negative", ("listed_shares",))),
)

INDICES = Table(
    schema="market",
    name="krx_indices",
    comment="Indices of stocks and derivatives by session (KRX)",
    columns=(
        _DAY,
        Column("family", "text", "KOSPI, KOSDAQ, KRX or DERIVATIVES, by the service that gave the row"),
        Column("index_class", "text", "Class as KRX labels the row"),
        Column("name", "text", "Name on that day; KRX gives no code, and has renamed some"),
        Column("close", "numeric", "Closing value", nullable=True),
        Column("change", "numeric", "Close less that of the session before", nullable=True),
        Column("change_percent", "numeric", "The same in percent", nullable=True),
        Column("open", "numeric", "First value; null where none is given", nullable=True),
        Column("high", "numeric", "Highest value; null where none is given", nullable=True),
        Column("low", "numeric", "Lowest value; null where none is given", nullable=True),
        Column("volume", "bigint", "Shares traded; null for derivatives, or where none is given", nullable=True),
        Column("traded_value", "bigint", "Value traded, won; null likewise", nullable=True),
        Column("market_cap", "bigint", "Market capitalisation, won; null likewise", nullable=True),
    ),
    key=("session_date", "family", "index_class", "name"),
    session_date="session_date",
    rules=(
        _IN_UNIT,
        Rule("low is at most high", "at_most", ("low", "high")),
        Rule("volume is not negative", "not_negative", ("volume",)),
    ),
)


def _value(name: str, meaning: str) -> tuple[Column, Column]:
    return (
        Column(name, "numeric", meaning, nullable=True),
        Column(f"{name}_change", "numeric", "The same less that of the session before", nullable=True),
    )


BOND_INDICES = Table(
    schema="market",
    name="krx_bond_indices",
    comment="Indices of bonds by session (KRX)",
    columns=(
        _DAY,
        Column("name", "text", "Group of bonds on that day; KRX gives no code"),
        *_value("total_return", "Total return index"),
        *_value("net_price", "Net price index"),
        *_value("zero_reinvestment", "Index without reinvestment"),
        *_value("call_reinvestment", "Index with reinvestment at the call rate"),
        *_value("market_price", "Market price index"),
        Column("average_duration", "numeric", "Average duration, years", nullable=True),
        Column("average_convexity", "numeric", "Average convexity", nullable=True),
        Column("average_yield", "numeric", "Average yield, percent", nullable=True),
    ),
    key=("session_date", "name"),
    session_date="session_date",
    rules=(_IN_UNIT,),
)
