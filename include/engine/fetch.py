"""Asking for one thing: wait for the turn, send, store, tell what came back; again, where a fault may pass.

Promises: network errors, 423, 429, 5xx and what a source says may pass are tried again at most three times with
growing waits, Retry-After and the host group's own wait are honoured; every request sent has its own fetch row; a block
page stops the whole host group. Never: nothing is sent without a turn, without a trusted lease, or after the worker was
asked to stop.
"""

from __future__ import annotations

import email.utils
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import httpx

from include.contract import (
    Amended,
    Answer,
    AnswerClass,
    AnswerError,
    Credentials,
    DefiniteRefusal,
    Key,
    QuotaUsedUp,
    Request,
    Stream,
)
from include.engine import archives, fetches, hosts, marks
from include.engine.credentials import fingerprint
from include.engine.db import Line, told
from include.engine.frontier import split
from include.engine.http import Received, send
from include.engine.lease import Cycle
from include.engine.raw import RawStore

RETRIES = fetches.MOST_TRIES - 1
FIRST_WAIT_SECONDS = 2.0
# A Retry-After longer than this is not waited for under a lease: it stops the host group instead.
LONGEST_WAIT_SECONDS = 60.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Asker:
    """What asking needs, the same for a whole slice.

    `may_go_on` says no once the worker should stop or may no longer trust its lease; `nap` sleeps that many
    seconds; `patient` is True where polls go first.
    """

    line: Line
    http: httpx.Client
    raw: RawStore
    credentials: Credentials
    stream: Stream
    cycle: Cycle
    patient: bool
    may_go_on: Callable[[], bool]
    nap: Callable[[float], None]

    @property
    def fingerprints(self) -> list[str]:
        """The keys that may be used, by what may be shown of them."""
        known = [key.fingerprint for key in self.credentials.keys]
        if known or self.stream.host_group.quota is None:
            return known
        return [fingerprint(secret) for secret in self.credentials.secrets[:1]]

    def key(self, fingerprint: str | None) -> Key | None:
        """The key of a fingerprint, where the connection holds keys that are chosen for each request."""
        return next((key for key in self.credentials.keys if key.fingerprint == fingerprint), None)

    @property
    def leaves(self) -> int:
        """How many of each key's requests of a day are not for this cycle."""
        quota = self.stream.host_group.quota
        return self.stream.leaves_quota + (quota.kept_for_polls if quota and self.patient else 0)

    def wait_for_turn(self) -> hosts.Turn:
        """Wait until the upstream may be asked (see `hosts.wait_for_turn`)."""
        return self.line.kept(
            lambda connection: hosts.wait_for_turn(
                connection,
                self.stream.host_group.name,
                patient=self.patient,
                may_go_on=self.may_go_on,
                nap=self.nap,
                keys=self.fingerprints,
                leaves=self.leaves,
            )
        )


@dataclass(frozen=True)
class Fetched:
    """What asking came to: the class, the last fetch row, further pages, and the error in words where there is one.

    `amended` is the request to be sent in its place, where the upstream refused all of it for a part. `wait` is how
    long the source says that asking again is of no use.
    """

    request: Request
    answer_class: AnswerClass
    fetch_id: int
    more: Sequence[Request] = ()
    found: Sequence[Request] = ()
    cursor: Mapping[str, Any] | None = None
    error: str | None = None
    blocked_until: datetime | None = None
    refusal: str | None = None
    may_pass: bool = False
    is_used_up: bool = False
    amended: Amended | None = None
    wait: timedelta = timedelta(0)


