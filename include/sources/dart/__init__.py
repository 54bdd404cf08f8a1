"""DART: what Korean companies file with the Financial Supervisory Service, as its OpenDART interface gives it."""

from __future__ import annotations

from include.contract import Source
from include.sources.dart import docs, finance, report, streams
from include.sources.dart.answers import HOST
from include.sources.dart.bodies import readings
from include.sources.dart.sync import CATEGORIES, MOST_LOOKBACK, Choice

__all__ = ["CATEGORIES", "MOST_LOOKBACK", "Choice", "readings", "source"]

# Category of the sync → its stream, in the order in which they are shown.
_SYNC = {"finance": finance.stream, "report": report.stream, "docs": docs.stream}


def source(*, minutes: int = 5, is_on: bool = True, sync: Choice | None = None) -> Source:
    """Return the source as an installation runs it.

    Args:
        minutes: how often the list of disclosures is looked at; a divisor of 60.
        is_on: whether the list is looked at by itself, so that 09:00 expects it.
        sync: which categories of reports are kept, and how far back they are looked for.
    """
    choice = sync or Choice()
    return Source(
        name="dart",
        title="DART",
        connection="dart",
        hosts=(HOST,),
        streams=(
            streams.disclosures(minutes, is_on=is_on),
            streams.corp_codes(),
            *(make(choice) for name, make in _SYNC.items() if name in choice.categories),
        ),
        needs_key=True,
        key_param="crtfc_key",
        several_keys=True,
        terms="OpenDART's terms of use; published privately.",
    )
