"""ECOS's answers as they come and go wrong, what is asked for in which order, and what the list of series may say."""

from __future__ import annotations

import csv
import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from include.contract import AnswerClass, AnswerError, Ask, DefiniteRefusal, Mode, Parsed, ParseError, Request, Span
from include.engine import credentials
from include.engine.credentials import NoKey
from include.registry import source
from include.sources import ecos
from include.sources.ecos import answers, periods
from include.sources.ecos.catalogue import CatalogueUnfit, catalogue
from include.sources.ecos.streams import HOST, observations
from include.sources.ecos.tables import VALUES
from tests.sources.answers import FIXTURES, answer, unit_of

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT.parent / "shared" / "upstream" / "samples"
RATE = "722Y001.D.0101000"
STREAM = observations(catalogue({"rates": [RATE, "722Y001.M.0101000"], "growth": ["901Y033.M.A00.1"]}))
DAY = date(2026, 9, 15)


def first(key: str = f"{RATE}/2026") -> Request:
    name, _, stretch = key.partition("/")
    (found,) = STREAM.plan(Ask(Mode.BACKFILL, chunk={"series": name, "stretch": stretch, "year": DAY.year}))
    return found


def fixture(name: str) -> bytes:
    return (FIXTURES / "ecos" / name).read_bytes()


def item(code: str, cycle: str, level: int = 1, begins: str = "", ends: str = "", **more: Any) -> dict[str, Any]:
    return {
        "STAT_CODE": "S", "STAT_NAME": "통계", "GRP_CODE": f"Group{level}", "ITEM_CODE": code,
        "ITEM_NAME": f"이름 {code}", "CYCLE": cycle, "START_TIME": begins, "END_TIME": ends, "UNIT_NAME": "연%", **more,
    }  # fmt: skip


def items(*rows: dict[str, Any], total: int | None = None) -> bytes:
    return json.dumps({answers.ITEMS: {"list_total_count": total or len(rows), "row": rows}}).encode()


def row(period: str, value: str | None, statistic: str = "722Y001", *codes: str, **more: Any) -> dict[str, Any]:
    named = dict(
        zip((f"ITEM_CODE{n}" for n in range(1, 5)), (*(codes or ("0101000",)), None, None, None), strict=False)
    )
    return {
        "STAT_CODE": statistic,
        **named,
        "UNIT_NAME": "연%",
        "WGT": None,
        "TIME": period,
        "DATA_VALUE": value,
        **more,
    }


def without(field: str) -> dict[str, Any]:
    """A row that lacks a field."""
    return {name: value for name, value in row("20260914", "1").items() if name != field}


def values(*rows: dict[str, Any], total: int | None = None) -> bytes:
    return json.dumps({answers.SEARCH: {"list_total_count": total or len(rows), "row": rows}}).encode()


DAILY = items(item("0101000", "D", begins="19990506", ends="20260914"))


def asked_for(request: Request, body: bytes) -> list[Request]:
    return list(STREAM.follow(request, answer(request, body)))


def search(key: str = f"{RATE}/2026", listed: bytes = DAILY) -> Request:
    (found,) = asked_for(first(key), listed)
    return found


def told(request: Request, body: bytes, status: int = 200) -> AnswerClass:
    return STREAM.classify(answer(request, body, status))


def read(*bodies: bytes, key: str = f"{RATE}/2026") -> Parsed:
    return STREAM.parse(unit_of(first(key), *bodies))


def rows_of(parsed: Parsed, batch: int = 1) -> list[dict[str, Any]]:
    names = (*parsed.batches[batch].table.column_names, "extra")
    return [dict(zip(names, each, strict=False)) for each in parsed.batches[batch].rows]


# --- what is asked, and in which order


def test_everything_stands_in_the_path_the_key_too_which_is_put_there_when_it_is_sent() -> None:
    assert first().url == f"{HOST}/api/StatisticItemList/{{key}}/json/kr/1/1000/722Y001"
    assert search().url == (f"{HOST}/api/StatisticSearch/{{key}}/json/kr/1/1000/722Y001/D/20260101/20261231/0101000")
    assert not first().params
    assert not search().params


