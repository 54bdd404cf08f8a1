"""FRED collected from its stand-in: months of evenings with revisions, the past, faults, and reads of any day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from include import registry
from include.calendars import calendar, window_for
from include.contract import CycleStatus, HostGroup, Mode, Outcome, Parsed, Stream, Unit
from include.engine import audit, credentials, cycle, incidents, jobs, replay, windows
from include.engine.verdict import Verdict
from include.outputs.held import Folder
from include.outputs.upstream import Upstream, held_until
from include.sandbox.exchange import World
from include.sandbox.fred import Fred
from include.sandbox.fred_series import ST_LOUIS, profile
from include.sources import fred as source
from include.sources.fred import streams
from include.sources.fred.tables import VINTAGES
from tests.fixtures_sandbox import RunningSandbox, Start
from tests.sources.places import Place, copy_ledger

KEY = "a0secret0key0of0a0test0000000000"
FIRST = date(2026, 10, 20)
# Loaded in the evening after the poll, and in the morning before it.
LATE, EARLY = (
    next(series for series in ("SOFR", "DGS2", "DGS10", "DFF", "DGS5", "DGS30", "DPRIME", "IORB", "DGS1", "DFII10")
         if profile(7, series, 2).is_late is is_late)
    for is_late in (True, False)
)  # fmt: skip
FEW = (EARLY, "UNRATE", "GDP")
MANY = (*FEW, LATE, "ICSA")


def stream_of(*series: str) -> Stream:
    stream = streams.observations(source.catalogue({"all": list(series)}))
    return replace(stream, host_group=HostGroup("fred", timedelta(0)))


def evening(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), ST_LOUIS) + timedelta(hours=17, minutes=15)


@dataclass
class Desk:
    """One place with the stand-in, and the same stand-in beside it to be asked what was published."""

    place: Place
    running: RunningSandbox
    beside: Fred
    stream: Stream

    def work(self, mode: Mode, run_id: str | None) -> Verdict | None:
        worker = replace(self.place.worker(self.stream), nap=self.nap)
        reach = credentials.build(registry.source("fred"), host="", password=KEY, sandbox_url=self.place.sandbox_url)
        return cycle.work(replace(worker, credentials=reach), self.stream, mode, run_id)

    def nap(self, seconds: float) -> None:
        self.place.at(self.place.now() + timedelta(seconds=seconds))

    def poll(self, day: date, minutes: int = 5) -> Verdict:
        """The window of a day, worked to its end."""
        self.place.at(evening(day) + timedelta(minutes=minutes))
        windows.declare(self.place.url, (self.stream,))
        windows.open_due(self.place.url, self.stream)
        last: Verdict | None = None
        while (verdict := self.work(Mode.POLL, None)) is not None:
            last = verdict
            if verdict.next_eligible_at is not None:
                break
        assert last is not None
        return last

    def backfill(self, start: date, end: date, **more: Any) -> jobs.Progress:
        request = jobs.JobRequest(Mode.BACKFILL, (self.stream,), start, end, **more)
        jobs.start(self.place.url, request)
        jobs.plan(self.place.url, request, self.stream)
        while self.work(Mode.BACKFILL, request.name) is not None:
            pass
        return jobs.conclude(self.place.url, request.name)[1]

    def switch(self, switch: str, **order: Any) -> None:
        self.running.switch("fred", switch, **order)
        self.beside.switch({"switch": switch, **order})

    def as_of(self, day: date, *names: str) -> dict[tuple[str, str], str]:
        rows = self.place.sql("select * from market.fred_as_of(%s)", day)
        return {
            (row["series_id"], f"{row['observation_date']}"): row["value_text"]
            for row in rows
            if not names or row["series_id"] in names
        }

    def published(self, day: date, *names: str) -> dict[tuple[str, str], str]:
        """What the stand-in shows at the end of a day in St. Louis."""
        at = datetime.combine(day, datetime.max.time(), ST_LOUIS)
        return {
            (series, f"{observation}"): text
            for series in names
            for _, _, observation, text in self.beside.shelf.rows(series, at, day, day)
        }

    def asked(self, kind: str | None = None) -> int:
        found = self.running.requests(host="api.stlouisfed.org")
        return sum(kind is None or entry["kind"] == kind for entry in found)

    def pending(self) -> dict[str, dict[str, Any]]:
        return {row["key"]: row for row in self.place.sql("select * from collect.pending order by key")}


@pytest.fixture
def desk(place: Callable[[], Place], sandbox: Start, tmp_path: Path) -> Callable[..., Desk]:
    def make(*series: str, beside: Desk | None = None) -> Desk:
        made = place()
        if beside is not None:
            made.sandbox_url = beside.place.sandbox_url
            return Desk(made, beside.running, beside.beside, beside.stream)
        made.at(evening(FIRST))
        running = sandbox(clock=made.now, companies=25)
        made.sandbox_url = running.url
        return Desk(made, running, Fred(World(tmp_path, companies=25)), stream_of(*series))

    return make


# --- the newest that FRED has


def test_what_fred_has_newer_of_a_series_is_told_by_its_description_with_one_request_a_day(
    desk: Callable[..., Desk], tmp_path: Path
) -> None:
    here, now = desk(EARLY, "UNRATE"), datetime.now(UTC)
    here.place.at(evening(FIRST))
    reach = credentials.build(registry.source("fred"), host="", password=KEY, sandbox_url=here.place.sandbox_url)
    asking = Upstream(here.place.url, here.stream, VINTAGES, reach)
    folder = Folder(tmp_path)
    copy = tmp_path / "observations.parquet"
    days = {EARLY: date(2026, 10, 2), "UNRATE": date(2026, 10, 19)}
    pq.write_table(pa.table({"series_id": list(days), "realtime_start": list(days.values())}), copy)

    def held(of: str | None) -> date | None:
        return held_until([copy], "realtime_start", ("series_id", of) if of else None)

    assert (held(None), held(EARLY), held("GDP")) == (date(2026, 10, 19), date(2026, 10, 2), None)
    looked = asking.look(folder, held, now)
    # The newest of all copies is another series' own; this one is behind.
    assert looked.is_newer
    assert f"of {EARLY}, ours ends at 2026-10-02" in looked.words
    assert asking.look(folder, held, now) == looked
    assert here.asked() == 1
    days[EARLY] = date(2026, 10, 20)
    pq.write_table(pa.table({"series_id": list(days), "realtime_start": list(days.values())}), copy)
    assert asking.look(folder, held, now).is_newer is False
    assert here.place.sql("select 1 from market.fred_vintages") == []


# --- months


def test_months_come_to_the_same_tables_by_poll_backfill_and_replay_and_read_as_on_any_day(
    desk: Callable[..., Desk],
) -> None:
    here = desk(*MANY)
    here.switch("revise", series="GDP", date="2026-04-01", value="77.7", at="2026-11-05T09:00:00-06:00")
    here.switch("revise", series="GDP", date="2026-01-01", value=None, at="2026-11-12T09:00:00-06:00")
    here.switch("revise", series="GDP", date="2026-01-01", value=".", at="2026-12-22T09:00:00-06:00")
    here.switch("describe", series="UNRATE", at="2026-11-20T09:00:00-06:00", units="Percent of Everybody")
    here.switch("end", series="ICSA", last="2026-11-27", at="2026-12-15T09:00:00-06:00")
    here.switch("delay", series="UNRATE", day="2026-11-12", until="2026-11-18T16:00:00-06:00")
    # Evenings with days left out between them, over a New Year: what was missed is caught up.
    days, gaps = [FIRST], (1, 1, 1, 4, 1, 2, 9, 1, 12, 3, 20, 6, 10, 1, 2, 4, 3)
    for gap in gaps:
        days.append(days[-1] + timedelta(days=gap))
    for day in days:
        assert here.poll(day).outcome is Outcome.SUCCESS, day
        if day == FIRST:
            # The past that polls do not read.
            here.backfill(date(2025, 1, 1), FIRST, run_id="the-past")
    assert days[-1] > date(2027, 1, 8)
    by_poll = here.place.tables(here.stream)
    assert len(by_poll["market.fred_vintages"]) > 500
    assert [row["units"] for row in by_poll["market.fred_series"] if row["series_id"] == "UNRATE"][-2:] == [
        "Percent of Everybody", "Percent of Everybody",
    ]  # fmt: skip

    there = desk(beside=here)
    there.place.at(here.place.now())
    windows.declare(there.place.url, (there.stream,))
    there.backfill(date(2025, 1, 1), days[-1])
    assert there.place.tables(there.stream) == by_poll

    again = desk(beside=here)
    again.place.at(here.place.now())
    again.place.raw = here.place.raw
    copy_ledger(here.place.url, again.place.url)
    windows.declare(again.place.url, (again.stream,))
    asked = here.asked()
    again.place.do(again.stream, Mode.REPLAY, date(2025, 1, 1), days[-1])
    told = ("sent_at", "fetch_id")
    assert again.place.tables(again.stream, *told) == here.place.tables(here.stream, *told)
    assert here.asked() == asked

    last = days[-1] - timedelta(days=1)
    for back in (0, 1, 2, 5, 17, 24, 25, 30, 55, 60, 61, 64, 70, 81, 130, 250, 400):
        day = last - timedelta(days=back)
        assert here.as_of(day) == here.published(day, *MANY), day
    # The same by real-time periods, and the first of each.
    rows = here.place.sql("select * from market.fred_observations where series_id = 'GDP'")
    at = datetime.combine(last, datetime.max.time(), ST_LOUIS)
    right = here.beside.shelf.rows("GDP", at, date(1776, 7, 4), date(9999, 12, 31))
    found = [(row["realtime_start"], row["realtime_end"], row["observation_date"], row["value_text"]) for row in rows]
    assert sorted(found) == sorted(right)
    firsts = here.place.sql("select * from market.fred_first_releases where series_id = 'GDP'")
    assert {row["observation_date"]: row["value_text"] for row in firsts} == {
        day: next(text for _, _, other, text in sorted(right) if other == day) for day in {row[2] for row in right}
    }


def test_a_replay_after_a_parser_change_counts_for_each_table_what_it_did(desk: Callable[..., Desk]) -> None:
    here = desk("GDP")
    here.poll(FIRST)
    held = {name: len(rows) for name, rows in here.place.tables(here.stream).items()}

    def parse(unit: Unit) -> Parsed:
        series, values = here.stream.parse(unit).batches
        rows = [(*row[:3], row[3].rstrip("0"), *row[4:]) for row in values.rows]
        return Parsed((series, replace(values, rows=rows[1:])))

    newer = replace(here.stream, parse=parse, parser_version=here.stream.parser_version + 1)
    request = jobs.JobRequest(Mode.REPLAY, (newer,), date(2026, 1, 1), FIRST, reason="a test")
    windows.declare(here.place.url, (newer,))
    jobs.start(here.place.url, request)
    jobs.plan(here.place.url, request, newer)
    verdict = replay.work(here.place.worker(newer), newer, request.name)
    assert verdict is not None
    series, values = (verdict.counts.tables[f"market.fred_{name}"] for name in ("series", "vintages"))
    assert (series.new, series.changed, series.withdrawn, series.unchanged) == (0, 0, 0, held["market.fred_series"])
    assert (values.new, values.changed + values.unchanged) == (0, held["market.fred_vintages"] - 1)
    assert values.changed
    words = f"market.fred_series {series.unchanged} unchanged; market.fred_vintages {values.changed} changed"
    assert words in verdict.words


def test_an_evening_without_news_asks_once_a_series_and_reads_nothing(desk: Callable[..., Desk]) -> None:
    here = desk("GDP", "GDPC1", "ECIWAG")
    here.poll(FIRST)
    before = here.asked("observations")
    assert before == 3
    assert here.poll(FIRST + timedelta(days=1)).outcome is Outcome.SUCCESS
    assert here.asked("observations") == before
    assert here.asked("series") == 6


def test_a_backfill_is_counted_by_series_and_year_and_five_years_are_one_request(desk: Callable[..., Desk]) -> None:
    here = desk(EARLY, "GDP")
    windows.declare(here.place.url, (here.stream,))
    progress = here.backfill(date(2021, 1, 1), FIRST)
    assert (progress.total, progress.done) == (12, 12)
    # Two units a series: five years of the past, and the year so far.
    assert (here.asked("series"), here.asked("observations")) == (4, 4)
    units = {row["unit"] for row in here.place.sql("select distinct unit from market.fred_vintages")}
    assert units == {f"{EARLY}/2021-2025", f"{EARLY}/2026", "GDP/2021-2025", "GDP/2026"}


def test_years_before_a_series_was_kept_are_nothing_and_no_failure(desk: Callable[..., Desk]) -> None:
    here = desk("GDP")
    windows.declare(here.place.url, (here.stream,))
    progress = here.backfill(date(1958, 1, 1), date(1962, 12, 31))
    assert (progress.done, progress.partial, progress.rows_read) == (5, 0, 0)
    assert here.asked() == 2


# --- one series among others


def test_one_bad_id_keeps_nobody_from_the_others_and_is_told_and_given_up(desk: Callable[..., Desk]) -> None:
    here = desk(*FEW)
    here.switch("unknown", series="GDP")
    verdict = here.poll(FIRST)
    assert verdict.outcome is Outcome.PARTIAL
    held = {row["series_id"] for row in here.place.sql("select distinct series_id from market.fred_vintages")}
    assert held == {EARLY, "UNRATE"}
    assert list(here.pending()) == ["GDP/2026"]
    assert "FRED has no series GDP" in here.pending()["GDP/2026"]["last_error"]
    assert "config/fred_series.yaml" in here.pending()["GDP/2026"]["last_error"]
    # Asked once an evening, and after seven days only by an operator.
    for days in range(1, 9):
        here.poll(FIRST + timedelta(days=days))
    row = here.pending()["GDP/2026"]
    assert row["given_up_at"] is not None
    assert 8 <= row["attempts"] <= 9
    told = [each["text"] for each in here.place.sql("select text from ops.alerts")]
    assert any("GDP/2026 was given up" in text for text in told)
    asked = here.asked()
    assert here.poll(FIRST + timedelta(days=9)).outcome is Outcome.SUCCESS
    assert here.asked("series") - asked <= 2
    here.switch("unknown", series="GDP", **{"is": False})
    windows.declare(here.place.url, (here.stream,))
    here.backfill(date(2026, 1, 1), FIRST + timedelta(days=9), keys=("GDP",))
    assert not here.pending()
    assert here.poll(FIRST + timedelta(days=10)).outcome is Outcome.SUCCESS


def test_withheld_values_leave_what_was_collected(desk: Callable[..., Desk]) -> None:
    here = desk(*FEW)
    here.poll(FIRST)
    before = here.place.sql("select count(*) as n from market.fred_vintages")
    here.switch("withhold", series=EARLY)
    assert here.poll(FIRST + timedelta(days=1)).outcome is Outcome.SUCCESS
    assert here.place.sql("select count(*) as n from market.fred_vintages") == before
    rows = here.place.sql("select series_id from market.fred_series_current where not has_observations")
    assert [row["series_id"] for row in rows] == [EARLY]


def test_what_is_known_of_a_series_past_is_said_and_whole_only_from_its_first_vintage_on(
    desk: Callable[..., Desk],
) -> None:
    here = desk(EARLY, "GDP", "UNRATE")
    here.switch("no_vintages", series="UNRATE")
    here.poll(FIRST)

    def coverage(column: str = "is_whole") -> dict[str, Any]:
        rows = here.place.sql("select * from market.fred_coverage")
        return {row["series_id"]: row[column] for row in rows}

    assert coverage() == {EARLY: False, "GDP": False, "UNRATE": False}
    assert coverage("collected_from")["GDP"] == date(2026, 1, 1)
    assert coverage("has_no_vintages") == {EARLY: False, "GDP": False, "UNRATE": True}
    here.backfill(date(1950, 1, 1), FIRST)
    assert coverage() == {EARLY: True, "GDP": True, "UNRATE": False}
    shown = here.published(FIRST, "GDP", EARLY)
    assert here.as_of(FIRST, "GDP", EARLY) == shown
    # As if it had begun earlier, and what followed had not been collected.
    here.place.sql(
        "insert into market.fred_series select 'GDP', date '2013-02-01', false, title, frequency, frequency_short,"
        " units, units_short, seasonal_adjustment, seasonal_adjustment_short, notes, has_observations, 'GDP/2011-2015',"
        " fetch_id, sent_at, parser_version, cycle_id, attempt, extra"
        " from market.fred_series where series_id = 'GDP' limit 1"
    )
    assert (coverage("missing_years")["GDP"], coverage()["GDP"]) == (5, False)


def test_a_discontinued_series_is_no_error_and_says_so(desk: Callable[..., Desk]) -> None:
    here = desk("ICSA", "GDP")
    here.switch("end", series="ICSA", last="2026-03-06", at="2026-04-01T09:00:00-05:00")
    assert here.poll(FIRST).outcome is Outcome.SUCCESS
    rows = {row["series_id"]: row for row in here.place.sql("select * from market.fred_series_current")}
    assert rows["ICSA"]["is_discontinued"]
    assert rows["ICSA"]["last_observation"] == date(2026, 3, 6)
    assert not rows["GDP"]["is_discontinued"]


def test_how_old_a_series_may_be_goes_by_its_frequency(desk: Callable[..., Desk]) -> None:
    here = desk(EARLY, "UNRATE", "GDP", "ICSA")
    here.poll(FIRST)
    overdue = "select series_id from market.fred_overdue order by days_since desc, series_id"
    assert not here.place.sql(overdue)
    # A month on with nothing new: that is long for days and weeks, and nothing for months and quarters.
    here.place.at(evening(FIRST + timedelta(days=30)))
    assert {row["series_id"] for row in here.place.sql(overdue)} == {EARLY, "ICSA"}
    audit.audit(here.place.url, (here.stream,), None, audit.Limits(), "a test", has_github=False)
    told = {row["incident_key"]: row["text"] for row in incidents.listed(here.place.url)}
    assert "ICSA (Weekly, Ending Friday) had nothing new since" in told["doubtful/fred.observations"]
    assert "UNRATE" not in told["doubtful/fred.observations"]
    here.place.at(evening(FIRST + timedelta(days=90)))
    assert {row["series_id"] for row in here.place.sql(overdue)} == {EARLY, "ICSA", "UNRATE"}
    here.switch("end", series="ICSA", last="2026-10-09", at="2026-10-21T09:00:00-05:00")
    here.poll(FIRST + timedelta(days=91))
    assert not here.place.sql(overdue)
    audit.audit(here.place.url, (here.stream,), None, audit.Limits(), "a test", has_github=False)
    assert "doubtful/fred.observations" not in {row["incident_key"] for row in incidents.listed(here.place.url)}


def test_a_month_that_is_never_published_stays_a_row_without_a_number(desk: Callable[..., Desk]) -> None:
    here = desk("UNRATE")
    here.switch("revise", series="UNRATE", date="2026-08-01", value=".", at="2026-10-01T09:00:00-05:00")
    here.poll(FIRST)
    rows = here.place.sql(
        "select observation_date, value_text, value from market.fred_as_of(%s) where observation_date >= '2026-07-01'"
        " order by observation_date",
        FIRST,
    )
    assert [f"{row['observation_date']:%m}" for row in rows] == ["07", "08", "09"]
    assert [row["value"] is None for row in rows] == [False, True, False]
    assert rows[1]["value_text"] == "."


def test_a_series_without_vintages_is_known_from_when_it_was_collected(desk: Callable[..., Desk]) -> None:
    here = desk(EARLY, "GDP")
    here.switch("no_vintages", series=EARLY)
    assert here.poll(FIRST).outcome is Outcome.SUCCESS
    first = here.as_of(FIRST, EARLY)
    assert first
    assert first == here.published(FIRST, EARLY)
    assert not here.as_of(FIRST - timedelta(days=1), EARLY)
    here.switch("revise", series=EARLY, date="2026-10-01", value="-1.23", at="2026-10-21T09:00:00-05:00")
    here.poll(FIRST + timedelta(days=1))
    assert here.as_of(FIRST, EARLY) == first
    assert here.as_of(FIRST + timedelta(days=1), EARLY)[(EARLY, "2026-10-01")] == "-1.23"


def test_pages_short_of_the_count_come_to_the_same_rows(desk: Callable[..., Desk]) -> None:
    here = desk(EARLY)
    here.poll(FIRST)
    whole = here.place.tables(here.stream)
    there = desk(beside=here)
    there.switch("page", n=37)
    there.place.at(here.place.now())
    assert there.poll(FIRST, minutes=9).outcome is Outcome.SUCCESS
    assert there.place.tables(there.stream) == whole
    assert there.asked("observations") > 10


# --- what goes wrong


def fault(here: Desk, **rule: Any) -> None:
    here.running.fault(match={"host": "api.stlouisfed.org", **rule.pop("match", {})}, **rule)


NOT_REGISTERED = '{"error_code":400,"error_message":"Bad Request.  The value for variable api_key is not registered."}'


@pytest.mark.parametrize(
    "rule",
    [
        {"status": 400, "body": NOT_REGISTERED, "n": 2},
        {"status": 400, "body": '{"error_code":400,"error_message":"Bad Request."}', "n": 2},
        {"status": 504, "body": "<html><body>Gateway Time-out</body></html>", "n": 1},
        {"status": 500, "body": "", "n": 3},
        {"status": 429, "body": '{"error_code":429,"error_message":"Too Many Requests."}', "n": 2},
        {"status": 423, "body": '{"error_code":423,"error_message":"Locked."}', "n": 1},
        {"reset": True, "n": 2},
        {"truncate": True, "n": 1},
    ],
    ids=lambda rule: str(rule.get("status") or next(iter(rule))),
)
@pytest.mark.parametrize("kind", ["series", "observations"])
def test_what_passes_by_itself_is_waited_for(desk: Callable[..., Desk], rule: dict[str, Any], kind: str) -> None:
    here = desk("GDP")
    fault(here, match={"kind": kind}, **rule)
    assert here.poll(FIRST).outcome is Outcome.SUCCESS
    assert here.asked(kind) == rule["n"] + 1
    assert not here.pending()


def test_too_many_requests_wait_for_twenty_seconds(desk: Callable[..., Desk]) -> None:
    here = desk("GDP")
    here.stream = replace(here.stream, host_group=replace(streams.HOST_GROUP, interval=timedelta(0)))
    fault(here, status=429, n=1)
    start = evening(FIRST) + timedelta(minutes=5)
    here.poll(FIRST)
    assert timedelta(seconds=20) <= here.place.now() - start < timedelta(seconds=40)


@pytest.mark.parametrize("state", ["unknown", "malformed"])
def test_a_key_that_is_refused_ends_the_window_for_good_and_names_the_connection(
    desk: Callable[..., Desk], state: str
) -> None:
    here = desk(*FEW)
    here.switch("key", **{"is": state})
    verdict = here.poll(FIRST)
    assert verdict.status is CycleStatus.FAILED
    assert verdict.outcome is Outcome.FAILED_TERMINAL
    assert "connection fred" in verdict.words
    # Said of good keys under load too, so the one is asked for again slowly, the other is not.
    assert here.asked() == (4 if state == "unknown" else 1)


def test_a_block_page_stops_the_host(desk: Callable[..., Desk]) -> None:
    here = desk(*FEW)
    fault(here, html_block_page=True, n=1)
    verdict = here.poll(FIRST)
    assert here.asked() == 1
    assert verdict.outcome is Outcome.FAILED_TERMINAL
    (row,) = here.place.sql("select blocked_until > collect.clock() as is_blocked from collect.host_groups")
    assert row["is_blocked"]


def test_an_upstream_that_is_down_fails_the_window_and_the_next_one_catches_up(desk: Callable[..., Desk]) -> None:
    here = desk(*FEW)
    fault(here, status=503, n=None)
    verdict = here.poll(FIRST)
    assert (verdict.status, verdict.outcome) == (CycleStatus.FAILED, Outcome.FAILED_RETRIABLE)
    here.running.control("DELETE", "faults")
    assert here.poll(FIRST + timedelta(days=1)).outcome is Outcome.SUCCESS
    assert not here.pending()
    day = FIRST - timedelta(days=3)
    shown = here.published(day, *FEW)
    told = here.as_of(day)
    assert told
    assert all(shown[key] == text for key, text in told.items())


@pytest.mark.parametrize("drift", ["renamed", "missing"])
def test_another_schema_ends_the_window_for_good_and_touches_no_row(desk: Callable[..., Desk], drift: str) -> None:
    here = desk(*FEW)
    here.poll(FIRST)
    before = here.place.tables(here.stream)
    fault(here, schema_drift=drift, n=None)
    verdict = here.poll(FIRST + timedelta(days=1))
    assert verdict.outcome is Outcome.FAILED_TERMINAL
    assert here.place.tables(here.stream) == before


def test_the_key_is_in_the_request_and_nowhere_else(
    desk: Callable[..., Desk], caplog: pytest.LogCaptureFixture
) -> None:
    here = desk(*FEW)
    fault(here, match={"kind": "observations"}, status=503, body=f"no answer to api_key={KEY}", n=1)
    here.poll(FIRST)
    assert here.running.requests(host="api.stlouisfed.org")
    for table in ("collect.fetches", "collect.pending", "collect.cycles", "collect.quarantine", "ops.alerts"):
        (row,) = here.place.sql(f"select count(*) as n from {table} t where t::text like '%%{KEY}%%'")
        assert row["n"] == 0, table
    assert KEY not in caplog.text
    for head in here.place.sql("select sha256 from collect.raw_objects"):
        assert KEY.encode() not in here.place.raw.body(bytes(head["sha256"])).read()


def test_requests_keep_the_distance_that_is_enforced(desk: Callable[..., Desk]) -> None:
    here = desk("GDP", "GDPC1", "ECIWAG")
    here.stream = replace(here.stream, host_group=streams.HOST_GROUP)
    assert streams.HOST_GROUP.interval >= timedelta(seconds=0.6)
    here.place.at(evening(FIRST) + timedelta(minutes=5))
    windows.declare(here.place.url, (here.stream,))
    windows.open_due(here.place.url, here.stream)
    # With real naps: time passes by itself.
    cycle.work(here.place.worker(here.stream), here.stream, Mode.POLL, None)
    rate = here.running.control("GET", "rate?host=api.stlouisfed.org")
    assert rate["count"] == 6
    assert rate["max_in_a_second"] <= 2
    assert rate["shortest_interval"] > 0.5


def test_a_date_that_is_none_is_refused_before_anything_is_asked(desk: Callable[..., Desk]) -> None:
    from include.operators.request import RequestRefused, read

    here = desk("GDP")
    params = {"mode": "backfill", "start_date": "01/02/2020", "end_date": "2020-02-01"}
    with pytest.raises(RequestRefused, match="is no date"):
        read(params, params, [here.stream])
    with pytest.raises(jobs.JobRefused, match="is before start_date"):
        here.backfill(date(2026, 2, 1), date(2026, 1, 1))
    assert not here.asked()


def test_a_window_is_of_its_day_in_new_york_every_day_of_the_week() -> None:
    stream = registry.stream("fred.observations")
    for day in (date(2026, 9, 19), date(2026, 9, 20), date(2026, 12, 25)):
        window = window_for(stream, evening(day), calendar(stream.calendar))
        assert window.session_date == day
