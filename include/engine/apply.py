"""Apply: the transactions in which answers become rows, and the cycle says so.

Promises: the cycle's row is locked under its token first of all, the gate is the last lock, and rows, quarantine,
pending keys, checkpoint, alerts and the cycle's state commit together or not at all. A unit of more rows than one
transaction writes goes in parts under the same token, all of it staged before the first; what notes it as applied,
and what takes rows away that it no longer gives, comes with the last. A deadlock repeats the reading and the apply
under the same token, up to three times. Rows that fit into one transaction are read before it begins. Never: no
request, no file write and no sleep inside a transaction, no stored answer opened while anything is locked, and no
larger unit whole in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeVar

import psycopg

from include.contract import CycleStatus, Parsed, Stream, Unit
from include.engine import delta, doubts, fetches, incidents, months, stage, steps
from include.engine.db import Connection, connect, query, transacting
from include.engine.fetches import Held
from include.engine.lease import MARGIN_SECONDS, RENEW_SECONDS, Lease, LeaseLost
from include.engine.merge import Counts
from include.engine.raw import RawStore
from include.engine.stage import Reading, RowsUnreadable, TooManyRows, refusal_of
from include.engine.steps import OrderChanged
from include.settings import behind_pooler

REPEATS = 3
# How long one statement of an apply may take, in seconds: the lease is not renewed while the cycle's row is locked, so
# it must end well within it. Staging locks nothing and may take longer.
STATEMENT_SECONDS = 180.0
STAGING_SECONDS = 3600.0
# A row is rarely smaller; with so many bytes there are surely more rows than one transaction writes.
FEWEST_BYTES, SURELY_LARGE = 30, 10


class Interrupted(Exception):
    """The worker must stop, or may no longer trust its lease, between two parts; the next cycle finishes the unit."""


@dataclass(frozen=True)
class Settlement:
    """What the transaction says of the cycle: its state and the facts that go with it."""

    status: CycleStatus
    facts: Mapping[str, Any]


@dataclass
class Try:
    """One try of an apply, with what the tries before found out: that it is large, and what cannot be read, and why."""

    in_parts: bool = False
    refused: dict[int, tuple[str, bool]] = field(default_factory=dict)


Finish = Callable[[Connection, Counts], Settlement]
Result = TypeVar("Result")


def read(stream: Stream, held: Held, now: Try | None = None) -> Reading:
    """Parse a stored asking; a parser's refusal becomes the reading's error, never an exception.

    An unexpected exception of a parser is a refusal too: the answer is kept, and the reason names the exception.

    Raises:
        OSError: the raw store cannot be read right now, which says nothing about the answer.
    """
    parsed: Parsed | None = None
    error, is_lost = now.refused.get(held.fetch_ids[-1], (None, False)) if now else (None, False)
    if error is None:
        try:
            parsed = stream.parse(Unit(held.unit, held.session_date, held.answers))
        except OSError:
            raise
        except Exception as refusal:
            error, is_lost = refusal_of(refusal)
    return Reading(held.unit, held.session_date, held.fetch_ids, held.sent_at, parsed, error or None, is_lost)


def is_surely_large(held: Iterable[Held]) -> bool:
    """Say whether askings surely hold more rows than one transaction writes."""
    return sum(asking.size for asking in held) > SURELY_LARGE * stage.MOST_ROWS * FEWEST_BYTES


def repeated(read_and_apply: Callable[[Try], Result], stream: Stream, *, is_large: bool = False) -> Result:
    """Read and apply; again, up to three times, after a deadlock or where somebody else was faster.

    The reading belongs to it: rows may come as a stream that the try before has used up. What turns out to be too
    large for one transaction, or cannot be read to its end, is tried again in the way that it needs.

    Raises:
        LeaseLost: others ask for the same units all the time.
    """
    now, attempt = Try(is_large), 1
    while True:
        try:
            return read_and_apply(now)
        except TooManyRows:
            now.in_parts = True
        except RowsUnreadable as refusal:
            now.refused[refusal.fetch_id] = refusal.reason or "the parser gave no reason", refusal.is_lost
        except OrderChanged:
            if attempt == REPEATS:
                raise LeaseLost(f"{stream.name}: the same units are being asked for by others all the time.") from None
            attempt += 1
        except (
            psycopg.errors.DeadlockDetected,
            psycopg.errors.SerializationFailure,
            psycopg.errors.LockNotAvailable,
        ):
            if attempt == REPEATS:
                raise
            attempt += 1


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
    *,
    in_parts: bool = False,
    may_go_on: Callable[[], bool] = lambda: True,
    on: Connection | None = None,
) -> tuple[Counts, CycleStatus]:
    """Apply readings and settle the cycle, in one transaction or in parts; call it through `repeated`.

    Args:
        lease: the right to write; with parts it is renewed in between.
        stream: whose readings they are.
        newest: one asking a unit, each newer than all that were applied of its unit.
        rebuilt: all askings of the units that must be rebuilt, in order of their units.
        finish: called after the last merge, inside the transaction: writes pending keys, checkpoint and alerts and
            returns the cycle's state.
        in_parts: unit by unit, each in as many transactions as it needs.
        may_go_on: asked between parts.
        on: a connection in autocommit that is kept for many cycles; parts take one of their own all the same, as what
            they stage outlives a transaction.

    Raises:
        LeaseLost: the lease is over; nothing of this transaction was written.
        OrderChanged: read again and repeat.
        TooManyRows: read again and repeat in parts.
        RowsUnreadable: read again and repeat without that asking.
        Interrupted: `may_go_on` said no; the parts before are written.
    """
    if not in_parts:
        held = stage.hold((*newest, *rebuilt), stream.tables, stage.MOST_ROWS)
        newest, rebuilt = held[: len(newest)], held[len(newest) :]
    seconds = STAGING_SECONDS if in_parts else STATEMENT_SECONDS
    months.ensure(lease.url, stream, (*newest, *rebuilt))
    if on is not None and not in_parts:
        with transacting(on):
            on.execute(query("engine.statement_timeout"), {"timeout": f"{STATEMENT_SECONDS:.0f}s"})
            return _at_once(on, lease, stream, ((newest, False), (rebuilt, True)), finish)
    connection = connect(lease.url, application="daybook apply", statement_timeout=seconds)
    try:
        if in_parts:
            return _in_parts(connection, lease, stream, list(_by_unit(newest, rebuilt)), finish, may_go_on)
        return _at_once(connection, lease, stream, ((newest, False), (rebuilt, True)), finish)
    finally:
        connection.close()


def _at_once(
    connection: Connection,
    lease: Lease,
    stream: Stream,
    groups: Iterable[tuple[Sequence[Reading], bool]],
    finish: Finish,
) -> tuple[Counts, CycleStatus]:
    """Apply rows that are held in one transaction."""
    lease.guard(connection)
    counts, written = Counts(), list[steps.Group]()
    for given, is_rebuild in groups:
        for readings in months.split(stream, given):
            group = steps.gather(connection, lease.cycle, stream, readings, is_rebuild)
            steps.fill(connection, group)
            counts += _write(connection, group)
            written.append(group)
    steps.note_outdated(connection, written)
    return _settle(connection, lease, finish, counts, counts)


def _whole(
    connection: Connection, lease: Lease, group: steps.Group, finish: Finish, beat: Callable[[], None]
) -> tuple[Counts, CycleStatus]:
    """Apply a large unit in one transaction: staged first, and the cycle's row locked when all of it is there."""
    steps.fill(connection, group, beat)
    lease.guard(connection)
    counts = _write(connection, group)
    steps.note_outdated(connection, [group])
    return _settle(connection, lease, finish, counts, counts)


