"""KRX's answers, one by one: what is read, what is told apart, and what is never taken for a day without trading."""

from __future__ import annotations

import csv
import hashlib
import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from include.contract import (
    AnswerClass,
    AnswerError,
    Ask,
    DefiniteRefusal,
    Mode,
    Parsed,
    ParseError,
    QuotaUsedUp,
    Request,
    Stream,
)
from include.outputs.releases import RELEASES
from include.settings import ROOT
from include.sources.krx import answers, services
from include.sources.krx.streams import HOST_GROUP, INDICES_STREAM, ISSUES_STREAM, PRICES_STREAM
from include.sources.krx.tables import BOND_INDICES, INDICES, ISSUES, PRICES
from tests.sources.answers import FIXTURES, answer, unit_of

DAY = date(2026, 9, 15)


def fixture(name: str) -> bytes:
    return (FIXTURES / "krx" / name).read_bytes()


def request(market: str = "KOSDAQ", day: date = DAY, *, is_session: bool = True) -> Request:
    return services.request(services.PRICES, market, day, is_session=is_session)


def read(stream: Stream, body: bytes, key: str = "KOSDAQ/2026-09-15") -> Parsed:
    (asked,) = stream.plan(Ask(Mode.POLL, pending=(key,)))
    return stream.parse(unit_of(asked, body))


def rows_of(parsed: Parsed) -> list[dict[str, Any]]:
    batch = parsed.batches[0]
    names = batch.table.column_names
    return [
        dict(zip((*names, "extra"), (*row, None) if len(row) == len(names) else row, strict=True)) for row in batch.rows
    ]


def trade(**changed: Any) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(fixture("trade.json"))["OutBlock_1"][0]
    return {**row, **changed}


def block(*rows: Any) -> bytes:
    return json.dumps({"OutBlock_1": rows}, ensure_ascii=False).encode()


# --- prices


def test_a_price_is_whole_numbers_of_won_and_its_code_is_text() -> None:
    first, halted, preferred, labelled = rows_of(read(PRICES_STREAM, fixture("trade.json")))
    assert first == {
        "session_date": DAY, "market": "KOSDAQ", "code": "0015G0", "name": "가나전자", "market_label": "KOSDAQ",
        "section": "벤처기업부", "close": 12340, "change": -160, "change_percent": Decimal("-1.28"), "open": 12500,
        "high": 12600, "low": 12300, "volume": 104221, "traded_value": 1290000000, "market_cap": 246800000000,
        "listed_shares": 20000000, "is_untraded": False, "extra": None,
    }  # fmt: skip
    assert [halted["code"], preferred["code"], labelled["code"]] == ["005999", "28513K", "000020"]
    assert all(type(row["code"]) is str for row in (first, halted, preferred, labelled))
    assert labelled["name"] == "사아소재"


def test_a_halted_stock_keeps_its_close_and_has_no_other_price() -> None:
    _, halted, *_ = rows_of(read(PRICES_STREAM, fixture("trade.json")))
    assert (halted["close"], halted["is_untraded"], halted["volume"]) == (3000, True, 0)
    assert [halted[name] for name in ("open", "high", "low")] == [None, None, None]


def test_the_market_is_that_of_the_service_and_the_label_is_kept_beside_it() -> None:
    *_, labelled = rows_of(read(PRICES_STREAM, fixture("trade.json")))
    assert (labelled["market"], labelled["market_label"]) == ("KOSDAQ", "KOSDAQ GLOBAL")


def test_commas_and_their_absence_are_the_same_numbers() -> None:
    plain = {row["code"]: row for row in rows_of(read(PRICES_STREAM, fixture("trade.json")))}
    with_commas = rows_of(read(PRICES_STREAM, fixture("trade_with_commas.json")))
    assert with_commas == [plain[row["code"]] for row in with_commas]


