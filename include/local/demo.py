"""The demo: everything once against the sandbox, and one table that says whether every line is good.

Promises: it starts from nothing each time, asks nobody anything, and ends with 0 only if every source was
collected, its file is on the Hub byte for byte, the 09:00 snapshot says that all was complete, the model has said
something of every filing whose text is there, and (with recordings) every recorded answer was read as it should be or
refused with its reason. Never: the real stack's state is touched.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from psycopg import sql

from include import registry, settings
from include.calendars import last_instant
from include.contract import Mode, Source, Stream
from include.engine import db
from include.local import attach, detach, keys, readings, recorded, reset, stack, status
from include.local.database import DEMO_START
from include.local.environment import Addresses
from include.local.failure import LocalFailure
from include.local.interrupts import Interrupts, Stopped
from include.local.readings import Reading
from include.local.recorded import RightReading, Wanted
from include.local.rest import Airflow
from include.local.state import State, open_state
from include.outputs import releases

# A machine that has other work to do is slow, and nothing is wrong: with time of its own, a run takes seconds.
RUN_SECONDS = 1800.0
PUBLISH_SECONDS = 900.0
ANALYSIS_SECONDS = 900.0
# How long the asset event may take to start the publishing run before it is started by hand.
ASSET_SECONDS = 60.0
# How long before nine, by the simulated clock, the capture is started: long enough for a task to start.
NINE_IN = timedelta(seconds=8)
# How long before nine those are collected once more that have a window due by nine which had not begun at first.
LAST_WINDOWS_IN = timedelta(minutes=5)
HEADINGS = ("source", "stream", "cycle", "raw objects", "rows", "parquet files", "commit", "")


@dataclass(frozen=True)
class Line:
    """One line of a table: its cells, and whether what it says is good."""

    cells: tuple[str, ...]
    is_good: bool


@dataclass(frozen=True)
class Running:
    """The demo's stack while it is up: its Airflow, its warehouse, its Hub."""

    airflow: Airflow
    warehouse: str
    hub: str
    interrupts: Interrupts
    say: stack.Say


def demo(options: stack.Options, keep: bool, say: stack.Say) -> int:
    """Play the demo and return its exit code.

    Raises:
        LocalFailure: something is in the way, or did not come about; with its words.
    """
    state = open_state(settings.load().state, demo=True)
    _begin_afresh(state, say)
    code = detach.up(options, say)
    if code:
        return code
    kept = False
    try:
        with Interrupts() as interrupts, _running(state, interrupts, say) as running:
            good = _play(running, options)
            kept = keep
            print(_closing(state, running.airflow.url, keep, good), flush=True)
            return 0 if good else 1
    except Stopped:
        return 130
    finally:
        if not kept:
            status.down(settings.load().state, say, demo=True)


def _begin_afresh(state: State, say: stack.Say) -> None:
    """Delete what an earlier demo left; refuse while one runs."""
    state.check()
    if not state.exists():
        return
    if status.supervised(state.record()):
        raise LocalFailure("A demo is up already. ./run status shows its page; stop it first: ./run down")
    # A supervisor that vanished may have left processes, which would go on in files that are gone.
    status.end(state, say)
    reset.delete(state)


@contextmanager
def _running(state: State, interrupts: Interrupts, say: stack.Say) -> Iterator[Running]:
    record = state.record()
    assert record is not None
    where: Addresses = attach.addresses(state, record)
    airflow = Airflow(where.api, "admin", keys.passwords(state.directory)["admin"])
    with closing(airflow):
        yield Running(airflow, where.warehouse, where.sandbox or "", interrupts, say)


