"""FRED and ALFRED: economic series of the Federal Reserve Bank of St. Louis, with every revision."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from include.contract import Source
from include.sources.fred.answers import CONFIGURATION
from include.sources.fred.streams import HOST, Catalogue, observations

_SERIES = re.compile(r"[A-Z0-9_]{1,50}")
_ABOUT = (
    "A session is a day of publication in St. Louis. Polls read what is published from their first day on; the "
    "past of a series is asked for once, with `mode=backfill` from 1921-01-01 on, five years in one request. "
    "`market.fred_coverage` says of which series it is whole; of those `market.fred_as_of('2020-06-30')` tells "
    "how they stood on a day, and `market.fred_observations` every value with the days on which it held. "
    "`market.fred_overdue` names series of which nothing new comes for longer than is usual."
)
_GROUP = re.compile(r"[a-z][a-z0-9_]{0,29}")


class CatalogueUnfit(Exception):
    """The list of series cannot be used; the text says where and why."""


def source(groups: Any) -> Source:
    """Return the source that collects some series.

    Args:
        groups: names of groups, each with its list of series, as read from the configuration.

    Raises:
        CatalogueUnfit: it is no such mapping, or a name in it cannot be one.
    """
    return Source(
        name="fred",
        title="FRED",
        connection="fred",
        hosts=(HOST,),
        streams=(observations(catalogue(groups)),),
        needs_key=True,
        terms="FRED's terms: series of other owners keep their own; published privately.",
        key_param="api_key",
        about=_ABOUT,
    )


def catalogue(groups: Any) -> Catalogue:
    """Return the catalogue that a configuration describes.

    Raises:
        CatalogueUnfit: see `source`.
    """
    if not isinstance(groups, Mapping) or not groups:
        raise CatalogueUnfit(
            f"{CONFIGURATION} must name groups, each with a list of series, e.g. growth: [GDP, GDPC1]."
        )
    found: dict[str, tuple[str, ...]] = {}
    for group, series in groups.items():
        if not isinstance(group, str) or not _GROUP.fullmatch(group):
            raise CatalogueUnfit(
                f"{CONFIGURATION}: {group!r} cannot be a group's name; write small letters and digits."
            )
        if not isinstance(series, Sequence) or isinstance(series, str) or not series:
            raise CatalogueUnfit(f"{CONFIGURATION}: {group} must be a list of series, e.g. [GDP, GDPC1].")
        # YAML reads some names as something else, e.g. a bare NO or 1E5.
        wrong = [each for each in series if not isinstance(each, str) or not _SERIES.fullmatch(each)]
        if wrong:
            raise CatalogueUnfit(
                f"{CONFIGURATION}: {wrong[0]!r} in {group} cannot be a series; write its id in capitals, in quotes "
                "where it could be read as a number or a word."
            )
        found[group] = tuple(dict.fromkeys(series))
    return Catalogue(found)
