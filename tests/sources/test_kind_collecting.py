"""KIND collected from its stand-in: weeks of mornings with arrivals and departures, and days on which no list comes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from include.contract import CycleStatus, Mode, Outcome
from include.engine import audit, changes, jobs, quarantine, replay, windows
from include.outputs import outbox, releases
from include.sandbox.kind_market import KONEX, generated
from include.sources.kind.tables import COMPANIES
from tests.fixtures_sandbox import Start
from tests.sources.kind_desk import FIRST, SIZE, STREAM, Desk, initial, kst, on, play
from tests.sources.places import Place, copy_ledger


@pytest.fixture
def desk(place: Callable[[], Place], sandbox: Start) -> Callable[..., Desk]:
    def make(size: int = SIZE) -> Desk:
        made = place()
        made.at(kst(FIRST - timedelta(days=2)))
        windows.declare(made.url, (STREAM,))
        running = sandbox(clock=made.now, companies=size)
        made.sandbox_url = running.url
        return Desk(made, running)

    return make


# --- mornings


def test_every_nine_sees_the_right_universe_and_a_replay_makes_the_same_tables(
    desk: Callable[..., Desk], place: Callable[[], Place]
) -> None:
    here = desk()
    days = [FIRST + timedelta(days=n) for n in range(20)]
    universes = play(here, days, Random(4))
    assert here.departed()
    # The past is still what it was.
    for day, universe in universes.items():
        back = set(here.as_of(day)) - universe
        assert universe <= set(here.as_of(day))
        # Only who came back counts as listed in between.
        assert back <= set(here.universe())

    again = place()
    again.at(here.place.now())
    again.raw = here.place.raw
    copy_ledger(here.place.url, again.url)
    windows.declare(again.url, (STREAM,))
    asked = here.asked()
    request = jobs.JobRequest(Mode.REPLAY, (STREAM,), days[0], days[-1], reason="a test")
    jobs.start(again.url, request)
    jobs.plan(again.url, request, STREAM)
    while replay.work(again.worker(STREAM), STREAM, request.name) is not None:
        continue
    assert jobs.conclude(again.url, request.name)[0] in ("success", "partial")
    assert again.tables(STREAM, "sent_at", "fetch_id") == here.place.tables(STREAM, "sent_at", "fetch_id")
    # Who is listed, since when, and who has departed is told by the lists alone: nothing of it was copied.
    items = "select * from collect.items order by item_key"
    assert here.place.sql(items) == again.sql(items) != []
    universe = "select * from market.kind_universe order by code"
    assert {row["code"] for row in again.sql(universe)} == universes[days[-1]]
    assert here.asked() == asked


def test_names_industries_and_markets_are_kept_as_they_were(desk: Callable[..., Desk]) -> None:
    here = desk()
    code = initial()[20]
    here.poll(FIRST)
    before = here.universe()[code]
    next_day, third = FIRST + timedelta(days=1), FIRST + timedelta(days=2)
    here.switch("change", code=code, at=on(next_day), name="새이름", sector="새 업종")
    here.switch("change", code=code, at=on(third), market="유가", closing_month="03월")
    here.poll(next_day)
    here.poll(third)
    now = here.universe()[code]
    assert (now["name"], now["sector"], now["market"], now["closing_month"]) == ("새이름", "새 업종", "KOSPI", 3)
    assert here.as_of(FIRST)[code]["name"] == before["name"]
    assert here.as_of(next_day)[code]["name"] == "새이름"
    assert here.as_of(next_day)[code]["closing_month"] == before["closing_month"]
    history = here.place.sql("select * from market.kind_companies_history where code = %s order by sent_at", code)
    assert [row["reason"] for row in history] == ["revised", "revised"]


def test_a_company_departs_after_three_lists_without_it_and_one_that_is_back_is_listed_again(
    desk: Callable[..., Desk],
) -> None:
    here = desk()
    code, glitch = initial()[5], initial()[9]
    days = [FIRST + timedelta(days=n) for n in range(6)]
    here.switch("delist", code=code, at=on(days[1]))
    here.switch("hide", code=glitch, day=days[2].isoformat())
    seen = []
    for day in days:
        here.poll(day)
        seen.append((code in here.universe(), glitch in here.universe()))
    assert seen == [(True, True)] * 3 + [(False, True)] * 3
    assert here.departed() == {code}
    here.switch("list", code=code, at=on(days[-1] + timedelta(days=1)), name="다시왔네")
    here.poll(days[-1] + timedelta(days=1))
    assert here.universe()[code]["name"] == "다시왔네"
    assert here.departed() == set()


def test_who_moves_up_from_konex_arrives(desk: Callable[..., Desk]) -> None:
    here = desk()
    small = next(company for company in generated(7, SIZE) if company.market == KONEX)
    here.poll(FIRST)
    left_out = {row["code"] for row in here.place.sql("select code from market.kind_excluded")}
    assert small.code in left_out
    assert small.code not in here.universe()
    here.switch("change", code=small.code, at=on(FIRST + timedelta(days=1)), market="코스닥")
    here.poll(FIRST + timedelta(days=1))
    assert here.universe()[small.code]["market"] == "KOSDAQ"
    assert {row["code"] for row in here.place.sql("select code from market.kind_excluded")} == left_out - {small.code}


# --- what changed


def test_a_list_with_the_same_content_in_other_bytes_changes_nothing_and_an_arrival_does(
    desk: Callable[..., Desk],
) -> None:
    here = desk()
    here.poll(FIRST)
    assert here.untold() == len(generated(7, SIZE))
    changes.confirm(here.place.url, changes.untold(here.place.url, STREAM.name))
    verdict = here.poll(FIRST + timedelta(days=1))
    assert verdict.outcome is Outcome.SUCCESS
    assert here.untold() == 0
    (hashes,) = here.place.sql("select count(distinct sha256) as n from collect.fetches")
    assert hashes["n"] == 2
    here.switch("list", code="0042K0", at=on(FIRST + timedelta(days=2)))
    here.poll(FIRST + timedelta(days=2))
    # What the asset's event is sent for.
    assert here.untold() == 1


# --- days on which no list comes


# What is shown in place of the list, how the window ends, and after how many requests.
PAGES = (
    ("maintenance", CycleStatus.FAILED, "retriable", 1),
    ("blocked", CycleStatus.FAILED, "refused", 1),
    ("form", CycleStatus.FAILED, "refused", 1),
    ("nobody", CycleStatus.FAILED, "retriable", 1),
    ("headings_only", CycleStatus.FAILED, "retriable", 1),
    ("nothing", CycleStatus.FAILED, "retriable", 1),
    ("cut", CycleStatus.FAILED, "retriable", 4),
    ("small", CycleStatus.SUCCESS, None, 1),
    ("without_markets", CycleStatus.SUCCESS, None, 1),
    ("bad_bytes", CycleStatus.SUCCESS, None, 1),
    ("twice", CycleStatus.SUCCESS, None, 1),
    ("utf8", CycleStatus.SUCCESS, None, 1),
)


def test_what_is_no_whole_list_leaves_the_universe_as_it_is_and_is_not_asked_for_again_that_day(
    desk: Callable[..., Desk],
) -> None:
    here, day = desk(), FIRST
    here.poll(day)
    universe = set(here.universe())
    for what, status, kind, requests in PAGES:
        day += timedelta(days=1)
        here.show(what, day, share=0.5)
        asked = here.asked()
        verdict = here.poll(day)
        (row,) = here.place.sql("select failure_kind from collect.cycles where cycle_id = %s", verdict.cycle_id)
        assert (verdict.status, row["failure_kind"]) == (status, kind), (what, verdict.words)
        assert here.asked() - asked == requests, what
        for hour, minute in ((8, 11), (8, 45), (12, 5), (23, 59)):
            here.place.at(kst(day, hour, minute))
            windows.open_due(here.place.url, STREAM)
            assert here.work() is None
        assert here.asked() - asked == requests, what
        assert set(here.universe()) == universe, what
        # The next day's list puts an end to all of it.
        day += timedelta(days=1)
        assert here.poll(day).outcome is Outcome.SUCCESS, what
        assert set(here.universe()) == universe, what
        assert quarantine.entries(here.place.url, STREAM.name) == [], what


def test_a_half_list_day_after_day_closes_nobody_until_an_operator_accepts_it(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.poll(FIRST)
    universe = set(here.universe())
    here.show("small", FIRST + timedelta(days=1), days=9, share=0.5)
    for n in range(1, 6):
        here.poll(FIRST + timedelta(days=n))
    assert set(here.universe()) == universe
    assert any(key.startswith("quarantine/kind.companies") for key in here.incidents())
    here.accept()
    for n in range(6, 9):
        here.poll(FIRST + timedelta(days=n))
    assert len(here.universe()) < len(universe)


def test_a_first_list_that_is_far_smaller_than_the_market_is_told_until_it_is_not(desk: Callable[..., Desk]) -> None:
    here = desk()
    for code in initial():
        here.place.sql(
            "insert into market.krx_prices (session_date, market, code, name, market_label, is_untraded,"
            " unit, fetch_id, sent_at, parser_version, cycle_id, attempt)"
            " values (%s, 'KOSPI', %s, 'a company', 'KOSPI', false, 'a test', 1, collect.clock(), 1, 1, 1)",
            FIRST - timedelta(days=1),
            code,
        )

    def audited() -> set[str]:
        audit.audit(here.place.url, (STREAM,), None, audit.Limits(), "a test", has_github=False)
        return {key for key in here.incidents() if key.startswith("doubtful/")}

    here.show("small", FIRST, share=0.5)
    here.poll(FIRST)
    assert audited() == {"doubtful/kind.companies"}
    # Nothing was taken for departed by it, and the next list has them all.
    here.poll(FIRST + timedelta(days=1))
    assert audited() == set()
    assert set(here.universe()) == set(initial())


def test_a_list_that_lacks_one_in_twenty_three_days_running_closes_nobody_and_one_in_a_hundred_departs(
    desk: Callable[..., Desk],
) -> None:
    here = desk(220)
    here.poll(FIRST)
    universe = set(here.universe())
    here.show("small", FIRST + timedelta(days=1), days=4, share=0.95)
    for n in range(1, 5):
        here.poll(FIRST + timedelta(days=n))
    assert set(here.universe()) == universe
    assert any(key.startswith("quarantine/kind.companies") for key in here.incidents())
    gone = initial(220)[3:5]
    for code in gone:
        here.switch("delist", code=code, at=on(FIRST + timedelta(days=5)))
    for n in range(5, 8):
        here.poll(FIRST + timedelta(days=n))
    assert universe - set(here.universe()) == set(gone)
    assert quarantine.entries(here.place.url, STREAM.name) == []


def test_the_portal_being_away_is_tried_a_few_times_and_then_left(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.running.fault(match={"host": "kind.krx.co.kr"}, status=503, n=2)
    assert here.poll(FIRST).outcome is Outcome.SUCCESS
    here.running.fault(match={"host": "kind.krx.co.kr"}, reset=True, n=None)
    asked = here.asked()
    verdict = here.poll(FIRST + timedelta(days=1))
    assert verdict.status is CycleStatus.FAILED
    assert here.asked() - asked == 4


# --- the file


def test_the_published_file_is_of_those_that_are_listed(desk: Callable[..., Desk], tmp_path: Path) -> None:
    here = desk()
    code, days = initial()[5], [FIRST + timedelta(days=n) for n in range(5)]
    here.switch("delist", code=code, at=on(days[1]))
    release = releases.release("metadata/corpList")
    built: list[tuple[bool, int]] = []
    for day in days:
        here.poll(day)
        made = outbox.build(here.place.url, release, COMPANIES, str(tmp_path / "outbox"), "a test")
        files = here.place.sql("select rows from publish.files order by file_id desc limit 1")
        built.append((bool(made.queued), files[0]["rows"]))
    # Made at first, and once more when somebody has departed; the same content is not a new file.
    size = len(initial())
    assert built == [(True, size), (False, size), (False, size), (True, size - 1), (False, size - 1)]
