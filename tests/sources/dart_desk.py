"""DART's sync at one place with its stand-in: reports are found by the list, and each category is worked by itself.

The same stand-in beside it is asked what DART has at an instant, without a request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from include import registry
from include.contract import HostGroup, Mode, Quota, Stream
from include.engine import credentials, cycle, jobs, windows
from include.engine.db import Connection, connect
from include.engine.verdict import Verdict
from include.sandbox import dart_rows
from include.sandbox.dart import Dart
from include.sandbox.dart_documents import written
from include.sandbox.dart_filings import Filing
from include.sandbox.dart_items import FIELDS
from include.sandbox.dart_periodic import SEOUL, Report
from include.sandbox.exchange import World
from tests.fixtures_sandbox import RunningSandbox, Start
from tests.sources.places import Place

KEYS = ("1" * 39 + "a", "2" * 39 + "b")
LISTED = "dart.disclosures"
PARTS = {"dart.finance": ("OFS", "CFS"), "dart.report": tuple(FIELDS)}


def at(day: date, text: str) -> datetime:
    return datetime.combine(day, time.fromisoformat(text), SEOUL)


def fast(name: str, **quota: Any) -> Stream:
    """A stream of DART's without a wait between requests."""
    group = HostGroup("dart", timedelta(0), quota=Quota(**({"requests": 20_000, "timezone": "Asia/Seoul"} | quota)))
    return replace(registry.stream(name), host_group=group)


@dataclass
class SyncDesk:
    """One warehouse, the stand-in, and the same stand-in beside it."""

    place: Place
    running: RunningSandbox
    beside: Dart
    quota: dict[str, Any] = field(default_factory=dict)
    keys: tuple[str, ...] = KEYS
    told: Callable[[str], None] = lambda point: None
    leaves: int | None = None
    # Whether the streams keep their own rate and quota, on the simulated clock.
    keeps_pace: bool = False
    # What happens between two slices of a window.
    between: Callable[[], None] = lambda: None
    # The clock is moved at every request: a connection for each time would cost more than the request.
    clock: Connection = field(init=False)

    def __post_init__(self) -> None:
        self.clock = connect(self.place.url, application="the clock of a desk", autocommit=True)

    def stream(self, name: str) -> Stream:
        if self.keeps_pace:
            return registry.stream(name)
        stream = fast(name, **self.quota)
        return stream if self.leaves is None or name == LISTED else replace(stream, leaves_quota=self.leaves)

    def work(self, stream: Stream, mode: Mode, run_id: str | None) -> Verdict | None:
        reach = credentials.build(
            registry.source("dart"), host="", password=",".join(self.keys), sandbox_url=self.place.sandbox_url
        )
        worker = replace(self.place.worker(stream), nap=self.nap, credentials=reach, signal=self.told)
        return cycle.work(worker, stream, mode, run_id)

    def nap(self, seconds: float) -> None:
        """Let time pass that a worker waits; its lease is renewed meanwhile, which it does by its own clock."""
        self.at(self.place.now() + timedelta(seconds=seconds))
        self.clock.execute(
            "update collect.cycles set lease_until = lease_until + make_interval(secs => %s)"
            " where cycle_status = 'RUNNING'",
            (seconds,),
        )

    def at(self, instant: datetime) -> None:
        """Set the warehouse's clock, and with it the stand-in's."""
        self.clock.execute("update collect.installation set clock_offset = %s - clock_timestamp()", (instant,))
        self.place.noted(instant)

    def poll(self, name: str, when: datetime) -> Verdict:
        """Work the window that is due at an instant to its end, or until it waits."""
        stream = self.stream(name)
        self.at(when)
        windows.declare(self.place.url, (stream,))
        windows.open_due(self.place.url, stream)
        last: Verdict | None = None
        while (verdict := self.work(stream, Mode.POLL, None)) is not None:
            last = verdict
            if verdict.next_eligible_at is not None:
                break
            self.between()
        assert last is not None
        return last

    def run(self, name: str, mode: Mode, start: date | None, end: date | None, **more: Any) -> jobs.Progress:
        stream = self.stream(name)
        windows.declare(self.place.url, (stream,))
        request = jobs.dated(self.place.url, jobs.JobRequest(mode, (stream,), start, end, reason="a test", **more))
        jobs.start(self.place.url, request)
        jobs.plan(self.place.url, request, stream)
        while (verdict := self.work(stream, mode, request.name)) is not None and not verdict.is_held:
            pass
        return jobs.conclude(self.place.url, request.name)[1]

    def switch(self, switch: str, **order: Any) -> None:
        self.running.switch("dart", switch, **order)
        self.beside.switch({"switch": switch, **order})

    def asked(self, kind: str) -> int:
        return len(self.running.requests(host="opendart.fss.or.kr", kind=kind))

    # --- what DART has

    def reports(self, first: date, last: date, until: datetime) -> set[tuple[int, int, str]]:
        """Company, year and code of the reports filed from one day to another, by an instant."""
        found = set()
        while first <= last:
            for each in self.beside.filings.market.of_day(first):
                if each.filed <= until and self.beside.filings.listed[each.company].market in "YK":
                    found.add((each.company, each.year, each.code))
            first += timedelta(days=1)
        return found

    def newest(self, place: tuple[int, int, str], when: datetime) -> Report | None:
        """The report whose data DART has of a company and period at an instant."""
        return self.beside.filings.market.with_data(*place, when)

    def has_data(self, key: str, when: datetime) -> bool:
        """Whether DART has data of a request's company and period at an instant, of that report or a later one."""
        corp, period, _, receipt = key.split("/")
        place = (self.beside.filings.places[corp], int(period[:4]), period[5:])
        report = self.newest(place, when)
        return (
            report is not None
            and self.beside.filings.market.number(report) >= receipt
            and bool(self.rows_of("dart.finance", report))
        )

    def rows_of(self, name: str, report: Report) -> dict[str, list[dict[str, str]]]:
        """The rows that DART has of a report, by part; parts without any are left out."""
        filings = self.beside.filings
        company, number = filings.listed[report.company], filings.market.number(report)
        found = dict[str, list[dict[str, str]]]()
        for part in PARTS[name]:
            if name == "dart.finance":
                rows = dart_rows.statements(filings.seed, filings.size, report, number, company, part)
            else:
                item = dart_rows.item(filings.seed, report, number, company, part) or {}
                rows = item.get("list") or [row for group in item.get("group", ()) for row in group["list"]]
            if rows:
                found[part] = rows
        return found

    # --- what is held

    def held(self, name: str, number: str) -> dict[str, list[dict[str, Any]]]:
        """The rows that a category holds of a report, by part, in the order of the answer."""
        table, part = {
            "dart.finance": ("filings.dart_statements", "fs_div"),
            "dart.report": ("filings.dart_report_items", "endpoint"),
        }[name]
        found: dict[str, list[dict[str, Any]]] = {}
        for row in self.place.sql(f"select * from {table} where rcept_no = %s order by {part}, number", number):
            found.setdefault(row[part], []).append(row)
        return found

    def lacks(self, name: str, places: set[tuple[int, int, str]], when: datetime) -> list[str]:
        """What a category does not hold exactly as DART had it at an instant, in words; nothing where it is whole."""
        wrong = []
        for place in sorted(places):
            report = self.newest(place, when)
            if report is None:
                continue
            number = self.beside.filings.market.number(report)
            right, held = self.rows_of(name, report), self.held(name, number)
            if right.keys() != held.keys():
                odd = sorted(right.keys() ^ held.keys())
                wrong.append(f"{place} {number}: {len(odd)} parts differ, first {odd[0]}")
                continue
            wrong += [
                f"{place} {number} {part} {n}"
                for part, rows in right.items()
                for n, (row, mine) in enumerate(zip(rows, held[part], strict=True))
                if not is_same(row, mine)
            ]
        return wrong


