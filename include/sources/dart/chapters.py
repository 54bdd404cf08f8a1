"""A document's text as what it is made of: chapters in their order and rank, paragraphs, and tables as grids.

Promises: every piece of text belongs to one chapter, the innermost that was open, so that no chapter repeats another's
text; cells that span others are placed as they would be seen, and what they span is empty; what an unclosed tag leaves
open is closed by the next of its kind. Never: a column is made up, a number is read, or a document is refused because
it is not well formed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from include.sources.dart import text as reading

# A span that reaches further is a slip of the pen.
MOST_SPAN = 200

# Tags that the walk looks at beside cells, rows and breaks, and words in a cell's tag that say more of it.
_WEIGHTY = re.compile(r"/?(?:TABLE|TITLE|TABLE-GROUP|SECTION-[1-5])")
_SHAPED = re.compile(r"SPAN|ACODE|AUNIT", re.IGNORECASE)
_UNIT = re.compile(r"단\s*위\s*[:：]?\s*([^()\n\t]{1,40})")


class Cell(NamedTuple):
    """A cell that a standard form names: where it stands, its text, and what the form calls its field.

    `code` names the field (ACODE, AUNIT), the same for all companies; `value` is what a cell that shows a choice or
    a day stands for (AUNITVALUE), `context` the period and basis of an XBRL element (ACONTEXT).
    """

    row: int
    column: int
    text: str
    code: str
    value: str | None = None
    context: str | None = None


@dataclass(frozen=True)
class Table:
    """A table: its rows as they would be seen, the cells that the form names, the unit before it, and its statement.

    What a cell spans beside its first place is empty. `is_unstructured`: one cell holds all of it, line by line, as old
    filings do; columns cannot be told.
    """

    grid: list[list[str]]
    fields: tuple[Cell, ...] = ()
    unit: str | None = None
    group: str | None = None
    is_unstructured: bool = False

    @property
    def text(self) -> str:
        """A line for each row, cells with a tab between them."""
        if self.is_unstructured:
            return self.grid[0][0]
        return "\n".join(["\t".join(row).rstrip("\t") for row in self.grid])


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


_CELLS = frozenset(("TD", "TH", "TE", "TU"))
_BREAKS = frozenset(
    ("P", "/P", "PGBRK", "DIV", "/DIV", "LI", "/LI", "H1", "/H1", "H2", "/H2", "H3", "/H3", "H4", "/H4", "HR",
     "/DOCUMENT-NAME", "/FORMULA-VERSION", "/COMPANY-NAME", "/COVER-TITLE", "/IMG-CAPTION", "BR", "OPTION", "DT", "DD")
)  # fmt: skip


# What a tag means to the walk; _NEXT_ROW is a row and its first cell in one.
_NOTHING, _TEXT, _CELL, _CELL_ENDS, _ROW, _NEXT_ROW, _BREAK, _OTHER = range(8)
_CELL_BEGINS = frozenset((_CELL, _NEXT_ROW))
# What is to be done, the tag with which, and the words behind it; None: those behind the whole run of tags.
_Step = tuple[int, str, str | None]
# Tags with nothing but blanks between them, as one piece: half as many pieces.
_RUN = re.compile(r"(<[^>]*+>(?:\s*+<[^>]*+>)*+)")


class _Runs(dict[str, tuple[_Step, ...]]):
    """What each tag, or run of tags, means, found out once for each spelling."""

    def __init__(self, *, looks_for_odd: bool) -> None:
        super().__init__()
        self.looks_for_odd = looks_for_odd

    def __missing__(self, run: str) -> tuple[_Step, ...]:
        cut = reading.tags_of(run) if self.looks_for_odd else ["", run, ""]
        # What was taken for the beginning of a tag, and is text before one.
        steps: list[_Step] = [(_TEXT, cut[0], "")] if cut[0] else []
        for tag, words in zip(cut[1::2], [*cut[2:-1:2], None], strict=True):
            meaning = _meaning(tag)
            ends = steps and steps[-1][0] in (_CELL_ENDS, _NOTHING) and not (steps[-1][2] or "").strip()
            if meaning in (_CELL, _ROW, _CELL_ENDS) and ends:
                # Whatever begins a cell or row ends the one before.
                steps.pop()
            if meaning == _CELL and steps and steps[-1][0] == _ROW and not (steps[-1][2] or "").strip():
                meaning = _NEXT_ROW
                steps.pop()
            if meaning != _NOTHING or words or words is None:
                steps.append((meaning, tag, words))
        self[run] = found = tuple(steps)
        return found


def _meaning(tag: str) -> int:
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
    return meaning


# A cell as it is read: its tag, then the pieces of its text.
_Row = list[list[str]]


@dataclass
class _Open:
    """A table that is being read: its rows of cells, and the cell that is open."""

    rows: list[_Row] = field(default_factory=list)
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

    def walk(self, cut: list[str], meanings: _Runs) -> tuple[Section, ...]:
        self.words.append(cut[0])
        # The table that is open, its last row, and where text goes: into its open cell, or the paragraph.
        table: _Open | None = None
        row: _Row = []
        into: list[str] = self.words
        for run, behind in zip(cut[1::2], cut[2::2], strict=True):
            for meaning, tag, between in meanings[run]:
                words = behind if between is None else between
                if meaning in _CELL_BEGINS:
                    if table is not None:
                        if meaning == _NEXT_ROW or not table.rows:
                            row = []
                            table.rows.append(row)
                        table.cell = into = [tag, words]
                        row.append(into)
                        continue
                    # Outside of a table it only keeps words apart.
                    into.append(" ")
                elif meaning == _CELL_ENDS:
                    if table is not None:
                        table.cell, into = None, self.words
                    into.append(" ")
                elif meaning == _ROW:
                    if table is not None:
                        table.cell, into, row = None, self.words, []
                        table.rows.append(row)
                    into.append(" ")
                elif meaning == _BREAK:
                    if table is not None and table.cell is not None:
                        into.append("\n")
                    else:
                        self._end_paragraph()
                        into = self.words
                elif meaning == _TEXT:
                    into.append(tag)
                elif meaning == _OTHER:
                    self._other(reading.name_of(tag), tag)
                    table = self.tables[-1] if self.tables else None
                    row = table.rows[-1] if table is not None and table.rows else []
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
    grid: list[list[str]] = []
    fields: list[Cell] = []
    # Columns that cells of the rows before still reach into, and for how many rows.
    taken: dict[int, int] = {}
    rows = [row for row in table.rows if row]
    is_single = len(rows) == 1 and len(rows[0]) == 1
    for row in rows:
        line: list[str] = []
        upcoming = {at: left - 1 for at, left in taken.items() if left > 1}
        for cell in row:
            while len(line) in taken:
                line.append("")
            written = cell[1] if len(cell) == 2 else "".join(cell[1:])
            if "&" in written:
                written = reading.unescape(written)
            text = "\n".join(reading.lines(written)) if is_single else " ".join(written.split())
            shape = shapes[cell[0]]
            if shape is not _PLAIN_SHAPE:
                column = len(line)
                if shape.code:
                    fields.append(Cell(len(grid), column, text, shape.code, shape.value, shape.context))
                if shape.rows > 1:
                    for at in range(column, column + shape.columns):
                        upcoming[at] = max(upcoming.get(at, 0), shape.rows - 1)
                if shape.columns > 1:
                    line.append(text)
                    line.extend([""] * (shape.columns - 1))
                    continue
            line.append(text)
        grid.append(line)
        taken = upcoming
    if not any(map(any, grid)):
        return None
    width = max(map(len, grid))
    for line in grid:
        if len(line) < width:
            line.extend([""] * (width - len(line)))
    return Table(grid, tuple(fields), None, group, is_single and "\n" in grid[0][0])


def _span(text: str | None) -> int:
    return min(max(int(text), 1), MOST_SPAN) if text and text.strip().isdecimal() else 1


def _with_unit(table: Table, before: Sequence[str | Table]) -> Table:
    """Give a table the unit that its caption, or the paragraph or small table right before it, names."""
    said = [next((text for text in reversed(table.grid[0]) if text), "")]
    if before:
        last = before[-1]
        said.append(last if isinstance(last, str) else last.text if len(last.grid) * len(last.grid[0]) <= 4 else "")
    for words in said:
        if "단" in words and (found := _UNIT.search(words)) is not None:
            return replace(table, unit=found[1].strip())
    return table


def of(text: str) -> tuple[Section, ...]:
    """Read the chapters of a document; of one without any, such as an exchange disclosure, one of level 0."""
    try:
        return _Reader().walk(_RUN.split(text), _Runs(looks_for_odd=True))
    except reading.Odd:
        return _Reader().walk(reading.pieces(text), _Runs(looks_for_odd=False))
