"""KRX: daily prices, issues and indices of the Korean exchange, from its OpenAPI."""

from __future__ import annotations

from include.contract import Source
from include.sources.krx.services import HOST
from include.sources.krx.streams import INDICES_STREAM, ISSUES_STREAM, PRICES_STREAM

SOURCE = Source(
    name="krx",
    title="KRX",
    connection="krx",
    hosts=(HOST,),
    streams=(PRICES_STREAM, ISSUES_STREAM, INDICES_STREAM),
    needs_key=True,
    key_header="AUTH_KEY",
    terms="KRX's OpenAPI terms: no redistribution, non-commercial use, named as KRX statistics; published privately.",
)