def _play(running: Running, options: stack.Options) -> bool:
    """Collect, publish, and print what came of it; return whether all of it is good."""
    lines: list[Line] = []
    played = [(source, stream) for source in registry.sources() for stream in source.streams]
    if options.recordings is None:
        _run(running, "dispatch", {})
        for source in registry.sources():
            for dag_id in dict.fromkeys(stream.job_name for stream in source.streams):
                _ask_again_now(running, [stream.name for stream in source.streams if stream.job_name == dag_id])
                _run(running, dag_id, {})
            _settle(running, source)
        _publish(running)
        nine, analysis = _snapshot_line(running), _analysis_line(running)
        # What was collected once more shortly before nine, and what the model said.
        _publish(running)
        _table(("09:00 in Seoul", "snapshot", "taken after", "by", "late", ""), [nine])
        _table(("analysis", "completed", "text not there yet", "failed", ""), [analysis])
        lines = [nine, analysis]
    else:
        recordings = recorded.read(options.recordings)
        answers = recorded.wanted(recordings)
        read = readings.read(options.recordings, recordings, {answer.recording.file for answer in answers})
        if not answers and not read:
            raise LocalFailure(f"None of our sources asks for anything that {options.recordings} holds.")
        recorded_of = {answer.stream.name for answer in answers}
        played = [(source, stream) for source, stream in played if stream.name in recorded_of]
        for source in {answer.source.name: answer.source for answer in answers}.values():
            for first, last in recorded.ranges([a.day for a in answers if a.source is source]):
                _run(running, source.name, _backfill(first.isoformat(), last.isoformat()))
        _publish(running)
        right = recorded.right_readings(options.recordings)
        lines = [_recorded_line(running, answer, right.get(answer.recording.file)) for answer in answers]
        lines += [_read_line(reading, right.get(reading.recording.file)) for reading in read]
        _table(("session", "recorded answer", "came out", "right reading", ""), lines)
    streams = [_stream_line(running, source, stream, options) for source, stream in played]
    if streams:
        _table(HEADINGS, streams)
    return all(line.is_good for line in [*lines, *streams])


def _snapshot_line(running: Running) -> Line:
    """Let it strike nine in Seoul, have the snapshot taken, and say what it says."""
    if again := due_later():
        _let_time_pass(running, LAST_WINDOWS_IN)
        for dag_id in again:
            _run(running, dag_id, {})
    _let_time_pass(running, NINE_IN)
    _run(running, "sla_capture", {})
    with db.transaction(running.warehouse, application="daybook demo") as connection:
        found = connection.execute(db.query("demo.snapshot")).fetchone()
    if found is None:
        return Line(("–", "none", "–", "–", "–", "was not prepared"), False)
    is_captured = found["capture_status"] == "CAPTURED"
    late = f"{found['late_count']} of {found['expected_count']}" if is_captured else "–"
    is_good = is_captured and found["late_count"] == 0 and found["expected_count"] > 0
    taken = f"{found['milliseconds']:.0f} ms" if is_captured else "–"
    trouble = "good" if is_good else found["late"] or found["miss_reason"] or "incomplete"
    by = (found["captured_by"] or "–").partition(" of ")[0]
    return Line((str(found["snapshot_date"]), found["capture_status"], taken, by, late, trouble), is_good)


def _analysis_line(running: Running) -> Line:
    """Wait until the model has said something of every filing whose text is there, and say how many."""
    end = time.monotonic() + ANALYSIS_SECONDS
    while (found := _analyses(running))["under_way"] and time.monotonic() < end:
        running.interrupts.wait(1)
        running.interrupts.check()
    is_good = bool(found["completed"]) and not found["under_way"] and not found["failed"]
    words = "good" if is_good else f"{found['under_way']} are still under way" if found["under_way"] else "incomplete"
    counts = (str(found[name]) for name in ("completed", "without_text", "failed"))
    return Line(("filings", *counts, words), is_good)


def _analyses(running: Running) -> dict[str, Any]:
    with db.transaction(running.warehouse, application="daybook demo") as connection:
        row = connection.execute(db.query("demo.analyses")).fetchone()
    assert row is not None
    return row


def due_later() -> list[str]:
    """Name the DAGs that have a window due by nine which begins after the demo does: those of many windows a day."""
    nine = DEMO_START.replace(hour=9, minute=0)
    found: dict[str, None] = {}
    for stream in registry.streams():
        when = stream.schedule
        if stream.sla_eligible and last_instant(when.cron, when.timezone, nine - when.allowance) > DEMO_START:
            found[stream.job_name] = None
    return list(found)


def _let_time_pass(running: Running, before: timedelta) -> None:
    """Put the simulated clock so long before nine in Seoul, unless it is later already."""
    with db.transaction(running.warehouse, application="daybook demo") as connection:
        connection.execute(db.query("demo.let_time_pass"), {"before": before})


def _backfill(first: str, last: str) -> dict[str, str]:
    return {"mode": "backfill", "start_date": first, "end_date": last}


