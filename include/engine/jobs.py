"""Job runs: a backfill or replay as asked for, its chunks, its progress and what it came to.

Promises: the same request twice is one run; chunks are written newest first, in batches with flat memory, and
planning goes on where it ended; a run that starts again opens its failed chunks and leaves the good ones. Never: no
lease, freeze or budget is overridden, and no request is sent here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any, Literal

from include.calendars import Calendar
from include.contract import Chunk, Mode, Outcome, Stream
from include.engine import chunks, subjects, versioned, windows
from include.engine.db import Connection, Row, connect, query
from include.engine.verdict import kst

BATCH = 5_000
RUN_ID = re.compile(r"[A-Za-z0-9_.~:+-]{1,200}")


class JobRefused(Exception):
    """The request cannot be done as it stands; the text says why and what would do."""


@dataclass(frozen=True)
class JobRequest:
    """What is asked for: mode, streams, session dates (both inclusive), keys, and how.

    `asking` names the one asking that this is (an Airflow run), which may come here more than once: it forces once.
    Empty, each call is an asking of its own.
    """

    mode: Mode
    streams: tuple[Stream, ...]
    start: date | None
    end: date | None
    keys: tuple[str, ...] = ()
    timeframe: str = ""
    run_id: str = ""
    force: bool = False
    replay_into: Literal["overwrite", "versioned"] = "overwrite"
    reason: str = ""
    who: str = "cli"
    asking: str = ""

    @property
    def name(self) -> str:
        """The run's name: the one given, or one made from its content, so that the same request joins it."""
        if self.run_id:
            return self.run_id
        sources = sorted({stream.source for stream in self.streams})
        parts = [str(self.mode), "+".join(sources), str(self.start or "newest"), str(self.end or "newest")]
        content: dict[str, Any] = {"streams": sorted(stream.name for stream in self.streams), "keys": sorted(self.keys)}
        if self.mode is Mode.REPLAY:
            content["parsers"] = {stream.name: stream.parser_version for stream in self.streams}
            content["into"] = self.replay_into
        if self.timeframe:
            content["timeframe"] = self.timeframe
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
        return "-".join([*parts, digest])


@dataclass(frozen=True)
class Progress:
    """How far a run is: chunks in all, done, failed and open; the last in order that is done and where it goes on."""

    run_id: str
    total: int
    done: int
    failed: int
    out_of_budget: int
    running: int
    open: int
    partial: int
    last_good: str | None
    restart_at: str | None
    rows_new: int
    rows_changed: int
    rows_withdrawn: int
    rows_read: int
    first_failure: str | None
    is_planned: bool = True
    failed_terminal: int = 0

    @property
    def words(self) -> str:
        """Progress in one line."""
        text = f"{self.done:,} of {self.total:,} chunks done"
        for value, word in (
            (self.failed, "failed"),
            (self.out_of_budget, "out of budget"),
            (self.running, "running"),
            (self.open, "waiting"),
        ):
            if value:
                text += f", {value:,} {word}"
        if self.restart_at:
            text += f"; goes on at {self.restart_at.removeprefix(self.run_id + '/')}"
        return text


def chunks_of(
    request: JobRequest, stream: Stream, days: Calendar, now: datetime, about: tuple[str, ...] = ()
) -> Iterator[Chunk]:
    """Return the chunks of a run, newest first; a poll of keys has one, for the session that was due last."""
    if request.mode is Mode.POLL:
        return chunks.newest(stream, request.keys, days, now)
    assert request.start is not None
    assert request.end is not None
    return chunks.between(
        stream,
        request.mode,
        request.start,
        request.end,
        request.keys,
        days,
        now,
        about,
        request.timeframe,
        is_forced=request.force,
    )


