"""Making files of what another stream holds: a window cuts the work into parts, and whoever comes claims them.

Promises: what is due follows from rows (the bytes that are held, and those that each file was made of), so that nothing
is made twice and nothing is forgotten, whoever was killed; a part is a cycle with a lease of its own, the largest units
come first, and each file bears its name before its row says so, under the token. What cannot be read is put aside with
the reason and its file stays as it was; the others go on. Never: a request is sent, and no unit is known by its name.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any

from include.contract import Ask, CycleStatus, Making, Mode, Outcome, Stream
from include.engine import gathering, incidents, jobs, plan, stage, windows
from include.engine.db import Connection, Row, connect, query
from include.engine.files import FileStore
from include.engine.lease import Lease, claim, renewed
from include.engine.made import Batch, flush
from include.engine.merge import Counts
from include.engine.surrender import shielded
from include.engine.verdict import Verdict, describe_counts, where

if TYPE_CHECKING:
    from include.engine.cycle import Worker

# How soon a window looks again whether others have ended their parts.
LOOK_AGAIN = timedelta(seconds=30)


def who(stream: Stream) -> str:
    """Return under which name the windows of a stream ask for their parts to be worked."""
    return f"windows of {stream.name}"


def units_due(connection: Connection, stream: Stream, making: Making) -> list[Row]:
    """Return the units whose file is to be made now, with the bytes that it is made of, the largest first."""
    if making.gather is not None:
        return gathering.due(connection, stream, making, making.gather)
    asked = {"stream": stream.name, "of": making.of, "parser_version": stream.parser_version}
    return connection.execute(query("making.due"), asked).fetchall()


def cut(making: Making, due: Iterable[Row]) -> list[list[str]]:
    """Cut units into parts, in their order."""
    parts: list[list[str]] = []
    size = 0
    for row in due:
        if not parts or size + row["size"] > making.part_bytes or len(parts[-1]) >= making.part_units:
            parts.append([])
            size = 0
        parts[-1].append(row["unit"])
        size += row["size"]
    return parts


def run_of(stream: Stream, lease: Lease) -> str:
    """Return the name of the run that a window cuts its work into."""
    return f"{stream.name}-{lease.cycle.slot}"


def open_runs(connection: Connection, stream: Stream) -> list[str]:
    """Return the runs that windows of a stream have cut their work into and that are not over."""
    rows = connection.execute(query("making.open_runs"), {"stream": stream.name, "who": who(stream)}).fetchall()
    return [row["run_id"] for row in rows]


def _write_run(connection: Connection, stream: Stream, lease: Lease, parts: Sequence[Sequence[str]]) -> str:
    """Write the parts of a window down, once; a second call finds them there."""
    run_id = run_of(stream, lease)
    reason = f"parts of the window of {lease.cycle.slot}"
    request = jobs.JobRequest(Mode.REPLAY, (stream,), None, None, run_id=run_id, reason=reason, who=who(stream))
    cycles = {f"files#{number}": units for number, units in enumerate(parts, start=1)}
    with connection.transaction():
        lease.guard(connection)
        jobs.write_of_units(connection, request, "part", cycles, lease.cycle.session_date)
    return run_id


def work_part(worker: Worker, stream: Stream, run_id: str, mode: Mode = Mode.REPLAY) -> Verdict | None:
    """Claim the next part of a run and make its files; None where no part is to be had."""
    lease = claim(worker.url, stream.name, mode, run_id, worker.owner)
    if lease is None:
        return None
    worker.signal("claimed")
    return shielded(lease, stream, lambda: _renewed_part(worker, stream, lease))


def work_any(worker: Worker, stream: Stream) -> Verdict | None:
    """Claim a part that a window of a stream has written down, and make its files; None where none is to be had.

    Of a frozen stream none is: its parts wait, as its windows do.
    """
    connection = connect(worker.url, application="daybook making", autocommit=True)
    try:
        held = connection.execute(query("windows.held"), {"stream": stream.name}).fetchone()
        runs = [] if held is None or held["frozen"] is not None else open_runs(connection, stream)
    finally:
        connection.close()
    for run_id in runs:
        if (verdict := work_part(worker, stream, run_id)) is not None:
            return verdict
    return None


def _renewed_part(worker: Worker, stream: Stream, lease: Lease) -> Verdict:
    with renewed(lease) as pause:
        return part(worker, stream, lease, pause)


# --- a window


def window(worker: Worker, stream: Stream, lease: Lease) -> Verdict:
    """Work a window: write down its parts, work those that nobody else has, and say how all of them ended.

    Raises:
        LeaseLost: the window is somebody else's now; its parts stay.
    """
    making = stream.making
    assert making is not None
    began = time.monotonic()
    connection = connect(worker.url, application="daybook making", autocommit=True)
    try:
        runs = open_runs(connection, stream)
        if not runs:
            # What an earlier window has cut and nobody ended comes first; what is due then follows from rows.
            due = units_due(connection, stream, making)
            runs = [_write_run(connection, stream, lease, cut(making, due))] if due else []
        worker.signal("planned")
        is_more = True
        while is_more and not worker.stop() and lease.is_trusted():
            is_more = any(work_part(worker, stream, run_id) is not None for run_id in runs)
            if time.monotonic() - began > stream.budget.slice_seconds:
                break
        states = {run_id: jobs.conclude(worker.url, run_id) for run_id in runs}
        seen = connection.execute(query("making.refused_in"), {"runs": runs}).fetchone()
        assert seen is not None
        is_all = all(outcome is not None for outcome, _ in states.values())
        # After the parts that an earlier window left come this one's own.
        is_own = run_of(stream, lease) in runs
        still_due = bool(is_all and runs and not is_own and units_due(connection, stream, making))
        return _close(worker, stream, lease, connection, states, seen, is_more=is_more or still_due)
    finally:
        connection.close()


def _close(
    worker: Worker,
    stream: Stream,
    lease: Lease,
    connection: Connection,
    states: Mapping[str, tuple[Outcome | None, jobs.Progress]],
    refused: Row,
    *,
    is_more: bool,
) -> Verdict:
    """Write how a window stands: waiting for its parts, or over."""
    place, open_parts = where(lease.cycle.row), [run for run, (outcome, _) in states.items() if outcome is None]
    if worker.stop():
        words = f"STOPPED – {place}: the lease was given back; the parts that are left wait."
        return _settle(lease, stream, CycleStatus.PENDING, words, {}, is_stopped=True)
    failed = [state for outcome, state in states.values() if outcome in _FAILED]
    words = "; ".join(state.words for _, state in states.values()) or "no file is to be made"
    if open_parts or (is_more and not failed):
        at = None if is_more else windows.now(connection) + LOOK_AGAIN
        text = f"GOING ON – {place}: {words}"
        return _settle(lease, stream, CycleStatus.PENDING, text, {"next_eligible_at": at})
    if failed:
        cause = f"{failed[0].first_failure}"
        text = f"FAILED – {place}: {words}. First: {cause}. What was made stays; the next window makes the rest."
        facts = {"failure_kind": "retriable", "failure_reason": "files could not be made", "failure_cause": cause}
        return _settle(lease, stream, CycleStatus.FAILED, text, facts, Outcome.FAILED_RETRIABLE)
    if not states:
        text = f"NOTHING DUE – {place}: every file is made of the newest bytes that are held."
        return _settle(lease, stream, CycleStatus.SUCCESS, text, {"success_reason": "nothing_due"}, Outcome.SUCCESS)
    if refused["units"]:
        text = (
            f"PARTIAL – {place}: {refused['units']} units are in quarantine (first {refused['first_unit']}: "
            f"{refused['reason'][:200]}); {words}."
        )
        return _settle(lease, stream, CycleStatus.SUCCESS, text, {}, Outcome.PARTIAL)
    return _settle(lease, stream, CycleStatus.SUCCESS, f"DONE – {place}: {words}", {}, Outcome.SUCCESS)


_FAILED = (Outcome.FAILED_RETRIABLE, Outcome.FAILED_TERMINAL)


def _settle(
    lease: Lease,
    stream: Stream,
    status: CycleStatus,
    words: str,
    facts: Mapping[str, Any],
    outcome: Outcome | None = None,
    counts: Counts | None = None,
    *,
    is_stopped: bool = False,
) -> Verdict:
    connection = connect(lease.url, application="daybook making")
    try:
        lease.guard(connection)
        is_window = lease.cycle.window_start is not None
        if is_window and outcome in (Outcome.SUCCESS, Outcome.PARTIAL):
            plan.move_checkpoint(connection, stream, lease.cycle, lease.cycle.session_date)
            incidents.tell_recovery(connection, stream, lease.cycle, is_partial=outcome is Outcome.PARTIAL)
        if is_window and status is CycleStatus.FAILED:
            incidents.tell_ending(connection, stream, lease.cycle, status, f"{stream.name}: {words}", "error")
        lease.settle_and_commit(connection, status, {**facts, **({"outcome": outcome} if outcome else {})})
    finally:
        connection.close()
    counts = counts or Counts()
    return Verdict(
        stream.name,
        words,
        status=status,
        outcome=outcome,
        cycle_id=lease.cycle.cycle_id,
        slot=lease.cycle.slot,
        session_date=lease.cycle.session_date,
        next_eligible_at=facts.get("next_eligible_at"),
        counts=counts,
        is_partial=outcome is Outcome.PARTIAL,
        is_stopped=is_stopped,
    )


# --- a part


def part(worker: Worker, stream: Stream, lease: Lease, pause: Lock) -> Verdict:
    """Make the files of a part that are not made yet.

    Raises:
        LeaseLost: the lease is over; what was written down stays.
        OSError: files cannot be written, or stored bytes not be read.
    """
    making = stream.making
    assert making is not None
    if making.gather is not None:
        return _gather(worker, stream, lease, pause, making)
    chunk, store = lease.cycle.chunk, FileStore(worker.files)
    units = list(chunk["units"]) if "units" in chunk else _named(stream, lease)
    asked = {"stream": stream.name, "of": making.of, "units": units}
    connection = connect(worker.url, application="daybook making", autocommit=True)
    try:
        rows = connection.execute(query("making.sources"), asked).fetchall()
    finally:
        connection.close()
    counts, batch, refused = Counts(), Batch(), 0
    for row in rows:
        if worker.stop() or not lease.is_trusted():
            with pause:
                counts += flush(lease, stream, batch)
                words = f"STOPPED – {where(lease.cycle.row)}: the lease was given back ({describe_counts(counts)})"
                return _settle(lease, stream, CycleStatus.PENDING, words, {}, None, counts, is_stopped=True)
        if not _is_due(stream, row, again=bool(chunk.get("again"))):
            continue
        refused += _make(worker, making, store, row, batch)
        worker.signal("made")
        if batch.is_full:
            with pause:
                counts += flush(lease, stream, batch)
            worker.signal("applied")
            batch = Batch()
    with pause:
        counts += flush(lease, stream, batch)
        outcome = Outcome.PARTIAL if refused else Outcome.SUCCESS
        word = "PARTIAL" if refused else "MADE"
        words = f"{word} – {where(lease.cycle.row)}: {describe_counts(counts)}"
        return _settle(lease, stream, CycleStatus.SUCCESS, words, {}, outcome, counts)


def _gather(worker: Worker, stream: Stream, lease: Lease, pause: Lock, making: Making) -> Verdict:
    """Make the one file of all that another stream has made; what is pieced together stays for whoever goes on."""
    counts, batch = Counts(), Batch()
    found = gathering.gather(worker, stream, lease, making)
    if found.file is not None:
        row, draft, made, is_same = found.file
        batch.made.append((row, draft.path, draft, made, is_same))
    with pause:
        counts += flush(lease, stream, batch)
        is_over, word = found.is_over, "MADE" if found.is_over else "GOING ON"
        status, outcome = (CycleStatus.SUCCESS, Outcome.SUCCESS) if is_over else (CycleStatus.PENDING, None)
        words = f"{word} – {where(lease.cycle.row)}: {found.words} ({describe_counts(counts)})"
        return _settle(lease, stream, status, words, {}, outcome, counts, is_stopped=worker.stop() and not is_over)


def _named(stream: Stream, lease: Lease) -> list[str]:
    """The units of the keys that a chunk names."""
    keys = tuple(lease.cycle.chunk.get("keys", ()))
    return [request.unit for request in stream.plan(Ask(lease.cycle.mode, keys=keys))]


def _is_due(stream: Stream, row: Row, *, again: bool) -> bool:
    if row["sha256"] is None:
        return row["source_sha256"] is not None
    if row["parser_version"] is None:
        return True
    if row["parser_version"] > stream.parser_version:
        # A worker of the release before undoes nothing that a newer parser read.
        return False
    return again or row["source_sha256"] != row["sha256"] or row["parser_version"] < stream.parser_version


def _make(worker: Worker, making: Making, store: FileStore, row: Row, batch: Batch) -> int:
    """Make one file; returns 1 where its bytes could not be read."""
    unit, path = row["unit"], ""
    try:
        path = making.path(unit)
        body = None if row["sha256"] is None else worker.raw.body(bytes(row["sha256"]))
        draft, made = store.draft(path, lambda target: making.make(unit, body, target))
    except OSError:
        raise
    except Exception as refusal:
        batch.refused.append((row, path, stage.refusal_of(refusal)[0]))
        return 1
    is_same = row["made_sha256"] is not None and bytes(row["made_sha256"]) == draft.sha256
    store.place(draft)
    batch.made.append((row, path, draft, made, is_same))
    return 0
