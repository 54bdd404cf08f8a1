"""The text of a filing: asked for one way after the other, every answer kept raw, and found again where it was had.

Promises: requests go through the host groups and the ledgers of keys like every other one; "there is none" (014 and the
like), "there is nothing in it" and "nobody can be asked now" are three different things, and the first is believed only
where every way says so. Never: a text is asked for again whose answers are stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import httpx

from include.bodies import Reading
from include.contract import Answer, AnswerClass, Credentials, Mode, ParseError, Request
from include.engine import fetch, hosts
from include.engine.db import Connection, Line, query
from include.engine.fetch import Asker
from include.engine.http import client
from include.engine.lease import Cycle
from include.engine.raw import RawObjectDamaged, RawObjectMissing, RawStore


@dataclass(frozen=True)
class Found:
    """What came of looking for a text.

    `text`: here it is, with the answers that hold it; `absent`: every way says that there is no document; `empty`:
    there is one, but no text in it yet; `away`: whoever has it cannot be asked before `until`; `unknown`: there was an
    error that may pass, which says nothing about the document; `failed`: another error, in `why`.
    """

    state: Literal["text", "absent", "empty", "away", "unknown", "failed"]
    text: str = ""
    reading: str = ""
    fetches: tuple[int, ...] = ()
    why: str = ""
    until: datetime | None = None


class Desk:
    """What looking for texts needs, for one worker."""

    def __init__(
        self,
        line: Line,
        raw: RawStore,
        credentials: Credentials,
        readings: Sequence[Reading],
        *,
        stop: Callable[[], bool] = lambda: False,
        nap: Callable[[float], None] = time.sleep,
    ) -> None:
        self._line, self._raw, self._readings = line, raw, tuple(readings)
        self._credentials, self._stop, self._nap = credentials, stop, nap
        self._http: httpx.Client | None = None

    def close(self) -> None:
        """Close the connections to upstreams."""
        if self._http is not None:
            self._http.close()

    def find(self, rcept_no: str, title: str, attempt: int, may_go_on: Callable[[], bool]) -> Found:
        """Ask for a filing's text, one way after the other, until one has it.

        Args:
            rcept_no: the filing.
            title: its title, which tells the document itself from its attachments.
            attempt: counts up with each job of the filing; kept with the requests.
            may_go_on: False ends it between two requests.

        Raises:
            hosts.Stopped: `may_go_on` said no.
        """
        said: list[Found] = []
        for reading in self._readings:
            found = self._by(reading, rcept_no, title, attempt, may_go_on)
            if found.state == "text":
                return found
            said.append(found)
        why = "; ".join(f"{each.reading}: {each.why}" for each in said)
        # Who cannot be asked now may have it: nothing is concluded from the others. Where one says that there is none,
        # an error of another one is no reason to give the filing up.
        order = ("away", "absent", "empty", "unknown", "failed")
        return replace(min(said, key=lambda each: order.index(each.state)), why=why)

    def _by(self, reading: Reading, rcept_no: str, title: str, attempt: int, may_go_on: Callable[[], bool]) -> Found:
        asker = self._asker(reading, rcept_no, attempt, may_go_on)
        waiting, numbers, answers = [reading.request(rcept_no)], list[int](), list[Answer]()
        try:
            while waiting:
                request = waiting.pop(0)
                # The head of the unit is its first fetch, so that the pages of it stand together.
                fetched = fetch.ask(
                    asker, request, len(numbers), numbers[0] if numbers else None, is_awaited=bool(waiting)
                )
                if fetched.answer_class is AnswerClass.ABSENT:
                    return Found("absent", reading=reading.name, why="there is no such document")
                if fetched.answer_class is AnswerClass.BLOCKED:
                    return Found("away", reading=reading.name, why=fetched.error or "", until=fetched.blocked_until)
                if fetched.refusal:
                    return Found("away", reading=reading.name, why=fetched.refusal)
                if fetched.answer_class not in (AnswerClass.DATA, AnswerClass.EMPTY):
                    why = fetched.error or str(fetched.answer_class)
                    return Found("unknown" if fetched.may_pass else "failed", reading=reading.name, why=why)
                numbers.append(fetched.fetch_id)
                waiting.extend(fetched.more)
        except (hosts.Blocked, hosts.UsedUp) as no:
            return Found("away", reading=reading.name, why=str(no), until=no.until)
        answers = self._line.kept(lambda connection: _stored(connection, self._raw, numbers))
        return self._read(reading, rcept_no, title, answers, tuple(numbers))

    def again(self, rcept_no: str, title: str, reading_name: str, numbers: Sequence[int]) -> Found | None:
        """Return the text from the answers that hold it already; None where they do not do any more."""
        for reading in self._readings:
            if reading.name == reading_name:
                answers = self._line.kept(lambda connection: _stored(connection, self._raw, numbers))
                found = self._read(reading, rcept_no, title, answers, tuple(numbers))
                return found if found.state == "text" else None
        return None

    def _read(
        self, reading: Reading, rcept_no: str, title: str, answers: Sequence[Answer], numbers: tuple[int, ...]
    ) -> Found:
        try:
            text = reading.text(rcept_no, title, answers).strip() if answers else ""
        except (ParseError, RawObjectDamaged, RawObjectMissing) as error:
            # An archive that cannot be opened, as while it is still being made, is a document without a text yet.
            return Found("empty", reading=reading.name, why=str(error))
        if not text:
            return Found("empty", reading=reading.name, why="there is no text in it")
        return Found("text", text, reading.name, numbers)

    def _asker(self, reading: Reading, rcept_no: str, attempt: int, may_go_on: Callable[[], bool]) -> Asker:
        credentials = self._credentials
        if not reading.with_key:
            credentials = replace(credentials, params={}, headers={}, keys=())
        if self._http is None:
            self._http = client(credentials.user_agent)
        return Asker(
            line=self._line,
            http=self._http,
            raw=self._raw,
            credentials=credentials,
            stream=reading.stream,
            cycle=_job(reading, rcept_no, attempt),
            patient=False,
            may_go_on=lambda: not self._stop() and may_go_on(),
            nap=self._nap,
        )


def _job(reading: Reading, rcept_no: str, attempt: int) -> Cycle:
    """Stand in for a cycle in the ledger of requests: a filing's number is the cycle's, far above any real one."""
    nothing: Mapping[str, object] = {}
    return Cycle(
        cycle_id=int(rcept_no),
        stream=reading.stream.name,
        mode=Mode.POLL,
        slot=rcept_no,
        run_id=None,
        session_date=None,
        window_start=None,
        chunk=nothing,
        cursor=nothing,
        attempt=attempt,
        failed_attempts=0,
        row={},
    )


def _stored(connection: Connection, raw: RawStore, numbers: Sequence[int]) -> list[Answer]:
    rows = connection.execute(query("analysis.stored_body"), {"fetches": list(numbers)}).fetchall()
    return [
        Answer(
            Request(key=row["request_key"], url="", unit=row["unit"], about=row["about"] or {}),
            row["http_status"] or 0,
            row["headers"],
            raw.body(bytes(row["sha256"])),
            row["sent_at"],
            row["fetch_id"],
        )
        for row in rows
    ]
