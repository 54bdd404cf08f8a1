"""FINRA: short sale volume by day, from the files on its CDN."""

from __future__ import annotations

from include.contract import Source
from include.sources.finra.streams import SHORT_VOLUME_STREAM

SOURCE = Source(
    name="finra",
    title="FINRA",
    connection="finra",
    hosts=("https://cdn.finra.org",),
    streams=(SHORT_VOLUME_STREAM,),
    needs_key=False,
    terms="FINRA restricts redistribution of its files; published privately.",
)
