"""What a source may say beside plan and parse: descriptions, amendments, things out of date, several schedules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from include.calendars import instants, last_instant, next_instant
from include.contract import Amended, Answer, Ask, CycleStatus, Mode, Outcome, Outdated, Parsed, Request, Unit
from include.engine import merge, pending, stage
from include.engine.lease import TTL_SECONDS
from tests.engine.cdn import Trouble
from tests.engine.desk import MONDAY, SMALL, TUESDAY, WEDNESDAY, Crash, Desk, crashing_at, ny

KEY = "CNMS/2026-09-15"


def describing(ask: Ask) -> Iterator[Request]:
    for request in SMALL.plan(ask):
        yield replace(request, about={"symbols": "A,B", "page": 0})


def test_what_a_request_was_about_is_given_back_whenever_its_answer_is_read(desk: Desk) -> None:
    seen: list[Any] = []

    def parse(unit: Unit) -> Parsed:
        seen.append(dict(unit.answers[0].request.about))
        return SMALL.parse(unit)

    desk.stream = replace(SMALL, plan=describing, parse=parse)
    desk.cdn.publish(TUESDAY)
    desk.poll()
    desk.replay(TUESDAY)
    assert seen == [{"symbols": "A,B", "page": 0}] * 2


def test_a_plan_knows_the_session_of_its_window_and_the_time(desk: Desk) -> None:
    asks: list[Ask] = []

    def plan(ask: Ask) -> Iterator[Request]:
        asks.append(ask)
        yield from SMALL.plan(ask)

    desk.stream = replace(SMALL, plan=plan)
    desk.cdn.publish(TUESDAY)
    desk.poll()
    desk.backfill(MONDAY)
    # What is asked for last in each is whether the days before it are missing.
    assert [(ask.newest, ask.mode, ask.sessions[:1]) for ask in asks[::2]] == [
        (TUESDAY, Mode.POLL, (TUESDAY,)),
        (None, Mode.BACKFILL, (MONDAY,)),
    ]
    assert all(ask.newest is None for ask in asks[1::2])
    assert all(ask.at is not None and abs(ask.at - desk.now()) < timedelta(minutes=5) for ask in asks)


def amend(request: Request, answer: Answer) -> Amended | None:
    text = answer.body.read().decode()
    if not text.startswith("bad "):
        return None
    return Amended(request, f"{text.removeprefix('bad ')}/2026-09-15", text)


def test_a_part_that_is_refused_is_left_out_and_the_others_are_kept(desk: Desk) -> None:
    desk.stream = replace(SMALL, amend=amend)
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("CNMS", TUESDAY, Trouble(400, body=b"bad FNSQ"), Trouble(400, body=b"bad FNYX"))
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (CycleStatus.SUCCESS, Outcome.PARTIAL)
    assert desk.values() == {"AAPL": "10.5", "ABRpD": "1", "NA": "3"}
    left = desk.pending()
    assert sorted(left) == ["FNSQ/2026-09-15", "FNYX/2026-09-15"]
    assert {row["last_error"] for row in left.values()} == {"bad FNSQ", "bad FNYX"}
    errors = desk.sql("select error from collect.fetches where answer_class = 'error' order by fetch_id")
    assert [row["error"] for row in errors] == [
        "FNSQ/2026-09-15 is left out: bad FNSQ",
        "FNYX/2026-09-15 is left out: bad FNYX",
    ]


def test_leaving_out_the_same_part_twice_ends_the_asking(desk: Desk) -> None:
    desk.stream = replace(SMALL, amend=amend)
    desk.cdn.trouble("CNMS", TUESDAY, *[Trouble(400, body=b"bad FNSQ")] * 5)
    verdict = desk.poll()
    assert verdict.status is CycleStatus.FAILED
    assert len(desk.cdn.asked()) == 2


@pytest.mark.parametrize("mode", [Mode.POLL, Mode.BACKFILL])
@pytest.mark.parametrize(
    ("point", "times"), [("stored", 1), ("stored", 2), ("applied", 1), ("before last apply", 1), ("settled", 1)]
)
def test_a_part_that_was_left_out_is_asked_for_later_wherever_the_worker_dies(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, mode: Mode, point: str, times: int
) -> None:
    monkeypatch.setattr(stage, "MOST_ROWS", 3)
    desk.stream = replace(SMALL, amend=amend)
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("CNMS", TUESDAY, Trouble(400, body=b"bad FNSQ"))
    request = desk.request(Mode.BACKFILL, TUESDAY, run_id="dies")
    if mode is Mode.BACKFILL:
        desk.begin(request)
    with crashing_at(point, times) as dying, pytest.raises(Crash):
        desk.tick(signal=dying) if mode is Mode.POLL else desk.work_off(request, signal=dying)
    desk.advance(seconds=TTL_SECONDS + 1)
    if mode is Mode.BACKFILL:
        desk.work_off(request)
        assert desk.cycle()["outcome"] == Outcome.PARTIAL
    else:
        desk.tick()
        desk.at(ny(TUESDAY, 19, 16))
        desk.tick()
    assert desk.values() == {"AAPL": "10.5", "ABRpD": "1", "NA": "3"}
    left = desk.pending()
    assert {(key, row["why"], row["last_error"]) for key, row in left.items()} == {
        ("FNSQ/2026-09-15", "failed", "bad FNSQ")
    }
    assert left["FNSQ/2026-09-15"]["attempts"] == 1
    assert len(desk.cdn.asked()) == 2


def test_a_worker_that_is_stopped_between_a_refusal_and_the_request_without_the_part_goes_on_with_it(
    desk: Desk,
) -> None:
    desk.stream = replace(SMALL, amend=amend)
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("CNMS", TUESDAY, Trouble(400, body=b"bad FNSQ"))
    points: list[str] = []
    verdict = desk.poll(signal=points.append, stop=lambda: "stored" in points)
    assert verdict.is_stopped
    assert sorted(desk.pending()) == ["FNSQ/2026-09-15"]
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (CycleStatus.SUCCESS, Outcome.PARTIAL)
    assert desk.values() == {"AAPL": "10.5", "ABRpD": "1", "NA": "3"}


def test_an_answer_whose_further_pages_cannot_be_told_is_not_applied(desk: Desk) -> None:
    def follow(request: Request, answer: Answer) -> tuple[Request, ...]:
        raise ValueError("the token is that of this page")

    desk.stream = replace(SMALL, follow=follow)
    desk.cdn.publish(TUESDAY)
    verdict = desk.poll()
    assert verdict.status is CycleStatus.FAILED
    assert "the token is that of this page" in verdict.words
    assert desk.rows() == []


def outdating(since: datetime, *covers: str) -> Any:
    def parse(unit: Unit) -> Parsed:
        parsed = SMALL.parse(unit)
        if unit.key != "CNMS/2026-09-16":
            return parsed
        entry = Outdated(KEY, TUESDAY, KEY, covers or ("CNMS/",), since)
        return replace(parsed, outdated=(entry, entry))

    return parse


@pytest.mark.parametrize(
    ("since", "covers", "is_asked"),
    [
        (ny(WEDNESDAY, 0), ("CNMS/",), True),
        (ny(MONDAY, 0), ("CNMS/",), False),
        (ny(WEDNESDAY, 0), ("FNSQ/", "FNYX/"), False),
        (ny(WEDNESDAY, 0), ("FNSQ/", "CNMS/2026-09"), True),
    ],
)
def test_what_an_answer_shows_to_be_out_of_date_is_asked_for_again_once(
    desk: Desk, since: datetime, covers: tuple[str, ...], is_asked: bool
) -> None:
    desk.stream = replace(SMALL, parse=outdating(since, *covers))
    desk.cdn.publish(TUESDAY)
    desk.poll()
    desk.at(ny(WEDNESDAY))
    desk.cdn.publish(WEDNESDAY)
    desk.poll()
    assert set(desk.pending("discovered")) == ({KEY} if is_asked else set())
    desk.replay(WEDNESDAY, run_id="none")
    desk.at(ny(date(2026, 9, 17)))
    desk.cdn.forget()
    desk.cdn.publish(date(2026, 9, 17))
    desk.poll()
    assert len(desk.cdn.asked("CNMS", TUESDAY)) == is_asked
    # It was asked for again since then: reading the same answer again says nothing new.
    desk.backfill(WEDNESDAY)
    assert desk.pending("discovered") == {}


def test_what_is_out_of_date_is_noted_after_the_last_months_lock(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    lock, outdated = merge.lock, pending.outdated
    monkeypatch.setattr(merge, "lock", lambda c, table: (order.append(table.month), lock(c, table)))
    monkeypatch.setattr(pending, "outdated", lambda *given: (order.append("pending"), outdated(*given)))
    tables = tuple(replace(table, months="locked") for table in SMALL.tables)

    def parse(unit: Unit) -> Parsed:
        (batch,) = SMALL.parse(unit).batches
        entry = Outdated(KEY, TUESDAY, KEY, ("CNMS/",), ny(TUESDAY))
        return Parsed((replace(batch, table=tables[0]),), outdated=(entry,))

    desk.stream = replace(SMALL, tables=tables, parse=parse)
    august, september = date(2026, 8, 31), date(2026, 9, 1)
    desk.at(ny(august))
    desk.poll()
    desk.cdn.publish(august)
    desk.cdn.publish(september)
    desk.at(ny(september))
    assert desk.poll().status is CycleStatus.SUCCESS
    assert order == ["202608", "202609", "pending"]


def test_one_part_of_a_unit_withdraws_nothing_of_the_rest(desk: Desk) -> None:
    desk.stream = replace(SMALL, parse=lambda unit: replace(SMALL.parse(unit), is_part=True))
    desk.cdn.put("CNMS", TUESDAY, {"AAPL": (1, 0, 2), "MSFT": (1, 0, 2)})
    desk.poll()
    desk.cdn.put("CNMS", TUESDAY, {"AAPL": (2, 0, 2)})
    desk.backfill(TUESDAY)
    assert desk.values() == {"AAPL": "2", "MSFT": "1"}
    desk.replay(TUESDAY)
    assert desk.values() == {"AAPL": "2", "MSFT": "1"}


def test_several_schedules_fire_each_at_its_hour() -> None:
    cron, zone = "30 17 * * 1-5 | 20 20 * * 1-5", "America/New_York"
    noon = datetime(2026, 9, 15, 16, 0, tzinfo=UTC)
    fired = instants(cron, zone, noon, noon + timedelta(days=1), 10)
    assert fired == [ny(TUESDAY, 17, 30), ny(TUESDAY, 20, 20)]
    assert next_instant(cron, zone, fired[0]) == fired[1]
    assert last_instant(cron, zone, fired[1]) == fired[1]
    assert last_instant(cron, zone, fired[1] - timedelta(seconds=1)) == fired[0]
