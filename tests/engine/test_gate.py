"""The gate: every state write falls before or after 09:00, and the snapshot agrees, in every order of events.

Each form that looks as good and is not is tried too, and must fail: where it does not, these tests have lost their
teeth.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from include.engine import snapshot, upkeep, windows
from include.engine.db import Connection, call_and_commit, connect, query
from tests.engine.desk import beside, wait_until_blocked
from tests.engine.races import Arena
from tests.engine.seoul import DART, DAY, FINRA, KRX, Seoul, kst, opened

JUST_BEFORE, AFTER = kst(DAY, 8, 59, 59.5), kst(DAY, 9, 0, 0.5)
SETTLE, CAPTURE = query("lease.settle"), query("snapshot.capture")
TAKE: dict[str, Any] = {"date": DAY, "who": "the capturer"}


@pytest.fixture
def seoul(database: str) -> Iterator[Seoul]:
    """Half a second before the cutoff; KRX's window of the morning is being worked on."""
    with opened(database, kst(DAY, 0, 1), (KRX, DART, FINRA)) as here:
        here.dispatch()
        here.at(kst(DAY, 8, 56))
        here.work(KRX, kst(DAY, 8, 10), "RUNNING")
        here.work(DART, kst(DAY, 8, 55), "RUNNING")
        here.at(JUST_BEFORE)
        yield here


def fetched(seoul: Seoul, name: str = KRX.name) -> int:
    """What the snapshot says was read of a stream."""
    return seoul.items()[name].fetched_count


# --- before or after


def test_a_write_before_the_cutoff_is_inside_and_one_after_it_is_not(seoul: Seoul) -> None:
    before = seoul.settle(KRX, "RUNNING", fetched=1)
    seoul.at(AFTER)
    after = seoul.settle(KRX, "SUCCESS", fetched=10)
    item = seoul.items()[KRX.name]
    assert before < kst(DAY, 9) <= after
    assert (item.cycle_status, item.fetched_count, item.gate_at) == ("RUNNING", 1, before)
    assert seoul.read().captured_by == "a worker"
    assert seoul.read().captured_at is not None
    assert after >= seoul.read().captured_at  # type: ignore[operator]


@pytest.mark.parametrize("what", ["open", "claim", "settle", "recover", "control", "serve", "declare", "dispatch"])
def test_every_state_write_after_the_cutoff_takes_the_snapshot_first(seoul: Seoul, what: str) -> None:
    """Whatever it changes, the verdict shows what was there before it."""
    if what == "recover":
        seoul.sql("update collect.cycles set lease_until = %s where stream = %s", AFTER, KRX.name)
    if what == "claim":
        seoul.settle(KRX, "PENDING")
    before = {row["stream"]: row["cycle_status"] for row in seoul.cycles() if row["stream"] != FINRA.name}
    seoul.at(AFTER + timedelta(seconds=1))
    if what == "open":
        assert seoul.open(FINRA, kst(DAY, 7, 35)) is not None
    elif what == "claim":
        assert seoul.claim(KRX) is not None
    elif what == "settle":
        seoul.settle(KRX, "FAILED")
    elif what == "recover":
        assert len(seoul.sql("select * from collect.recover(null, 10)")) == 1
    elif what == "control":
        seoul.sql("select * from collect.control('stream', %s, 'frozen', 'a test', 'kim')", KRX.name)
    elif what == "serve":
        seoul.sql("select collect.serve(%s, false, 'a test', 'kim')", KRX.name)
    elif what == "declare":
        seoul.sql(
            "select collect.declare_stream('krx.new', 'krx', 't', 'krx', 'XKRX', 'krx', true, false, true, 1)",
        )
    else:
        seoul.dispatch()
    found = seoul.read()
    assert found.status == "CAPTURED"
    assert set(seoul.items()) == {KRX.name, DART.name, FINRA.name}
    assert seoul.states() == {**before, FINRA.name: "NOT_STARTED"}
    assert not any(item.frozen for item in found.items or ())


