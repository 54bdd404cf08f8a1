"""The upstream's own newest item, beside the newest one in our copies: whether the Hub itself lags behind.

Promises: an upstream is asked at most once in 24 hours for a data set, with two calls at most, each at its host group's
next turn and counted for its key; that it was asked is written before it is asked, so that whoever dies in between does
not ask again. What could not be asked, or came as something that cannot be read, is not known and never "nothing
newer". Never: an answer that was fetched here is collected; what is found missing is left to the stream's own windows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from include.calendars import last_instant, window_for
from include.contract import (
    Answer,
    AnswerClass,
    AnswerError,
    Ask,
    Credentials,
    DefiniteRefusal,
    Mode,
    ParseError,
    QuotaUsedUp,
    Request,
    Stream,
    Table,
    Unit,
)
from include.engine import drafts, hosts, http, subjects, windows
from include.engine.db import Connection, connect
from include.engine.raw import RawStore
from include.outputs.freshness import SKEW, TTL
from include.outputs.held import Folder

KEPT = "upstream"


@dataclass(frozen=True)
class Looked:
    """What is known of an upstream's newest item: `is_newer` than ours, or None where that is not known."""

    is_newer: bool | None
    words: str


@dataclass(frozen=True)
class _Asked:
    """What the upstream said: its newest session, None where it has nothing of what it was asked for.

    `subject` is what it said that of, where it is one of many, as a series.
    """

    newest: date | None
    is_known: bool
    words: str
    subject: str | None = None

    def facts(self, at: datetime) -> dict[str, Any]:
        newest = self.newest.isoformat() if self.newest else None
        told = {"newest": newest, "is_known": self.is_known, "words": self.words, "subject": self.subject}
        return {"at": at.isoformat(), **told}


@dataclass(frozen=True)
class Upstream:
    """How a data set's upstream is asked: the stream that collects it, the table, and with what."""

    url: str
    stream: Stream
    table: Table
    credentials: Credentials
    stop: Callable[[], bool] = lambda: False

    def look(self, folder: Folder, held: Callable[[str | None], date | None], now: datetime) -> Looked:
        """Say whether the upstream has something newer than what is held; asked for it once a day at most.

        Args:
            folder: where that it was asked is kept.
            held: gives the newest day in our copies, of one subject where one is named.
            now: by this machine's clock, like everything else in the folder.
        """
        with folder.alone(f"{KEPT}~{self.stream.name}"):
            kept = folder.kept(KEPT, self.stream.name)
            if kept is None or not _is_recent(kept, now):
                folder.keep(KEPT, self.stream.name, _Asked(None, False, "it was asked and no answer kept").facts(now))
                kept = self._ask(held(None)).facts(now)
                folder.keep(KEPT, self.stream.name, kept)
        return _compared(kept, held(kept.get("subject")))

    def _ask(self, held: date | None) -> _Asked:
        connection = connect(self.url, application="daybook freshness", statement_timeout=30, autocommit=True)
        try:
            windows.declare(self.url, (self.stream,))
            requests = self._requests(connection, held)
            if not requests:
                return _Asked(held, True, "the calendar says that nothing newer is due")
            with (
                http.client(self.credentials.user_agent) as client,
                tempfile.TemporaryDirectory(prefix="upstream-", dir=drafts.here()) as place,
            ):
                said = _Asked(None, False, "")
                for request in requests:
                    said = self._one(connection, client, RawStore(place), request)
                    if said.newest is not None or not said.is_known:
                        break
                return said
        except (hosts.Blocked, hosts.UsedUp, hosts.Stopped) as no:
            return _Asked(None, False, str(no))
        finally:
            connection.close()

    def _requests(self, connection: Connection, held: date | None) -> list[Request]:
        """What the stream's own plan asks first of the newest session, and of the first one that we lack.

        An upstream that has anything newer has the first one; one that is late with the newest has it all the same.
        """
        now, schedule = windows.now(connection), self.stream.schedule
        days = windows.days_of(connection, self.stream)
        newest = window_for(self.stream, last_instant(schedule.cron, schedule.timezone, now), days).session_date
        if newest is None:
            return []
        lacking = days.sessions(max(held + timedelta(days=1), self.stream.first_session) if held else newest, newest)
        named = subjects.held(connection, self.stream)
        found: dict[str, Request] = {}
        for session in dict.fromkeys((*lacking[-1:], *lacking[:1])):
            ask = Ask(Mode.POLL, (session,), newest=session, checkpoint=held, at=now, subjects=named)
            planned = (request for request in self.stream.plan(ask) if request.read_from is None)
            found.update({request.key: request for request in islice(planned, 1)})
        return list(found.values())

    def _one(self, connection: Connection, client: Any, raw: RawStore, request: Request) -> _Asked:
        group, known = self.stream.host_group, self.credentials.keys
        turn = hosts.wait_for_turn(
            connection,
            group.name,
            patient=True,
            may_go_on=lambda: not self.stop(),
            nap=time.sleep,
            keys=[key.fingerprint for key in known],
            leaves=self.stream.leaves_quota + (group.quota.kept_for_polls if group.quota else 0),
        )
        key = next((each for each in known if each.fingerprint == turn.key), None)
        received = http.send(client, request, self.credentials, {}, raw, lambda: not self.stop(), key)
        if received.status is None:
            return _Asked(None, False, f"no answer: {received.error}")
        body = raw.body(received.stored.sha256) if received.stored else raw.nothing()
        answer = Answer(request, received.status, received.headers, body, turn.sent_at)
        try:
            answer_class = self.stream.classify(answer)
            if answer_class is AnswerClass.BLOCKED:
                hosts.block(connection, group.name, f"a page that keeps us out (HTTP {received.status})")
            if answer_class in (AnswerClass.EMPTY, AnswerClass.ABSENT, AnswerClass.NOT_YET):
                return _Asked(None, True, f"{answer_class} of {request.key}")
            if answer_class is not AnswerClass.DATA:
                return _Asked(None, False, f"{answer_class} of {request.key} (HTTP {received.status})")
            if (told := self.stream.says_newest(answer)) is not None:
                return _Asked(told[1], True, f"{request.key} says {told[1]}", told[0])
            newest = _newest(self.table, self.stream.parse(Unit(request.unit, request.session_date, (answer,))).batches)
        except (AnswerError, DefiniteRefusal, QuotaUsedUp, ParseError) as error:
            return _Asked(None, False, f"{request.key}: {str(error)[:300]}")
        return _Asked(newest, newest is not None, f"{request.key} has {newest or 'no row of this table'}")


