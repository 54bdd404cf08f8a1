"""EDGAR's bulk file collected from its stand-in: days that change it, ranges, breaks, kills, bad members, files."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
import pytest

from include.contract import CycleStatus, HostGroup, Mode, Outcome, Stream
from include.engine import controls, cycle, jobs, replay, windows
from include.engine.verdict import Verdict
from include.operators import lanes
from include.sandbox import edgar as stand_in
from include.sandbox.edgar_bulk import count_of_facts
from include.sandbox.exchange import World
from include.sources.edgar import finance_file
from include.sources.edgar.streams import COMPANYFACTS_STREAM, FACTS_STREAM
from tests.fixtures_sandbox import RunningSandbox, Start
from tests.operators.stage import turn
from tests.sources.places import Place

SEOUL = ZoneInfo("Asia/Seoul")
# 13:30 in Seoul on Wednesday to Friday: the files of Tuesday's, Wednesday's and Thursday's filings.
FIRST = datetime(2026, 1, 7, 17, 30, tzinfo=SEOUL)
COMPANIES = 30


class Killed(BaseException):
    """A worker that vanishes: nothing of it runs any more."""


@dataclass
class Desk:
    """A place with the stand-in, and the same stand-in beside it to be asked what is in a day's file."""

    place: Place
    running: RunningSandbox
    beside: stand_in.Edgar
    archive: Stream
    facts: Stream

    @property
    def files(self) -> Path:
        return Path(f"{self.place.raw.root}-files")

    def switch(self, switch: str, **order: Any) -> None:
        self.running.switch("edgar", switch, **order)
        self.beside.switch({"switch": switch, **order})

    def at(self, days: int, **more: int) -> None:
        self.place.at(FIRST + timedelta(days=days, **more))

    def members(self) -> dict[str, bytes]:
        """What is in the file that lies there now."""
        return dict(self.beside.bulk().members(self.beside.day_at(self.place.now())))

    def poll(self, stream: Stream, signal: Callable[[str], None] = lambda point: None, **more: Any) -> Verdict:
        windows.declare(self.place.url, (stream,))
        windows.open_due(self.place.url, stream)
        last: Verdict | None = None
        worker = replace(self.place.worker(stream), nap=lambda seconds: None, signal=signal, **more)
        while (verdict := cycle.work(worker, stream, Mode.POLL, None)) is not None:
            last = verdict
            if verdict.next_eligible_at is not None or verdict.is_stopped:
                break
        assert last is not None
        return last

    def collect(self) -> tuple[Verdict, Verdict]:
        return self.poll(self.archive), self.poll(self.facts)

    def made(self) -> dict[str, tuple[str, int]]:
        """Every file by its path: hash and rows."""
        found = {}
        for path in sorted(self.files.rglob("*.parquet")):
            body = path.read_bytes()
            rows = pq.read_metadata(io.BytesIO(body)).num_rows
            found[str(path.relative_to(self.files))] = (hashlib.sha256(body).hexdigest(), rows)
        return found

    def wanted(self) -> dict[str, tuple[str, int]]:
        """The files that the members of the file of now come to, read by themselves."""
        found = {}
        for name, body in self.members().items():
            target = io.BytesIO()
            finance_file.convert(body, int(name[3:13]), target)
            found[finance_file.path_of(f"{name[3:13]}/facts")] = (
                hashlib.sha256(target.getvalue()).hexdigest(),
                count_of_facts(body),
            )
        return found

    def sent(self) -> tuple[int, int]:
        """How many requests for the bulk file were answered, and with how many bytes where a range was asked for."""
        log = self.running.requests(path=stand_in.BULK)
        return len(log), sum(each["sent"] or 0 for each in log if each["status"] == 206)


