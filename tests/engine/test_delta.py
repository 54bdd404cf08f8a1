"""The delta: what a complete listing concludes from what it did not show, and every listing that concludes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import pytest

from include.contract import (
    Answer,
    AnswerClass,
    Ask,
    Batch,
    Budget,
    Column,
    CycleStatus,
    Mode,
    Outcome,
    Parsed,
    ParseError,
    Rejected,
    Request,
    Rule,
    Table,
    Unit,
)
from include.engine import delta, incidents, lookout, quarantine
from include.engine.lease import TTL_SECONDS
from tests.engine.cdn import Trouble, name
from tests.engine.desk import STREAM, TUESDAY, Desk, ny

SUCCESS, FAILED, PENDING = CycleStatus.SUCCESS, CycleStatus.FAILED, CycleStatus.PENDING

LISTED = Table(
    schema="market",
    name="listed",
    comment="Companies that are listed",
    columns=(Column("symbol", "text", "Symbol"), Column("shares", "bigint", "Shares")),
    key=("symbol",),
    session_date=None,
    rules=(Rule("shares are not negative", "not_negative", ("shares",)),),
    replaces="nothing",
)
PARTS = ("kospi", "kosdaq")


def plan(ask: Ask) -> Iterator[Request]:
    """One request for each market and session."""
    for day in ask.sessions:
        for part in PARTS:
            key = f"{part}/{day}"
            url = f"https://cdn.finra.org/lists/{name(part, day)}"
            yield Request(key=key, url=url, unit=key, session_date=day, kind="list")


def classify(answer: Answer) -> AnswerClass:
    """A list, an empty one, or none yet."""
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    if answer.status != 200:
        return AnswerClass.NOT_YET if answer.status == 403 else AnswerClass.ERROR
    return AnswerClass.EMPTY if answer.body.read() == b"none" else AnswerClass.DATA


def parse(unit: Unit) -> Parsed:
    """SYMBOL|SHARES a line; a question mark is a line that cannot be read, an exclamation mark a file."""
    (answer,) = unit.answers
    text = answer.body.read().decode()
    if text.startswith("!"):
        raise ParseError("the file cannot be read")
    lines = [] if text == "none" else text.split()
    good = [line.partition("|") for line in lines if not line.startswith("?")]
    rows = [(symbol, int(shares or 1)) for symbol, _, shares in good]
    bad = tuple(Rejected(str(n), "a line that cannot be read", line) for n, line in enumerate(lines) if line[0] == "?")
    return Parsed((Batch(LISTED, rows),), bad)


LISTING = replace(
    STREAM,
    name="krx.listed",
    tables=(LISTED,),
    calendar="DAILY",
    schedule=replace(STREAM.schedule, cron="35 18 * * *"),
    budget=Budget(slice_seconds=60),
    plan=plan,
    classify=classify,
    parse=parse,
    listing=True,
    close_after=2,
    empty_can_be_right=False,
    recheck=None,
    first_session=date(2026, 9, 1),
)
ENGINE = (
    "unit text not null, fetch_id bigint not null, sent_at timestamptz(6) not null, parser_version integer not null,"
    " cycle_id bigint not null, attempt integer not null, extra jsonb"
)


@dataclass
class List:
    """A desk that publishes a list each day and polls it."""

    desk: Desk
    day: date = TUESDAY

    def publish(self, kospi: str, kosdaq: str = "K1 K2 K3 K4") -> None:
        """Put the day's lists there; an empty text for none yet."""
        for part, text in zip(PARTS, (kospi, kosdaq), strict=True):
            if text:
                self.desk.cdn.files[name(part, self.day)] = text.encode()

    def poll(self, kospi: str, kosdaq: str = "K1 K2 K3 K4", **changes: Any) -> dict[str, Any]:
        """Publish the next day's lists, poll them, and return the cycle."""
        self.day += timedelta(days=1)
        self.desk.at(ny(self.day))
        self.publish(kospi, kosdaq)
        self.desk.poll(**changes)
        return self.desk.cycle()

    def items(self) -> dict[str, tuple[int, bool]]:
        """Item to times missed and whether it is open."""
        rows = self.desk.sql("select * from collect.items order by item_key")
        return {row["item_key"]: (row["missed"], row["closed_at"] is None) for row in rows}

    def of(self, item: str) -> tuple[int, bool]:
        """One item."""
        return self.items()[item]

    def seen_rows(self) -> int:
        """Rows in the seen set."""
        return int(self.desk.one("select count(*) as n from collect.seen_items")["n"])


