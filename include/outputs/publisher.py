"""The publisher: what waits in the outbox goes to the Hub, nothing lost and nothing twice.

Promises: one publisher at a time (a lease in the database, and on the Hub the parent that each commit names); a
commit is written down before it is sent, and its files leave the outbox only when a commit that contains their
hashes is confirmed; after a lost answer it looks before it repeats; limits of the Hub are honoured, and what they
leave is put off to a later run. With nothing waiting, no request is made. A release that the Hub refuses does not
stop another. Never: no wait inside a transaction, no write without the lease, no private release into a
repository that others can see.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import psycopg

from include.engine import drafts
from include.engine.db import Connection, Row, query, transaction
from include.outputs import card, gate, releases, restore
from include.outputs.gate import Gate, to_send
from include.outputs.hub import Hub, HubSession, ToSend, git_name, session
from include.outputs.lease import NotClaimed, PublishLease, claim, give_back_quietly, renewed
from include.outputs.ledger import Ledger, LedgerFull, LedgerStopped
from include.outputs.results import Pace as Pace
from include.outputs.results import Published as Published
from include.outputs.results import SentCommit as SentCommit
from include.outputs.store import OutboxStore
from include.outputs.trouble import HubTrouble, Kind

LEASE = "hub"
FILES_PER_COMMIT = 100

T = TypeVar("T")
log = logging.getLogger(__name__)


class PublicationRefused(Exception):
    """Nothing can be published until a person acts: a bad token, or a repository that others can see."""


class _PutOff(Exception):
    """The rest is for a later run; `rest` in seconds from now."""

    def __init__(self, rest: float, reason: str) -> None:
        super().__init__(reason)
        self.rest = rest


class _Stopped(Exception):
    """The run was told to end, or has no time left."""


class _ShareUsed(Exception):
    """A large release has used up what it may of this hour's commits; the others have theirs."""


@dataclass
class _Batch:
    """Files on their way in one commit; in doubt while nobody knows whether the Hub has it."""

    release: str
    files: list[ToSend]
    rows: dict[str, Row] = field(default_factory=dict)
    commit_id: int = 0
    in_doubt: bool = False
    is_bulk: bool = False
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
    ledger = Ledger(
        url, hub.repository, stop, pace.request_limit, pace.commit_limit, pace.request_window, pace.commit_window
    )
    rest: float | None = None
    reason: str | None = None
    stopped = False
    try:
        with (
            tempfile.TemporaryDirectory(prefix="publish-", dir=drafts.here()) as folder,
            session(hub, ledger) as speaking,
        ):
            passes = Gate(url, lease, OutboxStore(outbox_root), Path(folder))
            run = _Run(url, lease, speaking, passes, stop, pace)
            try:
                with renewed(lease):
                    run.everything()
            except _PutOff as put_off:
                rest, reason = put_off.rest, str(put_off)
            except HubTrouble as trouble:
                raise PublicationRefused(
                    f"The Hub ({hub.repository}) does not answer what is asked of it: {trouble}. Nothing more was sent "
                    "and everything waits in the outbox. See whether the connection huggingface names the right place."
                ) from None
            except LedgerFull as full:
                rest, reason = full.wait, f"{pace.request_limit} requests were sent in the last five minutes"
            except (_Stopped, LedgerStopped):
                stopped = True
            done = run.result()
    except BaseException:
        give_back_quietly(lease)
        raise
    until = lease.give_back(rest, reason)
    left = sum(row["files"] for row in _waiting(url))
    return replace(done, put_off_until=until, put_off_reason=reason, stopped=stopped, waiting=left)


def _waiting(url: str) -> list[Row]:
    with transaction(url, application="daybook publish") as connection:
        return connection.execute(query("publish.waiting")).fetchall()


