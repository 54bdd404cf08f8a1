"""Applying: answers become rows once, whatever comes again, late, wrong, or read by another parser."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from include.contract import Batch, CycleStatus, Mode, Outcome, Parsed, ParseError, Rejected, Stream, Unit
from include.engine import apply as applying
from include.engine import merge, stage, windows
from include.engine.db import connect
from include.sources.finra import daily_file
from include.sources.finra.tables import SHORT_VOLUME
from tests.engine import toy
from tests.engine.desk import MONDAY, SMALL, STREAM, THURSDAY, TUESDAY, WEDNESDAY, Desk, beside, make, ny

SUCCESS, PENDING = CycleStatus.SUCCESS, CycleStatus.PENDING
EVENINGS = (TUESDAY, WEDNESDAY, THURSDAY)


def one_file(ask: Any) -> Any:
    return STREAM.plan(replace(ask, keys=("CNMS",)))


# One file a day, read again in later windows.
REREAD = replace(STREAM, plan=one_file)

A = {"AAPL": ("10.5", 1, "20.25"), "MSFT": (5, 0, 9), "NVDA": (7, 2, 8)}
B = {"AAPL": ("11.5", 1, "20.25"), "MSFT": (5, 0, 9), "NVDA": (7, 2, 8)}


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.stream = REREAD
    return desk


def evening(desk: Desk, day: date, tuesday: dict[str, Any] | None = None) -> Any:
    """The window of a day: its own file is there, and Tuesday's reads as given from now on."""
    desk.cdn.publish(day, {"AAPL": (1, 0, 2)}, facilities=("CNMS",))
    if tuesday is not None:
        desk.cdn.put("CNMS", TUESDAY, tuesday)
    desk.at(ny(day))
    return desk.poll()


def history_of(desk: Desk, day: date = TUESDAY) -> list[tuple[str, str, str]]:
    return [
        (row["symbol"], format(row["short_volume"].normalize(), "f"), row["reason"])
        for row in desk.history()
        if row["session_date"] == day
    ]


def parsed_as(version: int, change: Callable[[tuple[Any, ...]], tuple[Any, ...] | None]) -> Stream:
    """The stream with a newer parser that changes or drops rows."""

    def parse(unit: Unit) -> Parsed:
        read = daily_file.parse(unit)
        rows = [changed for row in read.batches[0].rows if (changed := change(row)) is not None]
        return Parsed((Batch(SHORT_VOLUME, rows),), read.rejected, read.unknown_columns)

    return replace(REREAD, parser_version=version, parse=parse)


# --- republication


def test_a_file_that_changes_and_changes_back_leaves_both_versions_in_the_history(desk: Desk) -> None:
    for day, rows in zip(EVENINGS, (A, B, A), strict=True):
        evening(desk, day, rows)
    assert desk.values() == {"AAPL": "10.5", "MSFT": "5", "NVDA": "7"}
    assert history_of(desk) == [("AAPL", "10.5", "revised"), ("AAPL", "11.5", "revised")]
    first, second = (row for row in desk.history())
    now = next(row for row in desk.rows() if row["symbol"] == "AAPL" and row["session_date"] == TUESDAY)
    # Each version begins when the asking was sent that gave it first, and ends when the next one was.
    assert first["sent_at"] < first["ended_at"] == second["sent_at"] < second["ended_at"] == now["sent_at"]
    # Rows that never changed still name the fetch that gave them first.
    assert {row["fetch_id"] for row in desk.rows() if row["symbol"] in ("MSFT", "NVDA")} == {first["fetch_id"]}


def test_rows_that_a_newer_file_no_longer_gives_are_withdrawn_and_come_back(desk: Desk) -> None:
    without = {symbol: values for symbol, values in A.items() if symbol != "NVDA"}
    evening(desk, TUESDAY, A)
    verdict = evening(desk, WEDNESDAY, without)
    assert verdict.counts.withdrawn == 1
    assert desk.values() == {"AAPL": "10.5", "MSFT": "5"}
    assert history_of(desk) == [("NVDA", "7", "withdrawn")]
    evening(desk, THURSDAY, A)
    assert desk.values() == {"AAPL": "10.5", "MSFT": "5", "NVDA": "7"}
    assert history_of(desk) == [("NVDA", "7", "withdrawn")]


def test_a_file_that_becomes_empty_withdraws_all_its_rows(desk: Desk) -> None:
    evening(desk, TUESDAY, A)
    evening(desk, WEDNESDAY, {})
    assert desk.values() == {}
    assert [reason for _, _, reason in history_of(desk)] == ["withdrawn"] * 3


