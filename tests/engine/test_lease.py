"""The lease: who may work on a cycle, proved by a token, ended by the database's clock.

The list of reports against other systems' leases that this is tried against is in `lease_reports.md`.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import psycopg
import pytest

from include.contract import CycleStatus, Mode
from include.engine import lease as leases
from include.engine.db import connect, query
from include.engine.lease import LeaseLost
from include.settings import ROOT
from tests.engine.desk import TUESDAY, WEDNESDAY, Desk, ny

PENDING, RUNNING, SUCCESS, FAILED, EXHAUSTED = (
    CycleStatus.PENDING,
    CycleStatus.RUNNING,
    CycleStatus.SUCCESS,
    CycleStatus.FAILED,
    CycleStatus.BUDGET_EXHAUSTED,
)
TTL = leases.TTL_SECONDS
FAILURE = {"failure_kind": "retriable", "failure_reason": "a test"}
RUN = "a-run"


def expire(desk: Desk) -> None:
    desk.advance(seconds=TTL + 1)


# --- claiming


def test_a_claim_gives_a_new_token_and_one_attempt_more(desk: Desk) -> None:
    desk.open_poll(ny(TUESDAY, 18, 35))
    first = desk.claimed(owner="first")
    row = desk.cycle()
    assert (row["cycle_status"], row["attempt"], row["lease_owner"]) == (RUNNING, 1, "first")
    assert row["lease_token"] == first.token
    assert timedelta(seconds=TTL - 5) < row["lease_until"] - desk.now() <= timedelta(seconds=TTL)
    desk.settle(first, PENDING)
    second = desk.claimed(owner="second")
    assert desk.cycle()["attempt"] == 2
    assert second.token != first.token


def test_what_is_held_is_not_claimed_by_a_second(desk: Desk) -> None:
    desk.open_poll(ny(TUESDAY, 18, 35))
    desk.claimed()
    assert desk.claim() is None


def test_nothing_is_claimed_before_its_time(desk: Desk) -> None:
    desk.open_poll(ny(TUESDAY, 18, 35))
    desk.settle(desk.claimed(), PENDING, next_eligible_at=(desk.now() + timedelta(minutes=20)).isoformat())
    desk.advance(minutes=19)
    assert desk.claim() is None
    desk.advance(minutes=1, seconds=1)
    assert desk.claim() is not None


@pytest.mark.parametrize("end", [SUCCESS, FAILED, EXHAUSTED])
def test_a_cycle_that_is_over_is_never_claimed_again(desk: Desk, end: CycleStatus) -> None:
    desk.open_poll(ny(TUESDAY, 18, 35))
    desk.settle(desk.claimed(), end, **(FAILURE if end is FAILED else {}), budget="ITEM_LIMIT")
    row = desk.cycle()
    assert row["finished_at"] is not None
    desk.advance(days=3)
    assert desk.claim() is None
    assert desk.cycle() == row


def test_a_run_claims_its_own_chunks_in_the_order_of_planning(desk: Desk) -> None:
    mine, others = desk.add_chunks("mine", 2), desk.add_chunks("others", 1)
    assert desk.claimed(Mode.BACKFILL, "mine").cycle.cycle_id == mine[0]
    assert desk.claimed(Mode.BACKFILL, "mine").cycle.cycle_id == mine[1]
    assert desk.claim(Mode.BACKFILL, "mine") is None
    assert desk.claimed(Mode.BACKFILL, "others").cycle.cycle_id == others[0]


def test_a_poll_never_takes_a_chunk_nor_a_backfill_a_window(desk: Desk) -> None:
    desk.add_chunks(RUN)
    assert desk.claim() is None
    desk.open_poll(ny(TUESDAY, 18, 35))
    assert desk.claim(Mode.REPLAY, RUN) is None
    assert desk.claimed(Mode.BACKFILL, RUN).cycle.mode is Mode.BACKFILL
    assert desk.claimed().cycle.mode is Mode.POLL


def test_another_streams_cycles_are_left_alone(desk: Desk) -> None:
    desk.open_poll(ny(TUESDAY, 18, 35))
    assert leases.claim(desk.url, "finra.another", Mode.POLL, None, "a worker") is None


def test_a_frozen_stream_is_not_claimed_but_its_stored_answers_may_be_replayed(desk: Desk) -> None:
    desk.open_poll(ny(TUESDAY, 18, 35))
    desk.add_chunks(RUN)
    desk.add_chunks("again", mode=Mode.REPLAY)
    for scope, name in (("all", "*"), ("source", "finra"), ("stream", desk.stream.name)):
        desk.sql("delete from collect.controls")
        desk.sql(
            "insert into collect.controls values (%s, %s, 'frozen', 'a test', 'somebody', collect.clock())", scope, name
        )
        assert desk.claim() is None
        assert desk.claim(Mode.BACKFILL, RUN) is None
    assert desk.claim(Mode.REPLAY, "again") is not None
    desk.sql("update collect.controls set state = 'running'")
    assert desk.claim() is not None


def test_a_thousand_claims_of_one_slot_at_a_time_have_one_winner_each(desk: Desk) -> None:
    """20 sessions meet at a barrier for each of 50 slots."""
    workers, rounds = 20, 50
    first, *others = desk.add_chunks(RUN, rounds)
    desk.sql("update collect.cycles set next_eligible_at = '9999-01-01' where cycle_id = any(%s)", others)
    tokens: list[list[uuid.UUID]] = [[] for _ in range(rounds)]
    numbers = [first, *others]

    def open_next(number: int) -> None:
        if number < rounds:
            desk.sql("update collect.cycles set next_eligible_at = null where cycle_id = %s", numbers[number])

    turn = iter(range(1, rounds + 1))
    after = threading.Barrier(workers, action=lambda: open_next(next(turn)))
    before = threading.Barrier(workers)

    def work() -> None:
        with connect(desk.url) as connection:
            for number in range(rounds):
                before.wait(30)
                rows = connection.execute(
                    query("lease.claim"),
                    {"stream": desk.stream.name, "mode": "backfill", "run_id": RUN, "owner": "w", "ttl": "300 seconds"},
                ).fetchall()
                connection.commit()
                tokens[number] += [row["lease_token"] for row in rows]
                after.wait(30)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [len(given) for given in tokens] == [1] * rounds
    assert len({token for (token,) in tokens}) == rounds
    assert {row["attempt"] for row in desk.cycles()} == {1}


def test_a_claim_locks_the_one_row_that_it_takes(desk: Desk) -> None:
    """With the statistics of an empty table, and while neither has committed."""
    desk.sql("analyze collect.cycles")
    numbers = desk.add_chunks(RUN, 300)
    values = {"stream": desk.stream.name, "mode": "backfill", "run_id": RUN, "owner": "w", "ttl": "300 seconds"}
    with connect(desk.url) as one, connect(desk.url) as other:
        taken = [c.execute(query("lease.claim"), values).fetchall() for c in (one, other, one, other)]
        assert [[row["cycle_id"] for row in rows] for rows in taken] == [[number] for number in numbers[:4]]
        free = desk.sql("select cycle_id from collect.cycles for update skip locked")
        assert len(free) == 300 - 4


def test_claiming_and_opening_give_one_slot_one_cycle(desk: Desk) -> None:
    barrier = threading.Barrier(8)
    opened: list[int | None] = []

    def work() -> None:
        barrier.wait(10)
        opened.append(desk.open_poll(ny(TUESDAY, 18, 35)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(number is None for number in opened) == [False] + [True] * 7
    assert len(desk.cycles()) == 1


# --- a lease that ended, even if nobody has taken it over


def ended_by_time(desk: Desk) -> None:
    expire(desk)


def ended_by_recovery(desk: Desk) -> None:
    expire(desk)
    desk.sql("select collect.recover(null, 10)")


def ended_by_another(desk: Desk) -> None:
    ended_by_recovery(desk)
    desk.claimed(Mode.BACKFILL, RUN, "another")


ENDINGS = [ended_by_time, ended_by_recovery, ended_by_another]


@pytest.mark.parametrize("end", ENDINGS)
def test_a_lease_that_ended_cannot_write(desk: Desk, end: Callable[[Desk], None]) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    end(desk)
    with connect(desk.url) as connection, pytest.raises(LeaseLost, match="nothing of this attempt is written"):
        held.guard(connection)


@pytest.mark.parametrize("end", ENDINGS)
def test_a_lease_that_ended_cannot_renew_itself(desk: Desk, end: Callable[[Desk], None]) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    end(desk)
    before = desk.cycles()
    assert held.is_trusted()
    assert held.renew() is False
    assert not held.is_trusted()
    assert desk.cycles() == before


@pytest.mark.parametrize("end", ENDINGS)
@pytest.mark.parametrize("status", [PENDING, RUNNING, SUCCESS, FAILED, EXHAUSTED])
def test_a_lease_that_ended_cannot_settle(desk: Desk, end: Callable[[Desk], None], status: CycleStatus) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    end(desk)
    before = desk.cycles()
    with connect(desk.url) as connection:
        connection.execute("create table written (n int)")
        with pytest.raises(LeaseLost, match="nothing of this attempt is written"):
            held.settle_and_commit(connection, status, {**FAILURE, "budget": "ITEM_LIMIT"})
    assert desk.cycles() == before
    assert desk.one("select to_regclass('written') as t")["t"] is None


def test_a_refused_write_and_an_expired_lease_are_counted_once_each_as_rows(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN, "the sleeper")
    ended_by_recovery(desk)
    with connect(desk.url) as connection, pytest.raises(LeaseLost):
        held.guard(connection)
    with connect(desk.url) as connection, pytest.raises(LeaseLost):
        held.settle_and_commit(connection, SUCCESS, {})
    rows = desk.sql("select kind, cycle_id, stream, attempt, holder from collect.lease_events order by event_id")
    assert [row.pop("kind") for row in rows] == ["expired", "refused", "refused"]
    whose = {"cycle_id": held.cycle.cycle_id, "stream": desk.stream.name, "attempt": 1, "holder": "the sleeper"}
    assert rows == [whose] * 3


def test_who_worked_on_a_cycle_is_known_when_the_lease_is_over(desk: Desk) -> None:
    desk.add_chunks(RUN)
    desk.settle(desk.claimed(Mode.BACKFILL, RUN, "finra.lane of a run on a host"), SUCCESS)
    row = desk.cycle()
    assert (row["lease_owner"], row["worked_by"]) == (None, "finra.lane of a run on a host")


def test_a_lease_that_was_given_back_is_over_for_its_holder(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    desk.settle(held, PENDING)
    assert not held.is_trusted()
    assert held.renew() is False
    with connect(desk.url) as connection, pytest.raises(LeaseLost):
        held.guard(connection)


def test_a_finish_changes_one_row_or_says_so(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    desk.settle(held, SUCCESS)
    before = desk.cycles()
    with connect(desk.url) as connection, pytest.raises(LeaseLost):
        held.settle_and_commit(connection, FAILED, FAILURE)
    desk.sql("delete from collect.cycles")
    with connect(desk.url) as connection, pytest.raises(LeaseLost):
        held.settle_and_commit(connection, FAILED, FAILURE)
    assert before[0]["cycle_status"] == SUCCESS


def test_renewing_prolongs_from_now_and_keeps_the_token(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    desk.advance(seconds=200)
    assert held.renew()
    row = desk.cycle()
    assert row["lease_token"] == held.token
    assert timedelta(seconds=TTL - 5) < row["lease_until"] - desk.now() <= timedelta(seconds=TTL)
    desk.advance(seconds=200)
    with connect(desk.url) as connection:
        held.guard(connection)


def test_an_apply_in_the_middle_keeps_the_lease_and_its_end(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    until = desk.cycle()["lease_until"]
    desk.settle(held, RUNNING, fetched=5)
    desk.settle(held, RUNNING, fetched=7)
    row = desk.cycle()
    assert (row["lease_token"], row["lease_until"], row["fetched_count"]) == (held.token, until, 12)
    assert held.is_trusted()


# --- trust: the worker's own clock only makes it stop earlier


def test_a_worker_stops_trusting_before_the_database_does(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    start = held.clock()
    assert held.trusted_until <= start + TTL - leases.MARGIN_SECONDS
    held.clock = lambda: start + TTL - leases.MARGIN_SECONDS + 1
    assert not held.is_trusted()


def test_a_claim_whose_answer_comes_after_its_lease_is_over_is_not_trusted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was paused between asking and hearing: trust counts from before it asked."""
    desk.add_chunks(RUN)
    asked = time.monotonic() - TTL
    with monkeypatch.context() as patch:
        patch.setattr(leases, "time", SimpleNamespace(monotonic=lambda: asked))
        held = desk.claimed(Mode.BACKFILL, RUN)
    assert not held.is_trusted()
    expire(desk)
    other = desk.claimed(Mode.BACKFILL, RUN)
    with pytest.raises(LeaseLost):
        desk.settle(held, SUCCESS)
    desk.settle(other, SUCCESS)
    assert desk.cycle()["attempt"] == 2