def _run(running: Running, dag_id: str, conf: dict[str, Any]) -> None:
    """Trigger a DAG over REST and wait for its run."""
    what = " ".join(f"{name}={value}" for name, value in conf.items()) or "poll"
    run = running.airflow.call("POST", f"/dags/{dag_id}/dagRuns", json={"conf": conf, "logical_date": None})
    running.say(f"{dag_id}: {what} – triggered as {run['dag_run_id']}")
    end = time.monotonic() + RUN_SECONDS
    path = f"/dags/{dag_id}/dagRuns/{run['dag_run_id']}"
    while (ended := running.airflow.call("GET", path))["state"] not in ("success", "failed"):
        if time.monotonic() > end:
            raise LocalFailure(f"The run {run['dag_run_id']} of {dag_id} did not end within {RUN_SECONDS:.0f} s.")
        running.interrupts.wait(1)
        running.interrupts.check()

    running.say(f"{dag_id}: {ended['note'] or ended['state']}")


def _ask_again_now(running: Running, streams: list[str]) -> None:
    """Let windows be asked again at once that wait for a later try.

    The schedule's own run may have come before what it needs was collected, such as DART's list of filings.
    """
    with db.transaction(running.warehouse, application="daybook demo") as connection:
        connection.execute(db.query("demo.ask_again_now"), {"streams": streams})


def _settle(running: Running, source: Source) -> None:
    """Wait until no window of a source is being worked on.

    The schedule may have started a run of its own; the one that claims first does the work, and the other says so.
    """
    end = time.monotonic() + RUN_SECONDS
    while any(_found(running, stream)["cycle_status"] == "RUNNING" for stream in source.streams):
        if time.monotonic() > end:
            raise LocalFailure(f"A window of {source.name} was still being worked on after {RUN_SECONDS:.0f} s.")
        running.interrupts.wait(1)
        running.interrupts.check()


def _found(running: Running, stream: Stream, mode: Mode = Mode.POLL) -> dict[str, Any]:
    with db.transaction(running.warehouse, application="daybook demo") as connection:
        row = connection.execute(db.query("demo.stream"), {"stream": stream.name, "mode": str(mode)}).fetchone()
    assert row is not None
    return row


def _publish(running: Running) -> None:
    """Wait until everything that changed is on the Hub; the run that does it is started by the asset's event."""
    begun, by_hand = time.monotonic(), False
    while _waiting(running):
        running.interrupts.wait(1)
        running.interrupts.check()
        if not by_hand and time.monotonic() - begun > ASSET_SECONDS and not _at_work(running, "publish"):
            by_hand = True
            _run(running, "publish", {})
        if time.monotonic() - begun > PUBLISH_SECONDS:
            raise LocalFailure(
                f"The files were not on the Hub within {PUBLISH_SECONDS:.0f} s; the runs of the DAG publish say why."
            )
    running.say("published: nothing waits any more")


def _waiting(running: Running) -> int:
    with db.transaction(running.warehouse, application="daybook demo") as connection:
        row = connection.execute(db.query("demo.waiting")).fetchone()
    assert row is not None
    return int(row["waiting"])


def _at_work(running: Running, dag_id: str) -> bool:
    """Say whether a DAG has a run that is not over."""
    runs = running.airflow.call("GET", f"/dags/{dag_id}/dagRuns", params={"limit": 20})["dag_runs"]
    return any(run["state"] in ("queued", "running") for run in runs)


def _stream_line(running: Running, source: Source, stream: Stream, options: stack.Options) -> Line:
    recorded_only = options.recordings is not None
    found = _found(running, stream, Mode.BACKFILL if recorded_only else Mode.POLL)
    with db.transaction(running.warehouse, application="daybook demo") as connection:
        files = connection.execute(db.query("demo.files"), {"releases": _releases(source)}).fetchall()
        rows = 0
        for table in stream.tables:
            counted = connection.execute(
                db.template("counting.rows", table=sql.Identifier(table.schema, table.name))
            ).fetchone()
            rows += counted["rows"] if counted else 0
        made = connection.execute(db.query("demo.made"), {"stream": stream.name}).fetchone()
        rows += made["rows"] if made else 0
    published = [file for file in files if file["state"] == "published"]
    wrong = [file["path"] for file in published if not _is_on_hub(running, file)]
    # Recordings may hold nothing but files that have to be refused: then there is nothing to publish.
    # What keeps answers for another stream has no rows, and what makes files of them asks nobody.
    is_of_files = not stream.tables and (bool(rows) if stream.making else bool(found["raw_objects"]))
    has_data = bool(rows and published) or (recorded_only and not rows) or is_of_files or found["is_not_yet"]
    is_good = bool(
        found["cycle_status"] == "SUCCESS"
        and (found["raw_objects"] or stream.making)
        and has_data
        and not wrong
        and len(published) == len(files)
    )
    if is_good:
        words = "not there yet, asked again later" if found["is_not_yet"] else "good"
    else:
        words = found["failure_reason"] or (f"{wrong[0]} differs on the Hub" if wrong else "incomplete")
    commits = sorted({(file["commit_oid"] or "")[:8] for file in published})
    return Line(
        (
            source.name,
            stream.name,
            found["cycle_status"] or "none",
            f"{found['raw_objects']:,}",
            f"{rows:,}",
            str(len(published)),
            _few(commits) or "–",
            words,
        ),
        is_good,
    )