def test_what_is_missing_is_null_and_never_zero() -> None:
    first, second = rows_of(read(PRICES_STREAM, fixture("trade_missing_values.json")))
    assert [first[name] for name in ("open", "high", "low", "change_percent", "market_cap")] == [None] * 5
    assert first["close"] == 12340
    assert (second["close"], second["change"]) == (None, None)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("TDD_CLSPRC", "3000.5", "no whole number"),
        ("TDD_CLSPRC", "1" * 20, "no whole number"),
        ("ACC_TRDVOL", "many", "no number"),
        ("ACC_TRDVOL", "１２", "no number"),
        ("ACC_TRDVOL", "1_000", "no number"),
        ("ACC_TRDVOL", "NaN", "no number"),
        ("ACC_TRDVOL", True, "no number"),
        ("FLUC_RT", "up", "no number"),
        ("FLUC_RT", "Infinity", "no number"),
        ("FLUC_RT", "1,5", "no number"),
        ("TDD_CLSPRC", "12,34", "no number"),
        ("ISU_CD", "KR70015G0001", "no short code"),
        ("ISU_CD", "5930", "no short code"),
        ("ISU_CD", "0015g0", "no short code"),
        ("ISU_NM", "  ", "blank"),
    ],
)
def test_a_value_that_is_none_puts_its_row_aside_and_no_other(column: str, value: Any, reason: str) -> None:
    parsed = read(PRICES_STREAM, block(trade(), trade(**{column: value})))
    assert [row["code"] for row in rows_of(parsed)] == ["0015G0"]
    assert [each.position for each in parsed.rejected] == ["row 2"]
    assert reason in parsed.rejected[0].reason


@given(some.permutations(list(trade())), some.integers(0, 2**62), some.integers(-(10**6), 10**6))
def test_the_order_of_columns_means_nothing_and_large_numbers_are_exact(
    order: list[str], value: int, change: int
) -> None:
    row = trade(ACC_TRDVAL=str(value), MKTCAP=str(value), CMPPREVDD_PRC=str(change))
    (found,) = rows_of(read(PRICES_STREAM, block({name: row[name] for name in order})))
    assert (found["traded_value"], found["market_cap"], found["change"]) == (value, value, change)


@given(some.lists(some.sampled_from(["12", "-7", "0", "1.0", "1e3", "007", "1,234", "", "-"]), min_size=4, max_size=4))
def test_a_row_is_read_alike_whether_its_answer_is_ordinary_or_not(values: list[str]) -> None:
    """The quick way reads an answer whole; one more column sends every row the careful way."""
    named = dict(zip(("CMPPREVDD_PRC", "TDD_OPNPRC", "ACC_TRDVOL", "LIST_SHRS"), values, strict=True))
    quick = read(PRICES_STREAM, block(trade(**named)))
    careful = read(PRICES_STREAM, block(trade(**named, LATER="x")))
    assert [{**row, "extra": None} for row in rows_of(careful)] == rows_of(quick)


def test_an_answer_for_another_day_is_refused_whole() -> None:
    """On a closed day some screens answer with the nearest session's rows."""
    with pytest.raises(ParseError, match="is for 20260914 and not for 20260915, which was asked for"):
        read(PRICES_STREAM, fixture("trade_other_day.json"))
    with pytest.raises(ParseError, match="is for 20260914"):
        read(PRICES_STREAM, block(trade(BAS_DD="20260914", LATER="x")))


def test_a_renamed_column_is_named_and_gives_no_column_of_nulls() -> None:
    row = trade()
    row["CLSPRC"] = row.pop("TDD_CLSPRC")
    with pytest.raises(ParseError, match=r"the rows lack TDD_CLSPRC; they have .*CLSPRC"):
        read(PRICES_STREAM, block(row))
    assert rows_of(read(PRICES_STREAM, fixture("trade_one_column_more.json")))[0]["extra"] == {"NXT_TRDVOL": "17"}


# --- issues and indices


def test_the_masters_isu_cd_is_the_isin_and_joins_daily_trade_by_the_short_code() -> None:
    common, preferred, foreign = rows_of(read(ISSUES_STREAM, fixture("master.json")))
    assert (common["isin"], common["code"]) == ("KR70015G0001", "0015G0")
    assert common["code"] in {row["code"] for row in rows_of(read(PRICES_STREAM, fixture("trade.json")))}
    assert (common["short_name"], common["english_name"]) == ("가나전자", "Gana Electronics")
    assert (preferred["par_value_text"], preferred["par_value"], preferred["section"]) == ("무액면", None, None)
    assert (foreign["par_value"], foreign["listed_shares"]) == (Decimal("0.01"), 1_234_567_890)
    assert foreign["listed_on"] == date(2016, 7, 6)
    assert foreign["session_date"] == DAY