def test_a_database_that_answers_late_shortens_trust_and_never_prolongs_it(desk: Desk) -> None:
    """Each look at the clock is two seconds after the last, as if every statement took that long."""
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    ticks = iter(range(0, 1_000, 2))
    held.clock = lambda: float(next(ticks))
    assert held.renew() is True
    assert held.trusted_until == TTL - leases.MARGIN_SECONDS


def test_every_report_names_tests_that_are_there() -> None:
    known = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    table = (ROOT / "tests/engine/lease_reports.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|.*\|(.*)\|$", table, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 36))
    for number, tried in rows:
        for named in re.findall(r"(?:::|`…)(\w+)", tried):
            assert any(named in name for name in known), (number, named)


def test_the_numbers_of_the_lease_fit_together() -> None:
    """Three renewals fit into a lease, an apply ends within it, and trust ends well before it does."""
    from include.engine.apply import STATEMENT_SECONDS
    from include.engine.http import READ_SECONDS

    assert leases.RENEW_SECONDS <= TTL / 3
    assert leases.MARGIN_SECONDS < leases.RENEW_SECONDS
    assert leases.RENEW_SECONDS + leases.MARGIN_SECONDS + 10 < TTL
    # A lease was renewed at most one interval before an apply begins.
    assert STATEMENT_SECONDS + leases.RENEW_SECONDS < TTL
    assert READ_SECONDS < TTL - leases.MARGIN_SECONDS


