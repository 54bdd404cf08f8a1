"""Daybook's command line: the same engine without Airflow.

Promises: every verb says what it did in words that begin with the one that matters, and ends with 0 (done), 1
(it failed or was refused) or 2 (it was asked wrongly). Never: no rule of collecting lives here.
"""

from __future__ import annotations

import argparse
import getpass
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import Literal

import psycopg

from include import calendars, registry, settings
from include.contract import CycleStatus, Mode, Source, Stream
from include.engine import controls, credentials, cycle, jobs, quarantine, replay, snapshot, windows
from include.engine.db import query, transaction
from include.engine.lease import holder
from include.engine.migrations import migrate
from include.engine.raw import RawStore
from include.engine.verdict import Verdict, kst

# A verb that waits for another owner's lease, or for a retry, looks again at least this often, in seconds.
LONGEST_WAIT = 30.0


class CommandRefused(Exception):
    """A verb was given too little to act on; the text says what is missing."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except (
        settings.SettingError,
        registry.UnknownName,
        jobs.JobRefused,
        quarantine.QuarantineRefused,
        calendars.UnknownCalendar,
        CommandRefused,
        controls.ControlRefused,
    ) as refusal:
        print(f"REFUSED – {refusal}", file=sys.stderr)
        return 1
    except psycopg.OperationalError as error:
        first = str(error).partition("\n")[0]
        print(f"FAILED – the warehouse does not answer: {first} Nothing was done.", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    return code


def _url() -> str:
    return settings.connection("warehouse").database_url


def _streams(options: argparse.Namespace) -> tuple[Stream, ...]:
    if options.streams:
        return tuple(registry.stream(name) for name in options.streams)
    return registry.source(options.source).streams if options.source else registry.streams()


def _worker(source: Source, stop: Callable[[], bool]) -> cycle.Worker:
    settled = settings.load()
    if settings.connection_text(source.connection) is None and not source.needs_key:
        reach = credentials.build(source, host="", sandbox_url=settled.sandbox_url)
    else:
        given = settings.connection(source.connection)
        host = (
            f"{given.conn_type}://{given.host}" if given.conn_type in ("http", "https") and given.host else given.host
        )
        reach = credentials.build(
            source,
            host=given.host if "://" in given.host else host,
            password=given.password,
            schema=given.schema,
            port=given.port,
            extra=given.extra,
            sandbox_url=settled.sandbox_url,
        )
    return cycle.Worker(_url(), RawStore(settled.raw_root), reach, holder(), stop)


def _stop_flag() -> Callable[[], bool]:
    """Turn TERM and Ctrl-C into a flag: the slice gives its lease back and ends."""
    flag = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: flag.set())
    return flag.is_set


def _migrate(options: argparse.Namespace) -> int:
    done = migrate(_url())
    print(f"DONE – migrations {', '.join(done)} were run" if done else "NOTHING – the schema is up to date")
    return 0


def _poll(options: argparse.Namespace) -> int:
    stop, url, code = _stop_flag(), _url(), 0
    windows.declare(url, registry.streams())
    for stream in _streams(options):
        found = windows.open_due(url, stream)
        if found is None:
            print(f"NOTHING – {stream.name}: no window was ever due")
            continue
        worker = _worker(registry.source(stream.source), stop)
        verdict = _work_on(partial(cycle.work, worker, stream, Mode.POLL, None), stop)
        if verdict is None:
            row = found.row
            print(f"{row['cycle_status']} – {stream.name}: window {kst(row['window_start'])} needs no work now")
        code = max(code, int(verdict is not None and verdict.status is CycleStatus.FAILED))
    return code


def _work_on(work: Callable[[], Verdict | None], stop: Callable[[], bool]) -> Verdict | None:
    """Work slices until none is eligible, print each, and return the last."""
    last: Verdict | None = None
    while not stop():
        verdict = work()
        if verdict is None:
            break
        print(verdict.words, flush=True)
        last = verdict
        if verdict.is_refused:
            break
    return last


def _job(options: argparse.Namespace, mode: Mode) -> int:
    request = jobs.JobRequest(
        mode=mode,
        streams=_streams(options),
        start=options.start,
        end=options.end,
        keys=tuple(options.keys or ()),
        run_id=options.run_id or "",
        force=options.force,
        reason=getattr(options, "reason", "") or "",
        replay_into="versioned" if getattr(options, "beside", False) else "overwrite",
        who=options.who,
    )
    if options.dry_run:
        for line in jobs.dry_run(_url(), request):
            print(line)
        return 0
    stop, url = _stop_flag(), _url()
    windows.declare(url, registry.streams())
    print(jobs.start(url, request))
    return _run(url, request.name, request.streams, mode, request, stop)


def _run(
    url: str,
    run_id: str,
    streams: Sequence[Stream],
    mode: Mode,
    request: jobs.JobRequest | None,
    stop: Callable[[], bool],
) -> int:
    for stream in streams:
        if request is not None:
            jobs.plan(url, request, stream)
        worker = _worker(registry.source(stream.source), stop)
        while not stop():
            one = partial(cycle.work, worker, stream, mode, run_id)
            _work_on(partial(replay.work, worker, stream, run_id) if mode is Mode.REPLAY else one, stop)
            at = jobs.next_eligible(url, run_id, stream.name)
            if at is None:
                break
            _wait_for(stop)
    outcome, progress = jobs.conclude(url, run_id)
    print(f"{str(outcome or 'unfinished').upper()} – run {run_id}: {progress.words}")
    return 0 if outcome in ("success", "partial") else 1


def _wait_for(stop: Callable[[], bool]) -> None:
    until = time.monotonic() + LONGEST_WAIT
    while not stop() and time.monotonic() < until:
        time.sleep(0.5)


def _status(options: argparse.Namespace) -> int:
    with transaction(_url(), application="daybook cli") as connection:
        for row in connection.execute(query("status.streams")).fetchall():
            print(
                f"{row['stream']:<24} {row['cycle_status'] or 'no window yet':<16} window {kst(row['window_start'])}"
                f"  session {row['session_date'] or '–'}  checkpoint {row['checkpoint'] or '–'}"
                f"  pending {row['pending']}  quarantine {row['quarantined']}"
            )
            if row["failure_reason"]:
                print(f"    {row['failure_reason']}: {row['failure_cause_summary']}")
    return 0


def _runs(options: argparse.Namespace) -> int:
    with transaction(_url(), application="daybook cli") as connection:
        rows = connection.execute(query("status.runs"), {"limit": options.limit}).fetchall()
    for row in rows:
        progress = jobs.progress(_url(), row["run_id"])
        print(f"{row['outcome'] or 'unfinished'!s:<18} {row['run_id']}  {progress.words}  by {row['requested_by']}")
    return 0


def _quarantine(options: argparse.Namespace) -> int:
    url = _url()
    if options.action == "list":
        for row in quarantine.entries(url, options.stream, options.state):
            place = f"{row['stream']}  {row['unit']}  {row['position'] or 'unit'}"
            print(f"{row['quarantine_id']:>6}  {place}: {row['reason']}")
        return 0
    if options.action == "drop":
        row = quarantine.drop(url, options.id, options.who, options.why)
        print(f"DROPPED – entry {row['quarantine_id']} of {row['unit']}")
        return 0
    stream = registry.stream(options.stream or _stream_of(url, options.id))
    action = quarantine.retry if options.action == "retry" else quarantine.accept
    run_id = action(url, stream, options.id, options.who, options.why)
    return _run(url, run_id, [stream], Mode.REPLAY, None, _stop_flag())


def _stream_of(url: str, entry_id: int) -> str:
    with transaction(url, application="daybook cli") as connection:
        row = connection.execute(query("quarantine.find"), {"id": entry_id}).fetchone()
    if row is None:
        raise quarantine.QuarantineRefused(f"There is no quarantine entry {entry_id}.")
    name: str = row["stream"]
    return name


def _calendar(options: argparse.Namespace) -> int:
    if options.action == "list":
        with transaction(_url(), application="daybook cli") as connection:
            for row in connection.execute(query("calendar.list")).fetchall():
                print(f"{row['calendar']}  {row['day']}  {row['state']:<9} {row['reason']}  {row['decided_by'] or ''}")
        return 0
    calendars.calendar(options.calendar)
    if options.day is None or not options.why:
        raise CommandRefused("Name the day, and say --why: both are kept, and shown to whoever looks next.")
    states: dict[str, Literal["open", "closed", "rejected"]] = {"close": "closed", "open": "open", "reject": "rejected"}
    state = states[options.action]
    windows.decide(_url(), options.calendar, options.day, state, who=options.who, why=options.why)
    print(f"DONE – {options.calendar} {options.day} is {state}")
    return 0


def _controls(options: argparse.Namespace) -> int:
    url = _url()
    windows.declare(url, registry.streams())
    if options.action == "list":
        rows = controls.listed(url)
        print("\n".join(controls.describe(row) for row in rows) or "NOTHING – nothing is frozen or set")
        return 0
    scopes: tuple[controls.Scope, ...] = ("source", "stream", "job")
    named = [(scope, str(getattr(options, scope))) for scope in scopes if getattr(options, scope)]
    if len(named) + options.all + options.dispatch != 1:
        print("REFUSED – say one thing: --all, --source, --stream, --job or --dispatch", file=sys.stderr)
        return 2
    others: tuple[controls.Scope, str] = ("dispatch" if options.dispatch else "all", "")
    scope, name = named[0] if named else others
    print(controls.apply(url, controls.Change(options.action, scope, name, options.who, options.why)).words)
    return 0


def _snapshot(options: argparse.Namespace) -> int:
    url = _url()
    found = snapshot.read(url, options.day or snapshot.next_cutoff(url)[0].date())
    print(found.words)
    for item in found.items or ():
        print(
            f"{item.stream:<24} {item.cycle_status:<16} window {kst(item.window_start)}  session "
            f"{item.session_date or '–'}  rows {item.fetched_count:,}"
            f"{'  ABNORMAL' if item.abnormal else ''}{'  FROZEN' if item.frozen else ''}"
        )
    return 0


def _watch(options: argparse.Namespace) -> int:
    from include.ops.watch import watch

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    watch(_url(), stop, has_slack=settings.connection_text("slack") is not None)
    return 0


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date like 2026-09-15") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cli", description="Collect, replay and look, without Airflow.")
    verbs = parser.add_subparsers(required=True, metavar="verb")

    def verb(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    verb("migrate", _migrate, "Bring the database to the newest schema.")
    verb("status", _status, "Show the newest window of every stream.")
    runs = verb("runs", _runs, "Show the newest backfills and replays with their progress.")
    runs.add_argument("--limit", type=int, default=20)
    verb("watch", _watch, "End the leases of vanished workers and send alerts, until stopped.")

    for name, run, text in (
        ("poll", _poll, "Collect what is due now."),
        ("backfill", lambda o: _job(o, Mode.BACKFILL), "Collect a range of session dates."),
        ("replay", lambda o: _job(o, Mode.REPLAY), "Read again what is stored, without any upstream."),
    ):
        added = verb(name, run, text)
        added.add_argument("--source", help="all streams of this source (default: of every source)")
        added.add_argument("--streams", nargs="+", metavar="STREAM", help="only these, e.g. finra.short_volume")
        if name == "poll":
            continue
        added.add_argument("--start", type=_day, required=True, metavar="DATE", help="first session date, inclusive")
        added.add_argument("--end", type=_day, required=True, metavar="DATE", help="last session date, inclusive")
        added.add_argument("--keys", nargs="+", help="only these keys (facilities, symbols, …)")
        added.add_argument("--run-id", help="name of the run; made from its content where not given")
        added.add_argument("--force", action="store_true", help="once more, although it is done")
        added.add_argument("--dry-run", action="store_true", help="print the plan and write nothing")
        added.add_argument("--who", default=getpass.getuser(), help="who asks (default: this user)")
        if name == "replay":
            added.add_argument("--reason", required=True, help="why; kept with the run")
            added.add_argument("--beside", action="store_true", help="into copies of the tables, named after the run")

    out = verb("quarantine", _quarantine, "Look at quarantine, and let entries out.")
    out.add_argument("action", choices=["list", "retry", "accept", "drop"])
    out.add_argument("id", type=int, nargs="?", default=0)
    out.add_argument("--stream")
    out.add_argument("--state", default="open", choices=["open", "accepted", "dropped", "resolved"])
    out.add_argument("--who", default=getpass.getuser())
    out.add_argument("--why", default="")

    held = verb("controls", _controls, "Look at what is frozen, drained or switched off, and change it.")
    held.add_argument("action", choices=["list", "freeze", "drain", "resume", "retire", "activate", "off", "on"])
    held.add_argument("--all", action="store_true", help="everything")
    held.add_argument("--dispatch", action="store_true", help="the opening of windows (with off and on)")
    for scope in ("source", "stream", "job"):
        held.add_argument(f"--{scope}", help=f"one {scope}")
    held.add_argument("--who", default=getpass.getuser())
    held.add_argument("--why", default="")

    shot = verb("snapshot", _snapshot, "Show the 09:00 snapshot of a date in Seoul.")
    shot.add_argument("day", type=_day, nargs="?", metavar="DATE", help="default: today")

    days = verb("calendar", _calendar, "Look at calendar exceptions, and decide them.")
    days.add_argument("action", choices=["list", "close", "open", "reject"])
    days.add_argument("calendar", nargs="?", default="XNYS")
    days.add_argument("day", type=_day, nargs="?")
    days.add_argument("--who", default=getpass.getuser())
    days.add_argument("--why", default="")
    return parser


if __name__ == "__main__":
    sys.exit(main())
