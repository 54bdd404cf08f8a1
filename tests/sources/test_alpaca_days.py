"""Alpaca through the engine, against the stand-in: polls, backfills and replays with all that happens to stocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from include.contract import CycleStatus, HostGroup, Mode, Outcome, Stream
from include.engine import credentials, cycle, jobs, lease, merge, replay, windows
from include.engine.cycle import Worker
from include.engine.db import Row, connect
from include.engine.raw import RawStore
from include.engine.verdict import Verdict
from include.local.postgres import Cluster
from include.sources import alpaca
from include.sources.alpaca import symbols
from include.sources.alpaca.streams import ASSETS_STREAM, DAILY_STREAM, MINUTE_STREAM
from tests.fixtures_sandbox import RunningSandbox, Start
from tests.sources.test_every_stream import copy_ledger

NEW_YORK = ZoneInfo("America/New_York")
SECRET, LOGIN = "marker-secret-of-alpaca", "marker-login-of-alpaca"
BARS = "session_date, symbol, adjustment, open, high, low, close, volume, trades, vwap, unit"


def quick(stream: Stream) -> Stream:
    return replace(stream, host_group=HostGroup("alpaca", timedelta(0)))


ASSETS, DAILY, MINUTE = quick(ASSETS_STREAM), quick(DAILY_STREAM), quick(MINUTE_STREAM)


def ny(month: int, day: int, hour: int = 17, minute: int = 35) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=NEW_YORK)


@dataclass
class Desk:
    """One warehouse, one raw store, one clock."""

    url: str
    raw: RawStore
    sandbox: RunningSandbox | None = None

    def sql(self, statement: str, *values: Any) -> list[Row]:
        with connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def at(self, instant: datetime) -> None:
        self.sql("update collect.installation set is_sandbox = true, clock_offset = %s - clock_timestamp()", instant)
        self.sql("update collect.host_groups set next_allowed_at = %s where next_allowed_at > %s", instant, instant)

    def now(self) -> datetime:
        instant: datetime = self.sql("select collect.clock() as t")[0]["t"]
        return instant

    def worker(self) -> Worker:
        assert self.sandbox is not None
        reach = credentials.build(alpaca.SOURCE, host="", login=LOGIN, password=SECRET, sandbox_url=self.sandbox.url)
        return Worker(self.url, self.raw, reach, lease.holder(), nap=lambda seconds: None)

    def poll(self, stream: Stream, *, at: datetime | None = None) -> Verdict:
        if at is not None:
            self.at(at)
        windows.declare(self.url, (stream,))
        windows.open_due(self.url, stream)
        verdict = None
        while (found := cycle.work(self.worker(), stream, Mode.POLL, None)) is not None:
            verdict = found
            if verdict.status is not CycleStatus.PENDING or verdict.next_eligible_at is not None:
                break
        assert verdict is not None
        return verdict

    def do(self, stream: Stream, mode: Mode, start: date, end: date, **more: Any) -> list[Verdict]:
        windows.declare(self.url, (stream,))
        request = jobs.JobRequest(mode, (stream,), start, end, reason="a test", **more)
        jobs.start(self.url, request)
        jobs.plan(self.url, request, stream)
        verdicts = []
        while True:
            if mode is Mode.REPLAY:
                verdict = replay.work(self.worker(), stream, request.name)
            else:
                verdict = cycle.work(self.worker(), stream, mode, request.name)
            if verdict is None:
                return verdicts
            verdicts.append(verdict)

    def bars(self, where: str = "true", columns: str = BARS, table: str = "alpaca_daily_bars") -> list[Row]:
        return self.sql(
            f"select {columns} from market.{table} where {where}"
            ' order by symbol collate "C", timeframe, adjustment, feed, ts'
        )

    def history(self, table: str = "alpaca_daily_bars") -> list[Row]:
        return self.sql(
            f"select {BARS}, sent_at, ended_at, reason from market.{table}_history"
            ' order by symbol collate "C", adjustment, ts, sent_at, ended_at'
        )

    def pending(self) -> dict[str, Row]:
        return {
            row["key"]: row for row in self.sql("select * from collect.pending where why <> 'recheck' order by key")
        }

    def closes(self, symbol: str, adjustment: str = "raw") -> dict[date, Any]:
        rows = self.bars(f"symbol = '{symbol}' and adjustment = '{adjustment}'", "session_date, close")
        return {row["session_date"]: row["close"] for row in rows}


_numbers = count(1)


@pytest.fixture
def desks(postgres: Cluster, _migrated: str, tmp_path: Path) -> Iterator[Callable[[], Desk]]:
    names: list[str] = []

    def make() -> Desk:
        names.append(f"alpaca_{next(_numbers)}")
        return Desk(postgres.create_database(names[-1], template=_migrated), RawStore(str(tmp_path / names[-1])))

    yield make
    for name in names:
        postgres.drop_database(name)


@pytest.fixture
def desk(desks: Callable[[], Desk], sandbox: Start) -> Desk:
    made = desks()
    made.at(ny(9, 15))
    made.sandbox = sandbox(clock=made.now, companies=12)
    return made


# --- three ways, one picture


def test_polled_backfilled_and_replayed_bars_are_the_same_with_late_bars_splits_and_renames(
    desks: Callable[[], Desk], sandbox: Start
) -> None:
    polled, filled, replayed = desks(), desks(), desks()
    polled.at(ny(8, 31))
    polled.sandbox = filled.sandbox = replayed.sandbox = sandbox(clock=polled.now, companies=12)
    happens = polled.sandbox.switch
    happens("alpaca", "late", symbol="AAPL", day="2026-09-01", until=ny(9, 1, 19).isoformat())
    happens("alpaca", "late", symbol="MSFT", day="2026-09-02", until=ny(9, 3, 8).isoformat(), how="missing")
    happens("alpaca", "split", symbol="NVDA", day="2026-09-03", ratio=[4, 1])
    happens("alpaca", "rename", symbol="META", to="META.A", day="2026-09-02")
    happens("alpaca", "list", symbol="META", day="2026-09-04")
    for month, day in ((8, 31), (9, 1), (9, 2), (9, 3), (9, 4)):
        polled.poll(ASSETS, at=ny(month, day))
        for hour in (17, 20):
            assert polled.poll(DAILY, at=ny(month, day, hour)).outcome is Outcome.SUCCESS
    assert len({row["reason"] for row in polled.history()}) == 1
    filled.at(ny(9, 4, 21))
    filled.poll(ASSETS)
    # Who asks only now knows no name that is gone: it is asked for by name.
    verdicts = filled.do(DAILY, Mode.BACKFILL, date(2026, 8, 3), date(2026, 9, 4))
    assert {verdict.outcome for verdict in verdicts} == {Outcome.SUCCESS}
    assert filled.bars() == polled.bars()
    assert polled.closes("META.A") == {
        day: close for day, close in filled.closes("META.A").items() if day >= date(2026, 9, 2)
    }
    assert set(polled.closes("META")) == {
        day for day in polled.closes("AAPL") if day < date(2026, 9, 2) or day >= date(2026, 9, 4)
    }

    replayed.at(ny(9, 4, 22))
    replayed.raw = polled.raw
    copy_ledger(polled.url, replayed.url)
    before = len(polled.sandbox.requests())
    replayed.do(DAILY, Mode.REPLAY, date(2026, 8, 1), date(2026, 9, 30))
    assert replayed.bars() == polled.bars()
    assert replayed.history() == polled.history()
    assert len(polled.sandbox.requests()) == before


def test_minute_bars_that_come_late_are_read_again_for_five_sessions(desk: Desk) -> None:
    assert desk.sandbox is not None
    late = ny(9, 16, 12).isoformat()
    desk.sandbox.switch("alpaca", "late", symbol="AAPL", day="2026-09-15", until=late, how="missing")
    desk.sandbox.switch("alpaca", "halt", symbol="MSFT", day="2026-09-15", **{"from": "10:15", "until": "10:45"})
    desk.poll(MINUTE, at=ny(9, 15, 20))
    table = "alpaca_intraday_bars"
    first = len(desk.bars("symbol = 'AAPL'", table=table))
    minutes = {row["ts"].astimezone(NEW_YORK).strftime("%H:%M") for row in desk.bars("symbol = 'MSFT'", "ts", table)}
    assert not {f"10:{minute}" for minute in range(15, 45)} & minutes
    assert "10:14" in minutes
    desk.poll(MINUTE, at=ny(9, 16, 20))
    assert len(desk.bars("symbol = 'AAPL' and session_date = '2026-09-15'", table=table)) > first
    due = [row["key"] for row in desk.sql("select key from collect.pending where why = 'recheck'")]
    assert sorted(due) == ["1.0/1Min-sip/2026-09-15", "1.0/1Min-sip/2026-09-16"]


# --- splits


def test_a_split_has_the_whole_adjusted_history_of_its_symbol_read_again_once(desk: Desk) -> None:
    assert desk.sandbox is not None
    desk.at(ny(9, 14))
    desk.do(DAILY, Mode.BACKFILL, date(2026, 6, 1), date(2026, 9, 14))
    desk.poll(DAILY, at=ny(9, 14, 20))
    before = desk.closes("NVDA", "split")
    assert before == desk.closes("NVDA")
    desk.sandbox.switch("alpaca", "split", symbol="NVDA", day="2026-09-15", ratio=[10, 1])
    others = desk.bars("symbol <> 'NVDA' and session_date < '2026-09-15'")
    desk.poll(DAILY, at=ny(9, 15))
    assert sorted(desk.pending()) == [f"NVDA/1Day-sip/2026-{end}" for end in ("06-30", "07-31", "08-31")]
    asked = len(desk.sandbox.requests(kind="bars"))
    desk.poll(DAILY, at=ny(9, 15, 20))
    assert desk.pending() == {}
    assert len(desk.sandbox.requests(kind="bars")) - asked == 2 + 3 * 2
    raw, adjusted = desk.closes("NVDA"), desk.closes("NVDA", "split")
    for day, close in raw.items():
        if day < date(2026, 9, 15):
            assert abs(close / 10 - adjusted[day]) < 1, day
        else:
            assert close == adjusted[day]
    assert {row["reason"] for row in desk.history() if row["adjustment"] == "split"} == {"revised"}
    # It was asked for again since the split: nothing more is to be done, and nobody else was touched.
    desk.poll(DAILY, at=ny(9, 16))
    assert desk.pending() == {}
    assert desk.bars("symbol <> 'NVDA' and session_date < '2026-09-15'") == others


# --- one of many


def test_one_malformed_symbol_is_pending_by_itself_and_the_others_are_there(desk: Desk) -> None:
    assert desk.sandbox is not None
    # Alpaca may find fault with any name; here with one of ours.
    rule = {
        "match": {"host": "data.alpaca.markets", "query_contains": "MSFT%2C"},
        "n": 1,
        "status": 400,
        "body": '{"message":"invalid symbol: MSFT"}',
    }
    desk.sandbox.control("POST", "faults", rule)
    verdict = desk.poll(DAILY)
    assert verdict.outcome is Outcome.PARTIAL, verdict.words
    assert desk.closes("AAPL")
    assert desk.closes("MSFT") == {}
    (left,) = desk.pending().values()
    assert (left["key"], left["last_error"]) == ("MSFT/1Day-sip/2026-09-15", "invalid symbol: MSFT")
    desk.poll(DAILY, at=ny(9, 15, 20))
    assert desk.pending() == {}
    assert desk.closes("MSFT")


def test_progress_failures_and_retries_are_told_by_symbol_though_groups_are_asked_for(desk: Desk) -> None:
    assert desk.sandbox is not None
    desk.sandbox.switch("alpaca", "list", symbol="GLD", day="2026-09-16")
    down = {"match": {"host": "data.alpaca.markets"}, "n": None, "status": 503}
    desk.sandbox.control("POST", "faults", down)
    desk.do(DAILY, Mode.BACKFILL, date(2026, 9, 14), date(2026, 9, 15))
    desk.poll(DAILY)
    pending = desk.sql("select * from market.alpaca_pending_symbols order by symbol")
    assert {"AAPL", "BRK.B", "GLD"} <= {row["symbol"] for row in pending}
    assert {(row["bars"], row["why"], row["attempts"] > 0) for row in pending} == {("1Day-sip", "failed", True)}
    assert all("503" in row["last_error"] and row["next_try_at"] for row in pending)
    desk.sandbox.control("DELETE", "faults")
    desk.poll(DAILY, at=ny(9, 16))
    assert desk.sql("select * from market.alpaca_pending_symbols") == []
    months = "select * from market.alpaca_symbol_months where month = '2026-09-01' and adjustment = 'raw'"
    found = {row["symbol"]: (row["bars"], row["last_day"]) for row in desk.sql(months)}
    assert found["AAPL"] == (len(desk.closes("AAPL")), date(2026, 9, 16))
    assert found["GLD"] == (1, date(2026, 9, 16))
    assert "ZZZZ" not in found


def test_a_shortened_list_of_assets_takes_nobody_away_and_one_that_left_it_is_not_asked_for(desk: Desk) -> None:
    assert desk.sandbox is not None
    listed, rows = (f"select symbol from market.alpaca_{name} order by 1" for name in ("listed_assets", "assets"))
    desk.poll(ASSETS)
    everybody = desk.sql(rows)
    desk.sandbox.switch("alpaca", "hide_assets", number=len(everybody) // 2)
    for day in (16, 17):
        assert desk.poll(ASSETS, at=ny(9, day)).outcome is Outcome.SUCCESS
        assert (desk.sql(listed), desk.sql(rows)) == (everybody, everybody)
    (told,) = desk.sql("select text from ops.incidents where closed_at is null and kind = 'quarantine'")
    assert "no item was missed or closed" in told["text"]
    desk.sandbox.switch("alpaca", "hide_assets", number=1)
    for day in (18, 21, 22):
        assert desk.sql(listed) == everybody
        desk.poll(ASSETS, at=ny(9, day))
    (gone,) = [row["symbol"] for row in desk.sql(rows) if row not in desk.sql(listed)]
    assert desk.sql("select distinct state from collect.quarantine") == [{"state": "resolved"}]
    desk.poll(DAILY)
    asked = desk.sql("select about ->> 'symbols' as symbols from collect.fetches where stream = 'alpaca.bars_1d'")
    assert asked
    assert not any(gone in row["symbols"].split(",") for row in asked)


def test_symbols_without_bars_are_told_and_no_longer_when_they_have_some(desk: Desk) -> None:
    assert desk.sandbox is not None
    desk.sandbox.switch("alpaca", "list", symbol="GLD", day="2026-09-16")
    desk.poll(DAILY)
    none = (
        "select count(*) as n from market.alpaca_daily_asked_none where symbol = 'GLD' and session_date = '2026-09-01'"
    )
    assert desk.sql(none) == [{"n": 2}]
    desk.poll(DAILY, at=ny(9, 16))
    assert desk.sql(none) == [{"n": 0}]
    assert len(desk.closes("GLD")) == 1


def test_a_symbol_without_bars_in_its_former_group_is_told_no_longer_when_it_has_some_in_another(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert desk.sandbox is not None
    desk.sandbox.switch("alpaca", "list", symbol="GLD", day="2026-09-16")
    desk.poll(DAILY)
    monkeypatch.setattr(symbols, "group_count", lambda symbols, size: 2)
    desk.poll(DAILY, at=ny(9, 16))
    (unit,) = {row["unit"] for row in desk.bars("symbol = 'GLD'")}
    assert unit.startswith("2.")
    assert desk.sql("select 1 from market.alpaca_asked_none where symbol = 'GLD'") == []
    months = "select bars from market.alpaca_symbol_months where symbol = 'GLD' and adjustment = 'raw'"
    assert desk.sql(months) == [{"bars": 1}]


def test_many_symbols_come_in_full_pages_and_a_symbol_goes_on_over_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert desk.sandbox is not None
    monkeypatch.setattr("include.sources.alpaca.requests.PAGE_ROWS", 25)
    desk.poll(DAILY)
    rows = desk.bars("adjustment = 'raw'")
    asked = desk.sandbox.requests(kind="bars")
    assert len(asked) == 2 * -(-len(rows) // 25)
    heads = desk.sql(
        "select count(*) filter (where head_fetch is null) as heads, count(*) as pages from collect.fetches"
    )
    assert (heads[0]["heads"], heads[0]["pages"]) == (1, len(asked))
    assert len({(row["symbol"], row["session_date"]) for row in rows}) == len(rows)


# --- refusals and secrets


def test_a_feed_that_the_plan_lacks_ends_the_window_with_its_name_after_one_request(desk: Desk) -> None:
    assert desk.sandbox is not None
    rule = {
        "match": {"host": "data.alpaca.markets"},
        "n": None,
        "status": 403,
        "body": '{"message":"subscription does not permit querying recent SIP data"}',
    }
    desk.sandbox.control("POST", "faults", rule)
    verdict = desk.poll(DAILY)
    assert verdict.outcome is Outcome.FAILED_TERMINAL
    assert "ALPACA_PLAN" in verdict.words
    assert len(desk.sandbox.requests(kind="bars")) == 1


def test_the_key_is_in_no_row_no_word_and_no_log(desk: Desk) -> None:
    assert desk.sandbox is not None
    rule = {"match": {"host": "data.alpaca.markets"}, "n": 1, "status": 403, "body": '{"message":"forbidden."}'}
    desk.sandbox.control("POST", "faults", rule)
    verdict = desk.poll(DAILY)
    assert verdict.outcome is Outcome.FAILED_TERMINAL
    assert "ALPACA_KEY" in verdict.words
    desk.do(DAILY, Mode.BACKFILL, date(2026, 9, 14), date(2026, 9, 15))
    texts = [verdict.words, str(desk.sandbox.requests())]
    for schema, table in (("collect", "fetches"), ("collect", "cycles"), ("ops", "alerts"), ("collect", "job_runs")):
        texts += [str(row) for row in desk.sql(f"select t::text from {schema}.{table} t")]
    assert not any(secret in text for secret in (SECRET, LOGIN) for text in texts)


def test_what_was_asked_for_during_the_session_is_cut_off_where_the_free_plan_ends(desk: Desk) -> None:
    often = replace(MINUTE, schedule=replace(MINUTE.schedule, cron="*/15 9-20 * * 1-5"))
    verdict = desk.poll(often, at=ny(9, 15, 11, 2))
    assert verdict.outcome is Outcome.SUCCESS
    newest = desk.sql("select max(ts) as t from market.alpaca_intraday_bars")[0]["t"]
    assert ny(9, 15, 10, 30) < newest <= ny(9, 15, 10, 46)
    desk.poll(often, at=ny(9, 15, 11, 17))
    later = desk.sql("select max(ts) as t from market.alpaca_intraday_bars")[0]["t"]
    assert newest < later <= ny(9, 15, 11, 1)


# --- other lengths


def test_bars_of_another_length_are_collected_by_a_backfill_that_names_it(desk: Desk) -> None:
    desk.do(MINUTE, Mode.BACKFILL, date(2026, 9, 14), date(2026, 9, 14), keys=("AAPL",))
    desk.do(MINUTE, Mode.BACKFILL, date(2026, 9, 14), date(2026, 9, 14), keys=("AAPL",), timeframe="1H")
    desk.do(DAILY, Mode.BACKFILL, date(2026, 8, 3), date(2026, 9, 14), timeframe="1Week")
    hours, minutes = desk.sql(
        "select timeframe, count(*) > 5 as some, sum(trades) as n from market.alpaca_intraday_bars"
        " group by 1 order by 1"
    )
    assert (hours["timeframe"], minutes["timeframe"]) == ("1Hour", "1Min")
    assert hours["some"]
    assert hours["n"] == minutes["n"]
    weeks = desk.bars("timeframe = '1Week' and symbol = 'AAPL' and adjustment = 'raw'")
    assert {row["session_date"].weekday() for row in weeks} == {0}
    slots = [row["slot"].partition("/")[2] for row in desk.sql("select slot from collect.cycles order by cycle_id")]
    assert slots == ["2026-09/AAPL", "2026-09/1Hour/AAPL", "2026-09/1Week/1.0", "2026-08/1Week/1.0"]


def test_a_length_that_the_stream_has_not_and_a_mode_that_takes_none_are_refused(desk: Desk) -> None:
    for stream, mode, words in (
        (DAILY, Mode.BACKFILL, "alpaca.bars_1d has no bars of the length '5Min'"),
        (ASSETS, Mode.BACKFILL, "is only a snapshot of today|has no bars of the length"),
        (MINUTE, Mode.REPLAY, "timeframe is for mode=backfill"),
    ):
        with pytest.raises(jobs.JobRefused, match=words):
            desk.do(stream, mode, date(2026, 9, 14), date(2026, 9, 14), timeframe="5Min")


# --- tables kept by the month


def test_months_are_kept_apart_and_made_when_they_are_needed(desk: Desk) -> None:
    desk.do(DAILY, Mode.BACKFILL, date(2026, 7, 1), date(2026, 9, 15))
    parts = desk.sql("select tableoid::regclass::text as part, count(*) as n from market.alpaca_daily_bars group by 1")
    names = sorted(row["part"] for row in parts)
    assert names == [f"market.alpaca_daily_bars_20260{month}" for month in (7, 8, 9)]
    assert all(row["n"] for row in parts)
    comments = desk.sql("select obj_description('market.alpaca_daily_bars_202609'::regclass) as c")
    assert comments == [{"c": "The month 2026-09 of alpaca_daily_bars"}]


def test_an_evening_minute_of_the_last_day_stays_in_its_month(desk: Desk) -> None:
    desk.at(ny(9, 1, 12))
    desk.do(MINUTE, Mode.BACKFILL, date(2026, 8, 31), date(2026, 8, 31))
    rows = desk.sql(
        "select max(ts) as t, array_agg(distinct tableoid::regclass::text) as parts from market.alpaca_intraday_bars"
    )
    assert rows[0]["t"] > datetime(2026, 8, 31, 22, 0, tzinfo=ZoneInfo("UTC"))
    assert rows[0]["parts"] == ["market.alpaca_intraday_bars_202608"]


def test_writers_of_two_months_do_not_wait_for_each_other_and_of_one_do(desk: Desk) -> None:
    desk.do(DAILY, Mode.BACKFILL, date(2026, 8, 31), date(2026, 9, 15))
    with connect(desk.url) as connection:
        # As a writer of September holds it.
        merge.lock(connection, replace(DAILY.tables[0], month="202609"))
        desk.do(DAILY, Mode.BACKFILL, date(2026, 8, 31), date(2026, 8, 31), run_id="august")
        free = desk.sql(
            "select pg_try_advisory_lock(hashtextextended('market.alpaca_daily_bars/202609', 9010)) as free"
        )
        assert free == [{"free": False}]


def test_a_replay_beside_the_tables_needs_no_months(desk: Desk) -> None:
    desk.do(DAILY, Mode.BACKFILL, date(2026, 9, 14), date(2026, 9, 15))
    verdicts = desk.do(DAILY, Mode.REPLAY, date(2026, 9, 1), date(2026, 9, 15), replay_into="versioned", run_id="copy")
    assert {verdict.outcome for verdict in verdicts} == {Outcome.SUCCESS}
    copies = desk.sql(
        r"select table_name as name from information_schema.tables where table_name like 'alpaca\_daily\_bars\_\_%'"
    )
    name = next(row["name"] for row in copies if not row["name"].endswith("_history"))
    assert desk.bars(table=name) == desk.bars()


def test_a_replay_of_a_symbol_leaves_the_other_groups_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("include.sources.alpaca.timeframes.MOST_SYMBOLS", 8)
    desk.do(DAILY, Mode.BACKFILL, date(2026, 9, 1), date(2026, 9, 15))
    units = {row["unit"] for row in desk.bars()}
    assert len(units) > 4
    before = desk.bars(columns=f"{BARS}, sent_at")
    (verdict,) = desk.do(DAILY, Mode.REPLAY, date(2026, 9, 1), date(2026, 9, 15), keys=("AAPL",))
    assert ": 1 units," in verdict.words
    assert desk.bars(columns=f"{BARS}, sent_at") == before


def test_daily_bars_are_provisional_until_they_were_read_after_the_extended_session(desk: Desk) -> None:
    judged = "select distinct is_final from market.alpaca_daily_bars_judged where session_date = '2026-09-15'"
    desk.poll(DAILY)
    assert desk.sql(judged) == [{"is_final": False}]
    desk.poll(DAILY, at=ny(9, 15, 20))
    assert desk.sql(judged) == [{"is_final": True}]
