"""DART collected from its stand-in: days of filings as they appear, what is told of them later, lists that move while
they are read, keys that are used up, and the list of all companies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from include import registry
from include.contract import CycleStatus, HostGroup, Mode, Outcome, Quota, Stream
from include.engine import controls, credentials, cycle, jobs, windows
from include.engine.verdict import Verdict
from include.sandbox.dart import Dart
from include.sandbox.dart_filings import SEOUL
from include.sandbox.exchange import World
from include.sources import dart as source
from tests.fixtures_sandbox import RunningSandbox, Start
from tests.sources.places import Place, copy_ledger

KEYS = ("1" * 39 + "a", "2" * 39 + "b")
TUESDAY, WEDNESDAY = date(2026, 9, 15), date(2026, 9, 16)


def at(day: date, text: str) -> datetime:
    return datetime.combine(day, time.fromisoformat(text), SEOUL)


EIGHT = at(TUESDAY, "08:00")


def stream_of(name: str, **quota: Any) -> Stream:
    stream = registry.stream(name)
    group = HostGroup("dart", timedelta(0), quota=Quota(**({"requests": 20_000, "timezone": "Asia/Seoul"} | quota)))
    return replace(stream, host_group=group)


@dataclass
class Desk:
    """One place with the stand-in, and the same stand-in beside it to be asked what was filed."""

    place: Place
    running: RunningSandbox
    beside: Dart
    stream: Stream
    keys: tuple[str, ...] = KEYS
    told: Callable[[str], None] = lambda point: None
    ends: list[Verdict] = field(default_factory=list)

    def work(self, mode: Mode, run_id: str | None) -> Verdict | None:
        reach = credentials.build(
            registry.source("dart"), host="", password=",".join(self.keys), sandbox_url=self.place.sandbox_url
        )
        worker = replace(self.place.worker(self.stream), nap=self.nap, credentials=reach, signal=self.told)
        return cycle.work(worker, self.stream, mode, run_id)

    def nap(self, seconds: float) -> None:
        self.place.at(self.place.now() + timedelta(seconds=seconds))

    def poll(self, when: datetime) -> Verdict:
        """The window that is due at an instant, worked to its end."""
        self.place.at(when)
        windows.declare(self.place.url, (self.stream,))
        windows.open_due(self.place.url, self.stream)
        last: Verdict | None = None
        while (verdict := self.work(Mode.POLL, None)) is not None:
            last = verdict
            if verdict.next_eligible_at is not None:
                break
        assert last is not None
        self.ends.append(last)
        return last

    def run(self, mode: Mode, start: date, end: date, **more: Any) -> jobs.Progress:
        request = jobs.JobRequest(mode, (self.stream,), start, end, reason="a test", **more)
        jobs.start(self.place.url, request)
        jobs.plan(self.place.url, request, self.stream)
        while (verdict := self.work(mode, request.name)) is not None and not verdict.is_held:
            pass
        return jobs.conclude(self.place.url, request.name)[1]

    def switch(self, switch: str, **order: Any) -> None:
        self.running.switch("dart", switch, **order)
        self.beside.switch({"switch": switch, **order})

    def held(self) -> dict[str, str]:
        """What the table holds, as number → marks."""
        return {row["rcept_no"]: row["remark"] for row in self.place.sql("select * from dartbrief.disclosures")}

    def shown(self, when: datetime, *days: date, markets: str = "YK") -> dict[str, str]:
        """What the list shows of some days at an instant."""
        return {
            filing.rcept_no: marks
            for day in days
            for filing, marks in self.beside.filings.shown(day, when)
            if filing.company.market in markets
        }

    def asked(self, kind: str = "list") -> int:
        return len(self.running.requests(host="opendart.fss.or.kr", kind=kind))


@pytest.fixture
def desk(place: Callable[[], Place], sandbox: Start, tmp_path: Path) -> Callable[..., Desk]:
    def make(name: str = "dart.disclosures", companies: int = 60, when: datetime = EIGHT, **quota: Any) -> Desk:
        made = place()
        made.at(when)
        running = sandbox(clock=made.now, companies=companies)
        made.sandbox_url = running.url
        return Desk(made, running, Dart(World(tmp_path, companies=companies)), stream_of(name, **quota))

    return make


# --- as they appear


def test_days_are_collected_as_they_appear_and_what_is_told_later_is_a_version(desk: Callable[..., Desk]) -> None:
    here = desk(companies=100)
    ticks = [at(day, f"{hour:02}:02") for day in (TUESDAY, WEDNESDAY) for hour in range(8, 20, 2)]
    withdrawn = next(number for number in here.shown(at(TUESDAY, "12:00"), TUESDAY))
    here.switch("withdraw", rcept_no=withdrawn, at=at(WEDNESDAY, "07:50").isoformat())
    for when in ticks:
        verdict = here.poll(when)
        assert (verdict.status, verdict.outcome) == (CycleStatus.SUCCESS, Outcome.SUCCESS), verdict.words
        # No tick leaves out what was there before it.
        assert here.shown(when, when.date()).items() <= here.held().items(), when
    end = here.place.now()
    thursday = at(WEDNESDAY + timedelta(days=1), "08:02")
    here.poll(thursday)
    assert here.held() == here.shown(thursday, TUESDAY, WEDNESDAY, thursday.date())
    assert len(here.held()) > 60
    assert here.held()[withdrawn].endswith("철")

    # Each was first seen by the first window after it appeared.
    appeared = {each.rcept_no: each.at for day in (TUESDAY, WEDNESDAY) for each in here.beside.filings.of_day(day)}
    for row in here.place.sql(
        "select rcept_no, created_at, rcept_dt from dartbrief.disclosures where created_at < %s", end
    ):
        since = appeared[row["rcept_no"]]
        latest = next(when for when in ticks if when >= since)
        assert since <= row["created_at"] < latest + timedelta(seconds=30), row

    # What was told later is a version more, and the day of appearance stays.
    history = here.place.sql("select * from dartbrief.disclosures_history order by rcept_no, sent_at")
    assert {"revised"} == {row["reason"] for row in history}
    (before,) = [row for row in history if row["rcept_no"] == withdrawn]
    (now,) = here.place.sql("select * from dartbrief.disclosures where rcept_no = %s", withdrawn)
    assert (before["remark"] + "철", now["created_at"]) == (now["remark"], before["sent_at"])

    # Every one is to be read by the analysis, once.
    queue = here.place.sql("select rcept_no, status from dartbrief.analysis_cache")
    assert {row["rcept_no"] for row in queue} == set(here.held())
    assert {row["status"] for row in queue} == {"PENDING"}

    assert here.asked("list") == sum(verdict.requests for verdict in here.ends)


def test_a_replay_into_an_empty_place_knows_when_each_filing_appeared(
    desk: Callable[..., Desk], place: Callable[[], Place]
) -> None:
    here = desk()
    here.poll(at(TUESDAY, "08:02"))
    marked = next(iter(here.held()))
    here.switch("withdraw", rcept_no=marked, at=at(TUESDAY, "11:00").isoformat())
    here.poll(at(TUESDAY, "12:02"))
    here.poll(at(WEDNESDAY, "08:02"))
    there = place()
    there.at(here.place.now())
    there.raw = here.place.raw
    copy_ledger(here.place.url, there.url)
    windows.declare(there.url, (here.stream,))
    there.do(here.stream, Mode.REPLAY, TUESDAY - timedelta(days=3), WEDNESDAY)
    kept = "select rcept_no, remark, created_at, sent_at from dartbrief.disclosures order by rcept_no"
    assert there.sql(kept) == here.place.sql(kept)
    assert there.tables(here.stream, "sent_at", "fetch_id") == here.place.tables(here.stream, "sent_at", "fetch_id")
    assert any(row["created_at"] < row["sent_at"] for row in there.sql(kept))
    assert len(there.sql("select 1 from dartbrief.analysis_cache")) == len(there.sql(kept))


def test_what_the_analysis_has_read_is_not_read_again_because_its_filing_is_written_anew(
    desk: Callable[..., Desk],
) -> None:
    here = desk()
    here.poll(at(TUESDAY, "10:02"))
    number = next(iter(here.held()))
    here.place.sql(
        "update dartbrief.analysis_cache set status = 'COMPLETED', summary = 's' where rcept_no = %s", number
    )
    here.place.sql("delete from dartbrief.disclosures where rcept_no = %s", number)
    here.poll(at(TUESDAY, "10:07"))
    assert number in here.held()
    (row,) = here.place.sql("select status, summary from dartbrief.analysis_cache where rcept_no = %s", number)
    assert row == {"status": "COMPLETED", "summary": "s"}


def test_days_without_a_window_are_made_up_for_and_weekends_cost_nothing(desk: Callable[..., Desk]) -> None:
    friday, monday, next_monday = date(2026, 9, 11), date(2026, 9, 14), date(2026, 9, 21)
    here = desk(when=at(friday, "15:00"))
    here.poll(at(friday, "15:02"))
    here.poll(at(monday, "08:02"))
    assert here.held() == here.shown(at(monday, "08:02"), friday, monday)
    asked = here.asked()
    # A week of nothing: the days are asked for by the next window, and the ones before it once more.
    here.poll(at(next_monday, "08:02"))
    days = [monday + timedelta(days=n) for n in range(5)]
    assert here.held().items() >= here.shown(at(next_monday, "08:02"), *days, next_monday).items()
    entries = here.running.requests(host="opendart.fss.or.kr", kind="list")[asked:]
    asked_for = {entry["query"].partition("bgn_de=")[2][:8] for entry in entries}
    assert asked_for == {f"{day:%Y%m%d}" for day in (friday, *days, next_monday)}


def test_a_correction_takes_the_place_of_what_it_corrects_and_of_nothing_else(desk: Callable[..., Desk]) -> None:
    here = desk(companies=3)
    corp = here.beside.filings.listed[0]
    added = [
        ("20260915000901", "분기보고서 (2026.06)", corp.name, "09:00"),
        ("20260915000902", "[기재정정]분기보고서 (2026.06)", "한빛회계법인", "10:00"),
        ("20260915000903", "분기보고서 (2026.03)", corp.name, "09:00"),
        ("20260915000904", "임원ㆍ주요주주특정증권등소유상황보고서", "김영수", "09:00"),
        ("20260915000905", "임원ㆍ주요주주특정증권등소유상황보고서", "이서진", "09:00"),
        ("20260915000906", "[기재정정]임원ㆍ주요주주특정증권등소유상황보고서", "이서진", "10:00"),
        ("20260915000907", "사업보고서제출기한연장신고서 (2025.12)", corp.name, "09:00"),
        ("20260915000908", "[기재정정]사업보고서 (2025.12)", corp.name, "09:00"),
    ]
    for number, title, submitter, clock in added:
        here.switch(
            "add",
            rcept_no=number,
            title=title,
            submitter=submitter,
            at=at(TUESDAY, clock).isoformat(),
            market=corp.market,
        )
    here.poll(at(TUESDAY, "10:32"))
    mine = "select rcept_no, superseded_by from dartbrief.disclosure_versions where rcept_no = any(%s) order by 1"
    rows = here.place.sql(mine, [number for number, *_ in added])
    assert len(rows) == len(added)
    assert {row["rcept_no"][-3:]: row["superseded_by"][-3:] for row in rows if row["superseded_by"]} == {
        "901": "902", "905": "906",
    }  # fmt: skip
    here.switch("withdraw", rcept_no="20260915000903", at=at(TUESDAY, "10:40").isoformat())
    here.poll(at(TUESDAY, "10:47"))
    current = {row["rcept_no"][-3:] for row in here.place.sql("select rcept_no from dartbrief.current_disclosures")}
    assert {number[-3:] for number, *_ in added} & current == {"902", "904", "906", "907", "908"}


# --- lists that move while they are read


@pytest.mark.parametrize("moves", ["added", "taken away", "exchanged"])
def test_nothing_is_missed_where_rows_move_between_two_pages(desk: Callable[..., Desk], moves: str) -> None:
    here = desk(companies=1_500, when=at(TUESDAY, "18:40"))
    kospi = sorted(here.shown(at(TUESDAY, "18:42"), TUESDAY, markets="Y"))
    everything = here.shown(at(TUESDAY, "18:42"), TUESDAY)
    assert len(kospi) > 200
    stored: list[str] = []

    def move(point: str) -> None:
        stored.extend([point] if point == "stored" else [])
        if point != "stored" or len(stored) != 2:
            return
        now = here.place.now().isoformat()
        new = {"added": [f"{TUESDAY:%Y%m%d}00000{n}" for n in range(3)], "exchanged": [f"{TUESDAY:%Y%m%d}809999"]}
        for number in new.get(moves, []):
            here.switch("add", title="기타경영사항(자율공시)", rcept_no=number, at=now, market="Y")
        if moves != "added":
            here.switch("hide", rcept_no=kospi[0], at=now)

    here.told = move
    assert here.poll(at(TUESDAY, "18:42")).outcome is Outcome.SUCCESS
    pages = [-(-len(each) // 100) for each in (kospi, everything.keys() - set(kospi))]
    if moves == "exchanged":
        # As many rows as before: only the next window can tell, five minutes later.
        assert len(stored) == sum(pages)
        here.poll(at(TUESDAY, "18:47"))
    else:
        assert len(stored) == 2 * pages[0] + pages[1]
    assert everything.items() <= here.held().items()


# --- keys, and ways of saying no


def test_keys_are_used_one_after_the_other_and_a_day_that_is_used_up_goes_on_the_next(
    desk: Callable[..., Desk],
) -> None:
    here = desk(companies=20)
    here.switch("quota", n=3)
    assert here.poll(at(TUESDAY, "08:02")).outcome is Outcome.SUCCESS
    assert here.poll(at(TUESDAY, "08:07")).outcome is Outcome.SUCCESS
    verdict = here.poll(at(TUESDAY, "08:12"))
    assert verdict.status is CycleStatus.SUCCESS
    verdict = here.poll(at(TUESDAY, "08:17"))
    assert (verdict.status, verdict.outcome) == (CycleStatus.BUDGET_EXHAUSTED, Outcome.SUCCESS)
    assert here.running.control("GET", "dart")["used"] == [4, 4]
    used = here.place.sql("select key_fingerprint, used, parked_until from collect.key_usage order by 1")
    assert [row["key_fingerprint"] for row in used] == sorted(credentials.fingerprint(key) for key in KEYS)
    assert {row["parked_until"] for row in used} == {datetime.combine(WEDNESDAY, datetime.min.time(), SEOUL)}
    # Nothing is asked until the next day, and no key has failed for it.
    asked = here.asked()
    here.poll(at(TUESDAY, "08:22"))
    assert here.asked() == asked
    assert here.poll(at(WEDNESDAY, "08:02")).outcome is not None
    assert here.asked() > asked


def test_backfills_leave_each_key_a_share_for_the_windows_of_the_day(desk: Callable[..., Desk]) -> None:
    here = desk(companies=20, requests=10, kept_for_polls=4)
    here.keys = KEYS[:1]
    here.place.at(at(TUESDAY, "08:01"))
    windows.declare(here.place.url, (here.stream,))
    progress = here.run(Mode.BACKFILL, TUESDAY - timedelta(days=30), TUESDAY - timedelta(days=1), run_id="the-past")
    assert here.asked() == 6
    assert progress.open > 0
    for minute in ("08:02", "08:07"):
        assert here.poll(at(TUESDAY, minute)).status is CycleStatus.SUCCESS
    assert here.poll(at(TUESDAY, "08:12")).status is CycleStatus.BUDGET_EXHAUSTED


def test_a_key_that_is_not_registered_is_asked_with_once_and_shown_nowhere(
    desk: Callable[..., Desk], caplog: pytest.LogCaptureFixture
) -> None:
    here = desk()
    caplog.set_level("DEBUG")
    here.switch("say", status="010")
    verdict = here.poll(at(TUESDAY, "08:02"))
    assert (verdict.status, verdict.outcome) == (CycleStatus.FAILED, Outcome.FAILED_TERMINAL)
    assert "connection dart" in verdict.words
    assert here.asked() == 1
    everything = str(here.place.sql("select * from collect.fetches")) + str(here.place.sql("select * from ops.alerts"))
    everything += str(here.place.sql("select * from collect.cycles")) + verdict.words + caplog.text
    everything += str(here.running.requests())
    assert not any(key in everything or key[:8] in everything for key in KEYS)


@pytest.mark.parametrize("trouble", ["maintenance", "800", "900"])
def test_a_maintenance_is_no_empty_list_and_the_next_window_goes_on(desk: Callable[..., Desk], trouble: str) -> None:
    here = desk()
    here.poll(at(TUESDAY, "08:02"))
    held = here.held()
    here.switch("maintenance") if trouble == "maintenance" else here.switch("say", status=trouble)
    verdict = here.poll(at(TUESDAY, "10:02"))
    assert (verdict.status, verdict.outcome) == (CycleStatus.FAILED, Outcome.FAILED_RETRIABLE)
    assert here.held() == held
    assert {
        row["answer_class"] for row in here.place.sql("select answer_class from collect.fetches where tries > 1")
    } == {"error"}
    here.switch("maintenance", **{"is": False}) if trouble == "maintenance" else here.switch("say", status=None)
    assert here.poll(at(TUESDAY, "10:12")).outcome is Outcome.SUCCESS
    assert here.held() == here.shown(at(TUESDAY, "10:12"), TUESDAY)


def test_an_address_that_is_blocked_asks_nothing_for_an_hour(desk: Callable[..., Desk]) -> None:
    here = desk()
    here.switch("limit", n=0)
    assert here.poll(at(TUESDAY, "08:02")).status is CycleStatus.FAILED
    asked = here.asked()
    assert asked == 1
    here.poll(at(TUESDAY, "08:07"))
    assert here.asked() == asked
    (incident,) = here.place.sql("select text from ops.incidents where incident_key like 'block/%'")
    assert "dart blocks us" in incident["text"]


# --- settings


def test_a_monitor_that_is_switched_off_stays_still_until_somebody_resumes_it(
    desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCLOSURE_MONITOR_AUTO_START", "false")
    here = desk()
    here.place.at(at(TUESDAY, "08:02"))
    windows.declare(here.place.url, (here.stream,))
    windows.open_due(here.place.url, here.stream)
    assert here.work(Mode.POLL, None) is None
    assert windows.standing(here.place.url, here.stream).frozen is not None
    assert here.asked() == 0
    assert not source.source(is_on=False).streams[0].sla_eligible
    controls.apply(here.place.url, controls.Change("resume", "stream", here.stream.name, "a test", "it may start"))
    assert here.poll(at(TUESDAY, "08:07")).outcome is Outcome.SUCCESS


# --- the past


def test_other_markets_and_one_companys_past_are_collected_where_somebody_names_them(desk: Callable[..., Desk]) -> None:
    here = desk(companies=62, when=at(TUESDAY, "20:10"))
    windows.declare(here.place.url, (here.stream,))
    start = date(2026, 8, 3)
    assert here.run(Mode.BACKFILL, start, TUESDAY, keys=("N",), run_id="konex").failed == 0
    weekdays = [start + timedelta(days=n) for n in range((TUESDAY - start).days + 1)]
    assert here.held() == here.shown(here.place.now(), *weekdays, markets="N") != {}
    company = here.beside.filings.listed[1]
    assert here.run(Mode.BACKFILL, date(2025, 1, 1), TUESDAY, keys=(company.corp_code,), run_id="one").failed == 0
    rows = here.place.sql("select rcept_no from dartbrief.disclosures where corp_code = %s", company.corp_code)
    days = [date(2025, 1, 1) + timedelta(days=n) for n in range((TUESDAY - date(2025, 1, 1)).days + 1)]
    assert {row["rcept_no"] for row in rows} == {
        filing.rcept_no
        for day in days
        for filing, _ in here.beside.filings.shown(day, here.place.now())
        if filing.company.corp_code == company.corp_code
    }


# --- all companies


def test_all_companies_are_read_in_parts_and_what_did_not_change_is_not_written(desk: Callable[..., Desk]) -> None:
    here = desk("dart.corp_codes", companies=1_250)
    first = here.poll(at(TUESDAY, "08:02"))
    count = len(here.beside.filings.companies)
    assert count > 51_000
    assert (first.outcome, first.counts.new) == (Outcome.SUCCESS, count)
    listed = here.place.sql("select count(*) as n from filings.dart_corps where stock_code is not null")
    assert listed == [{"n": 1_250}]
    stale = here.place.sql("select version from publish.stale where table_name = 'filings.dart_corps'")
    second = here.poll(at(WEDNESDAY, "08:02"))
    # Another archive with the same companies.
    assert (second.counts.read, second.counts.touched) == (count, 0)
    assert len(here.place.sql("select distinct sha256 from collect.fetches")) == 2
    assert here.place.sql("select version from publish.stale where table_name = 'filings.dart_corps'") == stale
    here.switch("companies", n=count - 7)
    third = here.poll(at(WEDNESDAY + timedelta(days=1), "08:02"))
    assert (third.counts.withdrawn, third.counts.touched) == (7, 7)
    # A list of a few is well formed too, and takes nobody away.
    here.switch("companies", n=100)
    few = here.poll(at(WEDNESDAY + timedelta(days=2), "08:02"))
    assert (few.counts.withdrawn, few.counts.quarantined) == (0, 1)
    here.switch("companies", n=0)
    nothing = here.poll(at(WEDNESDAY + timedelta(days=3), "08:02"))
    assert nothing.outcome is not Outcome.SUCCESS
    assert here.place.sql("select count(*) as n from filings.dart_corps") == [{"n": count - 7}]