FULL = "A B C D E F"


@pytest.fixture
def listing(desk: Desk) -> List:
    """A listing that was polled once: ten items are open."""
    desk.sql(f"create table market.listed (symbol text primary key, shares bigint not null, {ENGINE})")
    desk.sql(
        f"create table market.listed_history (symbol text not null, shares bigint not null, {ENGINE},"
        " ended_at timestamptz(6) not null, reason text not null,"
        " primary key (symbol, sent_at, reason, parser_version))"
    )
    desk.stream = LISTING
    desk.declare()
    here = List(desk)
    row = here.poll(FULL)
    assert (row["cycle_status"], row["seen_count"], row["missed_count"], row["closed_count"]) == (SUCCESS, 10, 0, 0)
    assert set(here.items()) == {*FULL.split(), "K1", "K2", "K3", "K4"}
    assert set(here.items().values()) == {(0, True)}
    assert here.seen_rows() == 0
    return here


def test_an_item_not_shown_is_missed_and_closed_at_the_streams_threshold(listing: List) -> None:
    first = listing.poll("A B C D E")
    assert (first["missed_count"], first["closed_count"], first["seen_count"]) == (1, 0, 9)
    assert listing.of("F") == (1, True)
    second = listing.poll("A B C D E")
    assert (second["missed_count"], second["closed_count"]) == (1, 1)
    assert listing.of("F") == (2, False)
    # What is closed is not missed any further.
    third = listing.poll("A B C D E")
    assert (third["missed_count"], third["closed_count"]) == (0, 0)
    assert listing.of("F") == (2, False)


def test_an_item_shown_again_in_time_is_as_if_it_had_never_been_missed(listing: List) -> None:
    listing.poll("A B C D E")
    listing.poll(FULL)
    listing.poll("A B C D E")
    assert listing.of("F") == (1, True)


def test_a_closed_item_that_is_shown_again_is_open_again(listing: List) -> None:
    listing.poll("A B C D E")
    listing.poll("A B C D E")
    before = listing.desk.one("select * from collect.items where item_key = 'F'")
    listing.poll(FULL)
    after = listing.desk.one("select * from collect.items where item_key = 'F'")
    assert listing.of("F") == (0, True)
    assert after["first_seen_at"] == before["first_seen_at"]
    assert after["last_seen_at"] > before["last_seen_at"]


def test_an_item_that_a_list_shows_twice_is_one_item(listing: List) -> None:
    row = listing.poll(FULL, "K1 K2 K3 K4 A")
    assert (row["seen_count"], row["missed_count"]) == (10, 0)


# --- what concludes nothing


def nothing_concluded(listing: List, row: dict[str, Any], before: dict[str, Any]) -> None:
    """No item was touched, and nothing of the seen set is left."""
    assert (row["missed_count"], row["closed_count"]) == (None, None)
    assert listing.items() == before
    assert listing.seen_rows() == 0


def test_a_failed_list_misses_nothing(listing: List) -> None:
    before = listing.items()
    day = listing.day + timedelta(days=1)
    listing.desk.cdn.trouble("kosdaq", day, *[Trouble(503)] * 4)
    row = listing.poll("A B C D E")
    assert row["cycle_status"] == FAILED
    nothing_concluded(listing, row, before)


def test_a_list_whose_holder_vanished_misses_nothing_and_leaves_no_seen_rows(listing: List) -> None:
    before = listing.items()
    listing.day += timedelta(days=1)
    listing.desk.at(ny(listing.day))
    listing.publish("A B C D E")

    class Gone(BaseException):
        pass

    def vanish(point: str) -> None:
        if point == "before last apply":
            listing.desk.sql(
                "insert into collect.seen_items select cycle_id, 'A', collect.clock() from collect.cycles"
                " where cycle_status = 'RUNNING'"
            )
            raise Gone

    with pytest.raises(Gone):
        listing.desk.poll(signal=vanish)
    listing.desk.advance(seconds=TTL_SECONDS + 1)
    listing.desk.sql("select * from collect.recover(null, 10)")
    row = listing.desk.cycle()
    assert row["failure_reason"] == "lease expired"
    nothing_concluded(listing, row, before)