def test_a_service_that_gives_the_other_code_is_not_believed() -> None:
    with pytest.raises(ParseError, match="none of 2 rows can be read; row 1: ISU_CD is 'KR70015G0001'"):
        read(PRICES_STREAM, fixture("trade_isin_throughout.json"))
    parsed = read(ISSUES_STREAM, fixture("master_short_code_as_isin.json"))
    assert [each.reason for each in parsed.rejected] == [
        "ISU_CD is '28513K', which is no ISIN of twelve characters",
        "LIST_DD is '20161332', which is no date",
    ]


def test_an_index_without_an_opening_has_no_low_of_zero() -> None:
    index, other = rows_of(read(INDICES_STREAM, fixture("indices.json"), "KOSPI/2026-09-15"))
    assert (index["close"], index["open"], index["market_cap"]) == (
        Decimal("6894.23"), Decimal("6885.70"), 5683776067592413,
    )  # fmt: skip
    assert str(index["open"]) == "6885.70"
    missing = ("open", "high", "low", "volume", "traded_value", "market_cap")
    assert [other[name] for name in missing] == [None] * 6
    zero = json.loads(fixture("indices.json"))["OutBlock_1"][0] | {"OPNPRC_IDX": "0", "LWPRC_IDX": "0.00"}
    (found,) = rows_of(read(INDICES_STREAM, block(zero), "KOSPI/2026-09-15"))
    assert (found["open"], found["low"], found["high"]) == (None, None, Decimal("6914.08"))


def test_each_family_of_indices_has_its_own_columns() -> None:
    (derivative,) = rows_of(read(INDICES_STREAM, fixture("indices_of_derivatives.json"), "DERIVATIVES/2026-09-15"))
    assert (derivative["family"], derivative["volume"]) == ("DERIVATIVES", None)
    assert derivative["close"] == Decimal("1234.567")
    parsed = read(INDICES_STREAM, fixture("indices_of_bonds.json"), "BOND/2026-09-15")
    assert parsed.batches[0].table is BOND_INDICES
    first, second = rows_of(parsed)
    assert (first["total_return"], first["total_return_change"]) == (Decimal("251.34"), Decimal("-0.12"))
    assert second["call_reinvestment"] is None


# --- what an answer is


def test_an_empty_block_is_not_yet_on_a_session_and_nothing_on_a_closed_day_or_before_the_first() -> None:
    empty = fixture("no_rows.json")
    assert answers.classify(answer(request(), empty)) is AnswerClass.NOT_YET
    assert answers.classify(answer(request(is_session=False), empty)) is AnswerClass.EMPTY
    assert answers.classify(answer(request("KONEX", date(2013, 6, 28)), empty)) is AnswerClass.EMPTY


def test_a_closed_day_shown_with_every_issue_and_no_value_is_no_trading_day() -> None:
    body = fixture("trade_placeholders.json")
    assert answers.classify(answer(request(), body)) is AnswerClass.NOT_YET
    assert answers.classify(answer(request(is_session=False), body)) is AnswerClass.EMPTY
    # Zeros in place of dashes, and the close of the session before under them, are no trading either.
    zeros = dict.fromkeys(("TDD_CLSPRC", "TDD_OPNPRC", "TDD_HGPRC", "TDD_LWPRC", "ACC_TRDVOL"), "0")
    for row in (trade(**zeros), trade(**zeros | {"TDD_CLSPRC": "12340"}), trade(ACC_TRDVOL="-", ACC_TRDVAL="-")):
        assert answers.classify(answer(request(), block(row, row))) is AnswerClass.NOT_YET
        assert answers.classify(answer(request(is_session=False), block(row, row))) is AnswerClass.EMPTY
        # One trade among them makes it a day.
        assert answers.classify(answer(request(), block(row, trade()))) is AnswerClass.DATA
    rows = [*json.loads(body)["OutBlock_1"], trade()]
    assert answers.classify(answer(request(), block(*rows))) is AnswerClass.DATA


def test_an_answer_with_far_fewer_rows_takes_nothing_away_and_a_field_without_values_is_told() -> None:
    """Promised by the engine, of what a stream and a table declare."""
    assert all(stream.least_share == 0.9 for stream in (PRICES_STREAM, ISSUES_STREAM, INDICES_STREAM))
    assert {usual.column for usual in PRICES.usual} == {"close", "volume", "market_cap", "listed_shares"}


