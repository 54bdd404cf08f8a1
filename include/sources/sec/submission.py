"""Reading a complete submission: the header's text, then one document after the other, without holding any of them.

Promises: whatever the era (privacy-enhanced mail around it, `<IMS-DOCUMENT>`, tags instead of labels, CR alone at the
end of lines, no header at all), each document is told with its place in the stored text, its size and its hash; a
document that is cut off, or whose uuencoding is broken, is told as that and the others are read. Never: a document is
dropped for its bytes, and the number that the header declares decides nothing.
"""

from __future__ import annotations

import binascii
import codecs
import hashlib
import html
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal

from include.contract import ParseError
from include.sources.sec.text import BLOCK, HOLD, LONGEST_LINE, Text

Charset = Literal["utf-8", "cp1252", "latin-1", "binary"]

_LONGEST_HEADER = 16 << 20
# So much of a document tells what it is.
_HEAD = 1 << 13

# A header by itself, without its first lines.
_BARE = (b"<ACCEPTANCE-DATETIME>", b"ACCESSION NUMBER:")
_STARTS = (
    b"<SEC-DOCUMENT>",
    b"<IMS-DOCUMENT>",
    b"<SEC-HEADER>",
    b"<IMS-HEADER>",
    b"<SUBMISSION>",
    b"<DOCUMENT>",
    b"-----BEGIN PRIVACY",
    *_BARE,
)
_CLOSINGS = (b"</SEC-DOCUMENT>", b"</IMS-DOCUMENT>", b"</SUBMISSION>", b"-----END PRIVACY-ENHANCED MESSAGE-----")
_WRAPPER = re.compile(rb"<(XBRL|XML|PDF|JSON)>[ \t]*(?:\r\n|\r|\n)?")
_CLOSING = re.compile(rb"(?:\r\n|\r|\n)?</(?:XBRL|XML|PDF|JSON)>[ \t\r\n]*\Z|(?:\r\n|\r|\n)\Z")
_BEGIN = re.compile(rb"begin [0-7]{3,4} ?(.*)")
_TAG = re.compile(r"<(TYPE|SEQUENCE|FILENAME|DESCRIPTION)>(.*)", re.DOTALL)
_OPENING = re.compile(r"<(?:SEC|IMS)-(?:DOCUMENT|HEADER)>\s*(\d{10}-\d\d-\d{6})?[^\s:]*\s*:?\s*(\d{8})?")
# What cp1252 leaves undefined: with one of these it is another character set.
_NOT_CP1252 = bytes((0x81, 0x8D, 0x8F, 0x90, 0x9D))
_LINK = re.compile(r"<a href=[^>]*>[^<]*</a><br>")


@dataclass(frozen=True)
class Document:
    """One document of a submission.

    `position` counts from one in the order of the file, as `sequence` may have gaps and names may repeat. `start` and
    `length` are where its bytes stand in the text as stored, without what EDGAR wraps around them; `size` and `sha256`
    are of the document itself, which is another thing where it is `uuencoded`. `charset` is the first of utf-8, cp1252
    and latin-1 that reads all of it, "binary" where it was uuencoded. `head` is its beginning, which tells what it is.
    `defect` says what is wrong with it, if anything.
    """

    position: int
    sequence: int | None
    type: str
    filename: str | None
    description: str | None
    wrapper: str | None
    is_uuencoded: bool
    charset: Charset
    start: int
    length: int
    size: int
    sha256: bytes
    head: bytes
    defect: str | None = None


