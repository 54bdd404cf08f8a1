"""What the Hub holds, beside what is known to be published: what somebody deleted or changed there is sent again.

Promises: the repository is compared where its newest commit is not the one that ours left, with one listing; a file
that is not there as it was published waits once more in the outbox, a card or manifest is written anew, and somebody is
told. A release that is no more declared, and a file that was never ours, are left as they are. What is private is not
sent again where others can see it. Never: a listing that broke off is taken for one, and nothing is deleted.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from include.engine import alerts
from include.engine.db import Connection, query, transaction
from include.outputs import card, releases
from include.outputs.hub import Hub
from include.outputs.lease import PublishLease
from include.outputs.reader import Reader

# So many files are named in the message.
MOST_NAMED = 5
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Restored:
    """What was found at a commit: files and texts (path, what happened), and releases whose texts are to be sent."""

    head: str
    altered: list[tuple[str, str]]
    releases: set[str]


def is_known(url: str, repository: str, head: str) -> bool:
    """Say whether a newest commit needs no comparing: it is the one that ours left, or the Hub has not caught up."""
    with transaction(url, application="daybook publish") as connection:
        row = connection.execute(query("publish.known_head"), {"repository": repository, "head": head}).fetchone()
    return row is not None and bool(row["commit_oid"] == head or row["lags"])


def follow(connection: Connection, repository: str, before: str | None, oid: str) -> None:
    """Note a commit of ours that lies on top of one at which all was well, in the caller's transaction."""
    values = {"repository": repository, "head": before}
    row = connection.execute(query("publish.known_head"), values).fetchone()
    if row is not None and row["commit_oid"] == before:
        connection.execute(query("publish.note_head"), {"repository": repository, "oid": oid})


def restore(lease: PublishLease, hub: Hub, head: str, *, may_be_private: bool) -> Restored:
    """Compare a repository with what is published, and queue again what it has no more, or has other bytes of.

    Args:
        lease: the publisher's.
        hub: the repository; asked within `hub.session`.
        head: its newest commit, as it was last read.
        may_be_private: whether only its owner sees the repository.

    Raises:
        HubTrouble: there is no whole listing; nothing was changed.
        PublishLeaseLost: the lease is over; nothing was changed.
    """
    known = [each.name for each in releases.RELEASES if may_be_private or each.visibility == "public"]
    of_texts = {card.manifest_path(name): name for name in known}
    with transaction(lease.url, application="daybook publish") as connection:
        promised = connection.execute(query("publish.promised"), {"releases": known}).fetchall()
        texts = connection.execute(query("publish.texts_of"), {"repository": hub.repository}).fetchall()
    texts = [row for row in texts if row["path"] in of_texts or row["path"] == card.CARD]
    if promised or texts:
        listing = Reader(hub).all()
        head, there = listing.commit, {path: entry.etag for path, entry in listing.files.items()}
    else:
        there = {}
    lost = {row["file_id"]: row for row in promised if there.get(row["path"]) != row["sha256"].hex()}
    gone = [row["path"] for row in texts if there.get(row["path"]) != row["git_name"]]
    altered: list[tuple[str, str]] = []
    with lease.writing() as connection:
        if lost:
            connection.execute(query("publish.alone"))
            again = connection.execute(query("publish.send_again"), {"files": list(lost)}).fetchall()
            altered += [(row["path"], _what(row["path"], there)) for row in again]
        if gone:
            connection.execute(query("publish.forget_text"), {"repository": hub.repository, "paths": gone})
            altered += [(path, _what(path, there)) for path in gone]
        connection.execute(query("publish.note_head"), {"repository": hub.repository, "oid": head})
        if altered:
            _tell(connection, hub.repository, head, sorted(altered))
    whose = {of_texts[path] for path in gone if path in of_texts}
    if card.CARD in gone and not whose:
        whose = {row["release"] for row in promised[:1]}
    return Restored(head, sorted(altered), whose)


def _what(path: str, there: dict[str, str]) -> str:
    return "changed" if path in there else "deleted"


def _tell(connection: Connection, repository: str, head: str, altered: list[tuple[str, str]]) -> None:
    named = ", ".join(f"{path} ({what})" for path, what in altered[:MOST_NAMED])
    more = f" and {len(altered) - MOST_NAMED} more" if altered[MOST_NAMED:] else ""
    text = (
        f"Somebody else wrote to {repository} (commit {head[:10]}): {named}{more}. What was published there is sent "
        "again from the outbox; what was there instead stays in the history. Files that are not ours were left alone. "
        "Nobody but Daybook should write what it publishes; where something must go, stop its release first."
    )
    log.warning(text)
    alerts.put(connection, key=f"publish/altered/{repository}/{head}", severity="warning", text=text)