def _newest(table: Table, batches: Iterable[Any]) -> date | None:
    if table.session_date is None:
        return None
    at = table.column_names.index(table.session_date)
    return max((row[at] for batch in batches if batch.table.name == table.name for row in batch.rows), default=None)


def _is_recent(kept: Mapping[str, Any], now: datetime) -> bool:
    try:
        return -SKEW <= now - datetime.fromisoformat(kept["at"]) < TTL
    except (KeyError, TypeError, ValueError):
        return False


def _compared(kept: Mapping[str, Any], held: date | None) -> Looked:
    newest = date.fromisoformat(kept["newest"]) if kept["newest"] else None
    when = f"asked at {str(kept['at'])[:16]}Z"
    if not kept["is_known"]:
        return Looked(None, f"the upstream's newest is not known ({kept['words']}; {when})")
    what = f" of {kept['subject']}" if kept.get("subject") else ""
    ours = f"ours ends at {held}" if held else "we have nothing of it"
    if newest is not None and (held is None or newest > held):
        return Looked(True, f"the upstream has {newest}{what}, {ours} ({when})")
    return Looked(False, f"the upstream has nothing newer{what}, {ours} ({kept['words']}; {when})")


def held_until(files: Iterable[Path], day: str, of: tuple[str, str] | None = None) -> date | None:
    """Return the newest day in some copies, the newest file (by name) first; None where there is none.

    Args:
        files: the copies.
        day: the column that it stands in.
        of: a column and a value: only rows that have it count.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    filters = None if of is None else [(of[0], "==", of[1])]
    for file in sorted(files, reverse=True):
        try:
            found = pc.max(pq.read_table(file, columns=[day], filters=filters)[day]).as_py()
        except (OSError, pa.ArrowException, KeyError):
            continue
        if isinstance(found, date):
            return found
    return None