def dated(url: str, request: JobRequest) -> JobRequest:
    """Give a backfill without dates the range that is usual for its streams, where all of them have one."""
    ranges = [stream.usual_range for stream in request.streams]
    if request.mode is not Mode.BACKFILL or request.start or request.end or not all(ranges):
        return request
    connection = connect(url, application="daybook jobs", autocommit=True)
    try:
        now = windows.now(connection)
    finally:
        connection.close()
    days = [
        usual(chunks.latest_day(stream, now)) for stream, usual in zip(request.streams, ranges, strict=True) if usual
    ]
    return replace(request, start=min(first for first, _ in days), end=max(last for _, last in days))


def check(request: JobRequest, now: datetime) -> None:
    """Refuse impossible combinations in words.

    Raises:
        JobRefused: the text says what is wrong and what would do.
    """
    mode = request.mode
    if mode is not Mode.POLL and (request.start is None or request.end is None):
        raise JobRefused(f"mode={mode} needs start_date and end_date (session dates, both inclusive).")
    if request.start and request.end and request.end < request.start:
        raise JobRefused(f"end_date {request.end} is before start_date {request.start}; swap them.")
    if mode is Mode.POLL and (request.start or request.end):
        raise JobRefused("mode=poll takes no dates: it asks for what is due now. Use mode=backfill for a range.")
    if request.timeframe and mode is not Mode.BACKFILL:
        raise JobRefused(f"timeframe is for mode=backfill; mode={mode} takes what each stream collects.")
    if request.run_id and not RUN_ID.fullmatch(request.run_id):
        raise JobRefused(f"run_id {request.run_id!r} may hold letters, digits and _ . ~ : + - only, at most 200.")
    if mode is Mode.REPLAY and not request.reason:
        raise JobRefused("mode=replay needs a reason: it is recorded with the run.")
    for stream in request.streams:
        today = chunks.latest_day(stream, now)
        if request.start and request.start > today:
            raise JobRefused(f"start_date {request.start} is in the future; the newest session can be {today}.")
        if request.end and request.end > today and mode is Mode.BACKFILL:
            raise JobRefused(f"end_date {request.end} is in the future; the newest session can be {today}.")
        if stream.snapshot_only and mode is Mode.BACKFILL:
            raise JobRefused(f"{stream.name} is only a snapshot of today; {stream.snapshot_only}")
        if request.timeframe and (stream.timeframes is None or not stream.timeframes(request.timeframe)):
            raise JobRefused(
                f"{stream.name} has no bars of the length {request.timeframe!r}. Name the streams that have, and write "
                "it as 5Min, 1Hour, 1Day, 1Week or 1Month."
            )
        unknown = [key for key in request.keys if not stream.known_key(key)]
        if unknown:
            raise JobRefused(f"{stream.name} has no key {', '.join(unknown)}; its keys are {stream.keys_are}.")
        if request.end and request.end < stream.first_session and mode is Mode.BACKFILL:
            raise JobRefused(f"{stream.name} begins on {stream.first_session}; end_date {request.end} is before that.")


def start(url: str, request: JobRequest) -> str:
    """Write the run, or join the one of this name, and open again what failed in it; return its words.

    Raises:
        JobRefused: the request cannot be done, or the name belongs to another request.
    """
    connection = connect(url, application="daybook jobs", autocommit=True)
    try:
        check(request, windows.now(connection))
        created = connection.execute(query("jobs.create"), _values(request)).fetchone()
        row = connection.execute(query("jobs.find"), {"run_id": request.name}).fetchone()
        assert row is not None
        if created is None:
            _refuse_another(row, request)
        if request.mode is Mode.REPLAY and request.replay_into == "versioned":
            # Made on joining too: who wrote the run down may have died before making them.
            copies = [name for stream in request.streams for name in versioned.create(url, stream, request.name)]
            if created is not None:
                return f"STARTED – run {request.name}, into {', '.join(copies)}"
        if created is None:
            return _reopen(connection, request, row)
        return f"STARTED – run {request.name}"
    finally:
        connection.close()


