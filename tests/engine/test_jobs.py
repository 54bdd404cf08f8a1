"""Job runs: the same request is one run, what failed is done again, what is done is not, and bad requests hear why."""

from __future__ import annotations

import threading
import tracemalloc
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from include.contract import CycleStatus, Mode, Outcome
from include.engine import jobs
from include.engine.jobs import JobRefused, JobRequest
from tests.engine.cdn import FACILITIES, Trouble, name
from tests.engine.desk import FRIDAY, MONDAY, SMALL, STREAM, THURSDAY, TUESDAY, WEDNESDAY, Desk, ny

PENDING, SUCCESS, FAILED = CycleStatus.PENDING, CycleStatus.SUCCESS, CycleStatus.FAILED
WEEK = (MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY)


@pytest.fixture
def week(desk: Desk) -> Desk:
    """Friday night, with one file for each day of the week."""
    desk.stream = SMALL
    desk.at(ny(FRIDAY, 21))
    for day in WEEK:
        desk.cdn.publish(day, {"AAPL": (1, 0, 2), "MSFT": (day.day, 0, 30)}, facilities=("CNMS",))
    return desk


def run_row(desk: Desk) -> Any:
    return desk.one("select * from collect.job_runs")


# --- one request, one run


def test_a_run_is_named_after_what_it_asks_for(week: Desk) -> None:
    asked = week.request(Mode.BACKFILL, MONDAY, FRIDAY, keys=("FNSQ", "CNMS"))
    assert asked.name == week.request(Mode.BACKFILL, MONDAY, FRIDAY, keys=("CNMS", "FNSQ")).name
    assert asked.name.startswith("backfill-finra-2026-09-14-2026-09-18-")
    others = [
        week.request(Mode.BACKFILL, MONDAY, FRIDAY),
        week.request(Mode.BACKFILL, MONDAY, THURSDAY, keys=("FNSQ", "CNMS")),
        week.request(Mode.REPLAY, MONDAY, FRIDAY, keys=("FNSQ", "CNMS")),
        week.request(Mode.REPLAY, MONDAY, FRIDAY, keys=("FNSQ", "CNMS"), replay_into="versioned"),
        week.request(Mode.BACKFILL, MONDAY, FRIDAY, keys=("FNSQ", "CNMS"), streams=(replace(SMALL, name="finra.b"),)),
    ]
    assert len({asked.name, *(other.name for other in others)}) == 6
    newer = week.request(Mode.REPLAY, MONDAY, FRIDAY, streams=(replace(SMALL, parser_version=2),))
    assert newer.name != week.request(Mode.REPLAY, MONDAY, FRIDAY).name
    # Who asks, why and how often is no part of it.
    assert asked.name == week.request(Mode.BACKFILL, MONDAY, FRIDAY, keys=("FNSQ", "CNMS"), who="x", force=True).name


def test_the_same_request_twice_joins_the_unfinished_run(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY, keys=("CNMS",))
    assert week.begin(request).startswith("STARTED")
    assert week.begin(replace(request, who="another")).startswith("JOINED")
    assert week.begin(replace(request, keys=("CNMS",), who="another")).startswith("JOINED")
    assert len(week.cycles()) == 5
    assert run_row(week)["total_chunks"] == 5


def test_keys_in_another_order_are_the_same_request(week: Desk) -> None:
    week.begin(week.request(Mode.BACKFILL, MONDAY, keys=("CNMS", "FNSQ")))
    assert week.begin(week.request(Mode.BACKFILL, MONDAY, keys=("FNSQ", "CNMS"))).startswith("JOINED")


def test_a_finished_run_says_so_and_asks_nothing(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY)
    week.do(request)
    assert jobs.conclude(week.url, request.name)[0] is Outcome.SUCCESS
    week.cdn.forget()
    words = week.begin(request)
    assert words.startswith("ALREADY DONE")
    assert "force does it again" in words
    assert week.work_off(request) == []
    assert week.cdn.requests == []


