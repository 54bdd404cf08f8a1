"""A kill between every two steps of a publisher, one after the other: ./run chaos -k steps"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from huggingface_hub import HfApi

from include.outputs import gate, lease, ledger, publisher, restore
from include.outputs.hub import Hub
from include.sandbox.hub.repos import Repos
from tests.fixtures_sandbox import Start
from tests.outputs import market, storm
from tests.outputs.publishing import REPOSITORY, TOKEN, put, rows, run

# Every transaction of these is a step: before it, before its commit, after its commit. A request to the Hub is
# entered in the ledger right before it is sent, and what came of it is written down right after, so it is between two.
STEPPING = (publisher, lease, ledger, gate, restore)


class Killed(BaseException):
    """What a kill looks like from inside."""


@contextmanager
def killed_at(number: int) -> Iterator[Callable[[], int]]:
    """Kill whoever publishes at its so-and-so-many-th step; gives how many steps there were so far."""
    taken = 0
    main = threading.current_thread()
    patch = pytest.MonkeyPatch()

    def step() -> None:
        nonlocal taken
        if threading.current_thread() is main:
            taken += 1
            if taken == number:
                raise Killed

    def stepped(real: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def transaction(*anything: Any, **named: Any) -> Iterator[Any]:
            step()
            with real(*anything, **named) as connection:
                yield connection
                step()
            step()

        return transaction

    for module in STEPPING:
        patch.setattr(module, "transaction", stepped(module.transaction))
    quietly = publisher.give_back_quietly
    # Who is killed gives nothing back.
    patch.setattr(
        publisher,
        "give_back_quietly",
        lambda held: None if isinstance(sys.exc_info()[1], Killed) else quietly(held),
    )
    try:
        yield lambda: taken
    finally:
        patch.undo()


@pytest.mark.chaos
def test_a_kill_between_any_two_steps_loses_nothing_and_sends_nothing_twice(
    database: str, sandbox: Start, tmp_path: Path
) -> None:
    running = sandbox()
    hub, root = Hub(running.hub_url, TOKEN, REPOSITORY), tmp_path / "out box"
    put(database, root, market.month("2000-01"))
    run(database, hub, root)
    again: set[str] = set()
    number, survived = 0, False
    while not survived:
        number += 1
        # One that changes, one that is new; and every other time one that somebody deleted on the Hub.
        fresh = f"{2001 + number // 12}-{number % 12 + 1:02}"
        put(database, root, [*market.month("2000-01", symbols=number + 5), *market.month(fresh, symbols=1)])
        if number % 2:
            path = sorted(storm.held(running, hub))[-1]
            again.add(path)
            HfApi(endpoint=hub.endpoint, token=TOKEN).delete_file(path, REPOSITORY, repo_type="dataset")
        with killed_at(number) as taken:
            try:
                run(database, hub, root)
                survived = taken() < number
            except Killed:
                pass
        with psycopg.connect(database) as connection:
            connection.execute("update publish.leases set lease_until = collect.clock()")
            # Our own windows are not what is tried here.
            connection.execute("delete from publish.requests")
        done = run(database, hub, root)
        assert (done.waiting, done.refused, done.failed, done.put_off_reason) == (0, (), (), None), number
        files = market.files(database)
        assert {file["state"] for file in files} <= {"published", "replaced"}, number
        assert storm.held(running, hub) == {f["path"]: f["sha256"].hex() for f in files if f["state"] == "published"}
    history = Repos(running.state / "hub" / "repos").get(REPOSITORY).commits
    came = Counter((path, blob.sha256) for one in history for path, blob in one.changes.items() if blob and blob.sha256)
    assert {key: count for key, count in came.items() if count > 1 and key[0] not in again} == {}
    assert {row["state"] for row in rows(database, "select state from publish.commits")} <= {"confirmed", "failed"}
    print(f"{number - 1} places between two steps")
    assert number > 40
