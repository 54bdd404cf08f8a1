"""The morning audit: the health of every pipeline, before the day is judged.

Promises: it looks at what the lookout looks at and at what only matters once a day (publication, alerts that wait,
seen rows left behind), and says of every stream how it stands; what is wrong becomes an incident, what is well again
ends one. Never: it is red because a pipeline is ill, and nothing is repaired here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from include.contract import Source
from include.operators import declared
from include.operators.endings import Ended
from include.operators.tick import Tick, Turn

# How long a change may wait to be published, and a message for Slack, before the audit minds.
PUBLISH_GRACE, SLACK_GRACE = timedelta(hours=6), timedelta(hours=1)


class AuditOperator(Tick):
    """Audits once."""

    def __init__(self, *, sources: Sequence[Source], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for source in sources:
            declared.declare(source)
        self.sources = tuple(source.name for source in sources)

    def work(self, context: Mapping[str, Any], turn: Turn) -> Ended:
        """Look at everything and say what is open."""
        from include.engine import audit, incidents, upkeep
        from include.operators import resolve, telling
        from include.outputs import publisher, releases

        url = resolve.warehouse_url()
        streams = [stream for name in self.sources for stream in declared.source(name).streams]
        fed = releases.feeding([table for stream in streams for table in stream.tables])
        behind = upkeep.publication_behind(url, fed, publisher.LEASE, PUBLISH_GRACE)
        standing = audit.audit(url, streams, behind, SLACK_GRACE)
        for line in standing:
            self.log.info(line)
        telling.send(url, turn.owner, turn.stop)
        still = incidents.listed(url)
        data = {"streams": len(standing), "open": len(still), "keys": [row["incident_key"] for row in still[:50]]}
        if not still:
            return Ended("green", f"ALL WELL – {len(standing)} streams, no incident is open.", data)
        worst = "; ".join(f"{row['severity']} {row['incident_key']}" for row in still[:10])
        return Ended("green", f"{len(still)} OPEN – {worst}. The log says more of each.", data)
