"""The sandbox as one application: stand-ins, gate and control routes.

Promises: `build` gives an ASGI application that needs no more than a clock and a directory; everything that
a test or an operator can ask of it is a route under `/_sandbox`. Never: a control message that cannot be
used changes anything; it is answered with 400 and a sentence.

Control routes: GET    /_sandbox/health                     what is played, since when, by which clock GET
/_sandbox/clock                      the simulated instant GET    /_sandbox/log?host=&path=&kind=&after=
requests, with counts; DELETE forgets them GET    /_sandbox/rate?host=&path=&kind=     most requests in a
second, shortest interval GET    /_sandbox/faults                     rules in force; POST sets one (or a
list), DELETE removes all GET    /_sandbox/switches                   every stand-in's state; POST
{"upstream": name, …} changes one, DELETE forgets the switches of all GET    /_sandbox/<stand-in>
its state (slack: messages, hub: repositories); DELETE resets it
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from include.sandbox import recordings as recorded
from include.sandbox.clock import Clock, SandboxClock, real_clock
from include.sandbox.exchange import SwitchError, Upstream, World
from include.sandbox.faults import FaultBook, parse
from include.sandbox.gate import App, Gate
from include.sandbox.recordings import Recording
from include.sandbox.requestlog import Entry, RequestLog, rate, report
from include.sandbox.server import wire_of
from include.sandbox.upstreams import SERVICES, SOURCES


@dataclass(frozen=True)
class Sandbox:
    """The application and, for a test in the same process, its log and faults."""

    app: App
    log: RequestLog
    faults: FaultBook
    players: tuple[Upstream, ...]


def build(
    world: World,
    *,
    clock: Clock = real_clock,
    clock_is_remote: bool = False,
    recordings: Sequence[Recording] | None = None,
    wire: Callable[[MutableMapping[str, Any]], asyncio.Transport | None] = wire_of,
) -> Sandbox:
    """Put the sandbox together.

    Args:
        world: seed, size and directory of everything generated.
        clock: gives the simulated instant.
        clock_is_remote: it may be slow or fail; then time goes on from its last word.
        recordings: recorded answers, in the place of the generating stand-ins.
        wire: finds the transport of a connection.
    """
    sources = tuple(make(world) for make in SOURCES)
    if recordings is not None:
        sources = recorded.players(recordings, sources)
    players = (*sources, *(make(world) for make in SERVICES))
    log, faults = RequestLog(), FaultBook()
    simulated = SandboxClock(clock, remote=clock_is_remote)
    control = Starlette(routes=_Control(world, players, log, faults, simulated, recordings is not None).routes())
    gate = Gate(control, players, log, faults, simulated.now, wire)
    return Sandbox(gate, log, faults, players)


class _Control:
    def __init__(
        self,
        world: World,
        players: tuple[Upstream, ...],
        log: RequestLog,
        faults: FaultBook,
        clock: SandboxClock,
        from_recordings: bool,
    ) -> None:
        self._world = world
        self._players = {player.name: player for player in players}
        self._log = log
        self._faults = faults
        self._clock = clock
        self._mode = "recordings" if from_recordings else "generator"
        self._started = datetime.now(UTC)

    def routes(self) -> list[Route]:
        return [
            Route("/_sandbox/health", self._health, methods=["GET"]),
            Route("/_sandbox/clock", self._time, methods=["GET"]),
            Route("/_sandbox/log", self._read_log, methods=["GET", "DELETE"]),
            Route("/_sandbox/rate", self._rate, methods=["GET"]),
            Route("/_sandbox/faults", self._fault_rules, methods=["GET", "POST", "DELETE"]),
            Route("/_sandbox/switches", self._switches, methods=["GET", "POST", "DELETE"]),
            Route("/_sandbox/{player}", self._player, methods=["GET", "DELETE"]),
        ]

    async def _health(self, request: Request) -> JSONResponse:
        base = str(request.base_url).rstrip("/")
        return JSONResponse(
            {
                "status": "ok" if self._clock.trouble is None else "degraded",
                "trouble": self._clock.trouble,
                "clock": (await self._clock.now()).isoformat(),
                "started_at": self._started.isoformat(),
                "mode": self._mode,
                "seed": self._world.seed,
                "companies": self._world.companies,
                "hosts": sorted(host for player in self._players.values() for host in player.hosts),
                "hub_url": base,
                "slack_url": f"{base}/services",
                "requests": self._log.totals(),
            }
        )

    async def _time(self, request: Request) -> JSONResponse:
        return JSONResponse({"at": (await self._clock.now()).isoformat(), "trouble": self._clock.trouble})

    async def _read_log(self, request: Request) -> JSONResponse:
        if request.method == "DELETE":
            return JSONResponse({"forgotten": self._log.clear()})
        after = request.query_params.get("after", "0")
        if not after.isdigit():
            return _refusal('"after" is the number of an entry')
        return JSONResponse(report(self._chosen(request, int(after))))

    def _chosen(self, request: Request, after: int = 0) -> list[Entry]:
        host, path, kind = (request.query_params.get(name) for name in ("host", "path", "kind"))
        return self._log.entries(host=host, path=path, kind=kind, after=after)

    async def _rate(self, request: Request) -> JSONResponse:
        return JSONResponse(rate(self._chosen(request)))

    async def _fault_rules(self, request: Request) -> JSONResponse:
        if request.method == "DELETE":
            return JSONResponse({"removed": self._faults.clear()})
        if request.method == "POST":
            try:
                order = await request.json()
                rules = [parse(one) for one in (order if isinstance(order, list) else [order])]
            except (SwitchError, ValueError, TypeError) as failure:
                return _refusal(str(failure))
            for rule in rules:
                self._faults.add(rule)
        return JSONResponse({"faults": self._faults.view()})

    async def _switches(self, request: Request) -> JSONResponse:
        if request.method == "DELETE":
            for player in self._players.values():
                player.reset()
        if request.method == "POST":
            try:
                order = await request.json()
                player = self._named(order.get("upstream") if isinstance(order, dict) else None)
                return JSONResponse({player.name: player.switch(order)})
            except (SwitchError, ValueError) as failure:
                return _refusal(str(failure))
        return JSONResponse({name: dict(player.view()) for name, player in self._players.items()})

    async def _player(self, request: Request) -> JSONResponse:
        try:
            player = self._named(request.path_params["player"])
        except SwitchError as failure:
            return _refusal(str(failure), 404)
        if request.method == "DELETE":
            player.reset()
        return JSONResponse(dict(player.view()))

    def _named(self, name: object) -> Upstream:
        if name not in self._players:
            raise SwitchError(f'"upstream" is one of {", ".join(self._players)}, not {name!r}')
        return self._players[str(name)]


def _refusal(sentence: str, status: int = 400) -> JSONResponse:
    return JSONResponse({"error": sentence}, status_code=status)
