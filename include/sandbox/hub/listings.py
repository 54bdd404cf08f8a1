"""What the Hub tells about a repository: its state, its files, its commits.

Promises: pure readings of a repository at one revision. Never: anything is changed here.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from include.sandbox.exchange import Answer, Call, json_answer
from include.sandbox.hub.access import Limits, refusal
from include.sandbox.hub.content import Content, pointer
from include.sandbox.hub.repos import Blob, Commit, Repo

Tree = Mapping[str, tuple[Blob, Commit]]

COMMITS_PER_PAGE = 50


def info(repo: Repo, commit: Commit, tree: Tree, call: Call) -> Answer:
    """The repository's state at a revision."""
    params = call.params()
    blobs = params.get("blobs", "").lower() in ("true", "1")
    state = {
        "_id": hashlib.sha256(repo.id.encode()).hexdigest()[:24],
        "id": repo.id,
        "author": repo.id.split("/")[0],
        "sha": commit.oid,
        "createdAt": stamp(repo.created),
        "lastModified": stamp(repo.head.date),
        "private": repo.private,
        "gated": False,
        "disabled": False,
        "tags": [],
        "downloads": 0,
        "likes": 0,
        "usedStorage": sum(blob.size for blob, _ in tree.values()),
        "siblings": [_sibling(path, blob, blobs) for path, (blob, _) in sorted(tree.items())],
    }
    wanted = {value for key, value in parse_qsl(call.query) if key in ("expand", "expand[]")}
    if wanted:
        state = {key: value for key, value in state.items() if key in wanted | {"_id", "id"}}
    return json_answer(200, state)


def _sibling(path: str, blob: Blob, with_blob: bool) -> dict[str, Any]:
    if not with_blob:
        return {"rfilename": path}
    return {"rfilename": path, "size": blob.size, "blobId": blob.oid} | _lfs(blob, "sha256")


def _lfs(blob: Blob, name: str) -> dict[str, Any]:
    if blob.sha256 is None:
        return {}
    size = len(pointer(blob.sha256, blob.size))
    return {"lfs": {name: blob.sha256, "size": blob.size, "pointerSize": size}}


def stamp(instant: datetime) -> str:
    """An instant as the Hub writes it."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def file_entry(path: str, blob: Blob, commit: Commit, content: Content, expand: bool) -> dict[str, Any]:
    """One file of a listing."""
    entry: dict[str, Any] = {"type": "file", "oid": blob.oid, "size": blob.size, "path": path} | _lfs(blob, "oid")
    xet = content.xet_file(blob.sha256) if blob.sha256 else None
    if xet:
        entry["xetHash"] = xet.hash
    if expand:
        entry["lastCommit"] = {"id": commit.oid, "title": commit.title, "date": stamp(commit.date)}
        entry["securityFileStatus"] = {
            "status": "safe",
            "avScan": {"status": "safe"},
            "pickleImportScan": {"status": "safe"},
        }
    return entry


def _folder_entry(path: str, tree: Tree) -> dict[str, Any]:
    held = sorted(f"{name}:{blob.oid}" for name, (blob, _) in tree.items() if name.startswith(f"{path}/"))
    oid = hashlib.sha1("\n".join(held).encode(), usedforsecurity=False).hexdigest()
    return {"type": "directory", "oid": oid, "size": 0, "path": path}


def folders_of(paths: Iterable[str]) -> set[str]:
    """Every folder that the paths lie in."""
    return {path[:cut] for path in paths for cut in range(len(path)) if path[cut] == "/"}


def tree_page(tree: Tree, under: str, content: Content, limits: Limits, call: Call) -> Answer:
    """One page of a repository's files and folders, in order of their paths; folders count as entries."""
    params = call.params()
    recursive = params.get("recursive", "").lower() in ("true", "1")
    expand = params.get("expand", "").lower() in ("true", "1")
    prefix = f"{under.strip('/')}/" if under.strip("/") else ""
    inside = {path: held for path, held in tree.items() if path.startswith(prefix)}
    if prefix and not inside:
        return refusal(404, "EntryNotFound", f"{under} does not exist")
    names = {*inside, *(folder for folder in folders_of(inside) if folder.startswith(prefix))}
    if not recursive:
        names = {name for name in names if "/" not in name[len(prefix) :]}
    after = base64.urlsafe_b64decode(params["cursor"]).decode() if params.get("cursor") else ""
    waiting = sorted(name for name in names if name > after)
    size = min(int(params.get("limit") or 10**6), limits.page_expanded if expand else limits.page)
    page = waiting[:size]
    entries = [
        file_entry(name, *inside[name], content, expand) if name in inside else _folder_entry(name, inside)
        for name in page
    ]
    answer = json_answer(200, entries)
    if len(waiting) <= size:
        return answer
    cursor = base64.urlsafe_b64encode(page[-1].encode()).decode()
    following = urlencode({**params, "cursor": cursor})
    return answer.plus(("Link", f'<{call.base}{call.path}?{following}>; rel="next"'))


def paths_info(tree: Tree, content: Content, call: Call) -> Answer:
    """The entries of named paths; those that are not there are left out."""
    form = call.form()
    expand = any(key == "expand" and value.lower() in ("true", "1") for key, value in form)
    folders = folders_of(tree)
    entries = []
    for path in (value.strip("/") for key, value in form if key == "paths"):
        if path in tree:
            entries.append(file_entry(path, *tree[path], content, expand))
        elif path in folders:
            entries.append(_folder_entry(path, tree))
    return json_answer(200, entries)


def commits_page(repo: Repo, commit: Commit, call: Call) -> Answer:
    """One page of the commits up to a revision, newest first."""
    params = call.params()
    number = int(params.get("p") or 0)
    history = repo.commits[: repo.commits.index(commit) + 1][::-1]
    page = history[number * COMMITS_PER_PAGE : (number + 1) * COMMITS_PER_PAGE]
    answer = json_answer(
        200,
        [
            {
                "id": one.oid,
                "title": one.title,
                "message": one.message,
                "date": stamp(one.date),
                "authors": [{"user": repo.id.split("/")[0]}],
            }
            for one in page
        ],
        ("X-Total-Count", str(len(history))),
    )
    if (number + 1) * COMMITS_PER_PAGE >= len(history):
        return answer
    following = urlencode({**params, "p": str(number + 1)})
    return answer.plus(("Link", f'<{call.base}{call.path}?{following}>; rel="next"'))


def refs(repo: Repo) -> Answer:
    """The branches: there is one."""
    main = {"name": "main", "ref": "refs/heads/main", "targetCommit": repo.head.oid}
    return json_answer(200, {"branches": [main], "tags": [], "converts": [], "pullRequests": []})


def address(base: str, repo: str, *parts: str) -> str:
    """An address below a repository's page."""
    return "/".join((f"{base}/datasets/{repo}", *(quote(part) for part in parts)))
