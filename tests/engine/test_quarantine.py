"""The way out of quarantine: a word and the run that carries it out are one thing, and everything has who and why."""

from __future__ import annotations

import threading

import pytest

from include.engine import quarantine
from include.engine.quarantine import QuarantineRefused
from tests.engine.desk import STREAM, TUESDAY, Desk


@pytest.fixture
def entry(desk: Desk) -> int:
    """An entry that can be accepted: more sold short than traded at all."""
    desk.cdn.publish(TUESDAY, {"GOOD": (1, 0, 2), "MORE": (9, 0, 3)}, facilities=("CNMS",))
    desk.poll()
    (found,) = desk.quarantine()
    number: int = found["quarantine_id"]
    return number


def runs(desk: Desk) -> list[str]:
    return [row["run_id"] for row in desk.sql("select run_id from collect.job_runs order by 1")]


def test_a_word_of_which_the_run_cannot_be_written_is_not_kept_either(desk: Desk, entry: int) -> None:
    desk.sql(
        "insert into collect.job_runs (run_id, mode, streams, requested_by, created_at, updated_at)"
        " values (%s, 'replay', '{}', 'x', now(), now())",
        f"quarantine-{entry}-v{STREAM.parser_version}-1",
    )
    with pytest.raises(Exception, match="duplicate key"):
        quarantine.accept(desk.url, STREAM, entry, "kim", "they are right")
    (row,) = desk.quarantine(None)
    assert (row["state"], row["resolved_by"]) == ("open", None)


def test_an_accepted_row_is_in_the_table_when_its_run_is_done(desk: Desk, entry: int) -> None:
    run_id = quarantine.accept(desk.url, STREAM, entry, "kim", "they are right")
    (row,) = desk.quarantine(None)
    assert (row["state"], row["resolved_by"], row["resolved_why"]) == ("accepted", "kim", "they are right")
    assert [cycle["slot"] for cycle in desk.cycles() if cycle["run_id"] == run_id] == [f"{run_id}/CNMS/2026-09-15"]


def test_two_who_retry_at_once_get_a_run_each_and_no_error(desk: Desk, entry: int) -> None:
    told: list[str] = []

    def retry() -> None:
        told.append(quarantine.retry(desk.url, STREAM, entry, "kim", "once more"))

    both = [threading.Thread(target=retry) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert sorted(told) == runs(desk)
    assert len(set(told)) == 2


@pytest.mark.parametrize(("who", "why"), [("", "why"), ("kim", ""), ("kim", "  ")])
def test_nothing_leaves_without_who_and_why(desk: Desk, entry: int, who: str, why: str) -> None:
    for act in (quarantine.accept, quarantine.retry):
        with pytest.raises(QuarantineRefused, match="Say who wants it and why"):
            act(desk.url, STREAM, entry, who, why)
    with pytest.raises(QuarantineRefused, match="Say who wants it and why"):
        quarantine.drop(desk.url, entry, who, why)
    assert desk.quarantine()[0]["quarantine_id"] == entry
    assert runs(desk) == []


def test_what_left_quarantine_does_not_leave_it_again(desk: Desk, entry: int) -> None:
    quarantine.drop(desk.url, entry, "kim", "not wanted")
    with pytest.raises(QuarantineRefused, match=f"Entry {entry} is dropped already, by kim"):
        quarantine.accept(desk.url, STREAM, entry, "lee", "wanted after all")
    with pytest.raises(QuarantineRefused, match="There is no quarantine entry 99999"):
        quarantine.retry(desk.url, STREAM, 99999, "lee", "why")
