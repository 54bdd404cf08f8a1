"""Alpaca's tables, declared once."""

from __future__ import annotations

from include.contract import Column, Rule, Table

# Prices and volumes are numeric without a scale: what the answer gives is kept to its last digit.
_KEY = ("symbol", "timeframe", "ts", "feed", "adjustment")

_BAR = (
    Column("session_date", "date", "Day of the bar's start, New York"),
    Column("symbol", "text", "Symbol as Alpaca spells it: class shares with a dot, e.g. BRK.B"),
    Column("timeframe", "text", "Length of the bar as Alpaca names it, e.g. 1Day or 1Min"),
    Column("ts", "timestamptz", "Start of the bar; for days and longer midnight in New York"),
    Column("feed", "text", "Feed that the bar was made from, e.g. sip or iex; never mixed"),
    Column("adjustment", "text", "raw, or how prices and volumes are adjusted, e.g. split"),
    Column("asof", "text", "Date by which Alpaca mapped the symbol to a company; - where symbols are literal"),
    Column("open", "numeric", "First price"),
    Column("high", "numeric", "Highest price"),
    Column("low", "numeric", "Lowest price"),
    Column("close", "numeric", "Last price"),
    Column("volume", "numeric", "Shares traded"),
    Column("trades", "bigint", "Number of trades; null where it was not given", nullable=True),
    Column("vwap", "numeric", "Volume-weighted average price; 0 where nothing was traded", nullable=True),
)

_RULES = (
    Rule("symbol is not blank", "not_blank", ("symbol",)),
    Rule("volume is not negative", "not_negative", ("volume",)),
    Rule("low is not negative", "not_negative", ("low",)),
    Rule("vwap is not negative", "not_negative", ("vwap",)),
    Rule("low is at most open", "at_most", ("low", "open")),
    Rule("low is at most close", "at_most", ("low", "close")),
    Rule("open is at most high", "at_most", ("open", "high")),
    Rule("close is at most high", "at_most", ("close", "high")),
)

# Nothing is withdrawn from the bars: a symbol without a bar was not traded, is not listed or has another name now,
# and none of these says that an earlier bar was wrong.
DAILY_BARS = Table(
    schema="market",
    name="alpaca_daily_bars",
    comment="Price bars of a day or longer, raw and adjusted, by symbol and feed (Alpaca); a part for each month",
    columns=_BAR,
    key=_KEY,
    session_date="session_date",
    rules=_RULES,
    replaces="nothing",
    months="apart",
)

INTRADAY_BARS = Table(
    schema="market",
    name="alpaca_intraday_bars",
    comment="Price bars shorter than a day, extended hours too, by symbol and feed (Alpaca); a part for each month",
    columns=_BAR,
    key=_KEY,
    session_date="session_date",
    rules=_RULES,
    replaces="nothing",
    months="apart",
)


def _asked_none(name: str, what: str) -> Table:
    return Table(
        schema="market",
        name=name,
        comment=f"Symbols that were asked for and had no {what} in a whole period: not traded, not listed, or renamed",
        columns=(
            Column("session_date", "date", "First day of the period that was asked for"),
            Column("symbol", "text", "Symbol that was asked for"),
            Column("timeframe", "text", "Length of the bars that were asked for"),
            Column("feed", "text", "Feed that was asked for"),
            Column("adjustment", "text", "Adjustment that was asked for"),
            Column("asof", "text", "Date by which Alpaca mapped the symbol; - where symbols are literal"),
        ),
        key=("session_date", "symbol", "timeframe", "feed", "adjustment"),
        session_date="session_date",
        replaces="unit",
        months="locked",
        is_published=False,
    )


DAILY_ASKED_NONE = _asked_none("alpaca_daily_asked_none", "bar of a day or longer")
INTRADAY_ASKED_NONE = _asked_none("alpaca_intraday_asked_none", "bar shorter than a day")

ASSETS = Table(
    schema="market",
    name="alpaca_assets",
    comment="US stocks that Alpaca knows, as listed last; earlier listings are in the history (Alpaca)",
    columns=(
        Column("asset_id", "text", "Alpaca's number of the asset; it stays when the symbol changes"),
        Column("symbol", "text", "Symbol now; another asset may have had it before"),
        Column("name", "text", "Name, null where there is none", nullable=True),
        Column("asset_class", "text", "Class, e.g. us_equity"),
        Column("exchange", "text", "Exchange where it is listed, OTC where it is on none"),
        Column("status", "text", "active, or inactive where it is not listed any more"),
        Column("is_collected", "boolean", "Whether bars are asked for by default: active and listed on an exchange"),
        Column("is_tradable", "boolean", "Whether Alpaca trades it"),
        Column("is_marginable", "boolean", "Whether it may be bought on margin"),
        Column("is_shortable", "boolean", "Whether it may be sold short"),
        Column("is_easy_to_borrow", "boolean", "Whether it is easy to borrow"),
        Column("is_fractionable", "boolean", "Whether parts of a share can be traded"),
        Column("borrow_status", "text", "How hard it is to borrow, null where it is not said", nullable=True),
        Column("maintenance_margin", "numeric", "Maintenance margin in per cent", nullable=True),
        Column("margin_long", "numeric", "Margin for buying in per cent", nullable=True),
        Column("margin_short", "numeric", "Margin for selling short in per cent", nullable=True),
        Column("attributes", "jsonb", "Further properties as Alpaca names them, in name order"),
    ),
    key=("asset_id",),
    session_date=None,
    rules=(Rule("symbol is not blank", "not_blank", ("symbol",)),),
    # A list that lacks an asset takes nothing away: who is listed say the items of the listing.
    replaces="nothing",
)

LISTED_ASSETS = Table(
    schema="market",
    name="alpaca_listed_assets",
    comment="Assets without those that have left the list",
    columns=(Column("symbol", "text", "Symbol now"), Column("is_collected", "boolean", "Whether bars are asked for")),
    key=("symbol",),
    session_date=None,
    is_published=False,
)


CALENDAR = Table(
    schema="market",
    name="alpaca_calendar",
    comment="Trading days of the US stock market with their hours (Alpaca)",
    columns=(
        Column("session_date", "date", "Trading day, New York"),
        Column("opens_at", "timestamptz", "Opening of the regular session"),
        Column("closes_at", "timestamptz", "Its close; earlier on short days"),
        Column("extended_opens_at", "timestamptz", "Opening of the extended session", nullable=True),
        Column("extended_closes_at", "timestamptz", "Its close", nullable=True),
        Column("settles_on", "date", "Day on which trades of the day settle", nullable=True),
    ),
    key=("session_date",),
    session_date="session_date",
    rules=(
        Rule("it opens before it closes", "at_most", ("opens_at", "closes_at")),
        Rule("the extended session opens first", "at_most", ("extended_opens_at", "opens_at")),
        Rule("the extended session closes last", "at_most", ("closes_at", "extended_closes_at")),
    ),
    replaces="unit",
)
