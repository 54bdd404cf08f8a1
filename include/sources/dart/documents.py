"""A DART document as what it is made of: chapters in their order and order of rank, paragraphs, and tables as grids.

Promises: every piece of text belongs to one chapter, the innermost that was open, so that no chapter repeats another's
text; cells that span others are placed as they would be seen, and what they span is empty; what an unclosed tag leaves
open is closed by the next of its kind. Never: a column is made up, a number is read, or a document is refused because
it is not well formed.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from include.contract import ParseError
from include.sources.dart import text as reading

# An archive that claims more than this is none of DART's.
MOST_MEMBERS, LARGEST_MEMBER = 200, 256 << 20
# A span that reaches further is a slip of the pen.
MOST_SPAN = 200

_DOCUMENT_NAME = re.compile(r"<DOCUMENT-NAME\b[^<>]*>([^<]*)", re.IGNORECASE)
# Tags that the walk looks at beside cells, rows and breaks, and words in a cell's tag that say more of it.
_WEIGHTY = re.compile(r"/?(?:TABLE|TITLE|TABLE-GROUP|SECTION-[1-5])")
_SHAPED = re.compile(r"SPAN|ACODE|AUNIT", re.IGNORECASE)
_UNIT = re.compile(r"단\s*위\s*[:：]?\s*([^()\n\t]{1,40})")


class Cell(NamedTuple):
    """One cell: where it stands, how far it reaches, its text, and what a standard form calls its field.

    `code` names the field (ACODE, AUNIT), the same for all companies; `value` is what a cell that shows a choice or
    a day stands for (AUNITVALUE), `context` the period and basis of an XBRL element (ACONTEXT).
    """

    row: int
    column: int
    rows: int
    columns: int
    text: str
    code: str | None = None
    value: str | None = None
    context: str | None = None


@dataclass(frozen=True)
class Table:
    """A table: its cells, the unit that stands before it, and the group of a statement that it is in.

    `is_unstructured`: one cell holds all of it, line by line, as old filings do; columns cannot be told.
    """

    cells: tuple[Cell, ...]
    unit: str | None = None
    group: str | None = None
    is_unstructured: bool = False

    @property
    def grid(self) -> list[list[str]]:
        """The rows as they would be seen; what a cell spans beside its first place is empty."""
        if not self.cells:
            return []
        height = max(cell.row for cell in self.cells) + 1
        width = max(cell.column + cell.columns for cell in self.cells)
        grid = [[""] * width for _ in range(height)]
        for cell in self.cells:
            grid[cell.row][cell.column] = cell.text
        return grid

    @property
    def text(self) -> str:
        """A line for each row, cells with a tab between them."""
        if self.is_unstructured:
            return self.cells[0].text
        return "\n".join("\t".join(row).rstrip("\t") for row in self.grid)


@dataclass
class Section:
    """One chapter: its place among all, its level (0 is what stands before the first), its parent's place, and more.

    `slot` is the official place of the chapter in the form (AASSOCNOTE), steadier than its heading.
    """

    order: int
    level: int
    parent: int | None
    title: str = ""
    slot: str | None = None
    number: str | None = None
    blocks: list[str | Table] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its own paragraphs and tables, without those of the chapters within it."""
        return "\n".join(block if isinstance(block, str) else block.text for block in self.blocks)

    @property
    def tables(self) -> list[Table]:
        """Its own tables."""
        return [block for block in self.blocks if isinstance(block, Table)]


@dataclass(frozen=True)
class Member:
    """One file of a document's archive, with what it calls itself."""

    name: str
    content: bytes
    title: str


@dataclass(frozen=True)
class Document:
    """A document read: the member that is the filing itself, how it was decoded, its chapters, and other members."""

    member: str
    encoding: str
    replaced: int
    sections: tuple[Section, ...]
    others: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """All chapters in order, each under its heading."""
        parts = []
        for section in self.sections:
            parts += [section.title, section.text]
        return "\n".join(part for part in parts if part)


def read(archive: bytes, rcept_no: str, report_name: str = "") -> Document:
    """Read the archive of a filing.

    Raises:
        ParseError: it is no archive, holds no document, or claims sizes that none of DART's has.
    """
    members = members_of(archive)
    chosen = main_member(members, rcept_no, report_name)
    decoded = reading.decode(chosen.content)
    return Document(
        chosen.name,
        decoded.encoding,
        decoded.replaced,
        sections_of(decoded.text),
        tuple((member.name, member.title) for member in members if member is not chosen),
    )


def plain_text(archive: bytes, rcept_no: str, report_name: str = "") -> reading.Decoded:
    """Return the plain text of a filing's own document, with how it was decoded.

    Raises:
        ParseError: as `read`.
    """
    decoded = reading.decode(main_member(members_of(archive), rcept_no, report_name).content)
    return reading.Decoded(reading.plain(decoded.text), decoded.encoding, decoded.replaced)


