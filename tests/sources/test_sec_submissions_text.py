"""Complete submissions of every era: their documents, and what their headers say."""

from __future__ import annotations

import binascii
import hashlib
import io
import json
import random
from datetime import UTC, date, datetime
from typing import Any

import pytest

from include.contract import ParseError
from include.sources.sec import headers, submission, text
from include.sources.sec.headers import Header
from include.sources.sec.submission import Document
from tests.sources.samples import SAMPLES, listed

HEADER = """<SEC-HEADER>0001234567-26-000012.hdr.sgml : 20260915
<ACCEPTANCE-DATETIME>20260914201502
ACCESSION NUMBER:\t\t0001234567-26-000012
CONFORMED SUBMISSION TYPE:\t8-K
PUBLIC DOCUMENT COUNT:\t\t3
CONFORMED PERIOD OF REPORT:\t20260911
ITEM INFORMATION:\t\tOther Events
ITEM INFORMATION:\t\tFinancial Statements and Exhibits
FILED AS OF DATE:\t\t20260915
DATE AS OF CHANGE:\t\t20260914

FILER:

\tCOMPANY DATA:
\t\tCOMPANY CONFORMED NAME:\t\t\tAMBER: TIDE CO
\t\tCENTRAL INDEX KEY:\t\t\t0000765432
\t\tSTANDARD INDUSTRIAL CLASSIFICATION:\tPUMPS & VALVES [3561]
\t\tEIN:\t\t\t\t123456789
\t\tFISCAL YEAR END:\t\t\t0229

\tFILING VALUES:
\t\tFORM TYPE:\t\t8-K
\t\tSEC ACT:\t\t1934 Act
\t\tSEC FILE NUMBER:\t001-12345

\tMAIL ADDRESS:
\t\tSTREET 1:\t\t1 QUAY
\t\tCITY:\t\t\tBOISE

\tFORMER COMPANY:
\t\tFORMER CONFORMED NAME:\tAMBER ONE
\t\tDATE OF NAME CHANGE:\t20100102

\tFORMER COMPANY:
\t\tFORMER CONFORMED NAME:\tAMBER TWO
\t\tDATE OF NAME CHANGE:\t20190304

FILED BY:

\tCOMPANY DATA:
\t\tCOMPANY CONFORMED NAME:\t\t\tSECOND PARTY LLC
\t\tCENTRAL INDEX KEY:\t\t\t0000000099
PUBLIC REFERENCE ACCESSION NUMBER:\t\t0001234567-26-000001
</SEC-HEADER>
"""


def document(content: bytes, number: str = "1", kind: str = "8-K", name: str | None = "a.htm") -> bytes:
    filename = f"<FILENAME>{name}\n" if name is not None else ""
    return (
        f"<DOCUMENT>\n<TYPE>{kind}\n<SEQUENCE>{number}\n{filename}<TEXT>\n".encode()
        + content
        + b"\n</TEXT>\n</DOCUMENT>\n"
    )


def whole(*documents: bytes, header: str = HEADER) -> bytes:
    first = "<SEC-DOCUMENT>0001234567-26-000012.txt : 20260915\n" if header else ""
    return (first + header).encode() + b"".join(documents) + b"</SEC-DOCUMENT>\n"


def read(content: bytes) -> tuple[Header, list[Document]]:
    found = submission.read(io.BytesIO(content))
    return headers.parse(found.header), list(found.documents())


def uuencoded(content: bytes, *, stripped: bool = False) -> bytes:
    lines = [binascii.b2a_uu(content[at : at + 45]) for at in range(0, len(content), 45)]
    lines = [line.rstrip() + b"\n" for line in lines] if stripped else lines
    return b"begin 644 picture.jpg\n" + b"".join(lines) + b"`\nend"


# --- documents


def test_each_document_is_told_with_its_place_its_size_and_its_hash() -> None:
    page, letter = b"<html>\n<p>One</p>\n</html>", b"plain words\n"
    content = whole(
        document(page), document(b"<XBRL>\n" + page + b"\n</XBRL>", "4", "EX-99.1", "b.htm"), document(letter)
    )
    _, found = read(content)
    assert [(each.position, each.sequence, each.type, each.filename) for each in found] == [
        (1, 1, "8-K", "a.htm"),
        (2, 4, "EX-99.1", "b.htm"),
        (3, 1, "8-K", "a.htm"),
    ]
    assert [each.wrapper for each in found] == [None, "XBRL", None]
    for each, given in zip(found, (page, page, letter), strict=True):
        assert content[each.start : each.start + each.length] == given
        assert b"".join(submission.cut(io.BytesIO(content), each)) == given
        assert (each.size, each.sha256) == (len(given), hashlib.sha256(given).digest())
        assert each.defect is None


