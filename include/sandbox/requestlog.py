"""The request log: what was asked of every host, when, and what came of it.

Promises: a request is entered the moment it arrives, under simulated and real monotonic time, and completed
when it is answered. Never: no header, no body, no credential is kept; parameters that hold keys are masked
before they come here.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

KEPT = 200_000


@dataclass
class Entry:
    """One request. `real` is in seconds of the monotonic clock; `status` is None while it is unanswered."""

    number: int
    at: datetime
    real: float
    host: str
    kind: str
    method: str
    path: str
    query: str
    fault: str | None = None
    status: int | None = None
    sent: int = 0
    took: float | None = None


class RequestLog:
    """The requests, newest last; past `KEPT` entries the oldest are dropped, the totals stay."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: deque[Entry] = deque(maxlen=KEPT)
        self._totals: Counter[str] = Counter()
        self._number = 0

    def enter(self, at: datetime, real: float, host: str, kind: str, method: str, path: str, query: str) -> Entry:
        """Enter a request that has just arrived."""
        with self._lock:
            self._number += 1
            entry = Entry(self._number, at, real, host, kind, method, path, query)
            self._entries.append(entry)
            self._totals[host] += 1
            return entry

    def clear(self) -> int:
        """Forget all entries and totals; gives the number of requests forgotten."""
        with self._lock:
            count = sum(self._totals.values())
            self._entries.clear()
            self._totals.clear()
            return count

    def entries(
        self, *, host: str | None = None, path: str | None = None, kind: str | None = None, after: int = 0
    ) -> list[Entry]:
        """The entries of a host and kind whose path contains `path`, numbered above `after`."""
        with self._lock:
            chosen = list(self._entries)
        return [
            entry
            for entry in chosen
            if entry.number > after
            and (host is None or entry.host == host)
            and (kind is None or entry.kind == kind)
            and (path is None or path in entry.path)
        ]

    def totals(self) -> dict[str, int]:
        """Requests by host since the log was last cleared."""
        with self._lock:
            return dict(self._totals)


def report(entries: list[Entry]) -> dict[str, Any]:
    """The log as plain values: the counts first, then every entry."""
    return {
        "count": len(entries),
        "by_host": dict(Counter(entry.host for entry in entries)),
        "by_kind": dict(Counter(entry.kind for entry in entries)),
        "by_status": dict(Counter(str(entry.status) for entry in entries)),
        "by_second": dict(Counter(entry.at.isoformat(timespec="seconds") for entry in entries)),
        "requests": [asdict(entry) | {"at": entry.at.isoformat()} for entry in entries],
    }


def rate(entries: list[Entry]) -> dict[str, Any]:
    """How fast requests came, in real time: most within any one second, shortest gap between two of them."""
    times = sorted(entry.real for entry in entries)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return {
        "count": len(times),
        "max_in_a_second": max(_within_a_second(times), default=0),
        "shortest_interval": round(min(gaps), 6) if gaps else None,
        "span_seconds": round(times[-1] - times[0], 6) if times else 0.0,
    }


def _within_a_second(times: list[float]) -> Iterator[int]:
    first = 0
    for last, moment in enumerate(times):
        while moment - times[first] >= 1.0:
            first += 1
        yield last - first + 1
