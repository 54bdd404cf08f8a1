"""What changes a repository: making it, announcing files, committing.

Promises: a commit is refused whole or made whole; a large file is committed only when its content is here.
Never: a commit on a stale parent, or one that removes what is not there.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from pathlib import PurePosixPath
from typing import Any

from include.sandbox.exchange import Answer, Call, json_answer
from include.sandbox.hub.access import Limits, refusal
from include.sandbox.hub.content import Content
from include.sandbox.hub.repos import (
    ATTRIBUTES,
    Blob,
    Repo,
    RepoExists,
    RepoMissing,
    Repos,
    RevisionMissing,
    StaleParent,
)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
SMALL_AT_MOST = 10 * 1024 * 1024
LARGE_SUFFIXES = frozenset({".7z", ".arrow", ".bin", ".bz2", ".gz", ".npz", ".parquet", ".tar", ".xz", ".zip", ".zst"})
OWNER = "sandbox"


class CommitRefused(Exception):
    """A commit that cannot be made; holds the answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body.decode())
        self.answer = answer


def create(repos: Repos, content: Content, call: Call) -> Answer:
    """Make a dataset repository; one that is there already is answered with 409 and its address."""
    order = call.json()
    name = f"{order.get('organization') or OWNER}/{order.get('name')}"
    if order.get("type", "model") != "dataset":
        return refusal(400, "", "This stand-in keeps dataset repositories only")
    if any(NAME.fullmatch(part) is None for part in name.split("/", 1)):
        return refusal(400, "", f"{name} is no valid repository name")
    private = order.get("visibility") == "private" or bool(order.get("private"))
    url = f"{call.base}/datasets/{name}"
    content.keep_small(ATTRIBUTES)
    try:
        repos.create(name, private, call.at, ATTRIBUTES)
    except RepoExists:
        return json_answer(409, {"error": "You already created this dataset repo", "url": url})
    return json_answer(200, {"url": url, "id": name, "name": name, "private": private})


def delete(repos: Repos, call: Call) -> Answer:
    """Remove a dataset repository."""
    order = call.json()
    try:
        repos.delete(f"{order.get('organization') or OWNER}/{order.get('name')}")
    except RepoMissing:
        return refusal(404, "RepoNotFound", "Repository not found")
    return json_answer(200, {})


def preupload(repo: Repo, call: Call) -> Answer:
    """Say for each announced file how it travels and what is held under its path."""
    files = []
    with_paths: list[dict[str, Any]] = call.json()["files"]
    for file in with_paths:
        held = repo.tree.get(file["path"])
        large = (
            PurePosixPath(file["path"]).suffix.lower() in LARGE_SUFFIXES
            or file["size"] > SMALL_AT_MOST
            or b"\x00" in base64.b64decode(file.get("sample") or "")
        )
        files.append(
            {
                "path": file["path"],
                "uploadMode": "lfs" if large else "regular",
                "shouldIgnore": False,
                "oid": (held[0].sha256 or held[0].oid) if held else None,
            }
        )
    return json_answer(200, {"files": files, "commitOid": repo.head.oid})


def commit(repos: Repos, repo: Repo, content: Content, limits: Limits, call: Call) -> Answer:
    """Make a commit from its lines of JSON."""
    try:
        lines = [json.loads(line) for line in call.body.splitlines() if line.strip()]
        header = next(line["value"] for line in lines if line["key"] == "header")
    except (ValueError, KeyError, StopIteration):
        return refusal(400, "", "A commit is lines of JSON, the header first")
    parent = header.get("parentCommit")
    with repos.lock:
        if parent is not None and parent != repo.head.oid:
            return _stale()
        try:
            changes = _changes(repo, content, lines)
            _check_folders(repo, changes, limits)
            made = repos.commit(
                repo,
                str(header.get("summary", "")),
                str(header.get("description", "")),
                call.at,
                changes,
                parent,
            )
        except CommitRefused as refused:
            return refused.answer
        except StaleParent:
            return _stale()
    url = f"{call.base}/datasets/{repo.id}/commit/{made.oid}"
    return json_answer(200, {"success": True, "commitOid": made.oid, "commitUrl": url, "hookOutput": ""})


