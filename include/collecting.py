"""The verbs that collect, replay and let out of quarantine, for a person at a command line.

Promises: they ask the engine for what a DAG asks it for, in the same words; a verb that is stopped gives its lease back
and says what goes on. Never: no rule of collecting lives here, and nothing of Airflow is needed.
"""

from __future__ import annotations

import argparse
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from include import registry, settings
from include.calendars import last_instant, next_instant
from include.contract import TERMINAL, Credentials, CycleStatus, Mode, Outcome, Source, Stream
from include.engine import (
    credentials,
    cycle,
    estimate,
    jobs,
    journal,
    once_more,
    quarantine,
    replay,
    restoring,
    windows,
)
from include.engine.lease import holder
from include.engine.raw import RawStore
from include.engine.verdict import Verdict, kst, where, worker_of

# A verb that waits for another owner's lease, or for a retry, looks again at least this often, in seconds.
LONGEST_WAIT = 30.0

Stop = Callable[[], bool]


class CommandRefused(Exception):
    """A verb was given too little to act on, or what does not go together; the text says what would do."""


def warehouse() -> str:
    """Return the address of the warehouse.

    Raises:
        SettingError: the connection `warehouse` is not set.
    """
    return settings.connection("warehouse").database_url


def chosen(options: argparse.Namespace) -> tuple[Stream, ...]:
    """Return the streams that a verb is about.

    Raises:
        UnknownName: nothing has such a name.
    """
    if options.streams:
        return tuple(registry.stream(name) for name in options.streams)
    return registry.source(options.source).streams if options.source else registry.streams()


def is_connected(stream: Stream) -> bool:
    """Say whether the environment has a connection to a stream's source."""
    return settings.connection_text(registry.source(stream.source).connection) is not None


def stop_flag() -> Stop:
    """Turn TERM and Ctrl-C into a flag: the slice gives its lease back and ends."""
    flag = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: flag.set())
    return flag.is_set


def poll(options: argparse.Namespace) -> int:
    """Collect what is due now, the newest of named keys, or once more what the newest windows were responsible for."""
    if options.force and options.keys:
        raise CommandRefused(
            "--keys asks for the newest of just those keys, each time anew; --force adds nothing. For another session "
            "use backfill with --keys."
        )
    url, streams = warehouse(), chosen(options)
    windows.declare(url, registry.streams(), is_connected)
    if not options.keys and not options.force:
        if options.dry_run:
            return _print(estimate.polls(url, streams))
        stop = stop_flag()
        named = bool(options.source or options.streams)
        code = max([_poll_one(url, stream, options, stop, named=named) for stream in streams], default=0)
        _write_journal(url)
        return code
    if not options.source and not options.streams:
        raise CommandRefused("Say for which --source or --streams: keys and sessions are those of a stream.")
    code = 0
    for job, members in groupby(sorted(streams, key=lambda stream: stream.job_name), lambda stream: stream.job_name):
        of_job = tuple(members)
        if options.force:
            start, end = once_more.sessions(url, of_job)
            request = jobs.JobRequest(Mode.BACKFILL, of_job, start, end, force=True, who=options.who)
        else:
            run_id = f"poll.{job}.cli-{uuid.uuid4().hex[:12]}"
            request = jobs.JobRequest(
                Mode.POLL, of_job, None, None, keys=tuple(options.keys), run_id=run_id, who=options.who
            )
        code = max(code, _ask_for(url, request, dry_run=options.dry_run))
    return code


def job(options: argparse.Namespace, mode: Mode) -> int:
    """Do a backfill or a replay."""
    request = jobs.JobRequest(
        mode=mode,
        streams=chosen(options),
        start=options.start,
        end=options.end,
        keys=tuple(options.keys or ()),
        timeframe=options.timeframe if mode is Mode.BACKFILL else "",
        run_id=options.run_id or "",
        force=options.force,
        reason=options.reason or "",
        replay_into="versioned" if mode is Mode.REPLAY and options.beside else "overwrite",
        who=options.who,
    )
    return _ask_for(warehouse(), jobs.dated(warehouse(), request), dry_run=options.dry_run)


def sync(options: argparse.Namespace) -> int:
    """Keep reports complete: what is due, or with mode=full all periods of what is asked for."""
    known = registry.sync_streams()
    for name in options.categories or ():
        if name not in known:
            raise CommandRefused(f"There is no category {name}; there are {', '.join(known)}.")
    streams = [known[name] for name in options.categories or known]
    rest = {"source": "", "force": False, "timeframe": "", "run_id": "", "reason": ""}
    asked = argparse.Namespace(**vars(options) | rest, streams=streams)
    if (options.mode or registry.sync_settings().mode) == "full":
        return job(asked, Mode.BACKFILL)
    if options.start or options.end:
        raise CommandRefused("--start and --end bound the periods of --mode full; recent takes no dates.")
    return poll(asked)