def test_force_asks_again_for_what_succeeded(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY)
    week.do(request)
    week.cdn.put("CNMS", TUESDAY, {"AAPL": (7, 0, 8)})
    week.cdn.forget()
    words = week.begin(replace(request, force=True))
    assert words.startswith("REOPENED")
    assert len(week.work_off(request)) == 5
    assert len(week.cdn.requests) == 5
    assert week.values("CNMS", TUESDAY) == {"AAPL": "7"}
    # With validators: what did not change costs no body.
    assert Counter(one.status for one in week.cdn.requests) == {304: 4, 200: 1}


def test_force_overrides_no_lease(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY)
    week.begin(request)
    held = week.claimed(Mode.BACKFILL, request.name)
    week.begin(replace(request, force=True))
    assert week.cycle()["lease_token"] == held.token
    assert week.claim(Mode.BACKFILL, request.name) is None


def test_a_run_that_starts_again_opens_only_what_failed(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY)
    week.cdn.trouble("CNMS", WEDNESDAY, *[Trouble(503)] * 12)
    week.do(request)
    outcome, state = jobs.conclude(week.url, request.name)
    assert (outcome, state.done, state.failed) == (Outcome.PARTIAL, 4, 1)
    assert "2026-09-16" in (state.first_failure or "")
    week.cdn.forget()
    assert week.begin(replace(request, who="the night shift")).startswith("REOPENED – run")
    week.work_off(request)
    assert week.cdn.asked() == [name("CNMS", WEDNESDAY)]
    assert jobs.conclude(week.url, request.name)[0] is Outcome.SUCCESS
    row = run_row(week)
    assert (row["reopened_by"], row["reopened_count"], row["requested_by"]) == ("the night shift", 1, "cli")
    assert week.held_days() == set(WEEK)


def test_a_run_id_that_belongs_to_another_request_is_refused(week: Desk) -> None:
    week.begin(week.request(Mode.BACKFILL, MONDAY, FRIDAY, run_id="mine"))
    for other in (
        week.request(Mode.BACKFILL, MONDAY, THURSDAY, run_id="mine"),
        week.request(Mode.REPLAY, MONDAY, FRIDAY, run_id="mine"),
        week.request(Mode.BACKFILL, MONDAY, FRIDAY, run_id="mine", keys=("FNSQ",)),
        week.request(Mode.BACKFILL, MONDAY, FRIDAY, run_id="mine", streams=(replace(SMALL, name="finra.other"),)),
    ):
        with pytest.raises(JobRefused, match=r"belongs to another request .* Choose another run_id"):
            jobs.start(week.url, other)
    assert run_row(week)["reopened_count"] == 0


def test_a_replay_into_copies_does_not_join_one_into_the_tables(week: Desk) -> None:
    week.begin(week.request(Mode.REPLAY, MONDAY, run_id="mine"))
    with pytest.raises(JobRefused, match="belongs to another request"):
        jobs.start(week.url, week.request(Mode.REPLAY, MONDAY, run_id="mine", replay_into="versioned"))


# --- refused in words


def refused(desk: Desk, request: JobRequest) -> str:
    with pytest.raises(JobRefused) as refusal:
        jobs.start(desk.url, request)
    assert desk.sql("select * from collect.job_runs") == []
    assert desk.cycles() == []
    return str(refusal.value)


def test_every_bad_request_is_refused_with_what_would_do(week: Desk) -> None:
    snapshot = replace(SMALL, snapshot_only="mode=poll gives today's; older ones are in the releases.")
    tomorrow = FRIDAY + timedelta(days=1)
    cases: list[tuple[JobRequest, str]] = [
        (JobRequest(Mode.BACKFILL, (SMALL,), None, None), "needs start_date and end_date"),
        (JobRequest(Mode.BACKFILL, (SMALL,), MONDAY, None), "needs start_date and end_date"),
        (JobRequest(Mode.REPLAY, (SMALL,), None, FRIDAY, reason="x"), "needs start_date and end_date"),
        (week.request(Mode.BACKFILL, FRIDAY, MONDAY), "is before start_date 2026-09-18; swap them"),
        (JobRequest(Mode.POLL, (SMALL,), MONDAY, FRIDAY), "takes no dates"),
        (week.request(Mode.BACKFILL, date(2026, 10, 1), date(2026, 10, 5)), "is in the future"),
        (week.request(Mode.BACKFILL, tomorrow), "is in the future"),
        (JobRequest(Mode.REPLAY, (SMALL,), MONDAY, FRIDAY), "needs a reason"),
        (week.request(Mode.BACKFILL, MONDAY, streams=(snapshot,)), "is only a snapshot of today; mode=poll gives"),
        (week.request(Mode.BACKFILL, MONDAY, keys=("CNMS", "AAPL")), "has no key AAPL; its keys are facilities: CNMS"),
        (week.request(Mode.BACKFILL, date(2009, 1, 1), date(2009, 2, 1)), "begins on 2009-08-03"),
        (week.request(Mode.BACKFILL, MONDAY, run_id="spaces are not allowed"), "run_id"),
        (week.request(Mode.BACKFILL, MONDAY, run_id="x" * 201), "run_id"),
        (week.request(Mode.BACKFILL, MONDAY, run_id="a/b"), "run_id"),
    ]
    for request, words in cases:
        said = refused(week, request)
        assert words in said, (request, said)
        assert said.endswith((".", "them.")) or said[-1] == ".", said


