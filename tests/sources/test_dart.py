"""DART's answers, lists, titles and companies, read from recorded answers and from pages of our own."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pytest

from include import registry
from include.contract import AnswerClass, AnswerError, Ask, DefiniteRefusal, Mode, ParseError, QuotaUsedUp, Span
from include.settings import ROOT
from include.sources.dart import answers, corps, disclosures, lists, streams, titles
from tests.sources.answers import answer, unit_of

SAMPLES = ROOT.parent / "shared" / "upstream" / "samples" / "dart"
NAMES = [column.name for column in disclosures.DISCLOSURES.columns]
DAY = date(2026, 9, 15)


def sample(name: str) -> bytes:
    file = SAMPLES / name
    if not file.exists():
        pytest.skip("the recorded answers (../shared/upstream/samples) are not here")
    return file.read_bytes()


def page(rows: int, total: int, pages: int, number: int = 1, **more: Any) -> bytes:
    items = [
        {
            "corp_code": "00999991",
            "corp_name": "가나전자",
            "stock_code": "",
            "corp_cls": "Y",
            "report_nm": "주주총회소집결의",
            "rcept_no": f"20260915{number:03}{place:03}",
            "flr_nm": "가나전자",
            "rcept_dt": "20260915",
            "rm": "유",
        }
        for place in range(rows)
    ]
    document = {"status": "000", "page_no": number, "total_count": total, "total_page": pages, "list": items, **more}
    return json.dumps(document).encode()


# --- recorded answers


@pytest.mark.parametrize(
    ("name", "key", "receipts", "stocks", "markets", "remarks"),
    [
        (
            "list_samsung_202401.json", "00126380/2024", ["20240131000326", "20240131800110"], ["005930", "005930"],
            ["Y", "Y"], ["공", "유"],
        ),
        (
            "list_20230101_20230208_page1.json", "00324548/2023",
            ["20230208000563", "20230206000423", "20230208000195"], [None, None, None], ["E", "E", "E"],
            ["", "정", "정"],
        ),
    ],
)  # fmt: skip
def test_recorded_lists_are_read_right(
    name: str, key: str, receipts: list[str], stocks: list[str | None], markets: list[str], remarks: list[str]
) -> None:
    (request,) = lists.plan(Ask(Mode.POLL, pending=(key,)))
    given = answer(request, sample(name))
    assert answers.classify_list(given) is AnswerClass.DATA
    parsed = disclosures.parse(unit_of(request, sample(name)))
    rows = [dict(zip(NAMES, row, strict=False)) for row in parsed.batches[0].rows]
    assert [row["rcept_no"] for row in rows] == receipts
    assert [row["stock_code"] for row in rows] == stocks
    assert [row["corp_type"] for row in rows] == markets
    assert [row["remark"] for row in rows] == remarks
    assert (parsed.rejected, parsed.unknown_columns) == ((), ())
    # Both lists have further pages.
    (more,) = lists.follow(request, given)
    assert dict(more.params)["page_no"] == "2"


def test_the_recorded_list_of_companies_is_read_right() -> None:
    (request,) = corps.plan(Ask(Mode.POLL, pending=(corps.KEY,)))
    body = sample("corpCode_excerpt.zip")
    assert answers.classify_archive(answer(request, body)) is AnswerClass.DATA
    parsed = corps.parse(unit_of(request, body))
    rows = list(parsed.batches[0].rows)
    listed = [row for row in rows if row[3] is not None]
    assert (len(rows), len(listed)) == (1514, 1014)
    assert rows[0][:5] == ("00434003", "다코", "Daco corporation", None, date(2017, 6, 30))
    assert listed[0][:2] + listed[0][3:5] == ("00260985", "한빛네트", "036720", date(2017, 6, 30))
    assert rows[-1][:2] + rows[-1][3:5] == ("00126380", "삼성전자", "005930", date(2025, 12, 1))
    assert {"0068Y0", "0115H0", "0096B0", "0030R0", "0015S0", "0126Z0"} <= {row[3] for row in listed}
    assert len({row[3] for row in listed}) == len(listed)
    assert (list(parsed.rejected), list(parsed.unknown_columns)) == ([], [])


def test_recorded_errors_are_told_for_what_they_are() -> None:
    request = lists.first_request(lists.of_day("Y", DAY), None)
    assert answers.classify_list(answer(request, sample("error_013.json"))) is AnswerClass.EMPTY
    assert answers.classify_archive(answer(request, sample("error_014_document.xml"))) is AnswerClass.ABSENT
    assert answers.classify_archive(answer(request, sample("document_dissolution_01619513.zip"))) is AnswerClass.DATA
    with pytest.raises(QuotaUsedUp, match="020"):
        answers.classify_list(answer(request, sample("error_020.json")))


# --- answers


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("000", AnswerClass.DATA), ("013", AnswerClass.EMPTY), ("014", AnswerClass.ABSENT),
        ("101", AnswerClass.BLOCKED),
        ("010", DefiniteRefusal), ("011", DefiniteRefusal), ("012", DefiniteRefusal), ("901", DefiniteRefusal),
        ("020", QuotaUsedUp), ("021", False), ("100", False), ("800", True), ("900", True), ("999", True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_archive", [False, True])
def test_every_status_is_the_same_in_both_forms(status: str, expected: Any, is_archive: bool) -> None:
    """True and False: an error that is worth asking again at once, or is not."""
    classify = answers.classify_archive if is_archive else answers.classify_list
    text = json.dumps({"status": status, "message": "020 안내"})
    if is_archive:
        text = f'<?xml version="1.0"?>\n<result>\n <status>{status}</status><message>020 안내</message></result>'
        # An archive that is there is a zip, whatever an envelope says.
        expected = True if status == "000" else expected
    given = answer(lists.first_request(lists.of_day("Y", DAY), None), text.encode())
    if isinstance(expected, AnswerClass):
        assert classify(given) is expected
        return
    with pytest.raises(AnswerError if isinstance(expected, bool) else expected) as raised:
        classify(given)
    assert status in str(raised.value)
    if isinstance(expected, bool):
        assert raised.value.may_pass is expected  # type: ignore[union-attr]


@pytest.mark.parametrize("classify", [answers.classify_list, answers.classify_archive])
def test_a_maintenance_passes_and_a_block_stops_the_host(classify: Any) -> None:
    request = lists.first_request(lists.of_day("Y", DAY), None)
    with pytest.raises(AnswerError, match="시스템 점검") as raised:
        classify(answer(request, "<html><head><title>시스템 점검</title></head></html>".encode()))
    assert raised.value.may_pass
    blocked = "<html><body>접속이 차단되었습니다</body></html>".encode()
    assert classify(answer(request, blocked)) is AnswerClass.BLOCKED
    assert classify(answer(request, b"<html></html>", 403)) is AnswerClass.BLOCKED
    # The same in the other characters that the site is written in, behind a byte order mark, and from its firewall.
    for body in ("<p>접속이 차단되었습니다</p>".encode("cp949"), b"\xef\xbb\xbf" + blocked,
                 b"<html><title>Request Rejected</title>The requested URL was rejected.</html>"):  # fmt: skip
        assert classify(answer(request, body)) is AnswerClass.BLOCKED
    for body in (b'{"status": "020"}', b"<result><status>020</status></result>"):
        with pytest.raises(QuotaUsedUp):
            classify(answer(request, b"\xef\xbb\xbf" + body))


def test_a_mark_of_the_byte_order_takes_nothing_from_an_answer() -> None:
    given = answer(lists.first_request(lists.of_day("K", DAY), None), b"\xef\xbb\xbf" + page(1, 1, 1))
    assert answers.classify_list(given) is AnswerClass.DATA
    assert lists.follow(given.request, given) == ()
    assert answers.rows_of(given.body.read())["total_count"] == 1


def test_a_refused_key_is_told_with_the_place_to_look_at_and_without_the_key() -> None:
    with pytest.raises(DefiniteRefusal) as raised:
        answers.classify_list(answer(lists.first_request(lists.of_day("Y", DAY), None), b'{"status":"010"}'))
    assert "connection dart" in str(raised.value)
    assert "DART_API_KEYS" in str(raised.value)


# --- lists


def read_all(*pages: bytes) -> list[dict[str, Any]]:
    """The pages that are asked for where the upstream answers so, one after the other."""
    request = lists.first_request(lists.of_day("Y", DAY), None)
    asked = [request]
    for body in pages:
        found = lists.follow(asked[-1], answer(asked[-1], body))
        asked += found
        if not found:
            break
    return [{**each.about, "page_no": dict(each.params)["page_no"], "key": each.key} for each in asked]


def test_pages_are_read_to_the_last_whatever_is_on_them() -> None:
    asked = read_all(page(100, 230, 3), page(0, 230, 3, 2), page(30, 230, 3, 3))
    assert [each["page_no"] for each in asked] == ["1", "2", "3"]
    assert len({each["key"] for each in asked}) == 3


def test_a_page_in_the_place_of_another_is_refused() -> None:
    with pytest.raises(AnswerError, match="page 1 of a list, and 2 was asked for") as raised:
        read_all(page(100, 130, 2), page(100, 130, 2, 1))
    assert raised.value.may_pass


def test_numbers_may_come_as_text() -> None:
    asked = read_all(page(100, "130", "2"), page(30, "130", "2", 2))  # type: ignore[arg-type]
    assert [each["page_no"] for each in asked] == ["1", "2"]


@pytest.mark.parametrize(
    ("second", "third"),
    [
        (page(100, 231, 3, 2), page(31, 231, 3, 3)),
        (page(100, 229, 3, 2), page(30, 230, 3, 3)),
        (page(100, 230, 3, 2), page(29, 229, 3, 3)),
        (page(100, 230, 3, 2), b'{"status": "013", "message": ""}'),
    ],
    ids=["one more", "one less and one more", "one less at the end", "a page less"],
)
def test_rows_that_move_between_pages_make_all_pages_be_read_again(second: bytes, third: bytes) -> None:
    asked = read_all(page(100, 230, 3), second, third, page(100, 230, 3), page(100, 230, 3, 2), page(30, 230, 3, 3))
    assert [each["page_no"] for each in asked] == ["1", "2", "3", "1", "2", "3"]
    assert [each["round"] for each in asked] == [1, 1, 1, 2, 2, 2]


def test_a_list_that_never_rests_ends_all_the_same() -> None:
    moving = (page(100, 200 + n, 2, 1 + n % 2) for n in range(50))
    asked = read_all(*moving)
    assert len(asked) == 2 * lists.MOST_ROUNDS


def test_nothing_is_longer_than_three_months_whatever_the_first_day_is() -> None:
    """A day at a time, newest first, without a gap and without a weekend, for every day of the year."""
    span = Span(Mode.BACKFILL, date(2025, 1, 1), date(2025, 12, 31), DAY)
    chunks = list(lists.chunks(span))
    days = [chunk.session_date for chunk in chunks]
    assert days == sorted((day for day in every_day(2025) if day.weekday() < 5), reverse=True)
    for chunk in chunks:
        day = date.fromisoformat(chunk.asks["day"])
        for request in lists.plan(Ask(Mode.BACKFILL, sessions=(day,))):
            params = dict(request.params)
            assert params["bgn_de"] == params["end_de"] == f"{day:%Y%m%d}"


def every_day(year: int) -> Iterator[date]:
    return (date.fromordinal(n) for n in range(date(year, 1, 1).toordinal(), date(year + 1, 1, 1).toordinal()))


def test_a_companys_past_is_asked_for_by_the_year() -> None:
    span = Span(Mode.BACKFILL, date(2024, 3, 1), date(2026, 9, 15), DAY, keys=("00126380",))
    chunks = list(lists.chunks(span))
    assert [chunk.name for chunk in chunks] == ["00126380/2026", "00126380/2025", "00126380/2024"]
    at = datetime.fromisoformat("2026-09-15T12:00:00+09:00")
    (request,) = lists.plan(Ask(Mode.BACKFILL, chunk=chunks[0].asks, at=at))
    params = dict(request.params)
    # The rest of the year has not begun.
    assert (params["corp_code"], params["bgn_de"], params["end_de"]) == ("00126380", "20260101", "20260915")
    assert "corp_cls" not in params


def test_other_markets_are_asked_for_where_somebody_names_them() -> None:
    polled = [request.key for request in lists.plan(Ask(Mode.POLL, newest=DAY))]
    assert polled == ["Y/2026-09-15", "K/2026-09-15"]
    named = [request.key for request in lists.plan(Ask(Mode.POLL, sessions=(DAY,), keys=("N", "00126380")))]
    assert named == ["N/2026-09-15", "00126380/2026-09-15"]
    known = [key for key in ("Y", "E", "00126380", "y", "005930", "0012638０") if lists.is_known(key)]
    assert known == ["Y", "E", "00126380"]


def test_a_row_on_two_pages_is_one_and_the_last_page_tells_it() -> None:
    request = lists.first_request(lists.of_day("Y", DAY), None)
    first, second = json.loads(page(2, 3, 2)), json.loads(page(1, 3, 2, 2))
    second["list"].append({**first["list"][1], "rm": "유정"})
    parsed = disclosures.parse(unit_of(request, json.dumps(first).encode(), json.dumps(second).encode()))
    assert {row[0]: row[8] for row in parsed.batches[0].rows} == {
        "20260915001000": "유", "20260915001001": "유정", "20260915002000": "유",
    }  # fmt: skip


# --- titles


@pytest.mark.parametrize(
    ("text", "name", "period", "is_correction"),
    [
        ("사업보고서 (2025.12)", "사업보고서", "2025.12", False),
        ("[기재정정]사업보고서 (2025.12)", "사업보고서", "2025.12", True),
        ("[첨부정정][기재정정] 분기보고서  (2026.03)   ", "분기보고서", "2026.03", True),
        ("사업보고서제출기한연장신고서 (2025.12)", "사업보고서제출기한연장신고서", "2025.12", False),
        ("[정정명령부과]증권신고서(지분증권)", "증권신고서(지분증권)", None, False),
        ("[발행조건확정]증권신고서(채무증권)", "증권신고서(채무증권)", None, True),
        ("주요사항보고서(유상증자결정)         ", "주요사항보고서(유상증자결정)", None, False),
        ("투자설명서 (2026.13)", "투자설명서 (2026.13)", None, False),
    ],
)
def test_titles_are_taken_apart(text: str, name: str, period: str | None, is_correction: bool) -> None:
    title = titles.read(text)
    assert (title.name, title.period, title.is_correction) == (name, period, is_correction)


# --- companies


def test_a_document_that_lies_about_its_size_is_not_read() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("CORPCODE.xml", b"<result></result>")
    body = bytearray(packed.getvalue())
    directory = body.index(b"PK\x01\x02")
    body[directory + 24 : directory + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    (request,) = corps.plan(Ask(Mode.POLL, sessions=(DAY,)))
    with pytest.raises(ParseError, match="claims to have 4,294,967,280 bytes"):
        corps.parse(unit_of(request, bytes(body)))


# --- the source


def test_the_rate_stays_well_under_the_one_that_blocks() -> None:
    a_minute = 60 / streams.HOST_GROUP.interval.total_seconds()
    assert a_minute <= 600
    assert all(stream.host_group == streams.HOST_GROUP for stream in registry.source("dart").streams)


@pytest.mark.parametrize(
    ("minutes", "cron"),
    [(5, "*/5 8-19 * * 1-5 | 0 20 * * 1-5"), (60, "0 8-19 * * 1-5 | 0 20 * * 1-5")],
)
def test_the_interval_is_a_setting(minutes: int, cron: str) -> None:
    stream = streams.disclosures(minutes, is_on=True)
    assert (stream.schedule.cron, stream.schedule.timezone) == (cron, "Asia/Seoul")


def test_every_known_defect_names_tests_that_are_there() -> None:
    table = (ROOT / "tests/sources/dart_defects.md").read_text(encoding="utf-8")
    first, second = table.split("## What users")
    assert [int(n) for n in re.findall(r"^\| (\d+) \|", first, re.MULTILINE)] == list(range(1, 39))
    assert len(re.findall(r"^\| (\d+) \|", second, re.MULTILINE)) == 33
    tests: dict[str, str] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        name = path.relative_to(ROOT / "tests").with_suffix("").as_posix()
        tests[name.removeprefix("sources/")] = path.read_text(encoding="utf-8")
    for row in re.findall(r"^\| \d+ \|.*$", table, re.MULTILINE):
        file = ""
        for named, test in re.findall(r"`([\w/]*::|…)(test_\w+)`", row):
            file = file if named == "…" else named.removesuffix("::")
            assert f"\ndef {test}" in tests.get(file, ""), (file, test)