def let_out(options: argparse.Namespace) -> int:
    """Read a quarantined unit again, accept an entry, or drop it."""
    url = warehouse()
    if options.action == "drop":
        row = quarantine.drop(url, options.id, options.who, options.why)
        print(f"DROPPED – entry {row['quarantine_id']} of {row['stream']} {row['unit']}, by {options.who}")
        return 0
    stream = registry.stream(quarantine.find(url, options.id)["stream"])
    act = quarantine.retry if options.action == "retry" else quarantine.accept
    run_id = act(url, stream, options.id, options.who, options.why)
    print(f"{'RETRIED' if options.action == 'retry' else 'ACCEPTED'} – entry {options.id}; run {run_id} reads it again")
    return _work_off(url, run_id, [stream], Mode.REPLAY, options.who, stop_flag())


def restore(options: argparse.Namespace) -> int:
    """Tell an empty database again from the raw store: its ledger, and with today's parsers every table."""
    url, raw = warehouse(), RawStore(settings.load().raw_root)
    told = restoring.load(url, raw)
    print(
        f"READ – {told.fetches:,} requests from {told.files:,} files of the journal; {told.missing:,} answers lack "
        f"their bytes and are asked for again, {told.unnamed:,} objects are of nobody and stay where they are",
        flush=True,
    )
    stop, code = stop_flag(), 0
    windows.declare(url, registry.streams(), is_connected)
    held = {row["stream"]: row for row in restoring.held(url)}
    known = [stream for stream in registry.streams() if stream.name in held or stream.making is not None]
    for stream in known:
        run_id = restoring.plan(url, stream)
        if run_id is not None and not stop():
            code = max(code, _work_off(url, run_id, [stream], Mode.REPLAY, options.who, stop))
    if stop():
        print("STOPPED – the same call goes on with what is left.")
        return 1
    restoring.finish(url)
    for name in sorted(set(held) - {stream.name for stream in known}):
        print(f"LEFT – {name}: {held[name]['fetches']:,} answers of a stream that is not declared any more")
    print(
        "Checkpoints and pending keys are not told again: backfill what came after the newest session of each stream."
    )
    for name, row in held.items():
        print(f"  {name}: {row['newest'] or 'no sessions'}")
    return code


def _write_journal(url: str) -> None:
    """Write down beside the raw objects what was asked; where that cannot be done, say so."""
    try:
        journal.write(url, RawStore(settings.load().raw_root))
    except OSError as error:
        print(f"The journal could not be written ({error}); the next call, or upkeep, writes it.", flush=True)


def _print(lines: Iterable[str]) -> int:
    for line in lines:
        print(line)
    return 0


def _ask_for(url: str, request: jobs.JobRequest, *, dry_run: bool) -> int:
    """Start a job run, or join it, and work it off; with `dry_run` only show it."""
    if dry_run:
        return _print(jobs.dry_run(url, request))
    stop = stop_flag()
    windows.declare(url, registry.streams(), is_connected)
    print(jobs.start(url, request))
    for stream in request.streams:
        jobs.plan(url, request, stream)
    return _work_off(url, request.name, request.streams, request.mode, request.who, stop)


def reach(source: Source, *, asks: bool = True) -> Credentials:
    """Return how a source is reached, as its connection says.

    Raises:
        SettingError: the connection is missing.
        NoKey: it has no key of one's own, where the upstream wants one.
        NoContact: it names nobody to write to, where the upstream wants that.
    """
    sandbox_url = settings.load().sandbox_url
    if not asks:
        # Who asks nobody needs to name nobody.
        return credentials.build(replace(source, needs_contact=False), host="", sandbox_url=sandbox_url)
    if settings.connection_text(source.connection) is None and not source.needs_key:
        return credentials.build(source, host="", sandbox_url=sandbox_url)
    given = settings.connection(source.connection)
    host = f"{given.conn_type}://{given.host}" if given.conn_type in ("http", "https") and given.host else given.host
    credentials.check_key(source, given.password)
    return credentials.build(
        source,
        host=given.host if "://" in given.host else host,
        login=given.login,
        password=given.password,
        schema=given.schema,
        port=given.port,
        extra=given.extra,
        sandbox_url=sandbox_url,
    )


def _worker(source: Source, who: str, stop: Stop, *, asks: bool = True) -> cycle.Worker:
    owner = f"the command line of {who} on {holder()}"
    settled = settings.load()
    raw = RawStore(settled.raw_root)
    return cycle.Worker(warehouse(), raw, reach(source, asks=asks), owner, stop, files=settled.files_root)


def _verdicts(work: Callable[[], Verdict | None], stop: Stop) -> Iterator[Verdict]:
    """Work slices until none is eligible, and print each."""
    while not stop():
        verdict = work()
        if verdict is None:
            return
        print(verdict.words, flush=True)
        yield verdict


def _poll_one(url: str, stream: Stream, options: argparse.Namespace, stop: Stop, *, named: bool) -> int:
    """Poll a stream; one that nobody named and that has nothing to connect with is left out, and said to be."""
    try:
        return _poll(url, stream, options.who, stop, waits=options.wait)
    except (settings.SettingError, credentials.NoContact, credentials.NoKey) as missing:
        print(f"{'REFUSED' if named else 'LEFT OUT'} – {stream.name}: {missing}", flush=True)
        return int(named)


