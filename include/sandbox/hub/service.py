"""The Hub as a stand-in: every call to its handler, behind access and limits.

Promises: access is judged before anything is looked at, a limit before anything is done. Never: a handler is
reached by a call that another one was meant for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from include.sandbox.exchange import Answer, Call, SwitchError, Upstream, World, json_answer
from include.sandbox.hub import listings, storage, writes
from include.sandbox.hub.access import FREE, Limits, Meter, changed, refusal, refused
from include.sandbox.hub.content import Content
from include.sandbox.hub.repos import Repo, RepoMissing, Repos, RevisionMissing
from include.sandbox.hub.routes import Target, target_of

HOST = "huggingface.co"
# Content travels to and from another host, which the Hub's limits do not count.
STORAGE_HOST = "cas-server.xethub.hf.co"
WRITES = frozenset({"create_repo", "delete_repo", "commit", "preupload", "lfs_batch", "lfs_verify", "super_squash"})


class Hub:
    """Repositories and their content below one directory."""

    def __init__(self, world: World) -> None:
        directory = world.state / "hub"
        self._content = Content(directory / "content")
        self._repos = Repos(directory / "repos")
        self._first_limits = FREE if world.hub_limits else Limits()
        self._meter = Meter(self._first_limits)

    # --- answers --------------------------------------------------------------------------------------

    def answer(self, call: Call) -> Answer:
        """Answer one call."""
        target = target_of(call)
        if target.kind.startswith("cas"):
            return storage.cas(target, self._content, call)
        if target.bucket is None:
            return self._stored(target, call)
        over, told = self._meter.pass_or_refuse(target.bucket)
        if over is not None:
            return over
        return self._permitted(target, call).plus(*told)

    def _stored(self, target: Target, call: Call) -> Answer:
        if target.kind == "lfs_put":
            return storage.lfs_put(target, self._content, call)
        if target.kind == "cdn":
            return storage.download(target, self._content, call)
        return absent(call)

    def _permitted(self, target: Target, call: Call) -> Answer:
        repo: Repo | None = None
        if target.repo:
            try:
                repo = self._repos.get(target.repo)
            except RepoMissing:
                denied = refused(call, writes=False, private=True)
                return denied or refusal(404, "RepoNotFound", "Repository not found")
        writing = target.kind in WRITES or target.scope == "write"
        denied = refused(call, writes=writing, private=bool(repo and repo.private) or target.kind == "whoami")
        if denied is not None:
            return denied
        try:
            return self._of_account(target, call) if repo is None else self._of_repo(target, repo, call)
        except RevisionMissing:
            return refusal(404, "RevisionNotFound", f"Invalid rev id: {target.revision}")
        except (ValueError, KeyError, TypeError) as failure:
            return refusal(400, "", f"The request cannot be read: {failure}")

    def _of_account(self, target: Target, call: Call) -> Answer:
        if target.kind == "create_repo":
            return writes.create(self._repos, self._content, call)
        if target.kind == "delete_repo":
            return writes.delete(self._repos, call)
        if target.kind == "whoami":
            who = {"type": "user", "id": "0" * 24, "name": writes.OWNER, "fullname": "Sandbox", "orgs": []}
            return json_answer(200, who | {"auth": {"type": "access_token"}})
        if target.kind == "validate_yaml":
            return json_answer(200, {"errors": [], "warnings": []})
        if target.kind == "lfs_verify":
            return storage.lfs_verify(self._content, call)
        return absent(call)

    def _of_repo(self, target: Target, repo: Repo, call: Call) -> Answer:
        content, limits = self._content, self._meter.limits
        if target.kind == "commit":
            if target.revision != "main":
                raise RevisionMissing(target.revision)
            over = self._meter.commit_or_refuse()
            return over or writes.commit(self._repos, repo, content, limits, call)
        if target.kind == "lfs_batch":
            return storage.lfs_batch(content, call)
        if target.kind == "super_squash":
            return writes.squash(self._repos, repo, target.revision, call)
        with self._repos.lock:
            if target.kind == "refs":
                return listings.refs(repo)
            commit, tree = repo.at(target.revision or "main")
            if target.kind == "preupload":
                return writes.preupload(repo, call)
            if target.kind == "xet_token":
                return storage.xet_token(target, content, call, time.time())
            if target.kind == "repo_info":
                return listings.info(repo, commit, tree, call)
            if target.kind == "tree":
                return listings.tree_page(tree, target.path, content, limits, call)
            if target.kind == "paths_info":
                return listings.paths_info(tree, content, call)
            if target.kind == "commits":
                return listings.commits_page(repo, commit, call)
            return storage.resolve(repo, target, content, call)

    # --- control --------------------------------------------------------------------------------------

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set limits: {"switch": "limits", "api": 100, "window": 10, "commits": null, …}.

        Raises:
            SwitchError: the order cannot be read.
        """
        if order.get("switch") != "limits":
            raise SwitchError(f'the Hub has the switch "limits", not {order.get("switch")!r}')
        self._meter.restart(changed(self._meter.limits, order))
        return self.view()

    def reset(self) -> None:
        """Put the limits back and begin their windows anew; repositories stay."""
        self._meter.restart(self._first_limits)

    def view(self) -> dict[str, Any]:
        """Limits and repositories, for reading."""
        with self._repos.lock:
            repos = [self._repos.get(name) for name in self._repos.names()]
            return {
                "limits": vars(self._meter.limits),
                "refused": {bucket: count for bucket, count in self._meter.refused.items() if count},
                "repositories": [
                    {
                        "id": repo.id,
                        "private": repo.private,
                        "head": repo.head.oid,
                        "commits": len(repo.commits),
                        "files": len(repo.tree),
                        "bytes": sum(blob.size for blob, _ in repo.tree.values()),
                    }
                    for repo in repos
                ],
            }


def absent(call: Call) -> Answer:
    """What the Hub says about an address that it does not have."""
    return refusal(404, "", "Not Found")


def upstream(world: World) -> Upstream:
    """The Hub as a stand-in; reached at the root of the server, as its client needs it."""
    hub = Hub(world)
    return Upstream(
        name="hub",
        hosts=(HOST, STORAGE_HOST),
        prefixes=(
            ("/api/", HOST),
            ("/datasets/", HOST),
            ("/_hub/verify", HOST),
            ("/_hub/", STORAGE_HOST),
        ),
        answer=hub.answer,
        absent=absent,
        kind=lambda call: target_of(call).kind,
        switch=hub.switch,
        view=hub.view,
        reset=hub.reset,
    )
