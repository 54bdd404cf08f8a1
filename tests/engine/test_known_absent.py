"""What one stream reads of another's store, and what is missing although the upstream named it itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from include.contract import Ask, CycleStatus, HostGroup, Request, Stream
from include.engine import windows
from tests.engine import toy
from tests.engine.desk import TUESDAY, WEDNESDAY, Desk, ny

MADE_OF_IT = """
create table market.toy_derived (like market.toy_items including all);
create table market.toy_derived_history (like market.toy_items_history including all)
"""
DERIVED = replace(toy.ITEMS, name="toy_derived")


def derived(*names: str) -> Stream:
    """A stream that reads what `toy.items` has stored of some units."""

    def plan(ask: Ask) -> Iterator[Request]:
        for day in ask.sessions:
            for name in names:
                key = f"{name}/{day}/derived"
                yield Request(
                    key=key,
                    url="",
                    unit=key,
                    session_date=day,
                    required=False,
                    read_from=("toy.items", f"{name}/{day}"),
                )
        for key in ask.pending:
            name, day, _ = key.split("/")
            unit = f"{name}/{day}"
            yield Request(
                key=key, url="", unit=key, session_date=TUESDAY, required=False, read_from=("toy.items", unit)
            )

    return toy.files("unused", table=DERIVED, name="toy.derived", plan=plan)


def known(*names: str, most_absent: int) -> Stream:
    """A stream of files that the upstream has named itself."""
    stream = toy.files(*names, host_group=HostGroup("toy", timedelta(0), most_absent=most_absent))

    def plan(ask: Ask) -> Iterator[Request]:
        for request in stream.plan(ask):
            yield replace(request, is_known=True, required=False)

    return replace(stream, plan=plan)


def test_a_stream_reads_what_another_has_stored_and_asks_nobody(desk: Desk) -> None:
    here = toy.at(desk, toy.files("a"))
    here.sql(MADE_OF_IT)
    here.cdn.files[toy.file("a", TUESDAY)] = toy.lines({"apple": 3})
    assert here.poll().status is CycleStatus.SUCCESS
    asked = len(here.cdn.requests)
    windows.declare(here.url, (derived("a"),))
    assert here.poll(derived("a")).status is CycleStatus.SUCCESS
    assert len(here.cdn.requests) == asked
    (row,) = here.sql("select item, value, unit from market.toy_derived")
    assert (row["item"], row["value"], row["unit"]) == ("apple", 3, f"a/{TUESDAY}/derived")
    # Equal bytes share an object, never a fetch.
    fetches = here.sql("select stream, sha256 from collect.fetches order by fetch_id")
    assert [fetch["stream"] for fetch in fetches] == ["toy.items", "toy.derived"]
    assert fetches[0]["sha256"] == fetches[1]["sha256"]
    # And its units are read again by themselves.
    here.stream = derived("a")
    here.sql("truncate market.toy_derived")
    here.sql("update collect.fetches set applied_at = null, parser_version = null where stream = 'toy.derived'")
    here.replay(TUESDAY)
    assert [row["item"] for row in here.sql("select item from market.toy_derived")] == ["apple"]


def test_what_another_stream_does_not_hold_yet_is_waited_for(desk: Desk) -> None:
    here = toy.at(desk, toy.files("a"))
    here.sql(MADE_OF_IT)
    stream = derived("a")
    windows.declare(here.url, (stream,))
    verdict = here.poll(stream)
    assert verdict.counts.read == 0
    (fetch,) = here.sql("select answer_class, sha256, error from collect.fetches")
    assert (fetch["answer_class"], fetch["sha256"]) == ("not_yet", None)
    assert "toy.items holds nothing" in fetch["error"]
    assert here.cdn.requests == []


@pytest.mark.parametrize(("there", "is_trouble"), [((), True), (("c",), False)])
def test_many_absences_in_a_row_of_what_was_named_are_a_trouble_of_access(
    desk: Desk, there: tuple[str, ...], is_trouble: bool
) -> None:
    here = toy.at(desk, known("a", "b", "c", "d", "e", most_absent=3))
    for name in there:
        here.cdn.files[toy.file(name, TUESDAY)] = toy.lines({name: 1})
    verdict = here.poll()
    pending = {key for key, row in here.pending().items() if row["why"] == "failed"}
    asked = "select blocked_until > collect.clock() as is_stopped from collect.host_groups where host_group = 'toy'"
    (group,) = here.sql(asked)
    if not is_trouble:
        # One that is there in between says that access is well: the others are waited for by themselves.
        assert (verdict.status, pending, group["is_stopped"] or False) == (CycleStatus.SUCCESS, set(), False)
        assert set(here.pending("not_published")) == {f"{name}/{TUESDAY}" for name in "abde"}
        return
    assert verdict.status is CycleStatus.FAILED
    assert group["is_stopped"]
    assert pending == {f"{name}/{TUESDAY}" for name in "abc"}
    assert any("a trouble of access" in text for text in here.alerts())
    # The next window asks for all of them again.
    for name in "abcde":
        here.cdn.files[toy.file(name, TUESDAY)] = toy.lines({name: 1})
        here.cdn.files[toy.file(name, WEDNESDAY)] = toy.lines({name: 2})
    here.at(ny(WEDNESDAY))
    assert here.poll().status is CycleStatus.SUCCESS
    assert {name.partition("-")[0] for name in here.cdn.asked() if f"{TUESDAY:%Y%m%d}" in name} == set("abcde")