@pytest.fixture
def desk(place: Callable[[], Place], sandbox: Start, tmp_path: Path) -> Desk:
    made = place()
    made.at(FIRST)
    running = sandbox(clock=made.now, companies=COMPANIES)
    made.sandbox_url = running.url
    free = HostGroup("sec", timedelta(0))
    beside = stand_in.Edgar(World(tmp_path, companies=COMPANIES))
    found = Desk(
        made,
        running,
        beside,
        replace(COMPANYFACTS_STREAM, host_group=free),
        replace(FACTS_STREAM, host_group=free),
    )
    found.switch("days", divisor=300)
    return found


def test_days_rewrite_exactly_the_companies_that_changed_and_only_they_are_asked_for(desk: Desk) -> None:
    desk.switch("days", changed=0.1, new=0.05, gone=0.05)
    first = desk.collect()
    assert [verdict.outcome for verdict in first] == [Outcome.SUCCESS] * 2, [v.words for v in first]
    before, bodies = desk.made(), desk.members()
    assert before == desk.wanted()
    whole = len(desk.beside.bulk().archive(desk.beside.day_at(desk.place.now())))

    desk.at(1)
    _, sent = desk.sent()
    second = desk.collect()
    assert [verdict.outcome for verdict in second] == [Outcome.SUCCESS] * 2, [v.words for v in second]
    after, now = desk.made(), desk.members()
    gone = {finance_file.path_of(f"{name[3:13]}/facts") for name in bodies.keys() - now.keys()}
    changed = {name for name in now if now[name] != bodies.get(name)}
    assert gone
    assert 0 < len(changed) < len(now) / 2
    assert {path for path in after if after[path] != before.get(path)} == {
        finance_file.path_of(f"{name[3:13]}/facts") for name in changed
    } | gone
    assert {path: each for path, each in after.items() if path not in gone} == desk.wanted()
    assert {after[path][1] for path in gone} == {0}
    asked, came = desk.sent()
    assert came - sent < whole / 2
    assert desk.place.sql("select count(*) as n from collect.fetches where unit like '%%/facts'")[0]["n"] == len(
        bodies
    ) + len(changed)

    # Nothing new: one question, no work.
    desk.at(2)
    desk.switch("stand", at=(FIRST + timedelta(days=1)).isoformat())
    unchanged = desk.poll(desk.archive)
    assert unchanged.status is CycleStatus.PENDING, unchanged.words
    assert desk.sent()[0] == asked + 1
    assert desk.poll(desk.facts).words.startswith("NOTHING DUE")
    assert desk.made() == after


@pytest.mark.parametrize(("ranges", "validators"), [("no", True), ("blind", True), ("yes", False)])
def test_where_ranges_are_not_honoured_or_nothing_tells_versions_apart_the_whole_file_comes(
    desk: Desk, ranges: str, validators: bool
) -> None:
    desk.switch("ranges", how=ranges, validators=validators)
    for day in range(2):
        desk.at(day)
        assert [verdict.outcome for verdict in desk.collect()] == [Outcome.SUCCESS] * 2
        assert desk.made() == desk.wanted()


def test_a_bad_member_is_put_aside_the_others_go_on_and_a_good_one_heals_it(desk: Desk) -> None:
    good = desk.members()
    ciks = [int(name[3:13]) for name in sorted(good, key=lambda name: -len(good[name]))[:3]]
    for cik, how in zip(ciks, ("json", "cik", "name"), strict=True):
        desk.switch("spoil", cik=cik, how=how)
    fetched, made = desk.collect()
    assert (fetched.outcome, made.outcome) == (Outcome.PARTIAL, Outcome.PARTIAL), (fetched.words, made.words)
    spoilt = {finance_file.path_of(f"{cik:010d}/facts") for cik in ciks}
    assert desk.made() == {path: each for path, each in desk.wanted().items() if path not in spoilt}
    assert not (desk.files.parent / "CIK0000000001.json").exists()
    refused = desk.place.sql("select stream, unit, reason from collect.quarantine where state = 'open' order by 1, 2")
    assert [row["stream"] for row in refused] == ["edgar.companyfacts", "edgar.facts", "edgar.facts"]
    assert "its name is none" in refused[0]["reason"]
    assert {row["reason"].partition(",")[0].partition(":")[0] for row in refused[1:]} == {
        "it is no document of a company's facts",
        "it says that it is of company '1'",
    }
    # The next day's file is whole again.
    desk.switch("mend")
    desk.at(1)
    assert [verdict.outcome for verdict in desk.collect()] == [Outcome.SUCCESS] * 2
    assert desk.made() == desk.wanted()
    open_ones = desk.place.sql("select unit from collect.quarantine where state = 'open' and stream = 'edgar.facts'")
    assert open_ones == []


