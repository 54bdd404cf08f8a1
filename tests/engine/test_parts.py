"""Units of more rows than one transaction writes, and rows that several units give."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from include.contract import Batch, CycleStatus, Outcome, Parsed, Rejected, Unit
from include.engine import apply as applying
from include.engine import merge, stage
from include.engine.raw import RawStore
from tests.engine import toy
from tests.engine.desk import THURSDAY, TUESDAY, WEDNESDAY, Crash, Desk, ny

SUCCESS = CycleStatus.SUCCESS


@pytest.fixture
def desk(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(stage, "MOST_ROWS", 40)
    monkeypatch.setattr(stage, "BEAT_ROWS", 10)
    return toy.at(desk, toy.files("big"))


def many(count: int, value: int = 1, first: int = 0) -> dict[str, int]:
    return {f"i{number:04}": value for number in range(first, count)}


def publish(desk: Desk, rows: Any, day: date = TUESDAY, name: str = "big") -> None:
    desk.cdn.files[toy.file(name, day)] = toy.lines(rows)


@pytest.fixture
def commits(desk: Desk) -> list[int]:
    """How many rows each transaction on the table wrote, in order."""
    desk.sql(
        "create table market.toy_writes (n bigserial, x xid8, rows int);"
        "create function market.toy_note() returns trigger language plpgsql as $$ begin"
        " insert into market.toy_writes (x, rows) values (pg_current_xact_id(), 1); return null; end $$;"
        "create trigger note after insert or update or delete on market.toy_items for each row"
        " execute function market.toy_note();"
    )
    return []


def written(desk: Desk) -> list[int]:
    return [
        row["r"] for row in desk.sql("select sum(rows)::int as r from market.toy_writes group by x order by min(n)")
    ]


def test_a_large_unit_goes_in_parts_of_what_one_transaction_may_write(desk: Desk, commits: list[int]) -> None:
    publish(desk, many(130))
    verdict = desk.poll()
    assert verdict.status is SUCCESS
    assert toy.values(desk) == many(130)
    assert written(desk) == [40, 40, 40, 10]
    assert (verdict.counts.read, verdict.counts.new) == (130, 130)
    row = desk.cycle()
    assert (row["fetched_count"], row["new_count"], row["attempt"]) == (130, 130, 1)
    assert desk.one("select rows_read from collect.fetches")["rows_read"] == 130


def test_what_a_large_unit_no_longer_gives_goes_with_its_last_part_only(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(desk, many(100))
    desk.poll()
    before = desk.one("select version from publish.stale")["version"]
    seen: list[set[int]] = []
    real = merge.newest_part

    def newest_part(*args: Any) -> Any:
        counts = real(*args)
        seen.append({row["n"] for row in desk.sql("select count(*) as n from market.toy_items")})
        return counts

    monkeypatch.setattr(merge, "newest_part", newest_part)
    publish(desk, many(100, 2, first=10))
    desk.backfill(TUESDAY)
    assert seen == [{100}, {100}]
    assert toy.values(desk) == many(100, 2, first=10)
    gone = [(item, value, reason) for item, value, reason in toy.history(desk) if reason == "withdrawn"]
    assert gone == [(f"i{number:04}", 1, "withdrawn") for number in range(10)]
    assert len(toy.history(desk)) == 100
    assert desk.one("select version from publish.stale")["version"] > before


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_unit_whose_worker_dies_between_parts_is_finished_by_the_next_cycle(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    publish(desk, many(130))
    desk.poll()
    publish(desk, many(150, 2, first=20))
    real, done = merge.newest_part, []

    def newest_part(*args: Any) -> Any:
        if len(done) == after:
            raise Crash
        done.append(1)
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(merge, "newest_part", newest_part)
        with pytest.raises(Crash):
            desk.backfill(TUESDAY)
    half = toy.values(desk)
    assert sum(value == 2 for value in half.values()) == after * 40
    # Nothing is withdrawn and nothing is held before the last part.
    assert all(f"i{number:04}" in half for number in range(20))
    assert desk.one("select count(*) as n from collect.fetches where applied_at is null")["n"] == 1
    asked = len(desk.cdn.requests)
    desk.advance(minutes=6)
    publish(desk, {"z": 1}, WEDNESDAY)
    desk.at(ny(WEDNESDAY))
    assert desk.poll().status is SUCCESS
    assert len(desk.cdn.requests) == asked + 1
    assert toy.values(desk) == {**many(150, 2, first=20), "z": 1}
    kept = [entry for entry in toy.history(desk) if entry[2] == "withdrawn"]
    assert len(kept) == 20
    assert len({(item, reason) for item, _, reason in toy.history(desk)}) == len(toy.history(desk)) == 130


def test_a_worker_that_is_stopped_between_parts_gives_its_lease_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(desk, many(130))
    real, stopped = merge.newest_part, []

    def newest_part(*args: Any) -> Any:
        stopped.append(1)
        return real(*args)

    monkeypatch.setattr(merge, "newest_part", newest_part)
    verdict = desk.poll(stop=lambda: bool(stopped))
    assert verdict.is_stopped
    assert len(toy.values(desk)) == 40
    assert desk.cycle()["cycle_status"] == "PENDING"
    assert desk.poll().status is SUCCESS
    assert toy.values(desk) == many(130)
    assert len(desk.cdn.requests) == 1


def test_a_large_unit_that_turns_out_to_be_cut_leaves_the_table_as_it_was(desk: Desk) -> None:
    publish(desk, many(90))
    desk.poll()
    desk.cdn.files[toy.file("big", TUESDAY)] = toy.lines(many(120, 2)).rpartition(b'{"rows"')[0]
    (verdict,) = desk.backfill(TUESDAY)
    assert verdict.outcome is Outcome.PARTIAL
    assert toy.values(desk) == many(90)
    (entry,) = desk.quarantine()
    assert (entry["scope"], entry["reason"]) == ("unit", "the file ends after 120 rows: it was cut")


def test_a_row_that_breaks_a_rule_in_a_large_unit_goes_to_quarantine_once(desk: Desk) -> None:
    rows = many(100)
    rows["i0050"] = -1
    publish(desk, rows)
    desk.poll()
    assert len(toy.values(desk)) == 99
    assert [entry["rule"] for entry in desk.quarantine()] == ["value is not negative"]
    assert desk.cycle()["quarantined_count"] == 1


def test_rows_refused_while_they_came_as_a_stream_keep_what_is_held(desk: Desk) -> None:
    publish(desk, many(60))
    desk.poll()
    publish(desk, [{"item": "i0000", "value": 5}, {"value": 7}])
    desk.backfill(TUESDAY)
    assert toy.values(desk) == {**many(60), "i0000": 5}
    assert [entry["reason"] for entry in desk.quarantine()] == ["it has no name"]


@pytest.mark.parametrize("rows_before", [0, 100], ids=["at once", "in parts"])
@pytest.mark.parametrize(
    "row",
    [
        {"item": "x", "value": 10**30},
        {"item": "x", "value": 1, "day": ["2026-09-15"]},
        {"item": ["x"], "value": 1},
        {"item": "x\0y", "value": 1},
    ],
    ids=["a number too great", "no day", "no text", "a zero byte"],
)
def test_a_value_that_no_column_can_hold_refuses_its_answer_and_stops_nobody_else(
    desk: Desk, row: dict[str, Any], rows_before: int
) -> None:
    """Kept for another try, it would fail alike for ever, and everything after it with it."""
    toy.use(desk, toy.files("early", "big", "late"))
    for name in ("early", "late"):
        publish(desk, {name: 1}, name=name)
    publish(desk, [*({"item": item, "value": 1} for item in many(rows_before)), row])
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (SUCCESS, Outcome.PARTIAL), verdict.words
    assert toy.values(desk) == {"early": 1, "late": 1}
    (entry,) = desk.quarantine()
    assert (entry["scope"], entry["unit"]) == ("unit", f"big/{TUESDAY}")
    assert f"row {rows_before + 1} for market.toy_items holds a value that cannot be kept" in entry["reason"]
    publish(desk, many(3))
    desk.backfill(TUESDAY)
    assert toy.values(desk) == {"early": 1, "late": 1, **many(3)}


def test_a_zero_byte_in_what_is_said_of_an_answer_is_no_hindrance(desk: Desk) -> None:
    def parse(unit: Unit) -> Parsed:
        return Parsed((Batch(toy.ITEMS, [("i", TUESDAY, 5, 1)]),), [Rejected("line \0", "no \0", "\0")], ["venue\0"])

    desk.stream = replace(desk.stream, parse=parse)
    publish(desk, many(1))
    assert desk.poll().status is SUCCESS
    assert toy.values(desk) == {"i": 5}
    assert [entry["reason"] for entry in desk.quarantine()] == ["no \N{REPLACEMENT CHARACTER}"]
    assert any("venue\N{REPLACEMENT CHARACTER}" in text for text in desk.alerts())


def test_a_rebuild_of_large_units_writes_in_parts_and_gives_the_live_tables(desk: Desk, commits: list[int]) -> None:
    publish(desk, many(100))
    desk.poll()
    for turn, rows in enumerate((many(100, 2), many(90, 3, first=5))):
        publish(desk, rows)
        desk.backfill(TUESDAY, run_id=f"again-{turn}")
    columns = "item, day, value, version, unit, fetch_id, sent_at, parser_version"
    live = desk.sql(f"select {columns} from market.toy_items order by item")
    past = desk.sql(f"select {columns}, ended_at, reason from market.toy_items_history order by item, sent_at")
    desk.sql("truncate market.toy_items, market.toy_items_history, market.toy_writes")
    (verdict,) = desk.replay(TUESDAY)
    assert verdict.counts.new == 85
    assert verdict.counts.unchanged == 0
    assert desk.sql(f"select {columns} from market.toy_items order by item") == live
    assert desk.sql(f"select {columns}, ended_at, reason from market.toy_items_history order by item, sent_at") == past
    assert max(written(desk)) <= 40
    (again,) = desk.replay(TUESDAY, run_id="once-more")
    assert (again.counts.touched, again.counts.unchanged) == (0, 85)


def test_a_newer_parser_of_a_large_unit_withdraws_what_it_no_longer_reads(desk: Desk) -> None:
    publish(desk, many(100))
    desk.poll()
    real = desk.stream.parse

    def parse(unit: Unit) -> Parsed:
        parsed = real(unit)
        (batch,) = parsed.batches
        kept = (row for row in batch.rows if row[0] >= "i0010")
        return replace(parsed, batches=(Batch(batch.table, kept),))

    toy.use(desk, replace(desk.stream, parse=parse, parser_version=2))
    desk.replay(TUESDAY)
    assert toy.values(desk) == many(100, first=10)
    assert {reason for _, _, reason in toy.history(desk)} == {"parser"}
    assert len(toy.history(desk)) == 10


def test_memory_stays_flat_however_large_a_unit_is(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MOST_ROWS", 20_000)
    monkeypatch.setattr(stage, "BEAT_ROWS", 5_000)

    def parse(unit: Unit) -> Parsed:
        def rows() -> Iterator[tuple[Any, ...]]:
            for number in range(100_000):
                yield f"item number {number:07} of a large unit", TUESDAY, number, 1, None

        return Parsed((Batch(toy.ITEMS, rows()),))

    toy.use(desk, replace(desk.stream, parse=parse))
    publish(desk, {"a": 1})
    tracemalloc.start()
    try:
        assert desk.poll().status is SUCCESS
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert desk.one("select count(*) as n from market.toy_items")["n"] == 100_000
    # Its rows as tuples would be some 20 MB.
    assert peak < 8 << 20


def test_behind_a_pooler_a_large_unit_goes_in_one_transaction(
    desk: Desk, commits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is staged would not be there in the next one."""
    monkeypatch.setattr(applying, "behind_pooler", lambda: True)
    publish(desk, many(130))
    verdict = desk.poll()
    assert (verdict.status, verdict.counts.new, desk.cycle()["new_count"]) == (SUCCESS, 130, 130)
    assert written(desk) == [130]


