"""A folder of copies of what is published: looked at, completed, repaired.

Promises: what is downloaded is compared before it takes a name, and what was there stays until then; a repair reads
every file here and asks the Hub for one listing; a listing that did not come whole changes nothing. Whoever is killed
leaves whole files, and the next run goes on. Never: a local file is deleted, not even one that the Hub has no more.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from include.outputs import freshness, releases
from include.outputs.freshness import Local, Mode, State, Verdict
from include.outputs.held import Entry, Folder, Held, Note, UnsafeName
from include.outputs.reader import Listing, Reader
from include.outputs.releases import Release
from include.outputs.trouble import HubTrouble, Kind

THREADS = 4
# So many files are asked about one by one; more of them by a thousand at once.
ONE_BY_ONE = 4
# So many downloads in a row that fail mean the Hub, not the files.
MOST_FAILURES = 3
# Troubles that the next file will meet as well.
_OF_THE_HUB = frozenset({Kind.FORBIDDEN, Kind.MISSING, Kind.QUOTA})
_TEMPORARY_SECONDS = 86_400.0
_LISTINGS = "listings"
_HOLE = re.compile(r"\{[^{}]*\}")


def clock() -> datetime:
    """The time of this machine: notes and files here are compared with it, and nothing else is."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Scope:
    """Which files are meant: those of one release, or all."""

    release: Release | None = None

    @property
    def below(self) -> str:
        """The folder of the repository that they are all in."""
        if self.release is None:
            return ""
        return self.release.path.partition("{")[0].rpartition("/")[0]

    def has(self, path: str) -> bool:
        """Say whether a file of the repository is meant; what git keeps for itself never is."""
        return not path.startswith(".") if self.release is None else is_of(self.release, path)

    def __str__(self) -> str:
        """Name it for a person."""
        return self.release.name if self.release else "all releases"


def is_of(release: Release, path: str) -> bool:
    """Say whether a path is one of a release's."""
    # Scans and sets have names with a slash in them (`report/dividend`, `sub/2026Q1`); nothing else that takes a hole's
    # place has one.
    filled = ".+" if release.cut in ("scan", "set") else "[^/]+"
    return re.fullmatch(filled.join(map(re.escape, _HOLE.split(release.path))), path) is not None


def release_of(path: str) -> str:
    """Name the release that a path belongs to; its folder where it is of none."""
    found = next((each.name for each in releases.RELEASES if is_of(each, path)), None)
    return found or path.rpartition("/")[0] or path


@dataclass(frozen=True)
class Seen:
    """One file as it was found: what is known of it, and what the Hub has under its name where that was asked."""

    path: str
    verdict: Verdict
    held: Held | None = None
    entry: Entry | None = None


@dataclass(frozen=True)
class Done:
    """What came of completing or repairing: all files as they were found, and what was done about them.

    `asked` is whether the Hub answered, `commit` the revision that it was compared with. `failed` are paths with the
    reason, `left` those that were not tried after too many failures.
    """

    found: tuple[Seen, ...]
    fetched: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    left: tuple[str, ...] = ()
    commit: str = ""
    trouble: str = ""

    def of(self, *states: State) -> tuple[str, ...]:
        """Return the paths that were found in one of some states."""
        return tuple(each.path for each in self.found if each.verdict.state in states)


