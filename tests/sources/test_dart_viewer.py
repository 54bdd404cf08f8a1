"""The web site's pages of a filing: its parts, their text once, and what is told where there is none."""

from __future__ import annotations

from datetime import date, datetime, time

import pytest

from include.contract import Answer, AnswerClass, AnswerError, ParseError, Request
from include.sandbox import dart_viewer
from include.sandbox.dart_documents import written
from include.sandbox.dart_filings import SEOUL, Filing, Filings
from include.settings import ROOT
from include.sources.dart import viewer
from tests.sources.answers import answer

NUMBER = "20261002000011"
SAMPLES = ROOT.parent / "shared" / "upstream" / "samples" / "dart"
DAY = date(2026, 9, 15)


def node(level: int, title: str, offset: int, length: int, **other: str) -> str:
    said = {"rcpNo": NUMBER, "dcmNo": "77", "eleId": "1", "dtd": "dart4.xsd", "offset": offset, "length": length}
    said = {"text": title, **said, **other}
    sets = "".join(f"node{level}['{key}'] = \"{value}\";\n" for key, value in said.items() if value is not None)
    return f"var node{level} = {{}};\n{sets}"


def page(*nodes: str, more: str = "") -> bytes:
    return f"<html><head><title>가나/보고서</title></head><script>{''.join(nodes)}</script>{more}</html>".encode()


def main(body: bytes, status: int = 200) -> Answer:
    return answer(viewer.main_request(NUMBER), body, status)


def test_the_recorded_page_is_read_right() -> None:
    file = SAMPLES / "main_do_tree_20261002000011.html"
    if not file.exists():
        pytest.skip("the recorded answers (../shared/upstream/samples) are not here")
    given = main(file.read_bytes())
    assert viewer.classify(given) is AnswerClass.DATA
    found = viewer.read_main(file.read_bytes(), NUMBER)
    assert [
        (each.level, each.title, each.document, each.element, each.offset, each.length) for each in found.nodes
    ] == [
        (1, "정 정 신 고 (보고)", "11600615", "1", "632", "3720"),
        (1, "투 자 설 명 서", "11600615", "2", "4382", "7711"),
        (1, "[ 본 문 ]", "11600615", "3", "12093", "300"),
    ]
    assert (found.attachments, found.is_download_only) == ((), False)
    asked = viewer.follow(given.request, given)
    assert [dict(each.params)["offset"] for each in asked] == ["632", "4382", "12093"]
    assert {dict(each.params)["rcpNo"] for each in asked} == {NUMBER}


def test_three_levels_are_found_and_what_another_part_holds_is_not_asked_for() -> None:
    found = viewer.read_main(
        page(
            node(1, "I. 회사의 &quot;개요&quot;", 100, 900),
            node(2, "1. 개요", 120, 200),
            node(3, '가. \\"사업\\"', 150, 50),
            # Lacks where it is: the next one's place is not its own.
            node(2, "2. 없음", 400, 100, eleId=None),  # type: ignore[arg-type]
            node(1, "II. 사업", 1000, 500),
            node(1, "감사보고서", 100, 900, dcmNo="78"),
            "node3['children'].push(node3); treeData.push(node1);",
        ),
        NUMBER,
    )
    assert [(each.level, each.title) for each in found.nodes] == [
        (1, 'I. 회사의 "개요"'), (2, "1. 개요"), (3, '가. "사업"'), (1, "II. 사업"), (1, "감사보고서"),
    ]  # fmt: skip
    assert [each.title for each in found.parts] == ['I. 회사의 "개요"', "II. 사업", "감사보고서"]


def test_a_filing_without_a_tree_has_one_part() -> None:
    body = page(more=f"<a onclick=\"viewDoc('{NUMBER}', '77', '0', '0', '0', 'HTML', '')\">열기</a>")
    given = main(body)
    assert viewer.classify(given) is AnswerClass.DATA
    (asked,) = viewer.follow(given.request, given)
    assert dict(asked.params) == {
        "rcpNo": NUMBER, "dcmNo": "77", "eleId": "0", "offset": "0", "length": "0", "dtd": "HTML",
    }  # fmt: skip
    assert (asked.unit, asked.key) == (f"{NUMBER}/viewer", f"{NUMBER}/viewer/1")
    assert list(viewer.follow(asked, given)) == []
    text = answer(asked, "<html><title>x</title><p>계약금액<td>1,000<br>2,000".encode("cp949"))
    assert viewer.classify(text) is AnswerClass.DATA
    found = viewer.read([given, text])
    assert (found.state, found.text, found.replaced) == ("text", "계약금액\t1,000 2,000", 0)


def test_what_can_only_be_downloaded_is_told_and_the_rest_is_kept() -> None:
    body = page(
        more='<select id="att"><option value="null">첨부</option><option value="rcpNo=1&amp;dcmNo=9"> 감사 보고서 '
        '</option></select><button class="btnDown">다운로드</button>'
    )
    given = main(body)
    assert viewer.classify(given) is AnswerClass.DATA
    found = viewer.read([given])
    assert (found.state, found.text) == ("download_only", "")
    assert found.attachments == (("1", "9", "감사 보고서"),)


