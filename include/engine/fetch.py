"""Asking for one thing: wait for the turn, send, store, tell what came back; again, where a fault may pass.

Promises: network errors, 423, 429, 5xx and what a source says may pass are tried again at most three times with
growing waits, Retry-After and the host group's own wait are honoured; every request sent has its own fetch row; a block
page stops the whole host group. Never: nothing is sent without a turn, without a trusted lease, or after the worker was
asked to stop.
"""

from __future__ import annotations

import email.utils
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import httpx

from include.contract import (
    Amended,
    Answer,
    AnswerClass,
    AnswerError,
    Credentials,
    DefiniteRefusal,
    Request,
    Stream,
)
from include.engine import fetches, hosts
from include.engine.db import Connection
from include.engine.http import Received, send
from include.engine.lease import Cycle
from include.engine.raw import RawStore

RETRIES = fetches.MOST_TRIES - 1
FIRST_WAIT_SECONDS = 2.0
# A Retry-After longer than this is not waited for under a lease: it stops the host group instead.
LONGEST_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Asker:
    """What asking needs, the same for a whole slice.

    `may_go_on` says no once the worker should stop or may no longer trust its lease; `nap` sleeps that many
    seconds; `patient` is True where polls go first.
    """

    connection: Connection
    http: httpx.Client
    raw: RawStore
    credentials: Credentials
    stream: Stream
    cycle: Cycle
    patient: bool
    may_go_on: Callable[[], bool]
    nap: Callable[[float], None]


@dataclass(frozen=True)
class Fetched:
    """What asking came to: the class, the last fetch row, further pages, and the error in words where there is one.

    `amended` is the request to be sent in its place, where the upstream refused all of it for a part.
    """

    request: Request
    answer_class: AnswerClass
    fetch_id: int
    more: tuple[Request, ...] = ()
    error: str | None = None
    blocked_until: datetime | None = None
    refusal: str | None = None
    may_pass: bool = False
    amended: Amended | None = None


def ask(asker: Asker, request: Request, page: int = 0, head_fetch: int | None = None) -> Fetched:
    """Ask for one request and return what came of it.

    Raises:
        hosts.Blocked: the host group is stopped; nothing was sent.
        hosts.Stopped: the worker must stop; nothing more was sent.
        OSError: the raw store cannot be written.
    """
    validators = fetches.validators(asker.connection, asker.stream.name, request.key) if page == 0 else {}
    for attempt in range(1, RETRIES + 2):
        sent_at = hosts.wait_for_turn(
            asker.connection,
            asker.stream.host_group.name,
            patient=asker.patient,
            may_go_on=asker.may_go_on,
            nap=asker.nap,
        )
        received = send(asker.http, request, asker.credentials, validators, asker.raw, asker.may_go_on)
        fetched = _take_in(
            asker, request, page, head_fetch, sent_at, received, attempt, has_validators=bool(validators)
        )
        if fetched.answer_class is not AnswerClass.ERROR or not fetched.may_pass:
            return fetched
        wait = max(_retry_after(received, sent_at), FIRST_WAIT_SECONDS * 2 ** (attempt - 1))
        if received.status == httpx.codes.TOO_MANY_REQUESTS:
            wait = max(wait, asker.stream.host_group.busy_wait.total_seconds())
        if wait > LONGEST_WAIT_SECONDS:
            until = hosts.block(
                asker.connection,
                asker.stream.host_group.name,
                f"HTTP {received.status}, to be asked again after {wait:.0f} s",
                timedelta(seconds=wait),
            )
            raise hosts.Blocked(asker.stream.host_group.name, until)
        if attempt <= RETRIES:
            _nap(asker, wait)
    return fetched


def _take_in(
    asker: Asker,
    request: Request,
    page: int,
    head_fetch: int | None,
    sent_at: datetime,
    received: Received,
    attempt: int,
    *,
    has_validators: bool,
) -> Fetched:
    """Tell what came back, write its fetch row and, for a block page, stop the host group."""
    answer_class, error, refusal = AnswerClass.ERROR, received.error, None
    more: tuple[Request, ...] = ()
    may_pass = _may_pass(received)
    amended: Amended | None = None
    if received.status is not None:
        body = asker.raw.body(received.stored.sha256) if received.stored else asker.raw.nothing()
        answer = Answer(request, received.status, received.headers, body, sent_at)
        try:
            answer_class = asker.stream.classify(answer)
            if answer_class in (AnswerClass.DATA, AnswerClass.EMPTY):
                more = tuple(asker.stream.follow(request, answer))
            elif answer_class is AnswerClass.ERROR:
                amended = asker.stream.amend(request, answer)
        except DefiniteRefusal as no:
            answer_class, refusal, error = AnswerClass.ERROR, str(no), str(no)
            may_pass = no.may_pass
        except AnswerError as no:
            answer_class, error = AnswerClass.ERROR, str(no)
            may_pass = may_pass or no.may_pass
        except Exception as bug:
            # An answer whose further pages are not known is not whole.
            answer_class = AnswerClass.ERROR
            error = f"the answer could not be understood: {type(bug).__name__}: {bug}"
        if answer_class is AnswerClass.UNCHANGED and not has_validators:
            answer_class = AnswerClass.ERROR
            error = f"HTTP {received.status} although nothing was held to compare with"
        if answer_class is AnswerClass.ERROR and error is None:
            error = (
                f"{amended.key} is left out: {amended.reason}" if amended else f"HTTP {received.status} instead of data"
            )
    fetch_id = fetches.record(
        asker.connection,
        stream=asker.stream.name,
        cycle_id=asker.cycle.cycle_id,
        attempt=asker.cycle.attempt,
        request=request,
        page=page,
        head_fetch=head_fetch,
        is_last=not more and answer_class in (AnswerClass.DATA, AnswerClass.EMPTY),
        sent_at=sent_at,
        received=received,
        answer_class=answer_class,
        tries=attempt,
        error=error,
    )
    until = None
    if answer_class is AnswerClass.BLOCKED:
        error = f"HTTP {received.status} with a page for people instead of data (fetch {fetch_id})"
        until = hosts.block(asker.connection, asker.stream.host_group.name, error)
    return Fetched(request, answer_class, fetch_id, more, error, until, refusal, may_pass, amended)


def _may_pass(received: Received) -> bool:
    """Say whether a fault is of the kind that passes by itself."""
    return received.status is None or received.status in (423, 429) or received.status >= 500


def _retry_after(received: Received, sent_at: datetime) -> float:
    """Return the seconds that the upstream asks us to wait, 0 where it does not; both forms of the header.

    An instant counts from the upstream's own clock, and from ours where it does not tell its time.
    """
    text = received.headers.get("retry-after", "").strip()
    if text.isdigit():
        return float(text)
    try:
        at, date = email.utils.parsedate_to_datetime(text), received.headers.get("date")
        since = email.utils.parsedate_to_datetime(date) if date else sent_at
        return max((at - since).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0


def _nap(asker: Asker, seconds: float) -> None:
    while seconds > 0:
        if not asker.may_go_on():
            raise hosts.Stopped("Stopped while waiting to ask again; nothing more was sent.")
        asker.nap(min(seconds, hosts.LONGEST_NAP))
        seconds -= hosts.LONGEST_NAP