def test_two_series_that_differ_in_their_cycle_alone_are_two() -> None:
    daily, monthly = first(), first("722Y001.M.0101000/all")
    assert daily.unit != monthly.unit
    asked = search("722Y001.M.0101000/all", items(item("0101000", "M", begins="199905", ends="202608")))
    assert asked.url.endswith("/722Y001/M/199905/202612/0101000")


def test_a_star_is_part_of_a_code_and_nothing_else_breaks_the_path() -> None:
    stream = observations(catalogue({"prices": ["404Y014.M.*AA"]}))
    (request,) = stream.plan(Ask(Mode.POLL, sessions=(DAY,)))
    (asked,) = stream.follow(request, answer(request, items(item("*AA", "M", begins="196501", ends="202608"))))
    assert asked.url.endswith("/404Y014/M/196501/202612/*AA")


def test_a_daily_series_is_asked_for_by_the_year_and_any_other_as_a_whole() -> None:
    keys = [request.key for request in STREAM.plan(Ask(Mode.POLL, sessions=(DAY,)))]
    assert keys == [f"{RATE}/2026", "722Y001.M.0101000/all", "901Y033.M.A00.1/all"]
    new_year = [request.key for request in STREAM.plan(Ask(Mode.POLL, sessions=(date(2027, 1, 4),)))]
    assert new_year[:2] == [f"{RATE}/2027", f"{RATE}/2026"]
    span = Span(Mode.BACKFILL, date(2024, 6, 1), DAY, DAY, keys=("rates",))
    assert STREAM.chunks is not None
    names = [chunk.name for chunk in STREAM.chunks(span)]
    assert names == [f"{RATE}/2026", "722Y001.M.0101000/all", f"{RATE}/2025", f"{RATE}/2024"]


def test_further_pages_are_asked_for_until_the_count_is_reached_whatever_came_at_once() -> None:
    request = search()
    (second,) = asked_for(request, values(row("20260102", "2.5"), row("20260105", "2.5"), total=3))
    assert (second.key, second.unit) == (f"{RATE}/2026/values/3", request.unit)
    assert "/json/kr/3/1002/" in second.url
    assert asked_for(second, values(row("20260106", "2.5"), total=3)) == []
    assert asked_for(second, values(total=3)) == []


# --- codes are looked up first


def test_values_are_asked_for_only_after_the_codes_were_found() -> None:
    assert told(first(), fixture("items.json")) is AnswerClass.DATA
    # Not on this page, and there are more: the list is read on.
    (more,) = asked_for(first(), fixture("items_first_page.json"))
    assert "/StatisticItemList/" in more.url
    assert told(more, items(item("0101000", "D"), total=1200)) is AnswerClass.DATA


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (fixture("items_of_other_cycle.json"), "722Y001 has no item 0101000 in the cycle D"),
        (items(item("0102000", "D")), "Correct it in config/ecos_series.yaml"),
        (fixture("no_data.json"), "ECOS has no statistic 722Y001"),
    ],
)
def test_a_wrong_code_is_an_error_of_the_configuration_before_anything_is_asked_for(body: bytes, words: str) -> None:
    with pytest.raises(AnswerError, match=words) as caught:
        told(first(), body)
    assert not caught.value.may_pass


def test_the_list_of_items_says_how_far_a_series_goes_and_no_other_answer_does() -> None:
    assert STREAM.says_newest(answer(first(), DAILY)) == (RATE, date(2026, 9, 14))
    assert STREAM.says_newest(answer(first(), items(item("0101000", "M", ends="202608")))) is None
    assert STREAM.says_newest(answer(search(), values(row("20260914", "2.5")))) is None
    assert STREAM.says_newest(answer(first(), b"<html>")) is None


def test_each_level_has_a_code_of_its_own() -> None:
    key = "901Y033.M.A00.1/all"
    both = items(item("A00", "M", 1, "200001", "202608"), item("1", "M", 2, "200001", "202607"))
    assert told(first(key), both) is AnswerClass.DATA
    (asked,) = asked_for(first(key), both)
    assert asked.url.endswith("/901Y033/M/200001/202612/A00/1")
    with pytest.raises(AnswerError, match="no item 1 in"):
        told(first(key), items(item("A00", "M", 1), item("1", "M", 1)))