def test_a_change_before_the_cutoff_that_commits_after_it_is_inside(seoul: Seoul) -> None:
    with connect(seoul.url) as operator:
        operator.execute("select * from collect.control('stream', %s, 'frozen', 'a test', 'kim')", (KRX.name,))
        seoul.at(AFTER)
        taking = beside(lambda: seoul.capture())
        wait_until_blocked(seoul.url)
        operator.commit()
    assert taking.result() == "CAPTURED"
    assert seoul.items()[KRX.name].frozen


def test_sixteen_at_once_after_the_cutoff_take_one_snapshot(seoul: Seoul) -> None:
    seoul.at(AFTER)
    start, paths = threading.Barrier(16), []

    def pass_gate(n: int) -> None:
        with connect(seoul.url) as connection:
            start.wait(30)
            row = connection.execute("select path from collect.pass_gate(%s)", (f"writer {n}",)).fetchone()
            connection.commit()
            assert row is not None
            paths.append(row["path"])

    for each in [beside(lambda n=n: pass_gate(n)) for n in range(16)]:
        each.result()
    assert paths.count("captured") == 1
    assert set(paths) <= {"captured", "second", "shared"}
    assert len(seoul.alerts()) == 1


def test_a_transaction_passes_once_and_all_it_writes_happened_then(seoul: Seoul) -> None:
    """A sweep over many cycles that the cutoff passes in between: all of it was before, and nobody upgrades a lock."""
    with connect(seoul.url) as sweeping:
        first = sweeping.execute("select at, path from collect.pass_gate('a sweep')").fetchone()
        seoul.at(AFTER)
        taking = beside(lambda: seoul.capture())
        wait_until_blocked(seoul.url)
        settled = sweeping.execute(SETTLE, seoul.settling(KRX, "SUCCESS", fetched=5)).fetchone()
        again = sweeping.execute("select at, path from collect.pass_gate('a sweep')").fetchone()
        sweeping.commit()
        assert first is not None
        assert again == {"at": first["at"], "path": "held"}
        assert settled == {"settled_at": first["at"]}
    assert taking.result() == "CAPTURED"
    assert fetched(seoul) == 5
    # The next transaction of the same session begins anew.
    with connect(seoul.url) as connection:
        connection.execute("select collect.pass_gate('x')")
        connection.commit()
        row = connection.execute("select path from collect.pass_gate('x')").fetchone()
        assert row == {"path": "shared"}


def test_recovery_of_several_leases_over_the_cutoff_has_one_instant(seoul: Seoul) -> None:
    seoul.sql("update collect.cycles set lease_until = %s where cycle_status = 'RUNNING'", kst(DAY, 8, 57))
    rows = seoul.sql("select cycle_status, gate_at from collect.recover(null, 10)")
    assert [row["cycle_status"] for row in rows] == ["FAILED", "FAILED"]
    assert len({row["gate_at"] for row in rows}) == 1


def test_a_clock_that_steps_back_cannot_undo_a_capture(seoul: Seoul) -> None:
    seoul.at(AFTER)
    assert seoul.capture() == "CAPTURED"
    captured_at = seoul.read().captured_at
    seoul.at(kst(DAY, 8) - timedelta(days=365))
    seoul.sql("update collect.cycles set lease_until = 'infinity' where cycle_status = 'RUNNING'")
    assert seoul.settle(KRX, "RUNNING", fetched=1) == captured_at
    assert fetched(seoul) == 0


# --- what is refused


CALLS = (
    "select collect.pass_gate('x')",
    "select collect.capture('2026-09-16', 'x')",
    "select collect.capture_due('x')",
    "select * from collect.mark_missed('5 minutes', 'x')",
    "select * from collect.dispatch('2026-09-16', '[]', '[]', 'x')",
    "select * from collect.control('all', '*', 'frozen', 'x', 'x')",
)


def test_whoever_would_read_an_old_state_is_refused(seoul: Seoul) -> None:
    seoul.at(AFTER)
    for level in (psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE):
        for call in CALLS:
            with connect(seoul.url) as connection:
                connection.isolation_level = level
                with pytest.raises(psycopg.errors.RaiseException, match="needs READ COMMITTED"):
                    connection.execute(call)  # type: ignore[arg-type]
    assert seoul.read().status == "PENDING"


