"""ECOS: economic statistics of the Bank of Korea."""

from __future__ import annotations

from typing import Any

from include.contract import Source
from include.sources.ecos.catalogue import catalogue
from include.sources.ecos.streams import HOST, observations


def source(groups: Any) -> Source:
    """Return the source that collects some series.

    Args:
        groups: names of groups, each with its list of series, as read from the configuration.

    Raises:
        CatalogueUnfit: it is no such mapping, or a name in it cannot be one.
    """
    return Source(
        name="ecos",
        title="ECOS",
        connection="ecos",
        hosts=(HOST,),
        streams=(observations(catalogue(groups)),),
        needs_key=True,
        terms="The Bank of Korea's statistics may be used freely, those of other producers keep their own terms; "
        "published privately.",
        key_in_path=True,
        # Works without an account and gives ten rows of each answer.
        no_keys=("sample",),
    )
