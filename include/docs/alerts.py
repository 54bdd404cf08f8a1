"""The catalogue of alerts, from the kinds that are declared.

Promises: every kind, with its page of what to do. Never: anything else is read.
"""

from __future__ import annotations

from include.docs.text import page, table
from include.engine.kinds import KINDS, Kind


def catalogue() -> str:
    """Return the page."""
    lasting = [(_link(kind), kind.severity, kind.opened, kind.ended) for kind in KINDS if kind.lasts]
    told = [(_link(kind), kind.severity, kind.opened) for kind in KINDS if not kind.lasts]
    return page(
        "Alerts",
        [
            "An incident lasts: it is told when it opens, when it gets worse, once more after a day, and when it is "
            "over. `./run cli incidents` shows those that are open, each with the page of what to do.",
        ],
        ["## Incidents", "", *table(("key", "severity", "opened by", "ended by"), lasting)],
        ["## Told once", "", *table(("key", "severity", "put by"), told)],
    )


def _link(kind: Kind) -> str:
    return f"[`{kind.name}/{kind.what}`](runbooks/alerts/{kind.name}.md)"