def test_a_list_out_of_budget_misses_nothing(listing: List) -> None:
    before = listing.items()
    listing.desk.stream = replace(LISTING, budget=Budget(day_list_pages=1))
    row = listing.poll("A B C D E")
    assert row["cycle_status"] == CycleStatus.BUDGET_EXHAUSTED
    nothing_concluded(listing, row, before)


def test_a_list_of_which_a_part_is_not_there_yet_concludes_with_the_rest(listing: List) -> None:
    """The seen set waits with the cycle: what the first slice saw counts when the last one is done."""
    row = listing.poll("A B C D E", "")
    assert row["cycle_status"] == PENDING
    assert listing.seen_rows() == 5
    assert listing.of("K1") == (0, True)
    listing.desk.advance(minutes=40)
    listing.publish("", "K1 K2 K3 K4")
    listing.desk.poll()
    row = listing.desk.cycle()
    assert (row["cycle_status"], row["seen_count"], row["missed_count"]) == (SUCCESS, 9, 1)
    assert listing.of("F") == (1, True)
    assert listing.seen_rows() == 0


def test_a_make_up_window_that_asks_only_for_what_failed_concludes_nothing(listing: List) -> None:
    """The part that it holds from before was not seen by it, and would all be missed."""
    before = listing.items()
    day = listing.day + timedelta(days=1)
    listing.desk.cdn.trouble("kosdaq", day, *[Trouble(503)] * 4)
    listing.poll(FULL)
    listing.desk.at(ny(day) + timedelta(minutes=20))
    listing.desk.poll()
    row = listing.desk.cycle()
    assert (row["kind"], row["cycle_status"]) == ("make_up", SUCCESS)
    nothing_concluded(listing, row, before)


def test_a_complete_but_empty_list_misses_nothing_and_is_abnormal(listing: List) -> None:
    before = listing.items()
    row = listing.poll("none", "none")
    assert (row["cycle_status"], row["fetched_count"], row["abnormal"]) == (SUCCESS, 0, True)
    nothing_concluded(listing, row, before)
    assert listing.poll(FULL)["abnormal"] is False


def test_a_list_with_a_line_that_cannot_be_read_misses_nothing(listing: List) -> None:
    """The item that is missing may be the one in that line."""
    before = listing.items()
    row = listing.poll("A B C D E ?F")
    assert row["cycle_status"] == SUCCESS
    nothing_concluded(listing, row, before)


def test_a_list_of_which_a_part_cannot_be_read_misses_nothing(listing: List) -> None:
    before = listing.items()
    row = listing.poll("!", "K1 K2 K3 K4")
    assert (row["cycle_status"], row["outcome"]) == (SUCCESS, Outcome.PARTIAL)
    nothing_concluded(listing, row, before)


def test_an_item_whose_row_broke_a_rule_was_there_all_the_same(listing: List) -> None:
    row = listing.poll("A B C D E F|-1")
    assert (row["quarantined_count"], row["seen_count"], row["missed_count"]) == (1, 10, 0)
    assert listing.of("F") == (0, True)


def test_a_backfill_or_replay_of_a_listing_misses_nothing(listing: List) -> None:
    listing.poll("A B C D E")
    before = listing.items()
    for verdict in [*listing.desk.backfill(listing.day, force=True), *listing.desk.replay(listing.day)]:
        assert verdict.status is SUCCESS
    assert listing.items() == before
    assert listing.seen_rows() == 0


def test_a_stream_that_is_no_listing_sees_and_misses_nothing(listing: List) -> None:
    listing.desk.stream = replace(LISTING, listing=False)
    before = listing.items()
    row = listing.poll("A B C D E")
    assert row["seen_count"] is None
    nothing_concluded(listing, row, before)


# --- a suspiciously small one


def test_a_list_under_four_fifths_is_quarantined_and_reported_and_misses_nothing(listing: List) -> None:
    before = listing.items()
    row = listing.poll("A B C")
    assert (row["cycle_status"], row["seen_count"]) == (SUCCESS, 7)
    nothing_concluded(listing, row, before)
    (entry,) = listing.desk.quarantine()
    assert (entry["rule"], entry["cycle_id"]) == (delta.SMALL_LISTING, row["cycle_id"])
    assert (
        entry["reason"]
        == "the listing shows 7 items, and the last one that was believed showed 10, 3 of which are gone"
    )
    assert any("Its rows are kept, but no item was missed or closed" in text for text in listing.desk.alerts())


