"""What a filing of the stand-in holds, and the archive that DART makes of it: house format or HTML, in two encodings.

Promises: a filing's document is the same whenever it is asked for, but for the instant in its archive; every one says
what it holds (`written`), so that what was read of it can be compared. The form is as unruly as the real one: bare `&`
and `<`, cells that nobody closes, attributes without quotes, attachments before the filing itself. Never: a byte of
CP949 that the text does not need, unless the filing is one of the few with bytes that are no text.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from random import Random

from include.sandbox.dart_filings import SEOUL, Filing

PERIODIC = ("사업보고서", "반기보고서", "분기보고서")
# One in so many filings has its document later than it is listed, one in so many is in CP949, and one in so many of
# these has bytes that are none of its.
LATE, OLD_ENCODING, SPOILT = 12, 5, 10
LATE_BY = (timedelta(minutes=20), timedelta(hours=6))

_TITLES = (
    ("I. 회사의 개요", ("1. 회사의 개요", "2. 회사의 연혁", "3. 자본금 변동사항")),
    ("II. 사업의 내용", ("1. 사업의 개요", "2. 주요 제품 및 서비스")),
    ("III. 재무에 관한 사항", ("1. 요약재무정보", "2. 연결재무제표", "3. 연결재무제표 주석")),
    ("IV. 이사의 경영진단 및 분석의견", ()),
    ("V. 회계감사인의 감사의견 등", ("1. 외부감사에 관한 사항",)),
    ("XII. 상세표", ()),
)
_SENTENCES = (
    "당사는 {0}원을 A & B 합작사에 출자하였으며 <당기> 말 지분율은 {1}%입니다.",
    "매출은 전기 <표 {1}> 대비 {0}원 증가하였고, 영업이익률이 10% < 15% 로 개선되었습니다.",
    "그 밖의 사항은 '주석 {1}'을 참고하시기 바랍니다.&cr;2. 종속회사 현황은 &nbsp;{0}원입니다.",
    "똠방각하 주식회사와 {0}원 규모의 공급계약을 체결하였습니다.",
)
_ROWS = ("매출액", "영업이익", "당기순이익", "자산총계", "부채총계", "자본총계")


@dataclass(frozen=True)
class Chapter:
    """One chapter as it is written: its level, heading, official place, lines, and the rows of its table."""

    level: int
    title: str
    slot: str
    lines: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Written:
    """What a filing's document holds: its chapters, or for a notice of the exchange the rows of its only table."""

    name: str
    chapters: tuple[Chapter, ...]
    is_page: bool
    encoding: str
    spoilt: int

    @property
    def source(self) -> str:
        """The text of the document as it is stored, where it is one of the house format."""
        return _house(self)


def is_periodic(filing: Filing) -> bool:
    """Whether a filing is an annual, half-year or quarterly report."""
    return any(f"{name} (" in filing.title for name in PERIODIC)


def there_from(filing: Filing) -> datetime:
    """The instant from which a filing's document can be had."""
    chance = Random(f"{filing.rcept_no}/late")
    if chance.randrange(LATE):
        return filing.at
    soonest, latest = LATE_BY
    return filing.at + soonest + (latest - soonest) * chance.random()


@lru_cache(maxsize=256)
def written(filing: Filing) -> Written:
    """Return what a filing's document holds."""
    chance = Random(f"{filing.rcept_no}/document")
    encoding = "utf-8" if chance.randrange(OLD_ENCODING) else "cp949"
    spoilt = 2 if encoding == "cp949" and not chance.randrange(SPOILT) else 0
    name = filing.title.rpartition("]")[2].partition(" (")[0].strip()
    if filing.rcept_no[8:10] == "80":
        return Written(name, (_chapter(chance, 0, name, 0),), True, encoding, 0)
    chapters = []
    if is_periodic(filing):
        for one, (title, parts) in enumerate(_TITLES, start=1):
            chapters.append(_chapter(chance, 1, title, one))
            for two, part in enumerate(parts, start=1):
                chapters.append(_chapter(chance, 2, part, one, two))
                if part.endswith("주석"):
                    chapters += [_chapter(chance, 3, f"{n}. 주석", one, two, n) for n in (1, 2)]
    else:
        chapters = [_chapter(chance, 1, name, 0), _chapter(chance, 2, "1. 세부사항", 1)]
    return Written(name, tuple(chapters), False, encoding, spoilt)


def _chapter(chance: Random, level: int, title: str, *place: int) -> Chapter:
    lines = [
        sentence.format(f"{chance.randrange(10**10):,}", chance.randrange(1, 99))
        for sentence in chance.sample(_SENTENCES, chance.randrange(1, 4))
    ]
    rows = [("구분", "당기", "전기")] + [
        (row, f"{chance.randrange(10**9):,}", f"({chance.randrange(10**6):,})" if chance.randrange(3) else "-")
        for row in chance.sample(_ROWS, chance.randrange(2, 6))
    ]
    slot = "-".join(["D-0", *map(str, (*place, 0, 0, 0)[:3])])
    return Chapter(level, title, slot, tuple(lines), tuple(rows))


