"""Telling FRED's answers apart: data, nothing, and its many ways of saying no.

Promises: what is told goes by the body first, as status, type and body do not always agree; what FRED says under load
though nothing is wrong is told as what may pass. Never: a page for people is taken for data, and no text holds a key.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from include.contract import Answer, AnswerClass, AnswerError, DefiniteRefusal

_XML_ERROR = re.compile(r'<error\s[^>]*?code="(?P<code>[0-9]{3})"[^>]*?message="(?P<message>[^"]*)"', re.DOTALL)
CONFIGURATION = "config/fred_series.yaml"


@dataclass(frozen=True)
class Told:
    """What a body holds: a document, or an error of FRED's own with its code and message, or neither."""

    document: dict[str, Any] | None = None
    code: int = 0
    message: str = ""
    is_page: bool = False

    @property
    def is_error(self) -> bool:
        """Whether FRED itself says that something is wrong."""
        return bool(self.code)

    @property
    def has_no_vintages(self) -> bool:
        """Whether there is nothing in the real-time period that was asked for, though the series may exist."""
        return self.is_error and (
            "does not exist in ALFRED" in self.message or "No vintage dates exist" in self.message
        )

    @property
    def is_withheld(self) -> bool:
        """Whether the values of the series are not given through the interface, for want of a licence."""
        return self.code == 404 and "not available" in self.message


def told(body: bytes) -> Told:
    """Read a body, whatever its type is said to be."""
    head = body.lstrip()[:200].lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return Told(is_page=True)
    if head.startswith(b"<"):
        match = _XML_ERROR.search(body[:4096].decode("utf-8", errors="replace"))
        return Told(code=int(match["code"]), message=" ".join(match["message"].split())) if match else Told()
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return Told()
    if not isinstance(document, dict):
        return Told()
    if "error_code" in document or "error_message" in document:
        message = " ".join(str(document.get("error_message", "")).split())
        code = document.get("error_code")
        return Told(code=code if isinstance(code, int) and code else 400, message=message)
    return Told(document)


def classify(answer: Answer) -> AnswerClass:
    """Tell what FRED answered.

    Raises:
        DefiniteRefusal: the key is missing, malformed or not known.
        AnswerError: another refusal, in words.
    """
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    said = told(answer.body.read())
    if said.is_page:
        return AnswerClass.BLOCKED if answer.status in (200, 403) else AnswerClass.ERROR
    if said.is_error:
        return _refusal(answer, said)
    if answer.status != 200 or said.document is None:
        return AnswerClass.ERROR
    for name in ("seriess", "observations"):
        if isinstance(said.document.get(name), list):
            return AnswerClass.DATA if said.document[name] else AnswerClass.EMPTY
    return AnswerClass.ERROR


def _refusal(answer: Answer, said: Told) -> AnswerClass:
    message, series = said.message[:400], answer.request.unit.partition("/")[0]
    status = said.code if answer.status in (200, 400) else answer.status
    if said.has_no_vintages or said.is_withheld:
        return AnswerClass.EMPTY
    if "api_key" in message:
        # "Not registered" is also said of good keys while FRED is under load.
        text = f"FRED refuses the key of connection fred: {message}"
        raise DefiniteRefusal(text, may_pass="not registered" in message)
    if "series does not exist" in message:
        raise AnswerError(
            f"FRED has no series {series}: {message} Correct it in {CONFIGURATION}, or take it out; what was "
            "collected of it stays."
        )
    if "maximum number of vintage dates" in message:
        raise AnswerError(f"FRED refuses the real-time period as too long, though it never should be: {message}")
    if "can not be after today" in message:
        raise AnswerError(f"FRED is asked for a day that has not begun in St. Louis: {message}", may_pass=True)
    # Other refusals, and 400 without a cause, are seen under load and pass by themselves.
    raise AnswerError(f"FRED says {status}: {message}", may_pass=status in (400, 423, 429) or status >= 500)
