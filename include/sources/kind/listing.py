"""Reading KIND's list of companies: a table in HTML that is called a spreadsheet.

Promises: bytes are decoded strictly as CP949, a row that cannot be is refused by itself; columns are found by their
headings, codes stay text; what is no list, or only the beginning of one, is never read as a list. Never: a company is
dropped without a word, and nothing is guessed from a file's name or a content type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from html.parser import HTMLParser
from typing import Any

from include.contract import (
    Answer,
    AnswerClass,
    AnswerError,
    Batch,
    Parsed,
    ParseError,
    Rejected,
    Unit,
)
from include.sources.kind.tables import COMPANIES, EXCLUDED

PARSER_VERSION = 1

NAME, CODE, MARKET = "회사명", "종목코드", "시장구분"
_HEADINGS = {
    NAME: "name",
    CODE: "code",
    MARKET: "market",
    "업종": "sector",
    "주요제품": "products",
    "상장일": "listed_on",
    "결산월": "closing_month",
    "대표자명": "representatives",
    "홈페이지": "website",
    "지역": "region",
}
_MARKETS = {
    **dict.fromkeys(("유가", "유가증권", "유가증권시장", "코스피", "KOSPI"), "KOSPI"),
    **dict.fromkeys(("코스닥", "코스닥시장", "KOSDAQ"), "KOSDAQ"),
    **dict.fromkeys(("코넥스", "코넥스시장", "KONEX"), "KONEX"),
}
LEFT_OUT = ("KONEX",)
_MONTH = re.compile(r"(0?[1-9]|1[0-2])월?")
_CODE = re.compile(r"[0-9A-Z]{6}")
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
# Words of the portal's own pages about maintenance: checks, works, a service that is not offered right now.
_MAINTENANCE = re.compile(r"점검|시스템\s*작업|서비스\s*(제공\s*불가|중단|중지)|maintenance", re.IGNORECASE)
_LINES = re.compile(r"\s*[\r\n\t]\s*")
_SPAC = re.compile(r"스팩([0-9]+호)?$")


def decoded(body: bytes) -> str:
    """Decode a body: CP949, or UTF-8 where only that shows the headings, or is text.

    Bytes that are no text stay recognisable, so that the row with them can be refused.
    """
    if body.startswith(b"\xef\xbb\xbf"):
        return body[3:].decode("utf-8", "surrogateescape")
    text = body.decode("cp949", "surrogateescape")
    if CODE in text:
        return text
    unicode = body.decode("utf-8", "surrogateescape")
    # A page without the headings, such as one about maintenance, is what can be read.
    return text if CODE not in unicode and any("\udc80" <= letter <= "\udcff" for letter in unicode) else unicode


def classify(answer: Answer) -> AnswerClass:
    """Tell a list from everything else that the portal sends with a good status.

    Raises:
        AnswerError: a page about maintenance, a list that ends in the middle, or one that shows nobody.
    """
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    body = answer.body.read()
    text = decoded(body)
    is_page = text.lstrip("\ufeff \r\n\t")[:1] == "<"
    if answer.status != 200:
        return AnswerClass.BLOCKED if answer.status == 403 and is_page else AnswerClass.ERROR
    if not is_page:
        return AnswerClass.ERROR
    table = read_table(text)
    if table is None:
        title = _title(text)
        if _MAINTENANCE.search(text):
            raise AnswerError(f"KIND shows a page about maintenance instead of the list: {title}")
        if "<table" in text.lower() and CODE in text and not _is_closed(text):
            raise AnswerError("the list ends before its first row", may_pass=True)
        return AnswerClass.BLOCKED
    if not table.is_closed:
        raise AnswerError(f"the list ends in the middle, after {len(table.rows):,} rows", may_pass=True)
    if not any(len(row) > 1 for row in table.rows):
        raise AnswerError("the list shows no company, which is never right; the one before stays")
    return AnswerClass.DATA


def _is_closed(text: str) -> bool:
    return "</table" in text.lower()


def _title(text: str) -> str:
    found = _TITLE.search(text)
    words = " ".join(re.sub(r"<[^>]*>", " ", found[1] if found else text).split())
    return words[:120] or "(no words)"


# --- the table ----------------------------------------------------------------------------------------


@dataclass
class Listed:
    """The table with the companies: its headings, its rows of cells, and whether its end is there."""

    headings: list[str]
    rows: list[list[str]] = field(default_factory=list)
    is_closed: bool = False


# What is markup in such a table; anything else between angle brackets is somebody's text.
_MARKUP = frozenset((
    "a", "b", "br", "big", "body", "caption", "center", "col", "colgroup", "div", "em", "font", "form", "h1", "h2",
    "h3", "h4", "head", "html", "i", "img", "input", "li", "link", "meta", "nobr", "ol", "p", "pre", "script",
    "small", "span", "strong", "style", "sub", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr",
    "u", "ul",
))  # fmt: skip
_CELLS, _BREAKS = ("td", "th"), ("br", "p", "div", "li")


class _Reader(HTMLParser):
    """Finds the first table with a row of our headings and collects its rows."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: Listed | None = None
        self._depth = 0
        self._at = 0
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._is_silent = False

    @property
    def _is_over(self) -> bool:
        return self.found is not None and self.found.is_closed

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._is_over:
            return
        if tag not in _MARKUP:
            self.handle_data(self.get_starttag_text() or "")
        elif tag in ("script", "style"):
            self._is_silent = True
        elif tag == "table":
            self._depth += 1
        elif tag == "tr":
            self._end_row()
            self._row = []
        elif tag in _CELLS:
            self._end_cell()
            self._cell = []
        elif tag in _BREAKS and self._cell is not None:
            self._cell.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if self._is_over:
            return
        if tag not in _MARKUP:
            self.handle_data(f"</{tag}>")
        elif tag in ("script", "style"):
            self._is_silent = False
        elif tag in _CELLS:
            self._end_cell()
        elif tag == "tr":
            self._end_row()
        elif tag == "table":
            self._end_row()
            if self.found is not None and self._depth == self._at:
                self.found.is_closed = True
            self._depth -= 1

    def handle_data(self, data: str) -> None:
        if self._cell is not None and not self._is_silent:
            self._cell.append(data)

    def _end_cell(self) -> None:
        if self._cell is not None and self._row is not None:
            self._row.append(_LINES.sub(" ", "".join(self._cell)).strip())
        self._cell = None

    def _end_row(self) -> None:
        self._end_cell()
        row, self._row = self._row, None
        if not row:
            return
        if self.found is not None:
            self.found.rows.append(row)
        elif CODE in row or NAME in row:
            self.found, self._at = Listed(row), self._depth


