"""EDGAR in bulk: all companies' facts, from the file that the SEC builds anew each night."""

from __future__ import annotations

from include.contract import Source
from include.sources.edgar.streams import COMPANYFACTS_STREAM, DATA, FACTS_STREAM, WWW

SOURCE = Source(
    name="edgar",
    title="EDGAR in bulk",
    connection="sec",
    hosts=(WWW, DATA),
    streams=(COMPANYFACTS_STREAM, FACTS_STREAM),
    needs_key=False,
    needs_contact=True,
    terms="SEC filings are public records; published privately.",
    about="Each company's facts are a file, `edgar/finance/{last two digits of the CIK}/{CIK, ten digits}.parquet` "
    "under DAYBOOK_FILES_ROOT, and `collect.made_files` says of which bytes it is made. A company that the SEC no "
    "longer shows has a file without rows. The bulk file is a snapshot: its past cannot be asked for.",
)