CHANGES = (
    "update collect.cycles set fetched_count = 777 where stream = 'krx.prices'",
    "update collect.streams set title = 'x' where stream = 'krx.prices'",
    "insert into collect.controls values ('stream', 'krx.prices', 'frozen', 'x', 'x', collect.clock())",
)


def test_a_change_that_was_made_before_the_gate_is_refused_rather_than_shown(seoul: Seoul) -> None:
    seoul.at(AFTER)
    for change in CHANGES:
        for call in ("select collect.capture('2026-09-16', 'x')", "select collect.pass_gate('x')"):
            with connect(seoul.url) as connection:
                connection.execute(change)  # type: ignore[arg-type]
                with pytest.raises(psycopg.errors.RaiseException, match="before it passed the gate"):
                    connection.execute(call)  # type: ignore[arg-type]
    assert seoul.read().status == "PENDING"


def test_who_holds_the_gate_as_a_writer_cannot_become_the_capturer(seoul: Seoul) -> None:
    with connect(seoul.url) as connection:
        connection.execute("select collect.pass_gate('x')")
        seoul.at(AFTER)
        for call in ("select collect.capture('2026-09-16', 'x')", "select * from collect.mark_missed('1 second', 'x')"):
            with (
                pytest.raises(psycopg.errors.RaiseException, match="two of them would wait for each other"),
                connection.transaction(),
            ):
                connection.execute(call)  # type: ignore[arg-type]


def test_nobody_who_holds_the_gate_may_idle_longer_than_two_seconds_and_only_within_the_transaction(
    seoul: Seoul,
) -> None:
    show = "select current_setting('idle_in_transaction_session_timeout') as t"
    for call in ("select collect.pass_gate('x')", "select collect.capture('2026-09-16', 'x')"):
        with connect(seoul.url) as connection:
            before = connection.execute(show).fetchone()
            connection.execute(call)  # type: ignore[arg-type]
            assert connection.execute(show).fetchone() == {"t": "2s"}
            connection.commit()
            assert connection.execute(show).fetchone() == before


# --- an apply in flight


def test_a_bulk_apply_in_flight_delays_neither_the_capture_nor_another_stream(seoul: Seoul) -> None:
    """It holds its cycle's row and its tables for as long as it takes, and the gate for the last moment only."""
    seoul.sql("create table bulk (n int)")
    with connect(seoul.url) as applying:
        cycle, token = seoul.leases[KRX.name]
        assert applying.execute(query("lease.guard"), {"cycle": cycle, "token": token}).fetchone() is not None
        applying.execute("insert into bulk select generate_series(1, 50000)")
        seoul.at(AFTER)
        started = time.monotonic()
        assert seoul.capture() == "CAPTURED"
        seoul.settle(DART, "SUCCESS", fetched=1)
        assert seoul.open(FINRA, kst(DAY, 7, 35)) is not None
        assert time.monotonic() - started < 5
        assert seoul.states()[KRX.name] == "RUNNING"
        (row,) = call_and_commit(applying, SETTLE, seoul.settling(KRX, "SUCCESS", fetched=50_000))
        assert row["settled_at"] >= kst(DAY, 9)
    assert fetched(seoul) == 0
    assert seoul.one("select count(*) as n from bulk")["n"] == 50_000


def test_what_was_loaded_before_the_gate_survives_taking_the_snapshot(seoul: Seoul) -> None:
    """The shared lock is given back by leaving a savepoint; what came before the savepoint stays."""
    seoul.sql("create table bulk (n int)")
    with connect(seoul.url) as applying:
        applying.execute("insert into bulk select generate_series(1, 1000)")
        seoul.at(AFTER)
        call_and_commit(applying, SETTLE, seoul.settling(KRX, "SUCCESS", fetched=1000))
    assert seoul.read().captured_by == "a worker"
    assert seoul.one("select count(*) as n from bulk")["n"] == 1000


