"""One request to an upstream: sent, received as a stream, stored.

Promises: every request has timeouts and a size limit; the answer's decoded bytes go to the raw store as they come;
the address as sent is in no message (it may carry a key). One setting redirects all traffic to the sandbox.
Never: no retry here (see `fetch`), no database, and no secret in an error.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import quote, urlsplit

import httpx

from include.contract import Credentials, Key, Request
from include.engine.masking import mask
from include.engine.raw import RawStore, Stored

# The client writes every address that it sends to into its log, and an address may carry a key.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)

# An upstream that gives a request up after a minute shall have said so.
CONNECT_SECONDS, READ_SECONDS = 10.0, 75.0
LARGEST_BODY = 4 << 30

# Headers of an answer that are kept; cookies and the like are not.
KEPT_HEADERS = frozenset(
    {
        "content-type",
        "content-length",
        "content-encoding",
        "etag",
        "last-modified",
        "date",
        "retry-after",
        "server",
        "content-range",
        "accept-ranges",
    }
    | {"x-total-count", "link", "record-total", "x-ratelimit-remaining", "x-ratelimit-reset", "location"}
)


@dataclass(frozen=True)
class Received:
    """What came back: status and kept headers in lower case with the stored body, or the error where nothing did."""

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    stored: Stored | None = None
    error: str | None = None


class ReceivingStopped(Exception):
    """The worker must stop, or may no longer trust its lease, in the middle of an answer; what came is dropped."""


class BodyTooLarge(Exception):
    """An answer is larger than anything an upstream of ours sends."""


@cache
def _trusted() -> ssl.SSLContext:
    """The certificates that are trusted, read once: reading them takes longer than everything else a client needs."""
    return httpx.create_ssl_context(trust_env=False)


def client(user_agent: str) -> httpx.Client:
    """Return a client with timeouts, an honest user agent and no redirects to other hosts."""
    return httpx.Client(
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        headers={"User-Agent": user_agent, "Accept-Encoding": "gzip, deflate"},
        follow_redirects=False,
        trust_env=False,
        verify=_trusted(),
    )


def address(request: Request, credentials: Credentials, key: Key | None = None) -> str:
    """Return where a request really goes: its own address, the connection's base URL, or the sandbox.

    The connection's base URL stands in for the request's host only when it names another one; a path behind it
    (a proxy's) is kept.
    """
    url = request.url.replace("{key}", quote(key.in_path, safe="")) if key and key.in_path else request.url
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    if credentials.sandbox_url:
        return f"{credentials.sandbox_url}/{parts.netloc}{path}"
    base = credentials.base_url.rstrip("/")
    if base and credentials.default_host and parts.netloc == urlsplit(credentials.default_host).netloc:
        return base + path
    return url


def send(
    http: httpx.Client,
    request: Request,
    credentials: Credentials,
    validators: Mapping[str, str],
    raw: RawStore,
    may_go_on: Callable[[], bool] = lambda: True,
    key: Key | None = None,
) -> Received:
    """Send one request and store its answer.

    Returns:
        The answer; with `error` set and no status where the connection failed or the body did not arrive whole.

    Raises:
        OSError: the raw store cannot be written; the answer is lost and the caller must not go on.
    """
    try:
        with opened(http, request, credentials, validators, key) as response:
            kept = headers_of(response, credentials)
            if response.status_code == httpx.codes.NOT_MODIFIED:
                return Received(response.status_code, kept)
            stored = raw.put(bounded(response.iter_bytes(), may_go_on), credentials.secrets)
            return Received(response.status_code, kept, stored)
    except FAULTS as error:
        return failed(error, credentials)


# What a request may end with where no answer came whole.
FAULTS = (httpx.HTTPError, httpx.InvalidURL, BodyTooLarge, ReceivingStopped)


def failed(error: Exception, credentials: Credentials) -> Received:
    """Return what was received where no answer came whole: why, in words without a secret."""
    if isinstance(error, (BodyTooLarge, ReceivingStopped)):
        return Received(None, error=str(error))
    return Received(None, error=f"{type(error).__name__}: {mask(str(error), credentials.secrets)}"[:1000])


@contextmanager
def opened(
    http: httpx.Client,
    request: Request,
    credentials: Credentials,
    extra: Mapping[str, str],
    key: Key | None = None,
) -> Iterator[httpx.Response]:
    """Send one request and give its answer while the body is still to come; `extra` are further headers."""
    headers = {**dict(request.headers), **credentials.headers, **(key.headers if key else {}), **extra}
    params = [*request.params, *credentials.params.items(), *(key.params.items() if key else ())]
    with http.stream(
        request.method,
        address(request, credentials, key),
        params=params or None,
        headers=headers,
        content=request.body,
    ) as response:
        yield response


def headers_of(response: httpx.Response, credentials: Credentials) -> dict[str, str]:
    """Return the headers of an answer that are kept, in lower case."""
    return {name: mask(value, credentials.secrets) for name, value in response.headers.items() if name in KEPT_HEADERS}


def bounded(chunks: Iterator[bytes], may_go_on: Callable[[], bool]) -> Iterator[bytes]:
    """Give chunks on until the worker must stop or there are more than any upstream sends.

    Raises:
        ReceivingStopped: `may_go_on` said no.
        BodyTooLarge: there were more than `LARGEST_BODY` bytes.
    """
    size = 0
    for chunk in chunks:
        if not may_go_on():
            raise ReceivingStopped("stopped while the answer was being received")
        size += len(chunk)
        if size > LARGEST_BODY:
            raise BodyTooLarge(f"The answer is larger than {LARGEST_BODY >> 30} GiB; it was not kept.")
        yield chunk