def lacks_of_document(place: Place, filing: Filing) -> list[str]:
    """What of a report's document is not held as it was written, in words; nothing where it is whole."""
    number, right = filing.rcept_no, written(filing)
    held = place.sql("select * from filings.dart_docs where rcept_no = %s order by section_order", number)
    tables = place.sql("select * from filings.dart_doc_tables where rcept_no = %s order by table_order", number)
    rows = [row for row in held if row["section_level"]]
    places = {row["section_order"]: row["section_title"] for row in rows}
    given = [(row["section_level"], row["section_title"], row["section_slot"]) for row in rows]
    wrong = [] if given == [(each.level, each.title, each.slot) for each in right.chapters] else [f"chapters {given}"]
    above: list[str] = []
    for chapter, row in zip(right.chapters, rows, strict=False):
        above = [*above[: chapter.level - 1], chapter.title]
        # Bytes that are none of its text may stand before what ends a paragraph.
        text = row["section_content"].replace("\ufffd", "")
        parent = places.get(row["section_parent"])
        if (row["section_path"], parent) != (" > ".join(above), above[-2] if above[1:] else None):
            wrong.append(f"{chapter.title}: {row['section_path']}")
        wrong += [f"{chapter.title}: {line}" for line in map("\t".join, chapter.table) if text.count(line) != 1]
        lines = [each.strip() for line in chapter.lines for each in line.replace("&nbsp;", " ").split("&cr;")]
        wrong += [f"{chapter.title}: {line}" for line in lines if " ".join(line.split()) not in text]
    if [table["cells"] for table in tables] != [list(map(list, each.table)) for each in right.chapters]:
        wrong.append("tables")
    if any(table["amounts_in"] != "백만원" or table["fields"][0][:3] != [0, 1, "AMT_1"] for table in tables):
        wrong.append("fields")
    return [f"{number} {each}" for each in wrong]


def is_same(row: dict[str, str], held: dict[str, Any]) -> bool:
    """Whether a row is held as DART gives it."""
    values = held.get("item_values")
    if values is not None:
        names = [name for name in row if name not in ("rcept_no", "corp_code", "stlm_dt")]
        return all(values.get(name) == row[name].strip() for name in names)
    for name, text in row.items():
        mine = held[name]
        if name.endswith("_amount"):
            bare = text.replace(",", "")
            if (None if bare in ("", "-") else bare) != (None if mine is None else str(mine)):
                return False
        elif str("" if mine is None else mine) != text:
            return False
    return True


@pytest.fixture
def sync_desk(place: Callable[[], Place], sandbox: Start, tmp_path: Path) -> Callable[..., SyncDesk]:
    def make(when: datetime, companies: int = 30, **quota: Any) -> SyncDesk:
        made = place()
        made.at(when)
        running = sandbox(clock=made.now, companies=companies)
        made.sandbox_url = running.url
        return SyncDesk(made, running, Dart(World(tmp_path, companies=companies)), quota)

    return make
