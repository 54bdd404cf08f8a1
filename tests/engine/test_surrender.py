"""Slices that fail in a way that nobody foresaw: ended at once with their cause, not by an exception or a lease."""

from __future__ import annotations

import errno
from datetime import timedelta
from typing import Any

import pytest

from include.contract import CycleStatus, Mode, Outcome
from include.engine import replay
from include.engine.raw import RawStore
from tests.engine.cdn import Trouble
from tests.engine.desk import SMALL, TUESDAY, Desk

PENDING, SUCCESS, FAILED = CycleStatus.PENDING, CycleStatus.SUCCESS, CycleStatus.FAILED


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.stream = SMALL
    desk.cdn.publish(TUESDAY)
    return desk


def test_a_replay_whose_store_cannot_be_read_ends_for_good_and_goes_on_once_it_can(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(self: RawStore, sha256: bytes) -> Any:
        raise PermissionError(errno.EACCES, "no access")

    desk.poll()
    request = desk.request(Mode.REPLAY, TUESDAY)
    with monkeypatch.context() as patch:
        patch.setattr(RawStore, "open", closed)
        (verdict,) = desk.do(request)
    assert (verdict.status, verdict.outcome) == (FAILED, Outcome.FAILED_TERMINAL)
    assert "the raw store cannot be used (PermissionError" in verdict.words
    assert "the same request once more goes on" in verdict.words
    assert any("Mend the store" in text for text in desk.alerts())
    assert desk.begin(request).startswith("REOPENED")
    assert desk.work_off(request)[-1].status is SUCCESS


def test_a_replay_that_breaks_is_tried_again_three_times_with_its_cause(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: Any) -> Any:
        raise ZeroDivisionError("a test")

    desk.poll()
    monkeypatch.setattr(replay, "_units", broken)
    verdicts = desk.replay(TUESDAY)
    assert [verdict.status for verdict in verdicts] == [PENDING, PENDING, FAILED]
    row = desk.cycle()
    assert "ZeroDivisionError: a test" in row["failure_cause_summary"]
    assert (row["lease_token"], row["attempt"]) == (None, 3)


def test_a_slice_that_breaks_after_its_lease_was_over_writes_nothing_and_says_so(desk: Desk) -> None:
    def late(point: str) -> None:
        if point == "stored":
            desk.advance(minutes=6)
            raise ZeroDivisionError("a test")

    verdict = desk.poll(signal=late)
    assert verdict.is_refused
    assert verdict.words.startswith("LEASE LOST")
    assert desk.cycle()["cycle_status"] == CycleStatus.RUNNING


def test_a_chunk_that_failed_is_tried_again_a_minute_after_it_did(desk: Desk) -> None:
    desk.cdn.trouble("CNMS", TUESDAY, *[Trouble(503)] * 4)
    verdicts = desk.backfill(TUESDAY)
    assert [(verdict.status, verdict.is_held) for verdict in verdicts] == [(PENDING, False), (SUCCESS, False)]
    # The waits between its four requests count for nothing.
    ended = desk.one("select max(received_at) as at from collect.fetches where answer_class = 'error'")["at"]
    asked_again = desk.one("select sent_at from collect.fetches where answer_class = 'data'")["sent_at"]
    assert asked_again - ended >= timedelta(minutes=1)
