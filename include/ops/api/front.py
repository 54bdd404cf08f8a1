"""What stands before the readers' routes: how often strangers may ask, how long an answer keeps, what memory keeps.

Promises: a limit counts by address and by process; an answer that has not changed is answered 304; what is kept in
memory is bounded in number and age. Never: an answer for one user is kept for another, and no forwarded address is
believed.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

Value = TypeVar("Value")

# Addresses that are counted at once; who was not seen for longest is forgotten first.
MOST_ADDRESSES = 10_000


class Lru(Generic[Value]):
    """The last so many things that were asked for, each for its time."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._kept: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return what is kept, None where nothing is or its time is over."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            if found[0] <= self._clock():
                del self._kept[key]
                return None
            self._kept.move_to_end(key)
            return found[1]

    def put(self, key: Hashable, value: Value, seconds: float) -> None:
        """Keep something for so many seconds; what was not asked for longest goes."""
        with self._lock:
            self._kept[key] = (self._clock() + seconds, value)
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)


class Limiter:
    """So many requests a minute for each address, a burst of a quarter of that included."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst = per_minute / 60.0, max(per_minute / 4.0, 1.0)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, address: str) -> float:
        """Take one request; return 0, or after how many seconds there is one again."""
        with self._lock:
            now = self._clock()
            left, at = self._left.pop(address, (self._burst, now))
            left = min(left + (now - at) * self._rate, self._burst)
            wait = 0.0 if left >= 1.0 else (1.0 - left) / self._rate
            self._left[address] = (left - 1.0 if wait == 0.0 else left, now)
            while len(self._left) > MOST_ADDRESSES:
                self._left.popitem(last=False)
            return wait


def keeping(request: Request, shown: BaseModel | bytes, seconds: int, *, is_public: bool = True) -> Response:
    """Return an answer that may be kept for so many seconds, or 304 where the caller has it.

    Args:
        request: what was asked.
        shown: what is answered, or its JSON.
        seconds: how long it may be shown without asking again.
        is_public: whether caches between us and the caller may keep it too; otherwise it is for this user alone.
    """
    body = shown if isinstance(shown, bytes) else shown.model_dump_json(by_alias=True).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"Cache-Control": f"{'public' if is_public else 'private'}, max-age={seconds}", "ETag": tag}
    if not is_public:
        headers["Vary"] = "Authorization, Cookie"
    asked = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if tag in asked or "*" in asked:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


def state_of(request: Request) -> Any:
    """Return the state of the app that answers."""
    return request.app.state