def _values(request: JobRequest) -> dict[str, Any]:
    return {
        "run_id": request.name,
        "mode": str(request.mode),
        "streams": [stream.name for stream in request.streams],
        "start": request.start,
        "end": request.end,
        "keys": list(request.keys),
        "force": request.force,
        "asking": request.asking or None,
        "replay_into": request.replay_into if request.mode is Mode.REPLAY else None,
        "reason": request.reason or None,
        "parsers": json.dumps({stream.name: stream.parser_version for stream in request.streams}),
        "who": request.who,
    }


def _refuse_another(row: Row, request: JobRequest) -> None:
    into = request.replay_into if request.mode is Mode.REPLAY else None
    names = [stream.name for stream in request.streams]
    asked = (str(request.mode), sorted(names), request.start, request.end, sorted(request.keys), into)
    kept = (sorted(row["streams"]), row["range_start"], row["range_end"], sorted(row["keys"]))
    there = (row["mode"], *kept, row["replay_into"])
    if asked != there:
        beside = f", into {there[5]}" if there[5] else ""
        keys = ", ".join(there[4]) or "all"
        raise JobRefused(
            f"run_id {request.name} belongs to another request ({there[0]} of {', '.join(there[1])} "
            f"{there[2]} to {there[3]}, keys {keys}{beside}). Choose another run_id, or leave it empty."
        )


def _reopen(connection: Connection, request: JobRequest, row: Row) -> str:
    opened = connection.execute(
        query("jobs.reopen"),
        {"run_id": request.name, "force": request.force, "asking": request.asking or None, "who": request.who},
    ).rowcount
    if opened:
        return f"REOPENED – run {request.name}: {opened:,} chunks are open again, the others stay done"
    if row["outcome"] == Outcome.SUCCESS:
        again = "force does it again"
        if request.force:
            again = "it was forced by this very asking, so to force it again trigger a new run"
        return f"ALREADY DONE – run {request.name} ended at {kst(row['finished_at'])}; {again}"
    return f"JOINED – run {request.name} is already there"


def plan(url: str, request: JobRequest, stream: Stream) -> int:
    """Write the chunks of one stream that are not there yet, newest first, and return how many were written.

    Goes on where an earlier call ended; memory is flat whatever the range.
    """
    connection = connect(url, application="daybook jobs", autocommit=True)
    try:
        row = connection.execute(query("jobs.find"), {"run_id": request.name}).fetchone()
        assert row is not None
        planned_to = (row["planned_to"] or {}).get(stream.name)
        if planned_to == "all":
            return 0
        days, now = windows.days_of(connection, stream), windows.now(connection)
        about = subjects.held(connection, stream)
        todo = chunks.after(lambda: chunks_of(request, stream, days, now, about), planned_to)
        written = 0
        while batch := list(islice(todo, BATCH)):
            written += _write(connection, request, stream, batch, batch[-1].name)
        _write(connection, request, stream, [], "all")
        return written
    finally:
        connection.close()


def _write(connection: Connection, request: JobRequest, stream: Stream, batch: Sequence[Chunk], planned_to: str) -> int:
    cycles = [(chunk, *cut) for chunk in batch for cut in chunks.cut(chunk)]
    with connection.transaction():
        row = connection.execute(
            query("jobs.write_chunks"),
            {
                "stream": stream.name,
                "mode": str(request.mode),
                "run_id": request.name,
                "slots": [f"{request.name}/{name}" for _, name, _ in cycles],
                "kinds": ["part" if chunk.parts else "chunk" for chunk, _, _ in cycles],
                "days": [chunk.session_date for chunk, _, _ in cycles],
                "chunks": [json.dumps(dict(asks)) for _, _, asks in cycles],
            },
        ).fetchone()
        assert row is not None
        written = int(row["wholes"])
        connection.execute(
            query("jobs.planned"),
            {"run_id": request.name, "stream": stream.name, "to": planned_to, "written": written},
        )
    return written


