"""Replay: reading again what is stored, without any upstream.

Promises: units are rebuilt from all their stored askings by today's parser, under a token like any other cycle, so
the order of replaying does not matter; what a newer parser reads leaves quarantine by itself. Never: no request is
sent, no checkpoint moves and no pending key changes; the items of a listing are told again only where there are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Any

from include.contract import Ask, CycleStatus, Mode, Outcome, Stream
from include.engine import apply as applying
from include.engine import fetches, making, relisting, versioned
from include.engine.apply import Settlement
from include.engine.cycle import Worker
from include.engine.db import Connection, connect, query
from include.engine.lease import Lease, claim, renewed
from include.engine.merge import Counts
from include.engine.surrender import shielded
from include.engine.verdict import Verdict, describe_counts, describe_tables, where


def work(worker: Worker, stream: Stream, run_id: str) -> Verdict | None:
    """Claim the next replay batch of a run and rebuild its units; None where no batch is eligible."""
    if stream.making is not None:
        return making.work_part(worker, stream, run_id)
    lease = claim(worker.url, stream.name, Mode.REPLAY, run_id, worker.owner)
    if lease is None:
        return None
    worker.signal("claimed")
    return shielded(lease, stream, partial(_batch, worker, stream, lease))


def _batch(worker: Worker, stream: Stream, lease: Lease) -> Verdict:
    connection = connect(worker.url, application="daybook replay", autocommit=True)
    try:
        into = connection.execute(query("jobs.find"), {"run_id": lease.cycle.run_id}).fetchone()
        if into is not None and into["replay_into"] == "versioned":
            stream = versioned.stream_into_copies(stream, into["run_id"])
        with renewed(lease) as pause:
            units = _units(connection, stream, lease.cycle.chunk)
            counts, refused = Counts(), dict[str, str]()
            for unit in units:
                if worker.stop() or not lease.is_trusted():
                    with pause:
                        return _stopped(worker, lease, stream, counts)
                try:
                    with pause:
                        counts += _rebuild(worker, connection, lease, stream, unit, refused)
                except applying.Interrupted:
                    with pause:
                        return _stopped(worker, lease, stream, counts)
                worker.signal("applied")
            try:
                items = _items(worker, connection, lease, stream)
            except applying.Interrupted:
                with pause:
                    return _stopped(worker, lease, stream, counts)
            with pause:
                return _done(lease, stream, counts, len(units), refused, items)
    finally:
        connection.close()


def _units(connection: Connection, stream: Stream, chunk: Mapping[str, Any]) -> list[str]:
    """Return the units of a batch: those it names, that a plan of it names, or its keys' with answers for its days."""
    if "units" in chunk:
        return list(chunk["units"])
    if "first" not in chunk and "day" not in chunk:
        ask = Ask(Mode.REPLAY, keys=tuple(chunk.get("keys", ())), chunk=chunk)
        return fetches.units_with_answers(connection, stream.name, {request.unit for request in stream.plan(ask)})
    first, last = (date.fromisoformat(chunk.get(name) or chunk["day"]) for name in ("first", "last"))
    units, keys = fetches.units_between(connection, stream.name, first, last), chunk.get("keys")
    return [unit for unit in units if not keys or stream.is_of(unit, keys)]


def _rebuild(
    worker: Worker, connection: Connection, lease: Lease, stream: Stream, unit: str, refused: dict[str, str]
) -> Counts:
    def read_and_apply(now: applying.Try) -> Counts:
        held = applying.all_askings(connection, worker.raw, stream, [unit])
        if applying.is_surely_large(held):
            now.in_parts = True
        readings = [applying.read(stream, asking, now) for asking in held]
        if readings and readings[-1].error is not None:
            refused[unit] = readings[-1].error
        return applying.apply(
            lease,
            stream,
            (),
            readings,
            applying.going_on,
            in_parts=now.in_parts,
            may_go_on=lambda: not worker.stop() and lease.is_trusted(),
        )[0]

    newest = fetches.newest_parser(connection, stream.name, unit)
    if newest > stream.parser_version and not any(table.is_copy for table in stream.tables):
        refused[unit] = f"parser {newest} has read it, this worker has parser {stream.parser_version} only"
        return Counts()
    return applying.repeated(read_and_apply, stream)


def _items(worker: Worker, connection: Connection, lease: Lease, stream: Stream) -> dict[str, relisting.Item]:
    """Return what the stored lists make of a listing that has no items, else nothing."""
    if not relisting.is_wanted(connection, stream):
        return {}
    return relisting.told(connection, worker.raw, stream, lambda: not worker.stop() and lease.is_trusted())


def _stopped(worker: Worker, lease: Lease, stream: Stream, counts: Counts) -> Verdict:
    def finish(connection: Connection, none: Counts) -> Settlement:
        return Settlement(CycleStatus.PENDING, {})

    applying.repeated(lambda now: applying.apply(lease, stream, (), (), finish), stream)
    words = f"STOPPED – {where(lease.cycle.row)}: the lease was given back ({describe_counts(counts)})"
    return _verdict(lease, stream, CycleStatus.PENDING, words, counts, is_stopped=True)


def _done(
    lease: Lease,
    stream: Stream,
    counts: Counts,
    units: int,
    refused: dict[str, str],
    items: dict[str, relisting.Item],
) -> Verdict:
    def finish(connection: Connection, none: Counts) -> Settlement:
        if items:
            relisting.write(connection, stream, items)
        outcome = Outcome.PARTIAL if refused else Outcome.SUCCESS
        return Settlement(
            CycleStatus.SUCCESS, {"outcome": outcome, **({} if units else {"success_reason": "nothing_due"})}
        )

    applying.repeated(lambda now: applying.apply(lease, stream, (), (), finish), stream)

    words = f"REPLAYED – {where(lease.cycle.row)}: {units} units, {describe_counts(counts)}{describe_tables(counts)}"
    if refused:
        unit, reason = next(iter(refused.items()))
        words = f"PARTIAL – {words}; {len(refused)} units could not be read (first {unit}: {reason[:200]})"
    return _verdict(lease, stream, CycleStatus.SUCCESS, words, counts, is_partial=bool(refused))


def _verdict(
    lease: Lease,
    stream: Stream,
    status: CycleStatus,
    words: str,
    counts: Counts,
    *,
    is_partial: bool = False,
    is_stopped: bool = False,
) -> Verdict:
    outcome = (Outcome.PARTIAL if is_partial else Outcome.SUCCESS) if status is CycleStatus.SUCCESS else None
    return Verdict(
        stream=stream.name,
        words=words,
        status=status,
        outcome=outcome,
        cycle_id=lease.cycle.cycle_id,
        slot=lease.cycle.slot,
        session_date=lease.cycle.session_date,
        counts=counts,
        is_partial=is_partial,
        is_stopped=is_stopped,
    )