# --- chunks


def test_a_backfill_asks_for_every_weekday_of_the_range_newest_first(desk: Desk) -> None:
    """A holiday is asked for once, as a calendar may be wrong, and only for one file; a weekend never."""
    sunday, labor_day = date(2026, 9, 6), date(2026, 9, 7)
    days = [date(2026, 9, 8), labor_day, date(2026, 9, 4)]
    desk.cdn.publish(days[0])
    desk.cdn.publish(days[2])
    verdicts = desk.backfill(date(2026, 9, 4), date(2026, 9, 8))
    assert [verdict.session_date for verdict in verdicts] == days
    assert all(verdict.outcome is Outcome.SUCCESS for verdict in verdicts)
    assert desk.cdn.asked(day=labor_day) == [name("CNMS", labor_day)]
    assert desk.cdn.asked(day=sunday) == []
    assert desk.held_days() == {days[0], days[2]}
    assert desk.pending() == {}
    assert desk.checkpoint() is None


def test_a_day_that_the_calendar_calls_closed_is_held_where_the_upstream_has_it(desk: Desk) -> None:
    labor_day = date(2026, 9, 7)
    desk.cdn.publish(labor_day, {"AAPL": (1, 0, 2)})
    desk.backfill(labor_day)
    assert desk.held_days() == {labor_day}


def test_a_backfill_never_reaches_beyond_today_in_the_upstreams_own_zone(week: Desk) -> None:
    """Late on Friday in New York it is Saturday in Greenwich and in Seoul."""
    week.at(ny(THURSDAY, 23, 0))
    with pytest.raises(JobRefused, match="the newest session can be 2026-09-17"):
        week.backfill(WEDNESDAY, FRIDAY)
    verdicts = week.backfill(WEDNESDAY, THURSDAY)
    assert [verdict.session_date for verdict in verdicts] == [THURSDAY, WEDNESDAY]
    week.replay(WEDNESDAY, FRIDAY)
    assert week.cdn.asked(day=FRIDAY) == []


def test_a_session_that_is_missing_makes_a_backfill_partial_and_stays_pending(week: Desk) -> None:
    del week.cdn.files[name("CNMS", WEDNESDAY)]
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY)
    verdicts = week.do(request)
    assert Counter(verdict.outcome for verdict in verdicts) == {Outcome.SUCCESS: 4, Outcome.PARTIAL: 1}
    assert jobs.conclude(week.url, request.name)[0] is Outcome.PARTIAL
    assert list(week.pending("not_published")) == ["CNMS/2026-09-16"]


