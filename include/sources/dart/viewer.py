"""DART's web pages of a filing, for what its interface does not give: the main page, its list of parts, and their text.

A site for people, not an interface: two seconds between pages, one clock for all, and no key, so that the source that
asks it is one without a key. `main_request` begins, `follow` gives the pages of the parts, `read` the text of all.

Promises: a part that another one holds is not asked for, so that no text comes twice; a page of another filing is
refused. What has no text, and what can only be downloaded, are told apart from an error. Never: a page without a part,
such as one about maintenance, is taken for a filing without text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal
from urllib.parse import parse_qs

from include.contract import Answer, AnswerClass, AnswerError, HostGroup, ParseError, Request
from include.sources.dart import text as reading

HOST = "https://dart.fss.or.kr"
MAIN, PART = f"{HOST}/dsaf001/main.do", f"{HOST}/report/viewer.do"
# The address is blocked for what all of its workers do, here and at the interface: 30 pages a minute beside the 500
# requests of the interface stay well under the 1,000 at which that happens.
HOST_GROUP = HostGroup(
    "dart-viewer", interval=timedelta(seconds=2.1), penalty=timedelta(hours=1), busy_wait=timedelta(minutes=1)
)
# The longest of reports have some fifteen chapters; a page that claims more than this is none of DART's.
MOST_PARTS = 150

_NODE_NEW = r"(?P<new>node[0-9])\s*=\s*(?:\{\s*\}|new\s+Object\(\s*\))"
_NODE_SET = (
    r"""(?P<node>node[0-9])(?:\[\s*['"](?P<key>\w+)['"]\s*\]|\.(?P<name>\w+))\s*=\s*"""
    r"""(?:"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'|(?P<bare>[0-9]+))"""
)
_NODES = re.compile(f"{_NODE_NEW}|{_NODE_SET}")
_ESCAPED = re.compile(r"\\(.)")
_VIEW = re.compile(r"viewDoc\(\s*" + r"\s*,\s*".join([r"""['"]([^'"]*)['"]"""] * 6))
_SELECT = re.compile(r"<select\b[^>]*\bid\s*=\s*['\"]?(?P<id>att|family)\b[^>]*>(?P<options>.*?)</select>", re.S | re.I)
_OPTION = re.compile(r"<option\b[^>]*\bvalue\s*=\s*(?:\"([^\"]*)\"|'([^']*)')[^>]*>([^<]*)", re.I)
_DOWNLOAD = re.compile(r"\bbtnDown\b|/pdf/download/|openPdfDownload\s*\(\s*['\"]", re.I)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.S | re.I)
_PAGE_TITLE = re.compile(rb"<title[^>]*>.*?</title>", re.S | re.I)
_KEPT_OUT = re.compile(
    r"접[근속]\s*차단|비정상적인 접근|\b(?:access|request)\s+(?:denied|blocked|rejected)\b|^blocked$|unusual traffic|"
    r"web firewall",
    re.I,
)
_OUT_OF_ORDER = re.compile(
    r"(?:시스템|서비스)\s*(?:점검|오류|에러|(?:일시\s*)?중[단지]\s*안내)|에러\s*페이지|^\s*error\b|\bmaintenance\b|"
    r"^\s*[45][0-9]{2}\b",
    re.I,
)
# What such a page says to its reader, and no filing does; looked for where there are hardly any words beside it.
_TOLD_KEPT_OUT = re.compile(r"비정상적인 접근이 감지|접[근속]이 차단되|requested URL was rejected", re.I)
_TOLD_OUT_OF_ORDER = re.compile(r"점검\s*중입니다|이용에 불편을 드려|잘못된 접근입니다")
_HARDLY_ANY = 300
_KEY = re.compile(r"(?P<number>[0-9]{14})/viewer")


@dataclass(frozen=True)
class Node:
    """A part of a filing as the main page lists it: heading, level (1 is a chapter), and where its text is.

    `offset` and `length` are places in the stored document of this very version, and never a name of the part.
    """

    title: str
    level: int
    rcept_no: str | None
    document: str
    element: str
    offset: str
    length: str
    dtd: str

    def holds(self, other: Node) -> bool:
        """Whether the text of another part stands within this one's."""
        mine, its = self._span(), other._span()
        if mine is None or its is None or self.document != other.document:
            return False
        return mine[0] <= its[0] and its[1] <= mine[1]

    def _span(self) -> tuple[int, int] | None:
        if not (self.offset.isdecimal() and self.length.isdecimal()) or not int(self.length):
            return None
        return int(self.offset), int(self.offset) + int(self.length)


@dataclass(frozen=True)
class Main:
    """What a filing's main page says: its parts in order, attachments and other versions (number, document, title).

    `is_download_only`: it has no part to be read, and a button to download it.
    """

    nodes: tuple[Node, ...]
    attachments: tuple[tuple[str, str, str], ...] = ()
    versions: tuple[tuple[str, str, str], ...] = ()
    is_download_only: bool = False

    @property
    def parts(self) -> list[Node]:
        """The parts that together are all of the text, once."""
        found: list[Node] = []
        for node in self.nodes:
            if not any(other.holds(node) for other in found):
                found = [other for other in found if not node.holds(other)]
                found.append(node)
        return found


@dataclass(frozen=True)
class Reading:
    """The text of a filing, or why there is none, and how many bytes of it could not be read.

    `text`: it is there; `no_body`: its parts hold none, as where they are pictures; `download_only`: it can only be had
    as a file, which is told and not fetched.
    """

    state: Literal["text", "no_body", "download_only"]
    text: str
    parts: int
    replaced: int
    attachments: tuple[tuple[str, str, str], ...] = ()


# --- what is asked ------------------------------------------------------------------------------------


def main_request(rcept_no: str, day: date | None = None) -> Request:
    """Return the request for a filing's main page; `day` is the day of its receipt."""
    unit = f"{rcept_no}/viewer"
    return Request(unit, MAIN, unit, day, params=(("rcpNo", rcept_no),), kind="list", required=False)


def of_key(key: str, day: date | None = None) -> Request | None:
    """Return the request that a key names; None where it names none."""
    found = _KEY.fullmatch(key)
    return main_request(found["number"], day) if found else None


def follow(request: Request, answer: Answer) -> Sequence[Request]:
    """Return the requests for the parts of a filing, once its main page is there."""
    if request.key != request.unit:
        return ()
    return [
        Request(
            f"{request.unit}/{order}",
            PART,
            request.unit,
            request.session_date,
            params=(
                ("rcpNo", _number(request)),
                ("dcmNo", node.document),
                ("eleId", node.element),
                ("offset", node.offset),
                ("length", node.length),
                ("dtd", node.dtd),
            ),
            kind="list",
            required=False,
            about={"part": order},
        )
        for order, node in enumerate(read_main(answer.body.read(), _number(request)).parts, start=1)
    ]


def _number(request: Request) -> str:
    return request.unit.partition("/")[0]


# --- what is answered ---------------------------------------------------------------------------------


def classify(answer: Answer) -> AnswerClass:
    """Tell what the site answered.

    Raises:
        AnswerError: a page that is neither of a filing nor of a part of one, in words.
    """
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    if answer.status == 403:
        return AnswerClass.BLOCKED
    if answer.status == 404:
        return AnswerClass.ABSENT
    body = answer.body.read()
    if answer.status != 200 or not body.strip():
        return AnswerClass.ERROR
    page = reading.decode(body).text
    said = _TITLE.search(page)
    title = " ".join(said[1].split())[:100] if said else ""
    request = answer.request
    is_main = request.key == request.unit
    if is_main and _is_of_a_filing(page):
        return AnswerClass.DATA
    # Judged by its title: a filing may well be about what is blocked or maintained.
    words = reading.plain(body).text if len(body) < 10 * _HARDLY_ANY else ""
    words = words if len(words) < _HARDLY_ANY else ""
    if _KEPT_OUT.search(title) or _TOLD_KEPT_OUT.search(words):
        return AnswerClass.BLOCKED
    is_out_of_order = _OUT_OF_ORDER.search(title) or _TOLD_OUT_OF_ORDER.search(words)
    if is_main or is_out_of_order or _is_no_part(body, page):
        raise AnswerError(
            f"DART's site answers with a page that is none of {_number(request)} ({title or 'without a title'!r}): a "
            "maintenance, an error or a new form, which says nothing about whether the filing has a text.",
            may_pass=True,
        )
    return AnswerClass.DATA


def _is_no_part(body: bytes, page: str) -> bool:
    """Whether it is no page at all, as an error of the interface's, or the page around the parts."""
    return body.lstrip()[:1] == b"{" or "<status>" in page[:500] or any(True for _ in _nodes(page))


def _is_of_a_filing(page: str) -> bool:
    return bool(any(True for _ in _nodes(page)) or _VIEW.search(page) or _DOWNLOAD.search(page))


def read_main(body: bytes, rcept_no: str) -> Main:
    """Read a filing's main page.

    Raises:
        ParseError: it lists no part, has nothing to download, is another filing's, or lists more parts than can be.
    """
    page = reading.decode(body).text
    listed = list(_nodes(page)) or list(_views(page))
    nodes = tuple(node for node in listed if node.rcept_no in (None, rcept_no))
    if listed and not nodes:
        raise ParseError(f"the page of {rcept_no} lists the parts of {listed[0].rcept_no} alone")
    if len(nodes) > MOST_PARTS:
        raise ParseError(f"the page of {rcept_no} lists {len(nodes)} parts, more than any report has")
    if not nodes and not _DOWNLOAD.search(page):
        raise ParseError(f"the page of {rcept_no} lists no part and has nothing to download")
    lists: dict[str, tuple[tuple[str, str, str], ...]] = {}
    for found in _SELECT.finditer(page):
        lists[found["id"].lower()] = tuple(_options(found["options"]))
    return Main(nodes, lists.get("att", ()), lists.get("family", ()), not nodes)


def _nodes(page: str) -> Iterator[Node]:
    """Read the tree of parts, object by object, in the order in which they are made."""
    made: list[tuple[int, dict[str, str]]] = []
    current: dict[str, dict[str, str]] = {}
    for found in _NODES.finditer(page):
        variable = found["new"] or found["node"]
        key = found["key"] or found["name"]
        if found["new"] or variable not in current or key in current[variable]:
            current[variable] = {}
            made.append((int(variable[4:]), current[variable]))
        if key:
            value = found["double"] if found["double"] is not None else found["single"] or found["bare"] or ""
            current[variable][key] = reading.unescape(_ESCAPED.sub(r"\1", value))
    for level, said in made:
        # One that lacks where it is cannot be asked for; nobody else's place is taken for it.
        if said.get("dcmNo") and said.get("eleId"):
            yield Node(
                " ".join(said.get("text", "").split()),
                level,
                said.get("rcpNo") or None,
                said["dcmNo"],
                said["eleId"],
                said.get("offset", "0"),
                said.get("length", "0"),
                said.get("dtd", "HTML"),
            )


def _views(page: str) -> Iterator[Node]:
    """Read the calls that show the only part of a filing that has no tree."""
    for number, document, element, offset, length, dtd in dict.fromkeys(_VIEW.findall(page)):
        if document:
            yield Node("", 1, number or None, document, element or "0", offset or "0", length or "0", dtd or "HTML")


def _options(options: str) -> Iterator[tuple[str, str, str]]:
    for double, single, title in _OPTION.findall(options):
        asked = parse_qs(reading.unescape(double or single))
        number, document = asked.get("rcpNo", [""])[0], asked.get("dcmNo", [""])[0]
        if number or document:
            yield number, document, " ".join(reading.unescape(title).split())


def read(answers: Sequence[Answer]) -> Reading:
    """Read the text of a filing from its main page and the pages of its parts, in the order of asking.

    Raises:
        ParseError: see `read_main`; or the page of a part is missing.
    """
    first, *pages = answers
    main = read_main(first.body.read(), _number(first.request))
    if len(pages) < len(main.parts):
        raise ParseError(f"{_number(first.request)} has {len(main.parts)} parts, and {len(pages)} of them are there")
    texts, replaced = [], 0
    for page in sorted(pages, key=lambda each: int(each.request.about["part"])):
        decoded = reading.plain(_PAGE_TITLE.sub(b" ", page.body.read()))
        replaced += decoded.replaced
        texts.append(decoded.text)
    text = "\n".join(each for each in texts if each)
    state: Literal["text", "no_body", "download_only"] = "text" if text else "no_body"
    if main.is_download_only:
        state = "download_only"
    return Reading(state, text, len(main.parts), replaced, main.attachments)