# --- no data, understood both ways


def test_no_data_in_a_year_that_has_none_yet_is_nothing_new() -> None:
    request = search(f"{RATE}/2027")
    assert told(request, fixture("no_data.json")) is AnswerClass.EMPTY
    # Before a series begins, nothing is asked for.
    assert asked_for(first(f"{RATE}/1990"), DAILY) == []


@pytest.mark.parametrize("key", [f"{RATE}/2026", "722Y001.M.0101000/all"])
def test_no_data_where_the_list_of_items_has_some_is_an_error(key: str) -> None:
    listed = items(item("0101000", "D", begins="19990506", ends="20260914"), item("0101000", "M", begins="199905"))
    with pytest.raises(AnswerError, match="INFO-200 for 722Y001"):
        told(search(key, listed), fixture("no_data.json"))


# --- other ways of saying no


@pytest.mark.parametrize(
    ("code", "may_pass", "wait"),
    [
        ("ERROR-602", True, timedelta(minutes=30)),
        ("ERROR-400", True, timedelta(0)),
        ("ERROR-500", True, timedelta(0)),
        ("ERROR-600", True, timedelta(0)),
        ("ERROR-601", True, timedelta(0)),
        ("ERROR-100", False, timedelta(0)),
        ("ERROR-101", False, timedelta(0)),
        ("ERROR-301", False, timedelta(0)),
        ("ERROR-999", False, timedelta(0)),
    ],
)
def test_each_refusal_is_told_by_its_code(code: str, may_pass: bool, wait: timedelta) -> None:
    for request in (first(), search()):
        for body in (
            json.dumps({"RESULT": {"CODE": code, "MESSAGE": "any words"}}),
            f"<RESULT><CODE>{code}</CODE></RESULT>",
        ):
            with pytest.raises(AnswerError, match=code) as caught:
                told(request, body.encode())
            assert (caught.value.may_pass, caught.value.wait) == (may_pass, wait)


def test_a_key_that_is_not_known_ends_it() -> None:
    with pytest.raises(DefiniteRefusal, match="key of connection ecos"):
        told(first(), fixture("bad_key.json"))


def test_what_is_no_answer_is_none() -> None:
    for name in ("half.json", "no_row.json", "another.json", "values_instead.json"):
        assert told(first(), fixture(name)) is AnswerClass.ERROR, name
    assert told(search(), DAILY) is AnswerClass.ERROR
    for body in (fixture("maintenance.html"), fixture("maintenance.html").decode().encode("cp949")):
        with pytest.raises(AnswerError, match="about maintenance: '점검") as raised:
            told(first(), body)
        assert raised.value.may_pass
    for status in (200, 403):
        assert told(first(), b"<html><title>Access denied</title></html>", status) is AnswerClass.BLOCKED
    # In other characters it is still JSON, of another unit.
    body = json.dumps(json.loads(values(row("20260914", "1"))), ensure_ascii=False)
    assert told(search(), body.encode("utf-8-sig")) is AnswerClass.DATA
    assert told(search(), body.encode("cp949")) is AnswerClass.ERROR


def test_a_series_that_was_cut_takes_nothing_away() -> None:
    """Promised by the engine, of what a stream declares."""
    assert STREAM.least_share == 0.8


@pytest.mark.parametrize("key", ["", None, "sample"])
def test_without_a_key_of_ones_own_nothing_is_asked(key: str | None) -> None:
    with pytest.raises(NoKey, match="Nothing was asked"):
        credentials.check_key(source("ecos"), key)
    credentials.check_key(source("ecos"), "a key")


# --- values


