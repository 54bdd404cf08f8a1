"""DART's documents, read from a recorded one and from documents of our own."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import zipfile

import pytest

from include.contract import ParseError
from include.settings import ROOT
from include.sources.dart import chapters, documents, text

SAMPLES = ROOT.parent / "shared" / "upstream" / "samples" / "dart"


def sample(name: str) -> bytes:
    file = SAMPLES / name
    if not file.exists():
        pytest.skip("the recorded answers (../shared/upstream/samples) are not here")
    return file.read_bytes()


def packed(**members: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.xml", content)
    return made.getvalue()


def test_the_recorded_document_is_read_right() -> None:
    found = documents.read(sample("document_dissolution_01619513.zip"), "20250210000001")
    assert (found.member, found.encoding, found.replaced) == ("20250210000001.xml", "utf-8", 0)
    chapters = [each for each in found.sections if each.level]
    assert [(each.number, each.title) for each in chapters] == [
        ("2", "주 요 사 항 보 고 서"), ("1", "해산사유 발생"),
    ]  # fmt: skip
    assert [each.slot for each in chapters] == ["D-0-0-0-0", "D-0-1-0-0"]
    tables = [table for each in found.sections for table in each.tables]
    assert len(tables) == 5
    cells = {cell.code: cell for table in tables for cell in table.fields}
    assert cells["OSM_203_01"].text.startswith("당사의 주권이 2025년 2월 10일 부로 코스닥시장 상장규정 제73조에")
    assert (cells["OSM_203_06"].text, cells["OSM_203_07"].text) == ("1", "-")
    assert (cells["OSM_203_05"].value, cells["OSM_203_08"].value) == ("20250210", "Y")


ODD = (
    '<?xml version="1.0" encoding="euc-kr"?><DOCUMENT><DOCUMENT-NAME ACODE="11011">사업보고서</DOCUMENT-NAME><BODY>'
    '<SECTION-1><TITLE ATOC="Y" AASSOCNOTE="D-0-1-0-0" ENG="A > B">I. 개요</TITLE>'
    "<P>A & B <표 1> 참조, A<B 이고 C>D 똠</P>"
    "<P>가<SPAN>나</SPAN>다&cr;2. 다음&nbsp;줄</P><P>(단위 : 백만원)</P><TABLE><TR><TH>매출<TH COLSPAN=2>금액"
    '<TR><TD ROWSPAN="2">합계<TD>1,000<BR>2,000<TE ACODE="X">△1,234<TR><TD>3<TD>4</TABLE>'
    "<SECTION-2><TITLE>1. 세부</TITLE><P>세부 글<SECTION-2><TITLE>2. 둘</TITLE><P>글</P></SECTION-1>"
    "<SECTION-1><TITLE>II. 끝</TITLE><TABLE><TR><TD>한 칸<BR>1,000<BR>2,000</TD></TR></TABLE></BODY></DOCUMENT>"
)


@pytest.mark.parametrize(("encoding", "told"), [("utf-8", "utf-8"), ("utf-8-sig", "utf-8"), ("cp949", "cp949")])
def test_a_document_that_is_not_well_formed_is_read_the_same_in_every_encoding(encoding: str, told: str) -> None:
    found = documents.read(packed(main=ODD.encode(encoding)), "main")
    assert (found.encoding, found.replaced) == (told, 0)
    sections = {each.title: each for each in found.sections}
    places = {each.order: each.title for each in found.sections}
    assert [(each.title, each.level, places.get(each.parent)) for each in found.sections if each.level] == [
        ("I. 개요", 1, None), ("1. 세부", 2, "I. 개요"), ("2. 둘", 2, "I. 개요"), ("II. 끝", 1, None),
    ]  # fmt: skip
    # What stands before the first chapter is a section by itself.
    assert (found.sections[0].level, found.sections[0].text) == (0, "사업보고서")
    first = sections["I. 개요"]
    assert first.slot == "D-0-1-0-0"
    assert first.blocks[:4] == ["A & B <표 1> 참조, A<B 이고 C>D 똠", "가나다", "2. 다음 줄", "(단위 : 백만원)"]
    (table,) = first.tables
    assert table.grid == [["매출", "금액", ""], ["합계", "1,000 2,000", "△1,234"], ["", "3", "4"]]
    assert (table.unit, table.fields) == ("백만원", (chapters.Cell(1, 2, "△1,234", "X"),))
    # What a chapter within it says is not said twice.
    assert "세부 글" not in first.text
    assert found.text.count("세부 글") == 1
    (old,) = sections["II. 끝"].tables
    assert (old.is_unstructured, old.text) == (True, "한 칸\n1,000\n2,000")


def test_bytes_that_are_no_text_are_counted_and_nothing_behind_them_is_lost() -> None:
    body = ODD.encode("cp949")
    broken = body.replace("세부".encode("cp949"), b"\xff\xff", 1) + b"<P>\xff 987,654</P>"
    decoded = documents.plain_text(packed(main=broken), "main")
    assert (decoded.encoding, decoded.replaced) == ("cp949", 3)
    for number in ("1,000", "2,000", "1,234", "987,654"):
        assert number in decoded.text


def test_a_byte_that_is_no_text_costs_a_document_in_utf_8_one_character() -> None:
    body = ODD.replace('encoding="euc-kr"', "").encode()
    broken = body.replace("세부".encode(), "세부".encode()[:-1], 1)
    for decoded in (documents.read(packed(main=broken), "main"), documents.plain_text(packed(main=broken), "main")):
        assert (decoded.encoding, decoded.replaced) == ("utf-8", 1)
        assert "A<B 이고 C>D 똠" in decoded.text


def test_plain_text_has_a_line_for_a_row_and_drops_scripts() -> None:
    page = (
        "<html><head><style>p{}</style><script>if (a<b) x()</script></head><body><table><tr><td>가</td><td>1</td></tr>"
    )
    page += "<tr><td>나</td><td>2<br>3</td></tr></table><!-- <p>9</p> --><p>끝 &amp; &#48;</p></body></html>"
    assert text.plain(page.encode()).text == "가\t1\n나\t2 3\n끝 & 0"
    (section,) = chapters.of(page)
    assert section.level == 0
    assert section.tables[0].grid == [["가", "1"], ["나", "2 3"]]
    assert text.plain(b"<p>a<script>never ends").text == "anever ends"
    assert (
        text.plain("<P>갑 <당기> <전기> <SPAN>을</SPAN> <SPAN>병</SPAN></P>".encode()).text == "갑 <당기> <전기> 을 병"
    )


def test_the_filing_is_told_from_what_is_attached_to_it_whatever_their_order_and_size() -> None:
    audit = (
        b"<DOCUMENT><DOCUMENT-NAME>\xea\xb0\x90\xec\x82\xac\xeb\xb3\xb4\xea\xb3\xa0\xec\x84\x9c</DOCUMENT-NAME>"
        + b" " * 9000
    )
    main = "<DOCUMENT><DOCUMENT-NAME>사업보고서</DOCUMENT-NAME></DOCUMENT>".encode()
    number = "20260331000001"
    found = documents.read(packed(**{f"{number}_00760": audit, number: main}), number)
    assert (found.member, found.others) == (f"{number}.xml", ((f"{number}_00760.xml", "감사보고서"),))
    other = documents.read(packed(a_1=audit, b_2=main), number, "[기재정정]사업보고서 (2025.12)")
    assert other.member == "b_2.xml"
    with pytest.raises(ParseError, match="no document"):
        documents.read(packed(), number)
    with pytest.raises(ParseError, match="cannot be read"):
        documents.read(packed(a=main)[:60], number)


@pytest.mark.parametrize(
    ("page", "plain", "grid"),
    [
        # Less-than signs before a tag, in and beside cells that nobody closes.
        ("<P>10% < 15% 이고<TABLE><TR><TD>a < b<TD>1<TR><TD>2</TABLE>", "10% < 15% 이고\na < b\t1\n2",
         [["a < b", "1"], ["2", ""]]),
        # A value with the sign that ends a tag, a comment with one, a script between tags.
        ('<P A="x > y">가</P><!-- a > b <TD>9 --><TABLE><TR><TD B="1>2">3</TABLE>', "가\n3", [["3"]]),
        ("<P>가</P><script>if (a<b) x('<td>9')</script><TABLE><TR><TD>3</TABLE>", "가\n3", [["3"]]),
        ("<TABLE><TR><TD ROWSPAN=2>가<TD COLSPAN=2>1<TR><TD>2<TD>3<TR><TD>4</TABLE>", "가\t1\n2\t3\n4",
         [["가", "1", ""], ["", "2", "3"], ["4", "", ""]]),
        # A table within a cell is that cell's text.
        ("<TABLE><TR><TD>가<TABLE><TR><TD>1<TD>2</TABLE></TD><TD>3</TABLE>", "가\n1\t2\n3", [["가 1 2", "3"]]),
        ("<TD>밖 <TR>가</TR><P>나<TABLE></TABLE>", "밖\n가\n나", []),
    ],
)  # fmt: skip
def test_what_is_not_well_formed_loses_no_text_and_makes_up_no_column(
    page: str, plain: str, grid: list[list[str]]
) -> None:
    (section,) = chapters.of(page)
    assert [table.grid for table in section.tables] == ([grid] if grid else [])
    assert text.plain(page.encode()).text == plain
    digits = sorted(filter(str.isdigit, plain))
    assert sorted(filter(str.isdigit, section.text)) == digits
    # The same where what is odd stands somewhere else in the document.
    assert chapters.of(f'{page}<P A=">">') == (section,)
    assert text.plain(f'{page}<P A=">">'.encode()).text == plain


def test_the_platforms_encoding_changes_nothing() -> None:
    file = ROOT / "tests" / "fixtures" / "dart" / "docs_cp949.zip"
    program = (
        "import hashlib, pathlib, sys\n"
        "from include.sources.dart import documents\n"
        "found = documents.read(pathlib.Path(sys.argv[1]).read_bytes(), '20260915000777')\n"
        "print(found.encoding, hashlib.sha256(found.text.encode('utf-8')).hexdigest())\n"
    )
    here = documents.read(file.read_bytes(), "20260915000777")
    assert "똠방각하" in here.text
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", program, str(file)]
    told = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert told.split() == ["cp949", hashlib.sha256(here.text.encode("utf-8")).hexdigest()]