def squash(repos: Repos, repo: Repo, revision: str, call: Call) -> Answer:
    """Make one commit of a branch's whole history: the same files under another name of the newest commit.

    Raises:
        RevisionMissing: there is no such branch.
    """
    if revision != "main":
        raise RevisionMissing(revision)
    repos.squash(repo, str(call.json().get("message") or "Super-squash"), call.at)
    return json_answer(200, {})


def _stale() -> Answer:
    return refusal(412, "", "A commit has happened since. Please refresh and try again.")


def _changes(repo: Repo, content: Content, lines: list[dict[str, Any]]) -> dict[str, Blob | None]:
    changes: dict[str, Blob | None] = {}
    for line in lines:
        value = line["value"]
        if line["key"] == "header":
            continue
        path = _path(value.get("path"))
        if line["key"] == "file":
            changes[path] = _small(content, path, value)
        elif line["key"] == "lfsFile":
            changes[path] = _large(content, path, value)
        elif line["key"] in ("deletedFile", "deletedFolder"):
            changes |= dict.fromkeys(_removed(repo, path, folder=line["key"] == "deletedFolder"))
        else:
            raise CommitRefused(refusal(400, "", f"{line['key']} is no operation of a commit"))
    if not changes:
        raise CommitRefused(refusal(400, "", "The commit changes nothing"))
    return changes


def _path(text: Any) -> str:
    path = str(text or "").strip("/")
    if not path or any(part in ("", ".", "..", ".git") for part in path.split("/")):
        raise CommitRefused(refusal(400, "", f"{text!r} is no path of a file"))
    return path


def _small(content: Content, path: str, value: dict[str, Any]) -> Blob:
    try:
        body = base64.b64decode(value["content"], validate=True)
    except (KeyError, binascii.Error):
        raise CommitRefused(refusal(400, "", f"The content of {path} is not base64")) from None
    if len(body) > SMALL_AT_MOST:
        raise CommitRefused(refusal(413, "", f"{path} is larger than 10 MiB: upload it as a large file"))
    content.keep_small(body)
    return Blob.small(body)


def _large(content: Content, path: str, value: dict[str, Any]) -> Blob:
    size = content.size_of(str(value.get("oid")))
    if size is None:
        raise CommitRefused(refusal(400, "", f"The content of {path} was never uploaded"))
    if value.get("size") not in (None, size):
        raise CommitRefused(refusal(400, "", f"The content of {path} has {size} bytes, not {value['size']}"))
    return Blob.large(value["oid"], size)


def _removed(repo: Repo, path: str, *, folder: bool) -> list[str]:
    if folder:
        inside = [name for name in repo.tree if name.startswith(f"{path}/")]
        if inside:
            return inside
    elif path in repo.tree:
        return [path]
    raise CommitRefused(refusal(404, "EntryNotFound", f"A file with this name doesn't exist: {path}"))


def _check_folders(repo: Repo, changes: dict[str, Blob | None], limits: Limits) -> None:
    """Refuse a commit that makes a folder too large; only folders that grow are counted."""
    grown = {path.rpartition("/")[0] for path, blob in changes.items() if blob and path not in repo.tree}
    if not grown:
        return
    after = ({*repo.tree} | {path for path, blob in changes.items() if blob}) - {
        path for path, blob in changes.items() if blob is None
    }
    for folder, count in Counter(path.rpartition("/")[0] for path in after).items():
        if folder in grown and count > limits.folder:
            sentence = f"The folder {folder or '/'} would hold {count} files; at most {limits.folder} are allowed"
            raise CommitRefused(refusal(400, "", sentence))