def _write(connection: Connection, group: steps.Group) -> Counts:
    """Turn what is staged into rows."""
    steps.lock(connection, group)
    counts = steps.check(connection, group)
    steps.derive(connection, group)
    return counts + steps.write(connection, group)


def _by_unit(newest: Sequence[Reading], rebuilt: Sequence[Reading]) -> Iterator[tuple[list[Reading], bool]]:
    for reading in newest:
        yield [reading], False
    for _, readings in groupby(rebuilt, lambda reading: reading.unit):
        yield list(readings), True


def _in_parts(
    connection: Connection,
    lease: Lease,
    stream: Stream,
    groups: Sequence[tuple[list[Reading], bool]],
    finish: Finish,
    may_go_on: Callable[[], bool],
) -> tuple[Counts, CycleStatus]:
    total, status = Counts(), CycleStatus.RUNNING

    def beat() -> None:
        _keep(lease)
        if not may_go_on():
            raise Interrupted("Stopped between two parts of a large unit; the next cycle finishes it.")

    def guarded() -> None:
        beat()
        connection.execute(query("engine.statement_timeout"), {"timeout": f"{STATEMENT_SECONDS:.0f}s"})
        lease.guard(connection)

    for position, (readings, is_rebuild) in enumerate(groups, start=1):
        last = finish if position == len(groups) else going_on
        group = steps.gather(connection, lease.cycle, stream, readings, is_rebuild)
        if behind_pooler():
            # What is staged stays on one server connection, and behind a pooler each transaction has another.
            counts, status = _whole(connection, lease, group, last, beat)
            total += counts
            continue
        steps.fill(connection, group, beat=beat)
        connection.commit()
        guarded()
        steps.lock(connection, group)
        counts = steps.check(connection, group)
        _settle(connection, lease, going_on, counts, counts)
        steps.derive(connection, group)
        parts = steps.parts_of(connection, group, stage.MOST_ROWS)
        connection.commit()
        before = Counts()
        for write_part in parts:
            guarded()
            steps.lock(connection, group)
            written = write_part(connection)
            _settle(connection, lease, going_on, written, written)
            before += written
        guarded()
        steps.lock(connection, group)
        rest = steps.write(connection, group)
        steps.note_outdated(connection, [group])
        if is_rebuild and parts:
            rest = rest.without(before)
            steps.drop_numbered(connection, group)
        total += counts + before + rest
        _, status = _settle(connection, lease, last, total, rest)
    if not groups:
        guarded()
        _, status = _settle(connection, lease, finish, total, total)
    return total, status


def _keep(lease: Lease) -> None:
    """Renew a lease that nobody else renews while its parts are being applied."""
    if lease.trusted_until - lease.clock() < lease.ttl - MARGIN_SECONDS - RENEW_SECONDS:
        lease.renew()


def _settle(
    connection: Connection, lease: Lease, finish: Finish, total: Counts, written: Counts
) -> tuple[Counts, CycleStatus]:
    """Finish and commit: the cycle's counters grow by what this transaction wrote."""
    if written.quarantined:
        doubted = (delta.SMALL_LISTING, doubts.FEWER_ROWS)
        incidents.tell_put_aside(connection, lease.cycle.stream, lease.cycle.cycle_id, doubted)
    settlement = finish(connection, total)
    facts = {
        "fetched": written.read,
        "new": written.new,
        "changed": written.changed,
        "withdrawn": written.withdrawn,
        "quarantined": written.quarantined,
        **settlement.facts,
    }
    lease.settle_and_commit(connection, settlement.status, facts)
    return total, settlement.status


def going_on(connection: Connection, counts: Counts) -> Settlement:
    """Finish an apply in the middle of a slice: the cycle stays `RUNNING` under its token."""
    return Settlement(CycleStatus.RUNNING, {})