def test_a_word_on_a_calendar_day_needs_no_gate_as_the_snapshot_reads_none(seoul: Seoul) -> None:
    """Were the calendar read by any function that judges or captures, deciding a day would have to pass the gate."""
    assert seoul.sql("select proname from pg_proc where prosrc like %s", "%calendar_exceptions%") == []
    judged = "select stream, slot, session_date, cycle_status from collect.judge(%s)"
    before = seoul.sql(judged, DAY)
    with connect(seoul.url) as holder:
        holder.execute("select collect.hold_gate()")
        windows.propose(seoul.url, "XKRX", DAY, "kim", "a typhoon")
        windows.decide(seoul.url, "XKRX", DAY, "closed", "kim", "a typhoon")
    assert seoul.sql(judged, DAY) == before


def test_a_dispatch_that_makes_the_header_waits_for_the_writers_in_flight(database: str) -> None:
    """A header that one writer sees and another does not would put their writes on different sides of it."""
    with opened(database, kst(DAY, 8, 59, 59), (DART,)) as seoul:
        seoul.work(DART, kst(DAY, 8, 55), "RUNNING")
        with connect(seoul.url) as writer:
            writer.execute(SETTLE, seoul.settling(DART, "SUCCESS", fetched=3))
            dispatching = beside(seoul.dispatch)
            wait_until_blocked(seoul.url)
            # While it waits the cutoff passes, so there is nothing left that it could promise.
            seoul.at(AFTER)
            writer.commit()
        assert dispatching.result().status == "MISSED"


def test_upkeep_capture_and_a_control_change_race_to_one_verdict(seoul: Seoul) -> None:
    """Whoever is first decides and the others find it done; a freeze after the cutoff is never in the verdict."""
    for n in range(20):
        day = DAY + timedelta(days=n)
        seoul.at(kst(day, 0, 1) if n else kst(DAY, 8))
        seoul.dispatch()
        # Odd days: within the grace; even ones: upkeep would call it missed.
        seoul.at(kst(day, 9, 0, 0.01) if n % 2 else kst(day, 9, 5, 1))
        start = threading.Barrier(3)
        state = "frozen" if n % 4 < 2 else "running"
        was_frozen = seoul.one("select collect.frozen(%s) is not null as f", KRX.name)["f"]

        def control(state: str = state, start: threading.Barrier = start) -> Any:
            with connect(seoul.url) as connection:
                start.wait(30)
                return call_and_commit(
                    connection,
                    query("controls.change"),
                    {"scope": "stream", "name": KRX.name, "state": state, "why": "a race", "who": "kim"},
                )

        def capture(day: Any = day, start: threading.Barrier = start) -> Any:
            with connect(seoul.url) as connection:
                start.wait(30)
                return call_and_commit(connection, CAPTURE, {"date": day, "who": "the capturer"})

        def look(start: threading.Barrier = start) -> Any:
            start.wait(30)
            return upkeep.recover(seoul.url)

        racers = [beside(control), beside(capture), beside(look)]
        for racer in racers:
            racer.result()
        found = seoul.read(day)
        assert found.status in ("CAPTURED", "MISSED") if n % 2 == 0 else found.status == "CAPTURED"
        if found.status == "CAPTURED":
            assert [item.frozen for item in found.items or () if item.stream == KRX.name] == [was_frozen]
        else:
            assert found.items is None
        assert len([key for key in seoul.alerts() if key.startswith(f"snapshot/{day}/")]) == 1


def test_a_thousand_cutoff_races_misplace_nothing(database: str) -> None:
    """Eight writers, with and without capturers: each write is inside or outside as the instant says at which it
    held the gate, and where nobody else came, a writer took the snapshot."""
    arena = Arena(database).open()
    try:
        for n in range(125):
            arena.round(capturers=0 if n % 9 in (3, 7) else 2)
        assert arena.complaints == []
        assert arena.races == 1000
        assert arena.captured == 125
        assert arena.by_writer >= 20
    finally:
        arena.close()


def test_a_round_that_only_upkeep_attends_is_missed_without_items(database: str) -> None:
    arena = Arena(database, size=2).open()
    try:
        cutoff = arena.prepare(0.05)
        arena.seoul.settle(arena.streams[0], "RUNNING", fetched=1)
        arena.seoul.at(cutoff + timedelta(minutes=5))
        assert f"the snapshot of {arena.day} is MISSED now" in snapshot.mark_missed(database)
        assert arena.seoul.read(arena.day).items is None
    finally:
        arena.close()