# --- rows that several units give


def test_of_two_units_that_give_one_key_the_newer_asking_stays(desk: Desk) -> None:
    toy.use(desk, toy.files("one", "two"))
    publish(desk, {"a": 1, "b": 1}, name="one")
    publish(desk, {"b": 2, "c": 2}, name="two")
    assert desk.poll().status is SUCCESS
    assert toy.values(desk) == {"a": 1, "b": 2, "c": 2}
    desk.replay(TUESDAY)
    assert toy.values(desk) == {"a": 1, "b": 2, "c": 2}


def test_a_unit_that_is_new_changes_only_what_differs_of_keys_that_another_gave(desk: Desk) -> None:
    toy.use(desk, toy.files("one", "two"))
    publish(desk, {"a": 1, "b": 1}, name="one")
    publish(desk, {}, name="two")
    desk.poll()
    before = desk.one("select sent_at from market.toy_items where item = 'a'")
    publish(desk, {"a": 1, "b": 2, "c": 2}, name="two")
    publish(desk, {}, WEDNESDAY, "one")
    publish(desk, {}, WEDNESDAY, "two")
    verdict = desk.backfill(TUESDAY, keys=("two",))[-1]
    assert (verdict.counts.new, verdict.counts.changed) == (1, 1)
    assert toy.values(desk) == {"a": 1, "b": 2, "c": 2}
    assert toy.history(desk) == [("b", 1, "revised")]
    assert desk.one("select sent_at from market.toy_items where item = 'a'") == before


