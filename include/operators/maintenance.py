"""Housekeeping: the little that is ever deleted.

Promises: seen items that outlived their cycle by two days (a thousand at most), Airflow's own runs and delivered alerts
that are older than the settings say, and drafts that killed workers left a day ago; what is left of the first is told.
Never: anything else is deleted, and no upstream is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include import settings
from include.operators.endings import Ended
from include.operators.tick import Tick, Turn

MOST_ALERTS = 10_000
MOST_RUNS = 500


class MaintenanceOperator(Tick):
    """Cleans once."""

    def work(self, context: Mapping[str, Any], turn: Turn) -> Ended:
        """Clean, measure what is left, and say both."""
        from include.engine import drafts, housekeeping, lookout
        from include.operators import airflow_runs, resolve

        url, kept = resolve.warehouse_url(), settings.load()
        cleaned = housekeeping.clean(url, kept.keep_alerts, MOST_ALERTS)
        runs, trouble = 0, ""
        if kept.keep_runs is not None:
            runs, trouble = airflow_runs.clean(kept, MOST_RUNS, turn.stop)
        roots = drafts.Roots(kept.raw_root, kept.files_root, kept.outbox_root, kept.cache_root)
        swept = housekeeping.sweep(url, roots)
        parts = [f"{cleaned.seen_rows} seen rows, {cleaned.alerts} alerts and {runs} runs of Airflow deleted"]
        parts.append(f"seen_rows_older_than_48h = {cleaned.left}")
        if swept.removed:
            parts.append(f"{swept.removed} drafts of killed workers removed ({swept.size / 1e6:,.1f} MB)")
        if swept.trouble:
            parts.append(f"not all drafts could be removed ({swept.trouble})")
        if trouble:
            parts.append(f"Airflow's runs could not all be cleaned ({trouble}); the next run goes on")
        word = "CLEANED" if cleaned.seen_rows or cleaned.alerts or runs or swept.removed else "NOTHING TO DO"
        data = {
            "seen_rows": cleaned.seen_rows,
            "seen_rows_older_than_48h": cleaned.left,
            "alerts": cleaned.alerts,
            "runs": runs,
            "drafts": swept.removed,
        }
        lookout.show_life(url, lookout.MAINTENANCE)
        return Ended("green", f"{word} – {'; '.join(parts)}.", data)
