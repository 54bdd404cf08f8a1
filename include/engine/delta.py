"""The delta: what a complete listing concludes from the items that it did not show.

Promises: only a poll window that is complete, shows items, was read whole and is not suspiciously small misses or
closes anything; one that lacks more of the last trusted one than the stream allows goes to quarantine instead, is
reported, and an operator's "accept" makes it the new measure. An item that shows up again is open again. Never: nothing
is concluded from a failed, unfinished, empty or overtaken listing, nor in a backfill or replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from include.contract import AnswerClass, Ask, Mode, Stream, Table
from include.engine import alerts, incidents, merge
from include.engine.db import Connection, query, template, transaction
from include.engine.lease import Cycle
from include.engine.stage import Names
from include.engine.verdict import where

# A listing smaller than this part of the last trusted one is not believed, whatever its stream says.
LEAST_SHARE = 0.8
# Where so few are gone it is news, however small the listing or the unit.
FEW = 3
SMALL_LISTING = "the listing is as large as the last one"
ORPHAN_AGE = timedelta(hours=48)
MOST_ORPHANS = 1_000


@dataclass(frozen=True)
class Orphans:
    """Seen items whose cycle is over and that are older than 48 hours, and how bad that is."""

    count: int

    @property
    def severity(self) -> alerts.Severity:
        """One is a warning, a thousand are critical."""
        return "critical" if self.count >= MOST_ORPHANS else "warning" if self.count else "info"


def is_concluded_from(stream: Stream, cycle: Cycle) -> bool:
    """Say whether a cycle of a stream can miss items at all: a poll window of a listing."""
    return stream.listing and cycle.mode is Mode.POLL and cycle.window_start is not None


def see(connection: Connection, stream: Stream, table: Table, cycle: Cycle) -> None:
    """Note the items that the staged rows show, before a rule can take a row away: it was there all the same.

    Only answers that this very cycle asked for count; what a crash left of an earlier one says nothing of today.
    """
    if not is_concluded_from(stream, cycle) or table.qualified != stream.tables[0].qualified:
        return
    parts = Names(table).parts
    connection.execute(template("listing.see", stage=parts["stage"], s_key=parts["s_key"]), {"cycle": cycle.cycle_id})


def conclude(connection: Connection, stream: Stream, cycle: Cycle, answers: dict[str, AnswerClass]) -> dict[str, int]:
    """Miss, close and reopen items by a listing that ended `SUCCESS`, in the transaction that ends it.

    Args:
        connection: inside the transaction of the last apply.
        stream: the stream, as declared.
        cycle: its poll window.
        answers: the class of the last answer to each key that the window asked for.

    Returns:
        The facts for the cycle: items seen, missed and closed; without the latter two where nothing was concluded.
    """
    if not is_concluded_from(stream, cycle) or not _was_asked_whole(stream, cycle, answers):
        return {}
    place = {"cycle": cycle.cycle_id, "stream": stream.name, "window_start": cycle.window_start, "rule": SMALL_LISTING}
    facts = connection.execute(query("delta.facts"), place).fetchone()
    assert facts is not None
    seen, trusted = facts["seen"], facts["trusted"]
    if seen == 0 or facts["is_overtaken"] or facts["is_unread"]:
        return {"seen": seen}
    lost = 0 if facts["is_accepted"] else facts["lost"]
    if is_doubtful(stream, seen, trusted or 0, lost):
        _doubt(connection, stream, cycle, seen, trusted, lost, tuple(answers))
        return {"seen": seen}
    missed = connection.execute(query("delta.miss"), {**place, "close_after": stream.close_after}).fetchone()
    opened = connection.execute(query("delta.opened"), place).fetchone()
    assert missed is not None
    assert opened is not None
    connection.execute(query("delta.show"), place)
    if (missed["closed"] or opened["opened"]) and stream.tables[0].session_date is None:
        # A file of the open items alone changes with them, though no row does.
        merge.mark_stale(connection, stream.tables[0], ["all"])
    connection.execute(query("delta.whole_again"), place)
    return {"seen": seen, "missed": missed["missed"], "closed": missed["closed"]}


def is_doubtful(stream: Stream, seen: int, trusted: int, lost: int) -> bool:
    """Say whether a listing is not believed: it is too small, or lacks too many whom the last trusted one showed.

    Args:
        stream: the listing.
        seen: items that it shows.
        trusted: items that the last trusted one showed; 0 where there was none.
        lost: those of them that it does not show, whoever came in their place; 0 after one that an operator accepted.
    """
    return seen < LEAST_SHARE * trusted or (lost > FEW and lost > (1 - stream.least_share) * trusted > 0)


def _was_asked_whole(stream: Stream, cycle: Cycle, answers: dict[str, AnswerClass]) -> bool:
    """Say whether this window itself got every part of the listing; a part held from before was not seen now."""
    wanted = [request.key for request in stream.plan(Ask(Mode.POLL, sessions=(cycle.session_date,)))]
    return bool(wanted) and all(answers.get(key) in (AnswerClass.DATA, AnswerClass.EMPTY) for key in wanted)


def _doubt(
    connection: Connection, stream: Stream, cycle: Cycle, seen: int, trusted: int, lost: int, keys: Sequence[str]
) -> None:
    reason = f"the listing shows {seen:,} items, and the last one that was believed showed {trusted:,}"
    reason += f", {lost:,} of which are gone" if lost else ""
    values: dict[str, Any] = {
        "stream": stream.name,
        "unit": next(request.unit for request in stream.plan(Ask(Mode.POLL, sessions=(cycle.session_date,)))),
        "fetch": None,
        "cycle": cycle.cycle_id,
        "scope": "unit",
        "position": cycle.slot,
        "rule": SMALL_LISTING,
        "reason": reason,
        "content": f"{len(keys)} answers",
        "parser_version": stream.parser_version,
    }
    connection.execute(query("quarantine.put"), values)
    incidents.open(
        connection,
        key=incidents.put_aside(stream.name, SMALL_LISTING),
        alert_key=f"listing/{stream.name}/{cycle.slot}",
        stream=stream.name,
        severity="error",
        text=f"{stream.name}: {reason} ({where(cycle.row)}). Its rows are kept, but no item was missed or closed. "
        "Accept the entry in quarantine if the listing is right; a later one of the usual size resolves it by itself.",
    )


def orphans(url: str) -> Orphans:
    """Count the seen items that outlived their cycle by 48 hours."""
    with transaction(url, application="daybook maintenance") as connection:
        row = connection.execute(query("delta.orphans"), {"age": ORPHAN_AGE}).fetchone()
    assert row is not None
    return Orphans(row["orphans"])


def clean(url: str, limit: int = MOST_ORPHANS) -> int:
    """Delete the oldest of the seen items that outlived their cycle by 48 hours, at most `limit`; return how many."""
    with transaction(url, application="daybook maintenance") as connection:
        return connection.execute(query("delta.clean"), {"age": ORPHAN_AGE, "limit": limit}).rowcount