def test_of_two_units_that_give_one_key_the_upstreams_greater_version_stays(desk: Desk) -> None:
    toy.use(desk, toy.files("one", "two", table=toy.VERSIONED))
    publish(desk, [{"item": "a", "value": 9, "version": 9}], name="one")
    publish(desk, [{"item": "a", "value": 2, "version": 2}], name="two")
    assert desk.poll().status is SUCCESS
    assert toy.values(desk) == {"a": 9}


def test_an_older_version_of_the_upstream_never_replaces_a_newer_one(desk: Desk) -> None:
    toy.use(desk, toy.files("one", table=toy.VERSIONED))
    for turn, version in enumerate((5, 3, 6)):
        publish(desk, [{"item": "a", "value": version, "version": version}], name="one")
        desk.backfill(TUESDAY, run_id=f"turn-{turn}")
    assert toy.values(desk) == {"a": 6}
    assert toy.history(desk) == [("a", 5, "revised")]
    desk.sql("truncate market.toy_items, market.toy_items_history")
    desk.replay(TUESDAY)
    assert toy.values(desk) == {"a": 6}
    assert toy.history(desk) == [("a", 5, "revised")]


def test_a_row_that_moves_to_another_month_marks_both_months(desk: Desk) -> None:
    publish(desk, [{"item": "a", "value": 1, "day": "2026-08-31"}])
    desk.poll()
    desk.sql("truncate publish.stale cascade")
    publish(desk, [{"item": "a", "value": 1, "day": "2026-09-01"}])
    desk.backfill(TUESDAY)
    marked = "select array_agg(partition order by partition) as p from publish.stale"
    assert desk.one(marked)["p"] == ["2026-08", "2026-09"]
    desk.sql("truncate publish.stale cascade")
    desk.sql("update market.toy_items set day = '2026-07-01'")
    desk.replay(TUESDAY)
    assert desk.one(marked)["p"] == ["2026-07", "2026-09"]


