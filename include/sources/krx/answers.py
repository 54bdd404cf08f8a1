"""Telling KRX's answers apart: rows, none, and its ways of saying no.

Promises: an answer without rows is never by itself "no trading": where a session was expected it is "not yet", so that
the key stays pending until it has rows or an operator calls the day closed. What is refused for one service says which
and keeps nobody from the others; what is refused for the key stops everything. Never: a page for people, a body without
the block of rows, or a body that was cut is taken for an empty day.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

import msgspec

from include.contract import Answer, AnswerClass, AnswerError, DefiniteRefusal, QuotaUsedUp
from include.sources.krx.services import title_of

BLOCK = "OutBlock_1"
MISSING = ("", "-", None)
BOM = b"\xef\xbb\xbf"

_HEAD = 4_096
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)
# The page that KRX shows to addresses that it has blocked, with 403 and with 200 alike.
_BLOCK_TITLE = "에러페이지"
# Closes as the services call them; the issue master has none.
_CLOSES = ("TDD_CLSPRC", "CLSPRC_IDX", "TOT_EARNG_IDX")
_OF_STOCKS, _VOLUME = "TDD_CLSPRC", "ACC_TRDVOL"
# A row among the first with nothing in it: then all are looked at.
_NOTHING = re.compile(rb'"(?:TDD_CLSPRC|CLSPRC_IDX|TOT_EARNG_IDX|ACC_TRDVOL)"\s*:\s*(?:"[-0., ]*"|0|null)')


class _Envelope(msgspec.Struct):
    OutBlock_1: list[msgspec.Raw]


def classify(answer: Answer) -> AnswerClass:
    """Tell what KRX answered.

    Raises:
        DefiniteRefusal: the key is not accepted, or the address is not that of the OpenAPI.
        QuotaUsedUp: the key has no calls left today.
        AnswerError: another refusal, or no answer of the OpenAPI at all, in words.
    """
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    with answer.body.open() as stream:
        head = stream.read(_HEAD).removeprefix(BOM).lstrip()
    if head[:1] == b"<":
        return _page(answer, head)
    if answer.status == 200:
        return _rows(answer, head)
    if answer.status in (301, 302, 303, 307, 308):
        raise DefiniteRefusal(
            f"KRX sends us elsewhere (HTTP {answer.status}), and the key would be lost on the way. Let the host of "
            "connection krx begin with https:// and start again."
        )
    if answer.status == 400 and head.strip() == b"LOGOUT":
        raise DefiniteRefusal(
            "KRX says LOGOUT: that is its web site, which wants a login, and not the OpenAPI. Set the host of "
            "connection krx to https://data-dbg.krx.co.kr."
        )
    _refuse(answer, _document(head))
    return AnswerClass.ERROR


def _page(answer: Answer, head: bytes) -> AnswerClass:
    """Tell a page for people: a block, or the maintenance of a gateway, which passes."""
    try:
        # The first part of a page may end within a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        text = head.decode("cp949", errors="replace")
    found = _TITLE.search(text)
    title = " ".join(found[1].split())[:100] if found else "without a title"
    if answer.status == 403 or (answer.status == 200 and _BLOCK_TITLE in title):
        return AnswerClass.BLOCKED
    # A gateway that has no more calls for us says so with a page as well.
    _refuse(answer, {})
    said = answer.headers.get("content-type", "no type")
    raise AnswerError(
        f"KRX answers HTTP {answer.status} ({said}) with a page in place of data: {title!r}. That is maintenance or a "
        "gateway and says nothing about the day; what was collected stays.",
        may_pass=answer.status == 200 or answer.status >= 500,
    )


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _refuse(answer: Answer, document: dict[str, Any]) -> None:
    """Raise what an error says; do nothing where it says nothing that we know."""
    message = " ".join(str(document.get("respMsg", "")).split())[:300]
    code = str(document.get("respCode", answer.status if message else ""))
    if answer.status == 429 or code == "429":
        if "retry-after" not in answer.headers:
            # The only 429 that KRX is known for, and going on could cost the key.
            raise QuotaUsedUp(f"KRX says that the key has no calls left today ({message or 'HTTP 429'}).")
        return
    if code == "401" and "key" in message.lower():
        raise DefiniteRefusal(
            f"KRX does not accept the key of connection krx ({message!r}). Keys are valid for a year: renew it at "
            "openapi.krx.co.kr and put it into the connection's password."
        )
    if code == "401" and message:
        raise AnswerError(
            f"KRX does not give this key the service {title_of(answer.request)} ({message!r}). Each service is applied "
            "for by itself, and may lapse by itself: apply for it at openapi.krx.co.kr. The other services go on."
        )
    if answer.status == 403 and document:
        raise DefiniteRefusal(
            f"KRX refuses the call (HTTP 403, {message or 'without a reason'}): the key is one for its samples, or the "
            "host of connection krx is not https://data-dbg.krx.co.kr."
        )
    if message:
        raise AnswerError(f"KRX says {code}: {message}", may_pass=answer.status >= 500)


def _rows(answer: Answer, head: bytes) -> AnswerClass:
    body = answer.body.read().removeprefix(BOM)
    if not body.strip():
        return AnswerClass.ERROR
    try:
        # Rows are not looked into yet, nor are their texts: characters are checked here.
        body.decode()
        rows = msgspec.json.decode(body, type=_Envelope).OutBlock_1
    except UnicodeDecodeError:
        raise AnswerError("the answer is no UTF-8: it was damaged on its way, or KRX changed", may_pass=True) from None
    except msgspec.ValidationError:
        document = _document(body)
        _refuse(answer, document)
        names = ", ".join(sorted(document)[:5]) or "no object"
        raise AnswerError(
            f"the answer has no list {BLOCK} (it has {names}): an error, and never a day without trading"
        ) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise AnswerError(f"the answer is no JSON, or was cut ({error})", may_pass=True) from None
    if not rows or (_NOTHING.search(head) and _are_placeholders(rows)):
        return AnswerClass.NOT_YET if answer.request.expected else AnswerClass.EMPTY
    return AnswerClass.DATA


def _are_placeholders(rows: list[msgspec.Raw]) -> bool:
    """Say whether no row has a close, or no stock was traded: so KRX has shown days without trading, issue by issue."""
    for raw in rows:
        row = msgspec.json.decode(raw)
        if not isinstance(row, dict):
            return False
        closes = [row[name] for name in _CLOSES if name in row]
        is_untraded = _OF_STOCKS in row and _VOLUME in row and _is_nothing(row[_VOLUME])
        # A row without the field of the close is of something else, and refused where it is read.
        if not closes or not (is_untraded or all(map(_is_nothing, closes))):
            return False
    return True


def _is_nothing(value: Any) -> bool:
    return value in MISSING or not str(value).strip("-0., ")
