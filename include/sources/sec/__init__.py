"""SEC EDGAR: what the whole American market files, from a handful of requests per tick."""

from __future__ import annotations

from typing import Any

from include.contract import Source
from include.sources.sec import docs, filing_streams, universe
from include.sources.sec.filing_plans import Choice
from include.sources.sec.shared import DATA, WWW
from include.sources.sec.streams import (
    INDEX_STREAM,
    QUARTERS_STREAM,
    SUBMISSIONS_STREAM,
    TICKERS_STREAM,
    companies_stream,
)


def source(configured: Any, members: Any) -> Source:
    """Return the source that collects what the configuration names.

    Args:
        configured: tiers and lists, as read from `config/sec.yaml`.
        members: the dated membership of the S&P 500, as read from `config/sec_sp500.yaml`.

    Raises:
        UniverseUnfit: a tier is unknown, or has nobody in it.
    """
    policy = universe.policy(configured, members)
    return Source(
        name="sec",
        title="SEC",
        connection="sec",
        hosts=(WWW, DATA),
        streams=(
            SUBMISSIONS_STREAM,
            *filing_streams.streams(Choice(policy)),
            INDEX_STREAM,
            companies_stream(policy),
            QUARTERS_STREAM,
            TICKERS_STREAM,
            docs.stream(policy),
        ),
        needs_key=False,
        needs_contact=True,
        terms="SEC filings are public records; published privately unless a release says otherwise.",
    )
