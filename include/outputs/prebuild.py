"""Files over all companies, built piece by piece: only companies that changed are read again.

Promises: everything comes from the database, in one snapshot; a company's rows are a piece (a row group of a file
beside the outbox), kept under the version of what they were made from, so that the next build reads only what changed
since, and a build that was killed goes on where it ended. Pieces that are lost or damaged are read again, never
guessed. The same rows give the same file whichever way it was built. All files of a release are queued in one
transaction and go in one commit. Memory is bounded by one company's rows and one row group. Never: nothing is read from
the Hub.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from include.engine.db import Connection, Row, query, transaction
from include.outputs import outbox, parquet
from include.outputs.lease import NotClaimed, PublishLease, claim, give_back_quietly, renewed
from include.outputs.parquet import Written
from include.outputs.release import Release
from include.outputs.scans import COMPANY, Scan
from include.outputs.store import FileUnfit, OutboxStore

LEASE = "prebuild"
BATCH = 200
_LEVEL = 3


@dataclass(frozen=True)
class Prebuilt:
    """What a prebuild did.

    `queued` and `unchanged` are parts of the release; `companies` of `of` were read anew; `left` is how many are still
    to be read, where there was no time; `busy` says who else builds right now.
    """

    queued: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    companies: int = 0
    of: int = 0
    left: int = 0
    busy: str | None = None


@dataclass(frozen=True)
class Piece:
    """One company's rows of one part: which row group of which file holds them; no file where there are none."""

    company: str
    version: int
    sha256: bytes | None
    row_group: int
    rows: int
    digest: bytes
    newest_fetch: int | None


def unready(url: str, streams: Sequence[str]) -> list[Row]:
    """Return those of the streams whose newest window is not over, or failed; the failed ones first."""
    with transaction(url, application="daybook prebuild", statement_timeout=15) as connection:
        return connection.execute(query("prebuild.unready"), {"streams": list(streams)}).fetchall()


def prebuild(
    url: str,
    release: Release,
    scans: Callable[[Connection], Sequence[Scan]],
    outbox_root: str,
    owner: str,
    *,
    stop: threading.Event | None = None,
    seconds: float = 1e9,
) -> Prebuilt:
    """Build the files of a release over all companies, and queue those whose content is new.

    Args:
        scans: gives the parts of the release, read in the snapshot that everything is built from.
        owner: who builds; kept with the files.
        stop: set when the caller must end; looked at between two batches of companies.
        seconds: no batch is begun after that long.

    Raises:
        PublishLeaseLost: another build took over; what was kept is kept.
        PartUnreadable: rows do not fit what is declared of them.
        OSError: the outbox cannot be written; nothing is lost.
    """
    lease = claim(url, LEASE, owner)
    if isinstance(lease, NotClaimed):
        return Prebuilt(busy=f"{lease.holder or 'nobody'} builds until {lease.until}")
    try:
        with renewed(lease), outbox.snapshots(url) as warehouse, warehouse.reading.transaction():
            work = _Work(warehouse.reading, lease, release, OutboxStore(outbox_root), stop or threading.Event())
            work.until = time.monotonic() + seconds
            return work.everything(scans(warehouse.reading), owner)
    finally:
        give_back_quietly(lease)


