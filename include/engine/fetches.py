"""The ledger of requests: one row for each request sent, written before its answer is read.

Promises: a fetch row follows its raw object, needs no token and is never changed but for when it was applied.
Never: no address, key or secret is in a row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from include.contract import Amended, Answer, AnswerClass, Request
from include.engine.db import Connection, Row, query
from include.engine.http import Received
from include.engine.raw import RawStore, Stored

# How often one thing is asked for until a fault that may pass counts as an answer.
MOST_TRIES = 4


@dataclass(frozen=True)
class Held:
    """A stored asking of a unit: its answers in page order, and when and by which cycle they were asked for."""

    unit: str
    session_date: date | None
    fetch_ids: tuple[int, ...]
    sent_at: datetime
    answers: tuple[Answer, ...]
    classes: tuple[AnswerClass, ...]
    hashes: tuple[bytes, ...]
    size: int


def record(
    connection: Connection,
    *,
    stream: str,
    cycle_id: int,
    attempt: int,
    request: Request,
    page: int,
    head_fetch: int | None,
    is_last: bool,
    sent_at: datetime,
    received: Received,
    answer_class: AnswerClass,
    tries: int,
    goes_on: bool = False,
    left_out: Amended | None = None,
    error: str | None = None,
) -> int:
    """Write the fetch row, and the raw object's where it is new, in one transaction; return the fetch's number.

    A row that is there already stays the only one: who cannot know whether it was written may write it again. `goes_on`
    says that an error is not the last word, and `left_out` what the request that follows it will be without.
    """
    stored = received.stored
    with connection.transaction():
        asked = {"stream": stream, "cycle": cycle_id, "attempt": attempt, "key": request.key, "sent_at": sent_at}
        written = connection.execute(query("fetches.written"), asked).fetchone()
        if written is not None:
            return int(written["fetch_id"])
        if stored is not None:
            connection.execute(
                query("fetches.raw_object"),
                {"sha256": stored.sha256, "size": stored.size, "stored_size": stored.stored_size},
            )
        row = connection.execute(
            query("fetches.record"),
            {
                "stream": stream,
                "cycle": cycle_id,
                "attempt": attempt,
                "key": request.key,
                "unit": request.unit,
                "page": page,
                "head": head_fetch,
                "is_last": is_last,
                "session_date": request.session_date,
                "sent_at": sent_at,
                "class": str(answer_class),
                "status": received.status,
                "etag": received.headers.get("etag"),
                "last_modified": received.headers.get("last-modified"),
                "headers": json.dumps(dict(received.headers)),
                "sha256": stored.sha256 if stored else None,
                "size": stored.size if stored else None,
                "masked": stored.masked if stored else False,
                "tries": tries,
                "goes_on": goes_on,
                "left_out": json.dumps({"key": left_out.key, "reason": left_out.reason}) if left_out else None,
                "error": (error or received.error or "")[:1000] or None,
                "about": json.dumps(dict(request.about)) if request.about else None,
            },
        ).fetchone()
    assert row is not None
    return int(row["fetch_id"])


def of_another(connection: Connection, stream: str, unit: str) -> tuple[datetime, Received | None]:
    """Return the first page of what a stream holds of a unit, as if it had come just now, and the instant of that."""
    row = connection.execute(query("fetches.of_another"), {"stream": stream, "unit": unit}).fetchone()
    assert row is not None
    if row["sha256"] is None:
        return row["at"], None
    stored = Stored(bytes(row["sha256"]), row["size"], row["stored_size"], row["masked"])
    return row["at"], Received(row["http_status"], row["headers"], stored)


def validators(connection: Connection, stream: str, key: str) -> dict[str, str]:
    """Return the request headers that let an upstream answer 304 where it holds nothing new."""
    row = connection.execute(query("fetches.validators"), {"stream": stream, "key": key}).fetchone()
    headers: dict[str, str] = {}
    if row and row["etag"]:
        headers["If-None-Match"] = row["etag"]
    if row and row["last_modified"]:
        headers["If-Modified-Since"] = row["last_modified"]
    return headers


def answered_keys(connection: Connection, cycle_id: int) -> dict[str, AnswerClass]:
    """Return the last answer's class of each key that a cycle has asked for, where asking again is of no use.

    An asking that was cut off (pages are missing, or tries are left) is no answer.
    """
    rows = connection.execute(query("fetches.answered"), {"cycle": cycle_id, "most_tries": MOST_TRIES}).fetchall()
    return {row["request_key"]: AnswerClass(row["answer_class"]) for row in rows}


def answered_in_run(
    connection: Connection, stream: str, run_id: str, cycle_id: int, keys: Iterable[str]
) -> dict[str, AnswerClass]:
    """Return the class of each of these keys that another chunk of the run has had an answer to, read and applied.

    One request may serve several chunks: it is sent by the first that comes to it.
    """
    rows = connection.execute(
        query("fetches.answered_in_run"),
        {"stream": stream, "run_id": run_id, "cycle": cycle_id, "keys": list(keys)},
    ).fetchall()
    return {row["request_key"]: AnswerClass(row["answer_class"]) for row in rows}


def open_askings(connection: Connection, cycle_id: int, handed_on: Iterable[int]) -> dict[int, str]:
    """Return the askings that a cycle goes on with, as first fetch → key.

    They are its own, or were handed on to it; pages are missing, and the last one that was asked for had an answer.
    """
    rows = connection.execute(
        query("fetches.open_askings"),
        {"cycle": cycle_id, "handed_on": list(handed_on), "most_tries": MOST_TRIES},
    ).fetchall()
    return {row["head"]: row["request_key"] for row in rows}


def left_out(connection: Connection, cycle_id: int) -> list[str]:
    """Return the keys of what a cycle left out of its requests since it began."""
    rows = connection.execute(query("fetches.left_out"), {"cycle": cycle_id}).fetchall()
    return [row["key"] for row in rows]


def last_asking(connection: Connection, cycle_id: int, key: str) -> int | None:
    """Return the first fetch of the last whole asking of a key that a cycle ended, None where there is none."""
    row = connection.execute(query("fetches.last_asking"), {"cycle": cycle_id, "key": key}).fetchone()
    return row["head"] if row else None


def had(connection: Connection, stream: str, keys: Sequence[str]) -> set[str]:
    """Return those of some keys of which a whole answer is stored."""
    rows = connection.execute(query("fetches.had"), {"stream": stream, "keys": list(keys)}).fetchall()
    return {row["request_key"] for row in rows}


def held_keys(connection: Connection, stream: str, sessions: Sequence[date]) -> dict[str, date]:
    """Return the keys of these sessions whose answers were applied, with their session."""
    rows = connection.execute(query("fetches.held"), {"stream": stream, "sessions": list(sessions)}).fetchall()
    return {row["request_key"]: row["session_date"] for row in rows}


def not_applied(connection: Connection, stream: str, cycle_id: int, run_id: str | None) -> list[int]:
    """Return the heads of askings that were stored but never applied or quarantined, oldest first.

    What another running cycle has stored is its own to apply. A chunk looks only at its own run.
    """
    rows = connection.execute(
        query("fetches.not_applied"), {"stream": stream, "run_id": run_id, "cycle": cycle_id}
    ).fetchall()
    return [row["head"] for row in rows]


def askings_of_unit(connection: Connection, stream: str, unit: str) -> list[int]:
    """Return the heads of every stored asking of a unit that can be parsed, oldest first."""
    rows = connection.execute(query("fetches.askings_of_unit"), {"stream": stream, "unit": unit}).fetchall()
    return [row["head"] for row in rows]


def newest_parser(connection: Connection, stream: str, unit: str) -> int:
    """Return the version of the newest parser that has read a unit, 0 where none has."""
    row = connection.execute(query("fetches.newest_parser"), {"stream": stream, "unit": unit}).fetchone()
    assert row is not None
    return int(row["newest"])


def read_by_newer(connection: Connection, stream: str, units: Iterable[str], parser_version: int) -> set[str]:
    """Return those units that a newer parser has read."""
    rows = connection.execute(
        query("fetches.read_by_newer"), {"stream": stream, "units": list(units), "parser_version": parser_version}
    ).fetchall()
    return {row["unit"] for row in rows}


def units_between(connection: Connection, stream: str, start: date, end: date) -> list[str]:
    """Return the units with stored answers for session dates of a range, the one that was asked for first first."""
    rows = connection.execute(query("fetches.units_between"), {"stream": stream, "start": start, "end": end}).fetchall()
    return [row["unit"] for row in rows]


def units_with_answers(connection: Connection, stream: str, units: Iterable[str]) -> list[str]:
    """Return those of some units that have stored answers, in name order."""
    rows = connection.execute(query("fetches.units_with_answers"), {"stream": stream, "units": list(units)}).fetchall()
    return [row["unit"] for row in rows]


def load(connection: Connection, raw: RawStore, head: int, request: Request | None = None) -> Held:
    """Return a stored asking with its answers, read from the raw store when they are opened.

    `request` gives what a row does not hold (the address); parsing needs only the key, unit and session date.
    """
    rows = connection.execute(query("fetches.asking"), {"head": head}).fetchall()
    return Held(
        unit=rows[0]["unit"],
        session_date=rows[0]["session_date"],
        fetch_ids=tuple(row["fetch_id"] for row in rows),
        sent_at=max(row["sent_at"] for row in rows),
        answers=tuple(_answer(row, raw, request) for row in rows),
        classes=tuple(AnswerClass(row["answer_class"]) for row in rows),
        hashes=tuple(bytes(row["sha256"]) for row in rows),
        size=sum(row["size"] or 0 for row in rows),
    )


def _answer(row: Row, raw: RawStore, request: Request | None) -> Answer:
    headers: Mapping[str, Any] = row["headers"]
    return Answer(
        request=request
        or Request(
            key=row["request_key"],
            url="",
            unit=row["unit"],
            session_date=row["session_date"],
            about=row["about"] or {},
        ),
        status=row["http_status"] or 0,
        headers=headers,
        body=raw.body(bytes(row["sha256"])),
        sent_at=row["sent_at"],
        fetch_id=row["fetch_id"],
    )


def mark_applied(
    connection: Connection, fetch_ids: Iterable[int], cycle_id: int, parser_version: int, rows_read: int
) -> None:
    """Note that answers were applied; called in the transaction that applies them."""
    connection.execute(
        query("fetches.mark_applied"),
        {"ids": list(fetch_ids), "cycle": cycle_id, "parser_version": parser_version, "rows": rows_read},
    )
