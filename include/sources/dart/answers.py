"""Telling OpenDART's answers apart: data, nothing, and its many ways of saying no.

OpenDART answers HTTP 200 whatever it says: JSON endpoints with a status of three digits in the object, endpoints that
give an archive with the same status in a small XML document, and a page for people while it is being maintained.

Promises: what an answer is goes by its first bytes and its status alone, never by the HTTP status, the content type or
the text beside it, which is Korean and free to change. Never: a page for people or an error is taken for "nothing
filed", and no text holds a key.
"""

from __future__ import annotations

import codecs
import lzma
import re
import struct
import zipfile
import zlib
from typing import Any

import msgspec

from include.contract import Answer, AnswerClass, AnswerError, DefiniteRefusal, QuotaUsedUp

HOST = "https://opendart.fss.or.kr"

NORMAL, NO_DATA, NO_FILE = "000", "013", "014"
ZIP = b"PK\x03\x04"
# What opening an archive raises that is damaged anywhere, in its directory, its names or a file of whatever method. All
# of it is read in memory, so that no error among these is one of the raw store's.
DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, RuntimeError, NotImplementedError,
    ValueError, IndexError, OverflowError,
)  # fmt: skip

_HEAD = 8_192
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)
_XML_STATUS = re.compile(r"<status>\s*(?P<status>[0-9]{3})\s*</status>", re.IGNORECASE)
_XML_MESSAGE = re.compile(r"<message>(?P<message>.*?)</message>", re.DOTALL | re.IGNORECASE)
# Words of a page that keeps somebody out; the page of a maintenance has none of them.
_KEPT_OUT = re.compile(
    r"차단|비정상적인 접근|blocked|access denied|unusual traffic|are you human|requested URL was rejected",
    re.IGNORECASE,
)
BOM = b"\xef\xbb\xbf"

_KEYS = (
    "Look at the keys in the password of connection dart (or DART_API_KEYS); they are listed with their state at "
    "opendart.fss.or.kr. Nothing was lost, and nothing was counted as empty."
)
_REFUSED = {
    "010": f"a key is not registered. {_KEYS}",
    "011": f"a key is suspended. {_KEYS}",
    "012": f"a key may not be used from this address. {_KEYS}",
    "901": f"a key's account has outlived its time and must be renewed by its owner. {_KEYS}",
}
_WRONG = {
    "021": "too many companies are asked for in one request (100 are allowed): the request must be cut",
    "100": "a field of the request has a value that is not allowed: the request itself is wrong",
}
_PASSING = {"800": "it is being maintained", "900": "it has a trouble that it does not name"}


class _Envelope(msgspec.Struct):
    status: str | int = ""
    message: str = ""


def classify_list(answer: Answer) -> AnswerClass:
    """Tell what an endpoint with JSON rows answered.

    Raises:
        DefiniteRefusal: a key is not accepted.
        QuotaUsedUp: the key has no requests left today.
        AnswerError: another refusal, a maintenance, or no answer of OpenDART's at all, in words.
    """
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    body = answer.body.read().removeprefix(BOM)
    if body.lstrip()[:1] == b"<":
        return _page_or_xml(answer, body[:_HEAD])
    if answer.status != 200 or not body.strip():
        return AnswerClass.ERROR
    try:
        said = msgspec.json.decode(body, type=_Envelope)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise AnswerError(f"DART's answer is no JSON object, or was cut ({error})", may_pass=True) from None
    return _told(str(said.status), said.message)


def classify_archive(answer: Answer) -> AnswerClass:
    """Tell what an endpoint with an archive answered: a zip is known by its first bytes, all else is an error.

    Raises:
        DefiniteRefusal, QuotaUsedUp, AnswerError: as `classify_list`.
    """
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    with answer.body.open() as stream:
        head = stream.read(_HEAD).removeprefix(BOM)
    if head.startswith(ZIP):
        return AnswerClass.DATA if answer.status == 200 else AnswerClass.ERROR
    if head.lstrip()[:1] == b"<":
        return _page_or_xml(answer, head)
    if answer.status != 200 or not head.strip():
        return AnswerClass.ERROR
    try:
        said = msgspec.json.decode(head, type=_Envelope)
    except (msgspec.MsgspecError, RecursionError):
        raise AnswerError("DART's answer is neither an archive nor an error of its own", may_pass=True) from None
    return _not_data(_told(str(said.status), said.message))


def _page_or_xml(answer: Answer, head: bytes) -> AnswerClass:
    text = _text_of(head)
    status = _XML_STATUS.search(text)
    if status is not None and "<html" not in text.lower():
        message = _XML_MESSAGE.search(text)
        return _not_data(_told(status["status"], message["message"] if message else ""))
    if answer.status == 403 or _KEPT_OUT.search(text):
        return AnswerClass.BLOCKED
    if answer.status != 200:
        return AnswerClass.ERROR
    title = _TITLE.search(text)
    named = " ".join(title[1].split())[:100] if title else "without a title"
    raise AnswerError(
        f"DART answers with a page for people in place of data ({named!r}): a maintenance, which says nothing about "
        "what was filed.",
        may_pass=True,
    )


def _text_of(head: bytes) -> str:
    """The first part of a page, which may end within a character: pages for people are in CP949 too."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return head.decode("cp949", errors="replace")


def _not_data(told: AnswerClass) -> AnswerClass:
    """Refuse an answer that says that all is well and brings nothing in the form that was asked for."""
    if told is AnswerClass.DATA:
        raise AnswerError(f"DART says {NORMAL} and gives nothing in the form that was asked for", may_pass=True)
    return told


def _told(status: str, message: str) -> AnswerClass:
    """Return what a status of three digits says, or raise it."""
    words = " ".join(message.split())[:200]
    if status == NORMAL:
        return AnswerClass.DATA
    if status == NO_DATA:
        return AnswerClass.EMPTY
    if status == NO_FILE:
        return AnswerClass.ABSENT
    if status == "020":
        raise QuotaUsedUp(f"DART says 020: the key has no requests left today ({words}).")
    if status == "101":
        # Said to whom it takes for a robot; going on would make it worse.
        return AnswerClass.BLOCKED
    if status in _REFUSED:
        raise DefiniteRefusal(f"DART says {status}: {_REFUSED[status]}")
    if status in _WRONG:
        raise AnswerError(f"DART says {status}: {_WRONG[status]} ({words})")
    if status in _PASSING:
        raise AnswerError(f"DART says {status}: {_PASSING[status]} ({words})", may_pass=True)
    raise AnswerError(f"DART says {status or 'nothing'}, which nobody knows ({words})", may_pass=True)


def rows_of(body: bytes) -> dict[str, Any]:
    """Return a whole answer of an endpoint with rows.

    Raises:
        ValueError: it is no JSON object.
    """
    try:
        document = msgspec.json.decode(body.removeprefix(BOM))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not isinstance(document, dict):
        raise ValueError("it is no object")
    return document


def rows_that_lead_on(answer: Answer) -> dict[str, Any]:
    """Return the same of an answer that is followed.

    Raises:
        AnswerError: it is no JSON object, so that nobody knows what it leads to.
    """
    try:
        return rows_of(answer.body.read())
    except ValueError as error:
        raise AnswerError(f"DART's answer is no JSON object, or was damaged ({error})", may_pass=True) from None
