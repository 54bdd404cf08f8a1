"""Housekeeping: seen items that outlived their cycle, delivered alerts that are old, and drafts of killed workers.

Promises: at most a thousand seen items at once, only of cycles that are over; how many are left is measured, and one is
a warning, a thousand are critical; what a killed worker left behind goes after a day (see `drafts`). Never: anything
else is deleted: cycles, fetches, raw objects, snapshots and incidents are kept without end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from include.engine import delta, drafts, incidents
from include.engine.db import connect, query, transaction

METRIC = "seen_rows_older_than_48h"
KEY = f"housekeeping/{METRIC}"


@dataclass(frozen=True)
class Cleaned:
    """What was deleted, and how many seen items older than 48 hours are left of cycles that are over."""

    seen_rows: int
    alerts: int
    left: int


def clean(url: str, keep_alerts: timedelta | None, most_alerts: int) -> Cleaned:
    """Delete what may be, then measure.

    Args:
        url: libpq address of the warehouse.
        keep_alerts: how long delivered alerts are kept; for ever where None.
        most_alerts: how many of them are deleted at once.
    """
    found = measure(url)
    seen_rows, alerts = delta.clean(url), 0
    if keep_alerts is not None:
        with transaction(url, application="daybook maintenance") as connection:
            alerts = connection.execute(query("alerts.clean"), {"keep": keep_alerts, "limit": most_alerts}).rowcount
    left = measure(url) if seen_rows else found
    return Cleaned(seen_rows, alerts, left)


def sweep(url: str, roots: drafts.Roots) -> drafts.Swept:
    """Remove what killed workers left in the stores, and on this machine, and nobody will go on with.

    Args:
        url: libpq address of the warehouse, which says whose cycles are not over.
        roots: where the stores are.
    """

    def going_on() -> list[str]:
        connection = connect(url, application="daybook maintenance", statement_timeout=30, autocommit=True)
        try:
            return [row["stream"] for row in connection.execute(query("housekeeping.going_on")).fetchall()]
        finally:
            connection.close()

    return drafts.sweep(roots, going_on)


def measure(url: str) -> int:
    """Count the seen items that outlived their cycle, and open or close the incident of them."""
    found = delta.orphans(url)
    connection = connect(url, application="daybook maintenance", statement_timeout=15, autocommit=True)
    try:
        if found.count:
            incidents.open(
                connection,
                key=KEY,
                severity="critical" if found.severity == "critical" else "warning",
                text=f"{METRIC} = {found.count}: a cycle that ended left what it had seen behind, which should not "
                "happen. Nothing is wrong with the data; maintenance deletes a thousand of them a day. Report it.",
            )
        else:
            incidents.close(connection, [KEY], f"{METRIC} = 0.")
    finally:
        connection.close()
    return found.count