def test_a_mark_of_the_byte_order_and_the_old_characters_change_nothing() -> None:
    marked = answer(request(), b"\xef\xbb\xbf" + fixture("trade.json"))
    assert answers.classify(marked) is AnswerClass.DATA
    assert rows_of(read(PRICES_STREAM, marked.body.read())) == rows_of(read(PRICES_STREAM, fixture("trade.json")))
    page = fixture("block_page.html").decode()
    for body in (page.encode("cp949"), b"\xef\xbb\xbf" + page.encode()):
        assert answers.classify(answer(request(), body)) is AnswerClass.BLOCKED


@pytest.mark.parametrize("status", [401, 200])
def test_a_service_that_is_not_approved_is_named_and_stops_no_other(status: int) -> None:
    with pytest.raises(AnswerError, match=r"KOSDAQ daily trade \(sto/ksq_bydd_trd\).*apply for it") as refusal:
        answers.classify(answer(request(), fixture("unauthorized_service.json"), status))
    assert not refusal.value.may_pass


@pytest.mark.parametrize("status", [401, 200])
def test_a_key_that_is_not_accepted_stops_everything_and_names_the_connection(status: int) -> None:
    with pytest.raises(DefiniteRefusal, match="does not accept the key of connection krx"):
        answers.classify(answer(request(), fixture("unauthorized_key.json"), status))


def test_calls_that_are_used_up_end_the_day_for_the_key_and_a_busy_gateway_does_not() -> None:
    with pytest.raises(QuotaUsedUp, match="no calls left today"):
        answers.classify(answer(request(), b'{"respMsg":"Too many","respCode":"429"}', 429))
    with pytest.raises(QuotaUsedUp):
        answers.classify(answer(request(), fixture("maintenance.html"), 429))
    assert answers.classify(answer(request(), b"", 429, **{"retry-after": "3"})) is AnswerClass.ERROR


def test_a_body_without_its_block_is_an_error_and_never_an_empty_day() -> None:
    with pytest.raises(AnswerError, match=r"no list OutBlock_1 \(it has CURRENT_DATETIME, output\)"):
        answers.classify(answer(request(), fixture("without_block.json")))
    for body in (b"[]", b"null", b'{"OutBlock_1":null}', b'{"OutBlock_1":{}}', b'"OutBlock_1"'):
        with pytest.raises(AnswerError, match="no list OutBlock_1"):
            answers.classify(answer(request(), body))


@pytest.mark.parametrize("length", range(2, 1500, 53))
def test_a_body_that_was_cut_anywhere_is_asked_for_again(length: int) -> None:
    with pytest.raises(AnswerError, match="was cut") as cut:
        answers.classify(answer(request(), fixture("trade.json")[:length]))
    assert cut.value.may_pass


def test_a_page_in_place_of_data_is_a_block_or_passes_and_its_title_is_shown() -> None:
    for status in (200, 403):
        assert answers.classify(answer(request(), fixture("block_page.html"), status)) is AnswerClass.BLOCKED
    for status in (200, 503):
        with pytest.raises(AnswerError, match=f"HTTP {status} .text/html. with a page .*서비스 점검 안내") as told:
            answers.classify(answer(request(), fixture("maintenance.html"), status, **{"content-type": "text/html"}))
        assert told.value.may_pass


def test_the_web_site_and_a_detour_are_refused_in_words_that_say_what_to_set() -> None:
    with pytest.raises(DefiniteRefusal, match=r"LOGOUT.*https://data-dbg\.krx\.co\.kr"):
        answers.classify(answer(request(), b"LOGOUT", 400))
    with pytest.raises(DefiniteRefusal, match="begin with https://"):
        answers.classify(answer(request(), b"", 302))
    with pytest.raises(DefiniteRefusal, match="HTTP 403"):
        answers.classify(answer(request(), b'{"respMsg":"Forbidden"}', 403))


# --- what is asked, and by which rules


def test_a_day_is_three_calls_for_prices_and_five_for_indices() -> None:
    asked = list(PRICES_STREAM.plan(Ask(Mode.POLL, sessions=(DAY,))))
    assert [each.key for each in asked] == ["KOSPI/2026-09-15", "KOSDAQ/2026-09-15", "KONEX/2026-09-15"]
    assert asked[1].url == "https://data-dbg.krx.co.kr/svc/apis/sto/ksq_bydd_trd"
    assert asked[1].params == (("basDd", "20260915"),)
    assert all(each.required for each in asked)
    assert len(list(INDICES_STREAM.plan(Ask(Mode.POLL, sessions=(DAY,))))) == 5