def test_where_a_stream_only_adds_nothing_is_withdrawn(desk: Desk) -> None:
    table = replace(SHORT_VOLUME, replaces="nothing")

    def parse(unit: Unit) -> Parsed:
        return Parsed((Batch(table, daily_file.parse(unit).batches[0].rows),))

    desk.stream = replace(REREAD, tables=(table,), parse=parse)
    evening(desk, TUESDAY, A)
    evening(desk, WEDNESDAY, {"AAPL": ("11.5", 1, "20.25")})
    assert desk.values() == {"AAPL": "11.5", "MSFT": "5", "NVDA": "7"}


# --- the same again writes nothing


def footprint(desk: Desk) -> tuple[Any, ...]:
    """What a write would change: row versions, and dead rows as the server counts them."""
    versions = desk.sql("select xmin::text, ctid::text from market.finra_short_volume order by 2")
    with psycopg.connect(desk.url, autocommit=True) as connection:
        connection.execute("select pg_stat_force_next_flush()")
        connection.execute("select 1")
        counts = connection.execute(
            "select n_dead_tup, n_tup_upd, n_tup_del from pg_stat_user_tables where relname = 'finra_short_volume'"
        ).fetchone()
    return versions, counts, desk.history()


def test_the_same_rows_again_write_nothing(desk: Desk) -> None:
    """The file is sent again whole (no validators), and read again by a replay."""
    many = {f"S{number:04}": (number, 0, 2 * number) for number in range(2_000)}
    evening(desk, TUESDAY, many)
    before = footprint(desk)
    desk.sql("update collect.fetches set etag = null")
    verdict = evening(desk, WEDNESDAY)
    assert (verdict.counts.read, verdict.counts.new, verdict.counts.changed) == (2_001, 1, 0)
    desk.sql("delete from market.finra_short_volume where session_date = %s", WEDNESDAY)
    desk.replay(TUESDAY)
    after = footprint(desk)
    assert [row for row in after[0] if row in before[0]] == before[0]
    assert after[2] == before[2] == []
    assert len([row for row in desk.rows() if row["session_date"] == TUESDAY]) == 2_000


def test_the_same_rows_again_cost_next_to_no_log(desk: Desk) -> None:
    """Write-ahead log of an unchanged unit, against that of its first load."""
    many = {f"S{number:05}": (number, 0, 2 * number) for number in range(20_000)}
    desk.cdn.put("CNMS", TUESDAY, many)
    connection = connect(desk.url, autocommit=True)
    position = "select pg_current_wal_insert_lsn() as at"
    written = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s) as bytes"

    def bytes_of(work: Callable[[], Any], checkpoint: bool = True) -> int:
        if checkpoint:
            connection.execute("checkpoint")
        at = connection.execute(position).fetchone()
        work()
        row = connection.execute(written, (at["at"],)).fetchone()  # type: ignore[index]
        return int(row["bytes"])  # type: ignore[index]

    first = bytes_of(desk.poll)
    desk.replay(TUESDAY, run_id="first")
    again = bytes_of(lambda: desk.replay(TUESDAY, run_id="second"), checkpoint=False)
    connection.close()
    assert desk.one("select count(*) as n from market.finra_short_volume")["n"] == 20_000
    # The second pays for its cycles and for a temporary stage's catalogue entries, not for rows.
    assert again < first / 20, (again, first)


# --- another parser


def test_a_parser_that_no_longer_makes_up_a_row_removes_it(desk: Desk) -> None:
    phantom = parsed_as(1, lambda row: row)
    desk.stream = phantom
    evening(desk, TUESDAY, {**A, "TOTAL": (22, 3, 37)})
    assert "TOTAL" in desk.values()
    desk.stream = parsed_as(2, lambda row: None if row[2] == "TOTAL" else row)
    (verdict,) = desk.replay(TUESDAY)
    assert verdict.counts.withdrawn == 1
    assert desk.values() == {"AAPL": "10.5", "MSFT": "5", "NVDA": "7"}
    assert history_of(desk) == [("TOTAL", "22", "parser")]
    # Rows that it reads alike are not touched, and once more changes nothing.
    assert {row["parser_version"] for row in desk.rows()} == {1}
    before = footprint(desk)
    (again,) = desk.replay(TUESDAY, run_id="again")
    assert again.counts.touched == 0
    assert footprint(desk) == before


