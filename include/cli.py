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
from collections.abc import Callable, Sequence
from datetime import date, datetime

import psycopg

from include import caching, calendars, collecting, looking, registry, settings
from include.collecting import CommandRefused, warehouse
from include.contract import Mode
from include.engine import (
    alerts,
    audit,
    controls,
    credentials,
    jobs,
    journal,
    marks,
    quarantine,
    restoring,
    schema,
    silences,
)
from include.engine.migrations import MigrationRefused, migrate
from include.engine.schema import SchemaTooOld
from include.engine.surrender import WarehouseAway
from include.outputs import gate
from include.version import VERSION

Verb = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    options = _parser().parse_args(arguments)
    if options.run is not _watch:
        _log(logging.WARNING, "%(message)s")
    try:
        if options.run not in _ON_ANY_SCHEMA:
            # Settings that cannot be used are told whether or not the warehouse answers.
            registry.sources()
            schema.check(warehouse())
        code: int = options.run(options)
    except (
        settings.SettingError,
        registry.UnknownName,
        jobs.JobRefused,
        quarantine.QuarantineRefused,
        calendars.UnknownCalendar,
        CommandRefused,
        controls.ControlRefused,
        silences.SilenceRefused,
        credentials.NoContact,
        credentials.NoKey,
        alerts.AlertRefused,
        gate.LetRefused,
        MigrationRefused,
        SchemaTooOld,
        restoring.RestoreRefused,
        journal.JournalUnreadable,
    ) as refusal:
        print(f"REFUSED – {refusal}", file=sys.stderr)
        return 1
    except WarehouseAway as away:
        print(f"FAILED – {away}", file=sys.stderr)
        return 1
    except psycopg.OperationalError as error:
        first = str(error).partition("\n")[0]
        print(f"FAILED – the warehouse does not answer: {first} What was done so far is kept.", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    return code


def _log(level: int, form: str) -> None:
    """Write what is logged to the error output, each line with what it is about."""
    handler = logging.StreamHandler()
    handler.setFormatter(marks.Readable(form))
    logging.basicConfig(level=level, handlers=[handler])


def _migrate(options: argparse.Namespace) -> int:
    done = migrate(warehouse())
    print(f"DONE – migrations {', '.join(done)} were run" if done else "NOTHING – the schema is up to date")
    return 0


def _quarantine(options: argparse.Namespace) -> int:
    return looking.quarantined(options) if options.action == "list" else collecting.let_out(options)


def _publication(options: argparse.Namespace) -> int:
    url = warehouse()
    if options.action == "let":
        row = gate.let(url, options.what, who=options.who, why=options.why)
        print(f"DONE – {row['path']} is let pass; the next run of publish sends it. It was held: {row['reason']}")
        return 0
    rows = gate.held(url)
    for row in rows:
        print(f"{row['file_id']:>6}  {row['path']} ({row['rows']:,} rows, {row['source_run']}): {row['reason']}")
    print("Then: publication let NUMBER --why TEXT" if rows else "NOTHING – no check holds a file")
    return 0


def _squash(options: argparse.Namespace) -> int:
    """Squash the history of the repository that everything is published to, so that commits are counted anew."""
    from include.outputs import squash as squashing
    from include.outputs.lease import PublishLeaseLost
    from include.outputs.ledger import LedgerFull
    from include.outputs.trouble import HubTrouble

    who = f"{options.who}: {options.why}" if options.why else options.who
    try:
        if options.only_note:
            if not audit.squashed(warehouse(), options.repository, who):
                raise CommandRefused(f"Nothing of ours was ever sent to {options.repository}. Write namespace/name.")
        else:
            squashing.squash(warehouse(), caching.hub_of_connection(), options.repository, who)
    except squashing.SquashRefused as refused:
        raise CommandRefused(str(refused)) from None
    except (HubTrouble, LedgerFull) as trouble:
        raise CommandRefused(f"The Hub: {trouble}. No file was changed; ask again, twice does no harm.") from None
    except PublishLeaseLost as lost:
        raise CommandRefused(
            f"{lost} The history may be squashed and is not noted; ask again, twice does no harm."
        ) from None
    print(f"DONE – commits to {options.repository} are counted from now on; the next audit ends its incident")
    return 0


def _watch(options: argparse.Namespace) -> int:
    from include.ops.watch import watch

    _log(logging.INFO, "%(asctime)s %(name)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    watch(warehouse(), stop, has_slack=settings.connection_text("slack") is not None)
    return 0


# What makes the schema, what needs no warehouse, and what waits until it is there.
_ON_ANY_SCHEMA: tuple[Verb, ...] = (_migrate, caching.run, _watch)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date like 2026-09-15") from None


def _instant(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an instant like 2026-09-16T12:00+09:00") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cli", description="Collect, replay and look, without Airflow.")
    parser.add_argument("--version", action="version", version=f"Daybook {VERSION}")
    verbs = parser.add_subparsers(required=True, metavar="verb")

    def verb(name: str, run: Verb, text: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    verb("migrate", _migrate, "Bring the database to the newest schema.")
    verb("watch", _watch, "End the leases of vanished workers and send alerts, until stopped.")
    _collecting(verb)
    _syncing(verb)
    again = verb("restore", collecting.restore, "Tell an empty database again from the raw store that was kept.")
    again.add_argument("--who", default=getpass.getuser(), help="who asks (default: this user)")
    verb("status", looking.status, "Show the newest window of every stream.")
    runs = verb("runs", looking.runs, "Show the newest backfills and replays with their progress, or one of them.")
    runs.add_argument("run_id", nargs="?", metavar="RUN", help="all there is to know of this one")
    runs.add_argument("--limit", type=int, default=20)
    waits = verb("pending", looking.pending, "Show keys that are still to be fetched, or fetched again.")
    _scope(waits)
    waits.add_argument("--rechecks", action="store_true", help="those too that are only read again for revisions")
    waits.add_argument("--limit", type=int, default=50)
    _deciding(verb)
    wrong = verb("incidents", looking.wrong, "Show what is wrong and lasts.")
    wrong.add_argument("--over", action="store_true", help="what ended in the last week too")
    caching.add(verb("cache", caching.run, "Keep copies of what is published: look, complete, repair."))
    shot = verb("snapshot", looking.verdict, "Show the 09:00 snapshot of a date in Seoul.")
    shot.add_argument("day", type=_day, nargs="?", metavar="DATE", help="default: today")
    return parser


def _collecting(verb: Callable[[str, Verb, str], argparse.ArgumentParser]) -> None:
    for name, run, text in (
        ("poll", collecting.poll, "Collect what is due now."),
        ("backfill", lambda o: collecting.job(o, Mode.BACKFILL), "Collect a range of session dates."),
        ("replay", lambda o: collecting.job(o, Mode.REPLAY), "Read again what is stored, without any upstream."),
    ):
        added = verb(name, run, text)
        _scope(added)
        added.add_argument("--keys", nargs="+", help="only these keys (facilities, symbols, …)")
        if name == "backfill":
            added.add_argument(
                "--timeframe", default="", help="bars of another length than the stream's own, e.g. 5Min"
            )
        added.add_argument("--dry-run", action="store_true", help="print the plan and write nothing")
        added.add_argument("--who", default=getpass.getuser(), help="who asks (default: this user)")
        if name == "poll":
            added.add_argument(
                "--force", action="store_true", help="once more what the newest windows were responsible for"
            )
            added.add_argument("--wait", action="store_true", help="stay until the windows are over")
            continue
        added.add_argument("--force", action="store_true", help="once more, although it is done")
        is_needed = name == "replay"
        added.add_argument(
            "--start", type=_day, required=is_needed, metavar="DATE", help="first session date, inclusive"
        )
        added.add_argument("--end", type=_day, required=is_needed, metavar="DATE", help="last session date, inclusive")
        added.add_argument("--run-id", help="name of the run; made from its content where not given")
        added.add_argument("--reason", required=name == "replay", help="why; kept with the run")
        if name == "replay":
            added.add_argument("--beside", action="store_true", help="into copies of the tables, named after the run")


def _syncing(verb: Callable[[str, Verb, str], argparse.ArgumentParser]) -> None:
    added = verb("sync", collecting.sync, "Keep the reports of Korean companies complete: statements and report items.")
    added.add_argument(
        "--mode",
        choices=["recent", "full"],
        help="recent: what the last reports have and we do not; full: all periods (default: SYNC_MODE, or recent)",
    )
    added.add_argument("--categories", nargs="+", help="only these, e.g. finance (default: SYNC_CATEGORIES, or all)")
    added.add_argument("--keys", nargs="+", help="only these companies, as DART numbers them")
    added.add_argument("--start", type=_day, metavar="DATE", help="first end of a period, for full")
    added.add_argument("--end", type=_day, metavar="DATE", help="last end of a period, for full")
    added.add_argument("--dry-run", action="store_true", help="print the plan and write nothing")
    added.add_argument("--who", default=getpass.getuser(), help="who asks (default: this user)")
    added.add_argument("--wait", action="store_true", help="stay until the windows are over, for recent")


def _scope(added: argparse.ArgumentParser) -> None:
    added.add_argument("--source", help="all streams of this source (default: of every source)")
    added.add_argument("--streams", nargs="+", metavar="STREAM", help="only these, e.g. finra.short_volume")


def _deciding(verb: Callable[[str, Verb, str], argparse.ArgumentParser]) -> None:
    out = verb("quarantine", _quarantine, "Look at quarantine, and let entries out.")
    out.add_argument("action", choices=["list", "retry", "accept", "drop"])
    out.add_argument("id", type=int, nargs="?", default=0, metavar="NUMBER", help="the entry, as `list` shows it")
    out.add_argument("--stream", help="only entries of this stream")
    out.add_argument("--state", default="open", choices=["open", "accepted", "dropped", "resolved"])

    held = verb("controls", looking.held, "Look at what is frozen, drained or switched off, and change it.")
    held.add_argument("action", choices=["list", "freeze", "drain", "resume", "retire", "activate", "off", "on"])
    held.add_argument("--all", action="store_true", help="everything")
    held.add_argument("--dispatch", action="store_true", help="the opening of windows (with off and on)")
    for scope in ("source", "stream", "job"):
        held.add_argument(f"--{scope}", help=f"one {scope}")

    days = verb("calendar", looking.calendar, "Look at calendar exceptions, and decide them.")
    days.add_argument("action", choices=["list", "close", "open", "reject"])
    days.add_argument("calendar", nargs="?", default="XNYS")
    days.add_argument("day", type=_day, nargs="?")
    quiet = verb("silences", looking.quiet, "Keep alerts from being sent for a while.")
    quiet.add_argument("action", choices=["list", "make", "lift"])
    quiet.add_argument("what", nargs="?", default="", metavar="KEY", help="key of the alerts (* for anything); number")
    quiet.add_argument("--until", type=_instant, metavar="INSTANT", help="when it ends, like 2026-09-16T12:00+09:00")
    aside = verb("alerts", looking.aside, "Look at alerts that Slack refused for good, and decide on them.")
    aside.add_argument("action", choices=["list", "retry", "drop"])
    aside.add_argument("id", type=int, nargs="?", default=0, metavar="NUMBER", help="the alert, as `list` shows it")
    files = verb("publication", _publication, "Look at files that a check holds, and let one be published.")
    files.add_argument("action", choices=["list", "let"])
    files.add_argument(
        "what", nargs="?", default="", metavar="FILE", help="the file's number, as `list` shows it, or path"
    )
    anew = verb("squash", _squash, "Make one commit of the repository's history; its files stay, old versions go.")
    anew.add_argument("repository", metavar="NAMESPACE/NAME", help="its name once more, as this cannot be undone")
    anew.add_argument("--only-note", action="store_true", help="you squashed it on the Hub; count its commits anew")
    for added in (out, held, days, quiet, aside, files, anew):
        added.add_argument("--who", default=getpass.getuser(), help="who decides (default: this user)")
        added.add_argument("--why", default="", help="why; kept and shown")


if __name__ == "__main__":
    sys.exit(main())