def ask(
    asker: Asker,
    request: Request,
    page: int = 0,
    head_fetch: int | None = None,
    *,
    is_awaited: bool = False,
    left_out: Collection[str] = (),
) -> Fetched:
    """Ask for one request and return what came of it.

    Args:
        asker: with what it is asked.
        request: what is asked for.
        page: its place in its unit.
        head_fetch: the fetch of the unit's first page, where it has one already.
        is_awaited: other pages of its unit are still to be asked for.
        left_out: keys of the parts that were left out of it; to be refused for one of them again is an error.

    Raises:
        hosts.Blocked: the host group is stopped; nothing was sent.
        hosts.UsedUp: no key has requests left today.
        hosts.Stopped: the worker must stop; nothing more was sent.
        OSError: the raw store cannot be written.
    """
    if request.read_from is not None:
        return _read(asker, request, request.read_from)
    group = asker.stream.host_group
    validators: dict[str, str] = {}
    # A list that leads to others is read again to be followed again; "unchanged" would lead nowhere.
    if page == 0 and not (request.kind == "list" and asker.stream.follows):
        validators = asker.line.kept(lambda c: fetches.validators(c, asker.stream.name, request.key))
    attempt = 0
    while attempt <= RETRIES:
        turn = asker.wait_for_turn()
        taken = _sent(asker, request, validators, turn)
        received = taken.received
        attempt += 1
        fetched = _take_in(
            asker,
            request,
            page,
            head_fetch,
            turn,
            received,
            attempt,
            has_validators=bool(validators) or request.archive is not None,
            is_awaited=is_awaited,
            left_out=left_out,
        )
        if taken.conclude is not None and fetched.answer_class is AnswerClass.DATA:
            taken.conclude(fetched.fetch_id)
        if fetched.is_used_up and turn.key is not None:
            # Another key may have requests left; where none has, waiting for the turn says so.
            asker.line.kept(partial(hosts.use_up, group=group.name, key=turn.key))
            attempt -= 1
            continue
        if fetched.answer_class is not AnswerClass.ERROR or not fetched.may_pass:
            return fetched
        wait = max(_retry_after(received, turn.sent_at), FIRST_WAIT_SECONDS * 2 ** (attempt - 1))
        if received.status == httpx.codes.TOO_MANY_REQUESTS:
            wait = max(wait, group.busy_wait.total_seconds())
        wait = max(wait, fetched.wait.total_seconds())
        if wait > LONGEST_WAIT_SECONDS:
            said = f" ({fetched.error})" if fetched.wait else ""
            why = f"HTTP {received.status}, to be asked again after {wait:.0f} s{said}"
            raise hosts.Blocked(group.name, stop_group(asker, why, timedelta(seconds=wait)))
        if attempt <= RETRIES:
            _nap(asker, wait)
    return fetched


def _sent(asker: Asker, request: Request, validators: Mapping[str, str], turn: hosts.Turn) -> archives.Taken:
    if request.archive is not None:
        return archives.receive(asker, request, turn)
    key = asker.key(turn.key)
    return archives.Taken(send(asker.http, request, asker.credentials, validators, asker.raw, asker.may_go_on, key))


def _read(asker: Asker, request: Request, read_from: tuple[str, str]) -> Fetched:
    """Take what another stream has stored for an answer; where it holds nothing, that is not published yet."""
    sent_at, received = asker.line.kept(lambda connection: fetches.of_another(connection, *read_from))
    if received is not None:
        at = hosts.Turn(sent_at, None)
        return _take_in(asker, request, 0, None, at, received, 1, has_validators=False, is_awaited=False, left_out=())
    error = f"{read_from[0]} holds nothing of {read_from[1]} yet"
    record = partial(
        fetches.record,
        stream=asker.stream.name,
        cycle_id=asker.cycle.cycle_id,
        attempt=asker.cycle.attempt,
        request=request,
        page=0,
        head_fetch=None,
        is_last=False,
        sent_at=sent_at,
        received=Received(None),
        answer_class=AnswerClass.NOT_YET,
        tries=1,
        error=error,
    )
    return Fetched(request, AnswerClass.NOT_YET, asker.line.kept(record), error=error)