def test_a_parser_that_reads_a_value_otherwise_keeps_what_was_read_before(desk: Desk) -> None:
    evening(desk, TUESDAY, A)
    evening(desk, WEDNESDAY, B)
    desk.stream = parsed_as(2, lambda row: (*row[:6], f"[{row[6]}]", *row[7:]))
    desk.replay(TUESDAY, WEDNESDAY)
    assert {row["market"] for row in desk.rows()} == {"[B,Q,N]"}
    assert {row["parser_version"] for row in desk.rows()} == {2}
    by_reason = {
        reason: sorted((row["symbol"], row["market"]) for row in desk.history() if row["reason"] == reason)
        for reason in ("revised", "parser", "withdrawn")
    }
    # What the upstream said, as it is read now; and what we said until now, where that was otherwise.
    assert by_reason["revised"] == [("AAPL", "[B,Q,N]")]
    assert by_reason["parser"] == [("AAPL", "B,Q,N"), ("AAPL", "B,Q,N"), ("MSFT", "B,Q,N"), ("NVDA", "B,Q,N")]
    assert by_reason["withdrawn"] == []


def test_an_older_parser_never_replaces_what_a_newer_one_read(desk: Desk) -> None:
    """During a deployment a worker of the release before still runs."""
    desk.stream = parsed_as(2, lambda row: (*row[:6], "new", *row[7:]))
    evening(desk, TUESDAY, A)
    before = desk.rows()
    desk.stream = REREAD
    desk.replay(TUESDAY, run_id="by-the-old-one")
    assert desk.rows() == before


# --- replay


def eventful_week(desk: Desk) -> None:
    """Three evenings with a revision, one taken back, a withdrawal, a cut file, bad rows and an empty facility."""
    desk.stream = STREAM
    desk.cdn.publish(TUESDAY, A)
    desk.cdn.put("FNQC", TUESDAY, A, trailer=7)
    desk.cdn.put("FNYX", TUESDAY, {**A, "BAD": ("abc", 0, 1), "WORSE": (9, 0, 3)})
    desk.at(ny(TUESDAY))
    desk.poll()
    desk.cdn.publish(WEDNESDAY, B)
    desk.cdn.put("CNMS", TUESDAY, B)
    desk.cdn.put("FNSQ", TUESDAY, {"AAPL": ("10.5", 1, "20.25")})
    desk.cdn.put("FNQC", TUESDAY, A)
    desk.at(ny(WEDNESDAY))
    desk.poll()
    desk.cdn.publish(THURSDAY, A)
    desk.cdn.put("CNMS", TUESDAY, A)
    desk.cdn.put("FNSQ", TUESDAY, A)
    desk.cdn.put("FNYX", TUESDAY, A)
    desk.cdn.put("FORF", WEDNESDAY, A, header="Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market")
    desk.at(ny(THURSDAY))
    desk.poll()


def without_parser(history: list[Any]) -> list[Any]:
    return [row for row in history if row["reason"] != "parser"]


@pytest.fixture
def empty(empty_database: str, desk: Desk, tmp_path: Path) -> Desk:
    """A second, empty warehouse beside the desk's, with the same raw store and no way out."""
    from include.engine.migrations import migrate

    migrate(empty_database)
    other = make(empty_database, desk.cdn, tmp_path / "unused", ny(THURSDAY, 20))
    other.raw = desk.raw
    return other


def copy_ledger(source: Desk, target: Desk) -> None:
    """Copy what was asked and what came back: all that a replay needs."""
    for table in ("collect.raw_objects", "collect.fetches"):
        columns = [
            row["attname"]
            for row in source.sql(
                "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 order by attnum", table
            )
        ]
        names = ", ".join(columns)
        with psycopg.connect(source.url) as reading, psycopg.connect(target.url) as writing:
            with (
                reading.cursor().copy(f"copy {table} ({names}) to stdout") as out,  # type: ignore[arg-type]
                writing.cursor().copy(f"copy {table} ({names}) from stdin") as into,  # type: ignore[arg-type]
            ):
                for block in out:
                    into.write(block)
            writing.commit()
    target.sql(
        "update collect.fetches set applied_at = null, applied_by = null, parser_version = null, rows_read = null"
    )


