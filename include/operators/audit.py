"""The morning audit: the health of every pipeline, before the day is judged.

Promises: it looks at what the lookout looks at and at what only matters once a day (publication, alerts that wait,
seen rows left behind, commits, work that never came), and says of every stream how it stands; what is wrong becomes an
incident and, where the connection `github` exists, an issue; what is well again ends both. One that a newer audit
replaces ends skipped. Never: it is red because a pipeline is ill, or GitHub is away, and nothing is repaired here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from include.contract import Source
from include.operators import declared
from include.operators.endings import Ended
from include.operators.prebuild import PREBUILD, SYNC
from include.operators.tick import Tick, Turn

# How long a change may wait to be published, a message for Slack and an issue for GitHub, before the audit minds.
PUBLISH_GRACE, SLACK_GRACE, GITHUB_GRACE = timedelta(hours=6), timedelta(hours=1), timedelta(hours=6)


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
        from include.outputs import ledger, publisher, releases

        url, has_github = resolve.warehouse_url(), resolve.github_is_there()
        streams = [stream for name in self.sources for stream in declared.source(name).streams]
        fed = releases.feeding([table for stream in streams for table in stream.tables])
        behind = upkeep.publication_behind(url, fed, publisher.LEASE, PUBLISH_GRACE, patient=False)
        limits = audit.Limits(SLACK_GRACE, GITHUB_GRACE, ledger.COMMITS, ledger.REQUESTS, PUBLISH_GRACE)
        made = {table.qualified for stream in streams if stream.job_name == SYNC for table in stream.tables}
        scans = [
            audit.Scan(each.name, [f"{table}:company" for table in each.tables if table in made], PREBUILD)
            for each in releases.RELEASES
            if each.cut == "scan" and each.is_on and made & set(each.tables)
        ]
        try:
            standing = audit.audit(url, streams, behind, limits, turn.owner, has_github=has_github, scans=scans)
        except audit.Replaced as newer:
            return Ended("skipped", f"REPLACED – {newer}; what it had found is kept.")
        for line in standing:
            self.log.info(line)
        telling.send(url, turn.owner, turn.stop)
        said = telling.send_issues(url, turn.owner, turn.stop)
        still = incidents.listed(url)
        data = {"streams": len(streams), "open": len(still), "keys": [row["incident_key"] for row in still[:50]]}
        more = f" {said[:1].upper()}{said[1:]}." if said else ""
        if not still:
            return Ended("green", f"ALL WELL – {len(streams)} streams, no incident is open.{more}", data)
        worst = "; ".join(f"{row['severity']} {row['incident_key']}" for row in still[:10])
        return Ended("green", f"{len(still)} OPEN – {worst}. The log says more of each.{more}", data)
