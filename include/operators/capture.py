"""The task that is there when it strikes nine in Seoul, and takes the snapshot.

Promises: it waits resident, by the database's clock, simulated or not, and takes the snapshot the moment that the gate
allows; started late it takes what the gate still allows and says how late that was; killed, it leaves the snapshot to
the first writer, or to upkeep. The verdict is sent to Slack right after. Never: no upstream is asked, and no verdict is
made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from include.operators.endings import Ended
from include.operators.tick import Tick, Turn

# It starts two minutes early; whoever starts it much earlier than that would only hold a worker.
EARLIEST = timedelta(minutes=10)


class CaptureOperator(Tick):
    """Captures today's snapshot."""

    def work(self, context: Mapping[str, Any], turn: Turn) -> Ended:
        """Wait for nine and capture."""
        from include.engine import snapshot
        from include.operators import resolve, telling

        url = resolve.warehouse_url()
        instant, left = snapshot.next_cutoff(url)
        if left > EARLIEST:
            return Ended(
                "green",
                f"TOO EARLY – the snapshot of {instant:%Y-%m-%d} is taken at 09:00 in Seoul, in {left}. "
                "The schedule starts this DAG at 08:58.",
            )
        who = f"sla_capture of {context['ti'].run_id}"
        taken = snapshot.capture_at(url, instant, who, may_go_on=lambda: not turn.stop())
        found = taken.snapshot
        data = {
            "day": found.day.isoformat(),
            "status": found.status,
            "late": found.late,
            "offset_ms": found.offset / timedelta(milliseconds=1) if found.offset is not None else None,
            "by_this_call": taken.by_this_call,
        }
        if not taken.is_stopped:
            telling.send(url, who, turn.stop, seconds=20)
        return Ended("green", taken.words, data)