@dataclass
class _Run:
    """One run under the lease."""

    url: str
    lease: PublishLease
    hub: HubSession
    gate: Gate
    stop: threading.Event
    pace: Pace
    parent: str | None = None
    is_private: bool = True
    commits: list[SentCommit] = field(default_factory=list)
    restored: list[tuple[str, str]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    deferred: dict[str, str] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    deadline: float = 0.0

    def result(self) -> Published:
        return Published(
            tuple(self.commits),
            tuple(self.refused),
            tuple(self.failed.items()),
            tuple(self.deferred.items()),
            restored=tuple(self.restored),
        )

    def everything(self) -> None:
        """Settle what an earlier run left open, then send release by release, small and urgent ones first."""
        self.deadline = time.monotonic() + self.pace.seconds
        self._patiently(self._read_head)
        for batch in self._open_batches():
            self._patiently(partial(self._look, batch))
        self._patiently(self._compare)
        known = {each.name: each for each in releases.RELEASES}
        after: dict[str, int] = {}
        while (name := self._most_urgent(known, after)) is not None:
            rows = self._next(name, after.get(name, 0))
            if rows:
                after[name] = rows[-1]["file_id"]
                self._send(name, rows, is_bulk=name in known and known[name].is_bulk)
        for name in sorted(self.unsure):
            self._send_batch(_Batch(name, []))

    def _most_urgent(self, known: Mapping[str, releases.Release], after: Mapping[str, int]) -> str | None:
        """The release whose files go next, looked up anew after each commit; None where no more of any can go."""
        waiting = [
            (known[row["release"]].priority if row["release"] in known else 1_000, row["first_file"], row["release"])
            for row in _waiting(self.url)
            if row["last_file"] > after.get(row["release"], 0)
            and row["release"] not in self.failed
            and row["release"] not in self.deferred
        ]
        return min(waiting)[2] if waiting else None

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
        self.parent, self.is_private = head.oid, head.is_private

    def _compare(self) -> None:
        """Where the newest commit is not one of ours, have what somebody deleted or changed sent again."""
        if self.parent is None or restore.is_known(self.url, self.hub.hub.repository, self.parent):
            return
        found = restore.restore(self.lease, self.hub.hub, self.parent, may_be_private=self.is_private)
        self.parent = found.head
        self.unsure |= found.releases
        self.restored += found.altered

    def _open_batches(self) -> list[_Batch]:
        with transaction(self.url, application="daybook publish") as connection:
            rows = connection.execute(query("publish.open_commits"), {"repository": self.hub.hub.repository}).fetchall()
        return [_Batch(row["release"], [], commit_id=row["commit_id"], in_doubt=True) for row in rows]

    def _look(self, batch: _Batch) -> None:
        """Find out what the Hub has of a commit in doubt, and write that down."""
        self._read_head()
        with transaction(self.url, application="daybook publish") as connection:
            rows = connection.execute(query("publish.files_of"), {"commit": batch.commit_id}).fetchall()
        batch.rows |= {row["path"]: row for row in rows}
        files = [to_send(row) for row in rows]
        held, texts = self.hub.held(files, self._texts(replace(batch, files=files)), self.parent)
        batch.in_doubt = False
        if held and self.parent:
            self._confirm(batch, held, self.parent, self.hub.commit_url(self.parent), texts)
            if self._texts(replace(batch, files=[])):
                self.unsure.add(batch.release)
        else:
            self._note(batch, "failed", "the Hub does not have it")

    # --- sending

    def _send(self, release: str, rows: list[Row], *, is_bulk: bool) -> None:
        admitted = self.gate.admit(release, rows)
        self.refused += admitted.kept_back
        if not admitted.files:
            return
        runs = sorted({row["source_run"] for row in rows})
        batch = _Batch(release, admitted.files, {row["path"]: row for row in rows}, is_bulk=is_bulk)
        batch.description = "Made by " + ", ".join(runs[:20])
        self._send_batch(batch)

    def _send_batch(self, batch: _Batch) -> None:
        try:
            self._patiently(partial(self._try, batch))
        except _ShareUsed as used:
            self.deferred[batch.release] = str(used)
        except HubTrouble as trouble:
            what = f"{batch.files[0].path} and others" if batch.files else "the manifest"
            self.failed[batch.release] = f"The Hub does not take {what}: {trouble}"

    def _next(self, release: str, after: int) -> list[Row]:
        self._check()
        with transaction(self.url, application="daybook publish") as connection:
            return connection.execute(
                query("publish.batch"), {"release": release, "after": after, "limit": FILES_PER_COMMIT}
            ).fetchall()

    def _try(self, batch: _Batch) -> None:
        """Send a batch once: look first where it is in doubt, and take along only what still waits."""
        if batch.in_doubt:
            self._look(batch)
        texts = self._texts(batch)
        if not batch.files and not texts:
            return
        wait = self.hub.ledger.commit(self.pace.commits_kept if batch.is_bulk else 0)
        if wait > 0:
            words = f"{self.pace.commit_limit} commits were sent in the last hour"
            if batch.is_bulk and self.pace.commits_kept:
                raise _ShareUsed(f"{words}, but for those that are kept for urgent files; again in {wait:.0f} s")
            raise _PutOff(wait, words)
        files = self._write_down(batch)
        if len(files) < len(batch.files):
            if not files:
                return
            # What was replaced meanwhile must not stand in the manifest either.
            texts = self._texts(replace(batch, files=files))
        self.lease.check()
        message = f"{batch.release}: {len(files)} file{'' if len(files) == 1 else 's'}"
        try:
            commit = self.hub.commit(files, message, batch.description, self.parent, texts)
        except HubTrouble as trouble:
            batch.in_doubt = trouble.kind in (Kind.LOST, Kind.MOVED)
            self._note(batch, "unknown" if batch.in_doubt else "failed", str(trouble))
            raise
        before, self.parent = self.parent, commit.oid
        self._confirm(batch, files, commit.oid, commit.url, texts, before)

    def _texts(self, batch: _Batch) -> dict[str, bytes]:
        """The card, and the manifest as it is with the files of a batch, where they differ from what the Hub has."""
        with transaction(self.url, application="daybook publish") as connection:
            held = connection.execute(query("publish.manifest"), {"release": batch.release}).fetchall()
            names = {row["release"] for row in connection.execute(query("publish.releases_held")).fetchall()}
            files = {row["path"]: row for row in held} | {
                file.path: batch.rows[file.path] for file in batch.files if file.path in batch.rows
            }
            texts = {
                card.manifest_path(batch.release): card.manifest(batch.release, files.values()),
                card.CARD: card.card(names | {batch.release}),
            }
            values = {"repository": self.hub.hub.repository, "paths": list(texts)}
            sent = {row["path"]: row["sha256"] for row in connection.execute(query("publish.sent_texts"), values)}
        return {path: text for path, text in texts.items() if sent.get(path) != hashlib.sha256(text).digest()}

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
            if batch.files and not waiting:
                raise psycopg.Rollback()
            return [file for file in batch.files if file.file_id in waiting]
        return []

    def _confirm(
        self,
        batch: _Batch,
        files: Sequence[ToSend],
        oid: str,
        address: str,
        texts: Mapping[str, bytes],
        on_top_of: str | None = None,
    ) -> None:
        """Write down that the Hub has files, and texts; a commit on top of one that was compared needs no comparing."""
        with self.lease.writing() as connection:
            values = {"commit": batch.commit_id, "files": [file.file_id for file in files]}
            connection.execute(query("publish.publish_files"), values)
            connection.execute(query("publish.confirm_commit"), {"commit": batch.commit_id, "oid": oid, "url": address})
            self._note_texts(connection, batch, texts)
            restore.follow(connection, self.hub.hub.repository, on_top_of, oid)
            gate.close_incident(connection, batch.release)
        self.unsure -= {batch.release}
        self.commits.append(SentCommit(batch.release, oid, address, len(files)))

    def _note_texts(self, connection: Connection, batch: _Batch, texts: Mapping[str, bytes]) -> None:
        for path, text in texts.items():
            values = {"repository": self.hub.hub.repository, "path": path, "commit": batch.commit_id}
            names = {"sha256": hashlib.sha256(text).digest(), "git_name": git_name(text)}
            connection.execute(query("publish.note_text"), {**values, **names})

    def _note(self, batch: _Batch, state: str, error: str) -> None:
        with self.lease.writing() as connection:
            connection.execute(
                query("publish.doubt_commit"), {"commit": batch.commit_id, "state": state, "error": error}
            )
