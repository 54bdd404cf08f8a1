"""Apply: the one transaction in which answers become rows, and the cycle says so.

Promises: the cycle's row is locked under its token first of all, the gate is the last lock, and rows, quarantine,
pending keys, checkpoint, alerts and the cycle's state commit together or not at all. A deadlock repeats the apply
under the same token, up to three times. Never: no request, no file write and no sleep inside the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from include.contract import CycleStatus, Parsed, ParseError, Stream, Unit
from include.engine import delta, fetches, merge, stage
from include.engine.db import Connection, connect
from include.engine.fetches import Held
from include.engine.lease import Lease
from include.engine.merge import Counts
from include.engine.raw import RawStore
from include.engine.stage import Reading

# One apply writes at most this many rows.
MOST_ROWS = 50_000
REPEATS = 3
# How long one apply may take, in seconds: the lease is not renewed meanwhile, so it must end well within it.
STATEMENT_SECONDS = 180.0


class OrderChanged(Exception):
    """Another worker applied an asking of the same unit meanwhile; the units must be read again."""


@dataclass(frozen=True)
class Settlement:
    """What the transaction says of the cycle: its state and the facts that go with it."""

    status: CycleStatus
    facts: Mapping[str, Any]


Finish = Callable[[Connection, Counts], Settlement]


def read(stream: Stream, held: Held) -> Reading:
    """Parse a stored asking; a parser's refusal becomes the reading's error, never an exception.

    An unexpected exception of a parser is a refusal too: the answer is kept, and the reason names the exception.
    """
    parsed: Parsed | None = None
    error: str | None = None
    try:
        parsed = stream.parse(Unit(held.unit, held.session_date, held.answers))
    except ParseError as refusal:
        error = str(refusal)
    except Exception as bug:
        error = f"the parser failed with {type(bug).__name__}: {bug}"
    return Reading(held.unit, held.session_date, held.fetch_ids, held.sent_at, parsed, (error or "")[:2000] or None)


def out_of_order(connection: Connection, stream: Stream, held: Sequence[Held]) -> set[str]:
    """Return the units of which a newer asking was applied already, or which are here more than once."""
    units: set[str] = set()
    for asking in held:
        heads = fetches.askings_of_unit(connection, stream.name, asking.unit)
        if heads[-1] != asking.fetch_ids[0]:
            units.add(asking.unit)
    return units


def all_askings(connection: Connection, raw: RawStore, stream: Stream, units: Iterable[str]) -> list[Held]:
    """Return every stored asking of some units, oldest first."""
    return [
        fetches.load(connection, raw, head)
        for unit in sorted(units)
        for head in fetches.askings_of_unit(connection, stream.name, unit)
    ]


def apply(
    lease: Lease,
    stream: Stream,
    newest: Sequence[Reading],
    rebuilt: Sequence[Reading],
    finish: Finish,
) -> tuple[Counts, CycleStatus]:
    """Apply readings and settle the cycle, in one transaction.

    Args:
        newest: one asking a unit, each newer than all that were applied of its unit.
        rebuilt: all askings of the units that must be rebuilt.
        finish: called after the merge, inside the transaction: writes pending keys, checkpoint and alerts and
            returns the cycle's state.

    Raises:
        LeaseLost: the lease is over; nothing was written.
        OrderChanged: read again and repeat.
    """
    for attempt in range(1, REPEATS + 1):
        try:
            return _apply_once(lease, stream, newest, rebuilt, finish)
        except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
            if attempt == REPEATS:
                raise
    raise AssertionError("unreachable")


def _apply_once(
    lease: Lease, stream: Stream, newest: Sequence[Reading], rebuilt: Sequence[Reading], finish: Finish
) -> tuple[Counts, CycleStatus]:
    connection = connect(lease.url, application="daybook apply", statement_timeout=STATEMENT_SECONDS)
    try:
        lease.guard(connection)
        counts = Counts()
        for readings, is_rebuild in ((newest, False), (rebuilt, True)):
            if readings:
                counts += _merge_all(connection, lease, stream, readings, is_rebuild)
        settlement = finish(connection, counts)
        facts = {
            "fetched": counts.read,
            "new": counts.new,
            "changed": counts.changed,
            "withdrawn": counts.withdrawn,
            "quarantined": counts.quarantined,
            **settlement.facts,
        }
        lease.settle_and_commit(connection, settlement.status, facts)
        return counts, settlement.status
    finally:
        connection.close()


def _merge_all(
    connection: Connection, lease: Lease, stream: Stream, readings: Sequence[Reading], is_rebuild: bool
) -> Counts:
    cycle = lease.cycle
    readable = [reading for reading in readings if reading.parsed is not None]
    counts = Counts()
    rows_of: dict[int, int] = {}
    tables = sorted(stream.tables, key=lambda table: table.qualified)
    for table in tables:
        merge.lock(connection, table)
    _check_order(connection, stream, readings, is_rebuild)
    quarantined = stage.quarantine_rejected(connection, stream, readings, cycle.cycle_id)
    counts += Counts(quarantined=quarantined)
    for table in tables:
        filled = stage.fill(connection, table, readable)
        for fetch_id, rows in filled.items():
            rows_of[fetch_id] = rows_of.get(fetch_id, 0) + rows
        delta.see(connection, stream, table, cycle)
        broken = stage.check(connection, stream, table, cycle.cycle_id)
        step = merge.rebuild if is_rebuild else merge.newest
        counts += Counts(read=sum(filled.values()), quarantined=broken)
        counts += step(connection, stream, table, cycle.cycle_id, cycle.attempt)
        if not broken and not table.is_copy:
            good = [reading for reading in readable if reading.is_whole]
            for reading in good:
                merge.resolve_quarantine(connection, stream, [reading.unit], reading.fetch_id, cycle.cycle_id)
        stage.drop(connection, table)
    for reading in () if any(table.is_copy for table in tables) else readable:
        fetches.mark_applied(
            connection,
            reading.fetch_ids,
            cycle.cycle_id,
            stream.parser_version,
            rows_of.get(reading.fetch_id, 0),
        )
    return counts


def _check_order(connection: Connection, stream: Stream, readings: Sequence[Reading], is_rebuild: bool) -> None:
    """Under the tables' locks: what was read before the transaction must still be all there is."""
    units = {reading.unit: 0 for reading in readings}
    for reading in readings:
        units[reading.unit] += 1
    for unit, count in units.items():
        heads = fetches.askings_of_unit(connection, stream.name, unit)
        newest = next(r.fetch_ids[0] for r in reversed(readings) if r.unit == unit)
        if heads[-1] != newest or (is_rebuild and len(heads) != count):
            raise OrderChanged(f"{stream.name} {unit} was asked for by another worker meanwhile.")


def going_on(connection: Connection, counts: Counts) -> Settlement:
    """Finish an apply in the middle of a slice: the cycle stays `RUNNING` under its token."""
    return Settlement(CycleStatus.RUNNING, {})
