"""The queue of the analysis on a real PostgreSQL: the cap, the order of claims, dead workers, and whose word counts."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pytest

from include.analysis import queue
from include.engine.db import connect
from tests.analysis.office import Office
from tests.analysis.test_analysing import ABSENT, EMPTY


def claim(office: Office) -> queue.Job | None:
    with connect(office.place.url, autocommit=True) as connection:
        return queue.claim(connection)


def numbers(office: Office, count: int) -> list[str]:
    return [office.file(n) for n in range(count)]


def test_many_workers_never_get_over_the_cap_and_no_filing_is_claimed_twice(office: Office) -> None:
    office.permit(5)
    numbers(office, 40)
    over: list[int] = []
    claimed: list[str] = []
    running, lock = [0], threading.Lock()

    def work(_: int) -> None:
        with connect(office.place.url, autocommit=True) as connection:
            for _ in range(30):
                job = queue.claim(connection)
                with lock:
                    running[0] += job is not None
                    over.append(running[0])
                if job is not None:
                    claimed.append(job.rcept_no)
                    with lock:
                        running[0] -= 1
                    assert queue.fail(connection, job, "a test", for_good=True)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(work, range(12)))
    assert max(over) <= 5
    assert len(claimed) == len(set(claimed)) == 40
    assert office.slots() == 0


def test_at_the_cap_a_claim_gives_nothing_whoever_is_at_it(office: Office) -> None:
    office.permit(2)
    numbers(office, 6)
    # Two claims that are not committed yet hold their slots already.
    with connect(office.place.url) as first, connect(office.place.url) as second:
        jobs = [queue.claim(first), queue.claim(second)]
        assert None not in jobs
        assert claim(office) is None
        first.rollback()
        third = claim(office)
        assert third is not None
        assert third.rcept_no == jobs[0].rcept_no  # type: ignore[union-attr]
        second.commit()
    assert claim(office) is None
    office.permit(3)
    assert claim(office) is not None
    office.permit(1)
    office.advance(minutes=6)
    # All three workers are dead; one may be under way now.
    assert (claim(office) is not None, claim(office), office.slots()) == (True, None, 1)


def test_claims_go_in_order_new_ones_then_what_failed_then_what_waits_for_its_document(office: Office) -> None:
    body, failed, waiting, new = numbers(office, 4)
    office.texts.found = {body: [ABSENT], failed: [EMPTY], waiting: [EMPTY]}
    office.sql("update dartbrief.analysis_cache set next_try_at = 'infinity' where rcept_no <> %s", body)
    office.submit()
    office.sql("update dartbrief.analysis_cache set next_try_at = collect.clock() where rcept_no = %s", failed)
    job = claim(office)
    assert job is not None
    with connect(office.place.url, autocommit=True) as connection:
        queue.fail(connection, job, "a test")
    office.sql("update dartbrief.analysis_cache set next_try_at = collect.clock() where rcept_no = %s", waiting)
    office.submit()
    office.sql("update dartbrief.analysis_cache set next_try_at = collect.clock() where rcept_no = %s", new)
    office.advance(minutes=5, seconds=1)
    asked = [claim(office) for _ in range(5)]
    assert [job.rcept_no if job else None for job in asked] == [waiting, new, failed, body, None]
    states = {job.rcept_no: office.status(job.rcept_no) for job in asked if job}
    assert states == {waiting: "PROCESSING", new: "PROCESSING", failed: "PROCESSING", body: "BODY_PROCESSING"}


def test_dead_workers_jobs_come_back_with_their_slots_and_stale_rows_take_none(office: Office) -> None:
    office.permit(2)
    new, late = numbers(office, 2)
    office.texts.found[late] = [ABSENT]
    office.sql("update dartbrief.analysis_cache set next_try_at = 'infinity' where rcept_no = %s", new)
    office.submit()
    office.sql("update dartbrief.analysis_cache set next_try_at = collect.clock() where rcept_no = %s", new)
    office.advance(minutes=5, seconds=1)
    assert {claim(office).rcept_no, claim(office).rcept_no} == {new, late}  # type: ignore[union-attr]
    assert office.status(late) == "BODY_PROCESSING"
    third = office.file(7)
    office.advance(minutes=4)
    # A fresh job for a document holds its slot as any other.
    assert claim(office) is None
    office.advance(seconds=61)
    first, second = claim(office), claim(office)
    assert (first.rcept_no, second.rcept_no) == (new, third)  # type: ignore[union-attr]
    assert (office.status(late), office.slots()) == ("BODY_PENDING", 2)


def test_what_the_model_was_given_is_never_claimed_again_by_time(office: Office) -> None:
    (number,) = numbers(office, 1)
    office.submit()
    (before,) = office.sql("select status, claim_token, llm_response_id, attempt from dartbrief.analysis_cache")
    for _ in range(3):
        office.advance(hours=8)
        with connect(office.place.url, autocommit=True) as connection:
            assert queue.recover(connection) == 0
        assert claim(office) is None
    (after,) = office.sql("select status, claim_token, llm_response_id, attempt from dartbrief.analysis_cache")
    assert (before, office.made()) == (after, {number: 1})


def test_rows_that_another_wrote_hold_slots_where_they_are_under_way_and_come_back_where_they_are_stale(
    office: Office,
) -> None:
    office.permit(2)
    stale, busy, waiting, third = numbers(office, 4)
    office.sql(
        "update dartbrief.analysis_cache set status = 'PROCESSING', updated_at = collect.clock() - interval '6 minutes'"
        " where rcept_no = %s",
        stale,
    )
    office.sql(
        "update dartbrief.analysis_cache set status = 'PROCESSING', llm_response_id = 'resp_x', claim_token = %s,"
        " submitted_at = collect.clock() - interval '8 minutes', updated_at = collect.clock() - interval '8 minutes'"
        " where rcept_no = %s",
        uuid4(),
        busy,
    )
    # One slot is the busy one's; the other is for the stale one, which is the oldest.
    assert claim(office).rcept_no == stale  # type: ignore[union-attr]
    assert claim(office) is None
    assert {office.status(number) for number in (waiting, third)} == {"PENDING"}


def test_a_worker_whose_claim_was_taken_can_change_nothing(office: Office) -> None:
    numbers(office, 1)
    dead = claim(office)
    office.advance(minutes=5, seconds=1)
    living = claim(office)
    assert dead is not None
    assert living is not None
    assert living.rcept_no == dead.rcept_no
    flight = queue.InFlight(dead.rcept_no, dead.token, "resp_x", None, None)
    with connect(office.place.url, autocommit=True) as connection:
        assert begin(connection, dead) is None
        assert not queue.submitted(connection, dead, "resp_x")
        assert not queue.fail(connection, dead, "a test")
        assert not queue.put_back(connection, dead, "a test")
        assert queue.await_body(connection, dead, "a test", is_absent=True) is None
        assert queue.lose(connection, flight) is None
        assert not queue.complete(connection, flight, summary="s", points=["p"], sentiment="neutral", model="m")
        assert begin(connection, living) == f"resp_{living.rcept_no}_1"


def test_a_claim_that_is_over_is_not_submitted_even_where_nobody_took_it(office: Office) -> None:
    numbers(office, 1)
    job = claim(office)
    assert job is not None
    office.advance(minutes=5, seconds=1)
    with connect(office.place.url, autocommit=True) as connection:
        assert begin(connection, job) is None


def begin(connection: object, job: queue.Job) -> str | None:
    return queue.begin_submit(
        connection,  # type: ignore[arg-type]
        job,
        own_id=True,
        kind="other",
        prompt="other/1",
        length=1,
        reading="document",
        fetches=[],
    )


@pytest.mark.parametrize(("days_ago", "is_read"), [(0, True), (7, True), (8, False), (400, False)])
def test_what_was_filed_long_before_it_was_found_is_not_analysed_by_itself(
    office: Office, days_ago: int, is_read: bool
) -> None:
    day = office.place.now().date() - timedelta(days=days_ago)
    number = office.file(1, day=f"{day}")
    there = office.sql("select 1 from dartbrief.analysis_cache where rcept_no = %s", number)
    assert bool(there) == is_read


def test_what_an_operator_asks_for_waits_behind_what_comes_in(office: Office) -> None:
    office.permit(60, 0)
    old, given_up = office.file(1, day="2025-03-03"), office.file(2, day="2026-09-16")
    office.sql(
        "update dartbrief.analysis_cache set status = 'FAILED', is_permanent = true where rcept_no = %s", given_up
    )
    with connect(office.place.url, autocommit=True) as connection:
        days = (office.place.now() - timedelta(days=900)).date(), office.place.now().date()
        assert queue.ask_for(connection, *days) == 2
        assert queue.ask_for(connection, *days) == 0
    office.advance(minutes=1)
    new = office.file(3)
    asked = [claim(office) for _ in range(4)]
    assert [job.rcept_no if job else None for job in asked] == [new, old, given_up, None]


def test_a_new_prompt_reads_again_and_the_old_result_is_kept_until_then_and_after(office: Office) -> None:
    number = office.file(1)
    office.submit()
    office.advance(seconds=25)
    office.poll()
    first = office.row(number)
    day = office.place.now().date()
    with connect(office.place.url, autocommit=True) as connection:
        assert queue.read_again(connection, day, day, "1") == 0
        assert queue.read_again(connection, day, day, "2") == 1
    waiting = office.row(number)
    assert (waiting["status"], waiting["summary"]) == ("PENDING", first["summary"])
    office.submit()
    assert office.row(number)["prompt_version"] == first["prompt_version"]
    office.advance(seconds=25)
    office.poll()
    (kept,) = office.sql("select * from dartbrief.analysis_history")
    assert (kept["rcept_no"], kept["summary"], kept["attempt"]) == (number, first["summary"], 2)
    assert (kept["prompt_version"], kept["completed_at"]) == (first["prompt_version"], first["completed_at"])
    again = office.row(number)
    assert (again["status"], again["attempt"], office.made()) == ("COMPLETED", 2, {number: 2})
