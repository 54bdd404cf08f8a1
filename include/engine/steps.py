"""The steps in which readings become rows: stage, lock, check, write, note. `apply` puts them into transactions.

Promises: each step says what it needs and may be in a transaction of its own or share one; units that cannot be
rebuilt from all their askings stay as they are. Never: a step commits, and nothing is written before the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from include.contract import Mode, Stream, Table
from include.engine import alerts, delta, doubts, fetches, incidents, merge, months, pending, stage
from include.engine.db import Connection, told
from include.engine.lease import Cycle
from include.engine.merge import Counts
from include.engine.stage import Reading


class OrderChanged(Exception):
    """Another worker applied an asking of the same unit meanwhile; the units must be read again."""


@dataclass
class Group:
    """Readings that are applied together, and what the steps found out about them.

    `kept` names units that stay as they are; `readable` are the readings that give rows; `rows` counts them by table
    and `rows_of` by fetch; `broken` are fetches with rows that break a rule,
    or that are doubted as a whole.
    """

    cycle: Cycle
    stream: Stream
    readings: Sequence[Reading]
    is_rebuild: bool
    kept: set[str]
    readable: list[Reading]
    rows: dict[str, int] = field(default_factory=dict)
    rows_of: dict[int, int] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)

    @property
    def tables(self) -> list[Table]:
        """The stream's tables in the order in which everybody locks them."""
        return sorted(self.stream.tables, key=lambda table: table.qualified)

    @property
    def is_copy(self) -> bool:
        """Whether it goes into a replay's copies."""
        return any(table.is_copy for table in self.stream.tables)

    @property
    def is_of_several(self) -> bool:
        """Whether it holds more than one unit."""
        return len({reading.unit for reading in self.readings}) > 1


def gather(
    connection: Connection, cycle: Cycle, stream: Stream, readings: Sequence[Reading], is_rebuild: bool
) -> Group:
    """Say which readings, all of one month where the stream keeps months apart, give rows.

    A unit is derived from all its askings or not at all: where one is lost, its rows stay as they are. Nor does a
    worker of the release before undo what a newer parser read.
    """
    kept = {reading.unit for reading in readings if is_rebuild and reading.is_lost}
    group = Group(cycle, months.of_month(stream, readings), readings, is_rebuild, kept, [])
    if is_rebuild and not group.is_copy:
        kept |= fetches.read_by_newer(connection, stream.name, {r.unit for r in readings}, stream.parser_version)
    group.readable = [reading for reading in readings if reading.parsed is not None and reading.unit not in kept]
    return group


def fill(connection: Connection, group: Group, beat: Callable[[], None] = lambda: None) -> None:
    """Stage the rows of all tables (see `stage.fill`)."""
    for table in group.tables:
        filled = stage.fill(connection, table, group.readable, beat=beat)
        group.rows[table.qualified] = sum(filled.values())
        for fetch_id, rows in filled.items():
            group.rows_of[fetch_id] = group.rows_of.get(fetch_id, 0) + rows


def lock(connection: Connection, group: Group) -> None:
    """Lock the tables, and insist that what was read before is still all there is.

    Raises:
        OrderChanged: it is not.
    """
    for table in group.tables:
        merge.lock(connection, table)
    units: dict[str, int] = {}
    for reading in group.readings:
        units[reading.unit] = units.get(reading.unit, 0) + 1
    for unit, count in units.items():
        heads = fetches.askings_of_unit(connection, group.stream.name, unit)
        newest = next(r.fetch_ids[0] for r in reversed(group.readings) if r.unit == unit)
        if heads[-1] != newest or (group.is_rebuild and len(heads) != count):
            raise OrderChanged(f"{group.stream.name} {unit} was asked for by another worker meanwhile.")


def check(connection: Connection, group: Group) -> Counts:
    """Put to quarantine what could not be read or breaks a rule, and note the items that a listing shows."""
    stream, cycle = group.stream, group.cycle
    counts = Counts()
    if not group.is_copy:
        counts += Counts(quarantined=stage.quarantine_rejected(connection, stream, group.readings, cycle.cycle_id))
        _tell_unknown_columns(connection, stream, group.readable)
    for table in group.tables:
        delta.see(connection, stream, table, cycle)
        put, broken = stage.check(connection, stream, table, cycle.cycle_id, is_rebuild=group.is_rebuild)
        group.broken |= broken
        counts += Counts(quarantined=put)
        if cycle.window_start is not None and not group.is_rebuild:
            _tell_missing(connection, stream, table)
    doubted = doubts.found(connection, stream, group.readable, group.rows_of)
    if doubted:
        # Nothing is taken away because of them, and they resolve nothing.
        fetch_ids = [doubt.reading.fetch_id for doubt in doubted]
        group.broken.update(fetch_ids)
        for table in group.tables:
            stage.take_for_parts(connection, table, fetch_ids)
        if not group.is_copy:
            counts += Counts(quarantined=doubts.put_aside(connection, stream, cycle.cycle_id, doubted))
    return counts


