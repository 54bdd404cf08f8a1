"""What Prometheus is given: a number for each thing that an operator watches, read from rows.

Promises: one picture of one instant, in Prometheus' text format; every name stands in `METRICS` with what it means.
Never: an address, a key or a secret is a label (of a key, its fingerprint), and no number is kept between two calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal

from fastapi import APIRouter, Request
from starlette.responses import Response

from include.engine.db import Row, query
from include.ops.api import access
from include.ops.api.warehouse import Warehouse
from include.version import VERSION

router = APIRouter(tags=["metrics"])

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Every metric is a gauge, as each is read anew from rows; none ever counts in this process.
METRICS = {
    "daybook_build_info": "Always 1: which release answers, on which schema",
    "daybook_windows": "Windows of today in Seoul, by stream and state",
    "daybook_lag_days": "Days between today in Seoul and the session that a stream is complete to",
    "daybook_success_age_seconds": "Time since a stream's last window that ended well",
    "daybook_lease_losses": "Leases whose holder vanished (expired) and late writes that were refused, in 24 hours",
    "daybook_host_wait_seconds": "Time until an upstream may be asked again",
    "daybook_host_blocked": "1 where an upstream keeps us out",
    "daybook_quota_left": "Requests that a key has left today, by its fingerprint",
    "daybook_outbox_age_seconds": "Age of the oldest file that waits to be published, and of the oldest unsent alert",
    "daybook_incidents": "What is wrong now and lasts, by severity",
    "daybook_quarantined": "Entries that wait in quarantine",
}


def render(rows: Iterable[Row]) -> str:
    """Return rows of name, labels and value as text; metrics without a row show their help all the same."""
    lines: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        labels = ",".join(f'{name}="{_escaped(str(value))}"' for name, value in sorted(row["labels"].items()))
        value = Decimal(row["value"]).normalize()
        lines[row["name"]].append(f"{row['name']}{{{labels}}} {value:f}")
    text = []
    for name, meaning in METRICS.items():
        text += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", *lines.pop(name, [])]
    assert not lines, f"metrics without a meaning: {sorted(lines)}"
    return "\n".join(text) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@router.get("/metrics", response_class=Response)
@access.reads
def read_metrics(request: Request) -> Response:
    """What is measured, as Prometheus reads it; it needs a token like every other read."""
    warehouse: Warehouse = request.app.state.warehouse
    with warehouse.reading() as (connection, now):
        rows = connection.execute(query("metrics.all"), {"now": now, "version": VERSION}).fetchall()
    return Response(render(rows), media_type=MEDIA_TYPE)