def test_a_list_of_four_fifths_is_believed(listing: List) -> None:
    assert listing.poll("A B C D")["missed_count"] == 2


def test_a_second_small_list_is_measured_by_the_last_one_that_was_believed(listing: List) -> None:
    before = listing.items()
    listing.poll("A B C")
    row = listing.poll("A B C")
    nothing_concluded(listing, row, before)
    assert len(listing.desk.quarantine()) == 2


def test_a_list_of_the_usual_size_resolves_the_doubt(listing: List) -> None:
    listing.poll("A B C")
    row = listing.poll(FULL)
    assert row["missed_count"] == 0
    (entry,) = listing.desk.quarantine(None)
    assert (entry["state"], entry["resolved_why"]) == ("resolved", "a later listing was whole again")


def test_a_small_list_is_an_incident_until_its_doubt_is_resolved(listing: List) -> None:
    desk, key = listing.desk, f"quarantine/{listing.desk.stream.name}/{delta.SMALL_LISTING}"
    listing.poll("A B C")
    lookout.look(desk.url, [desk.stream])
    assert key in {row["incident_key"] for row in incidents.listed(desk.url)}
    listing.poll(FULL)
    lookout.look(desk.url, [desk.stream])
    assert key not in {row["incident_key"] for row in incidents.listed(desk.url)}
    assert any(text.startswith("RECOVERED") and delta.SMALL_LISTING in text for text in desk.alerts())


def test_an_accepted_small_list_is_the_new_measure(listing: List) -> None:
    listing.poll("A B C")
    (entry,) = listing.desk.quarantine()
    quarantine.accept(listing.desk.url, listing.desk.stream, entry["quarantine_id"], "kim", "they merged")
    row = listing.poll("A B C")
    assert (row["seen_count"], row["missed_count"], row["closed_count"]) == (7, 3, 0)


# --- housekeeping


def test_housekeeping_takes_old_seen_rows_of_cycles_that_are_over_and_no_others(listing: List) -> None:
    url, over = listing.desk.url, listing.desk.cycle()["cycle_id"]
    assert delta.orphans(url).severity == "info"
    open_one = listing.desk.open_poll(ny(listing.day + timedelta(days=3)))
    old, new = "collect.clock() - interval '49 hours'", "collect.clock() - interval '47 hours'"
    for cycle, when, count in ((over, old, 1500), (over, new, 10), (open_one, old, 10)):
        listing.desk.sql(
            f"insert into collect.seen_items select %s, %s || n, {when} from generate_series(1, %s) n",
            cycle,
            when,
            count,
        )
    found = delta.orphans(url)
    assert (found.count, found.severity) == (1500, "critical")
    assert delta.clean(url) == 1000
    assert (delta.orphans(url).count, delta.orphans(url).severity) == (500, "warning")
    assert [delta.clean(url), delta.clean(url)] == [500, 0]
    assert listing.seen_rows() == 20


def test_days_out_of_budget_are_told_at_two_and_at_seven(listing: List) -> None:
    small = replace(LISTING, budget=Budget(day_list_pages=1))
    listing.desk.stream = small
    told = []
    for _ in range(8):
        listing.poll(FULL)
        told.append([text for text in listing.desk.alerts() if "out of its day's budget" in text])
    assert [len(each) for each in told] == [0, 1, 1, 1, 1, 1, 2, 2]
    assert "7 days running, since 2026-09-18" in told[-1][-1]
    rows = listing.desk.sql("select severity from ops.alerts where alert_key like 'budget/%%' order by alert_id")
    assert [row["severity"] for row in rows] == ["warning", "error"]


def test_a_day_in_good_order_begins_the_count_anew(listing: List) -> None:
    small = replace(LISTING, budget=Budget(day_list_pages=1))
    for stream in (small, LISTING, small, LISTING, small):
        listing.desk.stream = stream
        listing.poll(FULL)
    assert [text for text in listing.desk.alerts() if "out of its day's budget" in text] == []


def test_the_mode_of_a_cycle_decides_whether_it_can_conclude(listing: List) -> None:
    listing.desk.add_chunks("r", mode=Mode.BACKFILL)
    held = listing.desk.claimed(Mode.BACKFILL, "r")
    assert not delta.is_concluded_from(LISTING, held.cycle)