def test_values_keep_their_digits_and_their_cycle() -> None:
    parsed = read(DAILY, values(row("20260915", "2.50"), row("20260914", "2.5")))
    assert [(each["period"], each["value_text"], each["value"]) for each in rows_of(parsed)] == [
        ("20260914", "2.5", Decimal("2.5")),
        ("20260915", "2.50", Decimal("2.50")),
    ]
    assert {each["series_id"] for each in rows_of(parsed)} == {RATE}
    assert rows_of(parsed)[0]["unit_name"] == "연%"
    (described,) = rows_of(parsed, 0)
    assert (described["statistic"], described["cycle"], described["item_names"]) == ("722Y001", "D", ["이름 0101000"])
    assert (described["begins"], described["unit_name"]) == ("19990506", "연%")


@pytest.mark.parametrize("text", ["", "-", " ", None])
def test_a_missing_value_is_a_row_without_one(text: str | None) -> None:
    (only,) = rows_of(read(DAILY, values(row("20260915", text))))
    assert (only["value"], only["value_text"]) == (None, None)


def test_a_value_that_is_no_number_is_put_aside() -> None:
    given = [
        row("20260914", "NaN"),
        row("20260915", "1e5"),
        row("2026Q3", "1"),
        row("20260230", "1"),
        row("20260916", "1,234.5"),
    ]
    parsed = read(DAILY, values(*given))
    assert [each["value"] for each in rows_of(parsed)] == [Decimal("1234.5")]
    assert [each.position for each in parsed.rejected] == ["row 1", "row 2", "row 3", "row 4"]


@pytest.mark.parametrize(
    ("bodies", "words"),
    [
        ((DAILY, values(row("20260914", "1"), total=2)), "counts 2 rows and gave 1"),
        ((DAILY, values(row("20260914", "1"), total=2), values(row("20260915", "1"), total=3)), "changed while"),
        ((DAILY, *[values(row("20260914", "1"), total=2)] * 2), "2 rows on 2 pages, and only 1 of them"),
        ((DAILY, values(row("20260914", "1", "817Y002"))), "is of 817Y002"),
        ((DAILY, values(row("20260914", "1", "722Y001", "0102000"))), "not of 722Y001.D.0101000"),
        ((DAILY, values(row("20260914", "1", "722Y001", "0101000", "X"))), "Write a code for each"),
        ((DAILY, values(without("ITEM_CODE2"))), "lacks ITEM_CODE2"),
        ((DAILY, values(without("UNIT_NAME"))), "lacks UNIT_NAME"),
        ((DAILY, values(without("DATA_VALUE"))), "lacks DATA_VALUE"),
        ((DAILY, values(row("2026.09.14", "1"), row("2026.09.15", "2"))), "none of 2 rows can be read; row 1"),
        ((items(item("0101000", "M")),), "the list of items lacks 0101000"),
    ],
)
def test_what_does_not_fit_together_is_not_read(bodies: tuple[bytes, ...], words: str) -> None:
    with pytest.raises(ParseError, match=words):
        read(*bodies)


def test_a_period_twice_is_one_where_it_says_the_same_and_put_aside_where_it_does_not() -> None:
    parsed = read(DAILY, values(row("20260914", "1"), row("20260914", "1"), row("20260914", "2")))
    assert [each["value"] for each in rows_of(parsed)] == [Decimal(1)]
    assert [each.reason for each in parsed.rejected] == ["20260914 has two values"]


def test_a_field_more_is_kept_and_told() -> None:
    parsed = read(DAILY, values(row("20260914", "1", NEW="new")))
    assert list(parsed.unknown_columns) == ["NEW"]
    assert rows_of(parsed)[0]["extra"] == {"NEW": "new"}