def forbid_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Python socket opens; the database driver has its own."""

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise AssertionError(f"a socket was opened: {arguments}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_replaying_everything_into_an_empty_database_gives_the_same_tables(
    desk: Desk, empty: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    eventful_week(desk)
    copy_ledger(desk, empty)
    empty.stream = desk.stream
    forbid_the_network(monkeypatch)
    verdicts = empty.replay(MONDAY, THURSDAY)
    assert {verdict.status for verdict in verdicts} == {SUCCESS}
    assert empty.rows() == desk.rows()
    assert len(empty.rows()) > 30
    assert empty.history() == desk.history()
    assert len(empty.history()) > 3
    open_there = {(entry["unit"], entry["position"], entry["rule"]) for entry in empty.quarantine()}
    assert open_there == {(entry["unit"], entry["position"], entry["rule"]) for entry in desk.quarantine()}
    # A replay moves no checkpoint, leaves no key pending and raises no alert.
    assert (empty.checkpoint(), empty.pending(), empty.alerts()) == (None, {}, [])


@pytest.mark.parametrize("seed", range(2))
def test_a_replay_in_any_order_changes_nothing(desk: Desk, seed: int) -> None:
    """Units one by one, shuffled, each as a replay of its own; the tables were right before and are after."""
    eventful_week(desk)
    rows, history = desk.rows(), desk.history()
    units = [row["unit"] for row in desk.sql("select distinct unit from collect.fetches where answer_class = 'data'")]
    Random(seed).shuffle(units)
    for number, unit in enumerate(units):
        facility, _, day = unit.partition("/")
        desk.replay(date.fromisoformat(day), keys=(facility,), run_id=f"shuffled-{number}")
    assert desk.rows() == rows
    assert desk.history() == history


@pytest.mark.parametrize("seed", range(2))
def test_days_replayed_in_any_order_into_an_empty_database_give_the_same_tables(
    desk: Desk, empty: Desk, seed: int
) -> None:
    eventful_week(desk)
    copy_ledger(desk, empty)
    empty.stream = desk.stream
    days = [TUESDAY, WEDNESDAY, THURSDAY]
    Random(seed).shuffle(days)
    for day in days:
        empty.replay(day)
    assert empty.rows() == desk.rows()
    assert empty.history() == desk.history()


def test_a_replay_tells_of_keys_that_went_from_one_unit_to_another_what_the_live_tables_tell(
    desk: Desk, empty: Desk
) -> None:
    """As where the number of a stream's groups grows: names are in other groups from then on."""
    toy.at(desk, toy.files("old", "new"))
    toy.at(empty, desk.stream)
    for name, rows in (
        ("old", {"a": 1, "b": 1, "c": 1}),
        ("old", {"a": 2, "b": 1, "c": 1}),
        ("new", {"a": 2, "b": 1, "c": 3}),
        ("new", {"a": 4, "b": 1, "c": 3}),
        ("new", {"a": 4, "b": 5, "c": 3}),
    ):
        desk.cdn.files[toy.file(name, TUESDAY)] = toy.lines(rows)
        desk.backfill(TUESDAY, keys=(name,), force=True)
        desk.advance(minutes=10)

    def told(of: Desk) -> tuple[list[Any], list[Any]]:
        columns = "item, value, unit, sent_at"
        return (
            of.sql(f"select {columns} from market.toy_items order by item"),
            of.sql(f"select {columns}, ended_at, reason from market.toy_items_history order by item, sent_at"),
        )

    live = told(desk)
    assert toy.history(desk) == [("a", 1, "revised"), ("a", 2, "revised"), ("b", 1, "revised"), ("c", 1, "revised")]
    copy_ledger(desk, empty)
    for there in (empty, desk):
        there.replay(TUESDAY)
        assert told(there) == live


def test_replaying_with_another_parser_equals_having_had_it_from_the_start(desk: Desk, empty: Desk) -> None:
    eventful_week(desk)
    copy_ledger(desk, empty)
    newer = replace(parsed_as(2, lambda row: None if row[2] == "MSFT" else row), plan=STREAM.plan)
    desk.stream = empty.stream = newer
    desk.replay(TUESDAY, THURSDAY)
    empty.replay(TUESDAY, THURSDAY)

    def values(rows: list[Any]) -> list[Any]:
        return [{name: value for name, value in row.items() if name != "parser_version"} for row in rows]

    assert values(desk.rows()) == values(empty.rows())
    assert values(without_parser(desk.history())) == values(empty.history())
    assert {row["symbol"] for row in desk.history() if row["reason"] == "parser"} == {"MSFT"}


