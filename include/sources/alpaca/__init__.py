"""Alpaca: US stock bars, raw and adjusted, with the list of assets and the calendar of trading days."""

from __future__ import annotations

from include.contract import Source
from include.sources.alpaca.streams import ASSETS_STREAM, CALENDAR_STREAM, DAILY_STREAM, MINUTE_STREAM

SOURCE = Source(
    name="alpaca",
    title="Alpaca",
    connection="alpaca",
    hosts=("https://data.alpaca.markets", "https://paper-api.alpaca.markets"),
    streams=(ASSETS_STREAM, CALENDAR_STREAM, DAILY_STREAM, MINUTE_STREAM),
    needs_key=True,
    key_header="APCA-API-SECRET-KEY",
    login_header="APCA-API-KEY-ID",
    terms="Alpaca's market data agreement forbids redistribution; published privately.",
)
