"""KIND: the companies listed in Korea, from the exchange's disclosure portal."""

from __future__ import annotations

from include.contract import Source
from include.sources.kind.streams import COMPANIES_STREAM, HOST

SOURCE = Source(
    name="kind",
    title="KIND",
    connection="kind",
    hosts=(HOST,),
    streams=(COMPANIES_STREAM,),
    needs_key=False,
    terms="KRX forbids redistribution of its data; published privately.",
    # The page is made for browsers; this says honestly who asks, in the form that it expects.
    user_agent="Mozilla/5.0 (compatible; Daybook; open-source market data collector)",
)
