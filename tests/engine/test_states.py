"""The states of a cycle: every row of the table of transitions, and what the table does not have.

Also the invariants that the database itself holds, and the indexes that keep the claimable part small.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from include.contract import CycleStatus, Mode
from include.engine import jobs
from include.engine.db import query
from include.engine.lease import LeaseLost
from tests.engine.cdn import Trouble
from tests.engine.desk import STREAM, TUESDAY, WEDNESDAY, Desk, ny

PENDING, RUNNING, SUCCESS, FAILED, EXHAUSTED = (
    CycleStatus.PENDING,
    CycleStatus.RUNNING,
    CycleStatus.SUCCESS,
    CycleStatus.FAILED,
    CycleStatus.BUDGET_EXHAUSTED,
)
RUN = "a-run"
FAILURE = {"failure_kind": "retriable", "failure_reason": "a test", "budget": None}
FACTS: dict[CycleStatus, dict[str, Any]] = {FAILED: FAILURE, EXHAUSTED: {"budget": "ITEM_LIMIT"}}


def held_in(desk: Desk, mode: Mode) -> Any:
    """A lease on a cycle of a mode."""
    if mode is Mode.POLL:
        desk.open_poll(ny(TUESDAY, 18, 35))
        return desk.claimed()
    desk.add_chunks(RUN, mode=mode)
    return desk.claimed(mode, RUN)


# --- the table, row by row; rows that need a whole slice are tried in test_cycle_poll.py and test_jobs.py as well


def test_a_window_that_opens_waits_and_asks_nothing(desk: Desk) -> None:
    desk.open_poll(ny(TUESDAY, 18, 35))
    row = desk.cycle()
    assert (row["cycle_status"], row["attempt"], row["run_date"]) == (PENDING, 0, WEDNESDAY)
    assert desk.cdn.requests == []


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("end", [PENDING, RUNNING, SUCCESS, FAILED, EXHAUSTED])
def test_the_holder_settles_a_running_cycle(desk: Desk, mode: Mode, end: CycleStatus) -> None:
    held = held_in(desk, mode)
    desk.settle(held, end, **FACTS.get(end, {}))
    row = desk.cycle()
    assert row["cycle_status"] == end
    assert (row["finished_at"] is not None) == (end in (SUCCESS, FAILED, EXHAUSTED))
    assert row["is_complete"] == (end is SUCCESS)
    assert (row["lease_token"] is not None) == (end is RUNNING)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("end", [SUCCESS, FAILED, EXHAUSTED])
@pytest.mark.parametrize("then", [PENDING, RUNNING, SUCCESS, FAILED, EXHAUSTED])
def test_nothing_leaves_a_terminal_state_by_a_token(
    desk: Desk, mode: Mode, end: CycleStatus, then: CycleStatus
) -> None:
    held = held_in(desk, mode)
    desk.settle(held, end, **FACTS.get(end, {}))
    before = desk.cycle()
    with pytest.raises(LeaseLost):
        desk.settle(held, then, **FACTS.get(then, {}))
    assert desk.cycle() == before


@pytest.mark.parametrize("mode", list(Mode))
def test_a_waiting_cycle_cannot_be_settled_without_a_claim(desk: Desk, mode: Mode) -> None:
    held = held_in(desk, mode)
    desk.settle(held, PENDING)
    for then in (PENDING, RUNNING, SUCCESS):
        with pytest.raises(LeaseLost):
            desk.settle(held, then)
    assert desk.cycle()["cycle_status"] == PENDING


@pytest.mark.parametrize("end", [FAILED, EXHAUSTED])
def test_a_run_that_starts_again_opens_its_chunks_and_says_who(desk: Desk, end: CycleStatus) -> None:
    request = desk.request(Mode.BACKFILL, TUESDAY, who="somebody")
    desk.begin(request)
    held = desk.claimed(Mode.BACKFILL, request.name)
    desk.settle(held, end, **FACTS[end])
    assert desk.begin(request).startswith("REOPENED")
    row = desk.cycle()
    assert row["cycle_status"] == PENDING
    assert (row["failure_reason"], row["budget_exhausted_reason"], row["finished_at"]) == (None, None, None)
    run = desk.one("select reopened_by, reopened_count, outcome from collect.job_runs")
    assert (run["reopened_by"], run["reopened_count"], run["outcome"]) == ("somebody", 1, None)


def test_a_failed_poll_is_not_opened_again(desk: Desk) -> None:
    held = held_in(desk, Mode.POLL)
    desk.settle(held, FAILED, **FAILURE)
    with pytest.raises(jobs.JobRefused):
        desk.begin(desk.request(Mode.POLL, TUESDAY))
    desk.tick()
    assert desk.cycle()["cycle_status"] == FAILED


def test_a_definite_failure_of_a_chunk_comes_after_three_attempts(desk: Desk) -> None:
    for _ in range(3):
        desk.cdn.trouble("CNMS", TUESDAY, *[Trouble(503)] * 4)
    verdicts = desk.backfill(TUESDAY, keys=("CNMS",))
    assert [verdict.status for verdict in verdicts] == [PENDING, PENDING, FAILED]
    assert [verdict.words.partition(" ")[0] for verdict in verdicts] == ["AGAIN", "AGAIN", "FAILED"]
    assert len(desk.cdn.asked()) == 12


# --- what the database itself refuses


def change(desk: Desk, **columns: Any) -> None:
    """Write into the cycle past every function."""
    assignments = ", ".join(f"{name} = %s" for name in columns)
    desk.sql(f"update collect.cycles set {assignments}", *columns.values())


# What a cycle that is over has and has not, whatever it came to.
OVER = {
    "finished_at": "2026-09-15", "outcome": "success", "lease_token": None, "lease_until": None, "lease_owner": None,
}  # fmt: skip
LEASE, END, HOW, KIND = (
    "cycles_lease_only_while_running",
    "cycles_end_and_outcome_only_when_over",
    "cycles_over_says_how",
    "cycles_window_or_run",
)


@pytest.mark.parametrize(
    ("mode", "columns", "constraint"),
    [
        (Mode.POLL, {"cycle_status": "DONE"}, "cycle_state_check"),
        (Mode.POLL, {**OVER, "cycle_status": "SUCCESS", "is_complete": True, "finished_at": None}, END),
        (Mode.POLL, {**OVER, "cycle_status": "SUCCESS", "is_complete": True, "outcome": None}, END),
        (Mode.POLL, {"finished_at": "2026-09-15"}, END),
        (Mode.POLL, {"outcome": "success"}, END),
        (Mode.POLL, {"cycle_status": "SUCCESS", "finished_at": "2026-09-15", "outcome": "success"}, LEASE),
        (Mode.POLL, {"lease_token": None}, LEASE),
        (Mode.POLL, {"lease_token": None, "lease_until": None}, LEASE),
        (Mode.POLL, {"lease_token": None, "lease_until": None, "lease_owner": None}, LEASE),
        (Mode.POLL, {"cycle_status": "PENDING"}, LEASE),
        (Mode.POLL, {**OVER, "cycle_status": "SUCCESS", "is_complete": False}, HOW),
        (Mode.POLL, {**OVER, "cycle_status": "FAILED", "failure_reason": None}, HOW),
        (Mode.POLL, {**OVER, "cycle_status": "BUDGET_EXHAUSTED"}, HOW),
        (
            Mode.POLL,
            {**OVER, "cycle_status": "BUDGET_EXHAUSTED", "budget_exhausted_reason": "ITEM_LIMIT", "is_complete": True},
            HOW,
        ),
        (Mode.POLL, {"budget_exhausted_reason": "TOO_MUCH"}, "budget_reason_check"),
        (Mode.POLL, {"failure_reason": "x" * 201}, "one_line_check"),
        (Mode.POLL, {"failure_cause_summary": "x" * 1001}, "summary_check"),
        (Mode.POLL, {"run_date": None}, KIND),
        (Mode.POLL, {"window_start": None}, KIND),
        (Mode.POLL, {"due_at": None}, KIND),
        (Mode.BACKFILL, {"run_id": None}, KIND),
        (Mode.BACKFILL, {"run_date": TUESDAY}, KIND),
        (Mode.BACKFILL, {"window_start": "2026-09-15", "due_at": "2026-09-15", "run_date": TUESDAY}, KIND),
        (Mode.BACKFILL, {"missed_count": 0}, KIND),
        (Mode.REPLAY, {"closed_count": 0}, KIND),
        (Mode.REPLAY, {"mode": "again"}, "job_mode_check"),
        (Mode.BACKFILL, {"abnormal": False}, "cycles_health_of_windows_only"),
        (Mode.REPLAY, {"seen_count": 0}, "cycles_health_of_windows_only"),
    ],
)
def test_the_database_refuses_a_cycle_that_cannot_be(
    desk: Desk, mode: Mode, columns: dict[str, Any], constraint: str
) -> None:
    held_in(desk, mode)
    before = desk.cycle()
    with pytest.raises(psycopg.errors.CheckViolation) as refusal:
        change(desk, **columns)
    assert refusal.value.diag.constraint_name == constraint
    assert desk.cycle() == before


@pytest.mark.parametrize("status", [SUCCESS, FAILED, EXHAUSTED])
def test_a_chunk_says_nothing_of_its_streams_health(desk: Desk, status: CycleStatus) -> None:
    desk.settle(held_in(desk, Mode.BACKFILL), status, **FACTS.get(status, {}))
    assert (desk.cycle()["cycle_status"], desk.cycle()["abnormal"]) == (status, None)


def test_the_database_holds_one_cycle_a_slot_and_one_open_poll_a_stream(desk: Desk) -> None:
    held_in(desk, Mode.POLL)
    copy = (
        "insert into collect.cycles (stream, mode, slot, run_date, window_start, due_at, created_at, updated_at)"
        " select stream, mode, {slot}, run_date, window_start, due_at, created_at, updated_at from collect.cycles"
    )
    with pytest.raises(psycopg.errors.UniqueViolation, match="cycles_one_slot"):
        desk.sql(copy.format(slot="slot"))
    with pytest.raises(psycopg.errors.UniqueViolation, match="cycles_one_open_poll"):
        desk.sql(copy.format(slot="slot || '#'"))


def test_a_settlement_that_breaks_an_invariant_leaves_the_cycle_running(desk: Desk) -> None:
    held = held_in(desk, Mode.POLL)
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.settle(held, FAILED)
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.settle(held, EXHAUSTED)
    assert desk.cycle()["cycle_status"] == RUNNING
    desk.settle(held, SUCCESS)


def test_reasons_are_cut_to_what_the_columns_hold(desk: Desk) -> None:
    held = held_in(desk, Mode.POLL)
    desk.settle(held, FAILED, failure_kind="retriable", failure_reason="r" * 500, failure_cause="c" * 5000)
    row = desk.cycle()
    assert (len(row["failure_reason"]), len(row["failure_cause_summary"])) == (200, 1000)


def test_the_table_of_cycles_is_not_partitioned(desk: Desk) -> None:
    assert desk.one("select relkind from pg_class where oid = 'collect.cycles'::regclass")["relkind"] in ("r", b"r")


# --- the claimable part stays small


@pytest.fixture
def crowded(desk: Desk, alone: None) -> Desk:
    """100,000 cycles that are over, 5,000 chunks that wait, one poll that waits."""
    desk.sql(
        "insert into collect.cycles (stream, mode, slot, run_id, kind, cycle_status, is_complete, outcome,"
        " finished_at, created_at, updated_at)"
        " select %s, 'backfill', 'old/' || n, 'old-' || n %% 50, 'chunk', 'SUCCESS', true, 'success', t, t, t"
        " from generate_series(1, 80000) n, lateral (select clock_timestamp() as t) x",
        STREAM.name,
    )
    desk.sql(
        "insert into collect.cycles (stream, mode, slot, run_date, window_start, due_at, cycle_status, is_complete,"
        " outcome, finished_at, created_at, updated_at)"
        " select 's.' || n % 40, 'poll', 'w' || n, t::date, t, t, 'SUCCESS', true, 'success', t, t, t"
        " from generate_series(1, 20000) n,"
        " lateral (select timestamptz '2024-01-01' + n * interval '30 minutes' as t) x"
    )
    desk.add_chunks(RUN, 5000)
    desk.open_poll(ny(TUESDAY, 18, 35))
    desk.sql("vacuum analyze collect.cycles")
    return desk


CALLS = (
    (
        "cycles_ready_of_stream",
        "select * from collect.claim('finra.short_volume', 'backfill', 'a-run', 'w', '5 minutes')",
    ),
    ("cycles_one_open_poll", "select * from collect.claim('finra.short_volume', 'poll', null, 'w', '5 minutes')"),
    ("cycles_leased", "select * from collect.recover(null, 20)"),
    (
        "cycles_ready",
        "select cycle_id from collect.cycles where cycle_status = 'PENDING' and next_eligible_at <= clock_timestamp()"
        " order by next_eligible_at, run_date, cycle_id limit 10",
    ),
    (
        "cycles_by_window",
        "select * from collect.cycles where stream = 's.7' and window_start is not null"
        " order by window_start desc limit 1",
    ),
    (
        "cycles_by_run",
        "select count(*) from collect.cycles where run_id = 'old-7' and stream = 'finra.short_volume'"
        " and cycle_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED')",
    ),
    (
        "cycles_day_budget",
        "select sum(fetched_count) from collect.cycles where stream = 's.7' and run_date = '2024-06-01'",
    ),
    (
        "cycles_over",
        "select cycle_id from collect.cycles where cycle_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED')"
        " and finished_at > now() - interval '1 second'",
    ),
)


def test_each_index_is_used_among_100_000_cycles_that_are_over(crowded: Desk) -> None:
    """Counted by the server itself, while the very functions run: the index once more, the whole table never."""
    scans = "select idx_scan from pg_stat_user_indexes where indexrelname = %s"
    whole = "select seq_scan from pg_stat_user_tables where relid = 'collect.cycles'::regclass"
    used: dict[str, Any] = {}
    for index, call in CALLS:
        with psycopg.connect(crowded.url, autocommit=True) as connection:
            before = [connection.execute(scans, (index,)).fetchone(), connection.execute(whole).fetchone()]
            connection.execute("select pg_stat_force_next_flush()")
            connection.execute(call)  # type: ignore[arg-type]
            connection.execute("select pg_stat_force_next_flush()")
            connection.execute("select 1")
            after = [connection.execute(scans, (index,)).fetchone(), connection.execute(whole).fetchone()]
        used[index] = [later[0] - earlier[0] for later, earlier in zip(after, before, strict=True)]  # type: ignore[index]
    assert used == {index: [1, 0] for index, _ in CALLS}


def test_a_claim_among_them_reads_a_handful_of_pages(crowded: Desk) -> None:
    with psycopg.connect(crowded.url, autocommit=True) as connection:
        for _ in range(20):
            connection.execute("select * from collect.claim(%s, 'backfill', %s, 'w', '5 minutes')", (STREAM.name, RUN))
        (plan,) = connection.execute(
            "explain (analyze, buffers, format json) select * from collect.claim(%s, 'backfill', %s, 'w', '5 minutes')",
            (STREAM.name, RUN),
        ).fetchone()[0]  # type: ignore[index]
    pages = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
    assert pages < 150, plan


@pytest.fixture
def long(desk: Desk, alone: None) -> Desk:
    """A run that is most of what there is: the planner knows it as it was planned, and much of it is done since."""
    desk.add_chunks("long", 6_000)
    desk.sql("vacuum (analyze) collect.cycles")
    desk.sql(
        "update collect.cycles set cycle_status = 'SUCCESS', is_complete = true, outcome = 'success', attempt = 1,"
        " finished_at = created_at where cycle_id <= (select min(cycle_id) + 3999 from collect.cycles)"
    )
    return desk


def test_a_claim_of_a_long_run_does_not_walk_over_what_is_done(long: Desk) -> None:
    first = long.one("select min(cycle_id) + 4000 as n from collect.cycles")["n"]
    claim = "select * from collect.claim(%s, 'backfill', 'long', 'w', '5 minutes')"
    with psycopg.connect(long.url, autocommit=True) as connection:
        claimed = [connection.execute(claim, (STREAM.name,)).fetchone()[0] for _ in range(10)]  # type: ignore[index]
        (plan,) = connection.execute(f"explain (analyze, buffers, format json) {claim}", (STREAM.name,)).fetchone()[0]  # type: ignore[index]
    assert claimed == list(range(first, first + 10))
    pages = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
    assert pages < 80, plan


@pytest.mark.parametrize("stream", [None, STREAM.name])
@pytest.mark.parametrize("status", [None, "SUCCESS", "PENDING", "RUNNING"])
@pytest.mark.parametrize("mode", [None, "backfill"])
def test_the_chunks_of_a_run_are_listed_without_a_look_at_those_of_others(
    crowded: Desk, stream: str | None, status: str | None, mode: str | None
) -> None:
    with psycopg.connect(crowded.url, autocommit=True) as connection:
        for run in ("old-7", RUN):
            values = {"run_id": run, "stream": stream, "status": status, "mode": mode, "before": None, "limit": 101}
            statement = f"explain {query('ops_cycles.of_run')}"
            plan = "\n".join(line for (line,) in connection.execute(statement, values).fetchall())  # type: ignore[arg-type]
            assert "Seq Scan on cycles" not in plan, plan
            assert "Backward" not in plan, plan
            used = set(re.findall(r"(?:using|Index Scan on) (\w+)", plan))
            own = {"cycles_by_run", "cycles_ready_of_stream", "cycles_leased"}
            # Beside the run's own, the rows of the page by their numbers, and the run by its name.
            # What waits and is being worked on at once is nothing, which any index of what waits says.
            nothing = {"cycles_ready"} if status == "RUNNING" else set()
            assert used - own - nothing <= {"cycles_pkey", "job_runs_pkey"}, plan
            assert status is not None or own <= used, plan


@pytest.mark.parametrize("stream", [None, STREAM.name])
def test_how_far_a_run_is_reads_indexes_of_its_own_chunks_alone(crowded: Desk, stream: str | None) -> None:
    """What is over is counted in one index, what waits in another, and neither looks at another run."""
    with psycopg.connect(crowded.url, autocommit=True) as connection:
        for run, name in (("old-7", "progress"), (RUN, "progress"), (RUN, "next_eligible")):
            values = {"run_id": run, "stream": stream or STREAM.name if name == "next_eligible" else stream}
            lines = connection.execute(f"explain {query(f'jobs.{name}')}", values).fetchall()  # type: ignore[arg-type]
            plan = "\n".join(line for (line,) in lines)
            assert "Seq Scan on cycles" not in plan, plan
            if name == "progress":
                assert "Index Only Scan using cycles_by_run" in plan, plan
                assert "using cycles_ready_of_stream" in plan, plan