@dataclass
class _Work:
    """One build under its lease, over one snapshot."""

    snapshot: Connection
    lease: PublishLease
    release: Release
    store: OutboxStore
    stop: threading.Event
    until: float = 0.0
    versions: dict[str, int] = field(default_factory=dict)

    @property
    def pieces(self) -> OutboxStore:
        """Where pieces lie: beside the outbox, and never sent."""
        return OutboxStore(f"{self.store.address.rstrip('/')}/pieces")

    def everything(self, scans: Sequence[Scan], owner: str) -> Prebuilt:
        self.snapshot.execute(query("publish.text_form"))
        marks = {"marks": list(self.release.marks)}
        self.versions = {
            row["company"]: row["version"] for row in self.snapshot.execute(query("prebuild.versions"), marks)
        }
        held = {scan.name: self._held(scan) for scan in scans}
        due = {name: [c for c, version in self.versions.items() if c not in kept or kept[c].version != version]
               for name, kept in held.items()}  # fmt: skip
        todo = sorted({company for companies in due.values() for company in companies})
        for first in range(0, len(todo), BATCH):
            batch = todo[first : first + BATCH]
            if self.stop.is_set() or time.monotonic() > self.until:
                return Prebuilt(companies=first, of=len(self.versions), left=len(todo) - first)
            for scan in scans:
                wanted = sorted(set(batch) & set(due[scan.name]))
                if wanted:
                    held[scan.name] |= self._read(scan, wanted)
        queued, unchanged = self._queue(scans, held, owner)
        self._sweep()
        return Prebuilt(tuple(queued), tuple(unchanged), len(todo), len(self.versions))

    def _held(self, scan: Scan) -> dict[str, Piece]:
        """What was built of each company before and is there still, byte for byte."""
        rows = self.snapshot.execute(
            query("prebuild.pieces"), {"release": self.release.name, "part": scan.name}
        ).fetchall()
        rows = [row for row in rows if row["shape"] == scan.fingerprint and row["company"] in self.versions]
        there = {sha256: self._is_there(sha256) for sha256 in {row["sha256"] for row in rows} if sha256 is not None}
        return {row["company"]: _piece(row) for row in rows if row["sha256"] is None or there[row["sha256"]]}

    def _is_there(self, sha256: bytes) -> bool:
        with self.store.workspace() as folder:
            try:
                self.pieces.checked_copy(sha256, folder)
            except FileUnfit:
                return False
        return True

    # --- reading

    def _read(self, scan: Scan, companies: list[str]) -> dict[str, Piece]:
        """Read the rows of some companies into a file of pieces, and keep what it holds."""
        import pyarrow.parquet as pq

        schema = parquet.schema_of(self.release, scan.shape, scan.columns)
        found: dict[str, dict[str, Any]] = {
            company: {"row_group": 0, "rows": 0, "digest": hashlib.sha256().digest(), "newest_fetch": None}
            for company in companies
        }
        for row in self.snapshot.execute(scan.newest(companies)).fetchall():
            found[row["company"]]["newest_fetch"] = row["newest_fetch"]
        with self.store.workspace() as folder:
            file, groups = folder / "pieces.parquet", 0
            with pq.ParquetWriter(file, schema, compression="zstd", compression_level=1) as writer:
                for company, block, rows in _by_company(self.snapshot, scan, companies):
                    read = parquet.read(block, schema, f"{self.release.name} {scan.name} {company}")
                    writer.write_table(read, row_group_size=max(rows, 1))
                    found[company] |= {"row_group": groups, "rows": rows, "digest": hashlib.sha256(block).digest()}
                    groups += 1
            sha256 = parquet.synced(file) if groups else None
            if sha256 is not None:
                self.pieces.folder.mkdir(parents=True, exist_ok=True)
                self.pieces.place(file, sha256)
        made = {
            company: Piece(company, self.versions[company], sha256 if facts["rows"] else None, **facts)
            for company, facts in found.items()
        }
        self._keep(scan, made)
        return made

    def _keep(self, scan: Scan, made: Mapping[str, Piece]) -> None:
        pieces = [
            {
                "company": piece.company,
                "version": piece.version,
                "sha256": piece.sha256.hex() if piece.sha256 else None,
                "row_group": piece.row_group,
                "rows": piece.rows,
                "digest": piece.digest.hex(),
                "newest_fetch": piece.newest_fetch,
            }
            for piece in made.values()
        ]
        with self.lease.writing() as connection:
            values = {"release": self.release.name, "part": scan.name, "shape": scan.fingerprint}
            connection.execute(query("prebuild.keep_pieces"), {**values, "pieces": json.dumps(pieces)})

    # --- putting together

    def _queue(
        self, scans: Sequence[Scan], held: Mapping[str, Mapping[str, Piece]], owner: str
    ) -> tuple[list[str], list[str]]:
        """Make the files whose content is new and queue them all at once."""
        made: dict[str, Written] = {}
        unchanged: list[str] = []
        version = sum(self.versions.values())
        with self.store.workspace() as folder:
            for number, scan in enumerate(scans):
                pieces = [held[scan.name][company] for company in self.versions]
                content = _content(scan, pieces)
                part = self.release.part(scan.name)
                newest = self.snapshot.execute(
                    query("publish.newest"), {"release": self.release.name, "path": part.path}
                ).fetchone()
                rows = sum(piece.rows for piece in pieces)
                if newest["content_hash"] == content if newest else not rows:
                    unchanged.append(scan.name)
                    continue
                made[scan.name] = self._assemble(scan, pieces, content, version, folder / f"{number}.parquet")
                self.store.place(made[scan.name].file, made[scan.name].sha256)
            with self.lease.writing() as connection:
                if made:
                    # They are read together, so what is held is judged beside what is new.
                    outbox.judge_again(connection, self.release)
                for name, written in made.items():
                    outbox.put(connection, self.release, self.release.part(name), written, owner)
                connection.execute(
                    query("publish.built"),
                    {"release": self.release.name, "partition": "all", "tables": list(self.release.marks),
                     "version": version},
                )  # fmt: skip
        return list(made), unchanged

    def _assemble(self, scan: Scan, pieces: Sequence[Piece], content: bytes, version: int, file: Path) -> Written:
        """Write all pieces of a part to one file, in row groups that do not tell how it was built."""
        schema = parquet.schema_of(self.release, scan.shape, scan.columns)
        with parquet.writer(file, schema, scan.shape.key, level=_LEVEL) as writer:
            for table in _in_groups(self._tables(pieces, file.parent), parquet.ROWS_PER_GROUP):
                writer.write_table(table.cast(schema), row_group_size=parquet.ROWS_PER_GROUP)
        sha256 = parquet.synced(file)
        newest = [piece.newest_fetch for piece in pieces if piece.newest_fetch is not None]
        rows = sum(piece.rows for piece in pieces)
        return Written(file, content, sha256, file.stat().st_size, rows, max(newest, default=None), None, None, version)

    def _tables(self, pieces: Sequence[Piece], folder: Path) -> Iterator[Any]:
        """The rows of pieces in order, one company at a time."""
        import pyarrow.parquet as pq

        opened: dict[bytes, Any] = {}
        last = {piece.sha256: number for number, piece in enumerate(pieces)}
        for number, piece in enumerate(pieces):
            if piece.sha256 is None:
                continue
            if piece.sha256 not in opened:
                opened[piece.sha256] = pq.ParquetFile(self.pieces.checked_copy(piece.sha256, folder))
            yield opened[piece.sha256].read_row_group(piece.row_group, use_threads=False)
            if last[piece.sha256] == number:
                opened.pop(piece.sha256).close()

    def _sweep(self) -> None:
        """Remove files of pieces that nothing refers to any more; they are made again from the database if need be."""
        with self.lease.writing() as connection:
            used = {
                row["sha256"].hex()
                for row in connection.execute(query("prebuild.used"), {"release": self.release.name})
            }
        self.pieces.keep_only(used)