@pytest.mark.parametrize("ending", [b"\r\n", b"\r"])
def test_the_ends_of_lines_do_not_matter(ending: bytes) -> None:
    content = whole(document(b"<html>\n</html>"), document(uuencoded(b"picture" * 40), "2", "GRAPHIC"))
    plain_header, plain = read(content)
    header, found = read(content.replace(b"\n", ending))
    assert header == plain_header
    assert [(d.type, d.filename, d.sequence, d.defect) for d in found] == [
        (d.type, d.filename, d.sequence, d.defect) for d in plain
    ]
    assert found[1].sha256 == plain[1].sha256


@pytest.mark.parametrize("stripped", [False, True])
def test_uuencoded_parts_are_told_as_what_they_hold(stripped: bool) -> None:
    picture = random.Random(3).randbytes(3001) + b"\0" * 300 + b"end"
    _, (found,) = read(
        whole(document(b"<PDF>\n" + uuencoded(picture, stripped=stripped) + b"\n\n</PDF>", kind="EX-99"))
    )
    assert (found.is_uuencoded, found.charset, found.wrapper) == (True, "binary", "PDF")
    assert (found.size, found.sha256) == (len(picture), hashlib.sha256(picture).digest())
    assert found.defect is None


def test_a_broken_uuencoding_is_told_and_the_others_are_read() -> None:
    content = uuencoded(b"picture" * 40).replace(b"\nM", b"\nM\x7f\x7f\x7f", 1)
    _, found = read(whole(document(content, kind="GRAPHIC"), document(b"text", "2")))
    assert "uuencoding is broken" in str(found[0].defect)
    assert found[1].size == 4


@pytest.mark.parametrize(
    ("content", "charset"),
    [
        (b"plain", "utf-8"),
        ("it’s".encode(), "utf-8"),
        (b"it\x92s", "cp1252"),
        (b"it\x92s \x81", "latin-1"),
        (b"cut in the middle \xe2\x80", "cp1252"),
    ],
)
def test_a_document_is_kept_whatever_its_character_set(content: bytes, charset: str) -> None:
    _, (found,) = read(whole(document(content)))
    assert (found.charset, found.size) == (charset, len(content))


def test_text_that_only_looks_like_an_end_is_content() -> None:
    content = b"<svg><text>x</text>\n</svg> <DOCUMENT> </DOCUMENT> </TEXT>\nand </SEC-DOCUMENT> in a line\n<TYPE>no"
    _, found = read(whole(document(content), document(b"next", "2")))
    assert [each.length for each in found] == [len(content), 4]


def test_documents_without_a_name_or_with_gaps_and_repeats_are_all_there() -> None:
    content = whole(document(b"1", name=None), document(b"2", "7"), document(b"3", "7"), document(b"4", "x"))
    _, found = read(content)
    assert [(each.position, each.sequence, each.filename) for each in found] == [
        (1, 1, None),
        (2, 7, "a.htm"),
        (3, 7, "a.htm"),
        (4, None, "a.htm"),
    ]


def test_mail_around_it_and_its_dashes_do_not_matter() -> None:
    # A line of uuencoded text may begin with a dash, which such mail doubles.
    picture = b"A" * 45 + b"B" * 13
    lines = uuencoded(picture).replace(b"\n-", b"\n- -")
    mail = b"-----BEGIN PRIVACY-ENHANCED MESSAGE-----\nProc-Type: 2001,MIC-CLEAR\nMIC-Info: RSA-MD5,RSA,\n AAAA\n\n"
    content = mail + whole(document(lines, kind="GRAPHIC")) + b"-----END PRIVACY-ENHANCED MESSAGE-----\n"
    found = submission.read(io.BytesIO(content))
    assert found.is_pem
    assert headers.parse(found.header) == read(whole())[0]
    (picture_found,) = found.documents()
    assert picture_found.sha256 == hashlib.sha256(picture).digest()


def test_a_submission_without_a_header_is_kept_with_its_documents() -> None:
    header, found = read(document(b"old text", name=None))
    assert (header.dialect, header.fields) == ("none", ())
    assert [each.size for each in found] == [8]