def archive(filing: Filing, at: datetime) -> bytes:
    """Return the archive of a filing's document, made at an instant; of an annual report the audit comes first."""
    found = written(filing)
    members = [(f"{filing.rcept_no}.xml", encoded(found))]
    if found.name == "사업보고서":
        members.insert(0, (f"{filing.rcept_no}_00760.xml", _audit(filing).encode("utf-8")))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        for name, body in members:
            made.writestr(zipfile.ZipInfo(name, at.astimezone(SEOUL).timetuple()[:6]), body, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def encoded(found: Written) -> bytes:
    """Return the bytes of a document in its encoding, which its own heading need not name."""
    body = (_page(found) if found.is_page else found.source).encode(found.encoding, errors="xmlcharrefreplace")
    for _ in range(found.spoilt):
        place = body.rindex(b"</P>")
        body = body[:place] + b"\xff" + body[place:]
    return body


def _house(found: Written) -> str:
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<DOCUMENT xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n'
        f'<DOCUMENT-NAME ACODE="11011">{found.name}</DOCUMENT-NAME>\n<FORMULA-VERSION ADATE="20240101">5.7'
        '</FORMULA-VERSION>\n<COMPANY-NAME AREGCIK="00100000">회사</COMPANY-NAME>\n<BODY>\n'
    ]
    open_levels: list[int] = []
    for number, chapter in enumerate(found.chapters, start=1):
        while open_levels and open_levels[-1] >= chapter.level:
            parts.append(f"</SECTION-{open_levels.pop()}>\n")
        open_levels.append(chapter.level)
        parts.append(
            f'<SECTION-{chapter.level} ACLASS="MANDATORY">\n<TITLE ATOC="Y" AASSOCNOTE="{chapter.slot}" '
            f'ATOCID="{number}">{chapter.title}</TITLE>\n'
        )
        parts += [f'<P USERMARK="F-BT14">{line}</P>\n' for line in chapter.lines]
        parts.append("<P>(단위 : 백만원)</P>\n" + _table(chapter.table))
    parts += [f"</SECTION-{level}>\n" for level in reversed(open_levels)]
    return "".join([*parts, "</BODY>\n</DOCUMENT>\n"])


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["<TABLE BORDER=1 WIDTH=600>\n<TBODY>\n"]
    for number, row in enumerate(rows):
        closed = "" if number % 3 == 1 else "</TR>"
        cells = [f"<TD WIDTH=200>{row[0]}</TD>"]
        cells += [f'<TE ACODE="AMT_{place}" ALIGN="RIGHT">{cell}' for place, cell in enumerate(row[1:], start=1)]
        lines.append(f"<TR>{''.join(cells)}{closed}\n")
    return "".join([*lines, "</TBODY>\n</TABLE>\n"])


def _page(found: Written) -> str:
    rows = "".join(
        f"<tr>{''.join(f'<td><span class=xforms_input>{cell}</span></td>' for cell in row)}</tr>\n"
        for row in found.chapters[0].table
    )
    return (
        '<html><head><meta http-equiv="Content-Type" content="text/html; charset=utf-8"><style>td{border:1px}</style>'
        f"</head><body>\n<p>{found.name}</p>\n<table>\n{rows}</table>\n<p>끝</p></body></html>\n"
    )


def _audit(filing: Filing) -> str:
    lines = "".join(f"<P>감사인의 책임 {number}</P>\n" for number in range(400))
    return (
        f'<DOCUMENT>\n<DOCUMENT-NAME ACODE="00760">감사보고서</DOCUMENT-NAME>\n<COMPANY-NAME>{filing.company.name}'
        f"</COMPANY-NAME>\n<BODY>\n{lines}</BODY>\n</DOCUMENT>\n"
    )


# --- the web site's pages of it -----------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a chapter with all that is in it stands within the stored document: heading, level, first and length."""

    title: str
    level: int
    offset: int
    length: int


def places(found: Written) -> list[Place]:
    """Return where the chapters of a document stand, each with the chapters within it."""
    source, marked = found.source, []
    at = 0
    for chapter in found.chapters:
        at = source.index(f"<SECTION-{chapter.level} ", at) + 1
        marked.append((chapter, at - 1))
    made = []
    for place, (chapter, start) in enumerate(marked):
        end = next((at for other, at in marked[place + 1 :] if other.level <= chapter.level), len(source))
        made.append(Place(chapter.title, chapter.level, start, end - start))
    return made
