"""What kind of answer Alpaca gave, the same for prices, assets and the calendar.

Promises: a plan that does not include something is told apart from a key that is not accepted, and both from trouble
that passes. Never: a page for people is taken for data.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from include.contract import Answer, AnswerClass, DefiniteRefusal
from include.sources.alpaca.requests import message

_HEAD = 4_096


def told(is_empty: Callable[[Answer], bool]) -> Callable[[Answer], AnswerClass]:
    """Return a classifier; `is_empty` says whether a whole JSON answer holds nothing.

    The classifier raises `DefiniteRefusal` where the plan or the key does not permit what was asked.
    """

    def classify(answer: Answer) -> AnswerClass:
        if answer.status == 304:
            return AnswerClass.UNCHANGED
        with answer.body.open() as stream:
            head = stream.read(_HEAD).lstrip().lower()
        is_page = head.startswith((b"<!doctype html", b"<html"))
        if answer.status == 200:
            if is_page:
                return AnswerClass.BLOCKED
            if not head.startswith((b"{", b"[")):
                return AnswerClass.ERROR
            try:
                return AnswerClass.EMPTY if is_empty(answer) else AnswerClass.DATA
            except (msgspec.MsgspecError, RecursionError):
                return AnswerClass.ERROR
        if answer.status in (401, 403, 422):
            _refuse(answer, is_page)
            return AnswerClass.BLOCKED if is_page and answer.status == 403 else AnswerClass.ERROR
        return AnswerClass.ERROR

    return classify


def _refuse(answer: Answer, is_page: bool) -> None:
    """Raise where the answer says no for good; do nothing where it only might."""
    said = message(answer)
    lower = said.lower()
    # Some clients were told so with 422.
    of_plan = "subscription" in lower or "past 15 minutes" in lower
    if (answer.status == 403 and "sip" in lower) or (answer.status in (403, 422) and of_plan):
        raise DefiniteRefusal(
            f"ALPACA_PLAN: the account's plan does not include this feed for so recent a time ({said!r}). It is no "
            "fault of the key. Set the feed to iex or subscribe to real-time SIP data; older times can be asked for "
            "as they are."
        )
    if (said and answer.status != 422) or (answer.status == 401 and is_page):
        raise DefiniteRefusal(
            f"ALPACA_KEY: the key is not accepted (HTTP {answer.status}{f', {said!r}' if said else ''}). Put key and "
            "secret of a paper account into the login and password of connection alpaca; keys of a live account are "
            "not accepted by the paper host."
        )
