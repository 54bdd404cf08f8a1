"""Lists with pages: within the budgets of a slice and of a day, over slices and windows, and whole or not at all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from include.contract import Answer, Ask, Budget, CycleStatus, HostGroup, Mode, Outcome, Quota, Request, Stream
from tests.engine import toy
from tests.engine.cdn import Trouble
from tests.engine.desk import TUESDAY, WEDNESDAY, Crash, Desk, crashing_at, ny

SUCCESS, PENDING, BUDGET, FAILED = (
    CycleStatus.SUCCESS,
    CycleStatus.PENDING,
    CycleStatus.BUDGET_EXHAUSTED,
    CycleStatus.FAILED,
)


def page_request(day: date, number: int, own_units: bool = False) -> Request:
    """One page of a day's list: all of one unit, or each its own."""
    key = f"list/{day}/{number}"
    return Request(
        key=key,
        url=f"https://toy.example/{toy.file(f'list{number}', day)}",
        unit=key if own_units else f"list/{day}",
        session_date=day,
        kind="list",
    )


def detail_request(day: date, name: str) -> Request:
    """What a list leads to."""
    key = f"detail/{day}/{name}"
    return Request(
        key=key, url=f"https://toy.example/{toy.file(name, day)}", unit=key, session_date=day, required=False
    )


def head_of(answer: Answer) -> Mapping[str, Any]:
    """The first line of a page says how many there are and which details it leads to."""
    with answer.body.open() as body:
        return json.loads(body.readline()).get("list", {})


def listing(own_units: bool = False, **more: Any) -> Stream:
    """A stream of one list a day."""

    def plan(ask: Ask) -> Iterator[Request]:
        for day in (*ask.sessions, *ask.closed):
            yield page_request(day, int(ask.cursor.get("next", 0)) if own_units else 0, own_units)
        for key in ask.pending:
            kind, day, name = key.split("/")
            if kind == "list":
                yield page_request(date.fromisoformat(day), int(name), own_units)
            else:
                yield detail_request(date.fromisoformat(day), name)

    def follow(request: Request, answer: Answer) -> Sequence[Request]:
        kind, day, number = request.key.split("/")
        if kind != "list":
            return ()
        head, at = head_of(answer), date.fromisoformat(day)
        pages = [page_request(at, int(number) + 1, own_units)] if int(number) + 1 < head["pages"] else []
        return [*pages, *(detail_request(at, name) for name in head.get("details", ()))]

    def cursor_after(request: Request, answer: Answer) -> Mapping[str, Any] | None:
        kind, _, number = request.key.split("/")
        if not own_units or kind != "list":
            return None
        return {"next": int(number) + 1}

    def parse(unit: Any) -> Any:
        class Without:
            def __init__(self, answer: Answer) -> None:
                self.answer = answer

            def open(self) -> Any:
                stream = self.answer.body.open()
                if unit.key.startswith("list/"):
                    stream.readline()
                return stream

        answers = tuple(replace(answer, body=Without(answer)) for answer in unit.answers)
        return toy.parse_into(toy.ITEMS)(replace(unit, answers=answers))

    settings: dict[str, Any] = {
        "plan": plan,
        "follow": follow,
        "cursor_after": cursor_after,
        "parse": parse,
        "budget": Budget(),
    }
    return toy.files("unused", **{**settings, **more})


def publish(
    desk: Desk, pages: int, day: date = TUESDAY, items: int = 2, details: Mapping[int, list[str]] | None = None
) -> None:
    for number in range(pages):
        head = {"list": {"pages": pages, "details": (details or {}).get(number, [])}}
        rows = {f"p{number:02}i{item:03}": number for item in range(items)}
        name = toy.file(f"list{number}", day)
        desk.cdn.files[name] = json.dumps(head).encode() + b"\n" + toy.lines(rows)
    for names in (details or {}).values():
        for name in names:
            desk.cdn.files[toy.file(name, day)] = toy.lines({f"d-{name}": 1})


@pytest.fixture
def desk(desk: Desk) -> Desk:
    return toy.at(desk, listing())


