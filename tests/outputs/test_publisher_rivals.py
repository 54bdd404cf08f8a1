"""Kills, rivals and ends: whoever publishes, the Hub holds each file once and never an older one over a newer."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from include.outputs import publisher
from include.outputs.hub import Hub, HubSession, download
from include.outputs.lease import PublishLease, PublishLeaseLost, claim
from include.outputs.outbox import build, stale_parts
from include.outputs.publisher import Pace, Published, publish
from tests.fixtures_sandbox import RunningSandbox
from tests.outputs import market
from tests.outputs.publishing import (
    MONTH,
    PATH,
    QUICK,
    asked,
    commits,
    many,
    on_the_hub,
    put,
    rows,
    run,
)

# --- kills and rivals ---------------------------------------------------------------------------------


class Killed(BaseException):
    """What a kill looks like from inside."""


def killed_in(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Make the publisher die at a place, its lease still held as after a real kill."""
    monkeypatch.setattr(publisher, "give_back_quietly", lambda lease: None)
    if place == "before the commit is sent":
        monkeypatch.setattr(HubSession, "commit", _die)
    elif place == "after the commit, before it is written down":
        monkeypatch.setattr(publisher._Run, "_confirm", _die)
    elif place == "before anything is written down":
        monkeypatch.setattr(publisher._Run, "_write_down", _die)
    else:
        monkeypatch.setattr(PublishLease, "give_back", _die)


def _die(*anything: object, **named: object) -> None:
    raise Killed