def test_pictures_alone_are_no_body_and_not_an_error() -> None:
    given = main(page(node(1, "그림", 0, 0)))
    (asked,) = viewer.follow(given.request, given)
    found = viewer.read([given, answer(asked, b"<html><body><img src='a.jpg'></body></html>")])
    assert (found.state, found.parts) == ("no_body", 1)


def test_a_page_of_another_filing_or_without_all_parts_is_refused() -> None:
    with pytest.raises(ParseError, match="20250101000001"):
        viewer.read_main(page(node(1, "남의 것", 0, 9, rcpNo="20250101000001")), NUMBER)
    given = main(page(node(1, "하나", 0, 9), node(1, "둘", 9, 9)))
    first, _ = viewer.follow(given.request, given)
    with pytest.raises(ParseError, match="2 parts, and 1"):
        viewer.read([given, answer(first, b"<p>x</p>")])
    with pytest.raises(ParseError, match="more than any report"):
        viewer.read_main(page(*(node(1, "x", place, 1) for place in range(200))), NUMBER)


@pytest.mark.parametrize("title", ["시스템 점검", "전자공시시스템"])
def test_a_page_without_a_part_is_neither_a_text_nor_none(title: str) -> None:
    body = f"<html><head><title>{title}</title></head><body>안내</body></html>".encode()
    with pytest.raises(AnswerError) as raised:
        viewer.classify(main(body))
    assert raised.value.may_pass
    with pytest.raises(ParseError, match="no part"):
        viewer.read_main(body, NUMBER)


def test_a_block_stops_the_host_and_a_filing_about_blocking_is_a_filing() -> None:
    kept_out = "<html><title>접근 차단</title><p>비정상적인 접근</p></html>".encode()
    assert viewer.classify(main(kept_out)) is AnswerClass.BLOCKED
    assert viewer.classify(main(b"", 403)) is AnswerClass.BLOCKED
    assert viewer.classify(main(b"", 404)) is AnswerClass.ABSENT
    assert viewer.classify(main(b"")) is AnswerClass.ERROR
    request = Request(f"{NUMBER}/viewer/1", viewer.PART, f"{NUMBER}/viewer")
    about = answer(request, "<html><body><p>해외 사이트 접속 차단, 시스템 점검</p></body></html>".encode())
    assert viewer.classify(about) is AnswerClass.DATA
    # Whatever else stands in the place of a part is not its text.
    for body in ("현재 서비스 점검 중입니다. 이용에 불편을 드려 죄송합니다.", "<title>502 Bad Gateway</title>nginx",
                 "<title>에러페이지</title>찾을 수 없습니다", '{"status":"800"}',
                 "<result><status>800</status></result>", page(node(1, "하나", 0, 9)).decode()):  # fmt: skip
        with pytest.raises(AnswerError, match="none of 20261002000011"):
            viewer.classify(answer(request, body.encode("cp949")))
    for body in ("비정상적인 접근이 감지되어 접속이 차단되었습니다.", "<title>Request Rejected</title>Support ID: 1"):
        assert viewer.classify(answer(request, body.encode())) is AnswerClass.BLOCKED


def test_pages_are_two_seconds_apart_and_their_keys_can_be_asked_again() -> None:
    assert viewer.HOST_GROUP.interval.total_seconds() >= 2
    asked = viewer.main_request(NUMBER, DAY)
    assert viewer.of_key(asked.key, DAY) == asked
    assert viewer.of_key("nothing") is None


def _by_site(filing: Filing) -> viewer.Reading:
    """Read a filing from the stand-in's pages."""
    request = viewer.main_request(filing.rcept_no)
    given = answer(request, dart_viewer.main_page(filing).body)
    assert viewer.classify(given) is AnswerClass.DATA
    parts = []
    for asked in viewer.follow(request, given):
        places = dict(asked.params)
        body = dart_viewer.part_page(filing, int(places["offset"]), int(places["length"])).body
        parts.append(answer(asked, body))
        assert viewer.classify(parts[-1]) is AnswerClass.DATA
    return viewer.read([given, *parts])


def test_every_number_of_the_stand_ins_filings_is_in_what_the_site_gives_once() -> None:
    filings = Filings(7, 60)
    company = filings.listed[0]
    at = datetime.combine(DAY, time(9), SEOUL)
    annual = Filing(company, "사업보고서 (2025.12)", "A", "20260915009001", at, company.name, "")
    for filing in (annual, *filings.of_day(DAY)[:8]):
        found, told = written(filing), _by_site(filing)
        assert told.state == "text"
        for chapter in found.chapters:
            for row in chapter.table:
                assert "\t".join(row) in told.text
        assert told.parts == max(1, sum(chapter.level == 1 for chapter in found.chapters))
        if not found.is_page:
            for chapter in found.chapters:
                assert told.text.count(f"\n{chapter.title}\n") + told.text.startswith(chapter.title) >= 1
        assert told.text.count("구분\t당기\t전기") == len(found.chapters)
    assert _by_site(annual).attachments
