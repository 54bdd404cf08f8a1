"""The items of a listing, told again from the lists that are stored, where a warehouse has none of them.

Promises: the deltas of complete polls are drawn in the order of sending, by the rules of the live ones, so that a
replay into empty tables knows who is listed, since when, and who has departed. Never: items that are there are touched,
and no stored answer is opened while anything is locked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from include.contract import Ask, Mode, Stream
from include.engine import apply as applying
from include.engine import delta, fetches, merge
from include.engine.db import Connection, Row, query
from include.engine.raw import RawStore
from include.engine.stage import RowsUnreadable


@dataclass
class Item:
    """One item: when a believed list first and last showed it, how many in a row did not, and when it was closed."""

    first_seen_at: datetime
    last_seen_at: datetime
    missed: int = 0
    closed_at: datetime | None = None


@dataclass(frozen=True)
class _Listing:
    """What one poll's lists showed, each item with the instant at which its list was asked for."""

    seen: dict[str, datetime]
    is_accepted: bool


def is_wanted(connection: Connection, stream: Stream) -> bool:
    """Say whether a replay of a stream tells its items again: it is a listing without any."""
    if not stream.listing or any(table.is_copy for table in stream.tables):
        return False
    return _has_none(connection, stream)


def _has_none(connection: Connection, stream: Stream) -> bool:
    row = connection.execute(query("delta.no_items"), {"stream": stream.name}).fetchone()
    return bool(row and row["is_empty"])


def told(
    connection: Connection, raw: RawStore, stream: Stream, may_go_on: Callable[[], bool] = lambda: True
) -> dict[str, Item]:
    """Read every stored list of a listing and return the items that they make together.

    Args:
        connection: outside of a transaction.
        raw: where the lists are.
        stream: the listing.
        may_go_on: asked before each list.

    Raises:
        Interrupted: `may_go_on` said no.
    """
    items: dict[str, Item] = {}
    trusted, was_accepted = 0, False
    for listing in _listings(connection, raw, stream, may_go_on):
        seen = listing.seen
        if not seen:
            continue
        lost = sum(item.missed == 0 and item.closed_at is None and key not in seen for key, item in items.items())
        if delta.is_doubtful(stream, len(seen), trusted, 0 if was_accepted else lost):
            if listing.is_accepted:
                trusted, was_accepted = len(seen), True
            continue
        _conclude(items, seen, stream.close_after)
        trusted, was_accepted = len(seen), False
    return items


def _conclude(items: dict[str, Item], seen: dict[str, datetime], close_after: int) -> None:
    """Miss and close what a believed list does not show, and show what it does."""
    at = max(seen.values())
    for key, item in items.items():
        if key not in seen and item.closed_at is None:
            item.missed += 1
            item.closed_at = at if item.missed >= close_after else None
    for key, seen_at in seen.items():
        item = items.setdefault(key, Item(seen_at, seen_at))
        item.last_seen_at, item.missed, item.closed_at = seen_at, 0, None


def _listings(
    connection: Connection, raw: RawStore, stream: Stream, may_go_on: Callable[[], bool]
) -> Iterator[_Listing]:
    """Give what each poll showed that asked for all of the listing and could read all of it."""
    values = {"stream": stream.name, "rule": delta.SMALL_LISTING}
    rows = connection.execute(query("delta.askings"), values).fetchall()
    for _, of_cycle in groupby(rows, lambda row: row["cycle_id"]):
        askings = list(of_cycle)
        if not may_go_on():
            raise applying.Interrupted("Stopped between two stored lists; the next attempt begins them anew.")
        if (seen := _seen(connection, raw, stream, askings)) is not None:
            yield _Listing(seen, any(row["is_accepted"] for row in askings))


def _seen(connection: Connection, raw: RawStore, stream: Stream, askings: Sequence[Row]) -> dict[str, datetime] | None:
    """Return the items that a poll's askings show, None where a part is missing or cannot be read."""
    seen: dict[str, datetime] = {}
    wanted: set[str] | None = None
    table = stream.tables[0]
    places = [table.column_names.index(name) for name in table.key]
    for row in askings:
        held = fetches.load(connection, raw, row["head"])
        day = row["session_date"] or row["asked_for"]
        if wanted is None:
            zone = ZoneInfo(stream.schedule.day_zone)
            session = day or held.sent_at.astimezone(zone).date()
            wanted = {request.key for request in stream.plan(Ask(Mode.POLL, sessions=(session,)))}
        reading = applying.read(stream, held)
        if reading.parsed is None:
            return None
        try:
            for values in reading.rows(table):
                key = [values[place] for place in places]
                if None not in key:
                    name = "/".join(map(str, key))
                    seen[name] = max(seen.get(name, held.sent_at), held.sent_at)
        except RowsUnreadable:
            return None
        if reading.parsed.rejected:
            return None
        wanted.discard(row["request_key"])
    return None if wanted else seen


def write(connection: Connection, stream: Stream, items: dict[str, Item]) -> None:
    """Put the items into a listing that still has none, in the transaction that ends the replay's batch."""
    # A poll that concludes holds this lock from before its rows until its end.
    merge.lock(connection, stream.tables[0])
    if not _has_none(connection, stream):
        return
    keys = sorted(items)
    values: dict[str, Any] = {
        "stream": stream.name,
        "keys": keys,
        "first": [items[key].first_seen_at for key in keys],
        "last": [items[key].last_seen_at for key in keys],
        "missed": [items[key].missed for key in keys],
        "closed": [items[key].closed_at for key in keys],
    }
    connection.execute(query("delta.put_items"), values)
    if stream.tables[0].session_date is None:
        merge.mark_stale(connection, stream.tables[0], ["all"])
