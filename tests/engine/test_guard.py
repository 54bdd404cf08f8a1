"""The guard: the proof of ownership that a write commits with, in every order of events.

Three styles of completion play every interleaving of two workers. The one that locks the cycle's row loses nothing;
the one that only reads it, and the one without any, must lose: where they do not, this test has lost its teeth.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import psycopg
import pytest

from include.contract import CycleStatus, Mode
from include.engine.db import Connection, connect, query
from include.engine.lease import TTL_SECONDS, Lease, LeaseLost
from tests.engine.desk import Desk, beside, wait_until_blocked

LOCKING = query("lease.guard")
READING = LOCKING.partition("for no key update")[0]
NONE = "select 1 where %(cycle)s is not null and %(token)s is not null"
STYLES = {"locking": LOCKING, "reading": READING, "none": NONE}

RUN = "a-run"


class Worker:
    """One worker that adds one to a counter under a lease: guard, read, write and commit as separate steps."""

    def __init__(self, desk: Desk, style: str) -> None:
        self.desk, self.style = desk, style
        self.connection: Connection = connect(desk.url)
        self.lease: Lease | None = None
        self.is_refused = False
        self.accepted = 0
        self.value = 0

    def claim(self) -> None:
        self.lease = self.desk.claim(Mode.BACKFILL, RUN)

    def guard(self) -> None:
        if self.lease is None or self.is_refused:
            return
        values = {"cycle": self.lease.cycle.cycle_id, "token": self.lease.token}
        row = self.connection.execute(STYLES[self.style], values).fetchone()
        self.is_refused = row is None
        if self.is_refused:
            self.connection.rollback()

    def read(self) -> None:
        if self.lease is None or self.is_refused:
            return
        row = self.connection.execute("select n from counter").fetchone()
        assert row is not None
        self.value = row["n"]

    def write(self) -> None:
        if self.lease is None or self.is_refused:
            return
        self.connection.execute("update counter set n = %s", (self.value + 1,))
        self.connection.commit()
        self.accepted += 1
        self.lease = None

    def everything(self) -> None:
        self.guard()
        self.read()
        self.write()


def orders(first: list[str], second: list[str]) -> Iterator[list[str]]:
    """Every way to merge two rows of steps, each in its own order."""
    total = len(first) + len(second)
    for places in combinations(range(total), len(first)):
        one, other = iter(first), iter(second)
        yield [next(one) if place in places else next(other) for place in range(total)]


def play(desk: Desk, style: str, order: list[str]) -> int:
    """Play one interleaving and return how many accepted writes were lost."""
    desk.sql("truncate collect.cycles")
    desk.sql("update counter set n = 0")
    desk.add_chunks(RUN)
    old, new = Worker(desk, style), Worker(desk, style)
    try:
        old.claim()
        steps: dict[str, Any] = {
            "guard": old.guard,
            "read": old.read,
            "write": old.write,
            "expire": lambda: desk.advance(seconds=TTL_SECONDS + 1),
            "take": new.claim,
            "work": new.everything,
        }
        for step in order:
            steps[step]()
        if new.accepted == 0:
            # Whoever found the row locked comes again, as every claim does.
            desk.advance(seconds=TTL_SECONDS + 1)
            new.claim()
            new.everything()
        return old.accepted + new.accepted - int(desk.one("select n from counter")["n"])
    finally:
        old.connection.close()
        new.connection.close()


ORDERS = list(orders(["guard", "read", "write"], ["expire", "take", "work"]))


@pytest.fixture
def counter(desk: Desk) -> Desk:
    desk.sql("create table counter (n int)")
    desk.sql("insert into counter values (0)")
    return desk


def test_the_locking_guard_loses_nothing_in_any_order(counter: Desk) -> None:
    lost = {tuple(order): play(counter, "locking", order) for order in ORDERS}
    assert len(lost) == 20
    assert not any(lost.values())


@pytest.mark.parametrize("style", ["reading", "none"])
def test_a_guard_that_does_not_lock_must_lose(counter: Desk, style: str) -> None:
    lost = {tuple(order): play(counter, style, order) for order in ORDERS}
    assert lost[("guard", "read", "expire", "take", "work", "write")] == 1
    assert sum(lost.values()) > 1


def test_a_taker_never_waits_for_an_apply_in_flight(counter: Desk) -> None:
    """Skipped, not waited for: an apply that takes minutes delays nobody."""
    counter.add_chunks(RUN, 2)
    first = counter.claimed(Mode.BACKFILL, RUN)
    with connect(counter.url) as applying:
        first.guard(applying)
        counter.advance(seconds=TTL_SECONDS + 1)
        second = beside(lambda: counter.claimed(Mode.BACKFILL, RUN)).result(5)
        assert second.cycle.cycle_id != first.cycle.cycle_id


def test_the_new_owner_waits_for_the_commit_and_then_has_a_later_attempt(counter: Desk) -> None:
    counter.add_chunks(RUN)
    old = counter.claimed(Mode.BACKFILL, RUN)
    with connect(counter.url) as applying:
        old.guard(applying)
        counter.advance(seconds=TTL_SECONDS + 1)
        assert counter.claim(Mode.BACKFILL, RUN) is None
        applying.execute("update counter set n = n + 1")
    new = counter.claimed(Mode.BACKFILL, RUN)
    assert new.cycle.attempt == old.cycle.attempt + 1
    with connect(counter.url) as applying:
        new.guard(applying)
        applying.execute("update counter set n = n + 1")
    assert counter.one("select n from counter")["n"] == 2


def test_a_renewal_waits_for_the_apply_and_then_holds(counter: Desk) -> None:
    counter.add_chunks(RUN)
    held = counter.claimed(Mode.BACKFILL, RUN)
    with connect(counter.url) as applying:
        held.guard(applying)
        renewal = beside(held.renew)
        wait_until_blocked(counter.url)
    assert renewal.result() is True


def test_recovery_while_an_apply_commits_finds_the_cycle_over_and_leaves_it(counter: Desk) -> None:
    counter.add_chunks(RUN)
    held = counter.claimed(Mode.BACKFILL, RUN)
    with connect(counter.url) as applying:
        held.guard(applying)
        counter.sql("select collect.recover(null, 10)")
        held.settle_and_commit(applying, CycleStatus.SUCCESS, {})
    counter.advance(seconds=TTL_SECONDS + 1)
    assert counter.sql("select * from collect.recover(null, 10)") == []
    assert counter.cycle()["cycle_status"] == CycleStatus.SUCCESS


def test_an_apply_longer_than_its_lease_is_rolled_back_whole(counter: Desk) -> None:
    """The guard held, but the lease ended before the state was written: rows and cursor go together."""
    counter.add_chunks(RUN)
    held = counter.claimed(Mode.BACKFILL, RUN)
    with connect(counter.url) as applying:
        held.guard(applying)
        applying.execute("update counter set n = n + 1")
        counter.advance(seconds=TTL_SECONDS + 1)
        with pytest.raises(LeaseLost):
            held.settle_and_commit(applying, CycleStatus.SUCCESS, {"cursor": {"page": 7}})
    assert counter.one("select n from counter")["n"] == 0
    assert counter.cycle()["continuation_cursor"] is None


def test_the_cursor_is_written_under_the_same_token_as_the_rows(counter: Desk) -> None:
    """Data fenced and checkpoint not is how rows are lost in silence: a stale worker can move neither."""
    counter.add_chunks(RUN)
    old = counter.claimed(Mode.BACKFILL, RUN)
    counter.advance(seconds=TTL_SECONDS + 1)
    new = counter.claimed(Mode.BACKFILL, RUN)
    counter.settle(new, CycleStatus.RUNNING, cursor={"page": 3})
    with connect(counter.url) as applying, pytest.raises(LeaseLost):
        old.settle_and_commit(applying, CycleStatus.RUNNING, {"cursor": {"page": 1}})
    assert counter.cycle()["continuation_cursor"] == {"page": 3}


def test_a_repeatable_read_cannot_take_part_in_the_gate(counter: Desk) -> None:
    counter.open_poll(counter.now())
    held = counter.claimed()
    with connect(counter.url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with pytest.raises(psycopg.errors.RaiseException, match="needs READ COMMITTED"):
            held.settle_and_commit(connection, CycleStatus.SUCCESS, {})
    assert counter.cycle()["cycle_status"] == CycleStatus.RUNNING


def test_a_holder_whose_connection_is_cut_leaves_nothing_behind(counter: Desk) -> None:
    counter.add_chunks(RUN)
    held = counter.claimed(Mode.BACKFILL, RUN)
    applying = connect(counter.url)
    held.guard(applying)
    applying.execute("update counter set n = n + 1")
    counter.sql("select pg_terminate_backend(%s)", applying.info.backend_pid)
    with pytest.raises(psycopg.OperationalError):
        held.settle_and_commit(applying, CycleStatus.SUCCESS, {})
    applying.close()
    assert counter.one("select n from counter")["n"] == 0
    with connect(counter.url) as again:
        held.guard(again)


def test_no_session_lock_is_taken_anywhere(counter: Desk) -> None:
    """A session's advisory lock strands behind a pooler; ours end with their transaction."""
    from include.settings import ROOT

    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "sql").rglob("*.sql")]
    assert not any("pg_advisory_lock" in text or "pg_try_advisory_lock" in text for text in texts)
    counter.cdn.publish(counter.now().date())
    counter.poll()
    assert (
        counter.sql(
            "select 1 from pg_locks where locktype = 'advisory' and database = (select oid from pg_database"
            " where datname = current_database())"
        )
        == []
    )