def test_a_database_that_gives_no_answer_ends_trust_by_time_alone(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    start = held.clock()
    held.url = "postgresql://nobody@127.0.0.1:1/nowhere"
    assert held.renew() is True
    held.clock = lambda: start + TTL
    assert held.renew() is False


def test_a_read_only_server_is_refused_clearly_and_ends_trust_by_time_alone(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    name = desk.one("select current_database() as name")["name"]
    desk.sql(f"alter database {name} set default_transaction_read_only = on")
    try:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            desk.claim(Mode.BACKFILL, RUN)
        start = held.clock()
        assert held.renew() is True
        held.clock = lambda: start + TTL
        assert held.renew() is False
    finally:
        with connect(desk.url, autocommit=True) as connection:
            connection.execute("set default_transaction_read_only = off")
            connection.execute(f"alter database {name} reset default_transaction_read_only")  # type: ignore[arg-type]


def test_the_renewal_works_while_the_block_does_and_ends_with_it(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    renewals: list[bool] = []
    twice = threading.Event()
    real = held.renew

    def renew() -> bool:
        renewals.append(real())
        if len(renewals) == 2:
            twice.set()
        return renewals[-1]

    held.renew = renew  # type: ignore[method-assign]
    with leases.renewed(held, every=0.01) as pause:
        assert twice.wait(10)
        with pause:
            before = len(renewals)
            assert not threading.Event().wait(0.05)
            assert len(renewals) == before
    done = len(renewals)
    assert not any(thread.name == "lease renewal" for thread in threading.enumerate())
    assert len(renewals) == done
    assert all(renewals)


def test_the_renewal_ends_with_the_first_that_finds_the_lease_over(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    expire(desk)
    with leases.renewed(held, every=0.01):
        for thread in threading.enumerate():
            if thread.name == "lease renewal":
                thread.join(10)
                assert not thread.is_alive()
    assert not held.is_trusted()


def test_every_process_is_another_holder() -> None:
    assert leases.holder() != leases.holder()


# --- no clock but the database's


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_workers_own_clock_changes_nothing(desk: Desk, minutes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + minutes * 60)
    desk.cdn.publish(TUESDAY)
    before = desk.now()
    verdict = desk.poll()
    row = desk.cycle()
    assert verdict.status is SUCCESS
    assert before <= row["started_at"] <= row["finished_at"] <= desk.now()
    for sent in desk.sql("select sent_at, received_at from collect.fetches"):
        assert before <= sent["sent_at"] <= sent["received_at"] <= desk.now()


WALL_CLOCKS = re.compile(
    r"\btime\.time(_ns)?\(|\bdatetime\.(now|utcnow|today)\(|\bdate\.today\(|\b(now|transaction_timestamp|statement_timestamp)\(\)"
    r"|\bcurrent_(timestamp|date|time)\b|\blocaltimestamp\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("folder", ["include/engine", "sql/migrations/versions", "sql/queries", "sql/templates"])
def test_no_wall_clock_and_no_transaction_time_is_read_anywhere(folder: str) -> None:
    """So a worker's clock cannot matter, and no time stands still while a transaction waits."""
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted((ROOT / folder).iterdir())
        if path.suffix in (".py", ".sql")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if WALL_CLOCKS.search(re.sub(r"windows\.now\(|\bdef now\(", "", line.partition("--")[0].partition("#")[0]))
    ]
    assert found == []


def test_the_offset_of_the_clock_is_honoured_in_a_sandbox_only(desk: Desk) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.sql("update collect.installation set is_sandbox = false, clock_offset = '1 day'")
    desk.sql("update collect.installation set is_sandbox = false, clock_offset = '0'")
    drift = desk.one("select collect.clock() - clock_timestamp() as d")["d"]
    assert abs(drift) < timedelta(seconds=1)


def test_the_clock_of_a_lease_moves_within_a_transaction(desk: Desk) -> None:
    """`now()` stands still at the transaction's start; a lease that expires meanwhile must be seen to."""
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    with connect(desk.url) as connection:
        connection.execute("select now()")
        desk.sql("update collect.cycles set lease_until = collect.clock() + interval '20 milliseconds'")
        connection.execute("select pg_sleep(0.03)")
        with pytest.raises(LeaseLost):
            held.guard(connection)


# --- recovery


def test_an_expired_poll_has_failed_and_its_token_is_void(desk: Desk) -> None:
    desk.open_poll(ny(TUESDAY, 18, 35))
    held = desk.claimed(owner="vanished")
    expire(desk)
    assert desk.claim() is None
    row = desk.cycle()
    assert (row["cycle_status"], row["failure_kind"], row["failure_reason"]) == (FAILED, "retriable", "lease expired")
    assert "vanished" in row["failure_cause_summary"]
    assert (row["lease_token"], row["lease_until"], row["lease_owner"]) == (None, None, None)
    assert row["finished_at"] is not None
    assert held.renew() is False


@pytest.mark.parametrize("mode", [Mode.BACKFILL, Mode.REPLAY])
def test_an_expired_chunk_waits_twice_and_then_has_failed(desk: Desk, mode: Mode) -> None:
    desk.add_chunks(RUN, mode=mode)
    for attempt in (1, 2, 3):
        held = desk.claimed(mode, RUN)
        assert held.cycle.attempt == attempt
        expire(desk)
        desk.sql("select collect.recover(null, 10)")
        row = desk.cycle()
        assert row["failed_attempts"] == attempt
        assert row["cycle_status"] == (FAILED if attempt == 3 else PENDING)
        assert row["lease_token"] is None
    assert desk.claim(mode, RUN) is None


def test_recovery_needs_nobody_but_the_next_claim(desk: Desk) -> None:
    desk.add_chunks(RUN)
    desk.claimed(Mode.BACKFILL, RUN, "vanished")
    expire(desk)
    assert desk.claimed(Mode.BACKFILL, RUN, "next").cycle.attempt == 2


def test_a_lease_that_is_not_over_is_not_recovered(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    desk.advance(seconds=TTL - 5)
    assert desk.sql("select * from collect.recover(null, 10)") == []
    assert held.renew()


def test_a_lease_that_was_renewed_is_not_recovered(desk: Desk) -> None:
    desk.add_chunks(RUN)
    held = desk.claimed(Mode.BACKFILL, RUN)
    for _ in range(4):
        desk.advance(seconds=TTL - 30)
        assert held.renew()
        assert desk.sql("select * from collect.recover(null, 10)") == []
    with connect(desk.url) as connection:
        held.guard(connection)


def test_recovery_pages_past_locked_rows_and_takes_a_locked_one_for_alive(desk: Desk) -> None:
    numbers = desk.add_chunks(RUN, 60)
    for _ in numbers:
        with connect(desk.url) as connection:
            connection.execute(
                query("lease.claim"),
                {"stream": desk.stream.name, "mode": "backfill", "run_id": RUN, "owner": "w", "ttl": "300 seconds"},
            )
    expire(desk)
    with connect(desk.url) as applying:
        # 59 applies are in flight; only the last lease to expire has no one behind it.
        applying.execute("select 1 from collect.cycles where cycle_id <> %s for no key update", (numbers[-1],))
        recovered = desk.sql("select cycle_id from collect.recover(%s, 20)", desk.stream.name)
        assert [row["cycle_id"] for row in recovered] == [numbers[-1]]


def test_recovery_of_one_stream_leaves_the_others(desk: Desk) -> None:
    desk.add_chunks(RUN)
    desk.claimed(Mode.BACKFILL, RUN)
    expire(desk)
    assert desk.sql("select * from collect.recover('finra.another', 10)") == []
    assert len(desk.sql("select * from collect.recover(null, 10)")) == 1


def test_the_slot_of_a_chunk_that_used_up_its_attempts_is_free_for_the_run_that_starts_again(desk: Desk) -> None:
    request = desk.request(Mode.BACKFILL, TUESDAY)
    desk.begin(request)
    for _ in range(3):
        desk.claimed(Mode.BACKFILL, request.name)
        expire(desk)
    assert desk.claim(Mode.BACKFILL, request.name) is None
    assert desk.begin(request).startswith("REOPENED")
    assert desk.claimed(Mode.BACKFILL, request.name).cycle.failed_attempts == 0


# --- windows


def test_a_new_window_closes_an_older_that_still_waits(desk: Desk) -> None:
    old = desk.open_poll(ny(TUESDAY, 18, 35))
    new = desk.open_poll(ny(WEDNESDAY, 18, 35))
    row = desk.cycle(old)
    assert (row["cycle_status"], row["failure_reason"]) == (FAILED, "never started")
    assert desk.cycle(new)["cycle_status"] == PENDING


def test_a_new_window_does_not_open_beside_one_that_is_worked_on(desk: Desk) -> None:
    desk.open_poll(ny(TUESDAY, 18, 35))
    held = desk.claimed()
    assert desk.open_poll(ny(WEDNESDAY, 18, 35)) is None
    desk.settle(held, SUCCESS)
    assert desk.open_poll(ny(WEDNESDAY, 18, 35)) is not None


def test_the_same_window_does_not_open_twice(desk: Desk) -> None:
    assert desk.open_poll(ny(TUESDAY, 18, 35)) is not None
    assert desk.open_poll(ny(TUESDAY, 18, 35)) is None
    desk.settle(desk.claimed(), SUCCESS)
    assert desk.open_poll(ny(TUESDAY, 18, 35)) is None
