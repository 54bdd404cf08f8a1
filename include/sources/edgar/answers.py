"""Telling the SEC's answers apart where they are its bulk files, their directories, or one company's document.

Promises: a page for people is a block or an error and never data, whatever its status; what the store says of a file
that is not there is an absence. Never: an empty body is good.
"""

from __future__ import annotations

import re

from include.contract import Answer, AnswerClass, AnswerError

_STORE_SAYS = re.compile(rb"<Error>\s*<Code>(AccessDenied|NoSuchKey)</Code>")
# Some pages begin with a mark of the byte order, an XML declaration or a comment.
_PAGE = re.compile(
    rb"^(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html)",
    re.IGNORECASE | re.DOTALL,
)
_BLOCK_WORDS = (b"request rate threshold", b"undeclared automated tool", b"reference id:", b"traffic limit")
_HEAD = 4096


def classify(answer: Answer, *, is_page_of_site: bool = False) -> AnswerClass:
    """Tell what came: data, an absence, a block or a fault.

    Args:
        answer: what came.
        is_page_of_site: a page with this status is a block only where it says so.

    Raises:
        AnswerError: nothing, or something else than was asked for; in words.
    """
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    with answer.body.open() as body:
        head = body.read(_HEAD)
    if not head.strip():
        if answer.status == 200:
            raise AnswerError("the SEC answers 200 with nothing in it", may_pass=True)
        return AnswerClass.ERROR
    is_page = _PAGE.match(head) is not None
    is_block = any(word in head.lower() for word in _BLOCK_WORDS)
    if is_page and (is_block or (answer.status in (200, 403) and not is_page_of_site)):
        return AnswerClass.BLOCKED
    if answer.status == 404 or (answer.status == 403 and _STORE_SAYS.search(head)):
        return AnswerClass.NOT_YET if answer.request.expected else AnswerClass.ABSENT
    if is_page:
        raise AnswerError(f"the SEC answers {answer.status} with a page in place of a file")
    if answer.status != 200:
        return AnswerClass.ERROR
    if not head.lstrip().startswith((b"PK", b"{")):
        raise AnswerError("the SEC answers with something that is neither an archive nor a document")
    return AnswerClass.DATA
