"""From the bytes of a DART document to text and to pieces: tags that the house format knows, and all else as text.

DART's documents are a house format that looks like XML: bare `&` and `<`, unclosed cells, attributes without quotes,
entities of its own, and older ones in CP949. So a tag is what begins with a known name and looks like one; `<당기>`,
`<표 1>` and `A<B` are text.

Promises: bytes are decoded before anything looks at them, strictly as UTF-8, then strictly as CP949, then as CP949 with
replacements that are counted; every digit of the text is in what comes out. Never: an exception for a byte or a tag
that is not as it should be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.entities import html5

REPLACEMENT = "\ufffd"

# What the documents hold: the house format's own names, and those of the HTML that exchange disclosures are.
_HOUSE = (
    "DOCUMENT DOCUMENT-NAME FORMULA-VERSION COMPANY-NAME SUMMARY BODY COVER COVER-TITLE LIBRARY EXTRACTION SECTION-1 "
    "SECTION-2 SECTION-3 SECTION-4 SECTION-5 TITLE P SPAN PGBRK IMAGE IMG IMG-CAPTION CORRECTION ANNOTATION REMARK "
    "INFORMATION PART ESG TABLE-GROUP TABLE THEAD TBODY TFOOT COLGROUP COL TR TH TD TE TU"
)
_HTML = (
    "HTML HEAD META LINK STYLE SCRIPT DIV BR B I U S EM STRONG SUP SUB FONT A H1 H2 H3 H4 H5 H6 UL OL LI DL DT DD HR "
    "PRE CENTER CAPTION FORM INPUT SELECT OPTION TEXTAREA BUTTON LABEL IFRAME NOBR SMALL BIG STRIKE BLOCKQUOTE O:P XMP"
)
KNOWN = frozenset(f"{_HOUSE} {_HTML}".split())

_TAG = re.compile(r"(<[^<>]++>)")
# Tags with nothing but blanks between them, as one piece: half as many pieces.
_RUN = re.compile(r"(<[^<>]++>(?: ?<[^<>]++>)*+)")
_QUOTED_TAG = re.compile(r'(</?[A-Za-z][^<>"]*(?:"[^"<]*"[^<>"]*)*>|<[^<>]+>)')
_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9:_-]*)")
# What may stand behind a name: nothing, a slash, or something with a value.
_REST = re.compile(
    r"\s*/?\s*|\s[^=]*=.*|\s+(?:NOWRAP|NOSHADE|CHECKED|SELECTED|DISABLED)\s*/?\s*", re.DOTALL | re.IGNORECASE
)
_ASIDE = re.compile(r"<!--.*?-->|<\?[^<>]*\?>|<!DOCTYPE[^<>]*>|<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_SCRIPT = re.compile(r"<(?:script|style)\b", re.IGNORECASE)
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_ENTITY = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
# In neither encoding does any of them stand within a character.
_CONTROLS = bytes({*range(32), 127} - {9, 10, 13})
_ATTRIBUTE = re.compile(r"""([A-Za-z_:][\w:.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+))""")


@dataclass(frozen=True)
class Decoded:
    """The text of a document, by which encoding it was read, and how many bytes could not be."""

    text: str
    encoding: str
    replaced: int = 0


def decode(content: bytes) -> Decoded:
    """Decode the bytes of a document."""
    body = content.removeprefix(b"\xef\xbb\xbf").translate(None, _CONTROLS)
    try:
        return Decoded(body.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        pass
    try:
        return Decoded(body.decode("cp949"), "cp949")
    except UnicodeDecodeError:
        pass
    # No character of CP949 is the replacement itself.
    text = body.decode("cp949", errors="replace")
    return Decoded(text, "cp949", text.count(REPLACEMENT))


def name_of(tag: str) -> str:
    """Return a tag's name in capitals, with its slash where it closes; nothing where it is no tag but text."""
    found = _NAME.match(tag)
    if found is None:
        # What the document says to its readers, as which version it has, is no text.
        return "?" if tag.startswith("<?") else ""
    name = found[1].upper()
    if name not in KNOWN or not _REST.fullmatch(tag, found.end(), len(tag) - 1):
        return ""
    return f"/{name}" if tag[1] == "/" else name


