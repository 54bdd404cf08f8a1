"""The publisher: what waits in the outbox goes to the Hub, nothing lost and nothing twice.

Promises: one publisher at a time (a lease in the database, and on the Hub the parent that each commit names); a
commit is written down before it is sent, and its files leave the outbox only when a commit that contains their
hashes is confirmed; after a lost answer it looks before it repeats; limits of the Hub are honoured, and what they
leave is put off to a later run. With nothing waiting, no request is made. A release that the Hub refuses does not
stop another. Never: no wait inside a transaction, no write without the lease, no private release into a
repository that others can see.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import psycopg

from include.engine import alerts
from include.engine.db import Row, query, transaction
from include.outputs import releases
from include.outputs.hub import Hub, HubSession, ToSend, session
from include.outputs.lease import NotClaimed, PublishLease, PublishLeaseLost, claim, renewed
from include.outputs.ledger import COMMITS, REQUESTS, Ledger, LedgerFull, LedgerStopped
from include.outputs.store import FileUnfit, OutboxStore
from include.outputs.trouble import HubTrouble, Kind

LEASE = "hub"
FILES_PER_COMMIT = 100

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pace:
    """How patient a run is.

    `waits` are the seconds before each further try of a step, longer where the Hub asks for it; `seconds` is how
    long a run works: what would begin later, or wait longer, is put off. `rest` is how long everything is put off
    when the Hub stays out of reach. The limits are requests in five minutes and commits in an hour.
    """

    waits: tuple[float, ...] = (30, 60, 120, 240)
    seconds: float = 540
    rest: float = 900
    request_limit: int = REQUESTS
    commit_limit: int = COMMITS


@dataclass(frozen=True)
class SentCommit:
    """A confirmed commit: its release, name, page and how many files of the outbox it settled."""

    release: str
    oid: str
    url: str
    files: int


@dataclass(frozen=True)
class Published:
    """What a run of the publisher did.

    `refused` are files (path, reason) that cannot be sent; `failed` are releases (name, reason) of which the Hub
    took no further file in this run, they wait; `put_off_until` is when the rest may be tried again, and why;
    `busy` says who else publishes right now; `stopped` that the run was told to end or had no time left; `waiting`
    is how many files are left.
    """

    commits: tuple[SentCommit, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    put_off_until: datetime | None = None
    put_off_reason: str | None = None
    busy: str | None = None
    stopped: bool = False
    waiting: int = 0

    @property
    def files(self) -> int:
        """How many files were published."""
        return sum(commit.files for commit in self.commits)


class PublicationRefused(Exception):
    """Nothing can be published until a person acts: a bad token, or a repository that others can see."""


class _PutOff(Exception):
    """The rest is for a later run; `rest` in seconds from now."""

    def __init__(self, rest: float, reason: str) -> None:
        super().__init__(reason)
        self.rest = rest


class _Stopped(Exception):
    """The run was told to end, or has no time left."""


@dataclass
class _Batch:
    """Files on their way in one commit; in doubt while nobody knows whether the Hub has it."""

    release: str
    files: list[ToSend]
    commit_id: int = 0
    in_doubt: bool = False
    description: str = ""


def publish(
    url: str,
    hub: Hub,
    outbox_root: str,
    owner: str,
    *,
    stop: threading.Event | None = None,
    pace: Pace | None = None,
) -> Published:
    """Publish what waits in the outbox.

    Args:
        url: libpq address of the warehouse.
        outbox_root: local path or fsspec URL of the outbox.
        owner: who publishes; kept with the lease and the commits.
        stop: set when the caller must end; looked at before every request and while waiting.

    Raises:
        PublicationRefused: a person must act; everything waits in the outbox.
        PublishLeaseLost: another run took over, or the database was away too long; it looks before it sends.
    """
    if not _waiting(url):
        return Published()
    lease = claim(url, LEASE, owner)
    if isinstance(lease, NotClaimed):
        waiting = sum(row["files"] for row in _waiting(url))
        if lease.holder is not None:
            return Published(busy=f"{lease.holder} publishes until {lease.until}", waiting=waiting)
        return Published(put_off_until=lease.until, put_off_reason=lease.reason, waiting=waiting)
    stop = stop or threading.Event()
    pace = pace or Pace()
    ledger = Ledger(url, hub.repository, stop, pace.request_limit, pace.commit_limit)
    rest: float | None = None
    reason: str | None = None
    stopped = False
    try:
        with tempfile.TemporaryDirectory(prefix="daybook-publish-") as folder, session(hub, ledger) as speaking:
            run = _Run(url, lease, speaking, OutboxStore(outbox_root), Path(folder), stop, pace)
            try:
                with renewed(lease):
                    run.everything()
            except _PutOff as put_off:
                rest, reason = put_off.rest, str(put_off)
            except LedgerFull as full:
                rest, reason = full.wait, f"{pace.request_limit} requests were sent in the last five minutes"
            except (_Stopped, LedgerStopped):
                stopped = True
            done = run.result()
    except BaseException:
        _give_back_quietly(lease)
        raise
    until = lease.give_back(rest, reason)
    left = sum(row["files"] for row in _waiting(url))
    return replace(done, put_off_until=until, put_off_reason=reason, stopped=stopped, waiting=left)


def _waiting(url: str) -> list[Row]:
    with transaction(url, application="daybook publish") as connection:
        return connection.execute(query("publish.waiting")).fetchall()


def _give_back_quietly(lease: PublishLease) -> None:
    """On the way out with another error: that one is to be told, not that the lease could not be given back."""
    try:
        lease.give_back()
    except (PublishLeaseLost, psycopg.Error) as error:
        log.warning("The lease %s could not be given back and ends by itself: %s", lease.name, error)


@dataclass
class _Run:
    """One run under the lease."""

    url: str
    lease: PublishLease
    hub: HubSession
    store: OutboxStore
    folder: Path
    stop: threading.Event
    pace: Pace
    parent: str | None = None
    commits: list[SentCommit] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    deadline: float = 0.0

    def result(self) -> Published:
        return Published(tuple(self.commits), tuple(self.refused), tuple(self.failed))

    def everything(self) -> None:
        """Settle what an earlier run left open, then send release by release, small and urgent ones first."""
        self.deadline = time.monotonic() + self.pace.seconds
        self._patiently(self._read_head)
        for batch in self._open_batches():
            self._patiently(partial(self._look, batch))
        priority = {each.name: each.priority for each in releases.RELEASES}
        waiting = _waiting(self.url)
        for row in sorted(waiting, key=lambda row: (priority.get(row["release"], 1_000), row["first_file"])):
            self._send_release(row["release"])

    # --- one step, with patience

    def _check(self) -> None:
        if self.stop.is_set() or time.monotonic() > self.deadline:
            raise _Stopped
        self.lease.check()

    def _patiently(self, step: Callable[[], T]) -> T:
        """Do a step; where the Hub is in trouble wait and do it again, each time longer, then put the rest off."""
        for wait in (*self.pace.waits, None):
            self._check()
            try:
                return step()
            except HubTrouble as trouble:
                self._wait(trouble, wait)
        raise AssertionError("the last wait is None, and that always raises")

    def _wait(self, trouble: HubTrouble, ladder: float | None) -> None:
        where = f"The Hub ({self.hub.hub.repository})"
        if trouble.kind in (Kind.FORBIDDEN, Kind.MISSING):
            what = "refuses the token" if trouble.kind is Kind.FORBIDDEN else "is not to be seen with this token"
            raise PublicationRefused(
                f"{where} {what}: {trouble}. Nothing more was sent and everything waits in the outbox. Give the "
                "connection huggingface a token that may write there."
            )
        if trouble.kind is Kind.REFUSED:
            raise trouble
        if trouble.kind is Kind.QUOTA:
            raise _PutOff(trouble.wait or self.pace.rest, f"{where} takes no more commits this hour: {trouble}")
        if ladder is None:
            raise _PutOff(max(self.pace.rest, trouble.wait or 0), f"{where} stays in trouble: {trouble}")
        seconds = max(ladder, trouble.wait or 0)
        if time.monotonic() + seconds > self.deadline:
            raise _PutOff(seconds, f"{where} asks for patience: {trouble}")
        log.warning("%s: %s. Again in %.0f s.", where, trouble, seconds)
        if self.stop.wait(seconds):
            raise _Stopped

    # --- the repository as it is

    def _read_head(self) -> None:
        head = self.hub.head()
        public = {each.name for each in releases.RELEASES if each.visibility == "public"}
        private = [row["release"] for row in _waiting(self.url) if row["release"] not in public]
        if private and not head.is_private:
            raise PublicationRefused(
                f"The repository {self.hub.hub.repository} can be seen by everybody, and {', '.join(private)} must "
                "not be. Nothing was sent. Make the repository private, or name another one in the connection."
            )
        self.parent = head.oid

    def _open_batches(self) -> list[_Batch]:
        with transaction(self.url, application="daybook publish") as connection:
            rows = connection.execute(query("publish.open_commits"), {"repository": self.hub.hub.repository}).fetchall()
        return [_Batch(row["release"], [], row["commit_id"], in_doubt=True) for row in rows]

    def _look(self, batch: _Batch) -> None:
        """Find out what the Hub has of a commit in doubt, and write that down."""
        self._read_head()
        with transaction(self.url, application="daybook publish") as connection:
            rows = connection.execute(query("publish.files_of"), {"commit": batch.commit_id}).fetchall()
        held = self.hub.held([_to_send(row) for row in rows], self.parent)
        batch.in_doubt = False
        if held and self.parent:
            self._confirm(batch, held, self.parent, self.hub.commit_url(self.parent))
        else:
            self._note(batch, "failed", "the Hub does not have it")

    # --- sending

    def _send_release(self, release: str) -> None:
        after = 0
        while rows := self._next(release, after):
            after = rows[-1]["file_id"]
            files = [ready for row in rows if (ready := self._ready(row)) is not None]
            runs = sorted({row["source_run"] for row in rows})
            batch = _Batch(release, files, description="Made by " + ", ".join(runs[:20]))
            try:
                if files:
                    self._patiently(partial(self._try, batch))
            except HubTrouble as trouble:
                self.failed.append((release, f"The Hub does not take {files[0].path} and others: {trouble}"))
                return

    def _next(self, release: str, after: int) -> list[Row]:
        self._check()
        with transaction(self.url, application="daybook publish") as connection:
            return connection.execute(
                query("publish.batch"), {"release": release, "after": after, "limit": FILES_PER_COMMIT}
            ).fetchall()

    def _ready(self, row: Row) -> ToSend | None:
        """Check the bytes; a file that is not what its row says is refused, told, and made again by the next build."""
        try:
            return replace(_to_send(row), local=self.store.checked_copy(row["sha256"], self.folder))
        except FileUnfit as unfit:
            reason = f"{unfit}; it is built anew."
        with self.lease.writing() as connection:
            connection.execute(query("publish.refuse_file"), {"file": row["file_id"], "reason": reason})
            part = {"release": row["release"], "partition": row["partition"]}
            connection.execute(query("publish.build_again"), part)
            alerts.put(
                connection,
                key=f"publish/unfit/{row['file_id']}",
                severity="error",
                text=f"{row['path']} was not published: {reason}",
            )
        self.refused.append((row["path"], reason))
        return None

    def _try(self, batch: _Batch) -> None:
        """Send a batch once: look first where it is in doubt, and take along only what still waits."""
        if batch.in_doubt:
            self._look(batch)
        wait = self.hub.ledger.commit()
        if wait > 0:
            raise _PutOff(wait, f"{self.pace.commit_limit} commits were sent in the last hour")
        files = self._write_down(batch)
        if not files:
            return
        self.lease.check()
        message = f"{batch.release}: {len(files)} file{'' if len(files) == 1 else 's'}"
        try:
            commit = self.hub.commit(files, message, batch.description, self.parent)
        except HubTrouble as trouble:
            batch.in_doubt = trouble.kind in (Kind.LOST, Kind.MOVED)
            self._note(batch, "unknown" if batch.in_doubt else "failed", str(trouble))
            raise
        self.parent = commit.oid
        self._confirm(batch, files, commit.oid, commit.url)

    def _write_down(self, batch: _Batch) -> list[ToSend]:
        """Write the commit down before it is sent; gives the files that still wait."""
        with self.lease.writing() as connection:
            if batch.commit_id:
                connection.execute(query("publish.retry_commit"), {"commit": batch.commit_id})
            else:
                row = connection.execute(
                    query("publish.open_commit"),
                    {
                        "release": batch.release,
                        "repository": self.hub.hub.repository,
                        "files": len(batch.files),
                        "bytes": sum(file.size for file in batch.files),
                        "owner": self.lease.owner,
                    },
                ).fetchone()
                assert row is not None, "an insert gives its row"
                batch.commit_id = row["commit_id"]
            joined = connection.execute(
                query("publish.join_commit"),
                {"commit": batch.commit_id, "files": [file.file_id for file in batch.files]},
            ).fetchall()
            waiting = {row["file_id"] for row in joined}
            if not waiting:
                raise psycopg.Rollback()
            return [file for file in batch.files if file.file_id in waiting]
        return []

    def _confirm(self, batch: _Batch, files: Sequence[ToSend], oid: str, address: str) -> None:
        with self.lease.writing() as connection:
            values = {"commit": batch.commit_id, "files": [file.file_id for file in files]}
            connection.execute(query("publish.publish_files"), values)
            connection.execute(query("publish.confirm_commit"), {"commit": batch.commit_id, "oid": oid, "url": address})
        self.commits.append(SentCommit(batch.release, oid, address, len(files)))

    def _note(self, batch: _Batch, state: str, error: str) -> None:
        with self.lease.writing() as connection:
            connection.execute(
                query("publish.doubt_commit"), {"commit": batch.commit_id, "state": state, "error": error}
            )


def _to_send(row: Row) -> ToSend:
    return ToSend(row["file_id"], row["path"], row["sha256"], row["size"])
