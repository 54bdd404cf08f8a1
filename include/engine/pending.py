"""Pending keys: what is still to be fetched, or fetched again, and when.

Promises: a key stays until its answer is held or it is given up with an alert; waiting grows with the tries.
Never: a missing answer is never taken for "no data for ever".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from include.contract import Outdated, PendingReason, Request
from include.engine import incidents
from include.engine.db import Connection, query


@dataclass(frozen=True)
class Due:
    """A pending key whose time has come."""

    key: str
    why: PendingReason
    attempts: int


@dataclass(frozen=True)
class Again:
    """A key to be asked for again; `at` fixes the instant, otherwise the gap grows with the tries.

    `only_if_absent`: a key that is there already keeps its why, its tries and its time.
    """

    key: str
    why: PendingReason
    session_date: date | None
    error: str | None = None
    at: datetime | None = None
    only_if_absent: bool = False


@dataclass(frozen=True)
class LeftOut:
    """Parts of requests that were refused and are not pending yet, by the fetches that say so."""

    fetch_ids: tuple[int, ...]
    entries: tuple[Again, ...]


def due(connection: Connection, stream: str, limit: int = 5_000) -> list[Due]:
    """Return the keys whose time has come, what was discovered first, then what failed; of each the newest session."""
    rows = connection.execute(query("pending.due"), {"stream": stream, "limit": limit}).fetchall()
    return [Due(row["key"], PendingReason(row["why"]), row["attempts"]) for row in rows]


def given_up(connection: Connection, stream: str, keys: Sequence[str]) -> set[str]:
    """Return those of some keys that were given up: no window asks for them, only an operator does."""
    rows = connection.execute(query("pending.given_up"), {"stream": stream, "keys": list(keys)}).fetchall()
    return {row["key"] for row in rows}


def outdated(connection: Connection, stream: str, cycle_id: int, found: Sequence[Outdated]) -> None:
    """Keep what was had and is out of date to be asked for again; what was asked for again since then is not."""
    connection.execute(
        query("pending.outdated"),
        {
            "stream": stream,
            "cycle": cycle_id,
            "keys": [each.key for each in found],
            "sessions": [each.session_date for each in found],
            "units": [each.unit for each in found],
            "covers": [json.dumps(each.covers) for each in found],
            "since": [each.since for each in found],
        },
    )


def left_out(connection: Connection, stream: str) -> LeftOut:
    """Return the parts that an upstream refused, whoever asked, and that nobody has kept to be asked for alone.

    Their fetches stay locked, so that one transaction keeps them; say so with `kept`.
    """
    rows = connection.execute(query("pending.left_out"), {"stream": stream}).fetchall()
    entries = {row["key"]: Again(row["key"], PendingReason.FAILED, row["session_date"], row["reason"]) for row in rows}
    return LeftOut(tuple(row["fetch_id"] for row in rows), tuple(entries.values()))


def kept(connection: Connection, cycle_id: int, parts: LeftOut) -> None:
    """Note that parts that were left out are pending."""
    if parts.fetch_ids:
        values = {"cycle": cycle_id, "fetches": list(parts.fetch_ids)}
        connection.execute(query("pending.left_out_kept"), values)


def waiting(connection: Connection, stream: str, keys: Sequence[str]) -> set[str]:
    """Return those of some keys that are kept for another time, or were given up."""
    rows = connection.execute(query("pending.waiting"), {"stream": stream, "keys": list(keys)}).fetchall()
    return {row["key"] for row in rows}


def lock(connection: Connection, stream: str, keys: Sequence[str]) -> None:
    """Lock the rows of some keys in name order, before any of them is changed."""
    connection.execute(query("pending.lock"), {"stream": stream, "keys": list(keys)})


def done(connection: Connection, stream: str, keys: Sequence[str], *, keep_rechecks: bool = False) -> None:
    """Remove keys whose answer is held or explained; a backfill leaves the rechecks of the windows alone."""
    if keys:
        connection.execute(
            query("pending.done"), {"stream": stream, "keys": list(keys), "keep_rechecks": keep_rechecks}
        )


def answered(connection: Connection, stream: str, request: Request, sent_at: datetime) -> None:
    """Remove the key of an answer that was read late, unless it could not be read or was asked for again since."""
    values = {"stream": stream, "key": request.key, "unit": request.unit, "sent_at": sent_at}
    connection.execute(query("pending.answered"), values)


def again(connection: Connection, stream: str, cycle_id: int, entries: Sequence[Again]) -> None:
    """Keep keys for another try; those whose patience is over are given up, which is told once."""
    given_up: list[str] = []
    since: datetime | None = None
    for entry in sorted(entries, key=lambda e: e.key):
        row = connection.execute(
            query("pending.again"),
            {
                "stream": stream,
                "key": entry.key,
                "why": str(entry.why),
                "session_date": entry.session_date,
                "error": (entry.error or "")[:1000] or None,
                "at": entry.at,
                "cycle": cycle_id,
                "only_if_absent": entry.only_if_absent,
            },
        ).fetchone()
        if row is not None and row["given_up"]:
            given_up.append(f"{entry.key} was given up after {row['attempts']} tries ({entry.error or entry.why})")
            since = since or row["created_at"]
    if given_up:
        first = given_up[0].partition(" ")[0]
        more = f", and so were {len(given_up) - 1} more" if given_up[1:] else ""
        incidents.open(
            connection,
            key=incidents.given_up(stream),
            stream=stream,
            alert_key=f"given-up/{stream}/{first}/{since:%Y-%m-%d}",
            severity="error",
            text=f"{stream}: {given_up[0]}{more}. Ask again with keys or force once the cause is mended.",
            again=timedelta(0),
        )