class Submission:
    """A submission that is being read: its header is there at once, its documents come one after the other.

    `header` is the header's text, empty where there is none; `is_pem` says that it came as privacy-enhanced mail;
    `accession` and `released_on` (eight digits) are those of its first line, None where it has none.
    `has_all_of_header` says whether the header ends before the text does. `is_whole` says, once all documents were
    read, whether its own end was there; without a header it has none.
    """

    def __init__(self, stream: BinaryIO) -> None:
        """Read the header.

        Raises:
            ParseError: it is no submission at all, e.g. a page for people or nothing.
        """
        self._text = Text(stream)
        self._known = 0
        start = self._text.look(512).lstrip()
        self.is_pem = start.startswith(b"-----BEGIN PRIVACY")
        if start[:6].upper() == b"<HTML>" and b"SEC-HEADER" in start:
            # EDGAR's own page of the header: the same text, written for a browser.
            page = _LINK.sub("", decode(self._text.look(_LONGEST_HEADER)).rpartition("<PRE>")[2].partition("</PRE>")[0])
            self._text = Text(io.BytesIO(html.unescape(page).encode()))
            start = self._text.look(512)
        if not is_submission(start):
            what = "nothing" if not start else f"{start[:60].decode('ascii', 'replace')!r}"
            raise ParseError(f"it is no submission: it begins with {what}")
        self.is_whole = start.startswith(b"<DOCUMENT>")
        # A header by itself, without its first lines, has no end of its own.
        self.has_all_of_header = start.startswith(_BARE)
        self.header, self.accession, self.released_on = self._read_header()

    def _read_header(self) -> tuple[str, str | None, str | None]:
        lines: list[bytes] = []
        accession, released, size, in_mail = None, None, 0, self.is_pem
        while (line := self._text.line()) is not None:
            if line.strip() == b"<DOCUMENT>":
                self._known, self.has_all_of_header = 1, True
                break
            if line.startswith((b"</SEC-HEADER>", b"</IMS-HEADER>", b"</SUBMISSION>")):
                self.has_all_of_header = True
            in_mail = in_mail and not line.lstrip().startswith(b"<")
            if in_mail:
                continue
            size += len(line) + 1
            if size > _LONGEST_HEADER:
                raise ParseError(f"its header does not end within {_LONGEST_HEADER >> 20} MB")
            if found := _OPENING.match(decode(line)):
                accession, released = accession or found[1], released or found[2]
                continue
            if not line.startswith((b"</SEC-", b"</IMS-", b"<SUBMISSION>", b"</SUBMISSION>", b"-----END")):
                lines.append(line)
        return decode(b"\n".join(lines)).strip("\n"), accession, released

    @property
    def size(self) -> int:
        """How many bytes were read so far."""
        return self._text.at

    def documents(self) -> Iterator[Document]:
        """Read the documents in order, each to its end before the next."""
        text, position = self._text, 0
        while self._known or self._find_next():
            self._known, position = 0, position + 1
            yield self._document(text, position)

    def _find_next(self) -> bool:
        while (line := self._text.line()) is not None:
            line = line.strip()
            if line == b"<DOCUMENT>":
                return True
            self.is_whole = self.is_whole or line in _CLOSINGS
        return False

    def _document(self, text: Text, position: int) -> Document:
        heads: dict[str, str] = {}
        last, has_text = "", False
        while True:
            if text.begins(b"<TEXT>"):
                text.skip(6)
                has_text = True
                break
            if text.begins(b"</DOCUMENT>") or text.begins(b"<DOCUMENT>") or (line := text.line()) is None:
                break
            words = decode(line)
            if found := _TAG.match(words):
                last = found[1]
                heads.setdefault(last, found[2].strip())
            elif last and words.strip() and not words.startswith("<"):
                heads[last] = f"{heads[last]} {words.strip()}"
        content = _content(text, self.is_pem) if has_text else _NOTHING
        number = heads.get("SEQUENCE", "")
        return Document(
            position=position,
            sequence=int(number) if number.isascii() and number.isdigit() and len(number) < 10 else None,
            type=heads.get("TYPE", ""),
            filename=heads.get("FILENAME") or None,
            description=heads.get("DESCRIPTION") or None,
            wrapper=content.wrapper,
            is_uuencoded=content.is_uuencoded,
            charset=content.charset,
            start=content.start,
            length=content.length,
            size=content.size,
            sha256=content.digest,
            head=content.head,
            defect=content.defect,
        )


def read(stream: BinaryIO) -> Submission:
    """Begin to read a complete submission.

    Raises:
        ParseError: it is none; the text says what it begins with.
    """
    return Submission(stream)


def is_submission(head: bytes) -> bool:
    """Say whether a text that begins so is a complete submission."""
    return head.lstrip().startswith(_STARTS)


def is_ended(head: bytes, tail: bytes) -> bool:
    """Say whether a text with this beginning and end is whole; one without a header has no end of its own."""
    return head.lstrip().startswith(b"<DOCUMENT>") or tail.rstrip().endswith(_CLOSINGS)


def decode(text: bytes) -> str:
    """Return text by the first character set of utf-8, cp1252 and latin-1 that reads all of it, without NULs."""
    text = text.replace(b"\0", b"")
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1" if any(byte in text for byte in _NOT_CP1252) else "cp1252")


