"""Alpaca's answers as they come and go wrong, what is asked for, and what an answer tells beside its bars."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from include.contract import (
    AnswerClass,
    AnswerError,
    Ask,
    DefiniteRefusal,
    Mode,
    Parsed,
    ParseError,
    Request,
    Span,
    Unit,
)
from include.sources.alpaca import bars, reference, requests, symbols, timeframes
from include.sources.alpaca.streams import ASSETS_STREAM, CALENDAR_STREAM, DAILY_STREAM, DAY, MINUTE, MINUTE_STREAM
from include.sources.alpaca.symbols import DEFAULT
from include.sources.alpaca.tables import ASSETS, CALENDAR, DAILY_BARS
from tests.sources import strange
from tests.sources.answers import FIXTURES, answer
from tests.sources.samples import SAMPLES, listed

NEW_YORK = timeframes.NEW_YORK
SENT = datetime(2026, 9, 15, 21, 35, tzinfo=UTC)


def request(key: str) -> Request:
    stream = DAILY_STREAM if "1Day" in key else MINUTE_STREAM
    (found,) = stream.plan(Ask(Mode.POLL, pending=(key,)))
    return found


def page(bars_of: dict[str, list[dict[str, Any]]] | None, token: str | None = None) -> bytes:
    return json.dumps({"bars": bars_of, "next_page_token": token}).encode()


def bar(t: str, c: float = 10.5, **more: Any) -> dict[str, Any]:
    return {"t": t, "o": c, "h": c, "l": c, "c": c, "v": 100, "n": 3, "vw": c, **more}


def read(key: str, *pages: bytes, adjusted: Iterable[bytes] = (), sent: datetime = SENT) -> Parsed:
    """Read pages of a unit: first the raw ones, then those that are adjusted for splits."""
    first = request(key)
    answers = [replace(answer(_page_of(first, n), body), sent_at=sent) for n, body in enumerate(pages)]
    for n, body in enumerate(adjusted, start=len(pages)):
        of_page = _page_of(first, n)
        answers.append(
            replace(answer(replace(of_page, about={**of_page.about, "adjustment": "split"}), body), sent_at=sent)
        )
    return bars.parse(Unit(first.unit, first.session_date, tuple(answers)))


def _page_of(first: Request, number: int) -> Request:
    return replace(first, about={**first.about, "page": number})


def rows_of(parsed: Parsed, batch: int = 0) -> list[dict[str, Any]]:
    names = (*parsed.batches[batch].table.column_names, "extra")
    return [dict(zip(names, row, strict=False)) for row in parsed.batches[batch].rows]


def fixture(name: str) -> bytes:
    return (FIXTURES / "alpaca" / name).read_bytes()


KEY = "AAPL/1Day-sip/2026-09-15"


# --- numbers, days, gaps


def test_numbers_are_read_to_their_last_digit() -> None:
    first, second, third = rows_of(read("AAPL,BRK.B/1Day-sip/2026-09-15", fixture("day_two_symbols.json")))
    assert (first["symbol"], first["open"], first["vwap"]) == ("AAPL", Decimal(174), Decimal("173.703516"))
    assert (first["volume"], first["trades"]) == (Decimal(85998033), 732412)
    assert second["session_date"] == date(2026, 9, 15)
    assert (third["symbol"], str(third["high"]), str(third["vwap"])) == ("BRK.B", "501.0100", "500.0000000001")
    assert all(type(row[name]) is Decimal for row in (first, second, third) for name in ("open", "close"))
    assert type(first["volume"]) is int


@pytest.mark.parametrize(
    ("stamp", "key", "day"),
    [
        ("2024-07-01T04:00:00Z", "AAPL/1Day-sip/2024-07-31", date(2024, 7, 1)),
        ("2024-01-02T05:00:00Z", "AAPL/1Day-sip/2024-01-31", date(2024, 1, 2)),
        ("2026-03-09T04:00:00Z", "AAPL/1Day-sip/2026-03-31", date(2026, 3, 9)),
        ("2026-11-02T05:00:00Z", "AAPL/1Day-sip/2026-11-30", date(2026, 11, 2)),
        ("2026-03-09T13:30:00Z", "AAPL/1Min-sip/2026-03-09", date(2026, 3, 9)),
        ("2026-11-02T14:30:00.000000000Z", "AAPL/1Min-sip/2026-11-02", date(2026, 11, 2)),
        ("2026-09-15T23:59:00Z", "AAPL/1Min-sip/2026-09-15", date(2026, 9, 15)),
    ],
)
def test_the_day_of_a_bar_is_new_yorks_by_the_rules_of_its_zone(stamp: str, key: str, day: date) -> None:
    (row,) = rows_of(read(key, page({"AAPL": [bar(stamp)]})))
    assert row["session_date"] == day


def test_minutes_without_a_trade_are_gaps_and_stay_gaps() -> None:
    rows = rows_of(read("AAPL/1Min-sip/2026-09-15", fixture("minute.json")))
    assert [row["ts"].minute for row in rows] == [30, 31, 39]


def test_a_bar_without_a_trade_is_a_bar() -> None:
    (row,) = rows_of(read("F/1Day-sip/2026-09-15", fixture("day_zero_bar.json")))
    assert (row["volume"], row["trades"], row["vwap"], row["close"]) == (0, 0, 0, Decimal("9.87"))


def test_what_is_adjusted_and_how_is_in_every_row() -> None:
    parsed = read(KEY, page({"AAPL": [bar("2026-09-14T04:00:00Z")]}), adjusted=[page({"AAPL": []})])
    (row,) = rows_of(parsed)
    assert (row["timeframe"], row["feed"], row["adjustment"], row["asof"]) == ("1Day", "sip", "raw", "-")


def test_feeds_are_other_keys_other_units_and_other_rows() -> None:
    sip, iex = request(KEY), request("AAPL/1Day-iex/2026-09-15")
    assert sip.key != iex.key
    assert sip.unit != iex.unit
    assert dict(iex.params)["feed"] == "iex"
    (row,) = rows_of(read("AAPL/1Day-iex/2026-09-15", page({"AAPL": [bar("2026-09-14T04:00:00Z")]})))
    assert row["feed"] == "iex"
    assert {"feed", "adjustment"} <= set(DAILY_BARS.key)


# --- pages


def test_a_symbol_goes_on_over_pages() -> None:
    parsed = read(
        "AAPL,MSFT/1Day-sip/2026-09-15",
        page({"AAPL": [bar("2026-09-10T04:00:00Z"), bar("2026-09-11T04:00:00Z")]}, "x"),
        page({"AAPL": [bar("2026-09-14T04:00:00Z")], "MSFT": [bar("2026-09-10T04:00:00Z")]}, "y"),
        page({}),
    )
    assert [(row["symbol"], row["session_date"].day) for row in rows_of(parsed)] == [
        ("AAPL", 10),
        ("AAPL", 11),
        ("AAPL", 14),
        ("MSFT", 10),
    ]
    assert rows_of(parsed, 1) == []


def test_a_bar_at_the_edge_of_two_pages_is_one_bar() -> None:
    twice = bar("2026-09-11T04:00:00Z")
    parsed = read(KEY, page({"AAPL": [twice]}, "x"), page({"AAPL": [twice, bar("2026-09-14T04:00:00Z")]}))
    assert [row["session_date"].day for row in rows_of(parsed)] == [11, 14]


def test_pages_are_followed_to_the_null_token_and_then_the_next_adjustment() -> None:
    first = request(KEY)
    (second,) = requests.follow(first, answer(first, page({"AAPL": []}, "abc")))
    assert dict(second.params)["page_token"] == "abc"
    assert (second.key, second.unit, second.about["page"]) == (first.key, first.unit, 1)
    (third,) = requests.follow(second, answer(second, page({}, None)))
    assert dict(third.params)["adjustment"] == "split"
    assert "page_token" not in dict(third.params)
    assert requests.follow(third, answer(third, page({}, None))) == ()
    minute = request("AAPL/1Min-sip/2026-09-15")
    assert requests.follow(minute, answer(minute, page({}, None))) == ()


def test_the_words_null_and_none_are_never_sent_as_a_token() -> None:
    first = request(KEY)
    for body in (page({}, None), page({}, "")):
        (following,) = requests.follow(first, answer(first, body))
        assert "page_token" not in dict(following.params)


def test_a_token_that_repeats_and_pages_without_end_are_errors_and_no_quiet_end() -> None:
    first = request(KEY)
    (second,) = requests.follow(first, answer(first, page({}, "abc")))
    with pytest.raises(AnswerError, match="the pages do not go on"):
        requests.follow(second, answer(second, page({}, "abc")))
    many = replace(second, about={**second.about, "page": requests.MOST_PAGES})
    with pytest.raises(AnswerError, match="more than 400 pages"):
        requests.follow(many, answer(many, page({}, "def")))


def round_and_round(length: int) -> None:
    """Follow pages that, after a few, lead round in a circle."""
    asked = request(KEY)
    for turn in range(4 * length + 20):
        token = f"circle {turn % length}" if turn > 5 else f"on the way {turn}"
        (asked,) = requests.follow(asked, answer(asked, page({} if turn % 2 else {"AAPL": []}, token)))


@pytest.mark.parametrize("length", [1, 2, 3, 7, 50])
def test_pages_that_lead_round_in_a_circle_are_an_error_before_long(length: int) -> None:
    with pytest.raises(AnswerError, match="has led here before"):
        round_and_round(length)


def test_a_page_that_does_not_say_whether_there_are_more_refuses_its_unit() -> None:
    """The last page is not the one that a renamed field makes look like it."""
    row = bar("2026-09-14T04:00:00Z")
    for body in (
        json.dumps({"bars": {"AAPL": [row]}}).encode(),
        json.dumps({"bars": {"AAPL": [row]}, "next_token": "abc"}).encode(),
        json.dumps({"bars": {"AAPL": [row]}, "next_page_token": 5}).encode(),
    ):
        asked = request(KEY)
        assert bars.classify(answer(asked, body)) is AnswerClass.DATA
        assert requests.follow(asked, answer(asked, body)) == ()
        with pytest.raises(ParseError, match="next_page_token"):
            read(KEY, body)


# --- whom and what was asked for


def test_who_was_asked_for_and_had_no_bar_is_told_with_the_period() -> None:
    parsed = read("AAPL,MSFT/1Day-sip/2026-09-15", page({"MSFT": [bar("2026-09-10T04:00:00Z")]}))
    (none,) = rows_of(parsed, 1)
    assert (none["symbol"], none["session_date"], none["adjustment"]) == ("AAPL", date(2026, 9, 1), "raw")
    assert parsed.is_part


@pytest.mark.parametrize("body", [page({}), page(None), b'{"bars":[],"next_page_token":null}'])
def test_nothing_comes_in_several_forms(body: bytes) -> None:
    asked = request(KEY)
    assert bars.classify(answer(asked, body)) is AnswerClass.EMPTY
    assert rows_of(read(KEY, page({}))) == []


def test_an_error_that_comes_with_success_is_no_empty_answer() -> None:
    """Nobody would ask again for what an empty answer has said there is none of."""
    asked = request(KEY)
    with pytest.raises(AnswerError, match="in place of bars: internal server error") as caught:
        bars.classify(answer(asked, b'{"message":"internal server error"}'))
    assert caught.value.may_pass
    renamed = b'{"Bars":{},"next_page_token":null}'
    assert bars.classify(answer(asked, renamed)) is AnswerClass.DATA
    with pytest.raises(ParseError, match="bars"):
        read(KEY, renamed)


def test_a_group_in_which_nobody_is_left_is_not_asked_for() -> None:
    chunk = {"group": "32.1", "since": "2026-08-31", "through": "2026-08-31"}
    assert list(DAILY_STREAM.plan(Ask(Mode.BACKFILL, chunk=chunk, subjects=("AAPL",)))) == []


def test_a_list_of_symbols_is_a_part_of_its_groups_unit() -> None:
    whole, part = request("1.0/1Day-sip/2026-09-15"), request(KEY)
    assert whole.unit == part.unit == "1.0/1Day-sip/2026-09"
    assert (whole.about["is_whole"], part.about["is_whole"]) == (True, False)


def test_one_malformed_symbol_is_left_out_and_the_others_are_asked_for() -> None:
    asked = request("AAPL,MSFT,CSP1/1Day-sip/2026-09-15")
    refusal = answer(asked, fixture("invalid_symbol.json"), 400)
    assert bars.classify(refusal) is AnswerClass.ERROR
    amended = requests.amend(asked, refusal)
    assert amended is not None
    assert dict(amended.request.params)["symbols"] == amended.request.about["symbols"] == "AAPL,MSFT"
    assert (amended.key, amended.reason) == ("CSP1/1Day-sip/2026-09-15", "invalid symbol: CSP1")
    assert amended.request.key == asked.key


def test_who_has_bars_that_cannot_be_read_is_not_said_to_have_none() -> None:
    parsed = read("AAPL,MSFT/1Day-sip/2026-09-15", page({"AAPL": [bar("2026-09-15T04:00:00Z", c="many")]}))
    assert len(parsed.rejected) == 1
    assert [row["symbol"] for row in rows_of(parsed, 1)] == ["MSFT"]


def test_bars_of_which_none_can_be_read_are_refused_once_and_not_bar_by_bar() -> None:
    stamps = [f"2026-09-15T{hour:02}:{minute:02}:00Z" for hour in range(8, 12) for minute in range(60)]
    minutes = [bar(stamp, c="many") for stamp in stamps]
    with pytest.raises(ParseError, match="none of its 240 bars can be read; the first, AAPL raw page 1 bar 1"):
        read("AAPL/1Min-sip/2026-09-15", page({"AAPL": minutes}))
    parsed = read("AAPL/1Min-sip/2026-09-15", page({"AAPL": [*minutes, bar("2026-09-15T13:30:00Z")]}))
    assert (len(rows_of(parsed)), len(parsed.rejected)) == (1, 240)


def test_a_day_that_does_not_begin_at_midnight_in_new_york_is_another_days_and_is_rejected() -> None:
    for stamp in ("2026-09-15T00:00:00Z", "2026-09-15T05:00:00Z", "2026-09-15T13:30:00Z"):
        parsed = read(KEY, page({"AAPL": [bar("2026-09-14T04:00:00Z"), bar(stamp)]}))
        assert [row["session_date"].day for row in rows_of(parsed)] == [14]
        assert "no midnight in New York" in parsed.rejected[0].reason


def test_a_refusal_that_names_nobody_of_ours_is_an_error() -> None:
    alone = request("CSP1/1Day-sip/2026-09-15")
    assert requests.amend(alone, answer(alone, fixture("invalid_symbol.json"), 400)) is None
    asked = request("AAPL,MSFT/1Day-sip/2026-09-15")
    for status, body in (
        (400, b'{"message":"invalid symbol: ZZZ9"}'),
        (400, b"{}"),
        (500, b'{"message":"invalid symbol: AAPL"}'),
    ):
        assert requests.amend(asked, answer(asked, body, status)) is None


def test_symbols_that_would_sink_a_batch_are_not_put_into_one() -> None:
    (asked,) = DAILY_STREAM.plan(
        Ask(Mode.POLL, sessions=(date(2026, 9, 15),), subjects=("AAPL", "CSP1", "brk.b", "X Y"))
    )
    assert asked.about["symbols"] == "AAPL"


def test_bad_bars_are_named_and_the_others_kept() -> None:
    parsed = read(KEY, fixture("day_defects.json"))
    (row,) = rows_of(parsed)
    assert row["open"] == Decimal("1.10")
    reasons = [each.reason for each in parsed.rejected]
    assert "decimal" in reasons[0]
    assert "outside of the period" in reasons[1]
    assert reasons[3] == "ZZZZQ was not asked for"
    assert parsed.rejected[0].text.startswith('{"t":"2026-09-14')


@pytest.mark.parametrize(
    "wrong",
    [
        '"n":1e30', '"n":99999999999999999999', '"n":-1', '"v":1e999999999', '"c":1e300', '"h":"NaN"', '"v":"Infinity"',
        '"vw":"NaN"',
    ],
)  # fmt: skip
def test_a_number_that_nothing_can_be_is_named_and_the_other_bars_are_kept(wrong: str) -> None:
    good = json.dumps(bar("2026-09-14T04:00:00Z"))
    name = wrong.partition(":")[0]
    bad = ",".join(
        f if not f.startswith(name) else wrong for f in json.dumps(bar("2026-09-15T04:00:00Z"))[1:-1].split(", ")
    )
    parsed = read(KEY, f'{{"bars":{{"AAPL":[{good},{{{bad}}}]}},"next_page_token":null}}'.encode())
    assert [row["session_date"].day for row in rows_of(parsed)] == [14]
    assert [each.position for each in parsed.rejected] == ["AAPL raw page 1 bar 2"]


def test_whatever_stands_in_an_answer_is_read_rejected_or_refused_in_words() -> None:
    (asset,), (day,) = (
        list(stream.plan(Ask(Mode.POLL, sessions=(date(2026, 11, 30),)))) for stream in (ASSETS_STREAM, CALENDAR_STREAM)
    )
    assert sum(
        strange.check(stream, asked, fixture(name))
        for stream, asked, name in (
            (DAILY_STREAM, request("AAPL,BRK.B/1Day-sip/2026-09-15"), "day_two_symbols.json"),
            (MINUTE_STREAM, request("AAPL/1Min-sip/2026-09-15"), "minute.json"),
            (ASSETS_STREAM, asset, "assets.json"),
            (CALENDAR_STREAM, day, "calendar.json"),
        )
    ) > 500  # fmt: skip


def test_a_time_that_stands_twice_with_other_values_is_rejected_and_the_same_twice_is_not() -> None:
    one, other = bar("2026-09-14T04:00:00Z", 1), bar("2026-09-14T04:00:00Z", 2)
    parsed = read(KEY, page({"AAPL": [one, other, one]}))
    assert len(rows_of(parsed)) == 1
    assert [each.reason for each in parsed.rejected] == ["2026-09-14T04:00:00+00:00 stands twice with different values"]


def test_fields_that_nobody_knows_are_kept_and_reported() -> None:
    parsed = read(KEY, fixture("day_unknown_field.json"))
    assert parsed.unknown_columns == ("x",)
    assert rows_of(parsed)[0]["extra"] == {"x": "Q"}


def test_what_is_no_page_is_refused() -> None:
    for body, words in ((fixture("list_of_bars.json"), "a list of bars"), (fixture("cut.json"), "no JSON of bars")):
        with pytest.raises(ParseError, match=words):
            read(KEY, body)
    with pytest.raises(ParseError, match="not known what was asked for"):
        bars.parse(Unit("x", None, (answer(replace(request(KEY), about={}), page({})),)))


# --- refusals


def test_the_plan_that_lacks_recent_data_is_no_fault_of_the_key() -> None:
    said = b'{"message":"subscription does not permit querying recent SIP data"}'
    old = b'{"code":42210000,"message":"subscription does not permit querying data from the past 15 minutes"}'
    for status, body in ((403, said), (422, old)):
        with pytest.raises(DefiniteRefusal, match=r"^ALPACA_PLAN: .*no fault of the key.*iex"):
            bars.classify(answer(request(KEY), body, status))
    assert bars.classify(answer(request(KEY), b'{"message":"invalid feed"}', 422)) is AnswerClass.ERROR


@pytest.mark.parametrize(
    ("status", "body"),
    [(403, b'{"message":"forbidden."}'), (401, b'{"message":"request is not authorized"}'), (401, b"<html>401</html>")],
)
def test_a_key_that_is_not_accepted_is_said_so_once(status: int, body: bytes) -> None:
    with pytest.raises(DefiniteRefusal, match=r"^ALPACA_KEY: "):
        bars.classify(answer(request(KEY), body, status))


def test_trouble_that_passes_is_an_error_and_a_page_a_block() -> None:
    told = {
        "too many": bars.classify(answer(request(KEY), fixture("too_many.json"), 429)),
        "a page": bars.classify(answer(request(KEY), fixture("block_page.html"), 403)),
        "a page with 200": bars.classify(answer(request(KEY), fixture("block_page.html"))),
        "unavailable": bars.classify(answer(request(KEY), b"", 503)),
        "no content": bars.classify(answer(request(KEY), b"", 204)),
        "cut": bars.classify(answer(request(KEY), fixture("cut.json"))),
    }
    assert told == {
        "too many": AnswerClass.ERROR,
        "a page": AnswerClass.BLOCKED,
        "a page with 200": AnswerClass.BLOCKED,
        "unavailable": AnswerClass.ERROR,
        "no content": AnswerClass.ERROR,
        "cut": AnswerClass.ERROR,
    }


# --- what is asked


def test_a_request_says_feed_adjustment_mapping_order_and_both_ends() -> None:
    asked = request("AAPL/1Day-sip/2026-03-31")
    assert dict(asked.params) == {
        "symbols": "AAPL",
        "timeframe": "1Day",
        "start": "2026-03-01T00:00:00-05:00",
        "end": "2026-03-31T00:00:00-04:00",
        "limit": "10000",
        "adjustment": "raw",
        "asof": "-",
        "feed": "sip",
        "sort": "asc",
    }
    minute = dict(request("AAPL/1Min-sip/2026-09-15").params)
    assert (minute["start"], minute["end"]) == ("2026-09-15T00:00:00-04:00", "2026-09-15T23:59:59-04:00")


def test_what_is_too_fresh_for_the_free_plan_is_not_asked_for() -> None:
    at = datetime(2026, 9, 15, 10, 0, tzinfo=NEW_YORK)
    ask = Ask(Mode.POLL, sessions=(date(2026, 9, 15),), newest=date(2026, 9, 15), at=at)
    for stream in (MINUTE_STREAM, DAILY_STREAM):
        for asked in stream.plan(ask):
            assert datetime.fromisoformat(dict(asked.params)["end"]) <= at - timedelta(minutes=16)
    # After the session nothing is cut off.
    late = replace(ask, at=datetime(2026, 9, 16, 0, 30, tzinfo=NEW_YORK))
    assert {dict(each.params)["end"] for each in MINUTE_STREAM.plan(late)} == {"2026-09-15T23:59:59-04:00"}


def test_daily_bars_are_asked_for_by_the_month_and_a_young_month_with_the_one_before() -> None:
    ask = Ask(Mode.POLL, sessions=(date(2026, 9, 3), date(2026, 9, 2)), newest=date(2026, 9, 3))
    assert [each.key for each in DAILY_STREAM.plan(ask)] == ["1.0/1Day-sip/2026-09-03", "1.0/1Day-sip/2026-08-31"]
    later = Ask(Mode.POLL, newest=date(2026, 9, 15))
    assert [each.key for each in DAILY_STREAM.plan(later)] == ["1.0/1Day-sip/2026-09-15"]
    gap = Ask(Mode.POLL, sessions=(date(2026, 9, 15), date(2026, 7, 31), date(2026, 7, 1)), newest=date(2026, 9, 15))
    assert [each.key for each in DAILY_STREAM.plan(gap)] == ["1.0/1Day-sip/2026-09-15", "1.0/1Day-sip/2026-07-31"]


def test_of_a_period_the_later_day_is_asked_for_last_and_a_month_that_is_over_whole() -> None:
    """Who had no bar until the tenth may have had one on the twelfth: the last answer is believed."""
    pending = ("1.0/1Day-sip/2026-09-10", "AAPL/1Day-sip/2026-07-31")
    ask = Ask(Mode.POLL, sessions=(date(2026, 9, 15),), newest=date(2026, 9, 15), pending=pending)
    assert [each.key for each in DAILY_STREAM.plan(ask)] == [pending[0], "1.0/1Day-sip/2026-09-15", pending[1]]
    span = Span(Mode.BACKFILL, date(2026, 8, 3), date(2026, 8, 10), date(2026, 9, 16))
    assert DAILY_STREAM.chunks is not None
    (chunk,) = DAILY_STREAM.chunks(span)
    assert [each.key for each in DAILY_STREAM.plan(Ask(Mode.BACKFILL, chunk=chunk.asks))] == ["1.0/1Day-sip/2026-08-31"]
    (chunk,) = DAILY_STREAM.chunks(replace(span, today=date(2026, 8, 12)))
    assert chunk.asks["through"] == "2026-08-10"


def test_ten_thousand_symbols_and_a_month_are_a_few_requests() -> None:
    subjects = tuple(
        f"{a}{b}{c}{d}" for a in "ABCDEFGHIJ" for b in "ABCDEFGHIJ" for c in "ABCDEFGHIJ" for d in "ABCDEFGHIJ"
    )
    ask = Ask(Mode.POLL, newest=date(2026, 9, 30), subjects=subjects)
    planned = list(DAILY_STREAM.plan(ask))
    assert len(planned) == 32
    asked = [symbol for each in planned for symbol in each.about["symbols"].split(",")]
    assert sorted(asked) == sorted(subjects)
    assert max(len(each.about["symbols"].split(",")) for each in planned) <= 400


def test_five_years_of_ten_thousand_symbols_are_planned_at_once_and_again_the_same() -> None:
    subjects = tuple(
        f"{a}{b}{c}{d}" for a in "ABCDEFGHIJ" for b in "ABCDEFGHIJ" for c in "ABCDEFGHIJ" for d in "ABCDEFGHIJ"
    )
    span = Span(Mode.BACKFILL, date(2021, 9, 16), date(2026, 9, 15), date(2026, 9, 15), subjects=subjects)
    for stream, count in ((DAILY_STREAM, 61 * 32), (MINUTE_STREAM, 61 * 192)):
        assert stream.chunks is not None
        names = [chunk.name for chunk in stream.chunks(span)]
        assert len(names) == len(set(names)) == count
        assert names == [chunk.name for chunk in stream.chunks(span)]
        assert names[0].startswith("2026-09/")
        assert names[-1].startswith("2021-09/")


def test_a_chunk_asks_for_its_month_and_group_alone() -> None:
    span = Span(Mode.BACKFILL, date(2026, 8, 20), date(2026, 9, 15), date(2026, 9, 16), keys=("AAPL", "BRK.B"))
    assert DAILY_STREAM.chunks is not None
    assert MINUTE_STREAM.chunks is not None
    daily = list(DAILY_STREAM.chunks(span))
    assert [chunk.name for chunk in daily] == ["2026-09/AAPL,BRK.B", "2026-08/AAPL,BRK.B"]
    keys = [each.key for chunk in daily for each in DAILY_STREAM.plan(Ask(Mode.BACKFILL, chunk=chunk.asks))]
    assert keys == ["AAPL,BRK.B/1Day-sip/2026-09-15", "AAPL,BRK.B/1Day-sip/2026-08-31"]
    minute = list(MINUTE_STREAM.chunks(span))
    days = [each.session_date for each in MINUTE_STREAM.plan(Ask(Mode.BACKFILL, chunk=minute[1].asks))]
    assert days == [date(2026, 8, day) for day in (31, 28, 27, 26, 25, 24, 21, 20)]


def test_a_group_is_a_matter_of_letters_and_of_how_many_groups_there_are() -> None:
    few = tuple(f"A{n}" for n in "BCDEFGH")
    more = (*few, "AZ")
    assert [symbols.group_of(each, 8) for each in few] == [symbols.group_of(each, 8) for each in more[:-1]]
    counts = [symbols.group_count(count, 400) for count in (1, 400, 401, 640, 641, 960, 10_000, 12_000, 14_379)]
    assert counts == sorted(counts)
    assert counts == [1, 1, 2, 2, 3, 3, 32, 48, 48]
    assert all(symbols.is_well_formed(each) for each in DEFAULT)
    assert len(set(DEFAULT)) == len(DEFAULT)


def test_a_replay_of_some_symbols_reads_their_groups_again_however_many_groups_there_were() -> None:
    span = Span(Mode.REPLAY, date(2026, 8, 20), date(2026, 9, 15), date(2026, 9, 16), keys=("AAPL", "BRK.B"))
    for stream in (DAILY_STREAM, MINUTE_STREAM):
        assert stream.chunks is not None
        assert [chunk.asks["keys"] for chunk in stream.chunks(span)] == [["AAPL", "BRK.B"]] * 2
        assert all("keys" not in chunk.asks for chunk in stream.chunks(replace(span, keys=())))
        for groups in (1, 2, 48):
            theirs = {symbols.group_of(symbol, groups) for symbol in span.keys}
            found = {
                f"{groups}.{n}" for n in range(groups) if stream.is_of(f"{groups}.{n}/1Day-sip/2026-09", span.keys)
            }
            assert found == theirs


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1Min", "1Min"), ("5T", "5Min"), ("59Min", "59Min"), ("1H", "1Hour"), ("23Hour", "23Hour"), ("1D", "1Day"),
        ("1Week", "1Week"), ("12M", "12Month"), ("60Min", None), ("0Min", None), ("24Hour", None), ("2Day", None),
        ("5Month", None), ("1min", None), ("", None),
    ],
)  # fmt: skip
def test_lengths_have_one_spelling_each(text: str, name: str | None) -> None:
    found = timeframes.parse(text)
    assert (found.name if found else None) == name


def test_pending_keys_of_other_lengths_are_asked_by_the_stream_that_keeps_them() -> None:
    keys = ("1.0/5Min-sip/2026-09-15", "AAPL/1Hour-sip/2026-09-15", "1.0/1Week-sip/2026-09-30")
    assert [each.key for each in MINUTE_STREAM.plan(Ask(Mode.POLL, pending=keys))] == list(keys[:2])
    assert [each.key for each in DAILY_STREAM.plan(Ask(Mode.POLL, pending=keys))] == [keys[2]]


def test_groups_fill_pages_whatever_the_length() -> None:
    sizes = {name: found.group_size for name in ("1Day", "1Min", "5Min", "1Hour") if (found := timeframes.parse(name))}
    assert sizes == {"1Day": 400, "1Min": 88, "5Min": 400, "1Hour": 400}


# --- splits


def split_month(ratio_until: str, *, symbol: str = "AAPL") -> tuple[bytes, bytes]:
    days = [f"2026-09-{day:02}" for day in (8, 9, 10, 11, 14, 15)]
    raw = page({symbol: [bar(f"{day}T04:00:00Z", 400.0 if day < ratio_until else 100.0) for day in days]})
    adjusted = page({symbol: [bar(f"{day}T04:00:00Z", 100.0) for day in days]})
    return raw, adjusted


def test_a_split_makes_every_earlier_month_of_the_symbol_outdated() -> None:
    raw, adjusted = split_month("2026-09-11")
    parsed = read("1.0/1Day-sip/2026-09-15", raw, adjusted=[adjusted])
    found = parsed.outdated
    assert {each.key.partition("/")[0] for each in found} == {"AAPL"}
    assert found[0].key == "AAPL/1Day-sip/2026-08-31"
    assert found[0].covers == ("AAPL/1Day-sip/2026-08", "1.0/1Day-sip/2026-08")
    assert found[0].unit == "1.0/1Day-sip/2026-08"
    assert {each.since for each in found} == {datetime(2026, 9, 11, tzinfo=NEW_YORK)}
    assert found[-1].key == "AAPL/1Day-sip/2016-01-31"
    (again,) = DAILY_STREAM.plan(Ask(Mode.POLL, pending=(found[0].key,)))
    assert again.unit == found[0].unit


def test_a_split_on_the_first_day_after_a_month_is_seen_in_that_month() -> None:
    raw, adjusted = split_month("2026-09-99")
    found = read("1.0/1Day-sip/2026-09-30", raw, adjusted=[adjusted]).outdated
    assert found[0].since == datetime(2026, 10, 1, tzinfo=NEW_YORK)


def test_no_split_a_part_and_an_old_month_outdate_nothing() -> None:
    raw, adjusted = split_month("2026-09-11")
    assert read("1.0/1Day-sip/2026-09-15", adjusted, adjusted=[adjusted]).outdated == ()
    assert read(KEY, raw, adjusted=[adjusted]).outdated == ()
    late = SENT + timedelta(days=200)
    assert read("1.0/1Day-sip/2026-09-15", raw, adjusted=[adjusted], sent=late).outdated == ()


# --- assets and the calendar


def read_list(stream: Any, body: bytes) -> list[dict[str, Any]]:
    (asked, *_) = stream.plan(Ask(Mode.POLL, sessions=(date(2026, 11, 30),)))
    parsed = stream.parse(Unit(asked.unit, None, (answer(asked, body),)))
    return [dict(zip(parsed.batches[0].table.column_names, row, strict=False)) for row in parsed.batches[0].rows]


def test_assets_are_read_with_all_that_they_say() -> None:
    first, gone, plain = read_list(ASSETS_STREAM, fixture("assets.json"))
    assert (first["symbol"], first["is_collected"], first["margin_short"]) == ("ABRX", True, Decimal("33.5"))
    assert first["attributes"] == ["fractional_eh_enabled", "has_options"]
    assert (gone["symbol"], gone["status"], gone["is_collected"]) == ("CSP1", "inactive", False)
    assert (plain["symbol"], plain["name"], plain["is_collected"]) == ("BRX.B", None, True)
    assert set(first) == set(ASSETS.column_names)


def test_a_list_of_which_no_asset_can_be_read_is_refused_once_and_not_asset_by_asset() -> None:
    assets = [each | {"easy_to_borrow": None} for each in json.loads(fixture("assets.json"))]
    with pytest.raises(ParseError, match="none of its 300 assets can be read; the first: is_easy_to_borrow is None"):
        read_list(ASSETS_STREAM, json.dumps(assets * 100).encode())
    assert read_list(ASSETS_STREAM, json.dumps(assets).encode()) == []


def test_trading_days_have_their_hours_in_new_york_on_short_days_too() -> None:
    full, short, plain = read_list(CALENDAR_STREAM, fixture("calendar.json"))
    assert full["closes_at"] == datetime(2026, 11, 25, 21, 0, tzinfo=UTC)
    assert short["closes_at"] == datetime(2026, 11, 27, 18, 0, tzinfo=UTC)
    assert short["extended_closes_at"] == datetime(2026, 11, 27, 22, 0, tzinfo=UTC)
    assert short["settles_on"] == date(2026, 11, 30)
    assert plain["extended_opens_at"] is None
    assert set(full) == set(CALENDAR.column_names)


def test_the_whole_list_is_one_request_and_only_todays() -> None:
    (asked,) = ASSETS_STREAM.plan(Ask(Mode.POLL, sessions=(date(2026, 9, 15), date(2026, 9, 14))))
    assert asked.url == "https://paper-api.alpaca.markets/v2/assets"
    assert ASSETS_STREAM.snapshot_only
    assert asked.key == reference.ASSETS_KEY


def test_minute_and_day_are_what_the_streams_ask_for() -> None:
    assert (DAY.name, MINUTE.name) == ("1Day", "1Min")
    assert MINUTE_STREAM.job_name == "alpaca_intraday"
    assert DAILY_STREAM.job_name == "alpaca"


# --- recorded answers

LISTED = listed("alpaca")


@pytest.mark.skipif(not LISTED, reason="the recorded samples are not beside this checkout")
@pytest.mark.parametrize("sample", LISTED, ids=[row["file"] for row in LISTED] or None)
def test_a_recorded_answer_is_read_as_its_manifest_says(sample: dict[str, str]) -> None:
    body, right = (SAMPLES / sample["file"]).read_bytes(), json.loads(sample["right_reading"], parse_float=Decimal)
    assert hashlib.sha256(body).hexdigest() == sample["sha256"]
    document, status = json.loads(body, parse_float=Decimal), int(sample["http_status"])
    if "symbols" in right and "next_page_token" in right:
        _check_bars(body, right)
    elif "days" in right:
        days = read_list(CALENDAR_STREAM, body)
        at = [day["session_date"].isoformat() for day in days]
        assert (len(days), at[0], at[-1]) == (right["days"], right["first"], right["last"])
        assert not set(right["absent_weekdays"]) & set(at)
        closes = {day["session_date"].isoformat(): day["closes_at"].astimezone(NEW_YORK) for day in days}
        assert [[day, f"{close:%H:%M}"] for day, close in closes.items() if close.hour < 16] == right["early_close"]
    elif "non_tradable" in right:
        assets = read_list(ASSETS_STREAM, json.dumps(json.loads(body)["body"]).encode())
        assert [asset["symbol"] for asset in assets] == right["symbols"]
        assert [asset["symbol"] for asset in assets if not asset["is_tradable"]] == right["non_tradable"]
        assert sorted({asset["exchange"] for asset in assets}) == right["exchanges"]
        assert sorted(asset["symbol"] for asset in assets if not asset["is_fractionable"]) == right["not_fractionable"]
    elif status == 200:
        # Trades are not what is asked for, and never taken for bars.
        with pytest.raises(ParseError):
            read(KEY, body)
    else:
        said = json.dumps(document["body"]).encode()
        if status == 403:
            with pytest.raises(DefiniteRefusal, match="ALPACA_PLAN"):
                bars.classify(answer(request(KEY), said, status))
        else:
            assert bars.classify(answer(request(KEY), said, status)) is AnswerClass.ERROR


def _check_bars(body: bytes, right: dict[str, Any]) -> None:
    """Every figure of the manifest, digit by digit; a page in falling order is read as one in rising order."""
    symbols_of = right["symbols"]
    last = max((each["last_t"][:10] for each in symbols_of.values()), default="2026-09-15")
    through = timeframes.month_end(date.fromisoformat(last))
    asked = request(f"{','.join(sorted(symbols_of)) or 'AAPL'}/1Day-sip/{through}")
    classes = AnswerClass.DATA if symbols_of else AnswerClass.EMPTY
    assert bars.classify(answer(asked, body)) is classes
    follows = requests.follow(asked, answer(asked, body))
    assert dict(follows[0].params).get("page_token") == right["next_page_token"]
    parsed = bars.parse(Unit(asked.unit, asked.session_date, (answer(asked, body),)))
    assert parsed.rejected == ()
    rows = rows_of(parsed)
    assert {row["symbol"] for row in rows} == set(symbols_of)
    for symbol, told in symbols_of.items():
        mine = [row for row in rows if row["symbol"] == symbol]
        first, final = mine[0], mine[-1]
        names = {"o": "open", "h": "high", "l": "low", "c": "close", "v": "volume", "n": "trades", "vw": "vwap"}
        assert {name: first[column] for name, column in names.items()} | {"t": told["first"]["t"]} == told["first"]
        assert (len(mine), final["close"]) == (told["bars"], told["last_c"])
        assert sum(row["volume"] for row in mine) == told["sum_v"]
        stamps = [datetime.fromisoformat(text) for text in (told["first"]["t"], told["last_t"])]
        assert [first["ts"], final["ts"]] == stamps
        assert first["session_date"] == stamps[0].astimezone(NEW_YORK).date()
