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
from include.engine import cycle, windows
from include.engine.verdict import Verdict
from include.sandbox import edgar as stand_in
from include.sandbox.edgar_bulk import count_of_facts
from include.sandbox.exchange import World
from include.sources.edgar import finance_file
from include.sources.edgar.streams import COMPANYFACTS_STREAM, FACTS_STREAM
from tests.fixtures_sandbox import RunningSandbox, Start
from tests.sources.places import Place

SEOUL = ZoneInfo("Asia/Seoul")
# 13:30 in Seoul on Wednesday to Friday: the files of Tuesday's, Wednesday's and Thursday's filings.
FIRST = datetime(2026, 1, 7, 17, 30, tzinfo=SEOUL)
COMPANIES = 40


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