def _releases(source: Source) -> list[str]:
    """Name the releases that are made from a source's tables, or of files that its streams make."""
    own = {table.qualified for stream in source.streams for table in stream.tables}
    made = {stream.name for stream in source.streams}
    return [each.name for each in releases.RELEASES if each.made_by in made or own.intersection(each.tables)]


def _few(commits: Sequence[str]) -> str:
    """Name two commits, and how many more there are."""
    more = f" and {len(commits) - 2} more" if len(commits) > 2 else ""
    return ", ".join(commits[:2]) + more


def _is_on_hub(running: Running, file: dict[str, Any]) -> bool:
    """Download a file with the Hub's own client and compare its bytes with what was promised."""
    from huggingface_hub import hf_hub_download

    with tempfile.TemporaryDirectory(prefix="daybook-demo-") as folder:
        path = hf_hub_download(
            file["repository"],
            file["path"],
            repo_type="dataset",
            endpoint=running.hub,
            token="sandbox-token",
            cache_dir=folder,
        )
        return hashlib.sha256(Path(path).read_bytes()).digest() == bytes(file["sha256"])


def _recorded_line(running: Running, answer: Wanted, right: RightReading | None) -> Line:
    """Say what became of a recorded answer, and whether that is its right reading."""
    with db.transaction(running.warehouse, application="daybook demo") as connection:
        found = connection.execute(
            db.query("demo.unit"), {"stream": answer.stream.name, "unit": answer.unit}
        ).fetchone()
    rightly = _rightly(right)
    if found is None:
        is_answer = answer.recording.status == 200
        came, good = "not read" if is_answer else f"HTTP {answer.recording.status}, no data", not is_answer
    elif found["unit_refused"]:
        came, good = f"QUARANTINED – {found['unit_refused']}", right is None or not right.is_whole
    else:
        read, refused = found["rows_read"] or 0, found["rows_refused"]
        came = f"{read:,} rows" + (f", {refused} lines in quarantine" if refused else "")
        good = bool(found["is_applied"]) and (right is None or right.rows in (read, read + refused))
    return Line((answer.day.isoformat(), answer.recording.file, came, rightly, "good" if good else "WRONG"), good)


def _rightly(right: RightReading | None) -> str:
    if right is None:
        return "–"
    return f"{right.rows:,} rows" + ("" if right.is_whole else ", its count does not fit")


def _read_line(reading: Reading, right: RightReading | None) -> Line:
    """Say how a recorded answer was read that no day in its address tells, and whether that is its right reading."""
    if reading.refused:
        is_good = reading.recording.status != 200 or right is None or not right.is_whole
        came = f"refused by {reading.stream.name}: {reading.refused}"
    else:
        is_good = right is None or right.rows in (reading.rows, reading.rows + reading.rejected)
        came = f"{reading.rows:,} rows of {reading.stream.name}"
        came += f", {reading.rejected} for quarantine" if reading.rejected else ""
    return Line(("read alone", reading.recording.file, came, _rightly(right), "good" if is_good else "WRONG"), is_good)


def _table(headings: Sequence[str], lines: Sequence[Line]) -> None:
    rows = [tuple(headings), *(line.cells for line in lines)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(headings))]
    print()
    for number, row in enumerate(rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
    print(flush=True)


def _closing(state: State, page: str, keep: bool, good: bool) -> str:
    verdict = "DONE – every line is good." if good else "FAILED – at least one line is not good."
    if not keep:
        return f"{verdict} To look around: ./run demo --keep, then open {page}/dags/finra"
    password = keys.passwords(state.directory)["admin"]
    return f"{verdict} It goes on: {page}/dags/finra  (login admin / {password}); ./run down stops it."
