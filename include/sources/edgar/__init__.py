"""EDGAR in bulk: all companies' facts, from the file that the SEC builds anew each night, and its quarterly sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.contract import Source
from include.sources.edgar import set_streams, tier
from include.sources.edgar.streams import COMPANYFACTS_STREAM, DATA, FACTS_STREAM, SCAN_STREAM, WWW

CONFIGURATION = "config/edgar.yaml"


class ChoiceUnfit(Exception):
    """What is wanted of EDGAR cannot be read; the text says where and what would do."""


def source(configured: Any) -> Source:
    """Return the source that collects what the configuration names.

    Args:
        configured: as read from `config/edgar.yaml`.

    Raises:
        ChoiceUnfit: it has something that nobody knows.
    """
    given = configured if isinstance(configured, Mapping) else {}
    if unknown := sorted(set(given) - {"numbers", "facts_in_postgresql"}):
        raise ChoiceUnfit(
            f"{CONFIGURATION} has {unknown[0]!r}, which nobody knows; it has numbers and facts_in_postgresql."
        )
    numbers = given.get("numbers", False)
    if not isinstance(numbers, bool):
        raise ChoiceUnfit(f"{CONFIGURATION}: numbers is {numbers!r}; it is true or false.")
    rows = tier.streams(given.get("facts_in_postgresql", tier.NONE))
    if rows is None:
        raise ChoiceUnfit(
            f"{CONFIGURATION}: facts_in_postgresql is {given['facts_in_postgresql']!r}; it is none, all, nasdaq, nyse "
            "or a list of CIKs such as [320193]."
        )
    return Source(
        name="edgar",
        title="EDGAR in bulk",
        connection="sec",
        hosts=(WWW, DATA),
        streams=(COMPANYFACTS_STREAM, FACTS_STREAM, SCAN_STREAM, *rows, *set_streams.streams(numbers=numbers)),
        needs_key=False,
        needs_contact=True,
        terms="SEC filings are public records; published privately.",
        about="Each company's facts are a file, `edgar/finance/{last two digits of the CIK}/{CIK, ten digits}.parquet` "
        "under DAYBOOK_FILES_ROOT, and `collect.made_files` says of which bytes it is made. A company that the SEC no "
        "longer shows has a file without rows. The bulk file is a snapshot: its past cannot be asked for. Statement "
        "data sets are `edgar/meta/{sub, pre or tag}/{quarter}.parquet`; `mode=backfill` of `edgar_statements` asks "
        "for those of a range, and its next window makes files.",
    )
