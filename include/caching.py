"""The verbs that keep copies of published files: look, complete, repair.

Promises: what is not known is not called fresh, and the exit code says whether everything asked for may be used; an
error names what was kept and what to do next. Never: a local file is deleted, and no token is shown.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from include import registry, settings
from include.collecting import CommandRefused, reach, stop_flag, warehouse
from include.contract import Stream, Table
from include.engine import credentials
from include.outputs import releases
from include.outputs.freshness import USABLE, Mode, State

if TYPE_CHECKING:
    from include.outputs.cache import Cache, Done, Scope, Seen
    from include.outputs.hub import Hub

# So many files of a release that are not as they should be are named one by one.
MOST_NAMED = 10

DESCRIPTION = """Copies of published files, in a folder laid out as the repository is.

A copy is fresh where the Hub confirmed it within 24 hours. Where the Hub does not answer, one that it confirmed within
30 days may be used, and that is said. What the Hub has no more is told and kept; nothing is ever deleted."""
MODES = {
    Mode.AUTO: "ask the Hub once a day; where it does not answer, a copy of less than 30 days will do",
    Mode.FORCE_CHECK: "ask the Hub now; where it does not answer, fail",
    Mode.LOCAL_ONLY: "ask nobody",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Give the verb `cache` its words."""
    parser.description, parser.formatter_class = DESCRIPTION, argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest="action", required=True, metavar="status|get|repair")
    for name, text in (
        ("status", "Say how each copy stands; download nothing."),
        ("get", "Have the files of a release here and fresh, or one file."),
        ("repair", "Read every copy, compare it with one listing of the Hub, and download what differs."),
    ):
        added = actions.add_parser(name, help=text, description=text)
        added.add_argument("--release", help="only the files of this one, e.g. finra/short_volume")
        added.add_argument("--folder", type=Path, help="where the copies are (default: DAYBOOK_CACHE_ROOT)")
        if name == "get":
            added.add_argument("path", nargs="?", help="one file, as it is named in the repository")
        if name == "repair":
            added.add_argument("--dry-run", action="store_true", help="say what differs, and change nothing")
            continue
        words = "; ".join(f"{mode}: {meaning}" for mode, meaning in MODES.items())
        added.add_argument("--mode", type=Mode, choices=list(Mode), default=Mode.AUTO, help=words)
        added.add_argument(
            "--upstream",
            action="store_true",
            help="ask the upstream too whether it has something newer: once a day, with two requests at most",
        )


def run(options: argparse.Namespace) -> int:
    """Do what was asked for; the exit code says whether everything may be used."""
    from include.outputs.ledger import LedgerFull
    from include.outputs.trouble import HubTrouble

    folder = (options.folder or Path(settings.load().cache_root)).absolute()
    try:
        with _cache(folder) as cache:
            return _ACTIONS[options.action](cache, options)
    except HubTrouble as trouble:
        print(f"FAILED – the Hub: {trouble}. Nothing was changed in {folder}; try again later.", file=sys.stderr)
    except LedgerFull as full:
        print(f"FAILED – {full}, as others ask the Hub too. Try again then; what came is kept.", file=sys.stderr)
    except OSError as error:
        print(f"FAILED – {folder} cannot be written: {error}. What was there is still there.", file=sys.stderr)
    return 1


def _scope(options: argparse.Namespace) -> Scope:
    from include.outputs.cache import Scope

    try:
        return Scope(releases.release(options.release) if options.release else None)
    except releases.ReleaseError as unknown:
        raise CommandRefused(str(unknown)) from None


def _status(cache: Cache, options: argparse.Namespace) -> int:
    scope = _scope(options)
    paths = cache.here(scope)
    done = cache.look(paths, options.mode)
    _show(done, cache, options)
    if not paths:
        print(f"NOTHING – no copy of {scope} is in {cache.folder.root}. Get some: cache get --release NAME")
    return 0


def _get(cache: Cache, options: argparse.Namespace) -> int:
    from include.outputs.held import UnsafeName

    if options.path and options.release:
        raise CommandRefused("Name a release or one file, not both.")
    if not options.path and not options.release:
        raise CommandRefused("Say which --release, or name one file; `cache repair` completes what is here.")
    try:
        done = cache.get_one(options.path, options.mode) if options.path else cache.get(_scope(options), options.mode)
    except UnsafeName as unsafe:
        raise CommandRefused(str(unsafe)) from None
    _show(done, cache, options)
    if not done.found and done.trouble:
        print(f"FAILED – nothing of {options.release} is here, and the Hub: {done.trouble}.", file=sys.stderr)
        return 1
    if not done.found:
        print(f"NOTHING – the Hub has no file of {options.release}.")
        return 0
    return _ending(done, cache)


def _repair(cache: Cache, options: argparse.Namespace) -> int:
    done = cache.repair(_scope(options), dry_run=options.dry_run)
    _show(done, cache, options)
    if options.dry_run:
        wrong = len(done.of(State.STALE, State.MISSING))
        print(f"WOULD – {wrong} of {len(done.found)} files would be downloaded; nothing was changed.")
        return 0
    return _ending(done, cache)


_ACTIONS = {"status": _status, "get": _get, "repair": _repair}