@pytest.mark.parametrize(
    ("cycle", "text", "start"),
    [
        ("A", "2024", date(2024, 1, 1)),
        ("S", "2024S2", date(2024, 7, 1)),
        ("Q", "2024Q3", date(2024, 7, 1)),
        ("M", "202402", date(2024, 2, 1)),
        ("SM", "202402S1", date(2024, 2, 1)),
        ("SM", "202402S2", date(2024, 2, 16)),
        ("D", "20240229", date(2024, 2, 29)),
    ],
)
def test_every_cycle_has_its_form_and_no_other(cycle: str, text: str, start: date) -> None:
    assert periods.start_of(cycle, text) == start
    others = {"2024", "2024S2", "2024Q3", "202402", "202402S1", "20240229", "2024Q5", "202413", ""} - {text}
    if cycle == "SM":
        others -= {"202402S1"}
    for other in others:
        with pytest.raises(ValueError, match="no period of the cycle"):
            periods.start_of(cycle, other)
    assert periods.start_of(cycle, periods.first_of(cycle, 2024)).year == 2024
    assert periods.first_of(cycle, 2024) <= text <= periods.last_of(cycle, 2024)


# --- the list of series


@pytest.mark.parametrize(
    "groups",
    [None, [], {}, {"Rates": [RATE]}, {"rates": RATE}, {"rates": []}, {"rates": [722]}, {"rates": ["722Y001"]},
     {"rates": ["722Y001.DD.0101000"]}, {"rates": ["722Y001.D"]}, {"rates": ["722Y001.D.a/b"]}],
)  # fmt: skip
def test_a_list_that_cannot_be_used_is_refused_in_words(groups: Any) -> None:
    with pytest.raises(CatalogueUnfit, match="config/ecos_series"):
        ecos.source(groups)


def test_the_list_has_freds_groups_and_names_each_series_once() -> None:
    config = {name: yaml.safe_load((ROOT / "config" / f"{name}_series.yaml").read_text()) for name in ("ecos", "fred")}
    assert list(config["ecos"]) == list(config["fred"])
    listed = catalogue(config["ecos"])
    names = [name for group in config["ecos"].values() for name in group]
    assert len(names) == len(set(names)) == len(listed.all)
    assert listed.of(["fx", RATE])[-1].name == RATE
    assert listed.knows("fx")
    assert not listed.knows("722Y001.Q.0101000")


# --- recorded answers


def sample(name: str) -> bytes:
    if not (SAMPLES / "ecos" / name).is_file():
        pytest.skip(f"the recorded samples are not at {SAMPLES}")
    return (SAMPLES / "ecos" / name).read_bytes()


def test_a_recorded_yield_is_read_rightly() -> None:
    body, name = sample("StatisticSearch_817Y002_D.json"), "817Y002.D.010200000"
    stream = observations(catalogue({"rates": [name]}))
    (request,) = stream.plan(Ask(Mode.POLL, sessions=(date(2026, 10, 8),)))
    listed = items(item("010200000", "D", begins="19950502", ends="20261007"))
    (asked,) = stream.follow(request, answer(request, listed))
    assert stream.classify(answer(asked, body)) is AnswerClass.DATA
    assert stream.follow(asked, answer(asked, body)) == ()
    found = rows_of(stream.parse(unit_of(request, listed, body)))
    assert [(each["period"], each["value_text"]) for each in found] == [
        ("20261001", "4.01"), ("20261002", "3.937"), ("20261006", "3.933"), ("20261007", "3.961"),
    ]  # fmt: skip
    assert {each["unit_name"] for each in found} == {"연%"}
    assert all(each["extra"] is None for each in found)


def test_a_recorded_no_data_is_told_by_what_it_answers() -> None:
    body = sample("RESULT_INFO-200.json")
    assert told(search(f"{RATE}/2027"), body) is AnswerClass.EMPTY
    with pytest.raises(AnswerError, match="no statistic"):
        told(first(), body)


def test_every_statistic_of_the_list_is_one_that_can_be_searched() -> None:
    table = csv.DictReader(sample("StatisticTableList.csv").decode("utf-8-sig").splitlines())
    searchable = {line["stat_code"]: line["cycle"] for line in table if line["srch_yn"] == "Y"}
    assert len(searchable) == 664
    config = yaml.safe_load((ROOT / "config" / "ecos_series.yaml").read_text())
    wrong = [each.name for each in catalogue(config).all if each.statistic not in searchable]
    assert wrong == []


def test_the_table_keeps_what_orders_and_what_is_replaced() -> None:
    assert VALUES.replaces == "unit"
    assert VALUES.key == ("series_id", "period")