def derive(connection: Connection, group: Group) -> None:
    """Derive the versions of a rebuild's units from what is staged."""
    if group.is_rebuild:
        for table in group.tables:
            merge.chain(connection, table, is_of_several=group.is_of_several)


def write(connection: Connection, group: Group) -> Counts:
    """Write what is new or differs, take away what is gone, note what was applied, and drop the stages."""
    stream, cycle = group.stream, group.cycle
    counts = Counts(read=sum(group.rows.values()))
    step = merge.rebuild if group.is_rebuild else merge.newest
    for table in group.tables:
        counts += step(connection, stream, table, cycle.cycle_id, cycle.attempt).of(table)
        stage.drop(connection, table)
    if group.is_copy:
        return counts
    read_now = [reading for reading in group.readings if reading.unit not in group.kept]
    merge.supersede_quarantine(connection, stream, read_now, cycle.cycle_id)
    for reading in group.readable:
        if reading.is_whole and reading.fetch_id not in group.broken:
            merge.resolve_quarantine(connection, stream, [reading.unit], reading.fetch_id, cycle.cycle_id)
        fetches.mark_applied(
            connection,
            reading.fetch_ids,
            cycle.cycle_id,
            stream.parser_version,
            group.rows_of.get(reading.fetch_id, 0),
        )
    return counts


def note_outdated(connection: Connection, groups: Sequence[Group]) -> None:
    """Keep what the readings show to be out of date as pending: after every table is locked, as everybody does."""
    noting = [group for group in groups if not group.is_copy and group.cycle.mode is not Mode.REPLAY]
    readings = [reading for group in noting for reading in group.readable]
    found = [each for reading in readings if reading.parsed for each in reading.parsed.outdated]
    if found:
        pending.outdated(connection, noting[0].stream.name, noting[0].cycle.cycle_id, found)


def parts_of(connection: Connection, group: Group, most: int) -> list[Callable[[Connection], Counts]]:
    """Cut what `write` would do into parts of at most so many rows, the last of which is left for `write`.

    Call it after `derive`, outside of any lock: it makes nothing but temporary tables.
    """
    stream, cycle = group.stream, group.cycle
    if sum(group.rows.values()) <= most:
        return []
    parts: list[Callable[[Connection], Counts]] = []
    for table in group.tables:
        if group.is_rebuild:
            count = merge.number(connection, table, most)
        else:
            count = -(-group.rows[table.qualified] // most)
        for number in range(count):
            parts.append(_part(stream, table, cycle, number, most, is_rebuild=group.is_rebuild))
    return parts[:-1]


def drop_numbered(connection: Connection, group: Group) -> None:
    """Drop what the parts of a rebuild were cut from."""
    for table in group.tables:
        merge.drop_numbered(connection, table)


def _part(
    stream: Stream, table: Table, cycle: Cycle, number: int, most: int, *, is_rebuild: bool
) -> Callable[[Connection], Counts]:
    def write_part(connection: Connection) -> Counts:
        if is_rebuild:
            return merge.rebuild_part(connection, stream, table, cycle.cycle_id, cycle.attempt, number).of(table)
        return merge.newest_part(connection, stream, table, cycle.cycle_id, cycle.attempt, number, most).of(table)

    return write_part


def _tell_missing(connection: Connection, stream: Stream, table: Table) -> None:
    """Tell of columns that are nearly always there and lack in too many of a window's rows, and when that is over."""
    for usual in table.usual:
        found = stage.missing(connection, table, usual.column)
        if found.rows < usual.of_rows:
            continue
        key = incidents.lacking(stream.name, f"{table.name}.{usual.column}")
        if found.missing <= usual.most_missing * found.rows:
            incidents.close(connection, [key], f"{stream.name}: {table.qualified}.{usual.column} is there again.")
            continue
        incidents.open(
            connection,
            key=key,
            severity="error",
            stream=stream.name,
            text=f"{stream.name}: {usual.column} is missing in {found.missing} of {found.rows} rows of "
            f"{table.qualified}, more than {usual.most_missing:.0%}. The rows are kept without it. The upstream may "
            "call it otherwise now: look at what it sends, mend the parser, then replay.",
        )


def _tell_unknown_columns(connection: Connection, stream: Stream, readings: Sequence[Reading]) -> None:
    """Tell once that an upstream sends columns that nobody knows; their values are kept in `extra`."""
    found = {
        tuple(map(told, reading.parsed.unknown_columns)): reading.unit
        for reading in reversed(readings)
        if reading.parsed
    }
    for columns, unit in found.items():
        kept = "Their values are kept in extra; declare them to make them columns of the table."
        alerts.unknown_columns(connection, stream.name, columns, unit, kept)
