"""A storm over the Hub: publishers race, die and are refused while newer files come; then what must hold.

Used small by the suite and large by `./run chaos`. Windows and limits are scaled; ours are a little longer and lower
than the stand-in's, as a request takes a moment to arrive, and a scaled window has no room for that.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from huggingface_hub import HfApi

from include.outputs import publisher
from include.outputs.gate import Gate
from include.outputs.hub import Hub, HubSession, download
from include.outputs.lease import PublishLeaseLost
from include.outputs.publisher import Pace, publish
from include.sandbox.hub.repos import Repos
from tests.fixtures_sandbox import RunningSandbox
from tests.outputs import market
from tests.outputs.publishing import REPOSITORY, TOKEN, rows


@dataclass(frozen=True)
class Limits:
    """What the stand-in allows in its scaled windows (seconds), and how much less we allow ourselves."""

    requests: int
    window: float
    commits: int
    hour: float
    slack: float = 1.0

    def set(self, running: RunningSandbox) -> None:
        running.switch("hub", "limits", api=self.requests, window=self.window, commits=self.commits, hour=self.hour)

    @property
    def pace(self) -> Pace:
        return Pace(
            waits=(0.05, 0.1, 0.2, 0.4),
            seconds=60,
            rest=0.2,
            request_limit=self.requests * 4 // 5,
            commit_limit=self.commits,
            request_window=self.window + self.slack,
            commit_window=self.hour + self.slack,
            commits_kept=0,
        )


QUOTA = '{"error": "You have exceeded the rate limit for repository commits (128 per hour). Retry in about 1 hour."}'
FAULTS: tuple[dict[str, Any], ...] = (
    {"match": {"kind": "commit"}, "status": 429},
    {"match": {"kind": "commit"}, "status": 429, "headers": {"RateLimit": '"api";r=0;t=0'}},
    {"match": {"kind": "commit"}, "status": 429, "headers": {"Retry-After": "1"}},
    {"match": {"kind": "commit"}, "status": 429, "headers": {"RateLimit": '"api";r=949;t=271'}, "body": QUOTA},
    {"match": {"kind": "commit"}, "status": 500},
    {"match": {"kind": "commit"}, "status": 504, "apply": True},
    {"match": {"kind": "commit"}, "reset": True},
    {"match": {"kind": "commit"}, "apply": True},
    {"match": {"kind": "commit"}, "truncate": True},
    {"match": {"kind": "commit"}, "status": 412},
    {"match": {"kind": "commit"}, "slow_seconds": 0.5},
    {"match": {"kind": "preupload"}, "status": 429, "headers": {"Retry-After": "0"}},
    {"match": {"kind": "preupload"}, "reset": True},
    {"match": {"kind": "repo_info"}, "status": 503},
    {"match": {"kind": "paths_info"}, "status": 502},
)
OF_XET: tuple[dict[str, Any], ...] = (
    {"match": {"kind": "xet_token"}, "status": 500},
    {"match": {"kind": "cas_shard"}, "status": 500},
)
OF_LFS: tuple[dict[str, Any], ...] = (
    {"match": {"kind": "lfs_batch"}, "status": 503},
    {"match": {"kind": "lfs_put"}, "status": 500},
    {"match": {"kind": "lfs_verify"}, "reset": True},
)


class Killed(BaseException):
    """What a kill looks like from inside."""


@contextmanager
def deadly(kills: int, dice: random.Random) -> Iterator[list[str]]:
    """Kill the publisher at steps that the dice choose, before and after each of them; gives where it was."""
    died: list[str] = []
    lock = threading.Lock()
    patch = pytest.MonkeyPatch()

    def maybe(place: str) -> None:
        with lock:
            if len(died) < kills and dice.random() < 0.25:
                died.append(place)
                raise Killed(place)

    def around(owner: Any, name: str) -> None:
        work: Callable[..., Any] = getattr(owner, name)

        def dying(*anything: Any, **named: Any) -> Any:
            maybe(f"before {name}")
            done = work(*anything, **named)
            maybe(f"after {name}")
            return done

        patch.setattr(owner, name, dying)

    around(HubSession, "commit")
    around(publisher._Run, "_write_down")
    around(publisher._Run, "_confirm")
    around(publisher._Run, "_look")
    around(Gate, "admit")
    quietly = publisher.give_back_quietly
    # Who is killed gives nothing back.
    patch.setattr(
        publisher,
        "give_back_quietly",
        lambda lease: None if isinstance(sys.exc_info()[1], Killed) else quietly(lease),
    )
    try:
        yield died
    finally:
        patch.undo()


@dataclass
class Worker:
    """One publisher that goes on until nothing waits, as Airflow would call it again after each end."""

    url: str
    hub: Hub
    root: Path
    name: str
    pace: Pace
    until: float
    ends: Counter[str] = field(default_factory=Counter)

    def work(self) -> None:
        while time.monotonic() < self.until:
            try:
                done = publish(self.url, self.hub, str(self.root), self.name, pace=self.pace)
            except Killed:
                self.ends["killed"] += 1
                self._expire()
                continue
            except PublishLeaseLost:
                self.ends["lease lost"] += 1
                continue
            if done.put_off_until is not None:
                self.ends["put off"] += 1
                if "this hour" in (done.put_off_reason or ""):
                    # The Hub's hour is a few seconds here.
                    self._end_of_rest()
            elif done.busy is not None:
                self.ends["busy"] += 1
            elif not done.waiting and not done.stopped:
                return
            # Waiting for another process; there is no event of it.
            time.sleep(0.05)

    def _expire(self) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(
                "update publish.leases set lease_until = collect.clock() where lease_owner = %s", (self.name,)
            )

    def _end_of_rest(self) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute("update publish.leases set put_off_until = least(put_off_until, collect.clock())")


def rage(running: RunningSandbox, transfer: str, dice: random.Random, over: int) -> None:
    """Set one fault of each kind, each at some request of its kind."""
    for fault in (*FAULTS, *(OF_XET if transfer == "xet" else OF_LFS)):
        few = fault["match"]["kind"] in ("repo_info", "paths_info")
        running.fault(**{**fault, "skip": dice.randrange(2 if few else over)})


def held(running: RunningSandbox, hub: Hub) -> dict[str, str]:
    """Every parquet file of the repository with the hash of its bytes, as the Hub lists them."""
    api = HfApi(endpoint=hub.endpoint, token=TOKEN)
    listed = api.list_repo_tree(REPOSITORY, repo_type="dataset", recursive=True)
    return {item.path: item.lfs.sha256 for item in listed if getattr(item, "lfs", None) is not None}


def judge(url: str, hub: Hub, root: Path, running: RunningSandbox, *, compared: int) -> None:
    """The Hub equals the outbox's promise, no version came twice, and no limit was passed."""
    files = market.files(url)
    assert {file["state"] for file in files} <= {"published", "replaced"}
    promised = {file["path"]: file["sha256"].hex() for file in files if file["state"] == "published"}
    assert held(running, hub) == promised
    for path in list(promised)[:: max(1, len(promised) // compared)]:
        assert download(hub, path) == (root / f"{promised[path]}.parquet").read_bytes()
    history = Repos(running.state / "hub" / "repos").get(REPOSITORY).commits
    came = Counter((path, blob.sha256) for one in history for path, blob in one.changes.items() if blob and blob.sha256)
    assert set(came.values()) == {1}
    versions = {(file["path"], file["sha256"].hex()) for file in files}
    assert set(came) <= versions
    assert running.control("GET", "hub")["refused"] == {}
    assert {row["state"] for row in rows(url, "select state from publish.commits")} <= {"confirmed", "failed"}
    assert rows(url, "select 1 from publish.checks where blocks and not passed") == []