def test_who_is_killed_anywhere_is_gone_on_with_and_nothing_is_made_twice(desk: Desk) -> None:
    points: list[str] = []
    assert desk.poll(desk.archive).outcome is Outcome.SUCCESS
    wanted = desk.wanted()
    assert desk.facts.making is not None
    small = replace(desk.facts, making=replace(desk.facts.making, part_units=9))
    there: list[int] = []
    for day, kill_at in enumerate((1, 2, 5, 14, 20)):
        seen: list[str] = []

        def signal(point: str, seen: list[str] = seen, kill_at: int = kill_at) -> None:
            points.append(point)
            seen.append(point)
            if len(seen) == kill_at:
                raise Killed

        # Its leases run out, and the window of the next day goes on.
        desk.at(day)
        with pytest.raises(Killed):
            desk.poll(small, signal)
        there.append(len(desk.made()))
    desk.at(6)
    last = desk.poll(small)
    while last.status is not CycleStatus.SUCCESS:
        desk.place.at(desk.place.now() + timedelta(minutes=10))
        last = desk.poll(small)
    assert last.outcome is Outcome.SUCCESS, last.words
    assert desk.made() == wanted
    assert {"claimed", "planned", "made"} <= set(points)
    assert there[0] == 0
    assert 0 < there[-1] < len(wanted)
    # No part is left behind.
    left = "select 1 from collect.cycles where cycle_status in ('NOT_STARTED', 'PENDING', 'RUNNING')"
    assert desk.place.sql(left) == []


def test_lanes_work_the_parts_of_a_window_beside_its_own_task(desk: Desk) -> None:
    desk.poll(desk.archive)
    assert desk.facts.making is not None
    small = replace(desk.facts, making=replace(desk.facts.making, part_units=9))
    is_cut: list[str] = []
    stopped = desk.poll(small, is_cut.append, stop=lambda: "planned" in is_cut)
    assert stopped.is_stopped
    assert desk.made() == {}
    # Parts of a frozen stream wait, as its windows do.
    for action, waits in (("freeze", True), ("resume", False)):
        controls.apply(desk.place.url, controls.Change(action, "stream", small.name, "kim", "a test"))
        if waits:
            assert lanes.help_window(desk.place.worker(small), small, turn()).how == "again"
            assert desk.made() == {}
    lane = lanes.help_window(desk.place.worker(small), small, turn())
    assert (lane.how, desk.made()) == ("again", desk.wanted()), "the window itself says when it is over"
    assert desk.poll(small).outcome is Outcome.SUCCESS
    assert lanes.help_window(desk.place.worker(small), small, turn()).how == "green"


