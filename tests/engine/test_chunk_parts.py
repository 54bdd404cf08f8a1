"""A chunk of more than one lease's work is cut into parts, and is done when they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from include.contract import Ask, Chunk, CycleStatus, Mode, Outcome, Request, Span
from include.engine import chunks, jobs
from tests.engine import toy
from tests.engine.cdn import Trouble
from tests.engine.desk import MONDAY, TUESDAY, Desk

NAMES = ("a", "b", "c", "d")


def of_days(span: Span) -> Iterator[Chunk]:
    """Tuesday is more than one lease's work, Monday is not."""
    for day in (TUESDAY, MONDAY):
        parts = tuple({"day_of": day.isoformat(), "names": list(pair)} for pair in (NAMES[:2], NAMES[2:]))
        yield Chunk(f"week/{day}", day, {"day_of": day.isoformat(), "names": ["a"]}, parts if day == TUESDAY else ())


def plan(ask: Ask) -> Iterator[Request]:
    from datetime import date

    for name in ask.chunk.get("names", ()):
        yield toy.request(name, date.fromisoformat(ask.chunk["day_of"]))


@pytest.fixture
def desk(desk: Desk) -> Desk:
    toy.at(desk, toy.files("unused", plan=plan, chunks=of_days))
    for day in (MONDAY, TUESDAY):
        for name in NAMES:
            desk.cdn.files[toy.file(name, day)] = toy.lines({f"{name}-{day}": 1})
    return desk


def begin(desk: Desk) -> tuple[Any, Any]:
    request = desk.request(Mode.BACKFILL, MONDAY, TUESDAY, run_id="r")
    desk.begin(request)
    return request, lambda: jobs.progress(desk.url, "r")


def test_parts_are_cycles_of_their_own_and_progress_counts_wholes(desk: Desk) -> None:
    request, progress = begin(desk)
    slots = [(row["slot"], row["kind"]) for row in desk.cycles()]
    assert slots == [
        (f"r/week/{TUESDAY}#1", "part"),
        (f"r/week/{TUESDAY}#2", "part"),
        (f"r/week/{MONDAY}", "chunk"),
    ]
    assert desk.one("select total_chunks from collect.job_runs")["total_chunks"] == 2
    seen = [(progress().total, progress().done, progress().open)]
    for most in (1, 1, 1):
        (verdict,) = desk.work_off(request, most=most)
        assert verdict.status is CycleStatus.SUCCESS
        seen.append((progress().total, progress().done, progress().open))
    assert seen == [(2, 0, 2), (2, 0, 2), (2, 1, 1), (2, 2, 0)]
    tokens = [row["attempt"] for row in desk.cycles()]
    assert tokens == [1, 1, 1]
    assert jobs.conclude(desk.url, "r")[0] is Outcome.SUCCESS
    assert len(toy.values(desk)) == 5


def test_a_whole_with_a_failed_part_has_failed_and_only_that_part_is_opened_again(desk: Desk) -> None:
    request, progress = begin(desk)
    desk.cdn.troubles[toy.file("c", TUESDAY)].extend([Trouble(500)] * 12)
    desk.work_off(request)
    assert (progress().total, progress().done, progress().failed, progress().open) == (2, 1, 1, 0)
    assert jobs.conclude(desk.url, "r")[0] is Outcome.PARTIAL
    asked = len(desk.cdn.requests)
    assert jobs.start(desk.url, request).startswith("REOPENED")
    desk.work_off(request)
    assert (progress().done, progress().failed) == (2, 0)
    assert {name.partition("-")[0] for name in desk.cdn.asked()[asked:]} <= {"c", "d"}
    assert len(toy.values(desk)) == 5


def test_planning_a_cut_chunk_again_adds_nothing(desk: Desk) -> None:
    request, progress = begin(desk)
    desk.sql("update collect.job_runs set planned_to = null")
    assert jobs.plan(desk.url, request, desk.stream) == 0
    assert (len(desk.cycles()), progress().total) == (3, 2)


def test_a_replay_of_a_cut_chunk_reads_its_parts(desk: Desk) -> None:
    request, _ = begin(desk)
    desk.work_off(request)
    held = toy.values(desk)
    desk.sql("truncate market.toy_items")
    verdicts = desk.replay(MONDAY, TUESDAY)
    assert len(verdicts) == 3
    assert toy.values(desk) == held


def test_a_dry_run_counts_the_requests_of_all_parts(desk: Desk) -> None:
    request = desk.request(Mode.BACKFILL, MONDAY, TUESDAY, run_id="r")
    assert "2 chunks, 5 requests" in "\n".join(jobs.dry_run(desk.url, request))


def test_a_chunk_whose_name_looks_like_a_part_is_refused() -> None:
    with pytest.raises(ValueError, match="marks the parts of a chunk"):
        chunks.cut(Chunk("2024#1", TUESDAY, {}))