def members_of(archive: bytes) -> list[Member]:
    """Return the documents of an archive, read in memory and never written under their own names.

    Raises:
        ParseError: see `read`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = [each for each in opened.infolist() if not each.is_dir()]
            if len(entries) > MOST_MEMBERS:
                raise ParseError(f"the archive holds {len(entries)} files")
            found = []
            for each in entries:
                if not each.filename.lower().endswith((".xml", ".html", ".htm", ".txt")):
                    continue
                if each.file_size > LARGEST_MEMBER:
                    raise ParseError(f"{each.filename} claims to have {each.file_size:,} bytes")
                content = opened.read(each)
                name = each.filename.replace("\\", "/").rpartition("/")[2]
                head = _DOCUMENT_NAME.search(reading.decode(content[:8_192]).text)
                found.append(Member(name, content, " ".join(head[1].split()) if head else ""))
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise ParseError(f"the archive cannot be read: {error}") from None
    if not found:
        raise ParseError("the archive holds no document")
    return found


def main_member(members: Sequence[Member], rcept_no: str, report_name: str = "") -> Member:
    """Return the filing itself: the member named after it, else the one that calls itself so, else no attachment.

    Neither the order of an archive nor the size of its members says which one it is.
    """
    for member in members:
        if member.name.rpartition(".")[0] == rcept_no:
            return member
    wanted = "".join(report_name.split())
    for member in members:
        title = "".join(member.title.split())
        if wanted and title and (title in wanted or wanted in title):
            return member
    return next((member for member in members if "_" not in member.name), members[0])


# --- chapters -----------------------------------------------------------------------------------------

_CELLS = frozenset(("TD", "TH", "TE", "TU"))
_BREAKS = frozenset(
    ("P", "/P", "PGBRK", "DIV", "/DIV", "LI", "/LI", "H1", "/H1", "H2", "/H2", "H3", "/H3", "H4", "/H4", "HR",
     "/DOCUMENT-NAME", "/FORMULA-VERSION", "/COMPANY-NAME", "/COVER-TITLE", "/IMG-CAPTION", "BR", "OPTION", "DT", "DD")
)  # fmt: skip


# What a tag means to the walk.
_NOTHING, _TEXT, _CELL, _CELL_ENDS, _ROW, _BREAK, _OTHER = range(7)


class _Meanings(dict[str, int]):
    """What each tag means, found out once for each spelling."""

    def __missing__(self, tag: str) -> int:
        name = reading.name_of(tag)
        if not name:
            meaning = _TEXT
        elif name in _CELLS:
            meaning = _CELL
        elif name[1:] in _CELLS and name[0] == "/":
            meaning = _CELL_ENDS
        elif name == "TR":
            meaning = _ROW
        elif name in _BREAKS:
            meaning = _BREAK
        else:
            meaning = _OTHER if _WEIGHTY.fullmatch(name) else _NOTHING
        self[tag] = meaning
        return meaning


@dataclass
class _Open:
    """A table that is being read: its rows of cells, and the text of the cell that is open."""

    rows: list[list[tuple[str, list[str]]]] = field(default_factory=list)
    cell: list[str] | None = None


class _Reader:
    """Walks over a document once, from its first piece to its last."""

    def __init__(self) -> None:
        self.sections = [Section(0, 0, None)]
        self.open: list[Section] = [self.sections[0]]
        self.tables: list[_Open] = []
        self.words: list[str] = []
        self.group: str | None = None
        self.title_tag = ""
        self.shapes = _Shapes()

    def walk(self, text: str) -> tuple[Section, ...]:
        meanings, cut = _Meanings(), reading.pieces(text)
        self.words.append(cut[0])
        # The table that is open, and where text goes: into its open cell, or the paragraph.
        table: _Open | None = None
        into: list[str] = self.words
        for tag, words in zip(cut[1::2], cut[2::2], strict=True):
            meaning = meanings[tag]
            if meaning == _CELL and table is not None:
                into = table.cell = []
                if not table.rows:
                    table.rows.append([])
                table.rows[-1].append((tag, into))
            elif meaning == _CELL_ENDS:
                if table is not None:
                    table.cell, into = None, self.words
            elif meaning == _ROW:
                if table is not None:
                    table.cell, into = None, self.words
                    table.rows.append([])
            elif meaning == _BREAK:
                if table is not None and table.cell is not None:
                    into.append("\n")
                else:
                    self._end_paragraph()
                    into = self.words
            elif meaning == _TEXT:
                into.append(tag)
            elif meaning != _NOTHING:
                self._other(reading.name_of(tag), tag)
                table = self.tables[-1] if self.tables else None
                into = self.words if table is None or table.cell is None else table.cell
            if words:
                into.append(words)
        while self.tables:
            self._end_table()
        self._end_paragraph()
        first = self.sections[0]
        return tuple(self.sections if first.blocks or len(self.sections) == 1 else self.sections[1:])

    def _other(self, name: str, tag: str) -> None:
        if name == "TABLE":
            if not self.tables:
                self._end_paragraph()
            self.tables.append(_Open())
        elif name == "/TABLE":
            self._end_table()
        elif name == "TITLE":
            self._end_paragraph()
            self.title_tag = tag
        elif name == "/TITLE":
            self._end_title()
        elif "SECTION-" in name:
            self._section(name)
        elif name == "TABLE-GROUP":
            self.group = reading.attributes(tag).get("ACLASS")
        elif name == "/TABLE-GROUP":
            self.group = None

    def _section(self, name: str) -> None:
        while self.tables:
            self._end_table()
        self._end_paragraph()
        level = int(name[-1])
        while len(self.open) > 1 and self.open[-1].level >= level:
            self.open.pop()
        if name[0] != "/":
            section = Section(len(self.sections), level, self.open[-1].order if self.open[-1].level else None)
            self.sections.append(section)
            self.open.append(section)

    def _end_title(self) -> None:
        title = " ".join(reading.unescape("".join(self.words)).split())
        self.words = []
        section = self.open[-1]
        if section.level and not section.title and not section.blocks:
            found = reading.attributes(self.title_tag)
            section.title, section.slot, section.number = title, found.get("AASSOCNOTE"), found.get("ATOCID")
        elif title:
            section.blocks.append(title)

    def _end_paragraph(self) -> None:
        if not self.words:
            return
        joined, self.words = reading.unescape("".join(self.words)), []
        self.open[-1].blocks.extend(reading.lines(joined))

    def _end_table(self) -> None:
        if not self.tables:
            return
        ended = self.tables.pop()
        table = _placed(ended, self.group, self.shapes)
        if table is None:
            return
        if self.tables:
            # A table within a cell is that cell's text.
            outer = self.tables[-1]
            (outer.cell if outer.cell is not None else self.words).append(f"\n{table.text}\n")
            return
        blocks = self.open[-1].blocks
        blocks.append(_with_unit(table, blocks))


class _Shape(NamedTuple):
    """What a cell's tag says of it."""

    rows: int
    columns: int
    code: str | None
    value: str | None
    context: str | None


