"""Telling the SEC's answers apart, by their bodies first: one status has several meanings.

Promises: a page for people is a block, an error page or nothing at all, and never data; what an object store says
(`AccessDenied`, `NoSuchKey`) is an absence and never a block. Never: an empty body is good.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from include.contract import Answer, AnswerClass, AnswerError

_STORE_SAYS = re.compile(rb"<Error>\s*<Code>(AccessDenied|NoSuchKey)</Code>")
# Some pages begin with a mark of the byte order, an XML declaration or a comment.
_HTML = re.compile(
    rb"^(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html)",
    re.IGNORECASE | re.DOTALL,
)
_TITLE = re.compile(rb"<title>([^<]{0,200})", re.IGNORECASE)
_HEAD = 4096
# Words of the pages that are sent to who asks too fast, or does not say who it is.
_BLOCK_WORDS = (b"request rate threshold", b"undeclared automated tool", b"reference id:", b"traffic limit")


@dataclass(frozen=True)
class Told:
    """What the beginning of a body says: an absence, a page for people (and whether it blocks), or nothing at all."""

    is_empty: bool = False
    is_absent: bool = False
    is_page: bool = False
    is_block_page: bool = False
    title: str = ""


def told(answer: Answer) -> Told:
    """Read the beginning of a body, whatever its type is said to be."""
    with answer.body.open() as body:
        head = body.read(_HEAD)
    if not head.strip():
        return Told(is_empty=True)
    if _STORE_SAYS.search(head):
        return Told(is_absent=True)
    if not _HTML.match(head):
        return Told()
    title = _TITLE.search(head)
    lower = head.lower()
    words = any(word in lower for word in _BLOCK_WORDS)
    return Told(
        is_page=True,
        # A page for people under 403 or 200 is never what was asked for: the SEC sends it to stop a client.
        is_block_page=words or answer.status in (200, 403),
        title=" ".join(title[1].decode("utf-8", "replace").split()) if title else "",
    )


def classify(answer: Answer) -> AnswerClass:
    """Tell what the SEC answered to a request for a file: data, an absence, a block or a fault.

    An absence is "not yet" where the request expects the file, and an absence for good elsewhere.

    Raises:
        AnswerError: a body that is empty, or a page where none is due; in words.
    """
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    said = told(answer)
    if answer.status in (429, 404, 403, 200) and said.is_block_page:
        return AnswerClass.BLOCKED
    if answer.status == 404 or (answer.status == 403 and said.is_absent):
        return AnswerClass.NOT_YET if answer.request.expected else AnswerClass.ABSENT
    if said.is_page:
        raise AnswerError(f"the SEC answers {answer.status} with a page: {said.title or 'without a title'}")
    if answer.status == 200 and said.is_empty:
        # Seen for texts that were there a moment later.
        raise AnswerError("the SEC answers 200 with nothing in it", may_pass=True)
    return AnswerClass.DATA if answer.status == 200 else AnswerClass.ERROR