def read_table(text: str) -> Listed | None:
    """Return the table with the companies, None where there is none."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.found


# --- its rows -----------------------------------------------------------------------------------------


def parse(unit: Unit) -> Parsed:
    """Read the list: the companies, and those that are left out by policy.

    A list without the column of markets, as it was until 2025, is read as it is; what it lacks is put aside in words,
    so that nothing is concluded from it.

    Raises:
        ParseError: a column is missing or has another heading, or a code is there twice.
    """
    (answer,) = unit.answers
    table = read_table(decoded(answer.body.read()))
    if table is None or not table.is_closed:
        raise ParseError("it is no whole table with the heading 종목코드")
    rejected: list[Rejected] = []
    if MARKET not in table.headings:
        why = f"the column {MARKET} is missing: markets are not known, and KONEX could not be left out"
        rejected.append(Rejected("heading", why, " | ".join(table.headings)))
    unknown = _check_headings(table.headings)
    companies: list[tuple[Any, ...]] = []
    excluded: list[tuple[Any, ...]] = []
    seen, markets = set[str](), set[str | None]()
    for number, cells in enumerate(table.rows, start=1):
        try:
            row, extra = _company(table.headings, cells)
            if row["code"] in seen:
                raise ValueError(f"{row['code']} is in the list twice")
        except ValueError as error:
            text = " | ".join(cells).encode("utf-8", "replace").decode()
            rejected.append(Rejected(f"row {number}", str(error), text[:2000]))
            continue
        seen.add(row["code"])
        markets.add(row["market"])
        if row["market"] in LEFT_OUT:
            excluded.append(tuple(row[name] for name in EXCLUDED.column_names))
        else:
            companies.append((*(row[name] for name in COMPANIES.column_names), extra or None))
    if not seen:
        # KIND changed, which is one thing to tell and not one for each row.
        last = rejected[-1]
        raise ParseError(f"none of {len(table.rows):,} rows can be read; {last.position}: {last.reason}")
    if MARKET in table.headings and not markets & set(_MARKETS.values()):
        said = ", ".join(sorted(map(str, markets))[:5])
        raise ParseError(f"the column {MARKET} names no market that is known ({said}), and KONEX could not be left out")
    return Parsed((Batch(COMPANIES, companies), Batch(EXCLUDED, excluded)), tuple(rejected), unknown)


def _check_headings(headings: Sequence[str]) -> tuple[str, ...]:
    """Return the headings that nobody knows.

    Raises:
        ParseError: one that is needed is missing, or has become another.
    """
    unknown = tuple(sorted(heading for heading in headings if heading not in _HEADINGS))
    missing = [heading for heading in _HEADINGS if heading not in headings]
    if missing == [MARKET] and not unknown:
        return ()
    if missing:
        other = f"; in its place may be {', '.join(unknown)}" if unknown else ""
        raise ParseError(f"the column {', '.join(missing)} is missing{other}")
    if len(set(headings)) < len(headings):
        raise ParseError("two columns have the same heading")
    return unknown


def _company(headings: Sequence[str], cells: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Turn the cells of a row into values, and into what is under headings that nobody knows.

    Raises:
        ValueError: why the row cannot be read.
    """
    if len(cells) != len(headings):
        raise ValueError(f"it has {len(cells)} cells under {len(headings)} headings")
    if any("\udc80" <= letter <= "\udcff" for cell in cells for letter in cell):
        raise ValueError("it holds bytes that are no CP949")
    given = dict(zip(headings, cells, strict=True))
    row: dict[str, Any] = {name: given.get(heading) or None for heading, name in _HEADINGS.items()}
    code = str(row["code"] or "")
    # A reader before us may have taken digits for a number and lost its zeros.
    row["code"] = code.zfill(6) if code.isascii() and code.isdigit() else code
    if not _CODE.fullmatch(row["code"]):
        raise ValueError(f"{code!r} is no code of six digits or capital letters")
    if row["name"] is None:
        raise ValueError("the company has no name")
    row["market"] = _MARKETS.get(row["market"], row["market"])
    row["listed_on"] = _day(row["listed_on"])
    row["closing_month"] = _month(row["closing_month"])
    row["is_spac"] = bool(_SPAC.search(row["name"]))
    row["is_reit"] = _is_reit(row["name"], row["sector"] or "")
    return row, {heading: text for heading, text in given.items() if heading not in _HEADINGS}


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no day") from None


def _month(text: str | None) -> int | None:
    if text is None:
        return None
    found = _MONTH.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no month")
    return int(found[1])


def _is_reit(name: str, sector: str) -> bool:
    """Say whether it is a trust: many names merely contain the syllables, such as 메리츠금융지주."""
    if name.endswith("리츠"):
        return not name.endswith("메리츠")
    return "리츠" in name and sector.startswith("부동산")
