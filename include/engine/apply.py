"""Apply: the one transaction in which answers become rows, and the cycle says so.

Promises: the cycle's row is locked under its token first of all, the gate is the last lock, and rows, quarantine,
pending keys, checkpoint, alerts and the cycle's state commit together or not at all. A deadlock repeats the reading
and the apply under the same token, up to three times. Never: no request, no file write and no sleep inside the
transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg

from include.contract import CycleStatus, Parsed, ParseError, Stream, Unit
from include.engine import alerts, delta, fetches, merge, stage
from include.engine.db import Connection, connect
from include.engine.fetches import Held
from include.engine.lease import Lease, LeaseLost
from include.engine.merge import Counts
from include.engine.raw import RawObjectDamaged, RawObjectMissing, RawStore
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
Result = TypeVar("Result")


def read(stream: Stream, held: Held) -> Reading:
    """Parse a stored asking; a parser's refusal becomes the reading's error, never an exception.

    An unexpected exception of a parser is a refusal too: the answer is kept, and the reason names the exception.

    Raises:
        OSError: the raw store cannot be read right now, which says nothing about the answer.
    """
    parsed: Parsed | None = None
    error: str | None = None
    is_lost = False
    try:
        parsed = stream.parse(Unit(held.unit, held.session_date, held.answers))
    except ParseError as refusal:
        error = str(refusal)
    except (RawObjectDamaged, RawObjectMissing) as loss:
        error, is_lost = str(loss), True
    except OSError:
        raise
    except Exception as bug:
        error = f"the parser failed with {type(bug).__name__}: {bug}"
    error = (error or "")[:2000] or None
    return Reading(held.unit, held.session_date, held.fetch_ids, held.sent_at, parsed, error, is_lost)


def repeated(read_and_apply: Callable[[], Result], stream: Stream) -> Result:
    """Read and apply; again, up to three times, after a deadlock or where somebody else was faster.

    The reading belongs to it: rows may come as a stream that the try before has used up.

    Raises:
        LeaseLost: others ask for the same units all the time.
    """
    for attempt in range(1, REPEATS + 1):
        try:
            return read_and_apply()
        except OrderChanged:
            if attempt == REPEATS:
                raise LeaseLost(f"{stream.name}: the same units are being asked for by others all the time.") from None
        except (
            psycopg.errors.DeadlockDetected,
            psycopg.errors.SerializationFailure,
            psycopg.errors.LockNotAvailable,
        ):
            if attempt == REPEATS:
                raise
    raise AssertionError("unreachable")


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
    """Apply readings and settle the cycle, in one transaction; call it through `repeated`.

    Args:
        newest: one asking a unit, each newer than all that were applied of its unit.
        rebuilt: all askings of the units that must be rebuilt.
        finish: called after the merge, inside the transaction: writes pending keys, checkpoint and alerts and
            returns the cycle's state.

    Raises:
        LeaseLost: the lease is over; nothing was written.
        OrderChanged: read again and repeat.
    """
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
    is_copy = any(table.is_copy for table in stream.tables)
    # A unit is derived from all its askings or not at all: where one is lost, its rows stay as they are. Nor does a
    # worker of the release before undo what a newer parser read.
    kept = {reading.unit for reading in readings if is_rebuild and reading.is_lost}
    if is_rebuild and not is_copy:
        kept |= fetches.read_by_newer(connection, stream.name, {r.unit for r in readings}, stream.parser_version)
    readable = [reading for reading in readings if reading.parsed is not None and reading.unit not in kept]
    counts = Counts()
    rows_of: dict[int, int] = {}
    tables = sorted(stream.tables, key=lambda table: table.qualified)
    for table in tables:
        merge.lock(connection, table)
    _check_order(connection, stream, readings, is_rebuild)
    broken = set[int]()
    if not is_copy:
        counts += Counts(quarantined=stage.quarantine_rejected(connection, stream, readings, cycle.cycle_id))
        _tell_unknown_columns(connection, stream, readable)
    for table in tables:
        filled = stage.fill(connection, table, readable)
        for fetch_id, rows in filled.items():
            rows_of[fetch_id] = rows_of.get(fetch_id, 0) + rows
        delta.see(connection, stream, table, cycle)
        put, broken_here = stage.check(connection, stream, table, cycle.cycle_id)
        broken |= broken_here
        step = merge.rebuild if is_rebuild else merge.newest
        counts += Counts(read=sum(filled.values()), quarantined=put)
        counts += step(connection, stream, table, cycle.cycle_id, cycle.attempt)
        stage.drop(connection, table)
    if is_copy:
        return counts
    read_now = [reading for reading in readings if reading.unit not in kept]
    merge.supersede_quarantine(connection, stream, read_now, cycle.cycle_id)
    for reading in readable:
        if reading.is_whole and reading.fetch_id not in broken:
            merge.resolve_quarantine(connection, stream, [reading.unit], reading.fetch_id, cycle.cycle_id)
        fetches.mark_applied(
            connection,
            reading.fetch_ids,
            cycle.cycle_id,
            stream.parser_version,
            rows_of.get(reading.fetch_id, 0),
        )
    return counts


def _tell_unknown_columns(connection: Connection, stream: Stream, readings: Sequence[Reading]) -> None:
    """Tell once that an upstream sends columns that nobody knows; their values are kept in `extra`."""
    found = {reading.parsed.unknown_columns: reading.unit for reading in reversed(readings) if reading.parsed}
    for columns, unit in found.items():
        if columns:
            alerts.put(
                connection,
                key=f"unknown-columns/{stream.name}/{'/'.join(sorted(columns))}"[:500],
                severity="warning",
                text=f"{stream.name} sends columns that nobody knows yet: {', '.join(columns)[:500]} (first seen in "
                f"{unit}). Their values are kept in extra; declare them to make them columns of the table.",
            )


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
