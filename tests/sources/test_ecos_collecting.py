"""ECOS collected from its stand-in: mornings with revisions and a new base year, wrong codes, lock-outs, the past."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from include import registry
from include.contract import CycleStatus, HostGroup, Mode, Outcome, Stream
from include.engine import changes, credentials, cycle, jobs, windows
from include.engine.verdict import Verdict
from include.sandbox.ecos import Ecos
from include.sandbox.exchange import World
from include.sources.ecos.catalogue import catalogue
from include.sources.ecos.streams import observations
from tests.fixtures_sandbox import RunningSandbox, Start
from tests.sources.places import Place, copy_ledger

SEOUL = ZoneInfo("Asia/Seoul")
KEY = "A0SECRET0KEY0OF0A0TEST"
FIRST = date(2026, 12, 28)
RATE, PRICES, JOBS, GDP = "722Y001.D.0101000", "901Y009.M.0", "901Y027.M.I61BC.I28A", "200Y110.Q.10601"
SLOW = ("200Y110.A.10601", "104Y900.S.10", "104Y900.SM.10")


def morning(day: date, minutes: int = 0) -> datetime:
    return datetime.combine(day, datetime.min.time(), SEOUL) + timedelta(hours=8, minutes=20 + minutes)


@dataclass
class Desk:
    """One place with the stand-in, and the same stand-in beside it to be asked what was published."""

    place: Place
    running: RunningSandbox
    beside: Ecos
    stream: Stream

    def nap(self, seconds: float) -> None:
        self.place.at(self.place.now() + timedelta(seconds=seconds))

    def work(self, mode: Mode, run_id: str | None) -> Verdict | None:
        reach = credentials.build(registry.source("ecos"), host="", password=KEY, sandbox_url=self.place.sandbox_url)
        worker = replace(self.place.worker(self.stream), nap=self.nap, credentials=reach)
        return cycle.work(worker, self.stream, mode, run_id)

    def poll(self, day: date, minutes: int = 1) -> Verdict:
        """The window of a day, worked to its end or until it waits."""
        self.place.at(morning(day, minutes))
        windows.declare(self.place.url, (self.stream,))
        windows.open_due(self.place.url, self.stream)
        last: Verdict | None = None
        while (verdict := self.work(Mode.POLL, None)) is not None:
            last = verdict
            if verdict.next_eligible_at is not None:
                break
        assert last is not None
        return last

    def backfill(self, start: date, end: date) -> str:
        request = jobs.JobRequest(Mode.BACKFILL, (self.stream,), start, end)
        jobs.start(self.place.url, request)
        jobs.plan(self.place.url, request, self.stream)
        while self.work(Mode.BACKFILL, request.name) is not None:
            continue
        return jobs.conclude(self.place.url, request.name)[0]

    def switch(self, switch: str, **order: Any) -> None:
        self.running.switch("ecos", switch, **order)
        self.beside.switch({"switch": switch, **order})

    def as_of(self, day: date) -> dict[tuple[str, str], tuple[str | None, str]]:
        rows = self.place.sql("select * from market.ecos_as_of(%s)", day)
        return {(row["series_id"], row["period"]): (row["value_text"], row["unit_name"]) for row in rows}

    def published(self, at: datetime, *names: str) -> dict[tuple[str, str], tuple[str | None, str]]:
        """What the stand-in shows of some series at an instant."""
        found: dict[tuple[str, str], tuple[str | None, str]] = {}
        for name in names:
            statistic, cycle_, *codes = name.split(".")
            key = (statistic, cycle_, tuple(codes))
            unit = self.beside.shelf.unit(key, at)
            for period, value in self.beside.shelf.values(key, at):
                found[(name, period)] = (value or None, unit)
        return found

    def asked(self, kind: str | None = None) -> int:
        return sum(kind in (None, one["kind"]) for one in self.running.requests(host="ecos.bok.or.kr"))

    def pending(self) -> dict[str, str]:
        rows = self.place.sql("select key, last_error from collect.pending")
        return {row["key"]: row["last_error"] for row in rows}


@pytest.fixture
def desk(place: Callable[[], Place], sandbox: Start, tmp_path: Path) -> Callable[..., Desk]:
    def make(*names: str, beside: Desk | None = None) -> Desk:
        made = place()
        if beside is not None:
            made.at(beside.place.now())
            made.sandbox_url, made.raw = beside.place.sandbox_url, made.raw
            return Desk(made, beside.running, beside.beside, beside.stream)
        made.at(morning(FIRST))
        running = sandbox(clock=made.now, companies=50)
        made.sandbox_url = running.url
        stream = observations(catalogue({"some": list(names)}))
        free = HostGroup("ecos", timedelta(0), stream.host_group.penalty)
        return Desk(made, running, Ecos(World(tmp_path, companies=50)), replace(stream, host_group=free))

    return make


def test_mornings_over_a_new_year_keep_what_was_shown_on_each_and_come_to_the_same_by_backfill_and_replay(
    desk: Callable[..., Desk],
) -> None:
    names = (RATE, PRICES, JOBS, GDP, *SLOW)
    here = desk(*names)
    days = [FIRST + timedelta(days=gap) for gap in (0, 1, 4, 8, 9, 22, 40)]
    shown: dict[date, dict[tuple[str, str], tuple[str | None, str]]] = {}
    for day in days:
        assert here.poll(day).outcome is Outcome.SUCCESS, day
        # Of a daily series the years that are over were never asked for.
        shown[day] = {
            key: value for key, value in here.published(morning(day), *names).items()
            if not (key[0] == RATE and key[1] < "2026")
        }  # fmt: skip
        assert here.as_of(day) == shown[day], day
    assert here.place.sql("select count(*) as n from market.ecos_values_history")[0]["n"] == 0

    there = desk(beside=here)
    windows.declare(there.place.url, (there.stream,))
    assert there.backfill(date(2026, 1, 1), days[-1]) == "success"
    assert there.place.tables(there.stream) == here.place.tables(here.stream)

    # Now ECOS changes what it has shown: our own vintages keep what it was.
    after = days[-1] + timedelta(days=1)
    at = morning(after, -60).isoformat()
    here.switch("revise", series=GDP, period="2025Q1", value="77.7", at=at)
    here.switch("revise", series=RATE, period=f"{after:%Y}0105", value="-", at=at)
    here.switch("unit", series=PRICES, unit="2025=100", at=at)
    assert here.poll(after).outcome is Outcome.SUCCESS
    assert here.as_of(after)[(GDP, "2025Q1")][0] == "77.7"
    assert {unit for (name, _), (_, unit) in here.as_of(after).items() if name == PRICES} == {"2025=100"}
    for day in days:
        assert here.as_of(day) == shown[day], day

    again = desk(beside=here)
    again.place.raw = here.place.raw
    copy_ledger(here.place.url, again.place.url)
    windows.declare(again.place.url, (again.stream,))
    asked = here.asked()
    again.place.do(again.stream, Mode.REPLAY, date(2026, 1, 1), after)
    told = ("sent_at", "fetch_id")
    assert again.place.tables(again.stream, *told) == here.place.tables(here.stream, *told)
    assert here.asked() == asked


def test_a_morning_without_news_writes_nothing_and_tells_nobody(desk: Callable[..., Desk]) -> None:
    here = desk(PRICES, GDP)
    here.poll(FIRST)
    changes.confirm(here.place.url, changes.untold(here.place.url, here.stream.name))
    assert here.poll(FIRST + timedelta(days=1)).outcome is Outcome.SUCCESS
    assert changes.untold(here.place.url, here.stream.name).changed == 0


def test_pages_are_followed_whatever_the_server_lets_through_at_once(desk: Callable[..., Desk]) -> None:
    here = desk(RATE, PRICES)
    here.switch("page", n=7)
    assert here.poll(FIRST).outcome is Outcome.SUCCESS
    names = {key for key in here.published(morning(FIRST), RATE, PRICES) if not (key[0] == RATE and key[1] < "2026")}
    assert set(here.as_of(FIRST)) == names
    assert here.asked("StatisticSearch") == -(-sum(key[0] == RATE for key in names) // 7) + -(
        -sum(key[0] == PRICES for key in names) // 7
    )


def test_wrong_codes_are_told_each_day_and_hold_nothing_else_up(desk: Callable[..., Desk]) -> None:
    here = desk("ZZZZZZZ.D.0101000", "722Y001.D.9999999", "722Y001.Q.0101000", RATE)
    for day in (FIRST, FIRST + timedelta(days=1)):
        verdict = here.poll(day)
        assert (verdict.status, verdict.outcome) == (CycleStatus.SUCCESS, Outcome.PARTIAL), verdict.words
        wrong = here.pending()
        assert "no statistic ZZZZZZZ" in wrong["ZZZZZZZ.D.0101000/2026"]
        assert "no item 9999999 in the cycle D" in wrong["722Y001.D.9999999/2026"]
        assert "in the cycle Q" in wrong["722Y001.Q.0101000/all"]
    assert here.asked("StatisticSearch") == 2
    assert {name for name, _ in here.as_of(FIRST)} == {RATE}


def test_a_series_that_vanishes_is_an_error_and_keeps_its_values(desk: Callable[..., Desk]) -> None:
    here = desk(PRICES, GDP)
    here.poll(FIRST)
    before = here.as_of(FIRST)
    here.switch("retire", series=PRICES, at=morning(FIRST, 60).isoformat())
    assert here.poll(FIRST + timedelta(days=1)).outcome is Outcome.PARTIAL
    assert here.as_of(FIRST + timedelta(days=1)) == before


def test_a_lock_out_stops_everything_for_half_an_hour_and_then_goes_on(desk: Callable[..., Desk]) -> None:
    here = desk(RATE, PRICES, JOBS, GDP)
    here.switch("limit", n=3)
    verdict = here.poll(FIRST)
    asked = here.asked()
    assert asked == 4
    assert (verdict.status, verdict.is_held) == (CycleStatus.PENDING, True), verdict.words
    assert verdict.next_eligible_at is not None
    assert verdict.next_eligible_at - here.place.now() > timedelta(minutes=28)
    (row,) = here.place.sql("select text from ops.incidents where incident_key = 'block/ecos'")
    assert "ERROR-602" in row["text"]
    assert here.work(Mode.POLL, None) is None
    assert here.asked() == asked
    here.switch("limit", n=None)
    here.place.at(verdict.next_eligible_at + timedelta(seconds=1))
    while (verdict_ := here.work(Mode.POLL, None)) is not None:
        verdict = verdict_
    assert verdict.outcome is Outcome.SUCCESS, verdict.words
    assert len({name for name, _ in here.as_of(FIRST)}) == 4


def test_trouble_passes_and_a_key_that_is_refused_ends_the_window(desk: Callable[..., Desk]) -> None:
    here = desk(PRICES)
    here.switch("say", code="ERROR-600", n=2)
    assert here.poll(FIRST).outcome is Outcome.SUCCESS
    here.switch("key", **{"is": "unknown"})
    verdict = here.poll(FIRST + timedelta(days=1))
    assert (verdict.status, verdict.outcome) == (CycleStatus.FAILED, Outcome.FAILED_TERMINAL)
    assert "refuses the key of connection ecos" in verdict.words
    assert here.asked() == 3 + 1 + 1


def test_the_key_is_nowhere_but_in_the_address(desk: Callable[..., Desk]) -> None:
    here = desk(PRICES, "ZZZZZZZ.D.1")
    here.poll(FIRST)
    here.running.fault(match={"host": "ecos.bok.or.kr"}, reset=True, n=None)
    here.poll(FIRST + timedelta(days=1))
    for table in ("fetches", "pending", "cycles", "quarantine", "raw_objects"):
        for row in here.place.sql(f"select * from collect.{table}"):
            assert KEY not in str(row), table
    for row in here.place.sql("select * from ops.alerts"):
        assert KEY not in str(row)
    logged = here.running.requests(host="ecos.bok.or.kr")
    assert all("/***/" in one["path"] and KEY not in str(one) for one in logged)
