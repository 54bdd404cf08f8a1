"""Filings analysed through the model's own client against its stand-in: every way in which it goes wrong, and kills at
every step."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from include.analysis import prompts
from include.analysis.body import Found
from include.analysis.model import Looker
from tests.analysis.office import TEXT, Killed, Office

ABSENT = Found("absent", why="014")
EMPTY = Found("empty", why="there is no text in it")


def killed_at(step: str) -> Callable[[str], None]:
    """Kills the worker at a step, once."""
    left = [step]

    def signal(reached: str) -> None:
        if left and reached == left[0]:
            left.clear()
            raise Killed

    return signal


def settle(office: Office, minutes: int, step: int = 1) -> None:
    """Workers and poll loop for so many minutes, a step at a time."""
    for _ in range(0, minutes, step):
        office.submit()
        office.advance(seconds=30 * step)
        office.poll()
        office.advance(seconds=30 * step)


def test_a_filing_is_read_once_and_what_the_model_said_of_it_is_kept(office: Office) -> None:
    number = office.file(1)
    assert office.status(number) == "PENDING"
    assert office.submit() == ["submitted"]
    row = office.row(number)
    assert (row["status"], row["llm_response_id"], row["doc_length"]) == (
        "PROCESSING",
        f"resp_{number}_1",
        len(TEXT.text),
    )
    assert office.poll().outcomes == {"waiting": 1}
    office.advance(seconds=25)
    assert office.poll().outcomes == {"completed": 1}
    row = office.row(number)
    assert row["status"] == office.shown(number) == "COMPLETED"
    assert row["summary"] == "가온전자 회사가 '단일판매ㆍ공급계약체결' 공시를 냈습니다."
    assert row["key_points_json"].split("|||") == ["결정된 내용과 금액을 공시했습니다.", "일정은 원문에 있습니다."]
    assert (row["model"], row["prompt_version"], row["kind"]) == (
        "stand-in-8b",
        f"contract/{prompts.VERSION}",
        "contract",
    )
    assert (office.slots(), office.made(), office.submit()) == (0, {number: 1}, [])


@pytest.mark.parametrize("outcome", ["incomplete", "cut", "invalid", "english", "failed"])
def test_an_answer_that_is_none_is_asked_for_again_and_at_the_third_it_is_unavailable(
    office: Office, outcome: str
) -> None:
    good, bad = office.file(1), office.file(2)
    office.switch("outcome", rcept_no=good, outcomes=[outcome, "good"])
    office.switch("outcome", rcept_no=bad, outcomes=[outcome] * 3)
    office.submit()
    office.advance(seconds=25)
    assert office.poll().outcomes == {"failed": 2}
    assert (office.shown(good), office.row(good)["retry_count"], office.slots()) == ("FAILED", 1, 0)
    assert office.submit() == []
    office.advance(seconds=61)
    assert office.submit() == ["submitted"] * 2
    office.advance(seconds=25)
    assert office.poll().outcomes == {"completed": 1, "failed": 1}
    office.advance(seconds=240)
    assert office.submit() == []
    office.advance(seconds=61)
    office.submit()
    office.advance(seconds=25)
    office.poll()
    assert (office.shown(good), office.shown(bad), office.row(bad)["retry_count"]) == ("COMPLETED", "UNAVAILABLE", 3)
    assert office.row(bad)["summary"] is None
    office.advance(days=2)
    assert (office.submit(), office.made()) == ([], {good: 2, bad: 3})


def test_a_job_that_stays_queued_for_ever_is_ended_after_ten_minutes_three_times(office: Office) -> None:
    number = office.file(1)
    office.switch("outcome", outcome="stuck")
    settle(office, minutes=8, step=4)
    assert (office.status(number), office.slots()) == ("PROCESSING", 1)
    settle(office, minutes=60, step=6)
    assert (office.shown(number), office.made(), office.slots()) == ("UNAVAILABLE", {number: 3}, 0)
    assert "10 minutes" in office.row(number)["error"]


def test_what_a_restarted_server_forgot_is_given_to_it_once_more_for_each_loss(office: Office) -> None:
    numbers = [office.file(n) for n in range(3)]
    office.submit()
    office.switch("restart")
    assert office.poll().outcomes == {"lost": 3}
    assert office.slots() == 0
    office.submit()
    office.advance(seconds=25)
    assert office.poll().outcomes == {"completed": 3}
    for number in numbers:
        row = office.row(number)
        assert (row["status"], row["retry_count"], row["lost_count"], row["attempt"]) == ("COMPLETED", 0, 1, 2)


def test_a_server_that_always_forgets_ends_in_unavailable(office: Office) -> None:
    number = office.file(1)
    for _ in range(12):
        office.submit()
        office.switch("restart")
        office.poll()
        office.advance(minutes=16)
    assert (office.shown(number), office.slots()) == ("UNAVAILABLE", 0)
    assert office.made()[number] <= 8


@pytest.mark.parametrize("fault", ["503", "refused"])
def test_while_the_server_is_away_nothing_is_counted_submitters_pause_and_it_is_told_since_when(
    office: Office, fault: str
) -> None:
    numbers = [office.file(n) for n in range(3)]
    backend = office.backend()
    if fault == "503":
        office.switch("is_away")
    else:
        backend = replace(backend, url="http://127.0.0.1:1/v1")
    assert office.submit(backend=backend) == ["model away"]
    (control,) = office.sql("select * from dartbrief.analysis_control")
    assert control["away_since"] is not None
    office.advance(minutes=40)
    assert office.submit(backend=backend) == ["model away"]
    (told,) = office.sql("select text from ops.incidents where incident_key = 'away/model' and closed_at is null")
    assert control["away_since"].isoformat(timespec="seconds") in told["text"]
    assert {office.status(number) for number in numbers} == {"PENDING"}
    assert {office.row(number)["retry_count"] for number in numbers} == {0}
    office.switch("is_away", **{"is": False})
    office.advance(minutes=1)
    assert office.submit() == ["submitted"] * 3
    assert office.sql("select 1 from ops.incidents where incident_key = 'away/model' and closed_at is null") == []
    office.advance(seconds=25)
    assert office.poll().outcomes == {"completed": 3}
    assert office.made() == dict.fromkeys(numbers, 1)


def test_a_server_that_goes_away_keeps_what_it_was_given(office: Office) -> None:
    number = office.file(1)
    office.submit()
    office.switch("is_away")
    office.advance(minutes=30)
    assert office.poll().outcomes == {"away": 1}
    assert (office.status(number), office.row(number)["llm_response_id"]) == ("PROCESSING", f"resp_{number}_1")
    office.switch("is_away", **{"is": False})
    assert office.poll().outcomes == {"completed": 1}
    assert office.made() == {number: 1}


def test_a_full_queue_counts_for_nobody(office: Office) -> None:
    numbers = [office.file(n) for n in range(9)]
    office.switch("lanes", value=1)
    office.switch("queue", value=2)
    settle(office, minutes=12)
    assert {office.status(number) for number in numbers} == {"COMPLETED"}
    assert {office.row(number)["retry_count"] for number in numbers} == {0}
    assert office.made() == dict.fromkeys(numbers, 1)


def test_an_answer_to_the_submit_that_is_lost_on_the_way_makes_no_second_job(office: Office) -> None:
    number = office.file(1)
    office.running.fault(match={"host": "llm.sandbox.invalid", "kind": "submit"}, truncate=10)
    assert office.submit()[0] in ("model away", "failed")
    settle(office, minutes=3)
    assert (office.status(number), office.made()) == ("COMPLETED", {number: 1})


def test_a_backend_without_names_may_make_a_second_job_and_counts_it(office: Office) -> None:
    office.own_ids = False
    office.switch("takes_names", **{"is": False})
    first = office.file(1)
    office.submit()
    office.advance(seconds=25)
    office.poll()
    assert (office.status(first), office.row(first)["lost_count"]) == ("COMPLETED", 0)
    second = office.file(2)
    office.running.fault(match={"host": "llm.sandbox.invalid", "kind": "submit"}, truncate=10)
    office.submit()
    settle(office, minutes=3)
    assert (office.status(second), office.row(second)["lost_count"]) == ("COMPLETED", 1)


def test_a_server_that_is_too_slow_at_the_submit_is_a_failure_and_its_job_is_ended(office: Office) -> None:
    number = office.file(1)
    office.running.fault(match={"host": "llm.sandbox.invalid", "kind": "submit"}, slow_seconds=0.6)
    backend = replace(office.backend(), timeout=timedelta(seconds=0.2))
    assert office.submit(backend=backend) == ["failed"]
    assert (office.shown(number), office.row(number)["retry_count"]) == ("FAILED", 1)
    settle(office, minutes=3)
    assert (office.status(number), office.row(number)["retry_count"]) == ("COMPLETED", 1)


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 502},
        {"status": 504, "apply": True},
        {"status": 530},
        {"status": 302, "headers": {"location": "/login"}},
        {"html_block_page": True, "status": 200},
        {"html_block_page": True, "status": 200, "apply": True},
    ],
)
def test_what_a_gateway_says_in_the_models_place_costs_no_filing_a_try_and_makes_no_second_job(
    office: Office, fault: dict[str, object]
) -> None:
    number = office.file(1)
    office.running.fault(match={"host": "llm.sandbox.invalid", "kind": "submit"}, **fault)
    assert office.submit() == ["model away"]
    assert office.sql("select 1 from ops.incidents where incident_key = 'away/model' and closed_at is null") != []
    settle(office, minutes=4)
    row = office.row(number)
    assert (row["status"], row["retry_count"], office.slots()) == ("COMPLETED", 0, 0), row
    assert (office.made(), row["lost_count"] <= 1) == ({number: 1}, True)


def test_a_host_that_takes_no_connection_is_away_and_not_slow(office: Office) -> None:
    number = office.file(1)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            # What is in the way of others: nobody takes these two up either.
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        there = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        backend = replace(office.backend(), url=there, timeout=timedelta(seconds=0.3))
        assert office.submit(backend=backend) == ["model away"]
    assert (office.status(number), office.row(number)["retry_count"]) == ("PENDING", 0)


def test_a_job_that_is_done_as_its_end_is_asked_for_is_done(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    number = office.file(1)
    office.switch("seconds", value=700)
    office.submit()
    office.advance(seconds=610)
    cancel = Looker.cancel

    async def late(self: Looker, name: str) -> bool:
        office.advance(seconds=120)
        return await cancel(self, name)

    monkeypatch.setattr(Looker, "cancel", late)
    assert office.poll().outcomes == {"completed": 1}
    assert (office.status(number), office.row(number)["retry_count"], office.made()) == ("COMPLETED", 0, {number: 1})


def test_a_job_that_can_neither_be_looked_at_nor_ended_is_over_after_ten_minutes_all_the_same(office: Office) -> None:
    number = office.file(1)
    office.submit()
    office.running.fault(match={"host": "llm.sandbox.invalid", "kind": "look"}, status=500, n=None)
    office.advance(minutes=9)
    assert office.poll().outcomes == {"waiting": 1}
    office.advance(minutes=2)
    assert office.poll().outcomes == {"failed": 1}
    assert (office.shown(number), office.row(number)["retry_count"], office.slots()) == ("FAILED", 1, 0)


# --- the document


def test_a_document_that_is_absent_is_waited_for_by_five_minutes_for_a_day(office: Office) -> None:
    number = office.file(1)
    office.texts.found[number] = [ABSENT]
    assert office.submit() == ["no document"]
    assert (office.shown(number), office.row(number)["body_retry_count"], office.slots()) == ("BODY_PENDING", 1, 0)
    office.advance(seconds=270)
    assert office.submit() == []
    office.advance(seconds=31)
    for tries, hours in enumerate((0, 3, 8, 12, 0.2), start=2):
        office.advance(hours=hours, seconds=301)
        assert office.submit() == ["no document"]
        assert (office.shown(number), office.row(number)["body_retry_count"]) == ("BODY_PENDING", tries)
    office.advance(minutes=30)
    assert office.submit() == ["no document"]
    row = office.row(number)
    assert timedelta(hours=24) < office.place.now() - row["created_at"] < timedelta(hours=24, minutes=40)
    assert (office.shown(number), row["retry_count"], office.made()) == ("UNAVAILABLE", 0, {})
    office.advance(days=3)
    assert office.submit() == []


def test_a_document_that_comes_after_hours_is_read_then(office: Office) -> None:
    number = office.file(1)
    office.texts.found[number] = [ABSENT, ABSENT, ABSENT, TEXT]
    for _ in range(3):
        assert office.submit() == ["no document"]
        office.advance(minutes=5, seconds=1)
    assert office.submit() == ["submitted"]
    assert office.status(number) == "PROCESSING"
    office.advance(seconds=25)
    office.poll()
    row = office.row(number)
    assert (row["status"], row["body_retry_count"], row["retry_count"]) == ("COMPLETED", 3, 0)


def test_a_document_without_text_is_looked_at_by_the_minute_for_an_hour(office: Office) -> None:
    number = office.file(1)
    office.texts.found[number] = [EMPTY]
    for tries in range(1, 61):
        assert office.submit() == ["no text"], tries
        assert office.submit() == []
        assert office.row(number)["body_retry_count"] == tries
        assert office.shown(number) == ("PENDING" if tries < 60 else "UNAVAILABLE")
        office.advance(seconds=61)
    assert (office.submit(), office.made()) == ([], {})


def test_who_cannot_be_asked_for_a_document_now_costs_nobody_a_try(office: Office) -> None:
    number = office.file(1)
    until = office.place.now() + timedelta(minutes=10)
    office.texts.found[number] = [Found("away", why="blocked", until=until), TEXT]
    assert office.submit() == ["put back"]
    row = office.row(number)
    assert (row["status"], row["retry_count"], row["body_retry_count"]) == ("PENDING", 0, 0)
    office.advance(minutes=9)
    assert office.submit() == []
    office.advance(minutes=2)
    assert office.submit() == ["submitted"]


def test_over_ninety_seconds_is_a_failure(office: Office) -> None:
    number = office.file(1)
    worker = office.worker()
    ticks = iter([0.0, 91.0])
    worker.clock = lambda: next(ticks)
    assert worker.one() == "failed"
    assert (office.shown(number), office.row(number)["retry_count"], office.made()) == ("FAILED", 1, {})


def test_a_worker_that_was_frozen_before_the_submit_asks_nobody(office: Office) -> None:
    office.file(1)
    worker = office.worker()
    ticks = iter([0.0, 1.0, 91.0])
    worker.clock = lambda: next(ticks)
    assert (worker.one(), office.made()) == ("failed", {})


# --- kills


@pytest.mark.parametrize("step", ["claimed", "looked", "begun", "sent", "submitted"])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_worker_that_is_killed_at_any_step_loses_nothing_and_nothing_is_analysed_twice(
    office: Office, step: str, is_late: bool
) -> None:
    number = office.file(1)
    if is_late:
        office.texts.found[number] = [ABSENT, TEXT]
        office.submit()
        office.advance(minutes=5, seconds=1)
    with pytest.raises(Killed):
        office.submit(killed_at(step))
    settle(office, minutes=12)
    row = office.row(number)
    assert (row["status"], row["retry_count"], office.slots()) == ("COMPLETED", 0, 0), row
    assert office.made() == {number: 1}
    assert row["lost_count"] == (1 if step == "begun" else 0)


def test_a_job_that_reaches_the_model_after_a_look_that_did_not_find_it_is_not_given_to_it_twice(
    office: Office,
) -> None:
    number = office.file(1)
    looked, reached = threading.Event(), threading.Event()

    def answered(state: str) -> None:
        looked.set()
        assert reached.wait(30)

    def look() -> None:
        office.poll(answered, by="another loop")

    loop = threading.Thread(target=look)

    def between(step: str) -> None:
        if step == "begun":
            loop.start()
            assert looked.wait(30)

    office.submit(between)
    reached.set()
    loop.join()
    row = office.row(number)
    assert (row["status"], row["lost_count"], office.slots()) == ("PROCESSING", 0, 1), row
    settle(office, minutes=2)
    assert (office.status(number), office.made()) == ("COMPLETED", {number: 1})


def test_a_poll_loop_that_is_killed_before_a_verdict_leaves_it_to_the_next(office: Office) -> None:
    number = office.file(1)
    office.submit()
    office.advance(seconds=25)
    with pytest.raises(Killed):
        office.poll(killed_at("completed"))
    assert office.status(number) == "PROCESSING"
    assert office.poll().outcomes == {"completed": 1}
    assert office.made() == {number: 1}


def test_of_two_poll_loops_one_has_the_word(office: Office) -> None:
    office.file(1)
    office.submit()
    office.advance(seconds=25)
    seen: list[dict[str, int]] = []

    def meanwhile(state: str) -> None:
        if not seen:
            seen.append({})
            seen[0] = office.poll(by="another").outcomes

    assert office.poll(lambda state: run_apart(meanwhile, state)).outcomes == {"another's": 1}
    assert seen == [{"completed": 1}]
    assert office.sql("select 1 from dartbrief.analysis_history") == []


def run_apart(work: Callable[[str], None], state: str) -> None:
    """In a thread of its own, as a loop is running in this one."""
    import threading

    thread = threading.Thread(target=work, args=(state,))
    thread.start()
    thread.join()


def test_an_answer_of_an_earlier_attempt_is_not_taken_for_that_of_a_later_one(office: Office) -> None:
    number = office.file(1)
    office.submit()
    (flight,) = office.sql("select claim_token, llm_response_id from dartbrief.analysis_cache")
    office.switch("restart")
    office.poll()
    office.submit()
    (hit,) = office.sql(
        "select dartbrief.complete(%s, %s, %s, 'old', 'p', 'neutral', 'm') as hit",
        number,
        flight["claim_token"],
        flight["llm_response_id"],
    )
    assert (hit["hit"], office.status(number)) == (False, "PROCESSING")