def attributes(tag: str) -> dict[str, str]:
    """Return a tag's attributes, names in capitals."""
    return {name.upper(): unescape(quoted or single or bare) for name, quoted, single, bare in _ATTRIBUTE.findall(tag)}


def unescape(text: str) -> str:
    """Replace the entities that have a name or a number, and nothing else; `&cr;` is a line break of the house."""
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(found: re.Match[str]) -> str:
    name = found[1]
    if name == "cr":
        return "\n"
    if name == "nbsp":
        return " "
    if not name.startswith("#"):
        return html5.get(f"{name};", found[0])
    number = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    is_character = 0x20 <= number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF
    return chr(number) if is_character else " "


def pieces(text: str, pattern: re.Pattern[str] = _TAG) -> list[str]:
    """Cut a document: text and tags in turn, beginning and ending with text; comments and scripts are left out."""
    if "<!" in text:
        text = _CDATA.sub(lambda found: found[1].replace("<", "&lt;"), text)
        text = _ASIDE.sub(" ", text)
    cut = pattern.split(text)
    # What is rare is looked for among the spellings of tags, which are few; in the text it would cost a third more.
    spellings = set(cut[1::2])
    if any(_SCRIPT.search(tag) for tag in spellings):
        text = _ASIDE.sub(" ", text)
        cut = pattern.split(text)
    # A value in quotes may hold the sign that ends a tag.
    return _QUOTED_TAG.split(text) if any(tag.count('"') % 2 for tag in spellings) else cut


# --- the plain text -----------------------------------------------------------------------------------

# What a tag comes to where only the text is wanted: a new line, the end of a cell, a blank, or nothing.
# Rows and cells begin with it and need no end, as what follows begins with one too.
_LINES_BEGIN = "TITLE P PGBRK TR DIV TABLE LI H1 H2 H3 H4 HR OPTION DT DD"
_LINES_END = "TITLE P DIV TABLE LI H1 H2 H3 H4 COVER-TITLE DOCUMENT-NAME FORMULA-VERSION COMPANY-NAME IMG-CAPTION"
_LINE = frozenset(_LINES_BEGIN.split()) | frozenset(f"/{name}" for name in _LINES_END.split())
_CELL = frozenset(("TD", "TH", "TE", "TU"))


class _Plain(dict[str, str]):
    """What each tag, or run of tags, comes to, found out once for each spelling."""

    def __missing__(self, run: str) -> str:
        parts = _TAG.split(run)
        if all(map(name_of, parts[1::2])):
            # Blanks between two tags within a line keep their words apart.
            said = "".join(map(self._one, parts[1::2])) or (" " if " " in parts[2:-1:2] else "")
        else:
            said = "".join(self._one(part) if place % 2 else part for place, part in enumerate(parts))
        self[run] = said
        return said

    def _one(self, tag: str) -> str:
        name = name_of(tag)
        if not name:
            said = tag
        elif name in _LINE:
            said = "\n"
        elif name in _CELL:
            said = "\t"
        else:
            said = " " if name in ("BR", "SECTION-1", "SECTION-2", "SECTION-3") else ""
        return said


_INDENTED = re.compile(r"\n\s+")
# Blanks of every kind, then those beside an end of a line or cell, until none is left.
_SPACES = ("\xa0", "\u3000", "\r")
_DOUBLED = (("  ", " "), (" \t", "\t"), ("\t ", "\t"), (" \n", "\n"), ("\t\n", "\n"))


def plain(text: str) -> str:
    """Return the text alone: a line for each paragraph and row, cells with a tab between them."""
    cut = pieces(text.replace("\n", " "), _RUN)
    cut[1::2] = map(_Plain().__getitem__, cut[1::2])
    joined = "".join(cut)
    for space in _SPACES:
        joined = joined.replace(space, " ")
    for doubled, single in _DOUBLED:
        while doubled in joined:
            joined = joined.replace(doubled, single)
    return unescape(_INDENTED.sub("\n", joined)).strip()


def lines(text: str) -> Iterator[str]:
    """Return the lines of a text without blanks at their ends, empty ones left out."""
    for line in text.split("\n"):
        if stripped := " ".join(line.split()):
            yield stripped
