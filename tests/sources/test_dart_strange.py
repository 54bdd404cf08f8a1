"""Answers that DART would never send: each is read, refused in words or rejected by name, and none stumbled over."""

from __future__ import annotations

import io
import json
import random
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from include import registry
from include.contract import AnswerClass, AnswerError, Ask, Mode, ParseError, Request, Stream
from include.settings import ROOT
from include.sources.dart import corps, docs, documents, finance, lists
from tests.sources import strange
from tests.sources.answers import FIXTURES, answer, unit_of

SAMPLES = ROOT.parent / "shared" / "upstream" / "samples" / "dart"
NUMBER = "20260814000101"
PAGES = (
    ("dart.finance", "00999991/2026.11013/OFS/20260515000777", "statements.json"),
    ("dart.report", "00999991/2026.11013/alotMatter/20260515000777", "items.json"),
    ("dart.report", "00999991/2026.11013/indvdlByPayV2/20260515000777", "items_in_groups.json"),
    ("dart.disclosures", "Y/2026-09-15", "list.json"),
    ("dart.docs", "all/list/2026.11012", "docs_list.json"),
)


def asked(name: str, key: str) -> tuple[Stream, Request]:
    stream = registry.stream(name)
    (request,) = stream.plan(Ask(Mode.POLL, pending=(key,)))
    return stream, request


def fixture(name: str) -> bytes:
    return (FIXTURES / "dart" / name).read_bytes()


@pytest.mark.parametrize(("name", "key", "page"), PAGES)
def test_rows_with_anything_in_any_place_are_read_rejected_or_refused(name: str, key: str, page: str) -> None:
    stream, request = asked(name, key)
    read = strange.check(stream, request, fixture(page))
    assert (read > 0) is (name != "dart.docs")


# --- normal, with nothing in it


@pytest.mark.parametrize(("name", "key", "page"), PAGES)
@pytest.mark.parametrize("given", [{}, {"list": []}, {"list": None}, {"group": []}, {"list": {}}], ids=str)
def test_normal_with_no_rows_is_neither_an_answer_nor_nothing(
    name: str, key: str, page: str, given: dict[str, Any]
) -> None:
    stream, request = asked(name, key)
    counts = {field: json.loads(fixture(page)).get(field) for field in ("total_count", "total_page")}
    body = json.dumps({"status": "000", "message": "정상", **counts, **given}).encode()
    if name == "dart.docs" and given == {"list": []}:
        # A quarter without a periodic report; its rows are counted where all filings are listed.
        assert stream.follow(request, answer(request, body)) == []
        return
    assert stream.classify(answer(request, body)) is AnswerClass.DATA
    with pytest.raises((ParseError, AnswerError)):
        list(stream.follow(request, answer(request, body))) or stream.parse(unit_of(request, body))


def test_a_list_that_does_not_say_how_long_it_is_is_never_taken_for_whole() -> None:
    stream, request = asked("dart.disclosures", "Y/2026-09-15")
    page = json.loads(fixture("list.json"))
    for missing in ("total_count", "total_page"):
        body = json.dumps({name: value for name, value in page.items() if name != missing}).encode()
        with pytest.raises(AnswerError, match="does not say how many") as raised:
            stream.follow(request, answer(request, body))
        assert raised.value.may_pass
    # Fewer rows than it says are kept, and told.
    short = json.dumps(page | {"total_count": page["total_count"] + 2}).encode()
    parsed = stream.parse(unit_of(request, short))
    assert len(list(parsed.batches[0].rows)) == page["total_count"]
    assert [(each.position, "shows" in each.reason) for each in parsed.rejected] == [("all pages", True)]


def test_a_report_that_a_list_names_and_cannot_be_asked_for_is_told() -> None:
    stream, request = asked("dart.docs", "all/list/2026.11012")
    page = json.loads(fixture("docs_list.json"))
    names = [each.key for each in stream.follow(request, answer(request, json.dumps(page).encode()))]
    page["list"][0]["rcept_no"] = "2026081400010"
    body = json.dumps(page).encode()
    assert len(stream.follow(request, answer(request, body))) == len(names) - 1
    (rejected,) = stream.parse(unit_of(request, body)).rejected
    assert "names no report" in rejected.reason