def test_a_cut_text_is_told_wherever_it_was_cut() -> None:
    content = whole(document(b"<html>\n" * 50), document(uuencoded(b"picture" * 40), "2", "GRAPHIC"))
    for length in range(80, len(content) - len("</SEC-DOCUMENT>\n"), 7):
        found = submission.read(io.BytesIO(content[:length]))
        assert [each.defect for each in found.documents()][:-1] in ([], [None])
        assert not found.is_whole
    found = submission.read(io.BytesIO(content))
    assert [each.defect for each in found.documents()] == [None, None]
    assert found.is_whole


@pytest.mark.parametrize(
    "content", [b"", b"\n \n", b"<html><body>Try later</body></html>", b"{}", b"\x1f\x8b\x08", b"CIK|Name"]
)
def test_what_is_no_submission_is_refused_in_words(content: bytes) -> None:
    with pytest.raises(ParseError, match="no submission: it begins with"):
        submission.read(io.BytesIO(content))


def test_damage_anywhere_never_ends_in_anything_but_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    content = whole(document(b"<html>\n" * 20), document(uuencoded(b"picture" * 40), "2", "GRAPHIC"))
    chance = random.Random(7)
    monkeypatch.setattr(text, "BLOCK", 300)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 30)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            read(bytes(damaged))
        except ParseError:
            continue


def test_the_size_of_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    content = whole(document(b"<p>x</p>\n" * 400), document(uuencoded(b"picture" * 400), "2", "GRAPHIC"))
    expected = read(content)
    for size in (17, 300, 1000):
        monkeypatch.setattr(text, "BLOCK", size)
        assert read(content) == expected


# --- headers


def test_each_group_of_a_header_is_read_with_its_party() -> None:
    header = headers.parse(HEADER)
    assert header.dialect == "labels"
    assert list(header.parties()) == [(1, "FILER"), (2, "FILED BY")]
    assert header.first("name", party=1) == "AMBER: TIDE CO"
    assert header.all("item") == ["Other Events", "Financial Statements and Exhibits"]
    assert header.all("former_name", party=1) == ["AMBER ONE", "AMBER TWO"]
    assert [(f.section, f.section_number) for f in header.fields if f.meaning == "former_name"] == [
        ("FORMER COMPANY", 1),
        ("FORMER COMPANY", 2),
    ]
    assert header.first("street1", party=1, section="MAIL ADDRESS") == "1 QUAY"
    assert header.first("street1", party=1, section="BUSINESS ADDRESS") is None
    # What stands behind the parties is about the filing again.
    assert header.first("public_reference_accession") == "0001234567-26-000001"


def test_blank_lines_between_and_lost_indentation_do_not_matter() -> None:
    expected = [(f.party, f.section, f.meaning, f.value) for f in headers.parse(HEADER).fields]
    doubled = headers.parse(HEADER.replace("\n", "\n\n"))
    assert [(f.party, f.section, f.meaning, f.value) for f in doubled.fields] == expected
    flat = headers.parse("\n".join(line.strip() for line in HEADER.splitlines()))
    assert [(f.party, f.section, f.meaning, f.value) for f in flat.fields] == expected


TAGS = """<ACCESSION-NUMBER>0001234567-26-000012
<TYPE>SC 13D
<PUBLIC-DOCUMENT-COUNT>1
<FILING-DATE>20260915
<SUBJECT-COMPANY>
<COMPANY-DATA>
<CONFORMED-NAME>TARGET INC
<CIK>0000000007
<ORGANIZATION-NAME>
</COMPANY-DATA>
<FILING-VALUES>
<ACT>34
</FILING-VALUES>
</SUBJECT-COMPANY>
<FILED-BY>
<COMPANY-DATA>
<CONFORMED-NAME>BUYER LP
<CIK>0000000008
</COMPANY-DATA>
</SUBJECT-COMPANY>
"""


def test_tags_say_the_same_as_labels_and_a_mismatched_one_spoils_nothing() -> None:
    header = headers.parse(TAGS)
    assert header.dialect == "tags"
    assert list(header.parties()) == [(1, "SUBJECT COMPANY"), (2, "FILED BY")]
    assert (header.first("form"), header.first("filed_date")) == ("SC 13D", "20260915")
    assert [header.first("name", party=n) for n in (1, 2)] == ["TARGET INC", "BUYER LP"]
    assert header.first("organization", party=1) is None
    assert header.first("act", party=1) == "34"