def test_konex_is_asked_for_since_it_began() -> None:
    def markets(day: date) -> list[str]:
        return [each.unit.partition("/")[0] for each in PRICES_STREAM.plan(Ask(Mode.BACKFILL, sessions=(day,)))]

    assert markets(date(2013, 6, 28)) == ["KOSPI", "KOSDAQ"]
    assert markets(date(2013, 7, 1)) == ["KOSPI", "KOSDAQ", "KONEX"]


def test_a_day_that_the_calendar_calls_closed_costs_a_backfill_one_call() -> None:
    (asked,) = PRICES_STREAM.plan(Ask(Mode.BACKFILL, closed=(date(2026, 5, 1),)))
    assert (asked.key, asked.expected, asked.required) == ("KOSPI/2026-05-01", False, False)


def test_calls_are_counted_by_key_and_day_in_seoul_and_some_are_kept_for_polls() -> None:
    quota = HOST_GROUP.quota
    assert quota is not None
    assert (quota.requests, quota.timezone) == (10_000, "Asia/Seoul")
    assert 0 < quota.kept_for_polls < quota.requests
    assert {stream.host_group for stream in (PRICES_STREAM, ISSUES_STREAM, INDICES_STREAM)} == {HOST_GROUP}


def test_nothing_of_krx_is_published_for_everybody() -> None:
    tables = {table.qualified for table in (PRICES, ISSUES, INDICES, BOND_INDICES)}
    found = [release for release in RELEASES if release.table in tables]
    assert {release.table for release in found} == tables
    assert {release.visibility for release in found} == {"private"}
    assert all("forbid" in release.terms.note for release in found)


# --- recorded answers, against their right reading


SAMPLES = ROOT.parent / "shared" / "upstream" / "samples"


def samples() -> list[dict[str, str]]:
    manifest = SAMPLES / "MANIFEST.tsv"
    if not manifest.exists():
        return []
    with manifest.open(encoding="utf-8", newline="") as lines:
        listed = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row for row in listed if row["source"] == "krx"]


LISTED = {row["file"].rpartition("/")[2]: row for row in samples()}
beside = pytest.mark.skipif(not LISTED, reason="the recorded samples are not beside this checkout")


def recorded(name: str) -> tuple[bytes, dict[str, Any]]:
    body, right = (SAMPLES / "krx" / name).read_bytes(), LISTED[name]
    assert hashlib.sha256(body).hexdigest() == right["sha256"]
    return body, json.loads(right["right_reading"])


@beside
@pytest.mark.parametrize("name", [name for name in LISTED if not name.startswith("openapi")])
def test_an_answer_of_the_web_site_is_never_taken_for_one_of_the_open_api(name: str) -> None:
    """Its screens name and order their columns otherwise, and none says which day it is for."""
    body, right = recorded(name)
    asked = request()
    if right["root"][0] != "OutBlock_1":
        with pytest.raises(AnswerError, match="no list OutBlock_1"):
            answers.classify(answer(asked, body))
        return
    told = answers.classify(answer(asked, body))
    if right["rows"] == 0 or name.endswith("saturday.json"):
        assert told is AnswerClass.NOT_YET
        return
    assert told is AnswerClass.DATA
    with pytest.raises(ParseError, match="the rows lack BAS_DD"):
        PRICES_STREAM.parse(unit_of(asked, body))


def as_open_api(row: dict[str, str], day: date) -> dict[str, str]:
    """The site's row under the names of the OpenAPI: there the short code is `ISU_CD`, here it is `ISU_SRT_CD`."""
    kept = {name: row[name] for name in trade() if name in row}
    return {**kept, "BAS_DD": f"{day:%Y%m%d}", "ISU_CD": row["ISU_SRT_CD"], "ISU_NM": row["ISU_ABBRV"]}


