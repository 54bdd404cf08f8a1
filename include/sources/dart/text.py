"""From the bytes of a DART document to text and to pieces: tags that the house format knows, and all else as text.

DART's documents are a house format that looks like XML: bare `&` and `<`, unclosed cells, attributes without quotes,
entities of its own, and older ones in CP949. So a tag is what begins with a known name and looks like one; `<당기>`,
`<표 1>` and `A<B` are text.

Promises: bytes are decoded before anything looks at them, strictly as UTF-8, then strictly as CP949, then as that of
the two which leaves fewer replacements, and these are counted; every digit of the text is in what comes out. Never: an
exception for a byte or a tag that is not as it should be.
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
_QUOTED_TAG = re.compile(r'(</?[A-Za-z][^<>"]*(?:"[^"<]*"[^<>"]*)*>|<[^<>]+>)')
_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9:_-]*)")
# What may stand behind a name: nothing, a slash, or something with a value.
_REST = re.compile(
    r"\s*/?\s*|\s[^=]*=.*|\s+(?:NOWRAP|NOSHADE|CHECKED|SELECTED|DISABLED)\s*/?\s*", re.DOTALL | re.IGNORECASE
)
_ASIDE = re.compile(r"<!--.*?-->|<\?[^<>]*\?>|<!DOCTYPE[^<>]*>|<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_SCRIPT = re.compile(r"<(?:script|style)\b", re.IGNORECASE)
_ASIDE_BEGINS = re.compile(r"<!|<(?:script|style)\b", re.IGNORECASE)
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
    # No character of CP949 is the replacement itself. One byte that is no text must not turn all of a document in UTF-8
    # into something else: what leaves fewer such places is what it was written in.
    old, new = (body.decode(name, errors="replace") for name in ("cp949", "utf-8"))
    if new.count(REPLACEMENT) < old.count(REPLACEMENT):
        return Decoded(new, "utf-8", new.count(REPLACEMENT))
    return Decoded(old, "cp949", old.count(REPLACEMENT))


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


class Odd(Exception):
    """A document holds what is rare: a comment, a script, or a value in quotes with the sign that ends a tag."""


def tags_of(run: str) -> list[str]:
    """Cut a run of tags: text and tags in turn, beginning and ending with text.

    Raises:
        Odd: where its tags end cannot be told from it alone; then the document is cut by `pieces`.
    """
    cut = _TAG.split(run)
    if _ASIDE_BEGINS.search(run) or any(tag.count('"') % 2 for tag in cut[1::2]):
        raise Odd
    return cut


def pieces(text: str) -> list[str]:
    """Cut a whole document like that, whatever it holds; comments and scripts are left out."""
    text = _CDATA.sub(lambda found: found[1].replace("<", "&lt;"), text)
    return _QUOTED_TAG.split(_ASIDE.sub(" ", text))


# --- the plain text -----------------------------------------------------------------------------------

# What a tag comes to where only the text is wanted: a new line, the end of a cell, a blank, or nothing.
# Rows and cells begin with it and need no end, as what follows begins with one too.
_LINES_BEGIN = "TITLE P PGBRK TR DIV TABLE LI H1 H2 H3 H4 HR OPTION DT DD"
_LINES_END = "TITLE P DIV TABLE LI H1 H2 H3 H4 COVER-TITLE DOCUMENT-NAME FORMULA-VERSION COMPANY-NAME IMG-CAPTION"
_LINE = frozenset(_LINES_BEGIN.split()) | frozenset(f"/{name}" for name in _LINES_END.split())
_CELL = frozenset(("TD", "TH", "TE", "TU"))


# Tags with nothing but blanks between and behind them, as one piece: half as many pieces. What it takes for a tag may
# hold the beginning of another, and is looked at again; looking for that in the whole text would take twice as long.
_RUN = re.compile(rb"(<[^>]*+>(?: *+<[^>]*+>)*+ *+)")
_BLANKS = bytes.maketrans(b"\t\n\r", b"   ")
_BYTES_CDATA = re.compile(rb"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_BYTES_ASIDE = re.compile(_ASIDE.pattern.encode(), re.DOTALL | re.IGNORECASE)
_BYTES_QUOTED_TAG = re.compile(_QUOTED_TAG.pattern.encode())


class _Plain(dict[bytes, bytes]):
    """What each tag, or run of tags, comes to, found out once for each spelling."""

    def __init__(self, *, looks_for_odd: bool) -> None:
        super().__init__()
        self.looks_for_odd = looks_for_odd

    def __missing__(self, run: bytes) -> bytes:
        # Names and signs are ASCII in both encodings; all else comes out as it went in.
        spelled = run.decode("latin-1")
        parts = tags_of(spelled) if self.looks_for_odd else _QUOTED_TAG.split(spelled)
        text = "".join(self._one(part) if place % 2 else part for place, part in enumerate(parts))
        if not text.strip(" ") and " " in text:
            # Blanks between tags keep the words beside them apart.
            text = " "
        self[run] = said = text.encode("latin-1")
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


_SPACES = re.compile(r"  +")


def plain(content: bytes) -> Decoded:
    """Return the text of a document alone: a line for each paragraph and row, cells with a tab between them.

    Tags are taken out before the text is decoded, which is as safe: in neither encoding is a sign that begins or ends a
    tag within a character, nor is it taken into one that is broken off. It leaves half as much to be decoded.
    """
    body = content.removeprefix(b"\xef\xbb\xbf").translate(_BLANKS, _CONTROLS)
    try:
        cut = _RUN.split(body)
        cut[1::2] = map(_Plain(looks_for_odd=True).__getitem__, cut[1::2])
    except Odd:
        body = _BYTES_CDATA.sub(lambda found: found[1].replace(b"<", b"&lt;"), body)
        cut = _BYTES_QUOTED_TAG.split(_BYTES_ASIDE.sub(b" ", body))
        cut[1::2] = map(_Plain(looks_for_odd=False).__getitem__, cut[1::2])
    decoded = decode(b"".join(cut))
    # Blanks are one at most, and none beside the end of a line or cell; no line is empty.
    joined = _SPACES.sub(" ", decoded.text.replace("\xa0", " ").replace("\u3000", " "))
    joined = joined.replace(" \t", "\t").replace("\t ", "\t")
    kept = "\n".join(filter(None, map(str.strip, joined.split("\n"))))
    return Decoded(unescape(kept).strip(), decoded.encoding, decoded.replaced)


def lines(text: str) -> Iterator[str]:
    """Return the lines of a text without blanks at their ends, empty ones left out."""
    for line in text.split("\n"):
        if stripped := " ".join(line.split()):
            yield stripped
