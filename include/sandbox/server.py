"""Running the sandbox: bound sockets, a server thread, and the connections' transports.

Promises: the server listens on the loopback address only; `serve` gives back when it is ready to answer and
leaves nothing running. Never: a busy port is answered with another one; that is said and left to the caller.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from include.sandbox.gate import App

LOOPBACK = "127.0.0.1"

_wires: dict[tuple[Any, Any], asyncio.Transport] = {}


class ServerError(Exception):
    """The server cannot listen or did not start; the text says why and what to do."""


class TrackedProtocol(H11Protocol):
    """uvicorn's HTTP protocol; it also makes each connection's transport known, so that it can be broken."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Remember the transport under the two ends of its connection."""
        super().connection_made(transport)
        _wires[(self.client, self.server)] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the transport."""
        _wires.pop((self.client, self.server), None)
        super().connection_lost(exc)


def wire_of(scope: MutableMapping[str, Any]) -> asyncio.Transport | None:
    """The transport on which a request came, or None where this server did not receive it."""
    ends = (scope.get("client"), scope.get("server"))
    return _wires.get((tuple(ends[0]), tuple(ends[1]))) if ends[0] and ends[1] else None


class _Server(uvicorn.Server):
    """uvicorn's server, which says when it has started and waits to be told to end instead of looking."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.decided = threading.Event()
        self._over = asyncio.Event()
        self._home: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._home = asyncio.get_running_loop()
        self.decided.set()

    async def main_loop(self) -> None:
        await self._over.wait()

    def end(self) -> None:
        """Tell the server, from another thread, to end."""
        self.should_exit = True
        if self._home is not None and not self._home.is_closed():
            self._home.call_soon_threadsafe(self._over.set)


@dataclass(frozen=True)
class Running:
    """A server that answers: its addresses, and the thread that ends when it does."""

    url: str
    urls: tuple[str, ...]
    thread: threading.Thread


def bind(port: int) -> socket.socket:
    """A socket bound to the loopback address; port 0 lets the system choose.

    Raises:
        ServerError: the port is taken or may not be used.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as failure:
        listener.close()
        raise ServerError(
            f"The sandbox cannot listen on {LOOPBACK}:{port} ({failure.strerror}). "
            "Nothing was started. Give another port, or 0 to let the system choose one."
        ) from None
    return listener


@contextmanager
def serve(app: App, *ports: int) -> Iterator[Running]:
    """Run `app` on the given ports (none: one that the system chooses) until the block ends.

    Raises:
        ServerError: a port is taken, or the server did not start.
    """
    listeners: list[socket.socket] = []
    try:
        for port in ports or (0,):
            listeners.append(bind(port))
        with _running(app, listeners) as running:
            yield running
    finally:
        for listener in listeners:
            listener.close()


@contextmanager
def _running(app: App, listeners: list[socket.socket]) -> Iterator[Running]:
    config = uvicorn.Config(
        app,
        http=TrackedProtocol,
        lifespan="off",
        ws="none",
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
    )
    server = _Server(config)

    def work() -> None:
        try:
            server.run(sockets=listeners)
        finally:
            server.decided.set()

    thread = threading.Thread(target=work, name="sandbox", daemon=True)
    thread.start()
    server.decided.wait()
    try:
        if not server.started:
            raise ServerError("The sandbox's server did not start; its own error stands above.")
        urls = tuple(f"http://{LOOPBACK}:{listener.getsockname()[1]}" for listener in listeners)
        yield Running(urls[0], urls, thread)
    finally:
        server.end()
        thread.join(timeout=10)