def test_a_versioned_replay_leaves_the_table_alone(desk: Desk) -> None:
    evening(desk, TUESDAY, A)
    before = footprint(desk)
    desk.stream = parsed_as(2, lambda row: (*row[:6], "new", *row[7:]))
    request = desk.request(Mode.REPLAY, TUESDAY, replay_into="versioned", run_id="beside")
    words = desk.begin(request)
    desk.work_off(request)
    assert footprint(desk) == before
    copy = words.rpartition(" ")[2]
    assert desk.sql(f"select distinct market from {copy}") == [{"market": "new"}]


# --- out of order


def test_an_older_answer_applied_after_a_newer_one_gives_the_same_as_in_order(desk: Desk, empty: Desk) -> None:
    """Two workers hold an answer each; the one that asked first applies last."""
    desk.stream = SMALL
    desk.cdn.put("CNMS", TUESDAY, A)
    request = desk.request(Mode.BACKFILL, TUESDAY, run_id="slow")
    desk.begin(request)
    other = desk.request(Mode.BACKFILL, TUESDAY, run_id="fast")
    desk.begin(other)

    def overtaken(point: str) -> None:
        if point == "before last apply":
            desk.cdn.put("CNMS", TUESDAY, {"AAPL": ("11.5", 1, "20.25"), "MSFT": (5, 0, 9)})
            desk.work_off(other)

    desk.work_off(request, signal=overtaken)
    assert desk.values() == {"AAPL": "11.5", "MSFT": "5"}
    assert history_of(desk) == [("AAPL", "10.5", "revised"), ("NVDA", "7", "withdrawn")]
    copy_ledger(desk, empty)
    empty.stream = SMALL
    empty.replay(TUESDAY)
    assert empty.rows() == desk.rows()
    assert empty.history() == desk.history()


def test_an_asking_that_is_stored_while_another_applies_makes_it_read_again(desk: Desk) -> None:
    """Between reading and locking, another worker stores and applies a newer answer of the same unit."""
    desk.stream = SMALL
    desk.cdn.put("CNMS", TUESDAY, A)
    request = desk.request(Mode.BACKFILL, TUESDAY, run_id="slow")
    desk.begin(request)
    other = desk.request(Mode.BACKFILL, TUESDAY, run_id="fast")
    desk.begin(other)
    real, done = applying.read, []

    def read(stream: Stream, held: Any, now: Any) -> Any:
        reading = real(stream, held, now)
        if not done:
            done.append(True)
            desk.cdn.put("CNMS", TUESDAY, B)
            desk.work_off(other)
        return reading

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(applying, "read", read)
        verdicts = desk.work_off(request)
    assert verdicts[-1].status is SUCCESS
    assert desk.values()["AAPL"] == "11.5"
    assert history_of(desk) == [("AAPL", "10.5", "revised")]


# --- bad rows and bad units


def test_rows_that_break_a_rule_go_to_quarantine_and_the_others_are_kept(desk: Desk) -> None:
    rows: dict[str, Any] = {
        "GOOD": (1, 0, 2),
        "MORE": (9, 0, 3),
        "EXEMPT": (1, 2, 3),
        "": (1, 0, 2),
        "WORD": ("abc", 0, 1),
        "MINUS": (-1, 0, 2),
    }
    verdict = evening(desk, TUESDAY, rows)
    assert desk.values() == {"GOOD": "1"}
    entries = {entry["rule"]: entry for entry in desk.quarantine()}
    assert sorted(entries) == [
        "parse",
        "short exempt volume is at most short volume",
        "short volume is at most total volume",
        "symbol is not blank",
    ]
    assert entries["short volume is at most total volume"]["position"] == "row 2"
    assert '"MORE"' in entries["short volume is at most total volume"]["content"]
    reasons = {entry["position"]: entry["reason"] for entry in desk.quarantine() if entry["rule"] == "parse"}
    assert reasons == {
        "line 6": "short_volume is 'abc', which is not a volume",
        "line 7": "short_volume is '-1', which is not a volume",
    }
    assert all(entry["scope"] == "row" and entry["fetch_id"] for entry in desk.quarantine())
    assert verdict.counts.quarantined == 5
    assert desk.cycle()["quarantined_count"] == 5


def test_a_row_of_another_day_is_refused(desk: Desk) -> None:
    desk.cdn.files["CNMSshvol20260915.txt"] = desk.cdn.files.get("x", b"") or (
        b"Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market\r\n20260916|AAPL|1|0|2|Q\r\n20260915|MSFT|1|0|2|Q\r\n2\r\n"
    )
    desk.poll()
    assert desk.values() == {"MSFT": "1"}
    (entry,) = desk.quarantine()
    assert entry["rule"] == "trade date is the file's date"