def test_the_next_day_of_a_large_unit_is_not_held_up_by_the_last(desk: Desk) -> None:
    for day in (TUESDAY, WEDNESDAY, THURSDAY):
        desk.at(ny(day))
        publish(desk, many(90, day.day), day)
        assert desk.poll().status is SUCCESS
    assert toy.values(desk) == many(90, THURSDAY.day)
    assert desk.checkpoint() == THURSDAY


# --- where stored answers are read


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
def test_stored_answers_are_read_before_anything_is_locked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, opened_while_locked: list[str], large: bool, pooled: bool
) -> None:
    """Small units before the transaction begins, large ones while they are staged; a rebuild's too."""
    monkeypatch.setattr(applying, "behind_pooler", lambda: pooled)
    applying_now: list[str] = []
    real = RawStore.open

    def looked_at(self: RawStore, sha256: bytes) -> Any:
        held = desk.sql(
            "select 1 from pg_locks l join pg_stat_activity a using (pid)"
            " where a.application_name = 'daybook apply' and a.datname = current_database()"
            " and (l.locktype = 'advisory'"
            " or (l.relation = 'collect.cycles'::regclass and l.mode <> 'AccessShareLock'))"
        )
        applying_now.extend("held" for _ in held)
        return real(self, sha256)

    monkeypatch.setattr(RawStore, "open", looked_at)
    publish(desk, many(130 if large else 20))
    assert desk.poll().status is SUCCESS
    desk.replay(TUESDAY)
    assert len(toy.values(desk)) == (130 if large else 20)
    assert (applying_now, opened_while_locked) == ([], [])
