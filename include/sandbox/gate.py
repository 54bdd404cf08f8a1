"""The gate in front of every stand-in: it counts, applies faults, and sends.

Promises: a request is entered in the log when its headers are here, before anything is decided about it; a
broken connection is really broken (reset, or closed with less than was announced), not an error page. Never:
a failure of one stand-in ends the server; it is answered with 500 and printed.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from include.sandbox.exchange import Answer, Call, Upstream, http_date, json_answer
from include.sandbox.faults import Fault, FaultBook
from include.sandbox.requestlog import Entry, RequestLog

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CONTROL = "/_sandbox"
MASK = "***"


class ClientGone(Exception):
    """The caller closed the connection before its request was complete."""


class Gate:
    """The ASGI application: control routes go to `control`, the rest to the stand-in of its host.

    `now` gives the simulated instant; `wire` gives the transport of a connection, where the server knows it.
    """

    def __init__(
        self,
        control: App,
        players: Sequence[Upstream],
        log: RequestLog,
        faults: FaultBook,
        now: Callable[[], Awaitable[datetime]],
        wire: Callable[[Scope], asyncio.Transport | None],
    ) -> None:
        self._control = control
        self._by_host = {host: player for player in players for host in player.hosts}
        self._by_prefix = [(*prefix, player) for player in players for prefix in player.prefixes]
        self._log = log
        self._faults = faults
        self._now = now
        self._wire = wire

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        path = _raw_path(scope)
        if scope["type"] != "http" or path == CONTROL or path.startswith(CONTROL + "/"):
            await self._control(scope, receive, send)
            return
        arrived = time.monotonic()
        at = await self._now()
        host, rest, player = self._find(path)
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        call = Call(
            method=scope["method"],
            host=host,
            path=rest,
            query=scope["query_string"].decode("latin-1"),
            headers=headers,
            body=b"",
            at=at,
            base=f"http://{headers.get('host', '127.0.0.1')}",
        )
        kind = player.kind(call) if player else "nobody"
        entry = self._log.enter(at, arrived, host, kind, call.method, *_masked(call, player))
        try:
            call = replace(call, body=await _body(receive))
        except ClientGone:
            entry.fault = "client_gone"
            return
        fault = self._faults.take(call, kind)
        entry.fault = fault.name if fault else None
        await self._respond(call, player, fault, entry, Wire(scope, receive, send, self._wire(scope)))
        entry.took = round(time.monotonic() - arrived, 6)

    def _find(self, path: str) -> tuple[str, str, Upstream | None]:
        first, slash, rest = path.lstrip("/").partition("/")
        if "." in first:
            return first.lower(), slash + rest if slash else "/", self._by_host.get(first.lower())
        for prefix, host, player in self._by_prefix:
            if path.startswith(prefix):
                return host, path, player
        return "", path, None

    async def _respond(
        self, call: Call, player: Upstream | None, fault: Fault | None, entry: Entry, wire: Wire
    ) -> None:
        if fault and fault.slow_seconds:
            await asyncio.sleep(fault.slow_seconds)
        answer: Answer | None = None
        if fault is None or fault.handler_runs:
            drift = fault.schema_drift if fault else None
            answer = await asyncio.to_thread(_answer, player, replace(call, drift=drift))
        if fault is not None:
            if fault.breaks:
                await wire.reset()
                return
            answer = fault.dressed(answer)
        assert answer is not None
        entry.status = answer.status
        length = None
        if fault and fault.truncate:
            length = len(answer.body) // 2 if fault.truncate is True else int(fault.truncate)
        entry.sent = await wire.send_answer(call, answer, length)


def _answer(player: Upstream | None, call: Call) -> Answer:
    """What the stand-in says; 502 where nobody plays the host, 500 where the stand-in itself fails."""
    if player is None:
        what = f"nobody plays {call.host} here" if call.host else f"{call.path} names no host"
        return json_answer(502, {"error": f"sandbox: {what}; GET {CONTROL}/health lists the hosts"})
    try:
        return player.answer(call)
    except Exception as failure:
        traceback.print_exc(file=sys.stderr)
        return json_answer(500, {"error": f"sandbox: the stand-in {player.name} failed: {failure!r}"})


def _raw_path(scope: Scope) -> str:
    raw = scope.get("raw_path")
    return raw.decode("latin-1") if raw else str(scope.get("path", ""))


def _masked(call: Call, player: Upstream | None) -> tuple[str, str]:
    """Path and query as they may be kept: without the parts that are keys."""
    if player is None:
        return call.path, call.query
    pairs = parse_qsl(call.query, keep_blank_values=True)
    if any(key in player.secret_params for key, _ in pairs):
        kept = [(key, MASK if key in player.secret_params else value) for key, value in pairs]
        return player.mask(call.path), urlencode(kept, safe="*")
    return player.mask(call.path), call.query


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


class Wire:
    """One request's way back to its caller."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, transport: asyncio.Transport | None) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._transport = transport

    async def send_answer(self, call: Call, answer: Answer, length: int | None) -> int:
        """Send an answer; with `length`, announce all of it, send so many bytes and hang up.

        Gives the number of body bytes sent.
        """
        bodiless = answer.status in (204, 304) or call.method == "HEAD"
        headers = [*answer.headers, ("Date", http_date(call.at))]
        if answer.status not in (204, 304) and answer.header("content-length") is None:
            headers.append(("Content-Length", str(len(answer.body))))
        await self._send({"type": "http.response.start", "status": answer.status, "headers": _encoded(headers)})
        body = b"" if bodiless else answer.body
        if length is None or length >= len(body):
            await self._send({"type": "http.response.body", "body": body})
            return len(body)
        await self._send({"type": "http.response.body", "body": body[:length], "more_body": True})
        await self._hang_up(reset=False)
        return length

    async def reset(self) -> None:
        """Break the connection: the caller sees a reset, not an answer."""
        await self._hang_up(reset=True)

    async def _hang_up(self, *, reset: bool) -> None:
        if self._transport is None:
            raise ConnectionResetError("the connection is broken on purpose")
        if reset:
            line: socket.socket = self._transport.get_extra_info("socket")
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
        else:
            self._transport.close()
        while (await self._receive())["type"] != "http.disconnect":
            continue


def _encoded(headers: Sequence[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(key.lower().encode("latin-1"), value.encode("latin-1")) for key, value in headers]
