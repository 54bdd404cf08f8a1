"""Faults on command: which requests are answered badly, how, and how often.

Promises: rules are tried in the order in which they were set, the first that matches is used, and a used-up
rule is dropped; a rule with a word it does not know is refused. Never: a rule changes nothing but the answer
(and, with `apply`, lets the handler do its work first).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from include.sandbox.exchange import Answer, Call, SwitchError

DRIFTS = ("renamed", "missing", "extra")

BLOCK_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>Request blocked</title></head><body>"
    b"<h1>Access to this page is restricted</h1><p>Unusual traffic was seen from your address.</p>"
    b"<p>Reference ID: 0.00000000.0000000000.00000000</p></body></html>\n"
)


@dataclass(frozen=True)
class Match:
    """Which calls a rule is for; what is None matches everything."""

    host: str | None = None
    path_contains: str | None = None
    query_contains: str | None = None
    kind: str | None = None
    method: str | None = None

    def fits(self, call: Call, kind: str) -> bool:
        """Whether the rule is for this call."""
        return (
            (self.host is None or self.host == call.host)
            and (self.path_contains is None or self.path_contains in call.plain_path)
            and (self.query_contains is None or self.query_contains in call.query)
            and (self.kind is None or self.kind == kind)
            and (self.method is None or self.method.upper() == call.method)
        )


@dataclass(frozen=True)
class Fault:
    """What happens to the calls that match.

    `n` is how many of them (None: all until it is removed), after `skip` were let through. `slow_seconds`
    waits first. `status` with `headers` and `body` answers in the handler's place; `reset` breaks the
    connection without an answer; `truncate` announces the whole body and sends part of it (true: half, a
    number: so many bytes); `apply` runs the handler and drops its answer (alone: as a reset).
    `html_block_page` is a page in place of data (403 unless `status` says otherwise), `empty` a body of no
    bytes, `schema_drift` the handler's own answer in a changed form.
    """

    match: Match = field(default_factory=Match)
    n: int | None = 1
    skip: int = 0
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    reset: bool = False
    truncate: bool | int = False
    slow_seconds: float = 0.0
    apply: bool = False
    html_block_page: bool = False
    schema_drift: str | None = None
    empty: bool = False

    @property
    def name(self) -> str:
        """The fault in a word, for the log."""
        if self.html_block_page:
            return "block_page"
        for word in ("reset", "truncate", "empty", "schema_drift"):
            if getattr(self, word):
                return f"apply+{word}" if self.apply else word
        if self.status is not None:
            return f"apply+{self.status}" if self.apply else str(self.status)
        if self.apply:
            return "apply"
        return "slow" if self.slow_seconds else "none"

    @property
    def breaks(self) -> bool:
        """Whether the connection is broken without an answer."""
        return self.reset or (self.apply and self.status is None and not self.truncate)

    @property
    def handler_runs(self) -> bool:
        """Whether the stand-in does its work."""
        return self.apply or bool(self.truncate) or not self._replaces

    @property
    def _replaces(self) -> bool:
        return self.status is not None or self.reset or self.html_block_page or self.empty

    def dressed(self, answer: Answer | None) -> Answer:
        """The answer that is sent, given the handler's own (None where it did not run)."""
        extra = tuple(self.headers.items())
        if self.html_block_page:
            page = (self.body or "").encode() or BLOCK_PAGE
            return Answer(self.status or 403, page, (("Content-Type", "text/html; charset=utf-8"), *extra))
        if self.empty:
            kind = answer.header("content-type") if answer else None
            return Answer(self.status or 200, b"", (("Content-Type", kind or "text/plain"), *extra))
        if self.status is not None:
            return Answer(self.status, (self.body or "").encode(), (("Content-Type", "text/plain"), *extra))
        if answer is None:
            raise AssertionError("a fault that replaces nothing lets the handler run")
        return answer.plus(*extra)


_FIELDS = {one.name for one in fields(Fault)}
_MATCHES = {one.name for one in fields(Match)}


def parse(order: Any) -> Fault:
    """Read one rule from a control message.

    Raises:
        SwitchError: a word is unknown or a value cannot be used.
    """
    if not isinstance(order, dict):
        raise SwitchError('a fault is a JSON object such as {"match": {"host": "cdn.finra.org"}, "status": 503}')
    unknown = sorted(set(order) - _FIELDS)
    if unknown:
        raise SwitchError(f"a fault has no {', '.join(unknown)}; it has {', '.join(sorted(_FIELDS))}")
    match = order.get("match") or {}
    strange = sorted(set(match) - _MATCHES)
    if strange:
        raise SwitchError(f"a match has no {', '.join(strange)}; it has {', '.join(sorted(_MATCHES))}")
    values = {key: value for key, value in order.items() if key != "match"}
    drift = values.get("schema_drift")
    if drift is True:
        values["schema_drift"] = DRIFTS[0]
    elif drift and drift not in DRIFTS:
        raise SwitchError(f"schema_drift is true or one of {', '.join(DRIFTS)}, not {drift!r}")
    values["headers"] = {str(key): str(value) for key, value in (values.get("headers") or {}).items()}
    times = values.get("n", 1)
    if not isinstance(values.get("skip", 0), int) or not (times is None or (isinstance(times, int) and times > 0)):
        raise SwitchError("skip is a whole number, n one above zero (or null: until it is removed)")
    fault = Fault(match=Match(**match), **values)
    if fault.name == "none":
        raise SwitchError(
            "a fault does something: give status, reset, truncate, slow_seconds, apply, "
            "html_block_page, schema_drift or empty"
        )
    return fault


class FaultBook:
    """The rules in force, with what is left of each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[list[Any]] = []

    def add(self, fault: Fault) -> int:
        """Put a rule at the end of the book; gives the number of rules."""
        with self._lock:
            self._rules.append([fault, fault.skip, fault.n])
            return len(self._rules)

    def clear(self) -> int:
        """Remove all rules; gives their number."""
        with self._lock:
            count = len(self._rules)
            self._rules.clear()
            return count

    def take(self, call: Call, kind: str) -> Fault | None:
        """The fault for this call, if one is due; uses it up."""
        with self._lock:
            for rule in self._rules:
                fault, skip, left = rule
                if not fault.match.fits(call, kind):
                    continue
                if skip > 0:
                    rule[1] -= 1
                    return None
                if left is not None:
                    rule[2] = left - 1
                    if rule[2] <= 0:
                        self._rules.remove(rule)
                return fault
            return None

    def view(self) -> list[dict[str, Any]]:
        """The rules in force, for reading."""
        with self._lock:
            return [
                {"fault": fault.name, "match": vars(fault.match), "skip": skip, "left": left}
                for fault, skip, left in self._rules
            ]