def asked(desk: Desk) -> list[str]:
    return [name.partition("-")[0] for name in desk.cdn.asked()]


def works(desk: Desk, most: int = 20, **changes: Any) -> list[Any]:
    """Slices of the window until it is over or waits."""
    verdicts = []
    for _ in range(most):
        verdict = desk.tick(**changes)
        if verdict is None:
            break
        verdicts.append(verdict)
        if verdict.status is not PENDING or verdict.next_eligible_at is not None:
            break
    return verdicts


# --- one list, one unit


def test_a_list_goes_on_over_slices_of_five_pages_and_is_applied_with_its_last(desk: Desk) -> None:
    publish(desk, 12)
    first = desk.poll()
    assert first.status is PENDING
    assert first.words.startswith("GOING ON")
    assert asked(desk) == [f"list{n}" for n in range(5)]
    assert toy.values(desk) == {}
    assert desk.cycle()["continuation_cursor"]["open"]
    second = desk.poll()
    assert (second.status, len(asked(desk)), toy.values(desk)) == (PENDING, 10, {})
    third = desk.poll()
    assert third.status is SUCCESS
    assert asked(desk) == [f"list{n}" for n in range(12)]
    assert len(toy.values(desk)) == 24
    row = desk.cycle()
    assert (row["list_page_count"], row["attempt"], row["continuation_cursor"]) == (12, 3, None)
    assert row["is_complete"]