def _piece(row: Row) -> Piece:
    return Piece(
        row["company"], row["version"], row["sha256"], row["row_group"], row["rows"], row["digest"], row["newest_fetch"]
    )


def _content(scan: Scan, pieces: Sequence[Piece]) -> bytes:
    """The hash over schema and rows: of each company that has some, in order."""
    content = hashlib.sha256(scan.fingerprint)
    for piece in pieces:
        if piece.rows:
            content.update(piece.company.encode() + b"\0" + piece.digest)
    return content.digest()


def _by_company(connection: Connection, scan: Scan, companies: list[str]) -> Iterator[tuple[str, bytes, int]]:
    """The rows of companies as CSV, one company after the other; the company is the first column."""
    assert scan.columns[0].name == COMPANY == scan.shape.key[0], f"{scan.name} does not begin with the company"
    lines: list[bytes] = []
    company = b""
    with connection.cursor() as cursor, cursor.copy(scan.rows(companies)) as copy:
        while row := copy.read():
            line = bytes(row)
            here = line[1 : line.index(b'"', 1)]
            if here != company and lines:
                yield company.decode(), b"".join(lines), len(lines)
                lines = []
            company = here
            lines.append(line)
    if lines:
        yield company.decode(), b"".join(lines), len(lines)


def _in_groups(tables: Iterator[Any], size: int) -> Iterator[Any]:
    """The same rows in tables of exactly `size` rows, the last one aside."""
    import pyarrow as pa

    kept: list[Any] = []
    count = 0
    for table in tables:
        kept.append(table)
        count += table.num_rows
        while count >= size:
            joined = pa.concat_tables(kept).combine_chunks()
            yield joined.slice(0, size)
            kept, count = [joined.slice(size)], count - size
    if count:
        yield pa.concat_tables(kept).combine_chunks()