@pytest.mark.parametrize("ranges", ["yes", "no"])
def test_a_broken_download_is_gone_on_with_in_the_same_lease_and_by_the_next_one(desk: Desk, ranges: str) -> None:
    desk.switch("ranges", how=ranges)
    whole = len(desk.beside.bulk().archive(desk.beside.day_at(desk.place.now())))
    desk.running.fault(match={"path_contains": "companyfacts.zip"}, skip=int(ranges == "yes"), truncate=whole // 3, n=1)
    assert desk.poll(desk.archive).outcome is Outcome.SUCCESS
    sent = [each["sent"] for each in desk.running.requests(path=stand_in.BULK)]
    if ranges == "yes":
        # The end, a third, and the rest of it: nothing came twice.
        assert sum(sent) <= whole + 5_000
    assert desk.poll(desk.facts).outcome is Outcome.SUCCESS
    assert desk.made() == desk.wanted()


def test_companies_that_an_operator_names_are_asked_for_by_themselves_and_their_files_made_anew(desk: Desk) -> None:
    desk.collect()
    before = desk.made()
    changed = None
    for day in range(1, 9):
        desk.at(day)
        now = desk.wanted()
        changed = next((path for path in now if path in before and now[path] != before[path]), None)
        if changed:
            break
    assert changed is not None
    cik = str(int(changed[-18:-8]))
    for stream in (desk.archive, desk.facts):
        request = jobs.JobRequest(Mode.POLL, (stream,), None, None, keys=(cik,))
        jobs.start(desk.place.url, request)
        jobs.plan(desk.place.url, request, stream)
        worker = desk.place.worker(stream)
        verdict = cycle.work(worker, stream, Mode.POLL, request.name)
        assert verdict is not None
        assert verdict.outcome is Outcome.SUCCESS, verdict.words
    after = desk.made()
    assert {path for path in after if after[path] != before[path]} == {changed}
    assert after[changed] == now[changed]


def test_a_replay_makes_every_file_again_from_what_is_held_and_asks_nobody(desk: Desk) -> None:
    desk.collect()
    before, asked = desk.made(), len(desk.running.requests())
    for path in list(desk.files.rglob("*.parquet"))[:5]:
        path.unlink()
    today = FIRST.date()
    request = jobs.JobRequest(Mode.REPLAY, (desk.facts,), today, today, reason="a test")
    jobs.start(desk.place.url, request)
    jobs.plan(desk.place.url, request, desk.facts)
    while replay.work(desk.place.worker(desk.facts), desk.facts, request.name) is not None:
        continue
    assert jobs.conclude(desk.place.url, request.name)[0] is Outcome.SUCCESS
    assert desk.made() == before
    assert len(desk.running.requests()) == asked


def test_a_full_pass_finds_a_member_that_was_altered_under_an_equal_checksum(desk: Desk) -> None:
    desk.collect()
    (first,) = desk.place.sql("select unit, sha256 from collect.archive_members order by unit limit 1")
    other = desk.place.sql("select sha256 from collect.archive_members order by unit offset 1 limit 1")[0]["sha256"]
    # As if the bytes that are held had the checksum of the newest by chance.
    desk.place.sql("update collect.archive_members set sha256 = %s where unit = %s", other, first["unit"])
    desk.at(1)
    desk.collect()
    assert desk.place.sql("select sha256 from collect.archive_members where unit = %s", first["unit"]) != [
        {"sha256": first["sha256"]}
    ]
    desk.at(7)
    desk.collect()
    (now,) = desk.place.sql("select sha256 from collect.archive_members where unit = %s", first["unit"])
    name = f"CIK{first['unit'][:10]}.json"
    assert bytes(now["sha256"]) == hashlib.sha256(desk.members()[name]).digest()


@pytest.mark.parametrize("kind", ["page", "half", "few"])
def test_what_is_no_whole_archive_takes_nothing_away(desk: Desk, kind: str) -> None:
    desk.collect()
    before = desk.made()
    desk.at(1)
    if kind == "page":
        desk.running.fault(match={"path_contains": "companyfacts.zip"}, html_block_page=True, n=20)
    elif kind == "half":
        desk.switch("ranges", how="no")
        desk.running.fault(match={"path_contains": "companyfacts.zip"}, truncate=True, n=20)
    else:
        desk.switch("days", divisor=300, gone=0.9)
    verdict = desk.poll(desk.archive)
    assert verdict.status in (CycleStatus.FAILED, CycleStatus.PENDING), verdict.words
    assert desk.poll(desk.facts).words.startswith("NOTHING DUE")
    assert desk.made() == before