# --- what must fail


def replaced(seoul: Seoul, body: str) -> None:
    """Put another form of `pass_gate` in its place."""
    seoul.sql(
        "create or replace function collect.pass_gate(who text, out at timestamptz, out path text)"
        f" language plpgsql volatile set search_path = collect, pg_temp as $$ begin {body} path := 'shared'; end $$"
    )


LOCK = "perform pg_advisory_xact_lock_shared(9009, 0);"
HOLD = "select pg_advisory_xact_lock(9009, 0)"


def waits_for_the_capture(seoul: Seoul) -> Any:
    """A writer that came before the cutoff waits for a capturer that came first; returns what its write was told."""
    with connect(seoul.url) as capturing:
        capturing.execute(HOLD)
        writing = beside(lambda: seoul.settle(KRX, "RUNNING", fetched=1))
        wait_until_blocked(seoul.url)
        seoul.at(AFTER)
        capturing.execute(CAPTURE, TAKE)
        capturing.commit()
    return writing.result()


def test_must_fail_the_clock_read_before_the_gate(seoul: Seoul) -> None:
    assert waits_for_the_capture(seoul) >= kst(DAY, 9)
    assert fetched(seoul) == 0


def test_must_fail_the_clock_read_before_the_gate_loses_the_write(seoul: Seoul) -> None:
    replaced(seoul, f"at := collect.clock(); {LOCK}")
    # It says that it was before the cutoff, and it is not in the snapshot.
    assert waits_for_the_capture(seoul) < kst(DAY, 9)
    assert fetched(seoul) == 0


FORMS = {
    "one statement": "create function wrong(d date) returns bigint language sql volatile as $$"
    " with l as materialized (select pg_advisory_xact_lock(9009, 0))"
    " select sum(c.fetched_count)::bigint from l, collect.cycles c $$",
    "stable, lock then read": "create function wrong(d date) returns bigint language plpgsql stable as $$ begin"
    " perform pg_advisory_xact_lock(9009, 0); return (select sum(fetched_count) from collect.cycles); end $$",
    "two statements, volatile": "create function wrong(d date) returns bigint language plpgsql volatile as $$ begin"
    " perform pg_advisory_xact_lock(9009, 0); return (select sum(fetched_count) from collect.cycles); end $$",
}


@pytest.mark.parametrize(("form", "sees"), [(form, form.startswith("two")) for form in FORMS])
def test_must_fail_a_capture_that_reads_in_the_statement_that_waits(seoul: Seoul, form: str, sees: bool) -> None:
    """The statement's view of the rows is older than its wait; only lock in one and read in the next sees the write."""
    seoul.sql(FORMS[form])
    with connect(seoul.url) as writer:
        writer.execute(SETTLE, seoul.settling(KRX, "RUNNING", fetched=1))
        reading = beside(lambda: seoul.one("select wrong(%s) as n", DAY)["n"])
        wait_until_blocked(seoul.url)
        writer.commit()
    assert reading.result() == (1 if sees else 0)


def test_must_fail_an_insert_before_the_gate(seoul: Seoul) -> None:
    """Against a dispatch that makes the same window: each waits for the other."""
    columns = "(stream, mode, slot, run_date, window_start, due_at, cycle_status, created_at, updated_at)"
    row = "'finra.another', 'poll', 'x', '2026-09-16', t, t, 'NOT_STARTED', t, t from collect.clock() t"
    insert = f"insert into collect.cycles {columns} select {row}"
    with connect(seoul.url) as wrong, connect(seoul.url) as dispatching:
        wrong.execute(insert)  # type: ignore[arg-type]
        dispatching.execute("select collect.capture_due('dispatch')")
        making = beside(lambda: dispatching.execute(insert + " on conflict do nothing"))  # type: ignore[arg-type]
        wait_until_blocked(seoul.url)
        ended = [beside(lambda: wrong.execute("select collect.pass_gate('x')")), making]
        outcomes = []
        for each in ended:
            try:
                each.result()
                outcomes.append("done")
            except psycopg.errors.DeadlockDetected:
                outcomes.append("deadlock")
                (wrong if each is ended[0] else dispatching).rollback()
        assert outcomes.count("deadlock") == 1
    # The gate first, then the insert: the second waits for the first one's commit and finds it done.
    with connect(seoul.url) as right:
        right.execute("select collect.pass_gate('x')")
        right.execute(insert.replace("'x'", "'y'"))  # type: ignore[arg-type]
        dispatching_again = beside(lambda: seoul.sql("select * from collect.dispatch('2026-09-16', '[]', '[]', 'x')"))
        wait_until_blocked(seoul.url)
        right.commit()
    dispatching_again.result()


