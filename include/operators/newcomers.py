"""The first task of a run that takes in newcomers: companies that are listed and of which a stream holds no past.

Promises: who is new follows from the listing and from what is held alone, so that a run that died, or took in only some
of them, is gone on with by the next one; a run takes in so many at most. Never: who is held is asked about again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.contract import Mode
from include.operators import declared
from include.operators.check import CheckRequestOperator, job_of, start
from include.operators.request import Form


class NewcomersOperator(CheckRequestOperator):
    """Plans the past of some newcomers as a backfill, and returns the lanes that work it: none where nobody is new."""

    def __init__(self, *, source: str, stream: str, limit: int, **kwargs: Any) -> None:
        super().__init__(source=source, streams=(stream,), **kwargs)
        self.limit = limit

    def _check(self, context: Mapping[str, Any]) -> list[int]:
        from include.engine import newcomers
        from include.operators import resolve

        stream = declared.stream(self.streams[0])
        url = resolve.warehouse_url()
        resolve.credentials(declared.source(self.source))
        found = newcomers.of_stream(url, stream.name, self.limit)
        form = Form(Mode.BACKFILL, (stream,), keys=found.keys)
        if not found.keys:
            words = f"NOTHING TO DO – {stream.name} holds the past of everybody who is listed."
            self._tell(context, form, None, words, is_over=True)
            return []
        job = job_of(url, form, context)
        assert job is not None
        words, lanes, is_over = start(url, form, job)
        left = f" {found.left:,} more are for the next runs." if found.left else ""
        self._tell(context, form, job, f"{words}. {len(found.keys):,} newcomers.{left}", is_over=is_over)
        return lanes
