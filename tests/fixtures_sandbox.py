"""The sandbox for tests: `sandbox(...)` starts one in this process and ends it with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from include.sandbox.app import Sandbox, build
from include.sandbox.exchange import World
from include.sandbox.recordings import load
from include.sandbox.server import serve

NEW_YORK = ZoneInfo("America/New_York")

# Tuesday evening in New York: FINRA's files of 2026-09-15 have been there for two hours.
TUESDAY_EVENING = datetime(2026, 9, 15, 19, 40, tzinfo=NEW_YORK)

# One for all: reading the certificates, which nobody here needs, takes longer than a request. A sandbox ends with its
# test, so no connection is kept.
_HTTP = httpx.Client(trust_env=False, verify=False, limits=httpx.Limits(max_keepalive_connections=0))


class MovableClock:
    """A clock that stands still until the test moves it."""

    def __init__(self, at: datetime = TUESDAY_EVENING) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at

    def advance(self, **parts: float) -> None:
        self.at += timedelta(**parts)


@dataclass(frozen=True)
class RunningSandbox:
    """A sandbox that answers at `url`; its log and fault book can also be reached directly."""

    url: str
    inside: Sandbox
    clock: Callable[[], datetime]
    state: Path

    @property
    def hub_url(self) -> str:
        return self.url

    @property
    def slack_url(self) -> str:
        return f"{self.url}/services/T0/B0/a-secret-of-slack"

    def get(self, path: str, **options: Any) -> httpx.Response:
        return _HTTP.get(f"{self.url}{path}", timeout=30, **options)

    def control(self, method: str, path: str, order: Any = None) -> Any:
        """Call a control route; gives its JSON and refuses an answer that is no success."""
        answer = _HTTP.request(method, f"{self.url}/_sandbox/{path}", json=order, timeout=30)
        assert answer.is_success, answer.text
        return answer.json()

    def fault(self, **rule: Any) -> None:
        self.control("POST", "faults", rule)

    def switch(self, upstream: str, switch: str, **order: Any) -> Any:
        return self.control("POST", "switches", {"upstream": upstream, "switch": switch, **order})

    def requests(self, **filters: Any) -> list[dict[str, Any]]:
        """The logged requests as the control route gives them."""
        answer = _HTTP.get(f"{self.url}/_sandbox/log", params=filters, timeout=30)
        return answer.json()["requests"]


Start = Callable[..., RunningSandbox]


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Start]:
    """Gives `start(clock=…, seed=7, companies=60, recordings=DIR, state=DIR, hub_limits=False)`."""
    with ExitStack() as running:

        def start(
            *,
            clock: Callable[[], datetime] | None = None,
            seed: int = 7,
            companies: int = 60,
            recordings: Path | None = None,
            state: Path | None = None,
            hub_limits: bool = False,
        ) -> RunningSandbox:
            used = clock or MovableClock()
            place = state or tmp_path / "sandbox"
            world = World(place, seed, companies, hub_limits)
            inside = build(world, clock=used, recordings=load(recordings) if recordings else None)
            server = running.enter_context(serve(inside.app))
            return RunningSandbox(server.url, inside, used, place)

        yield start