@pytest.mark.parametrize(
    "place",
    [
        "before anything is written down",
        "before the commit is sent",
        "after the commit, before it is written down",
        "after everything",
    ],
)
def test_a_kill_at_any_place_loses_nothing_and_sends_nothing_twice(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    with monkeypatch.context() as patched:
        killed_in(patched, place)
        with pytest.raises(Killed):
            run(waiting, hub, root)
    put(waiting, root, market.month("2026-08"))
    busy = run(waiting, hub, root)
    assert busy.busy is not None
    assert busy.busy.startswith("a test publishes until")
    with psycopg.connect(waiting) as connection:
        connection.execute("update publish.leases set lease_until = collect.clock()")
    run(waiting, hub, root)
    assert {file["state"] for file in market.files(waiting)} == {"published"}
    for file in market.files(waiting):
        assert hashlib.sha256(download(hub, file["path"])).digest() == file["sha256"]
    sent_alone = place.startswith("after")
    assert on_the_hub(running) == (2 if sent_alone else 1)
    assert {commit["state"] for commit in commits(waiting)} <= {"confirmed", "failed"}


def test_two_publishers_never_send_the_same_file_twice(
    by_four: None, database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    many(database, root, 6)
    start = threading.Barrier(3)
    found: list[Published] = []

    def work(name: str) -> None:
        start.wait(20)
        found.append(run(database, hub, root, owner=name))

    workers = [threading.Thread(target=work, args=(f"worker {n}",)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert len(found) == 3
    assert sum(done.files for done in found) == 6
    assert on_the_hub(running) == 2
    assert all(done.files or done.busy or not done.waiting for done in found)


def late_rival(monkeypatch: pytest.MonkeyPatch, url: str, before_commit: Callable[[], None]) -> None:
    """Let the lease of the publisher end right before its commit, and somebody else do what is given."""
    send = HubSession.commit

    def paused(self: HubSession, *anything: Any) -> Any:
        monkeypatch.setattr(HubSession, "commit", send)
        with psycopg.connect(url) as connection:
            connection.execute("update publish.leases set lease_until = collect.clock()")
        before_commit()
        return send(self, *anything)

    monkeypatch.setattr(HubSession, "commit", paused)


def test_a_commit_sent_after_the_lease_ended_is_refused_and_cannot_bring_back_an_older_file(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rival() -> None:
        put(waiting, root, market.month(MONTH, symbols=9))
        assert run(waiting, hub, root, owner="rival").files == 1

    late_rival(monkeypatch, waiting, rival)
    with pytest.raises(PublishLeaseLost):
        run(waiting, hub, root)
    (old, new) = market.files(waiting)
    assert (old["state"], new["state"]) == ("replaced", "published")
    assert hashlib.sha256(download(hub, PATH)).digest() == new["sha256"]
    assert on_the_hub(running) == 1


def test_a_lease_that_ended_cannot_write(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_rival(monkeypatch, waiting, lambda: None)
    with pytest.raises(PublishLeaseLost):
        run(waiting, hub, root)
    assert market.states(waiting) == [(MONTH, "waiting")]
    done = run(waiting, hub, root)
    assert (done.files, on_the_hub(running)) == (1, 1)


def test_a_file_that_is_replaced_while_it_is_sent_counts_as_published_and_the_newer_one_follows(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = HubSession.commit

    def slow(self: HubSession, *anything: Any) -> Any:
        monkeypatch.setattr(HubSession, "commit", send)
        done = send(self, *anything)
        put(waiting, root, market.month(MONTH, symbols=9))
        return done

    monkeypatch.setattr(HubSession, "commit", slow)
    done = run(waiting, hub, root)
    assert (done.files, on_the_hub(running)) == (2, 2)
    assert market.states(waiting) == [(MONTH, "published"), (MONTH, "published")]
    assert hashlib.sha256(download(hub, PATH)).digest() == market.files(waiting)[1]["sha256"]


def test_a_lease_is_claimed_by_one_renewed_by_its_token_and_given_back(waiting: str) -> None:
    lease = claim(waiting, "hub", "first")
    assert isinstance(lease, PublishLease)
    other = claim(waiting, "hub", "second")
    assert not isinstance(other, PublishLease)
    assert other.holder == "first"
    assert lease.renew()
    thief = replace(lease, token=uuid.uuid4())
    assert not thief.renew()
    with pytest.raises(PublishLeaseLost):
        thief.give_back()
    with pytest.raises(PublishLeaseLost):
        thief.check()
    lease.give_back()
    assert isinstance(claim(waiting, "hub", "second"), PublishLease)


# --- bounds -------------------------------------------------------------------------------------------


def test_a_publisher_that_is_told_to_end_sends_nothing_more_and_gives_its_lease_back(
    by_four: None, database: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(database, root, 5)
    stop = threading.Event()
    confirm = publisher._Run._confirm

    def told(*anything: Any) -> None:
        stop.set()
        confirm(*anything)

    monkeypatch.setattr(publisher._Run, "_confirm", told)
    done = run(database, hub, root, stop=stop)
    assert (done.files, done.waiting, done.stopped) == (4, 1, True)
    monkeypatch.undo()
    assert run(database, hub, root).files == 1


def test_a_publisher_that_waits_is_ended_at_once(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.fault(match={"kind": "commit"}, status=503, n=None)
    stop = threading.Event()
    note = publisher._Run._note

    def told(*anything: Any) -> None:
        note(*anything)
        stop.set()

    monkeypatch.setattr(publisher._Run, "_note", told)
    done = run(waiting, hub, root, Pace(), stop=stop)
    assert (done.stopped, done.waiting, done.put_off_until) == (True, 1, None)


def test_a_wait_beyond_the_time_of_a_run_is_put_off(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    running.fault(match={"kind": "commit"}, status=429, headers={"Retry-After": "500"})
    before = datetime.now(UTC)
    done = run(waiting, hub, root, Pace(seconds=100))
    assert done.put_off_until is not None
    assert timedelta(seconds=500) <= done.put_off_until - before < timedelta(seconds=560)


@pytest.mark.parametrize("damage", ["missing", "other bytes"])
def test_a_file_that_the_outbox_lost_is_refused_told_and_made_again(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox, damage: str
) -> None:
    (path,) = root.glob("*.parquet")
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"other bytes")
    done = run(waiting, hub, root)
    assert done.files == 0
    assert done.refused[0][0] == PATH
    assert damage in done.refused[0][1]
    assert "was not published" in rows(waiting, "select text from ops.alerts")[0]["text"]
    assert asked(running)["commit"] == 0
    assert stale_parts(waiting, market.RELEASE) == [MONTH]
    build(waiting, market.RELEASE, market.TABLE, str(root), "again")
    assert run(waiting, hub, root).files == 1
    assert [state for _, state in market.states(waiting)] == ["refused", "published"]


def test_an_outbox_in_an_object_store_is_published_the_same(database: str, hub: Hub, running: RunningSandbox) -> None:
    market.save(database, market.month(MONTH))
    build(database, market.RELEASE, market.TABLE, "memory://outbox-to-publish", "a run")
    assert publish(database, hub, "memory://outbox-to-publish", "a test", pace=QUICK).files == 1
    assert hashlib.sha256(download(hub, PATH)).digest() == market.files(database)[0]["sha256"]
