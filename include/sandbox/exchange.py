"""The words of the sandbox: one call, one answer, and what a stand-in is.

Promises: calls and answers are immutable values, so a stand-in is a function that can be tried without a
server. Never: no clock is read here; the instant of a call comes with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote


class SwitchError(Exception):
    """A fault, a switch or an option cannot be used; the text says what would do."""


@dataclass(frozen=True)
class Call:
    """One request as a stand-in sees it.

    `path` is still percent-encoded and starts with a slash, `query` is the raw query string, header names
    are in lower case, `at` is the simulated instant of arrival and `base` the address of this server as the
    caller wrote it. `drift` is the change of schema that a fault asked for, or None.
    """

    method: str
    host: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    at: datetime
    base: str = "http://127.0.0.1"
    drift: str | None = None

    @property
    def plain_path(self) -> str:
        """The path with its percent-encoding removed."""
        return unquote(self.path)

    def params(self) -> dict[str, str]:
        """The query's parameters; of a repeated one the last counts."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    def form(self) -> list[tuple[str, str]]:
        """The body read as a form."""
        return parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True)

    def json(self) -> Any:
        """The body read as JSON.

        Raises:
            ValueError: it is not JSON.
        """
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """One answer: status, body, headers in order. Content-Length and Date are added by the gate."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    def header(self, name: str) -> str | None:
        """The first header of this name, whatever its case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def plus(self, *headers: tuple[str, str]) -> Answer:
        """The same answer with more headers."""
        return replace(self, headers=(*self.headers, *headers))


@dataclass(frozen=True)
class World:
    """What every stand-in is built from.

    `seed` decides all generated data, `companies` is the size of the generated market, `state` is a directory
    that outlives a restart, `hub_limits` tells whether the Hub's own rate limits are in force.
    """

    state: Path
    seed: int = 7
    companies: int = 300
    hub_limits: bool = False


def _nothing() -> Mapping[str, Any]:
    return {}


def _no_switch(order: Mapping[str, Any]) -> Mapping[str, Any]:
    raise SwitchError("this stand-in has no switches")


def _no_reset() -> None:
    """Nothing to forget."""


@dataclass(frozen=True)
class Upstream:
    """A stand-in: which hosts it plays and how it answers.

    `answer` may run in any thread. `prefixes` are paths under which it is reached without a host (the Hub's
    `/api/`, Slack's `/services/`), each with the host that it stands for; the first that fits counts. `kind`
    names a call for counts and fault rules. `absent` is what the upstream says when it does not have what was
    asked. `secret_params` and `mask` keep credentials out of the log.
    """

    name: str
    hosts: tuple[str, ...]
    answer: Callable[[Call], Answer]
    absent: Callable[[Call], Answer]
    kind: Callable[[Call], str]
    prefixes: tuple[tuple[str, str], ...] = ()
    switch: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _no_switch
    view: Callable[[], Mapping[str, Any]] = _nothing
    reset: Callable[[], None] = _no_reset
    secret_params: frozenset[str] = frozenset()
    mask: Callable[[str], str] = field(default=str)


def json_answer(status: int, value: Any, *headers: tuple[str, str]) -> Answer:
    """An answer whose body is `value` as JSON; half a character, which no encoding has, is written as its escape."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")
    return Answer(status, body, (("Content-Type", "application/json; charset=utf-8"), *headers))


def http_date(instant: datetime) -> str:
    """An instant in the form of HTTP headers, to the second."""
    return format_datetime(instant.astimezone(UTC).replace(microsecond=0), usegmt=True)


def _same_tag(asked: str, tag: str) -> bool:
    tags = [one.strip().removeprefix("W/") for one in asked.split(",")]
    return "*" in tags or tag in tags


def validated(call: Call, body: bytes, content_type: str, modified: datetime) -> Answer:
    """Answer with `body` and its validators, or with 304 where the caller already holds it.

    The entity tag is the body's MD5, as object stores give it. A caller that sends both validators is judged
    by the tag alone.
    """
    tag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
    headers = (("ETag", tag), ("Last-Modified", http_date(modified)))
    asked_tag = call.headers.get("if-none-match")
    asked_since = call.headers.get("if-modified-since")
    if asked_tag is not None:
        known = _same_tag(asked_tag, tag)
    elif asked_since is not None:
        known = _not_newer(modified, asked_since)
    else:
        known = False
    if known:
        return Answer(304, b"", headers)
    return Answer(200, body, (("Content-Type", content_type), *headers))


def _not_newer(modified: datetime, asked: str) -> bool:
    try:
        since = parsedate_to_datetime(asked)
    except ValueError:
        # HTTP: a date that cannot be read is as if it had not been sent.
        return False
    if since.tzinfo is None:
        since = since.replace(tzinfo=UTC)
    return modified.replace(microsecond=0) <= since


def ranged(call: Call, body: bytes, *headers: tuple[str, str]) -> Answer:
    """Answer with `body`, or with the one byte range that was asked for (206, or 416 past its end)."""
    asked = call.headers.get("range", "")
    whole = Answer(200, body, (("Accept-Ranges", "bytes"), *headers))
    if not asked.startswith("bytes=") or "," in asked:
        return whole
    first_text, _, last_text = asked.removeprefix("bytes=").partition("-")
    try:
        if first_text:
            first, last = int(first_text), int(last_text) if last_text else len(body) - 1
        else:
            first, last = max(0, len(body) - int(last_text)), len(body) - 1
    except ValueError:
        return whole
    last = min(last, len(body) - 1)
    if first > last:
        return Answer(416, b"", (("Content-Range", f"bytes */{len(body)}"), *headers))
    span = ("Content-Range", f"bytes {first}-{last}/{len(body)}")
    return Answer(206, body[first : last + 1], (("Accept-Ranges", "bytes"), span, *headers))


def instant_of(text: Any, what: str) -> datetime:
    """Read an ISO instant with a zone from a control message.

    Raises:
        SwitchError: it is no instant, or has no zone.
    """
    try:
        instant = datetime.fromisoformat(str(text))
    except ValueError:
        raise SwitchError(f"{what} must be an ISO instant such as 2026-09-15T21:30:00-04:00, not {text!r}") from None
    if instant.tzinfo is None:
        raise SwitchError(f"{what} needs a zone: write 2026-09-15T21:30:00-04:00, not {text!r}")
    return instant