def _poll(url: str, stream: Stream, who: str, stop: Stop, *, waits: bool) -> int:
    """Work the windows of a stream until nothing is eligible, or with `waits` until nothing is open any more."""
    worker = _worker(registry.source(stream.source), who, stop)
    last: Verdict | None = None

    def work() -> Verdict | None:
        windows.open_due(url, stream)
        return cycle.work(worker, stream, Mode.POLL, None)

    while True:
        for verdict in _verdicts(work, stop):
            last = verdict
            if verdict.status is CycleStatus.FAILED:
                return 1
        newest = windows.standing(url, stream).newest
        is_open = newest is not None and newest["finished_at"] is None
        if not waits or not is_open or stop():
            break
        _pause(stop)
    if last is None or last.is_refused:
        print(_nothing_eligible(url, stream))
    return 0


def _nothing_eligible(url: str, stream: Stream) -> str:
    """Say why nothing of a stream was worked on, and what would do it."""
    stands = windows.standing(url, stream)
    newest, held = stands.newest, stands.frozen or stands.off
    if newest is None:
        return (
            f"FROZEN – {stream.name}: {held}." if held else f"NOTHING TO DO – no window of {stream.name} was ever due."
        )
    place = f"{stream.name}, {where(newest)}"
    if newest["cycle_status"] == CycleStatus.RUNNING:
        owner, until = worker_of(newest["lease_owner"]), kst(newest["lease_until"])
        return f"ANOTHER RUN – {place} is worked by {owner} until {until} at the latest, and goes on without you."
    start = last_instant(stream.schedule.cron, stream.schedule.timezone, stands.now)
    if held and (newest["finished_at"] is None or newest["window_start"] < start):
        return f"FROZEN – {place}: {held}. It goes on once that ends."
    if newest["finished_at"] is None:
        return f"WAITING – {place} is asked again at {kst(newest['next_eligible_at'])}: poll once more then, or --wait."
    opening = next_instant(stream.schedule.cron, stream.schedule.timezone, stands.now)
    return (
        f"NOTHING TO DO – {place} was over at {kst(newest['finished_at'])} ({newest['cycle_status']}). The next window "
        f"opens at {kst(opening)}. To collect the session once more: poll --force."
    )


def _work_off(url: str, run_id: str, streams: Sequence[Stream], mode: Mode, who: str, stop: Stop) -> int:
    """Work the chunks of a run until it is over, one stream after the other, and say what it came to."""
    for stream in streams:
        worker = _worker(registry.source(stream.source), who, stop, asks=mode is not Mode.REPLAY)
        with cycle.keeping_a_line(worker) as lane:
            _work_off_one(url, run_id, stream, mode, lane, stop)
    if mode is not Mode.REPLAY:
        _write_journal(url)
    outcome, progress = jobs.conclude(url, run_id)
    goes_on = "" if outcome in (Outcome.SUCCESS, Outcome.PARTIAL) else " The same request goes on where it ended."
    first = f" First failure: {progress.first_failure}." if progress.first_failure else ""
    print(f"{str(outcome or 'unfinished').upper()} – run {run_id}: {progress.words}.{first}{goes_on}")
    return 0 if outcome in (Outcome.SUCCESS, Outcome.PARTIAL) else 1


def _work_off_one(url: str, run_id: str, stream: Stream, mode: Mode, worker: cycle.Worker, stop: Stop) -> None:
    one = partial(cycle.work, worker, stream, mode, run_id)
    work = partial(replay.work, worker, stream, run_id) if mode is Mode.REPLAY else one
    said: str | None = None
    while not stop():
        if any(verdict.outcome is Outcome.FAILED_TERMINAL for verdict in _until_refused(work, stop)):
            print("The chunks that are left wait; the same request goes on with them.")
            break
        at = jobs.next_eligible(url, run_id, stream.name)
        if at is None:
            break
        waiting = _why_waiting(url, stream, mode) or f"WAITING – {stream.name}: the next chunk at {kst(at)}"
        if waiting != said:
            print(waiting, flush=True)
            said = waiting
        _pause(stop)


def _until_refused(work: Callable[[], Verdict | None], stop: Stop) -> Iterator[Verdict]:
    """Work chunks; what the upstream refuses for good ends it, as it would refuse the others too."""
    for verdict in _verdicts(work, stop):
        yield verdict
        if verdict.status in TERMINAL and verdict.outcome is Outcome.FAILED_TERMINAL:
            return


def _why_waiting(url: str, stream: Stream, mode: Mode) -> str | None:
    frozen = windows.standing(url, stream).frozen
    return (
        f"FROZEN – {stream.name}: {frozen}. It goes on once that ends." if frozen and mode is not Mode.REPLAY else None
    )


def _pause(stop: Stop) -> None:
    until = time.monotonic() + LONGEST_WAIT
    while not stop() and time.monotonic() < until:
        time.sleep(0.5)