def test_a_key_that_stands_twice_is_refused_both_times(desk: Desk) -> None:
    desk.cdn.files["CNMSshvol20260915.txt"] = (
        b"Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market\r\n20260915|AAPL|1|0|2|Q\r\n20260915|AAPL|2|0|3|Q\r\n"
        b"20260915|MSFT|1|0|2|Q\r\n3\r\n"
    )
    desk.poll()
    assert desk.values() == {"MSFT": "1"}
    assert sorted((entry["rule"], entry["position"]) for entry in desk.quarantine()) == [
        ("the key stands once in an answer", "row 1"),
        ("the key stands once in an answer", "row 2"),
    ]


def test_nothing_is_withdrawn_from_a_unit_with_refused_rows(desk: Desk) -> None:
    """What is missing may be among what could not be read."""
    evening(desk, TUESDAY, A)
    evening(desk, WEDNESDAY, {"AAPL": ("11.5", 1, "20.25"), "MSFT": ("abc", 0, 9)})
    assert desk.values() == {"AAPL": "11.5", "MSFT": "5", "NVDA": "7"}
    evening(desk, THURSDAY, {"AAPL": ("11.5", 1, "20.25"), "MSFT": (99, 0, 9)})
    assert desk.values() == {"AAPL": "11.5", "MSFT": "5", "NVDA": "7"}


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"trailer": 7}, "the trailer says 7 rows, the file has 3"),
        ({"trailer": None}, "no trailer after 3 rows"),
        ({"header": "Date|Symbol|ShortVolume|TotalVolume|Market"}, "the header lacks short_exempt_volume"),
        ({"header": "Date|Symbol|ShortQuantity|ShortExemptVolume|TotalVolume|Market"}, "the header lacks short_volume"),
    ],
)
def test_a_unit_that_cannot_be_read_changes_nothing_and_says_why(desk: Desk, form: dict[str, Any], reason: str) -> None:
    evening(desk, TUESDAY, A)
    desk.cdn.put("CNMS", TUESDAY, B, **form)
    verdict = evening(desk, WEDNESDAY)
    assert (verdict.status, verdict.outcome) == (SUCCESS, Outcome.PARTIAL)
    assert reason in verdict.words
    assert desk.values() == {"AAPL": "10.5", "MSFT": "5", "NVDA": "7"}
    (entry,) = desk.quarantine()
    assert (entry["scope"], entry["unit"]) == ("unit", "CNMS/2026-09-15")
    assert reason in entry["reason"]
    assert desk.pending()["CNMS/2026-09-15"]["why"] == "failed"


def test_an_unknown_column_is_kept_and_told(desk: Desk) -> None:
    desk.cdn.files["CNMSshvol20260915.txt"] = (
        b"Date|Symbol|ShortVolume|ShortExemptVolume|TotalVolume|Market|Venue\r\n20260915|AAPL|1|0|2|Q|X7\r\n1\r\n"
    )
    verdict = desk.poll()
    assert verdict.outcome is Outcome.SUCCESS
    (row,) = desk.rows()
    assert row["extra"] == {"Venue": "X7"}
    told = [text for text in desk.alerts() if "Venue" in text]
    assert len(told) == 1
    desk.replay(TUESDAY)
    assert [text for text in desk.alerts() if "Venue" in text] == told


def test_a_parser_that_breaks_is_a_refusal_with_the_exceptions_name(desk: Desk) -> None:
    def parse(unit: Unit) -> Parsed:
        raise IndexError("nobody thought of this")

    desk.stream = replace(REREAD, parse=parse)
    verdict = evening(desk, TUESDAY, A)
    assert verdict.status is SUCCESS
    (entry,) = desk.quarantine()
    assert "IndexError: nobody thought of this" in entry["reason"]


def test_quarantine_is_left_by_a_newer_answer_that_is_good(desk: Desk) -> None:
    desk.cdn.put("CNMS", TUESDAY, A, trailer=7)
    desk.at(ny(TUESDAY))
    assert desk.poll().outcome is Outcome.PARTIAL
    evening(desk, WEDNESDAY, A)
    assert desk.values() == {"AAPL": "10.5", "MSFT": "5", "NVDA": "7"}
    assert desk.quarantine() == []
    (entry,) = desk.quarantine("resolved")
    assert entry["resolved_by"] == f"cycle {desk.cycle()['cycle_id']}"
    assert desk.pending("failed") == {}


