"""KIND's list as it comes and goes wrong: what is a list, what its rows say, and what is nobody's fault."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from include.contract import AnswerClass, AnswerError, Ask, Mode, Parsed, ParseError, Request
from include.sources.kind import SOURCE, listing
from include.sources.kind.streams import COMPANIES_STREAM, LIST
from include.sources.kind.tables import COMPANIES, EXCLUDED
from tests.sources.answers import FIXTURES, answer, unit_of

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "samples"


def request() -> Request:
    (found,) = COMPANIES_STREAM.plan(Ask(Mode.POLL, sessions=(date(2026, 9, 15),)))
    return found


def fixture(name: str) -> bytes:
    return (FIXTURES / "kind" / name).read_bytes()


def told(body: bytes, status: int = 200) -> AnswerClass:
    return COMPANIES_STREAM.classify(answer(request(), body, status))


def read(body: bytes) -> Parsed:
    return COMPANIES_STREAM.parse(unit_of(request(), body))


def rows_of(parsed: Parsed) -> dict[str, dict[str, Any]]:
    names = (*COMPANIES.column_names, "extra")
    return {row[0]: dict(zip(names, row, strict=True)) for row in parsed.batches[0].rows}


def excluded_of(parsed: Parsed) -> dict[str, dict[str, Any]]:
    return {row[0]: dict(zip(EXCLUDED.column_names, row, strict=True)) for row in parsed.batches[1].rows}


# --- what it asks


def test_the_whole_list_is_asked_for_at_once_by_somebody_who_says_who_it_is() -> None:
    asked = request()
    assert dict(asked.params) == {"method": "download", "searchType": "13"}
    assert dict(asked.headers)["Referer"].startswith(asked.url)
    assert "Daybook" in SOURCE.user_agent
    assert (asked.kind, asked.session_date) == ("list", None)


def test_it_asks_once_a_day_and_makes_nothing_up() -> None:
    schedule = COMPANIES_STREAM.schedule
    assert schedule.make_up == ()
    assert COMPANIES_STREAM.listing
    assert not COMPANIES_STREAM.empty_can_be_right
    # Nothing that stops the host is over before the window is.
    assert COMPANIES_STREAM.host_group.penalty > schedule.last_try
    assert COMPANIES_STREAM.job_name == "krx_listing"
    assert "kind_as_of" in (COMPANIES_STREAM.snapshot_only or "")


def test_a_replay_reads_all_lists_in_one_piece() -> None:
    from include.contract import Span

    span = Span(Mode.REPLAY, date(2026, 1, 1), date(2026, 12, 31), date(2026, 12, 31))
    assert COMPANIES_STREAM.chunks is not None
    (chunk,) = COMPANIES_STREAM.chunks(span)
    (asked,) = COMPANIES_STREAM.plan(Ask(Mode.REPLAY, chunk=chunk.asks))
    assert asked.key == LIST


# --- what its rows say


def test_codes_are_text_with_their_zeros_and_letters() -> None:
    assert list(rows_of(read(fixture("list.xls")))) == ["0015G0", "004840", "138041", "293941", "307281", "0001E0"]
    # Another reader's list, in which the zeros are lost, has them back.
    assert "004840" in rows_of(read(fixture("row_defects.xls")))


def test_names_are_decoded_to_their_last_syllable_and_entity() -> None:
    rows = rows_of(read(fixture("list.xls")))
    assert rows["004840"]["name"] == "똠방화학"
    assert rows["0001E0"]["name"] == "R&D랩 <주>"
    assert rows["0001E0"]["products"] == 'LED "고휘도", 렌즈'
    assert rows_of(read(fixture("list_utf8.xls"))) == rows
    assert rows_of(read(b"\xef\xbb\xbf" + fixture("list_utf8.xls"))) == rows
    # The order of the columns is theirs.
    assert rows_of(read(fixture("other_order.xls"))) == rows


def test_cells_become_values_and_blanks_become_nothing() -> None:
    rows = rows_of(read(fixture("list.xls")))
    first = rows["0015G0"]
    assert (first["market"], first["listed_on"], first["closing_month"]) == ("KOSDAQ", date(2025, 3, 4), 12)
    assert (first["representatives"], first["region"], first["extra"]) == ("김가나, 이다라", "경기도", None)
    assert (rows["004840"]["market"], rows["004840"]["products"], rows["004840"]["website"]) == ("KOSPI", None, None)
    assert rows["004840"]["closing_month"] == 3
    assert rows["0001E0"]["closing_month"] == 9
    assert rows["307281"]["region"] is None


def test_konex_is_left_out_and_shown_apart() -> None:
    parsed = read(fixture("list.xls"))
    assert "310001" not in rows_of(parsed)
    assert excluded_of(parsed) == {
        "310001": {"code": "310001", "name": "작은나무", "market": "KONEX", "listed_on": date(2022, 11, 11)}
    }


def test_a_name_that_only_contains_the_syllables_is_no_trust() -> None:
    rows = rows_of(read(fixture("list.xls")))
    assert [code for code, row in rows.items() if row["is_reit"]] == ["293941"]
    assert [code for code, row in rows.items() if row["is_spac"]] == ["307281"]


@pytest.mark.parametrize(
    ("name", "sector", "is_reit"),
    [
        ("가나리츠", "부동산 임대 및 공급업", True),
        ("가나리츠", "신탁업 및 집합투자업", True),
        ("가리츠나라", "부동산 임대 및 공급업", True),
        ("가나메리츠", "보험업", False),
        ("메리츠나라증권", "금융 지원 서비스업", False),
        ("블리츠가나", "기타 상품 전문 소매업", False),
    ],
)
def test_trusts_are_told_by_name_and_industry(name: str, sector: str, is_reit: bool) -> None:
    body = fixture("list.xls").replace("가나전자".encode("cp949"), name.encode("cp949"))
    body = body.replace("전자부품 제조업".encode("cp949"), sector.encode("cp949"))
    assert rows_of(read(body))["0015G0"]["is_reit"] is is_reit


def test_a_row_that_cannot_be_read_is_put_aside_in_words_and_the_others_stay() -> None:
    parsed = read(fixture("row_defects.xls"))
    assert set(rows_of(parsed)) == {"004840", "000991"}
    assert set(excluded_of(parsed)) == {"310001"}
    assert [each.reason for each in parsed.rejected] == [
        "'2025-02-30' is no day",
        "'A138041' is no code of six digits or capital letters",
        "'13월' is no month",
        "the company has no name",
        "it holds bytes that are no CP949",
        "004840 is in the list twice",
        "it has 3 cells under 10 headings",
    ]
    assert all(each.text.encode() for each in parsed.rejected)


def test_a_market_that_nobody_knows_stays_what_it_is() -> None:
    assert rows_of(read(fixture("row_defects.xls")))["000991"]["market"] == "코스닥 글로벌"


def test_a_list_that_nobody_can_read_is_refused_once() -> None:
    body = fixture("list.xls")
    for old, new, words in (
        (r"\d{4}-(\d\d)-(\d\d)", r"26.\1.\2", "none of [0-9]+ rows can be read; row [0-9]+: '26.*is no day"),
        ("유가|코스닥|코넥스", "새시장", "names no market that is known .새시장.*KONEX could not be left out"),
    ):
        with pytest.raises(ParseError, match=words):
            read(re.sub(old, new, body.decode("cp949")).encode("cp949"))


def test_a_list_without_markets_is_read_and_put_aside_for_what_it_lacks() -> None:
    parsed = read(fixture("nine_columns.xls"))
    assert {row["market"] for row in rows_of(parsed).values()} == {None}
    (lack,) = parsed.rejected
    assert "시장구분 is missing" in lack.reason


def test_a_column_more_is_kept_and_told() -> None:
    parsed = read(fixture("one_column_more.xls"))
    assert list(parsed.unknown_columns) == ["영문명"]
    assert rows_of(parsed)["004840"]["extra"] == {"영문명": "Example"}


def test_text_between_angle_brackets_is_text() -> None:
    body = fixture("list.xls").replace("센서, 모듈".encode("cp949"), "메모리<DRAM>, <b>센서</b>".encode("cp949"))
    assert rows_of(read(body))["0015G0"]["products"] == "메모리<DRAM>, 센서"


# --- what is no list


@pytest.mark.parametrize(
    ("name", "words", "may_pass"),
    [
        ("maintenance.html", "maintenance instead of the list: 시스템 점검 안내", False),
        ("cut.xls", "ends in the middle, after", True),
        ("headings_only.xls", "shows no company", False),
        ("nobody.xls", "shows no company", False),
    ],
)
def test_a_page_in_place_of_the_list_is_an_error_in_words(name: str, words: str, may_pass: bool) -> None:
    with pytest.raises(AnswerError, match=words) as caught:
        told(fixture(name))
    assert caught.value.may_pass is may_pass


def test_a_list_that_is_cut_anywhere_is_never_taken_for_one() -> None:
    whole = fixture("list.xls")
    assert told(whole) is AnswerClass.DATA
    end = whole.rindex(b"</table>")
    for length in [*range(0, end, 37), end, end + 5]:
        try:
            assert told(whole[:length]) not in (AnswerClass.DATA, AnswerClass.EMPTY), length
        except AnswerError:
            continue


def test_five_different_things_are_five_different_things() -> None:
    assert told(fixture("block.html")) is AnswerClass.BLOCKED
    assert told(fixture("block.html"), 403) is AnswerClass.BLOCKED
    assert told(b"") is AnswerClass.ERROR
    assert told(fixture("not_html.json")) is AnswerClass.ERROR
    assert told(fixture("list.xls"), 404) is AnswerClass.ERROR
    assert told(b"", 304) is AnswerClass.UNCHANGED
    with pytest.raises(AnswerError, match="about maintenance"):
        told(fixture("maintenance.html").decode("cp949").encode())


# --- recorded answers


@pytest.fixture(scope="module")
def manifest() -> dict[str, dict[str, Any]]:
    if not (SAMPLES / "MANIFEST.tsv").is_file():
        pytest.skip(f"the recorded samples are not at {SAMPLES}")
    csv.field_size_limit(10_000_000)
    with (SAMPLES / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        listed = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["file"]: json.loads(row["right_reading"]) for row in listed if row["source"] == "kind"}


def test_recorded_lists_are_read_rightly(manifest: dict[str, dict[str, Any]]) -> None:
    lists = {file: right for file, right in manifest.items() if "columns" in right}
    assert lists
    for file, right in lists.items():
        body = (SAMPLES / file).read_bytes()
        assert told(body) is AnswerClass.DATA
        parsed = read(body)
        rows = list(rows_of(parsed).values())
        assert len(rows) + len(excluded_of(parsed)) == right["rows"]
        assert [each.position for each in parsed.rejected] == ([] if "시장구분" in right["columns"] else ["heading"])
        given = ("name", "code", "sector", "products", "listed_on", "closing_month")
        for row, wanted in ((rows[0], right["first"]), (rows[-1], right["last"])):
            shown = [row[name] for name in given]
            assert [*shown[:4], f"{shown[4]}", f"{shown[5]:02d}월"] == wanted
        assert sum(row["code"].startswith("0") for row in rows) == right["leading_zero_codes"]
        assert [row["code"] for row in rows if not row["code"].isdigit()] == right["alnum_codes"]
        samsung = rows_of(parsed)[right["samsung"][1]]
        assert (samsung["name"], samsung["products"]) == (right["samsung"][0], right["samsung"][3])


def test_recorded_pages_of_another_kind_are_never_taken_for_the_list(manifest: dict[str, dict[str, Any]]) -> None:
    others = [file for file, right in manifest.items() if "columns" not in right]
    assert others
    for file in others:
        assert told((SAMPLES / file).read_bytes()) not in (AnswerClass.DATA, AnswerClass.EMPTY), file


def test_two_lists_with_the_same_content_give_the_same_rows_whatever_their_bytes() -> None:
    one, other = fixture("list.xls"), fixture("list.xls").replace(b"\n ", b"\r\n\t\t ")
    assert one != other
    assert list(read(one).batches[0].rows) == list(read(other).batches[0].rows)


def test_an_answer_says_the_same_whenever_it_was_sent() -> None:
    given = answer(request(), fixture("list.xls"))
    later = replace(given, sent_at=datetime(2027, 1, 1, tzinfo=UTC))
    assert listing.classify(given) is listing.classify(later) is AnswerClass.DATA
