"""How tasks end: what Airflow is told, and which failures it may try again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from airflow.sdk.definitions.retry_policy import RetryAction
from airflow.sdk.exceptions import AirflowException, AirflowRescheduleException, AirflowSkipException

from include.operators.endings import FOR_GOOD, Ended, Failed, Interrupted, refuse


def test_a_green_end_raises_nothing():
    Ended("green", "DONE – all").leave()


def test_a_red_end_leaves_with_its_sentence_and_no_stack_trace():
    with pytest.raises(SystemExit, match="FAILED – why") as left:
        Ended("red", "FAILED – why").leave()
    assert left.value.code == "FAILED – why", "Airflow logs the code of a SystemExit and no trace"
    assert not isinstance(left.value, AirflowException), "Airflow logs the trace of its own exceptions"


def test_a_skipped_end_keeps_its_reason():
    with pytest.raises(AirflowSkipException, match="ANOTHER RUN"):
        Ended("skipped", "ANOTHER RUN – has it").leave()


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        (timedelta(seconds=-5), timedelta(seconds=30)),
        (timedelta(minutes=25), timedelta(minutes=25)),
        (timedelta(days=2), timedelta(hours=1)),
    ],
)
def test_a_wait_is_neither_shorter_than_half_a_minute_nor_longer_than_an_hour(asked, waited):
    with pytest.raises(AirflowRescheduleException) as again:
        Ended("again", "WAITING – for it", wait=asked).leave()
    assert abs(again.value.reschedule_date - datetime.now(UTC) - waited) < timedelta(seconds=5)


@pytest.mark.parametrize(
    ("failure", "action"),
    [
        (Failed("said so"), RetryAction.FAIL),
        (Interrupted("the warehouse is away"), RetryAction.DEFAULT),
        (ValueError("a bug"), RetryAction.DEFAULT),
        (SystemExit(1), RetryAction.DEFAULT),
    ],
)
def test_only_what_was_said_in_words_is_not_tried_again(failure, action):
    decision = FOR_GOOD.evaluate(failure, 1, 2)
    assert decision.action is action
    assert decision.reason is None, "it would be the last line of the log"


def test_a_refusal_says_so_first():
    with pytest.raises(Failed, match=r"^REFUSED – no such key"):
        refuse("no such key")


def test_what_goes_to_the_xcom_is_small():
    assert len(str(Ended("red", "x" * 9_000).outcome())) < 2_000