def test_series_behind_the_parties_are_the_filings_own() -> None:
    block = (
        "<SERIES-AND-CLASSES-CONTRACTS-DATA>\n<EXISTING-SERIES-AND-CLASSES-CONTRACTS>\n<SERIES>\n<OWNER-CIK>0000000007\n"
        "<SERIES-ID>S000000001\n<SERIES-NAME>One\n<CLASS-CONTRACT>\n<CLASS-CONTRACT-ID>C000000001\n"
        "<CLASS-CONTRACT-NAME>A\n</CLASS-CONTRACT>\n</SERIES>\n</EXISTING-SERIES-AND-CLASSES-CONTRACTS>\n"
        "</SERIES-AND-CLASSES-CONTRACTS-DATA>\n"
    )
    fields = [each for each in headers.parse(HEADER.replace("</SEC-HEADER>", block)).fields if each.meaning]
    found = {each.meaning: (each.party, each.section, each.value) for each in fields}
    assert found["series_id"] == (0, "SERIES", "S000000001")
    assert found["class_id"] == (0, "CLASS CONTRACT", "C000000001")


@pytest.mark.parametrize(
    ("label", "meaning", "spelling"),
    [
        ("EIN", "ein", "usual"),
        ("IRS NUMBER", "ein", "other"),
        ("SEC FILE NUNBER", "file_number", "other"),
        ("Film-Number", "film_number", "usual"),
        ("LEGAL ENTITY IDENTIFIER", None, "unknown"),
    ],
)
def test_renamed_and_unknown_labels_are_kept_and_told_apart(label: str, meaning: str | None, spelling: str) -> None:
    header = headers.parse(HEADER.replace("\t\tEIN:", f"\t\t{label}:"))
    (found,) = [each for each in header.fields if each.label == label]
    assert (found.meaning, found.spelling, found.value) == (meaning, spelling, "123456789")


def test_values_are_read_as_what_they_are() -> None:
    # Half past eight in the evening in New York, in summer and in winter.
    assert headers.instant("20260914203000") == datetime(2026, 9, 15, 0, 30, tzinfo=UTC)
    assert headers.instant("20261214203000") == datetime(2026, 12, 15, 1, 30, tzinfo=UTC)
    assert headers.day("20260229") is None
    assert headers.day("20240229") == date(2024, 2, 29)
    assert headers.sic("PUMPS & VALVES [3561]") == ("3561", "PUMPS & VALVES")
    assert headers.sic("3561") == ("3561", None)
    assert headers.sic("[]") == (None, None)
    assert headers.sic("SOMETHING ELSE") == (None, "SOMETHING ELSE")
    assert [headers.act(each) for each in ("1934 Act", "34", "NE", None)] == ["34", "34", "NE", None]
    assert [headers.whole(each) for each in ("12", "1 2", "-1", "", None)] == [12, None, None, None, None]


# --- recorded ones


def _is_submission(name: str) -> bool:
    return any(part in name for part in ("/txt_", "/nc_", "-index-headers", "/header_"))


RECORDED = [row for row in listed("sec") if _is_submission(row["file"])]


@pytest.mark.skipif(not RECORDED, reason="the recorded samples are not beside this checkout")
@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["file"])
def test_every_recorded_submission_is_read_as_the_manifest_says(row: dict[str, str]) -> None:
    expected: dict[str, Any] = json.loads(row["right_reading"])
    with (SAMPLES / row["file"]).open("rb") as stream:
        found = submission.read(stream)
        header, documents = headers.parse(found.header), list(found.documents())
    assert found.is_pem == expected["pem"]
    assert [each.type for each in documents] == expected["doc_types"]
    assert len(documents) == expected["n_DOCUMENT"]
    assert all(each.defect is None for each in documents)
    parties = [number for number, _ in header.parties()]
    assert sorted({header.first("cik", party=number) or "" for number in parties}) == sorted(expected["ciks"])
    assert (header.first("form"), header.first("accession_number")) == (expected["form"], expected["accession"])
    assert header.first("filed_date") == expected["filed"]
    assert (header.first("acceptance_datetime") or "") == expected["accepted"]
    assert header.first("public_document_count") == expected["declared_docs"]
    if header.dialect == "labels":
        # The manifest was made from labels alone.
        assert [header.first("name", party=number) for number in parties] == expected["names"]
        assert (header.first("period_of_report") or "") == expected["period"]
        assert [each.value for each in header.fields if each.meaning == "item"] == expected["items"]
    assert not [each.label for each in header.fields if each.meaning is None]