def test_must_fail_two_who_upgrade_a_held_lock(seoul: Seoul) -> None:
    start = threading.Barrier(2)

    def upgrade() -> str:
        with connect(seoul.url) as connection:
            connection.execute("select pg_advisory_xact_lock_shared(9009, 0)")
            start.wait(30)
            try:
                connection.execute(HOLD)
            except psycopg.errors.DeadlockDetected:
                return "deadlock"
            return "done"

    assert sorted(each.result() for each in [beside(upgrade), beside(upgrade)]) == ["deadlock", "done"]


def test_must_fail_the_gate_before_the_bulk_load(seoul: Seoul) -> None:
    """Who passes the gate and then loads holds up the capture, and behind it every other stream, for the whole load."""
    with connect(seoul.url) as applying:
        applying.execute("select collect.pass_gate('x')")
        seoul.at(AFTER)
        taking = beside(lambda: seoul.capture())
        wait_until_blocked(seoul.url)
        with connect(seoul.url) as another:
            another.execute("set lock_timeout = '300ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                another.execute(SETTLE, seoul.settling(DART, "SUCCESS", fetched=1))
        applying.commit()
    assert taking.result() == "CAPTURED"


def test_must_fail_a_header_row_for_share(seoul: Seoul) -> None:
    """Row locks let new sharers in before one who waits for the row alone; the advisory lock queues them behind him."""
    share = "select 1 from collect.sla_snapshots where snapshot_date = '2026-09-16' for share"
    alone = "select 1 from collect.sla_snapshots where snapshot_date = '2026-09-16' for update"
    for first, exclusive, is_starved in (
        (share, alone, True),
        ("select pg_advisory_xact_lock_shared(9009, 0)", HOLD, False),
    ):
        with connect(seoul.url) as holding, connect(seoul.url) as late, connect(seoul.url) as capturing:
            holding.execute(first)  # type: ignore[arg-type]
            waiting = beside(lambda c=capturing, e=exclusive: c.execute(e))
            wait_until_blocked(seoul.url)
            late.execute("set lock_timeout = '500ms'")
            if is_starved:
                late.execute(first)  # type: ignore[arg-type]
                holding.rollback()
                with pytest.raises(AssertionError, match="it never ended"):
                    waiting.result(0.3)
            else:
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    late.execute(first)  # type: ignore[arg-type]
                holding.rollback()
            late.rollback()
            waiting.result()
            capturing.rollback()


def frozen_in_the_gate(seoul: Seoul, send: Any) -> float:
    """How long the capture waits for a client that is frozen once it has sent something, in seconds."""
    writer = connect(seoul.url)
    try:
        send(writer)
        seoul.at(AFTER)
        started = time.monotonic()
        assert seoul.capture() == "CAPTURED"
        return time.monotonic() - started
    finally:
        writer.close()


def test_must_fail_a_client_that_is_frozen_between_the_gate_and_its_commit(seoul: Seoul) -> None:
    """It holds up everybody until the server ends its session, and its write is lost."""

    def statement_by_statement(writer: Connection) -> None:
        writer.execute(SETTLE, seoul.settling(KRX, "RUNNING", fetched=1))

    assert frozen_in_the_gate(seoul, statement_by_statement) > 1
    assert fetched(seoul) == 0


def test_a_client_that_is_frozen_after_one_round_trip_delays_nobody_and_its_write_counts(seoul: Seoul) -> None:
    def together(writer: Connection) -> None:
        call_and_commit(writer, SETTLE, seoul.settling(KRX, "RUNNING", fetched=1))

    assert frozen_in_the_gate(seoul, together) < 1
    assert fetched(seoul) == 1
