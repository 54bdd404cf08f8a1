"""Taking an archive in: its directory, and of its members those that differ from the ones held.

Promises: which members changed is told by the checksums and sizes of the directory, without unpacking the others; every
member is kept under its hash and has a row of its own before the archive counts as taken in, so that who is killed goes
on with what is missing. Where the server shows in this very run that it honours `Range` and `If-Range`, only the
changed members are asked for, neighbours together, if that is faster at the host's rate; else all of the file, to disk,
resumed where it broke. Never: two versions of the file are mixed, and one bad member keeps the others out.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

import httpx

from include.contract import Archive, Request
from include.engine import http, zips
from include.engine.db import Connection, query
from include.engine.download import Part, Replaced, Version
from include.engine.hosts import Turn
from include.engine.http import Received
from include.engine.lease import LeaseLost
from include.engine.members import Difference, Held, Refusal, difference, ranges
from include.engine.raw import Stored

if TYPE_CHECKING:
    from include.engine.fetch import Asker

# How fast a file comes, in bytes a second: what a request costs beside its bytes is weighed against it.
USUAL_SPEED = 8_000_000
# How often an archive that is replaced meanwhile is begun anew, and a broken connection taken up without a byte more.
MOST_RESTARTS, MOST_BREAKS = 2, 3
# How much of the end is asked for first: the end record, where nobody wrote a long comment, and much of the directory.
TAIL = 4_096
# Members that are kept by one transaction.
BATCH = 200
_SPAN = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_PLAIN = {"Accept-Encoding": "identity"}


@dataclass(frozen=True)
class Taken:
    """What asking for an archive came to, and what is still to be written once its fetch row is there."""

    received: Received
    conclude: Callable[[int], None] | None = None


def receive(asker: Asker, request: Request, turn: Turn) -> Taken:
    """Ask for an archive and keep what changed of it.

    Raises:
        hosts.Blocked, hosts.UsedUp, hosts.Stopped: no further request may be sent now; what has come stays.
        LeaseLost: the cycle is somebody else's now.
        OSError: what comes cannot be kept.
    """
    assert request.archive is not None
    taking = _Taking(asker, request, request.archive, turn)
    try:
        for _ in range(MOST_RESTARTS + 1):
            try:
                return taking.take()
            except Replaced:
                taking.first = None
        return Taken(Received(None, error="the archive was replaced each time while it was being read"))
    except zips.ArchiveUnfit as unfit:
        taking.part.forget()
        return Taken(Received(None, error=f"it is no whole archive: {unfit}"))
    except http.FAULTS as error:
        return Taken(http.failed(error, asker.credentials))


class _Taking:
    """One asking for an archive."""

    def __init__(self, asker: Asker, request: Request, archive: Archive, turn: Turn) -> None:
        self.asker, self.request, self.archive = asker, request, archive
        self.first: Turn | None = turn
        self.sent_at = turn.sent_at
        self.part = Part(asker.raw.workspace(), f"{asker.stream.name}.{archive.name}")
        self.headers: dict[str, str] = {}
        self.is_resumed = False

    # --- asking

    @contextmanager
    def _open(self, **extra: str) -> Iterator[httpx.Response]:
        turn = self.first or self.asker.wait_for_turn()
        self.first = None
        headers = {**_PLAIN, **{name.replace("_", "-"): value for name, value in extra.items()}}
        credentials = self.asker.credentials
        key = self.asker.key(turn.key)
        with http.opened(self.asker.http, self.request, credentials, headers, key) as response:
            yield response

    def _bytes(self, response: httpx.Response) -> Iterator[bytes]:
        return http.bounded(response.iter_bytes(), self.asker.may_go_on)

    def _range(self, version: Version, first: int, after: int) -> Iterator[bytes]:
        """Ask for bytes of a version.

        Raises:
            Replaced: the server has another version now.
        """
        with self._open(Range=f"bytes={first}-{after - 1}", If_Range=version.condition or "") as response:
            if response.status_code != httpx.codes.PARTIAL_CONTENT or _version(response) != version:
                raise Replaced
            got = 0
            for piece in self._bytes(response):
                got += len(piece)
                yield piece
        if got != after - first:
            raise httpx.RemoteProtocolError(f"{got:,} of {after - first:,} bytes came")

    # --- the whole flow

    def take(self) -> Taken:
        """Look at the end of the file, compare, and keep what changed in the cheaper way."""
        known = self._known()
        asked: dict[str, str] = {}
        if known["etag"]:
            asked["If_None_Match"] = known["etag"]
        if known["last_modified"]:
            asked["If_Modified_Since"] = known["last_modified"]
        by_content = known["verified_at"] is None or known["now"] - known["verified_at"] >= self.archive.whole_after
        with self._open(Range=f"bytes=-{TAIL}", **asked) as response:
            self.headers = http.headers_of(response, self.asker.credentials)
            status = response.status_code
            if status == httpx.codes.NOT_MODIFIED:
                self.asker.line.kept(lambda c: c.execute(query("archives.checked"), self._named()))
                return Taken(Received(status, self.headers))
            if status == httpx.codes.OK:
                chunks = self._bytes(response)
                head = next(chunks, b"")
                if not head.startswith(b"PK"):
                    return Taken(self._stored(status, chain([head], chunks)))
                version = _version(response)
                self.part.begin(version)
                self.part.append(chain([head], chunks), version.length or http.LARGEST_BODY)
                return self._of_file(version, known, by_content=by_content)
            if status != httpx.codes.PARTIAL_CONTENT:
                return Taken(self._stored(status, self._bytes(response)))
            version, tail = _version(response), b"".join(self._bytes(response))
        return self._of_tail(version, tail, known, by_content=by_content)

    def _of_tail(self, version: Version, tail: bytes, known: dict[str, Any], *, by_content: bool) -> Taken:
        """Go on from the end of a file of which the server gives ranges."""
        try:
            place, tail_at = zips.where(tail, version.length), version.length - len(tail)
        except zips.ArchiveUnfit:
            # A comment may be longer than what was asked for; whether it is an archive at all, the whole file says.
            self._download(version)
            return self._of_file(version, known, by_content=by_content)
        if place.start >= tail_at:
            directory = tail[place.start - tail_at :][: place.size]
        else:
            directory = b"".join(self._range(version, place.start, place.start + place.size))
        entries = zips.entries(directory, place.count)
        self._insist_on_size(entries, known)
        found = difference(self.archive, entries, self._held(), by_content=by_content)
        members = [entry for entry, _ in found.wanted]
        gap = int(self.asker.stream.host_group.interval.total_seconds() * USUAL_SPEED)
        spans = ranges(members, zips.ends(entries, place.start), gap)
        sent = sum(after - first for first, after, _ in spans) + len(spans) * gap
        left = version.length - self.part.have(version)
        is_cheaper = not by_content and version.condition is not None and sent < left
        if not is_cheaper or (spans and not self._honours_if_range()):
            self._download(version)
            return self._of_file(version, known, by_content=by_content)
        units = {entry.offset: unit for entry, unit in found.wanted}
        for first, after, together in spans:
            with tempfile.TemporaryFile(dir=self.asker.raw.workspace()) as piece:
                for chunk in self._range(version, first, after):
                    piece.write(chunk)
                self._keep(piece, first, [(entry, units[entry.offset]) for entry in together], found, {})
        return self._taken(version, directory, len(entries), found, verified=False)

    def _of_file(self, version: Version, known: dict[str, Any], *, by_content: bool) -> Taken:
        """Keep what changed of a file that is here."""
        length = self.part.path.stat().st_size
        if version.length and length != version.length:
            raise httpx.RemoteProtocolError(f"{length:,} of {version.length:,} bytes came")
        with self.part.path.open("rb") as file:
            directory, entries = zips.directory_of(file, length)
            self._insist_on_size(entries, known)
            held = self._held()
            found = difference(self.archive, entries, held, by_content=by_content)
            self._keep(file, 0, found.wanted, found, held if by_content else {})
        taken = self._taken(
            Version(version.etag, version.last_modified, length), directory, len(entries), found, verified=by_content
        )
        self.part.forget()
        return taken

    def _download(self, version: Version) -> None:
        """Bring the whole file here, going on where it broke as long as something comes."""
        breaks, have = 0, self.part.have(version)
        self.is_resumed = have > 0
        while have < version.length:
            try:
                self._pull(version, have)
            except httpx.HTTPError:
                breaks = 0 if self._size() > have else breaks + 1
                if breaks >= MOST_BREAKS or version.condition is None:
                    raise
            have = self._size()

    def _pull(self, version: Version, have: int) -> None:
        """Ask for what is missing of a file; a server that gives all of it instead is taken at its word."""
        asked = {"Range": f"bytes={have}-", "If_Range": version.condition or ""} if have else {}
        with self._open(**asked) as response:
            is_part = response.status_code == httpx.codes.PARTIAL_CONTENT
            if _version(response) != version or not (is_part or response.status_code == httpx.codes.OK):
                raise Replaced
            if not is_part:
                self.part.begin(version)
                self.is_resumed = False
            self.part.append(self._bytes(response), version.length)

    def _size(self) -> int:
        return self.part.path.stat().st_size if self.part.path.exists() else 0

    def _honours_if_range(self) -> bool:
        """Ask for a byte of a version that does not exist: a server that looks at it sends the whole file instead."""
        with self._open(Range="bytes=0-0", If_Range='"daybook-asks-whether-this-is-looked-at"') as response:
            return response.status_code == httpx.codes.OK

    # --- keeping

    def _stored(self, status: int, chunks: Iterator[bytes]) -> Received:
        return Received(status, self.headers, self.asker.raw.put(chunks, self.asker.credentials.secrets))

    def _named(self) -> dict[str, str]:
        return {"stream": self.asker.stream.name, "archive": self.archive.name}

    def _known(self) -> dict[str, Any]:
        row = self.asker.line.kept(lambda c: c.execute(query("archives.known"), self._named()).fetchone())
        assert row is not None
        return row

    def _held(self) -> dict[str, Held]:
        rows = self.asker.line.kept(lambda c: c.execute(query("archives.held"), self._named()).fetchall())
        return {
            row["unit"]: Held(row["crc32"], row["size"], row["sha256"], row["refused"], row["is_gone"]) for row in rows
        }

    def _insist_on_size(self, entries: Sequence[zips.Entry], known: dict[str, Any]) -> None:
        before = known["members"] or 0
        if len(entries) < before * self.archive.least_share:
            raise zips.ArchiveUnfit(
                f"it has {len(entries):,} members, and the one before had {before:,}; nothing is taken for gone"
            )

    def _keep(
        self,
        file: BinaryIO,
        base: int,
        members: Sequence[tuple[zips.Entry, str]],
        found: Difference,
        held: dict[str, Held],
    ) -> None:
        """Keep members of a file; those whose bytes are `held` already need no row."""
        kept: list[tuple[zips.Entry, str, Stored]] = []
        for entry, unit in members:
            if not self.asker.may_go_on():
                self._write(kept)
                raise http.ReceivingStopped("stopped while the members of an archive were being kept")
            try:
                stored = self.asker.raw.put(zips.unpacked(entry, file, base), self.asker.credentials.secrets)
            except zips.MemberUnfit as unfit:
                if self.is_resumed:
                    # What was left of an earlier download may have suffered meanwhile: it is brought anew.
                    raise zips.ArchiveUnfit(f"{entry.name} of a resumed download: {unfit}") from None
                found.refused.append(Refusal(unit, entry.name, entry.crc32, entry.size, str(unfit)))
                continue
            if held.get(unit) != Held(entry.crc32, entry.size, stored.sha256, None, is_gone=False):
                kept.append((entry, unit, stored))
            if len(kept) >= BATCH:
                self._write(kept)
                kept = []
        self._write(kept)

    def _write(self, kept: Sequence[tuple[zips.Entry, str, Stored]]) -> None:
        if kept:
            self.asker.line.kept(lambda connection: self._write_on(connection, kept))

    def _write_on(self, connection: Connection, kept: Sequence[tuple[zips.Entry, str, Stored]]) -> None:
        cycle = self.asker.cycle
        hashes = [stored.sha256 for _, _, stored in kept]
        with connection.transaction():
            self._guard(connection)
            objects = {
                "hashes": hashes,
                "sizes": [stored.size for _, _, stored in kept],
                "stored_sizes": [stored.stored_size for _, _, stored in kept],
            }
            connection.execute(query("archives.objects"), objects)
            connection.execute(
                query("archives.keep"),
                {
                    **self._named(),
                    "units": [unit for _, unit, _ in kept],
                    "names": [entry.name for entry, _, _ in kept],
                    "crcs": [entry.crc32 for entry, _, _ in kept],
                    "sizes": [entry.size for entry, _, _ in kept],
                    "hashes": hashes,
                    "cycle": cycle.cycle_id,
                    "attempt": cycle.attempt,
                    "session_date": self.request.session_date,
                    "sent_at": self.sent_at,
                    "parser_version": self.asker.stream.parser_version,
                },
            )

    def _guard(self, connection: Connection) -> None:
        cycle = self.asker.cycle
        asked = {"cycle": cycle.cycle_id, "attempt": cycle.attempt}
        if connection.execute(query("archives.guard"), asked).fetchone() is None:
            raise LeaseLost(f"The lease on {cycle.stream} {cycle.slot} is over; no more members are kept under it.")

    def _taken(self, version: Version, directory: bytes, count: int, found: Difference, *, verified: bool) -> Taken:
        stored = self.asker.raw.put([directory], self.asker.credentials.secrets)
        headers = {**self.headers, "content-length": str(version.length)}
        headers.pop("content-range", None)

        def write(connection: Connection, fetch_id: int) -> None:
            named = self._named()
            with connection.transaction():
                self._guard(connection)
                for each in found.refused:
                    self._refuse(connection, fetch_id, each)
                connection.execute(query("archives.seen"), {**named, "units": found.back})
                connection.execute(query("archives.gone"), {**named, "units": found.gone})
                connection.execute(
                    query("archives.taken"),
                    {
                        **named,
                        "etag": version.etag,
                        "last_modified": version.last_modified,
                        "length": version.length,
                        "members": count,
                        "fetch": fetch_id,
                        "verified": verified,
                    },
                )

        def conclude(fetch_id: int) -> None:
            self.asker.line.kept(lambda connection: write(connection, fetch_id))

        return Taken(Received(httpx.codes.OK, headers, stored), conclude)

    def _refuse(self, connection: Connection, fetch_id: int, refusal: Refusal) -> None:
        values = {"unit": refusal.unit, "name": refusal.name, "crc32": refusal.crc32, "size": refusal.size}
        reason = refusal.reason.replace("\0", "\N{REPLACEMENT CHARACTER}")[:1000]
        connection.execute(query("archives.refuse"), {**self._named(), **values, "refused": reason})
        connection.execute(
            query("quarantine.put"),
            {
                "stream": self.asker.stream.name,
                "unit": refusal.unit,
                "fetch": fetch_id,
                "cycle": self.asker.cycle.cycle_id,
                "scope": "unit",
                "position": None,
                "rule": "archive",
                "reason": reason,
                "content": None,
                "parser_version": self.asker.stream.parser_version,
            },
        )


def _version(response: httpx.Response) -> Version:
    span = _SPAN.fullmatch(response.headers.get("content-range", ""))
    length = int(span[3]) if span else int(response.headers.get("content-length") or 0)
    return Version(response.headers.get("etag"), response.headers.get("last-modified"), length)