def test_a_window_out_of_its_days_pages_hands_the_list_on_and_the_next_one_ends_it(desk: Desk) -> None:
    publish(desk, 12)
    toy.use(desk, replace(desk.stream, budget=Budget(day_list_pages=7)))
    verdicts = works(desk)
    assert verdicts[-1].status is BUDGET
    assert desk.cycle()["budget_exhausted_reason"] == "LIST_PAGE_LIMIT"
    assert len(asked(desk)) == 7
    assert toy.values(desk) == {}
    assert desk.checkpoint() is None
    publish(desk, 1, WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    verdicts = works(desk)
    assert verdicts[-1].status is SUCCESS
    assert asked(desk)[7:] == ["list0", *(f"list{n}" for n in range(7, 12))]
    assert Counter(desk.cdn.asked()).most_common(1)[0][1] == 1
    assert len(toy.values(desk)) == 24
    assert desk.checkpoint() == WEDNESDAY


def test_a_window_that_begins_with_the_days_pages_spent_asks_nothing(desk: Desk) -> None:
    publish(desk, 12)
    toy.use(desk, replace(desk.stream, budget=Budget(day_list_pages=5)))
    works(desk)
    desk.sql("update collect.cycles set window_start = window_start - interval '1 hour', slot = 'before'")
    desk.at(ny(TUESDAY, 18, 50))
    count = len(asked(desk))
    verdict = desk.poll()
    assert (verdict.status, verdict.requests) == (BUDGET, 0)
    assert len(asked(desk)) == count
    # What was handed on is handed on again.
    assert desk.cycles()[-1]["continuation_cursor"] == desk.cycles()[-2]["continuation_cursor"]


def test_a_holder_that_is_stopped_in_the_middle_of_a_list_goes_on_there(desk: Desk) -> None:
    publish(desk, 4)
    stored: list[str] = []
    verdict = desk.poll(stop=lambda: stored.count("stored") >= 2, signal=stored.append)
    assert verdict.is_stopped
    assert asked(desk) == ["list0", "list1"]
    assert desk.poll().status is SUCCESS
    assert asked(desk) == ["list0", "list1", "list2", "list3"]
    assert len(toy.values(desk)) == 8


@pytest.mark.parametrize("times", [1, 3])
def test_a_chunk_that_dies_in_the_middle_of_a_list_goes_on_there(desk: Desk, times: int) -> None:
    publish(desk, 4)
    request = desk.request(Mode.BACKFILL, TUESDAY)
    desk.begin(request)
    with crashing_at("stored", times) as dying, pytest.raises(Crash):
        desk.work_off(request, signal=dying)
    assert desk.work_off(request)[-1].status is SUCCESS
    assert asked(desk) == ["list0", "list1", "list2", "list3"]
    assert len(toy.values(desk)) == 8


def test_a_list_with_a_page_that_fails_is_not_applied_and_the_next_window_begins_it_anew(desk: Desk) -> None:
    publish(desk, 3)
    desk.cdn.troubles[toy.file("list2", TUESDAY)].extend([Trouble(500)] * 4)
    assert desk.poll().status is FAILED
    assert toy.values(desk) == {}
    desk.at(ny(TUESDAY, 18, 46))
    assert works(desk)[-1].status is SUCCESS
    assert asked(desk)[-3:] == ["list0", "list1", "list2"]
    assert len(toy.values(desk)) == 6


def test_a_quota_that_ends_in_the_middle_of_a_list_hands_the_list_on(desk: Desk) -> None:
    publish(desk, 4)
    group = HostGroup("toy", timedelta(0), quota=Quota(3, "America/New_York"))
    toy.use(desk, replace(desk.stream, host_group=group))
    verdict = desk.poll()
    assert (verdict.status, desk.cycle()["budget_exhausted_reason"]) == (BUDGET, "QUOTA")
    publish(desk, 1, WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    assert works(desk)[-1].status is SUCCESS
    assert Counter(desk.cdn.asked()).most_common(1)[0][1] == 1
    assert len(toy.values(desk)) == 8


# --- a list whose pages are units of their own


def test_pages_that_are_units_are_applied_with_their_slice_and_go_on_by_the_streams_cursor(desk: Desk) -> None:
    toy.use(desk, listing(own_units=True))
    publish(desk, 7)
    assert desk.poll().status is PENDING
    assert len(toy.values(desk)) == 10
    assert desk.cycle()["continuation_cursor"]["stream"] == {"next": 5}
    assert desk.poll().status is SUCCESS
    assert asked(desk) == [f"list{n}" for n in range(7)]
    assert len(toy.values(desk)) == 14
    assert desk.cycle()["continuation_cursor"] is None


def test_pages_that_are_units_go_on_in_the_next_window(desk: Desk) -> None:
    toy.use(desk, replace(listing(own_units=True), budget=Budget(day_list_pages=3)))
    publish(desk, 5)
    assert works(desk)[-1].status is BUDGET
    assert len(toy.values(desk)) == 6
    toy.use(desk, replace(desk.stream, budget=Budget()))
    publish(desk, 1, WEDNESDAY)
    desk.cdn.files[toy.file("list3", WEDNESDAY)] = desk.cdn.files[toy.file("list0", WEDNESDAY)]
    desk.at(ny(WEDNESDAY))
    assert works(desk)[-1].status is SUCCESS
    assert {toy.file("list3", TUESDAY), toy.file("list4", TUESDAY)} <= set(desk.cdn.asked())
    assert len([name for name in desk.cdn.asked() if f"{TUESDAY:%Y%m%d}" in name]) == 5


@pytest.mark.parametrize("point", [("claimed", 1), ("stored", 1), ("before last apply", 1)])
def test_a_window_that_dies_in_its_second_slice_leaves_the_pages_that_were_found_to_the_next(
    desk: Desk, point: tuple[str, int]
) -> None:
    toy.use(desk, listing(own_units=True))
    publish(desk, 8, details={2: ["a"]})
    assert desk.poll().status is PENDING
    with crashing_at(*point) as dying, pytest.raises(Crash):
        desk.poll(signal=dying)
    desk.at(ny(TUESDAY, 18, 46))
    desk.tick()
    assert desk.cycle()["failure_reason"] == "lease expired"
    desk.at(ny(TUESDAY, 19, 16))
    assert works(desk)[-1].status is SUCCESS
    assert Counter(asked(desk)) == Counter(["a", *(f"list{n}" for n in range(8))])
    assert len(toy.values(desk)) == 17
    assert desk.pending() == {}


@pytest.mark.parametrize("point", [("stored", 2), ("stored", 4), ("stored", 6), ("before last apply", 1)])
def test_a_chunk_of_pages_that_are_units_dies_anywhere_and_misses_nothing(desk: Desk, point: tuple[str, int]) -> None:
    toy.use(desk, listing(own_units=True))
    publish(desk, 4, details={0: ["a", "b"], 3: ["c"]})
    request = desk.request(Mode.BACKFILL, TUESDAY)
    desk.begin(request)
    with crashing_at(*point) as dying, pytest.raises(Crash):
        desk.work_off(request, signal=dying)
    assert desk.work_off(request)[-1].status is SUCCESS
    assert Counter(asked(desk)) == Counter(["list0", "list1", "list2", "list3", "a", "b", "c"])
    assert len(toy.values(desk)) == 11


# --- what a list leads to


DETAILS = {0: ["a", "b", "c"], 1: ["d", "e"]}


def test_details_are_asked_for_after_their_list_and_held_ones_are_not_asked_again(desk: Desk) -> None:
    publish(desk, 2, details=DETAILS)
    assert works(desk)[-1].status is SUCCESS
    assert asked(desk) == ["list0", "list1", "a", "b", "c", "d", "e"]
    assert len(toy.values(desk)) == 9
    assert desk.pending() == {}
    row = desk.cycle()
    assert (row["list_page_count"], row["detail_request_count"], row["detail_skipped_count"]) == (2, 5, 0)


def test_details_left_out_for_the_day_are_counted_kept_and_asked_for_by_the_next_window(desk: Desk) -> None:
    publish(desk, 2, details=DETAILS)
    toy.use(desk, replace(desk.stream, budget=Budget(day_details=3)))
    verdict = works(desk)[-1]
    assert (verdict.status, verdict.outcome) == (BUDGET, Outcome.SUCCESS)
    row = desk.cycle()
    assert (row["budget_exhausted_reason"], row["detail_request_count"], row["detail_skipped_count"]) == (
        "DETAIL_LIMIT",
        3,
        2,
    )
    assert {key: entry["why"] for key, entry in desk.pending().items()} == {
        f"detail/{TUESDAY}/d": "discovered",
        f"detail/{TUESDAY}/e": "discovered",
    }
    publish(desk, 1, WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    assert works(desk)[-1].status is SUCCESS
    assert asked(desk) == ["list0", "list1", "a", "b", "c", "list0", "d", "e"]
    assert desk.pending() == {}


def test_a_day_without_details_left_still_reads_its_lists(desk: Desk) -> None:
    publish(desk, 2, details=DETAILS)
    toy.use(desk, replace(desk.stream, budget=Budget(day_details=0)))
    assert works(desk)[-1].status is BUDGET
    assert asked(desk) == ["list0", "list1"]
    assert len(toy.values(desk)) == 4
    assert desk.cycle()["detail_skipped_count"] == 5


def test_a_list_that_failed_fails_its_window_although_a_budget_ran_out_too(desk: Desk) -> None:
    base = listing(own_units=True)

    def plan(ask: Ask) -> Iterator[Request]:
        for day in ask.sessions:
            yield from (page_request(day, number, True) for number in range(2))
        yield from base.plan(replace(ask, sessions=()))

    def follow(request: Request, answer: Answer) -> Sequence[Request]:
        return [each for each in base.follow(request, answer) if each.kind == "detail"]

    toy.use(desk, replace(base, plan=plan, follow=follow, budget=Budget(day_details=1)))
    publish(desk, 2, details={0: ["a", "b", "c"]})
    desk.cdn.troubles[toy.file("list1", TUESDAY)].extend([Trouble(500)] * 4)
    assert works(desk)[-1].status is FAILED
    row = desk.cycle()
    assert (row["failure_reason"], row["detail_skipped_count"]) == ("answers failed after the retries", 2)
    assert desk.checkpoint() is None
    assert {key.rpartition("/")[2] for key in desk.pending("discovered")} == {"b", "c"}


def test_the_days_budgets_are_summed_over_the_windows_of_one_date(desk: Desk) -> None:
    publish(desk, 2, details=DETAILS)
    toy.use(desk, replace(desk.stream, budget=Budget(day_details=3)))
    works(desk)
    desk.sql("update collect.cycles set window_start = window_start - interval '1 hour', slot = 'before'")
    desk.at(ny(TUESDAY, 18, 50))
    verdict = works(desk)[-1]
    assert verdict.status is BUDGET
    assert desk.cycle()["detail_request_count"] == 0
    assert Counter(asked(desk))["d"] == 0


def test_what_a_window_spent_that_died_counts_for_its_date(desk: Desk) -> None:
    toy.use(desk, replace(desk.stream, budget=Budget(day_details=5)))
    publish(desk, 1, details={0: ["a", "b", "c", "d", "e"]})
    with crashing_at("stored", 4) as dying, pytest.raises(Crash):
        desk.poll(signal=dying)
    desk.at(ny(TUESDAY, 18, 46))
    desk.tick()
    assert desk.cycle()["detail_request_count"] == 0
    desk.at(ny(TUESDAY, 19, 16))
    assert works(desk)[-1].status is BUDGET
    assert asked(desk) == ["list0", "a", "b", "c", "d"]
    assert sorted(desk.pending()) == [f"detail/{TUESDAY}/e"]


def test_items_are_counted_as_they_were_read_and_end_the_slice_and_the_day(desk: Desk) -> None:
    """Lines are longer than the guess from the bytes takes them for; what counts is what was read."""
    toy.use(desk, toy.files(*(f"f{n}" for n in range(8)), budget=Budget(slice_items=50, day_items=90)))
    for number in range(8):
        rows = [{"item": f"f{number}-{item:02}", "value": 1, "note": "x" * 80} for item in range(20)]
        desk.cdn.files[toy.file(f"f{number}", TUESDAY)] = toy.lines(rows)
    first = desk.poll()
    assert (first.status, len(toy.values(desk))) == (PENDING, 60)
    second = desk.poll()
    assert (second.status, len(toy.values(desk))) == (BUDGET, 100)
    assert desk.cycle()["budget_exhausted_reason"] == "ITEM_LIMIT"
    assert len(desk.cdn.requests) == 5


def test_by_default_a_day_has_50_pages_5000_items_and_300_details_and_a_slice_5_and_500() -> None:
    budget = Budget()
    assert (budget.day_list_pages, budget.day_items, budget.day_details) == (50, 5_000, 300)
    assert (budget.slice_list_pages, budget.slice_items) == (5, 500)


def test_a_detail_that_fails_makes_the_window_partial_and_is_asked_for_again(desk: Desk) -> None:
    publish(desk, 1, details={0: ["a", "b"]})
    desk.cdn.troubles[toy.file("a", TUESDAY)].extend([Trouble(500)] * 4)
    verdict = works(desk)[-1]
    assert (verdict.status, verdict.outcome) == (SUCCESS, Outcome.PARTIAL)
    assert desk.pending()[f"detail/{TUESDAY}/a"]["why"] == "failed"
    publish(desk, 1, WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    assert works(desk)[-1].outcome is Outcome.SUCCESS
    assert desk.pending() == {}


def test_a_crash_after_a_list_loses_none_of_its_details(desk: Desk) -> None:
    publish(desk, 1, details={0: ["a", "b"]})
    with crashing_at("stored", 2) as dying, pytest.raises(Crash):
        desk.poll(signal=dying)
    desk.at(ny(TUESDAY, 18, 46))
    desk.tick()
    assert desk.cycle()["failure_reason"] == "lease expired"
    desk.at(ny(TUESDAY, 19, 16))
    assert works(desk)[-1].status is SUCCESS
    assert set(toy.values(desk)) >= {"d-a", "d-b"}
    assert Counter(asked(desk))["a"] == 1


def test_a_crash_after_a_list_was_applied_in_the_middle_of_a_slice_loses_none_of_its_details(desk: Desk) -> None:
    toy.use(desk, replace(desk.stream, budget=Budget(slice_items=105)))
    publish(desk, 1, items=100, details={0: ["a", "b"]})
    with crashing_at("stored", 2) as dying, pytest.raises(Crash):
        desk.poll(signal=dying)
    # The guess from its bytes had the list applied before the first detail was asked for.
    assert len(toy.values(desk)) == 100
    desk.at(ny(TUESDAY, 18, 46))
    desk.tick()
    assert desk.cycle()["failure_reason"] == "lease expired"
    desk.at(ny(TUESDAY, 19, 16))
    assert works(desk)[-1].status is SUCCESS
    assert set(toy.values(desk)) >= {"d-a", "d-b"}
    assert Counter(asked(desk)) == Counter(["list0", "a", "b"])
    assert desk.pending() == {}


def test_a_list_whose_stored_bytes_are_lost_is_put_aside_and_stands_in_nobodys_way(desk: Desk) -> None:
    publish(desk, 1, details={0: ["a"]})
    with crashing_at("stored", 1) as dying, pytest.raises(Crash):
        desk.poll(signal=dying)
    stored = desk.one("select sha256 from collect.fetches")
    desk.raw.path(bytes(stored["sha256"])).write_bytes(b"not what its name says")
    desk.at(ny(TUESDAY, 18, 46))
    desk.tick()
    desk.at(ny(TUESDAY, 19, 16))
    assert works(desk)[-1].status is SUCCESS
    assert [entry["rule"] for entry in desk.quarantine(None)] == ["storage"]
    assert set(toy.values(desk)) >= {"p00i000", "d-a"}


def test_pages_whose_stored_bytes_are_lost_are_asked_for_anew(desk: Desk) -> None:
    publish(desk, 8)
    assert desk.poll().status is PENDING
    stored = desk.one("select sha256 from collect.fetches where page = 2")
    desk.raw.path(bytes(stored["sha256"])).unlink()
    assert works(desk)[-1].status is SUCCESS
    assert asked(desk) == [*(f"list{n}" for n in range(5)), *(f"list{n}" for n in range(8))]
    assert len(toy.values(desk)) == 16


def test_a_chunk_asks_anew_for_a_list_whose_stored_bytes_are_lost(desk: Desk) -> None:
    publish(desk, 1, details={0: ["a", "b"]})
    request = desk.request(Mode.BACKFILL, TUESDAY)
    desk.begin(request)
    with crashing_at("stored", 2) as dying, pytest.raises(Crash):
        desk.work_off(request, signal=dying)
    stored = desk.one("select sha256 from collect.fetches where request_key like 'list%%'")
    desk.raw.path(bytes(stored["sha256"])).unlink()
    desk.work_off(request)
    assert desk.cycle()["cycle_status"] == SUCCESS
    assert Counter(asked(desk)) == Counter(["list0", "list0", "a", "b"])
    assert len(toy.values(desk)) == 4


def test_a_key_whose_answer_was_only_stored_stays_pending_until_it_could_be_read(desk: Desk) -> None:
    publish(desk, 1, details={0: ["a", "b"]})
    for name in ("a", "b"):
        desk.cdn.troubles[toy.file(name, TUESDAY)].extend([Trouble(500)] * 4)
    works(desk)
    publish(desk, 1, WEDNESDAY)
    desk.cdn.files[toy.file("a", TUESDAY)] = b"it cannot be read"
    desk.at(ny(WEDNESDAY))
    stored: list[str] = []
    assert desk.poll(stop=lambda: stored.count("stored") >= 2, signal=stored.append).is_stopped
    assert asked(desk)[-2:] == ["list0", "a"]
    assert sorted(desk.pending()) == [f"detail/{TUESDAY}/a", f"detail/{TUESDAY}/b"]
    assert works(desk)[-1].outcome is Outcome.PARTIAL
    assert {key: row["attempts"] for key, row in desk.pending().items()} == {f"detail/{TUESDAY}/a": 2}
    assert Counter(asked(desk))["a"] == 5


def test_a_small_page_is_whole_without_a_cursor(desk: Desk) -> None:
    publish(desk, 1)
    assert desk.poll().status is SUCCESS
    assert desk.cycle()["continuation_cursor"] is None
    (verdict,) = desk.replay(TUESDAY)
    assert verdict.counts.unchanged == 2