def cut(stream: BinaryIO, document: Document) -> Iterator[bytes]:
    """Cut a document that is not uuencoded out of the stored submission, in pieces."""
    left = document.start
    while left:
        skipped = stream.read(min(left, BLOCK))
        if not skipped:
            return
        left -= len(skipped)
    left = document.length
    while left and (piece := stream.read(min(left, BLOCK))):
        left -= len(piece)
        yield piece


# --- the content of one document


@dataclass(frozen=True)
class _Content:
    start: int
    length: int
    digest: bytes
    wrapper: str | None
    is_uuencoded: bool
    charset: Charset
    size: int
    head: bytes
    defect: str | None


_NOTHING = _Content(0, 0, hashlib.sha256().digest(), None, False, "utf-8", 0, b"", "it has no text")


def _content(text: Text, is_pem: bool) -> _Content:
    text.skip_line_end()
    wrapper = None
    if found := _WRAPPER.match(text.look(64)):
        wrapper = found[1].decode()
        text.skip(found.end())
    start = text.at
    begins = text.look(LONGEST_LINE).lstrip(b"\r\n")
    if _BEGIN.match(begins):
        return _uuencoded(text, start, wrapper, is_pem)
    head, look = text.look(_HEAD), Look()
    for piece in text.content():
        look.add(piece)
    look.end()
    defect = None if text.is_closed else "its end is missing: the text was cut off"
    size = look.size
    return _Content(start, size, look.digest, wrapper, False, look.charset, size, head[:size], defect)


class Look:
    """What is learnt from a document's bytes as they go by; the last few wait, for EDGAR's wrapper is none of them."""

    def __init__(self) -> None:
        self._hash, self._utf8 = hashlib.sha256(), codecs.getincrementaldecoder("utf-8")()
        self._is_utf8, self._is_cp1252, self._held = True, True, b""
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Look at the next piece."""
        piece = self._held + piece
        self._take(piece[:-HOLD])
        self._held = piece[-HOLD:]

    def end(self) -> None:
        """Look at what waited, now that nothing follows."""
        found = _CLOSING.search(self._held)
        self._take(self._held[: found.start()] if found else self._held)
        if self._is_utf8:
            self._try(b"", final=True)

    def _take(self, piece: bytes) -> None:
        self._hash.update(piece)
        self.size += len(piece)
        if piece.isascii():
            if self._is_utf8 and self._utf8.getstate()[0]:
                self._try(piece, final=False)
            return
        if self._is_utf8:
            self._try(piece, final=False)
        if self._is_cp1252:
            self._is_cp1252 = len(piece) == len(piece.translate(None, _NOT_CP1252))

    def _try(self, piece: bytes, *, final: bool) -> None:
        try:
            self._utf8.decode(piece, final)
        except UnicodeDecodeError:
            self._is_utf8 = False

    @property
    def digest(self) -> bytes:
        """The hash of what was looked at."""
        return self._hash.digest()

    @property
    def charset(self) -> Charset:
        """The first character set that reads all of it."""
        return "utf-8" if self._is_utf8 else "cp1252" if self._is_cp1252 else "latin-1"


def _uuencoded(text: Text, start: int, wrapper: str | None, is_pem: bool) -> _Content:
    """Decode line by line; what follows the end is passed over."""
    digest, size, defect, begun, ended, end = hashlib.sha256(), 0, None, False, False, start
    for line in text.content_lines():
        if is_pem and line.startswith(b"- -"):
            # Such mail marks lines that begin with a dash.
            line = line[2:]
        if not begun:
            begun = _BEGIN.match(line) is not None
        elif not ended:
            ended = line.strip() == b"end"
            if not ended and line.strip(b"\r\n"):
                try:
                    decoded = uudecode(line)
                except binascii.Error as error:
                    defect = defect or f"its uuencoding is broken: {error}"
                    decoded = b""
                digest.update(decoded)
                size += len(decoded)
        if not ended or line.strip() == b"end":
            end = text.at_content
    if not ended or not text.is_closed:
        defect = defect or "its end is missing: the text was cut off"
    return _Content(start, end - start, digest.digest(), wrapper, True, "binary", size, b"", defect)


def uudecode(line: bytes) -> bytes:
    """Decode one line, whose blanks at the end may be lost and which may be longer than it says.

    Raises:
        binascii.Error: there is a character in it that cannot be.
    """
    needed = 1 + (((line[0] - 32) & 63) * 4 + 2) // 3
    return binascii.a2b_uu(line[:needed].ljust(needed))
