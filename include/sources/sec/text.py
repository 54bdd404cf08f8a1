"""A submission's text as it comes: lines of any ending, and a document's content up to its end.

Promises: no more than a few blocks are held, whatever the size of a document or the length of a line. Never: what a
document holds is read for meaning here, beyond where it ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

BLOCK = 1 << 18
# The longest line of a header or of uuencoded text that is taken as one line.
LONGEST_LINE = 1 << 16
# No end of a document, with the line breaks within it, is longer.
HOLD = 256

_ENDS = re.compile(rb"</?(?:TEXT|DOCUMENT|SEC-DOCUMENT|IMS-DOCUMENT|SUBMISSION)>|-----END PRIVACY")
_AFTER_TEXT = re.compile(rb"\s*(?:</DOCUMENT>|<DOCUMENT>|</SEC-DOCUMENT>|</IMS-DOCUMENT>|</SUBMISSION>|-----END|\Z)")
_NEXT_TYPE = re.compile(rb"<DOCUMENT>\s*<TYPE>")


class Text:
    """Text in blocks: lines of any ending, and content up to the end of its document."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._buffer, self._from = stream, b"", 0
        self._before, self._is_over = 0, False
        # The byte before what is read next, within a document's content.
        self._last = b"\n"
        self.is_closed = False
        self.at_content = 0

    @property
    def at(self) -> int:
        """How many bytes stand before what is read next."""
        return self._before + self._from

    def look(self, size: int) -> bytes:
        """Return the next bytes, fewer only at the end."""
        while len(self._buffer) - self._from < size and self._more():
            pass
        return self._buffer[self._from : self._from + size]

    def _more(self) -> bool:
        if self._is_over:
            return False
        block = self._stream.read(BLOCK)
        self._is_over = not block
        self._before += self._from
        self._buffer, self._from = self._buffer[self._from :] + block, 0
        return bool(block)

    def begins(self, tag: bytes) -> bool:
        """Say whether a tag comes next."""
        return self.look(len(tag)) == tag

    def skip(self, size: int) -> None:
        """Pass over bytes that were looked at."""
        self._from += size

    def skip_line_end(self) -> None:
        """Skip blanks and one line's end, if there is one."""
        ahead = self.look(HOLD)
        stripped = ahead.lstrip(b" \t")
        for ending in (b"\r\n", b"\r", b"\n"):
            if stripped.startswith(ending):
                self.skip(len(ahead) - len(stripped) + len(ending))
                return

    def line(self) -> bytes | None:
        """Return the next line without its end, None where there is none; a very long one comes in pieces."""
        ahead = self.look(LONGEST_LINE)
        if not ahead:
            return None
        ends = [place for place in (ahead.find(b"\n"), ahead.find(b"\r")) if place >= 0]
        if not ends:
            self.skip(len(ahead))
            return ahead
        end = min(ends)
        self.skip(end + (2 if ahead[end : end + 2] == b"\r\n" else 1))
        return ahead[:end]

    def content(self) -> Iterator[bytes]:
        """Return what stands before the end of the document, in pieces; `is_closed` says whether there was one."""
        self.is_closed, self._last = False, b"\n"
        while True:
            if (end := self._end_of_content()) is not None:
                if end > self._from:
                    yield self._buffer[self._from : end]
                self.is_closed, self._from = True, end
                if self.begins(b"</TEXT>"):
                    self.skip(7)
                return
            # What may still turn out to be an end waits.
            upto = len(self._buffer) if self._is_over else len(self._buffer) - HOLD
            if upto > self._from:
                self._last = self._buffer[upto - 1 : upto]
                piece, self._from = self._buffer[self._from : upto], upto
                yield piece
            if self._is_over:
                return
            self._more()

    def _end_of_content(self) -> int | None:
        for found in _ENDS.finditer(self._buffer, self._from):
            if len(self._buffer) - found.start() < HOLD and not self._is_over:
                return None
            if self._is_end(found):
                return found.start()
        return None

    def _is_end(self, found: re.Match[bytes]) -> bool:
        tag, start = found[0], found.start()
        if tag == b"</TEXT>":
            return _AFTER_TEXT.match(self._buffer, found.end()) is not None
        before = self._buffer[start - 1 : start] if start > self._from else self._last
        if before not in (b"\r", b"\n"):
            return False
        if tag == b"<DOCUMENT>":
            return _NEXT_TYPE.match(self._buffer, start) is not None
        return tag.startswith((b"</", b"-"))

    def content_lines(self) -> Iterator[bytes]:
        """Return the content's lines; `at_content` is the place after the line."""
        rest, self.at_content = b"", self.at
        for piece in self.content():
            lines = (rest + piece).splitlines(keepends=True)
            rest = lines.pop() if lines else b""
            for line in lines:
                self.at_content += len(line)
                yield line.rstrip(b"\r\n")
        if rest:
            self.at_content += len(rest)
            yield rest.rstrip(b"\r\n")