def _ending(done: Done, cache: Cache) -> int:
    """Say in a line what came of it; 0 where all may be used."""
    for path, reason in done.failed:
        print(f"    FAILED {path}: {reason}", file=sys.stderr)
    got = set(done.fetched)
    useless = [each.path for each in done.found if each.verdict.state not in USABLE and each.path not in got]
    kept = set(done.of(State.GONE))
    bad = [path for path in useless if path not in kept]
    text = f"{len(done.fetched)} files downloaded, {len(done.found) - len(useless) - len(got)} were as they should be"
    text += f", {len(kept)} are here and not on the Hub" if kept else ""
    if not bad and not (kept and len(kept) == len(done.found)):
        print(f"{'DONE' if not done.trouble else 'UNCOMPARED'} – {text}; in {cache.folder.root}")
        return 0
    rest = f"; {len(done.left)} were not tried after {len(done.failed)} failures" if done.left else ""
    why = f" The Hub: {done.trouble}." if done.trouble else ""
    text += f", {len(bad)} may not be used{rest}.{why}"
    print(f"PARTIAL – {text} What is here is kept; run it again.", file=sys.stderr)
    return 1


def _show(done: Done, cache: Cache, options: argparse.Namespace) -> None:
    from include.outputs.cache import by_release

    for release, files in by_release(done.found):
        counts = Counter(each.verdict.state for each in files)
        size = sum(each.held.size for each in files if each.held)
        stands = ", ".join(f"{number} {state}" for state, number in sorted(counts.items()))
        print(f"{release:<28} {len(files):>5} files {size:>14,} bytes  {stands}")
        wrong = [each for each in files if each.verdict.state not in (State.FRESH, State.OWN)]
        for each in wrong[:MOST_NAMED]:
            print(f"    {each.verdict.state.upper()} {each.path}: {each.verdict.why}")
        if wrong[MOST_NAMED:]:
            print(f"    … and {len(wrong) - MOST_NAMED} more")
        if getattr(options, "upstream", False):
            print(f"    {_upstream(cache, release, files)}")


def _upstream(cache: Cache, release: str, files: Sequence[Seen]) -> str:
    """Say what the release's upstream has, beside what is here."""
    from include.outputs.upstream import Upstream, held_until

    declared = _declared(release)
    if declared is None:
        return f"upstream: not asked, as {_why_not(release)}"
    stream, table, subject, day = declared
    copies = [cache.folder.path(each.path) for each in files if each.held]

    def held(of: str | None) -> date | None:
        return held_until(copies, day, (subject, of) if subject and of else None)

    try:
        given = reach(registry.source(stream.source))
        asked = Upstream(warehouse(), stream, table, given, stop_flag())
        looked = asked.look(cache.folder, held, cache.now())
    except (settings.SettingError, credentials.NoContact, credentials.NoKey) as missing:
        return f"upstream: not asked. {missing}"
    return f"upstream: {'NEWER – ' if looked.is_newer else ''}{looked.words}"


def _declared(release: str) -> tuple[Stream, Table, str, str] | None:
    """What says what the upstream of a release has: the stream, its table, and the columns of subject and day."""
    known = next((each for each in releases.RELEASES if each.name == release), None)
    if known is None:
        return None
    for stream in registry.streams():
        for table in stream.tables:
            if known.newest is not None and table.qualified in known.made_from:
                return stream, table, *known.newest
            if table.qualified == known.table and table.session_date is not None:
                return stream, table, "", table.session_date
    return None


def _why_not(release: str) -> str:
    """Why nobody is asked about a release, and what tells it instead."""
    known = next((each for each in releases.RELEASES if each.name == release), None)
    if known is None:
        return "it is not declared any more"
    if known.cut == "whole":
        return "it is what its upstream shows now, read as a whole every day: `cli status` says when that was last done"
    return "what is new of it follows from a list of filings or sets, which is a release or a stream of its own"


@contextmanager
def _cache(folder: Path) -> Iterator[Cache]:
    """The copies in a folder; what is asked of the Hub is counted with everybody else's where there is a warehouse."""
    from include.outputs.cache import Cache
    from include.outputs.held import Folder
    from include.outputs.hub import session
    from include.outputs.ledger import Ledger
    from include.outputs.reader import Reader

    hub = hub_of_connection()
    cache = Cache(Folder(folder), Reader(hub))
    if settings.connection_text("warehouse") is None or not _answers(warehouse()):
        yield cache
        return
    with session(hub, Ledger(warehouse(), hub.repository, threading.Event())):
        yield cache


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def hub_of_connection() -> Hub:
    """Return the Hub that the connection `huggingface` names.

    Raises:
        CommandRefused: it lacks something.
    """
    from include.outputs.hub import HubSettingsError
    from include.outputs.hub import hub as make

    given = settings.connection("huggingface")
    scheme = given.conn_type if given.conn_type in ("http", "https") else "https"
    host = given.host if "://" in given.host or not given.host else f"{scheme}://{given.host}"
    address = f"{host}:{given.port}" if given.port and host else host
    try:
        return make(address, given.password, given.extra.get("namespace"), given.extra.get("repository"))
    except HubSettingsError as unfit:
        raise CommandRefused(str(unfit)) from None
