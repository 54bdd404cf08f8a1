"""What an answer of the Hub that is not the wished one means, and how long to wait.

Promises: every failure of a call is one of a few kinds, each with one right reaction. Never: no request is made
here, and no text of ours contains a token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

HOUR = 3_600.0
_RATE = re.compile(r'"\w+"\s*;\s*r\s*=\s*(\d+)\s*;\s*t\s*=\s*(\d+)')


class Kind(StrEnum):
    """What happened, by what is to be done next."""

    LOST = "lost"
    """No answer, or one that leaves open whether the commit was made: look first, then repeat."""
    BUSY = "busy"
    """Too many requests in a short time: wait and repeat."""
    QUOTA = "quota"
    """The commits of this hour are used up: put the rest off."""
    MOVED = "moved"
    """The repository has another newest commit than thought: read it again and rebuild."""
    REFUSED = "refused"
    """The Hub will not take these files, however often they are sent."""
    FORBIDDEN = "forbidden"
    """The Hub will not take anything with this token."""
    MISSING = "missing"
    """There is no such repository, or it is not to be seen with this token."""


class HubTrouble(Exception):
    """A call that did not come to its good end. `wait`: seconds that the Hub asked for, None where it said nothing."""

    def __init__(self, kind: Kind, text: str, wait: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.wait = wait


def judge(error: Exception) -> HubTrouble | None:
    """Tell what a failure of the Hub's client means; None where it is none of the Hub's doing."""
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError
    from huggingface_hub.utils import httpx  # type: ignore[attr-defined]

    # Uploads in threads wrap what really happened.
    if type(error) is RuntimeError and isinstance(error.__cause__, HfHubHTTPError | httpx.TransportError):
        error = error.__cause__
    if isinstance(error, RepositoryNotFoundError):
        return HubTrouble(Kind.MISSING, _text(error))
    if isinstance(error, HfHubHTTPError) and error.response is not None:
        return _judge_answer(error.response, _text(error))
    if isinstance(error, httpx.TransportError):
        return HubTrouble(Kind.LOST, f"no answer: {type(error).__name__} {error}".strip())
    # What the storage client raises (it is not written in Python): nothing was committed, and all of it can pass.
    if type(error) in (RuntimeError, ConnectionError, TimeoutError) or type(error).__module__.startswith("hf_xet"):
        return HubTrouble(Kind.LOST, f"the upload broke off: {type(error).__name__} {error}"[:500])
    return None


def _text(error: Exception) -> str:
    message = getattr(error, "server_message", None) or str(error).strip().replace("\n", " ")
    response = getattr(error, "response", None)
    return f"HTTP {response.status_code}: {message}"[:500] if response is not None else message[:500]


def _judge_answer(response: Any, text: str) -> HubTrouble:
    status, headers = response.status_code, response.headers
    asked = retry_after(headers)
    if status == 429:
        is_commit = "/commit/" in response.request.url.path
        left, reset = _rate(headers)
        if is_commit and ("per hour" in text or (asked is None and left is not None and left > 0)):
            return HubTrouble(Kind.QUOTA, text, asked or HOUR)
        if left == 0:
            asked = max(asked or 0.0, reset + 1.0)
        return HubTrouble(Kind.BUSY, text, asked)
    if status in (408, 500, 502, 503, 504):
        return HubTrouble(Kind.LOST, text, asked)
    if status in (409, 412):
        return HubTrouble(Kind.MOVED, text, asked)
    if status in (401, 403):
        return HubTrouble(Kind.FORBIDDEN, text)
    if status >= 500:
        return HubTrouble(Kind.LOST, text, asked)
    return HubTrouble(Kind.REFUSED, text)


def _rate(headers: Mapping[str, str]) -> tuple[int | None, float]:
    """What `RateLimit` says is left, and in how many seconds the window begins anew."""
    match = _RATE.search(headers.get("ratelimit") or "")
    return (int(match[1]), float(match[2])) if match else (None, 0.0)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that `Retry-After` asks for: a number, or a date, counted from the answer's own date."""
    text = (headers.get("retry-after") or "").strip()
    if text.isdigit():
        return float(text)
    until, now = _date(text), _date(headers.get("date") or "")
    return max((until - now).total_seconds(), 0.0) if until and now else None


def _date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except ValueError:
        return None