def test_quarantine_is_left_by_a_newer_parser_that_can_read_it(desk: Desk) -> None:
    desk.cdn.put("CNMS", TUESDAY, A, trailer=7)
    desk.poll()
    assert desk.rows() == []

    def parse(unit: Unit) -> Parsed:
        return daily_file.parse(replace(unit, session_date=None))

    desk.stream = replace(REREAD, parser_version=2, parse=parse)
    (verdict,) = desk.replay(TUESDAY)
    assert verdict.outcome is Outcome.SUCCESS
    assert desk.quarantine() == []
    assert len(desk.quarantine("resolved")) == 1


def test_one_bad_unit_does_not_keep_another_in_quarantine(desk: Desk) -> None:
    desk.stream = STREAM
    for facility in ("CNMS", "FNSQ"):
        desk.cdn.put(facility, TUESDAY, {"AAPL": (9, 0, 2)})
    desk.at(ny(TUESDAY))
    desk.poll()
    desk.cdn.put("CNMS", TUESDAY, {"AAPL": (1, 0, 2)})
    desk.cdn.put("FNSQ", TUESDAY, {"AAPL": (8, 0, 2)})
    desk.cdn.publish(WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    desk.poll()
    assert {entry["unit"] for entry in desk.quarantine()} == {"FNSQ/2026-09-15"}


def test_a_replay_by_the_same_parser_opens_nothing_that_was_resolved(desk: Desk) -> None:
    test_quarantine_is_left_by_a_newer_answer_that_is_good(desk)
    desk.sql("update collect.quarantine set state = 'dropped'")
    desk.replay(TUESDAY, WEDNESDAY)
    assert desk.quarantine() == []
    assert len(desk.quarantine("dropped")) == 1
    evening(desk, THURSDAY, {"AAPL": (9, 0, 2)})
    assert len(desk.quarantine()) == 1
    desk.sql("update collect.quarantine set state = 'dropped' where state = 'open'")
    desk.replay(TUESDAY, THURSDAY, run_id="once-more")
    assert desk.quarantine() == []


def test_a_refused_row_stands_in_quarantine_once_however_often_it_is_read(desk: Desk) -> None:
    evening(desk, TUESDAY, {"AAPL": (1, 0, 2), "MORE": (9, 0, 3), "WORD": ("abc", 0, 1)})
    before = desk.quarantine(None)
    for number in range(2):
        desk.replay(TUESDAY, run_id=f"once-more-{number}")
    assert desk.quarantine(None) == before


# --- the transaction


def test_rows_state_and_checkpoint_commit_together_or_not_at_all(desk: Desk) -> None:
    evening(desk, TUESDAY, A)
    before = desk.rows(), desk.history(), desk.checkpoint(), desk.pending(), desk.alerts()
    desk.cdn.publish(WEDNESDAY, B)
    desk.cdn.put("CNMS", TUESDAY, B)
    desk.at(ny(WEDNESDAY))

    def late(point: str) -> None:
        if point == "before last apply":
            desk.advance(seconds=400)

    verdict = desk.poll(signal=late)
    assert verdict.words.startswith("LEASE LOST")
    after = desk.rows(), desk.history(), desk.checkpoint(), desk.pending(), desk.alerts()
    assert after == before
    assert (
        desk.one("select count(*) as n from collect.fetches where applied_at is null and sha256 is not null")["n"] == 2
    )


@pytest.mark.parametrize("failure", [psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure])
@pytest.mark.parametrize("lazy", [False, True], ids=["lists", "generators"])
def test_a_deadlock_repeats_the_apply_under_the_same_token(
    desk: Desk, failure: type[psycopg.Error], lazy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the parser gives its rows one by one and they were used up by the try that failed."""
    if lazy:

        def parse(unit: Unit) -> Parsed:
            return Parsed((Batch(SHORT_VOLUME, (row for row in daily_file.parse(unit).batches[0].rows)),))

        desk.stream = replace(REREAD, parse=parse)
    evening(desk, TUESDAY, A)
    real, tries = merge.newest, []

    def newest(*arguments: Any) -> Any:
        tries.append(1)
        counts = real(*arguments)
        if len(tries) < 3:
            raise failure("a test")
        return counts

    monkeypatch.setattr(merge, "newest", newest)
    verdict = evening(desk, WEDNESDAY, B)
    assert verdict.status is SUCCESS
    assert len(tries) == 3
    assert desk.values() == {"AAPL": "11.5", "MSFT": "5", "NVDA": "7"}
    assert desk.cycle()["attempt"] == 1


def test_a_deadlock_that_stays_fails_the_window_with_its_cause_and_nothing_is_applied(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def newest(*arguments: Any) -> Any:
        raise psycopg.errors.DeadlockDetected("a test")

    monkeypatch.setattr(merge, "newest", newest)
    evening(desk, TUESDAY, A)
    assert desk.rows() == []
    assert desk.cycle()["cycle_status"] == CycleStatus.FAILED
    assert "DeadlockDetected" in desk.cycle()["failure_cause_summary"]


def test_two_streams_that_write_one_table_do_so_one_after_the_other(desk: Desk) -> None:
    """The table's lock: the second waits, and then sees what the first wrote."""
    evening(desk, TUESDAY, A)
    with connect(desk.url) as connection:
        merge.lock(connection, SHORT_VOLUME)
        desk.cdn.publish(WEDNESDAY, B, facilities=("CNMS",))
        desk.at(ny(WEDNESDAY))
        waiting = beside(desk.poll)
        from tests.engine.desk import wait_until_blocked

        wait_until_blocked(desk.url)
        assert {row["session_date"] for row in desk.rows()} == {TUESDAY}
    assert waiting.result().status is SUCCESS


def test_no_stage_outlives_its_transaction(desk: Desk) -> None:
    evening(desk, TUESDAY, A)
    left = desk.sql("select relname from pg_class where relpersistence = 't'")
    assert left == []


def test_a_unit_larger_than_one_apply_goes_in_parts_with_the_checkpoint_last(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "MOST_ROWS", 40)
    desk.stream = replace(STREAM, recheck=None)
    desk.cdn.publish(TUESDAY, {f"S{number}": (1, 0, 2) for number in range(60)})
    seen: list[tuple[int, date | None]] = []

    def signal(point: str) -> None:
        if point == "applied":
            seen.append((len(desk.rows()), desk.checkpoint()))

    verdict = desk.poll(signal=signal)
    assert verdict.status is SUCCESS
    assert len(seen) >= 4
    assert all(checkpoint is None for _, checkpoint in seen)
    assert len(desk.rows()) == 300
    assert verdict.counts.new == desk.cycle()["new_count"] == 300
    assert desk.cycle()["attempt"] == 1


def test_changed_months_are_marked_for_their_files_and_unchanged_ones_are_not(desk: Desk) -> None:
    evening(desk, TUESDAY, A)
    marks = desk.sql("select table_name, partition, version from publish.stale")
    assert [(mark["table_name"], mark["partition"]) for mark in marks] == [("market.finra_short_volume", "2026-09")]
    desk.replay(TUESDAY)
    assert desk.sql("select table_name, partition, version from publish.stale") == marks


def test_a_rejected_row_longer_than_its_column_is_cut(desk: Desk) -> None:
    def parse(unit: Unit) -> Parsed:
        return Parsed((Batch(SHORT_VOLUME, ()),), (Rejected("line 1", "too long", "x" * 2000),))

    desk.stream = replace(REREAD, parse=parse)
    evening(desk, TUESDAY, A)
    assert len(desk.quarantine()[0]["content"]) == 2000


def test_a_refusal_longer_than_its_column_is_cut(desk: Desk) -> None:
    def parse(unit: Unit) -> Parsed:
        raise ParseError("x" * 10_000)

    desk.stream = replace(REREAD, parse=parse)
    assert evening(desk, TUESDAY, A).status is SUCCESS
    assert len(desk.quarantine()[0]["reason"]) <= 2000
    assert len(desk.pending()["CNMS/2026-09-15"]["last_error"]) <= 1000


def test_declaring_a_newer_parser_is_seen(desk: Desk) -> None:
    windows.declare(desk.url, (replace(REREAD, parser_version=7),))
    assert desk.one("select parser_version from collect.streams")["parser_version"] == 7
    assert timedelta(0) <= desk.now() - desk.one("select updated_at from collect.streams")["updated_at"]


def test_a_table_that_is_not_published_leaves_no_file_to_be_built(desk: Desk) -> None:
    desk.stream = replace(SMALL, tables=tuple(replace(table, is_published=False) for table in SMALL.tables))
    desk.cdn.publish(TUESDAY)
    desk.backfill(TUESDAY)
    assert desk.rows()
    assert desk.sql("select * from publish.stale") == []
