"""The text of an annual or quarterly report, cut into its items.

Promises: every line of the report is in exactly one section, in order; what stands before the first item, the cover and
the table of contents, is section 0. A report without items is one section. Pages and plain text are read alike; rows of
tables are lines with a tab between cells; what a page hides, as the header of inline XBRL, is no text. Never: a
heading is made up, and a reference to an item within a sentence begins no section.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

FORMS = ("10-K", "10-K405", "10-KSB", "10-KT", "10-Q", "10-QSB", "10-QT", "20-F", "40-F")

_TOKEN = re.compile(r"<!--.*?-->|<[^<>]*>", re.DOTALL)
_NAME = re.compile(r"</?\s*([A-Za-z][\w:.-]*)")
_HIDES = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_ENDS_LINE = frozenset(
    (
        "p",
        "div",
        "br",
        "tr",
        "table",
        "ul",
        "ol",
        "li",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "center",
        "pre",
        "page",
    )
)
_UNSEEN = frozenset({"script", "style", "head", "ix:header"})
_VOID = frozenset({"br", "hr", "img", "input", "meta", "link", "col", "base", "area"})
_BLANKS = re.compile(r"[ \r\n\f\v\xa0\u2000-\u200b\u202f\u3000]+")
_TABS = re.compile(r"(?: ?\t ?)+")
_PART = re.compile(r"PART\s+(IV|III|II|I)\b[\s.,:;\u2010-\u2015-]*(.{0,80})", re.IGNORECASE)
_ITEM = re.compile(
    r"(?:PART\s+(?P<part>IV|III|II|I)[\s.,:;\u2010-\u2015-]+)?ITEM\s+(?P<item>[0-9]{1,2}(?:\s?[A-K](?![A-Za-z]))?)"
    r"(?P<mark>[\s.:;\u2010-\u2015)-]*)(?P<title>.*)",
    re.IGNORECASE,
)
# A heading is a line by itself, and a table of contents is a run of headings with next to nothing between them.
LONGEST_HEADING, CONTENTS_RUN, CONTENTS_GAP = 260, 4, 350
LONGEST_CELL = 400


@dataclass
class Section:
    """One item of a report: in which part, its number and heading as given, and its lines."""

    part: str | None = None
    item: str | None = None
    title: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its text, without its heading."""
        return "\n".join(self.lines)


def form_of(form: str) -> bool:
    """Say whether a form is one whose reports are cut, or an amendment of it."""
    return form.removesuffix("/A") in FORMS


def lines_of(document: str) -> list[str]:
    """The lines of a page or of plain text, without blank ones."""
    return [line for line in (_line(text) for text in _texts(document)) if line]


def _line(text: str) -> str:
    return _TABS.sub("\t", _BLANKS.sub(" ", text)).strip(" \t")


def _texts(document: str) -> Iterator[str]:
    # A comment that is never closed is none; looking for the end of each of many would take for ever.
    closed = max(document.rfind("-->"), 0)
    document = document[:closed] + document[closed:].replace("<!--", "<!")
    if not re.search(r"<(?:html|body|div|p|font|span)\b", document[:200_000], re.IGNORECASE):
        # Pages of old text are marked by tags of their own.
        yield from _TOKEN.sub("", document).split("\n")
        return
    yield from html.unescape("".join(_pieces(document))).split("\n")


def _pieces(document: str) -> list[str]:
    """The text of a page with its line ends: those that its tags make, and within `pre` its own."""
    kept: list[str] = []
    cells: list[int] = []
    at, hidden, hides, is_pre = 0, 0, "", False
    for token in _TOKEN.finditer(document):
        if not hidden and token.start() > at:
            text = document[at : token.start()]
            kept.append(text if is_pre else text.replace("\n", " "))
        at = token.end()
        tag = token[0]
        found = _NAME.match(tag)
        if found is None:
            continue
        name, is_end = found[1].lower(), tag[1] == "/"
        is_pair = name not in _VOID and not tag.endswith("/>")
        if hidden:
            # Only the element that hides ends it; elements of its name within it count.
            hidden += (-1 if is_end else 1) if name == hides and is_pair else 0
        elif not is_end and is_pair and (name in _UNSEEN or _HIDES.search(tag)):
            hidden, hides = 1, name
        elif name in ("td", "th"):
            if not is_end:
                cells.append(len(kept))
            elif cells:
                first = cells.pop()
                cell = "".join(kept[first:])
                # Paragraphs of a cell are one line of its row; a cell that holds a page is there for its place alone.
                kept[first:] = [cell.replace("\n", " ") if len(cell) <= LONGEST_CELL else cell, "\t"]
        elif name in _ENDS_LINE:
            is_pre = not is_end if name == "pre" else is_pre
            kept.append("\n")
    if not hidden:
        kept.append(document[at:])
    return kept


def cut(lines: list[str]) -> list[Section]:
    """Cut a report into its items; the first section is what stands before them."""
    heads = _heads(lines)
    sections = [Section()]
    part: str | None = None
    parts = {number: found for number, line in enumerate(lines) if (found := _part(line))}
    for number, line in enumerate(lines):
        part = parts.get(number, part)
        if (head := heads.get(number)) is not None:
            part = head.part or part
            sections.append(Section(part, head.item, head.title))
        else:
            sections[-1].lines.append(line)
    return sections


def _part(line: str) -> str | None:
    found = _PART.fullmatch(line)
    return found[1].upper() if found and not _ITEM.match(line) else None


@dataclass(frozen=True)
class _Head:
    part: str | None
    item: str
    title: str


def _head(line: str) -> _Head | None:
    """A line that is a heading of an item, None where it is a sentence that begins with one or names one."""
    if len(line) > LONGEST_HEADING:
        return None
    found = _ITEM.fullmatch(line.replace("\t", " "))
    if found is None:
        return None
    title = found["title"].strip()
    is_marked = bool(found["mark"].strip())
    if title and not is_marked and not (title[0].isupper() or title[0] in '(["\u201c'):
        return None
    part = found["part"].upper() if found["part"] else None
    return _Head(part, found["item"].upper().replace(" ", ""), title)


def _heads(lines: list[str]) -> dict[int, _Head]:
    """The headings by their line, those of a table of contents left out."""
    found = {number: head for number, line in enumerate(lines) if (head := _head(line)) is not None}
    numbers = sorted(found)
    sizes = [0]
    for line in lines:
        sizes.append(sizes[-1] + len(line) + 1)
    runs: list[list[int]] = []
    near: list[bool] = []
    for number in numbers:
        is_near = bool(runs) and sizes[number] - sizes[runs[-1][-1] + 1] <= CONTENTS_GAP
        # A table of contents names an item once, or once for each part of the form.
        if is_near and found[number].item not in {found[each].item for each in runs[-1]}:
            runs[-1].append(number)
        else:
            runs.append([number])
            near.append(is_near)
    is_contents = False
    for run, is_near in zip(runs, near, strict=True):
        is_long = len(run) >= CONTENTS_RUN or (is_near and is_contents)
        is_contents = is_long and _comes_again(found, numbers, run)
        for number in run if is_contents else ():
            if any(found[later].item == found[number].item for later in numbers if later > number and later in found):
                del found[number]
    return found


def _comes_again(found: dict[int, _Head], numbers: list[int], run: list[int]) -> bool:
    """Say whether most headings of a run come once more behind it."""
    later = {found[number].item for number in numbers if number > run[-1] and number in found}
    return 2 * sum(found[number].item in later for number in run) >= len(run)