def _take_in(
    asker: Asker,
    request: Request,
    page: int,
    head_fetch: int | None,
    turn: hosts.Turn,
    received: Received,
    attempt: int,
    *,
    has_validators: bool,
    is_awaited: bool,
    left_out: Collection[str],
) -> Fetched:
    """Tell what came back, write its fetch row and, for a block page, stop the host group."""
    answer_class, error, refusal = AnswerClass.ERROR, received.error, None
    more: list[Request] = []
    found: list[Request] = []
    cursor: Mapping[str, Any] | None = None
    may_pass, is_used_up = _may_pass(received), False
    amended: Amended | None = None
    pause = timedelta(0)
    if received.status is not None:
        body = asker.raw.body(received.stored.sha256) if received.stored else asker.raw.nothing()
        answer = Answer(request, received.status, received.headers, body, turn.sent_at, tries=attempt)
        try:
            answer_class = asker.stream.classify(answer)
            if answer_class in (AnswerClass.DATA, AnswerClass.EMPTY):
                more, found = split(asker.stream, request, answer)
                cursor = asker.stream.cursor_after(request, answer)
            elif answer_class is AnswerClass.ERROR:
                # Of later pages nothing is left out: those before were of the whole.
                amended = asker.stream.amend(request, answer) if page == 0 else None
                amended = None if amended and amended.key in left_out else amended
        except DefiniteRefusal as no:
            answer_class, refusal, error = AnswerClass.ERROR, str(no), str(no)
            may_pass = no.may_pass
        except QuotaUsedUp as no:
            is_used_up, may_pass = True, False
            error = str(no) or "the upstream says that the key has no requests left today"
            refusal = error if not asker.fingerprints else None
        except AnswerError as no:
            answer_class, error = AnswerClass.ERROR, str(no)
            may_pass, pause = may_pass or no.may_pass, no.wait
        except Exception as bug:
            # An answer whose further pages are not known is not whole.
            answer_class = AnswerClass.ERROR
            error = f"the answer could not be understood: {type(bug).__name__}: {bug}"
        if answer_class is AnswerClass.UNCHANGED and not has_validators:
            answer_class = AnswerClass.ERROR
            error = f"HTTP {received.status} although nothing was held to compare with"
        elif answer_class is AnswerClass.UNCHANGED and request.awaits_change:
            answer_class, error = AnswerClass.NOT_YET, "the upstream still has what was taken in before"
        if answer_class is AnswerClass.ERROR and error is None:
            what = "instead of data" if received.stored and received.stored.size else "with nothing in it"
            error = f"{amended.key} is left out: {amended.reason}" if amended else f"HTTP {received.status} {what}"
    error, refusal = (told(text) if text else text for text in (error, refusal))
    is_answered = answer_class in (AnswerClass.DATA, AnswerClass.EMPTY)
    # Nothing that was received is lost, nor asked for again, because the database was away meanwhile.
    record = partial(
        fetches.record,
        stream=asker.stream.name,
        cycle_id=asker.cycle.cycle_id,
        attempt=asker.cycle.attempt,
        request=request,
        page=page,
        head_fetch=head_fetch,
        is_last=is_answered and not more and not is_awaited,
        sent_at=turn.sent_at,
        received=received,
        answer_class=answer_class,
        tries=attempt,
        goes_on=may_pass or amended is not None or (is_used_up and turn.key is not None),
        left_out=amended,
        error=error,
    )
    fetch_id = asker.line.kept(record)
    if answer_class in (AnswerClass.ERROR, AnswerClass.BLOCKED):
        with marks.bound(fetch_id=fetch_id):
            log.info("%s: %s", request.key, error or f"HTTP {received.status} with a page for people instead of data")
    until = None
    if answer_class is AnswerClass.BLOCKED:
        error = f"HTTP {received.status} with a page for people instead of data (fetch {fetch_id})"
        until = stop_group(asker, error)
    return Fetched(
        request,
        answer_class,
        fetch_id,
        more,
        found,
        cursor,
        error,
        until,
        refusal,
        may_pass,
        is_used_up,
        amended,
        pause,
    )


def stop_group(asker: Asker, why: str, penalty: timedelta | None = None) -> datetime:
    """Stop the host group for its penalty time, or the one given, and say why; return until when."""
    return asker.line.kept(lambda connection: hosts.block(connection, asker.stream.host_group.name, why, penalty))


def _may_pass(received: Received) -> bool:
    """Say whether a fault is of the kind that passes by itself."""
    return received.status is None or received.status in (423, 429) or received.status >= 500


def _retry_after(received: Received, sent_at: datetime) -> float:
    """Return the seconds that the upstream asks us to wait, 0 where it does not; both forms of the header, or a reset.

    An instant counts from the upstream's own clock, and from ours where it does not tell its time.
    """
    text = received.headers.get("retry-after", "").strip()
    if text.isdigit():
        return float(text)
    reset = received.headers.get("x-ratelimit-reset", "").strip()
    if not text and received.status == httpx.codes.TOO_MANY_REQUESTS and reset.isdigit():
        # Seconds since 1970, by the upstream's clock; a small number counts from now.
        return max(float(reset) - sent_at.timestamp(), 0.0) if len(reset) > 9 else float(reset)
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