_PLAIN_SHAPE = _Shape(1, 1, None, None, None)


class _Shapes(dict[str, _Shape]):
    """What each cell's tag says, found out once for each spelling."""

    def __missing__(self, tag: str) -> _Shape:
        shape = _PLAIN_SHAPE
        if _SHAPED.search(tag):
            found = reading.attributes(tag)
            shape = _Shape(
                _span(found.get("ROWSPAN")),
                _span(found.get("COLSPAN")),
                found.get("ACODE") or found.get("AUNIT"),
                found.get("AUNITVALUE"),
                found.get("ACONTEXT"),
            )
        self[tag] = shape
        return shape


def _placed(table: _Open, group: str | None, shapes: _Shapes) -> Table | None:
    """Place the cells of a table as they would be seen; None where it has no text at all."""
    cells: list[Cell] = []
    # Columns that cells of the rows before still reach into, and for how many rows.
    taken: dict[int, int] = {}
    rows = [row for row in table.rows if row]
    is_single = len(rows) == 1 and len(rows[0]) == 1
    for place, row in enumerate(rows):
        column, upcoming = 0, {at: left - 1 for at, left in taken.items() if left > 1}
        for tag, words in row:
            while column in taken:
                column += 1
            written = words[0] if len(words) == 1 else "".join(words)
            if "&" in written:
                written = reading.unescape(written)
            text = "\n".join(reading.lines(written)) if is_single else " ".join(written.split())
            shape = shapes[tag]
            if shape is _PLAIN_SHAPE:
                cells.append(Cell(place, column, 1, 1, text))
                column += 1
                continue
            cells.append(Cell(place, column, shape.rows, shape.columns, text, shape.code, shape.value, shape.context))
            if shape.rows > 1:
                for at in range(column, column + shape.columns):
                    upcoming[at] = max(upcoming.get(at, 0), shape.rows - 1)
            column += shape.columns
        taken = upcoming
    if not any(cell.text for cell in cells):
        return None
    return Table(tuple(cells), None, group, is_single and "\n" in cells[0].text)


def _span(text: str | None) -> int:
    return min(max(int(text), 1), MOST_SPAN) if text and text.strip().isdecimal() else 1


def _with_unit(table: Table, before: Sequence[str | Table]) -> Table:
    """Give a table the unit that its caption, or the paragraph or small table right before it, names."""
    said = [cell.text for cell in table.cells if cell.row == 0][-1:]
    if before:
        last = before[-1]
        said.append(last if isinstance(last, str) else last.text if len(last.cells) <= 4 else "")
    for words in said:
        if "단" in words and (found := _UNIT.search(words)) is not None:
            return Table(table.cells, found[1].strip(), table.group, table.is_unstructured)
    return table


def sections_of(text: str) -> tuple[Section, ...]:
    """Read the chapters of a document; of one without any, such as an exchange disclosure, one of level 0."""
    return _Reader().walk(text)