def write_of_units(
    connection: Connection,
    request: JobRequest,
    kind: Literal["chunk", "part"],
    cycles: Mapping[str, Sequence[str]],
    day: date | None = None,
) -> None:
    """Write a run of one stream over units that are held, with all its cycles; one that is there already stays.

    The caller's transaction holds it, with whatever guards it.

    Args:
        connection: in a transaction.
        request: names the run, with its stream, who asks and why.
        kind: what its cycles are.
        cycles: slots, as they follow the run's name, with the units of each.
        day: the session that all of them are of.
    """
    (stream,) = request.streams
    if connection.execute(query("jobs.create"), _values(request)).fetchone() is None:
        return
    row = connection.execute(
        query("jobs.write_chunks"),
        {
            "stream": stream.name,
            "mode": str(request.mode),
            "run_id": request.name,
            "slots": [f"{request.name}/{name}" for name in cycles],
            "kinds": [kind] * len(cycles),
            "days": [day] * len(cycles),
            "chunks": [json.dumps({"units": list(units)}) for units in cycles.values()],
        },
    ).fetchone()
    assert row is not None
    told = {"run_id": request.name, "stream": stream.name, "to": "all", "written": row["wholes"]}
    connection.execute(query("jobs.planned"), told)


def progress(url: str, run_id: str, stream: str | None = None) -> Progress:
    """Return how far a run is, or one stream of it."""
    connection = connect(url, application="daybook jobs", autocommit=True)
    try:
        row = connection.execute(query("jobs.progress"), {"run_id": run_id, "stream": stream}).fetchone()
    finally:
        connection.close()
    assert row is not None
    return Progress(run_id=run_id, **row)


def next_eligible(url: str, run_id: str, stream: str) -> datetime | None:
    """Return when the next chunk of a stream can be claimed; None where none is open or running."""
    connection = connect(url, application="daybook jobs", autocommit=True)
    try:
        row = connection.execute(query("jobs.next_eligible"), {"run_id": run_id, "stream": stream}).fetchone()
    finally:
        connection.close()
    return row["at"] if row else None


def conclude(url: str, run_id: str) -> tuple[Outcome | None, Progress]:
    """Write what a run came to once all its chunks are planned and none is open; return it with the progress."""
    state = progress(url, run_id)
    outcome: Outcome | None
    if not state.is_planned or state.open or state.running:
        outcome = None
    elif state.failed and not state.done:
        outcome = Outcome.FAILED_TERMINAL if state.failed_terminal == state.failed else Outcome.FAILED_RETRIABLE
    elif state.failed or state.out_of_budget or state.partial:
        outcome = Outcome.PARTIAL
    else:
        outcome = Outcome.SUCCESS
    if outcome is not None:
        connection = connect(url, application="daybook jobs", autocommit=True)
        try:
            connection.execute(query("jobs.conclude"), {"run_id": run_id, "outcome": str(outcome)})
        finally:
            connection.close()
    return outcome, state


def dry_run(url: str, request: JobRequest) -> list[str]:
    """Say what a run would do, chunk by chunk, and how long it would take at the host's rate; writes nothing.

    Raises:
        JobRefused: the request cannot be done.
    """
    connection = connect(url, application="daybook jobs", autocommit=True)
    try:
        now = windows.now(connection)
        check(request, now)
        lines = [f"DRY RUN – run {request.name} would be:"]
        for stream in request.streams:
            days = windows.days_of(connection, stream)
            about = subjects.held(connection, stream)
            count, keys = 0, set[str]()
            for chunk in chunks_of(request, stream, days, now, about):
                count += 1
                if request.mode is not Mode.REPLAY:
                    for _, asks in chunks.cut(chunk):
                        ask = replace(chunks.ask(stream, request.mode, asks, days), subjects=about)
                        keys.update(each.key for each in stream.plan(ask))
            requests = len(keys) * stream.usual_requests
            seconds = requests * stream.host_group.interval.total_seconds()
            lines.append(
                f"{stream.name}: {count:,} chunks, {requests:,} requests, about {timedelta(seconds=round(seconds))} "
                f"at one request every {stream.host_group.interval.total_seconds():g} s"
            )
        lines.append("Nothing was written and nothing was asked for.")
        return lines
    finally:
        connection.close()
