"""A CDN that a test writes the script for: files in FINRA's form, answers gone wrong, and every request noted.

Promises: what is not in `files` is refused like FINRA refuses it; a trouble in `troubles` is used once, in order;
`before` is called with each request before it is answered, so that a test can act exactly then.
"""

from __future__ import annotations

import hashlib
import socket
import struct
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HEADER = "Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market"
FACILITIES = ("CNMS", "FNSQ", "FNQC", "FNYX", "FNRA", "FORF")
DENIED = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'
)
PAGE = b"<!DOCTYPE html><html><head><title>Blocked</title></head><body>Please prove that you are human.</body></html>"

MARKETS = {"FNSQ": "Q", "FNQC": "B", "FNYX": "N", "FNRA": "D", "FORF": "O"}

Rows = Mapping[str, tuple[Any, ...]]


def name(facility: str, day: date) -> str:
    """The name of a facility's file of a day."""
    return f"{facility}shvol{day:%Y%m%d}.txt"


def text(
    day: date, rows: Rows, *, facility: str = "CNMS", header: str = HEADER, trailer: int | None = -1, eol: str = "\r\n"
) -> bytes:
    """A file: symbol → (short, exempt, total) or (short, exempt, total, market); the trailer counts the rows."""
    stamp = f"{day:%Y%m%d}"
    lines = [header]
    for symbol, values in rows.items():
        market = values[3] if len(values) > 3 else MARKETS.get(facility, "B,Q,N")
        lines.append("|".join([stamp, symbol, *(str(value) for value in values[:3]), market]))
    if trailer is not None:
        lines.append(str(len(rows) if trailer < 0 else trailer))
    return "".join(line + eol for line in lines).encode()


@dataclass(frozen=True)
class Trouble:
    """One answer gone wrong: a status with headers and body, a connection that breaks, a body that is cut."""

    status: int = 503
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"trouble"
    reset: bool = False
    cut: bool = False


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    name: str
    path: str
    headers: Mapping[str, str]
    status: int


@dataclass
class Cdn:
    """The script and the record of one CDN."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    troubles: defaultdict[str, deque[Trouble]] = field(default_factory=lambda: defaultdict(deque))
    requests: list[Asked] = field(default_factory=list)
    before: Callable[[str], None] = lambda name: None
    gives_dates: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)

    def publish(self, day: date, rows: Rows | None = None, facilities: tuple[str, ...] = FACILITIES) -> None:
        """Put a day's files there: the same rows for each facility, but an empty file for FNRA."""
        given = rows if rows is not None else {"AAPL": ("10.5", 1, "20.25"), "ABRpD": (1, 0, 2), "NA": (3, 0, 4)}
        for facility in facilities:
            self.files[name(facility, day)] = text(day, {} if facility == "FNRA" else given, facility=facility)

    def put(self, facility: str, day: date, rows: Rows, **form: Any) -> None:
        """Put one file there."""
        self.files[name(facility, day)] = text(day, rows, facility=facility, **form)

    def trouble(self, facility: str, day: date, *troubles: Trouble) -> None:
        """Answer the next requests for a file with these, one after the other."""
        self.troubles[name(facility, day)].extend(troubles)

    def asked(self, facility: str | None = None, day: date | None = None) -> list[str]:
        """The names of the files asked for, in order."""
        return [
            one.name
            for one in self.requests
            if (facility is None or one.name.startswith(facility)) and (day is None or f"{day:%Y%m%d}" in one.name)
        ]

    def forget(self) -> None:
        """Begin the record anew."""
        self.requests.clear()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *parts: Any) -> None:
        """Say nothing."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate(timestamp, usegmt=True)

    def do_GET(self) -> None:
        cdn = self.server.cdn
        wanted = self.path.partition("?")[0].rpartition("/")[2]
        cdn.before(wanted)
        with cdn.lock:
            waiting = cdn.troubles.get(wanted)
            trouble = waiting.popleft() if waiting else None
            body = cdn.files.get(wanted)
        if trouble is not None and trouble.reset:
            self._note(cdn, wanted, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        if trouble is not None and not trouble.cut:
            self._answer(cdn, wanted, trouble.status, trouble.body, dict(trouble.headers))
            return
        if body is None:
            self._answer(cdn, wanted, 403, DENIED, {"Content-Type": "application/xml"})
            return
        tag = f'"{hashlib.md5(body).hexdigest()}"'
        if self.headers.get("If-None-Match") == tag:
            self._answer(cdn, wanted, 304, b"", {"ETag": tag})
            return
        self._answer(cdn, wanted, 200, body, {"ETag": tag, "Content-Type": "text/plain"}, cut=trouble is not None)

    def _note(self, cdn: Cdn, wanted: str, status: int) -> None:
        with cdn.lock:
            cdn.requests.append(Asked(wanted, self.path, {k.lower(): v for k, v in self.headers.items()}, status))

    def _answer(
        self, cdn: Cdn, wanted: str, status: int, body: bytes, headers: dict[str, str], cut: bool = False
    ) -> None:
        self._note(cdn, wanted, status)
        self.send_response_only(status)
        if cdn.gives_dates and "Date" not in headers:
            self.send_header("Date", self.date_time_string())
        for key, value in headers.items():
            self.send_header(key, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.wfile.flush()
            self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    cdn: Cdn

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that the test broke is no news."""


@contextmanager
def serving() -> Iterator[Cdn]:
    """Serve an empty CDN until the block ends."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.cdn = Cdn(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.cdn
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
