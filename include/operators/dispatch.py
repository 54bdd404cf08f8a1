"""The task that writes down what the day in Seoul is expected to bring.

Promises: header, expectations and windows are there once, however often it runs; of a source that never had a
connection nothing is expected. Never: it makes nothing of the past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from include.contract import Source
from include.operators import declared
from include.operators.endings import Ended
from include.operators.tick import Tick, Turn


class DispatchOperator(Tick):
    """Dispatches today, by the database's clock: an hour of Airflow's is not asked."""

    def __init__(self, *, sources: Sequence[Source], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for source in sources:
            declared.declare(source)
        self.sources = tuple(source.name for source in sources)

    def work(self, context: Mapping[str, Any], turn: Turn) -> Ended:
        """Dispatch, and say what is new."""
        from include.engine import dispatch
        from include.operators import resolve

        streams = [stream for name in self.sources for stream in declared.source(name).streams]
        connected = {name: resolve.is_there(declared.source(name).connection) for name in self.sources}
        done = dispatch.dispatch(
            resolve.warehouse_url(),
            streams,
            f"dispatch of {context['ti'].run_id}",
            is_connected=lambda stream: connected[stream.source],
        )
        data = {"day": done.day.isoformat(), "opened": done.opened, "expected": done.expected, "status": done.status}
        return Ended("green", done.words, data)
