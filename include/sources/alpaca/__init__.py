"""Alpaca: US stock bars, raw and adjusted, with the list of assets and the calendar of trading days."""

from __future__ import annotations

from include.contract import Source
from include.sources.alpaca.streams import ASSETS_STREAM, CALENDAR_STREAM, DAILY_STREAM, MINUTE_STREAM

_ABOUT = (
    "All listed stocks are asked for once `market.alpaca_assets` holds the list, before that some well-known "
    "ones. A chunk of a backfill is a month of a group of symbols. By symbol, `market.alpaca_symbol_months` says "
    "how far each one is collected, and `market.alpaca_pending_symbols` what is still to be asked for, with its "
    "last error. Daily bars are raw and adjusted for splits, by the column `adjustment`; they are provisional "
    "until they were read after 20:15 New York, as `market.alpaca_daily_bars_judged` says."
)

SOURCE = Source(
    name="alpaca",
    title="Alpaca",
    connection="alpaca",
    hosts=("https://data.alpaca.markets", "https://paper-api.alpaca.markets"),
    streams=(ASSETS_STREAM, CALENDAR_STREAM, DAILY_STREAM, MINUTE_STREAM),
    needs_key=True,
    key_header="APCA-API-SECRET-KEY",
    login_header="APCA-API-KEY-ID",
    about=_ABOUT,
    terms="Alpaca's market data agreement forbids redistribution; published privately.",
)
