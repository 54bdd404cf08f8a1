"""What a run may ask for, and which requests are refused in words."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from include.contract import Mode
from include.operators.request import RequestRefused, read
from include.registry import source
from tests.operators.stage import STREAM

DEFAULTS = {
    "mode": "poll", "streams": [], "start_date": None, "end_date": None, "keys": [], "run_id": "",
    "dry_run": False, "force": False, "replay_into": "overwrite", "reason": "",
}  # fmt: skip


def form(**given):
    window = given.pop("window", None)
    return read({**DEFAULTS, **given}, given, [STREAM], window=window)


def test_the_empty_request_is_a_poll_of_all_streams():
    asked = form()
    assert asked.mode is Mode.POLL
    assert asked.streams == (STREAM,)
    assert asked.is_plain_poll


def test_the_form_sends_null_for_what_was_left_empty():
    empty = dict.fromkeys(("streams", "start_date", "end_date", "keys", "run_id", "reason"))
    assert form(**empty) == form()


def test_a_backfill_is_read_with_every_value_of_its_type():
    asked = form(mode="backfill", start_date="2026-09-01", end_date="2026-09-04", keys=["CNMS", "CNMS"], force=True)
    assert (asked.start, asked.end) == (date(2026, 9, 1), date(2026, 9, 4))
    assert asked.keys == ("CNMS",)
    assert asked.force
    assert not asked.is_plain_poll


@pytest.mark.parametrize("given", [{"force": True}, {"keys": ["CNMS"]}])
def test_a_poll_of_keys_or_once_more_is_no_plain_poll(given):
    assert not form(**given).is_plain_poll


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"modee": "replay"}, "modee is no parameter of this DAG; there are mode, streams"),
        ({"mode": "sideways"}, "mode is 'sideways'; it can be poll, backfill, replay"),
        ({"streams": ["finra.gold"]}, "no stream finra.gold; it has finra.short_volume"),
        ({"start_date": "2026-09-01"}, "mode=poll takes no dates"),
        ({"end_date": "2026-09-01", "force": True}, "mode=poll takes no dates"),
        ({"mode": "backfill", "start_date": "2026-13-01"}, "start_date is '2026-13-01', which is no date"),
        ({"run_id": "mine"}, "mode=poll takes no run_id"),
        ({"keys": ["CNMS"], "force": True}, "force adds nothing"),
        ({"keys": "CNMS"}, "it is a list of names"),
        ({"keys": [" "]}, "it is a list of names"),
        ({"force": "yes"}, "it is true or false"),
        ({"replay_into": "elsewhere"}, "it can be overwrite or versioned"),
        ({"replay_into": "versioned"}, "replay_into=versioned is for mode=replay"),
        ({"mode": "replay", "window": datetime(2026, 9, 1, tzinfo=UTC)}, "takes no mode"),
    ],
)
def test_what_cannot_be_is_refused_in_words(given, words):
    with pytest.raises(RequestRefused, match=words):
        form(**given)


def test_a_run_of_airflows_backfill_form_asks_for_its_window():
    instant = datetime(2026, 9, 10, 22, 35, tzinfo=UTC)
    asked = form(window=instant)
    assert asked.window == instant
    assert not asked.is_plain_poll


def test_the_length_of_bars_is_a_matter_of_dags_with_bars_and_of_backfills():
    bars = source("alpaca").streams

    def asked(streams, **given):
        return read({**DEFAULTS, **given}, given, streams)

    days = {"start_date": "2026-09-14", "end_date": "2026-09-15"}
    main = [stream for stream in bars if stream.job is None]
    form = asked(main, mode="backfill", timeframe="1Week", **days)
    assert (form.timeframe, [stream.name for stream in form.streams]) == ("1Week", ["alpaca.bars_1d"])
    for streams, given, words in (
        (main, {"timeframe": "1Week"}, "timeframe=1Week is for mode=backfill"),
        ([STREAM], {"mode": "backfill", "timeframe": "1Week", **days}, "timeframe is no parameter of this DAG"),
    ):
        with pytest.raises(RequestRefused, match=words):
            asked(streams, **given)


def test_a_backfill_of_unnamed_streams_leaves_out_those_that_are_only_todays():
    main = [stream for stream in source("alpaca").streams if stream.job is None]
    given = {"mode": "backfill", "start_date": "2026-09-14", "end_date": "2026-09-15"}
    names = [stream.name for stream in read({**DEFAULTS, **given}, given, main).streams]
    assert names == ["alpaca.calendar", "alpaca.bars_1d"]
    given["streams"] = ["alpaca.assets"]
    assert [stream.name for stream in read({**DEFAULTS, **given}, given, main).streams] == ["alpaca.assets"]