# --- rows of others


def test_statements_of_another_basis_company_or_period_never_come_in() -> None:
    stream, request = asked(*PAGES[0][:2])
    page = json.loads(fixture("statements.json"))
    for field, value in (("fs_div", "CFS"), ("corp_code", "00999992"), ("bsns_year", "2025"), ("reprt_code", "11011"),
                         ("rcept_no", "２０２６０５１５０００７７７")):  # fmt: skip
        mixed = page | {"list": [page["list"][0] | {field: value}, *page["list"][1:]]}
        parsed = stream.parse(unit_of(request, json.dumps(mixed).encode()))
        assert [each.position for each in parsed.rejected] == ["row 1"], field
    assert finance.PARTS["OFS"][1] == (("fs_div", "OFS"),)


# --- archives


def packed(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with zipfile.ZipFile(made, "w", method) as archive:
            for name, content in members:
                archive.writestr(name, content)
    return made.getvalue()


def broken(archive: bytes, seed: int) -> Iterator[bytes]:
    """The archive with bytes changed, left out or put in, most of them where its directory is."""
    chance = random.Random(seed)
    directory = archive.index(b"PK\x01\x02")
    for _ in range(250):
        body = bytearray(archive)
        for _ in range(chance.randrange(1, 5)):
            at = chance.randrange(directory if chance.random() < 0.6 else 0, len(archive) - 8)
            put = chance.choice((b"", b"\xff\xff\xff\xff", b"\0\0\0\0", chance.randbytes(3)))
            body[at : at + chance.randrange(0, 5)] = put
        yield bytes(body)


def read_corps(archive: bytes) -> None:
    _, request = asked("dart.corp_codes", corps.KEY)
    list(corps.parse(unit_of(request, archive)).batches[0].rows)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize(
    ("name", "member", "read"),
    [
        ("docs.zip", f"{NUMBER}.xml", lambda body: documents.read(body, NUMBER)),
        ("docs.zip", "가나.xml", lambda body: documents.plain_text(body, NUMBER)),
        ("corps.zip", "CORPCODE.xml", read_corps),
    ],
)
def test_an_archive_that_is_damaged_anywhere_is_refused_and_never_taken_for_trouble_of_the_store(
    name: str, member: str, read: Callable[[bytes], object], method: int
) -> None:
    """Whatever opening it raises: an OSError would be taken for the raw store's, and the answer read for ever."""
    with zipfile.ZipFile(FIXTURES / "dart" / name) as archive:
        content = archive.read(archive.namelist()[-1])
    whole = packed([(member, content)], method)
    read(whole)
    refused = 0
    for body in broken(whole, method):
        try:
            read(body)
        except ParseError:
            refused += 1
    assert refused > 100


def test_an_archive_that_claims_more_than_can_be_is_refused_before_it_is_unpacked() -> None:
    zeros = b"\0" * (1 << 20)
    bomb = bytearray(packed([(f"{n}.xml", zeros) for n in range(40)]))
    place = 0
    while (place := bomb.find(b"PK\x01\x02", place)) >= 0:
        bomb[place + 24 : place + 28] = struct.pack("<I", 8 << 20)
        place += 4
    with pytest.raises(ParseError, match="claims to hold 40 files of 335,544,320 bytes"):
        documents.read(bytes(bomb), NUMBER)
    with pytest.raises(ParseError, match="201 files"):
        documents.read(packed([(f"{n}.xml", b"<P>1</P>") for n in range(201)]), NUMBER)
    # One that claims less than it has is cut where it said, and found out.
    liar = bytearray(packed([("a.xml", zeros)]))
    place = liar.find(b"PK\x01\x02")
    liar[place + 24 : place + 28] = struct.pack("<I", 10)
    with pytest.raises(ParseError):
        documents.read(bytes(liar), NUMBER)


def test_names_in_an_archive_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    main = f"<DOCUMENT><DOCUMENT-NAME>반기보고서{'가' * 3_000}</DOCUMENT-NAME><BODY><P>1,234</P></BODY></DOCUMENT>"
    members = [
        ("../../../etc/cron.d/evil.xml", b"<P>9</P>"), ("/etc/passwd.xml", b"<P>9</P>"),
        ("..\\..\\evil.xml", b"<P>9</P>"), (f"folder/{NUMBER}.XML", main.encode()),
        (f"{NUMBER}.xml", b"<P>second of the name</P>"), ("run.sh", b"rm"),
    ]  # fmt: skip
    found = documents.read(packed(members), NUMBER)
    assert (found.member, "1,234" in found.text) == (f"{NUMBER}.XML", True)
    assert [name for name, _ in found.others] == ["evil.xml", "passwd.xml", "evil.xml", f"{NUMBER}.xml"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoding", ["utf-8", "cp949"])
@pytest.mark.parametrize("shift", range(3))
def test_what_a_file_calls_itself_is_read_wherever_its_first_bytes_end(encoding: str, shift: int) -> None:
    """The head that is looked at ends within a character of two or three bytes, or between two."""
    head = f"<DOCUMENT>{' ' * shift}<DOCUMENT-NAME>연결감사보고서</DOCUMENT-NAME><BODY><P>{'가나다' * 3_000}</P>"
    (member,) = documents.members_of(packed([("a_00760.xml", head.encode(encoding))]))
    assert member.title == "연결감사보고서"


def test_an_archive_of_anything_else_is_no_document() -> None:
    with pytest.raises(ParseError, match="is no document"):
        documents.read(fixture("corps.zip"), NUMBER)
    for tag in (b"<HTML>", b"<table>", b"<DOCUMENT>"):
        assert documents.read(packed([("any.xml", tag + b"1")]), NUMBER).text == "1"
    assert documents.read(packed([("any.txt", b"1")]), NUMBER).text == "1"


def test_a_list_of_companies_of_which_none_can_be_read_is_refused_however_long() -> None:
    rows = "<list><corp_code>1</corp_code><corp_name>가</corp_name></list>" * (corps.MOST_REJECTED + 10)
    with pytest.raises(ParseError, match="no company that can be read"):
        read_corps(packed([("CORPCODE.xml", f"<result>{rows}</result>".encode())]))


# --- every recording


def test_every_recorded_answer_is_read_by_whoever_asks_for_it_or_refused() -> None:
    """Whose reading is tried in detail elsewhere is read; what no stream asks for is data of nobody's."""
    if not SAMPLES.exists():
        pytest.skip("the recorded answers (../shared/upstream/samples) are not here")
    said = {}
    for file in sorted(SAMPLES.iterdir()):
        for stream in registry.source("dart").streams:
            request = lists.first_request(lists.of_year("00126380", 2023 if "2023" in file.name else 2024), None)
            if stream.name == "dart.docs":
                request = docs.request(DOCUMENT)
            if stream.name == "dart.corp_codes":
                _, request = asked(stream.name, corps.KEY)
            elif stream.name in ("dart.finance", "dart.report"):
                _, request = asked(*next((name, key) for name, key, _ in PAGES if name == stream.name))
            given = answer(request, file.read_bytes())
            try:
                told = str(stream.classify(given))
                if told == AnswerClass.DATA:
                    parsed = stream.parse(unit_of(request, file.read_bytes()))
                    told = f"{sum(1 for batch in parsed.batches for _ in batch.rows)} rows"
            except Exception as no:
                told = type(no).__name__
            said[file.name, stream.name.partition(".")[2]] = told
    read = {place: told for place, told in said.items() if told.endswith("rows")}
    assert read.keys() == {
        ("corpCode_excerpt.zip", "corp_codes"), ("document_dissolution_01619513.zip", "docs"),
        ("list_20230101_20230208_page1.json", "disclosures"), ("list_samsung_202401.json", "disclosures"),
    }, read  # fmt: skip
    assert set(said.values()) - set(read.values()) <= {
        "AnswerError", "ParseError", "QuotaUsedUp", str(AnswerClass.EMPTY), str(AnswerClass.ABSENT),
    }, said  # fmt: skip


DOCUMENT = docs.Report("20250210000001", "01619513", "439410", lists.date(2025, 2, 10), "반기보고서", "2024.12", False)