def test_keys_limit_a_backfill_and_a_replay(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    desk.backfill(TUESDAY, keys=("FNSQ", "FORF"))
    assert desk.cdn.asked() == [name("FNSQ", TUESDAY), name("FORF", TUESDAY)]
    (verdict,) = desk.replay(TUESDAY, keys=("FORF",))
    assert verdict.counts.read == 3


def test_a_poll_of_keys_asks_for_the_newest_of_just_those(desk: Desk) -> None:
    for day in (MONDAY, TUESDAY):
        desk.cdn.publish(day)
    desk.at(ny(TUESDAY, 19, 40))
    request = JobRequest(Mode.POLL, (desk.stream,), None, None, keys=("FNSQ",), run_id="just-those")
    (verdict,) = desk.do(request)
    assert verdict.status is SUCCESS
    assert desk.cdn.asked() == [name("FNSQ", TUESDAY)]
    assert desk.checkpoint() is None
    desk.at(ny(TUESDAY, 9, 0))
    desk.cdn.forget()
    desk.do(replace(request, run_id="in-the-morning"))
    assert desk.cdn.asked() == [name("FNSQ", MONDAY)]


def test_a_backfill_runs_beside_the_poll_of_its_stream(desk: Desk) -> None:
    desk.cdn.publish(MONDAY)
    desk.cdn.publish(TUESDAY)
    request = desk.request(Mode.BACKFILL, MONDAY)
    desk.begin(request)
    chunk = desk.claimed(Mode.BACKFILL, request.name)
    assert desk.poll().status is SUCCESS
    desk.settle(chunk, PENDING)
    assert desk.work_off(request)[-1].status is SUCCESS
    assert desk.held_days() == {MONDAY, TUESDAY}
    assert desk.checkpoint() == TUESDAY


# --- planning


def test_planning_goes_on_where_it_ended(week: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "BATCH", 7)
    request = week.request(Mode.BACKFILL, date(2026, 7, 1), FRIDAY, run_id="long")
    jobs.start(week.url, request)
    real, batches = jobs._write, []

    def write(*arguments: Any) -> int:
        batches.append(arguments[3])
        if len(batches) == 4:
            raise ConnectionError("killed while planning")
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_write", write)
        with pytest.raises(ConnectionError):
            jobs.plan(week.url, request, SMALL)
    assert len(week.cycles()) == 21
    # What was planned may be worked already; the run is not over, though nothing of it is open.
    week.sql(
        "update collect.cycles set cycle_status = 'SUCCESS', is_complete = true, outcome = 'success',"
        " finished_at = now()"
    )
    assert jobs.conclude(week.url, "long")[0] is None
    assert jobs.plan(week.url, request, SMALL) == 58 - 21
    assert jobs.plan(week.url, request, SMALL) == 0
    days = [row["session_date"] for row in week.cycles()]
    assert days == sorted(days, reverse=True)
    assert len(set(days)) == len(days) == 58
    assert run_row(week)["total_chunks"] == 58


def test_two_that_plan_at_once_write_every_chunk_once(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, date(2026, 1, 1), FRIDAY, run_id="twice")
    barrier = threading.Barrier(4)

    def begin() -> None:
        barrier.wait(10)
        week.begin(request)

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    days = [row["session_date"] for row in week.cycles()]
    assert len(days) == len(set(days)) == run_row(week)["total_chunks"] == 187


def test_a_large_plan_is_written_with_flat_memory(week: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty years of days in batches of a hundred: what is held at a time is one batch."""
    monkeypatch.setattr(jobs, "BATCH", 100)
    stream = replace(SMALL, calendar="DAILY", first_session=date(1966, 1, 1))
    week.stream = stream

    def peak(years: int) -> int:
        request = week.request(Mode.BACKFILL, date(2026 - years, 9, 1), FRIDAY, run_id=f"years-{years}")
        jobs.start(week.url, request)
        tracemalloc.start()
        try:
            assert jobs.plan(week.url, request, stream) > 360 * years
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)
    assert peak(30) < 2 * peak(3)


# --- working together


def test_two_workers_on_one_run_do_each_chunk_once(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY)
    week.begin(request)
    barrier = threading.Barrier(3)
    done: list[Any] = []

    def work() -> None:
        barrier.wait(10)
        done.extend(week.work_off(request, waiting=False))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(verdict.session_date for verdict in done) == list(WEEK)
    assert Counter(week.cdn.asked()) == {name("CNMS", day): 1 for day in WEEK}
    assert {row["attempt"] for row in week.cycles()} == {1}
    assert jobs.conclude(week.url, request.name)[0] is Outcome.SUCCESS


def test_a_stopped_worker_gives_its_chunk_back_and_the_run_goes_on(desk: Desk) -> None:
    desk.cdn.publish(TUESDAY)
    request = desk.request(Mode.BACKFILL, TUESDAY)
    desk.begin(request)
    points: list[str] = []
    flag = {"signal": points.append, "stop": lambda: points.count("stored") >= 3}
    (verdict,) = desk.work_off(request, waiting=False, most=1, **flag)
    assert (verdict.status, verdict.is_stopped) == (PENDING, True)
    assert desk.cycle()["failed_attempts"] == 0
    assert desk.work_off(request)[-1].status is SUCCESS
    assert Counter(desk.cdn.asked()) == {name(facility, TUESDAY): 1 for facility in FACILITIES}


def test_progress_says_how_far_a_run_is_and_where_it_goes_on(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY)
    week.begin(request)
    state = jobs.progress(week.url, request.name)
    assert (state.total, state.done, state.open, state.last_good) == (5, 0, 5, None)
    assert state.restart_at == f"{request.name}/2026-09-18"
    from include.engine import cycle

    for _ in range(2):
        cycle.work(week.worker(), SMALL, Mode.BACKFILL, request.name)
    state = jobs.progress(week.url, request.name)
    assert (state.done, state.open, state.rows_new, state.rows_read) == (2, 3, 4, 4)
    assert state.last_good == f"{request.name}/2026-09-17"
    assert state.words == "2 of 5 chunks done, 3 waiting; goes on at 2026-09-16"
    assert jobs.conclude(week.url, request.name)[0] is None
    assert jobs.progress(week.url, request.name, "finra.another").total == 0


def test_a_run_of_which_every_chunk_failed_has_failed(week: Desk) -> None:
    week.cdn.trouble("CNMS", MONDAY, *[Trouble(503)] * 12)
    request = week.request(Mode.BACKFILL, MONDAY)
    assert week.do(request)[-1].status is FAILED
    assert jobs.conclude(week.url, request.name)[0] is Outcome.FAILED_RETRIABLE
    assert run_row(week)["outcome"] == "failed_retriable"


def test_a_run_of_which_every_failure_is_terminal_has_failed_for_good(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY)
    week.begin(request)
    week.sql(
        "update collect.cycles set cycle_status = 'FAILED', failure_kind = 'refused', failure_reason = 'a test',"
        " outcome = 'failed_terminal', finished_at = collect.clock() where run_id = %s",
        request.name,
    )
    assert jobs.conclude(week.url, request.name)[0] is Outcome.FAILED_TERMINAL
    assert run_row(week)["outcome"] == "failed_terminal"


@pytest.mark.parametrize("days", [(MONDAY, FRIDAY), (date(2026, 9, 12), date(2026, 9, 13))])
def test_no_run_is_over_before_every_stream_is_planned(week: Desk, days: tuple[date, date]) -> None:
    """Neither with chunks nor without any."""
    request = week.request(Mode.BACKFILL, *days)
    week.do(request)
    assert jobs.conclude(week.url, request.name)[0] is Outcome.SUCCESS
    week.sql("update collect.job_runs set streams = streams || array['finra.another'], outcome = null")
    assert jobs.conclude(week.url, request.name)[0] is None
    assert run_row(week)["outcome"] is None


def test_a_run_over_days_without_a_chunk_is_a_success_at_once(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, date(2026, 9, 12), date(2026, 9, 13))
    assert week.do(request) == []
    assert jobs.conclude(week.url, request.name)[0] is Outcome.SUCCESS


def test_a_chunk_that_is_done_is_not_planned_again_nor_asked(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY)
    week.do(request)
    before = week.cycles()
    assert jobs.plan(week.url, request, SMALL) == 0
    assert week.work_off(request) == []
    assert week.cycles() == before


def test_a_dry_run_writes_nothing_and_counts_right(desk: Desk) -> None:
    request = desk.request(Mode.BACKFILL, date(2026, 9, 4), date(2026, 9, 8), streams=(replace(STREAM),))
    lines = jobs.dry_run(desk.url, request)
    assert "3 chunks, 13 requests" in lines[1]
    assert desk.sql("select * from collect.job_runs") == []
    assert desk.cycles() == []
    desk.cdn.publish(date(2026, 9, 4))
    desk.cdn.publish(date(2026, 9, 8))
    desk.do(request)
    assert len(desk.cdn.requests) == 13