@dataclass(frozen=True)
class Cache:
    """Copies in a folder, and the Hub that they are of. `now` is this machine's clock."""

    folder: Folder
    reader: Reader
    now: Callable[[], datetime] = field(default=clock)

    # --- looking

    def look(self, paths: Sequence[str], mode: Mode) -> Done:
        """Say of each file how it stands; nothing is downloaded.

        Raises:
            HubTrouble: the mode is `force_check`, and the Hub did not answer.
        """
        now = self.now()
        locals_ = self._locals(paths)
        verdicts = {path: freshness.without_asking(local, mode, now) for path, local in locals_.items()}
        open_ones = [path for path, verdict in verdicts.items() if verdict is None]
        try:
            listing = self._ask(open_ones) if open_ones else None
        except HubTrouble as trouble:
            if mode is Mode.FORCE_CHECK:
                raise
            why = f"the Hub could not be asked ({trouble})"
            unanswered = {path: freshness.unanswered(locals_[path], now, why) for path in open_ones}
            found = (Seen(path, verdicts[path] or unanswered[path], locals_[path].held) for path in paths)
            return Done(tuple(found), trouble=str(trouble))
        compared = {each.path: each for each in self._compare(open_ones, listing, now)} if listing else {}
        return Done(
            tuple(compared.get(path) or Seen(path, _known(verdicts[path]), locals_[path].held) for path in paths),
            commit=listing.commit if listing else "",
        )

    def here(self, scope: Scope) -> list[str]:
        """Name the files that are here."""
        return sorted(path for path in self.folder.names(scope.below) if scope.has(path))

    # --- completing

    def get(self, scope: Scope, mode: Mode) -> Done:
        """Have every file of a scope here and fresh, as far as the mode goes.

        Raises:
            HubTrouble: the mode is `force_check`, and the Hub did not answer.
            OSError: a file cannot be written; what was there before is still there.
        """
        if mode is Mode.LOCAL_ONLY:
            return self.look(self._remembered(scope) or self.here(scope), mode)
        known = self._remembered(scope, self.now()) if mode is Mode.AUTO else None
        if known is not None:
            done = self.look(known, Mode.LOCAL_ONLY)
            if len(done.of(State.FRESH, State.OWN)) == len(known):
                return done
        now = self.now()
        try:
            listing = self._listing(scope)
        except HubTrouble as trouble:
            if mode is Mode.FORCE_CHECK:
                raise
            done = self.look(self._remembered(scope) or self.here(scope), Mode.LOCAL_ONLY)
            return Done(done.found, trouble=str(trouble))
        self._remember(scope, listing, now)
        ours = mode is Mode.AUTO
        done = self._fetch(self._compare(sorted(listing.files), listing, now, trusts_ours=ours), listing, now)
        gone = set(self.here(scope)) - set(listing.files)
        none = Verdict(State.GONE, "the Hub has no such file")
        return Done(
            (*done.found, *(Seen(path, none, self.folder.held(path)) for path in sorted(gone))),
            *(done.fetched, done.failed, done.left, done.commit),
        )

    def get_one(self, path: str, mode: Mode) -> Done:
        """Have one file here and fresh, as far as the mode goes: the Hub is asked about this file alone.

        Raises:
            HubTrouble: the mode is `force_check`, and the Hub did not answer.
            OSError: it cannot be written; what was there before is still there.
            UnsafeName: it is no name of a file that may be kept here.
        """
        now = self.now()
        done = self.look([path], mode)
        (found,) = done.found
        if found.entry is None or found.verdict.state not in (State.STALE, State.MISSING):
            return done
        return self._fetch(done.found, Listing(done.commit, {path: found.entry}), now)

    # --- repairing

    def repair(self, scope: Scope, *, dry_run: bool = False) -> Done:
        """Read every file here, compare it with one listing of the Hub, and download what differs.

        What is missing is downloaded too: of a release that has something here, or that is named, and what was here
        before. Files of our own are compared like any other: whoever asks for this wants what the Hub has.

        Raises:
            HubTrouble: the listing did not come whole; nothing was changed.
            OSError: a file cannot be written; what was there before is still there.
        """
        now, here = self.now(), self.here(scope)
        listing = self._listing(scope)
        held, noted = {release_of(path) for path in here}, self.folder.notes(listing.files)
        meant = [path for path in listing.files if scope.release or release_of(path) in held or path in noted]
        found = self._compare(sorted({*here, *meant}), listing, now, reads_all=True, notes=not dry_run)
        if dry_run:
            return Done(tuple(found), commit=listing.commit)
        self._tidy()
        return self._fetch(found, listing, now)

    # --- inside

    def _locals(self, paths: Iterable[str]) -> dict[str, Local]:
        notes, found = self.folder.notes(paths), dict[str, Local]()
        for path in paths:
            held, note = self.folder.held(path), notes.get(path)
            note = note if note and held and note.is_about(held) else None
            is_own = held is not None and note is None and is_ours(self.folder.path(path), path)
            found[path] = Local(held, note, is_own)
        return found

    def _ask(self, paths: Sequence[str]) -> Listing:
        if len(paths) > ONE_BY_ONE:
            return self.reader.some(paths)
        commit, files = "", dict[str, Entry]()
        for path in paths:
            at, entry = self.reader.one(path)
            commit = at or commit
            if entry is not None:
                files[path] = entry
        return Listing(commit, files)

    def _listing(self, scope: Scope) -> Listing:
        """List what the Hub has of a scope; a name that leads out of the folder makes the listing worthless."""
        listing = self.reader.all(scope.below)
        try:
            for path in listing.files:
                self.folder.path(path)
        except UnsafeName as unsafe:
            raise HubTrouble(Kind.REFUSED, f"the Hub's listing cannot be used: {unsafe}") from None
        return Listing(listing.commit, {path: entry for path, entry in listing.files.items() if scope.has(path)})

    def _compare(
        self,
        paths: Sequence[str],
        listing: Listing,
        now: datetime,
        *,
        reads_all: bool = False,
        notes: bool = True,
        trusts_ours: bool = False,
    ) -> list[Seen]:
        """Compare files with a listing; those that have no note, or all of them, are read for it."""
        if reads_all:
            locals_ = {path: Local(self.folder.held(path), None) for path in paths}
        else:
            locals_ = self._locals(paths)

        def one(path: str) -> Seen:
            local, entry = locals_[path], listing.files.get(path)
            verdict = freshness.without_asking(local, Mode.AUTO, now) if trusts_ours and local.is_own else None
            verdict = verdict or freshness.answered(local, entry)
            if verdict is None and entry is not None:
                verdict = freshness.answered(local, entry, self.folder.is_same(entry))
            return Seen(path, _known(verdict), local.held, entry)

        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(one, paths))
        if notes:
            # Each of the file as it was before it was read: one that was replaced meanwhile has no note then.
            self.folder.write_notes(
                {
                    each.path: Note(each.entry.etag, each.entry.size, each.held.mtime_ns, listing.commit, now)
                    for each in found
                    if each.verdict.state is State.FRESH and each.held is not None and each.entry is not None
                }
            )
        return found

    def _fetch(self, found: Iterable[Seen], listing: Listing, now: datetime) -> Done:
        """Download what is stale or missing; one file that fails holds no other up, a Hub that fails does."""
        found = tuple(found)
        wanted = deque(each for each in found if each.verdict.state in (State.STALE, State.MISSING))
        failed, in_a_row, notes = list[tuple[str, str]](), 0, dict[str, Note]()
        try:
            while wanted and in_a_row < MOST_FAILURES:
                each = wanted.popleft()
                assert each.entry is not None, "it is not here, or it differs: so the Hub has it"
                try:
                    with self.reader.fetched(each.entry, listing.commit, self.folder.workspace()) as temporary:
                        notes[each.path] = self.folder.place(temporary, each.entry, listing.commit, now)
                    in_a_row = 0
                except HubTrouble as trouble:
                    failed.append((each.path, str(trouble)))
                    in_a_row = MOST_FAILURES if trouble.kind in _OF_THE_HUB else in_a_row + 1
        finally:
            # Also where there is no more room: what has come is known then. A kill costs comparisons, no downloads.
            self.folder.write_notes(notes)
        return Done(found, tuple(notes), tuple(failed), tuple(each.path for each in wanted), listing.commit)

    def _remember(self, scope: Scope, listing: Listing, now: datetime) -> None:
        facts = {"at": now.isoformat(), "commit": listing.commit, "paths": sorted(listing.files)}
        self.folder.keep(_LISTINGS, str(scope), facts)

    def _remembered(self, scope: Scope, now: datetime | None = None) -> list[str] | None:
        """Return the names of a scope as the Hub last listed them: within a day, where `now` is given."""
        try:
            found = self.folder.kept(_LISTINGS, str(scope)) or {}
            at, paths = datetime.fromisoformat(found["at"]), [str(path) for path in found["paths"]]
            if now is not None and not -freshness.SKEW <= now - at < freshness.TTL:
                return None
        except (KeyError, TypeError, ValueError):
            return None
        return [path for path in paths if scope.has(path)]

    def _tidy(self) -> None:
        """Remove what killed downloads left behind more than a day ago."""
        for each in self.folder.workspace().iterdir():
            if time.time() - each.stat().st_mtime > _TEMPORARY_SECONDS:
                shutil.rmtree(each, ignore_errors=True) if each.is_dir() else each.unlink(missing_ok=True)


def _known(verdict: Verdict | None) -> Verdict:
    assert verdict is not None, "what nobody asked about was judged without asking"
    return verdict


def is_ours(file: Path, path: str) -> bool:
    """Say whether a file bears our own mark: a parquet file of the release that its path belongs to."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about: Mapping[bytes, bytes] = pq.read_schema(file).metadata or {}
    except (OSError, pa.ArrowException):
        return False
    return about.get(b"release", b"").decode() == release_of(path)


def by_release(found: Iterable[Seen]) -> Iterator[tuple[str, list[Seen]]]:
    """Group files by their release, in order of name."""
    groups: dict[str, list[Seen]] = {}
    for each in found:
        groups.setdefault(release_of(each.path), []).append(each)
    yield from sorted(groups.items())
