"""The Hub's repositories: their files, and every commit that made them.

Promises: a commit is one line at the end of the repository's journal, written before it counts, so a restart
gives the same history and an interrupted write never half a commit; two commits on the same parent cannot
both win. Never: history is rewritten, but by a squash, which puts a whole new journal in the place of the old.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from include.sandbox.hub.content import git_oid, pointer

ATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n*.zst filter=lfs diff=lfs merge=lfs -text\n"


class RepoMissing(Exception):
    """There is no such repository."""


class RepoExists(Exception):
    """The repository is already there."""


class RevisionMissing(Exception):
    """The repository has no such revision."""


class StaleParent(Exception):
    """Another commit came first."""


@dataclass(frozen=True)
class Blob:
    """A file's content: `oid` is git's name, `sha256` is set for a large file."""

    size: int
    oid: str
    sha256: str | None = None

    @classmethod
    def small(cls, content: bytes) -> Blob:
        """A file that git itself keeps."""
        return cls(len(content), git_oid(content))

    @classmethod
    def large(cls, sha256: str, size: int) -> Blob:
        """A file that git keeps as a pointer."""
        return cls(size, git_oid(pointer(sha256, size)), sha256)


@dataclass(frozen=True)
class Commit:
    """One commit: what it changed (None: removed), and on top of which other."""

    oid: str
    parent: str | None
    title: str
    message: str
    date: datetime
    changes: Mapping[str, Blob | None]


@dataclass
class Repo:
    """One dataset repository; `tree` holds the head's files and the commit that last touched each."""

    id: str
    private: bool
    created: datetime
    commits: list[Commit] = field(default_factory=list)
    tree: dict[str, tuple[Blob, Commit]] = field(default_factory=dict)

    @property
    def head(self) -> Commit:
        """The newest commit."""
        return self.commits[-1]

    def apply(self, commit: Commit) -> None:
        """Put a commit on top."""
        self.commits.append(commit)
        _apply(self.tree, commit)

    def at(self, revision: str) -> tuple[Commit, dict[str, tuple[Blob, Commit]]]:
        """A commit and its files, by branch name or commit id.

        Raises:
            RevisionMissing: there is neither.
        """
        if revision in ("main", "refs/heads/main", self.head.oid):
            return self.head, dict(self.tree)
        index = next((n for n, commit in enumerate(self.commits) if commit.oid == revision), None)
        if index is None:
            raise RevisionMissing(revision)
        tree: dict[str, tuple[Blob, Commit]] = {}
        for commit in self.commits[: index + 1]:
            _apply(tree, commit)
        return self.commits[index], tree


def _apply(tree: dict[str, tuple[Blob, Commit]], commit: Commit) -> None:
    for path, blob in commit.changes.items():
        if blob is None:
            tree.pop(path, None)
        else:
            tree[path] = (blob, commit)


class Repos:
    """All repositories below one directory."""

    def __init__(self, directory: Path) -> None:
        self._root = directory
        self.lock = threading.RLock()
        self._repos: dict[str, Repo] = {}
        directory.mkdir(parents=True, exist_ok=True)
        for journal in sorted(directory.glob("*.ndjson")):
            repo = _read(journal)
            if repo is not None:
                self._repos[repo.id] = repo

    def names(self) -> list[str]:
        """The ids of all repositories."""
        with self.lock:
            return sorted(self._repos)

    def get(self, name: str) -> Repo:
        """A repository by its id.

        Raises:
            RepoMissing: there is none.
        """
        with self.lock:
            if name not in self._repos:
                raise RepoMissing(name)
            return self._repos[name]

    def create(self, name: str, private: bool, at: datetime, attributes: bytes) -> Repo:
        """Make a repository with its first commit, which holds `.gitattributes`.

        Raises:
            RepoExists: it is already there.
        """
        with self.lock:
            if name in self._repos:
                raise RepoExists(name)
            repo = Repo(name, private, at)
            self._append(self._journal(name), {"repo": name, "private": private, "created": at.isoformat()})
            self._repos[name] = repo
            self.commit(repo, "initial commit", "", at, {".gitattributes": Blob.small(attributes)}, None)
            return repo

    def delete(self, name: str) -> None:
        """Remove a repository.

        Raises:
            RepoMissing: there is none.
        """
        with self.lock:
            self.get(name)
            self._journal(name).unlink()
            del self._repos[name]

    def commit(
        self,
        repo: Repo,
        title: str,
        message: str,
        at: datetime,
        changes: Mapping[str, Blob | None],
        parent: str | None,
    ) -> Commit:
        """Add a commit; with `parent`, only on top of that one.

        Raises:
            StaleParent: the newest commit is another one.
        """
        with self.lock:
            head = repo.commits[-1].oid if repo.commits else None
            if parent is not None and parent != head:
                raise StaleParent(head)
            return self._add(repo, title, message, at, changes, self._journal(repo.id))

    def _add(
        self, repo: Repo, title: str, message: str, at: datetime, changes: Mapping[str, Blob | None], journal: Path
    ) -> Commit:
        line = {
            "parent": repo.commits[-1].oid if repo.commits else None,
            "title": title,
            "message": message,
            "date": at.astimezone(UTC).isoformat(),
            "changes": {path: _blob_line(blob) for path, blob in changes.items()},
        }
        text = json.dumps([repo.id, len(repo.commits), line], sort_keys=True).encode()
        line["oid"] = hashlib.sha1(text, usedforsecurity=False).hexdigest()
        self._append(journal, line)
        commit = _commit(line)
        repo.apply(commit)
        return commit

    def squash(self, repo: Repo, title: str, at: datetime) -> Commit:
        """Put one commit with every file in the place of a repository's history."""
        with self.lock:
            squashed = Repo(repo.id, repo.private, repo.created)
            beside = self._journal(repo.id).with_suffix(".squashed")
            beside.unlink(missing_ok=True)
            self._append(beside, {"repo": repo.id, "private": repo.private, "created": repo.created.isoformat()})
            changes = {path: blob for path, (blob, _) in sorted(repo.tree.items())}
            commit = self._add(squashed, title, "", at, changes, beside)
            beside.replace(self._journal(repo.id))
            repo.commits, repo.tree = squashed.commits, squashed.tree
            return commit

    def _journal(self, name: str) -> Path:
        return self._root / f"{name.replace('/', '__')}.ndjson"

    def _append(self, journal: Path, line: Mapping[str, Any]) -> None:
        with journal.open("ab") as file:
            file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _blob_line(blob: Blob | None) -> list[Any] | None:
    return None if blob is None else [blob.size, blob.oid, blob.sha256]


def _commit(line: Mapping[str, Any]) -> Commit:
    changes = {path: None if blob is None else Blob(*blob) for path, blob in line["changes"].items()}
    date = datetime.fromisoformat(line["date"])
    return Commit(line["oid"], line["parent"], line["title"], line["message"], date, changes)


def _read(journal: Path) -> Repo | None:
    """A repository from its journal. A last line without its end was never answered for: it is cut off."""
    text = journal.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        with journal.open("r+b") as file:
            file.truncate(len(whole))
    lines = [json.loads(line) for line in whole.splitlines()]
    if len(lines) < 2:
        journal.unlink()
        return None
    repo = Repo(lines[0]["repo"], lines[0]["private"], datetime.fromisoformat(lines[0]["created"]))
    for line in lines[1:]:
        repo.apply(_commit(line))
    return repo
