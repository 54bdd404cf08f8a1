"""Who may do what, and how often: tokens, errors with the Hub's codes, rate limits.

Promises: a token is judged by three rules and forgotten; a limit that was passed is told in the Hub's
headers. Never: a token reaches a log or an answer.

The rules: no token may read public repositories; a token that begins with `hf_invalid` is unknown, one that
begins with `hf_readonly` reads, any other writes.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from include.sandbox.exchange import Answer, Call, SwitchError, json_answer

HOUR = 3600.0


def refusal(status: int, code: str, sentence: str, *headers: tuple[str, str]) -> Answer:
    """An error in the Hub's form; the client makes its exceptions from the code."""
    named = (("X-Error-Code", code),) if code else ()
    return json_answer(status, {"error": sentence}, *named, ("X-Error-Message", sentence), *headers)


def token_of(call: Call) -> str | None:
    """The bearer token of a call."""
    scheme, _, token = call.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def refused(call: Call, *, writes: bool, private: bool) -> Answer | None:
    """The refusal that a call meets, or None where it may go on."""
    token = token_of(call)
    if token is None:
        if private:
            return refusal(401, "RepoNotFound", "Repository not found")
        return refusal(401, "", "Invalid username or password.") if writes else None
    if token.startswith("hf_invalid"):
        return refusal(401, "", "Invalid credentials in Authorization header")
    if writes and token.startswith("hf_readonly"):
        return refusal(403, "Forbidden", "Forbidden: this token has no write rights here")
    return None


@dataclass(frozen=True)
class Limits:
    """What the Hub allows; None: as much as you like.

    `api` and `resolvers` are requests in a fixed window of `window` seconds, `commits` are commits in any stretch of
    `hour` seconds, `folder` the entries of one folder, `page` and `page_expanded` the entries of one page of a listing.
    """

    api: int | None = None
    resolvers: int | None = None
    window: float = 300.0
    commits: int | None = None
    hour: float = HOUR
    folder: int = 10_000
    page: int = 1000
    page_expanded: int = 50


# Those of a free account.
FREE = Limits(api=1000, resolvers=5000, commits=128)


def changed(limits: Limits, order: Mapping[str, Any]) -> Limits:
    """The limits with some of them set anew by a control message.

    Raises:
        SwitchError: a word is unknown or a value no positive number.
    """
    known = {one.name for one in fields(Limits)}
    values = {key: value for key, value in order.items() if key not in ("upstream", "switch")}
    for key, value in values.items():
        if key not in known:
            raise SwitchError(f"the Hub has no limit {key!r}; it has {', '.join(sorted(known))}")
        optional = key in ("api", "resolvers", "commits")
        if not (value is None and optional) and not (isinstance(value, int | float) and value > 0):
            raise SwitchError(f"the limit {key} is a positive number{' or null' if optional else ''}")
    return Limits(**{one.name: values.get(one.name, getattr(limits, one.name)) for one in fields(Limits)})


class Meter:
    """Counts calls against the limits; `now` is a monotonic clock in seconds."""

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._now = now
        self._lock = threading.Lock()
        self._windows: dict[str, tuple[float, int]] = {}
        self._commits: deque[float] = deque()
        self.refused: Counter[str] = Counter()

    def restart(self, limits: Limits) -> None:
        """Set the limits and begin all windows anew."""
        with self._lock:
            self.limits = limits
            self._windows.clear()
            self._commits.clear()
            self.refused.clear()

    def pass_or_refuse(self, bucket: str) -> tuple[Answer | None, tuple[tuple[str, str], ...]]:
        """Count one call: the refusal if it is one too many, and the headers that tell the state."""
        quota: int | None = getattr(self.limits, bucket)
        if quota is None:
            return None, ()
        with self._lock:
            begun, used = self._windows.get(bucket, (self._now(), 0))
            if self._now() - begun >= self.limits.window:
                begun, used = self._now(), 0
            allowed = used < quota
            used += allowed
            self.refused[bucket] += not allowed
            self._windows[bucket] = (begun, used)
            left = max(1, int(self.limits.window - (self._now() - begun)))
        headers = (
            ("RateLimit", f'"{bucket}";r={quota - used};t={left}'),
            ("RateLimit-Policy", f'"fixed window";"{bucket}";q={quota};w={int(self.limits.window)}'),
        )
        if allowed:
            return None, headers
        sentence = f"You have reached the limit of {quota} requests for {bucket}"
        return refusal(429, "", sentence, ("Retry-After", str(left)), *headers), headers

    def commit_or_refuse(self) -> Answer | None:
        """Count one commit against the hour; the refusal where there were too many.

        The real Hub says this in the text alone: its headers still show requests left.
        """
        quota = self.limits.commits
        if quota is None:
            return None
        with self._lock:
            while self._commits and self._now() - self._commits[0] >= self.limits.hour:
                self._commits.popleft()
            if len(self._commits) < quota:
                self._commits.append(self._now())
                return None
            self.refused["commits"] += 1
        return refusal(
            429,
            "",
            f"You have exceeded the rate limit for repository commits ({quota} per hour). "
            "You can retry this action in about 1 hour.",
        )