@beside
def test_a_recorded_market_is_read_exactly_with_its_commas_halts_and_letters() -> None:
    body, right = recorded("MDCSTAT01501_STK_20210122.json")
    day = date(2021, 1, 22)
    rows = [as_open_api(row, day) for row in json.loads(body)["OutBlock_1"]]
    parsed = PRICES_STREAM.parse(unit_of(request("KOSPI", day), block(*rows)))
    found = {row["code"]: row for row in rows_of(parsed)}
    assert not parsed.rejected
    assert len(found) == right["rows"] == right["distinct"]
    assert (next(iter(found)), list(found)[-1]) == (right["first"], right["last"])
    assert [code for code in found if not code.isdigit()][:8] == right["alnum_codes"]
    assert sum(not code.isdigit() for code in found) == right["n_alnum"]
    assert sum(row["is_untraded"] for row in found.values()) == right["open_zero_close_not"]
    for code, _, _, _, close, _ in right["halted_examples"]:
        assert (found[code]["close"], found[code]["low"]) == (int(close.replace(",", "")), None)
    names = {
        "TDD_OPNPRC": "open", "TDD_HGPRC": "high", "TDD_LWPRC": "low", "TDD_CLSPRC": "close", "ACC_TRDVOL": "volume",
        "ACC_TRDVAL": "traded_value", "MKTCAP": "market_cap", "LIST_SHRS": "listed_shares",
    }  # fmt: skip
    assert {name: f"{found['005930'][ours]:,}" for name, ours in names.items()} == right["row_005930"]
    # The rules of the table put none of them aside.
    traded = [row for row in found.values() if not row["is_untraded"]]
    assert all(row["low"] <= min(row["open"], row["close"]) <= row["high"] for row in traded)


@beside
def test_a_recorded_saturday_is_no_session_though_it_has_a_row_for_each_issue() -> None:
    body, right = recorded("MDCSTAT01501_STK_20210123_saturday.json")
    assert right["close_is_dash"] == right["rows"] == 917
    rows = [as_open_api(row, date(2021, 1, 23)) for row in json.loads(body)["OutBlock_1"]]
    for is_session, expected in ((True, AnswerClass.NOT_YET), (False, AnswerClass.EMPTY)):
        asked = request("KOSPI", date(2021, 1, 23), is_session=is_session)
        assert answers.classify(answer(asked, block(*rows))) is expected


@beside
def test_recorded_rows_of_the_open_api_are_read_as_their_manifest_says() -> None:
    body, right = recorded("openapi_samples_20260918.json")
    day, document = date(2026, 9, 18), json.loads(body)
    of = {
        "stk_bydd_trd": (PRICES_STREAM, "KOSPI"), "ksq_bydd_trd": (PRICES_STREAM, "KOSDAQ"),
        "stk_isu_base_info": (ISSUES_STREAM, "KOSPI"), "ksq_isu_base_info": (ISSUES_STREAM, "KOSDAQ"),
        "kospi_dd_trd": (INDICES_STREAM, "KOSPI"), "kosdaq_dd_trd": (INDICES_STREAM, "KOSDAQ"),
    }  # fmt: skip
    assert set(document["apis"]) == set(of) == set(right)
    for service, (stream, market) in of.items():
        given, expected = document["apis"][service]["samples"], right[service]["first_sample"]
        assert list(given[0]) == right[service]["fields"]
        parsed = read(stream, block(*given), f"{market}/{day}")
        found = rows_of(parsed)
        assert (len(found), parsed.rejected, parsed.unknown_columns) == (right[service]["samples"], (), ())
        said = {f"{value:%Y%m%d}" if isinstance(value, date) else str(value) for value in found[0].values()}
        # Every value that was given stands in the row, blanks as null.
        assert {value for value in expected.values() if value} <= said
        assert found[0]["session_date"] == day
    halted = rows_of(read(PRICES_STREAM, block(*document["apis"]["ksq_bydd_trd"]["samples"]), f"KOSDAQ/{day}"))[1]
    assert (halted["code"], halted["close"], halted["open"], halted["is_untraded"]) == ("023440", 521, None, True)
    assert document["holiday_20260920"]["bytes"] == len(fixture("no_rows.json"))


@beside
def test_the_recorded_refusal_of_a_key_is_told_as_one() -> None:
    body, right = recorded("openapi_401_key.json")
    assert body.decode() == right["text"]
    with pytest.raises(DefiniteRefusal, match="does not accept the key"):
        answers.classify(answer(request(), body, 401))
