"""Telling ECOS's answers apart: all of them come with status 200, and the code in the body says what they are.

Promises: texts of messages decide nothing; "no data" of a code that ECOS does not have is an error and never nothing
new. Never: a page for people is taken for data, and no text holds a key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from include.contract import Answer, AnswerClass, AnswerError, DefiniteRefusal
from include.sources.ecos.catalogue import CONFIGURATION

ITEMS, SEARCH = "StatisticItemList", "StatisticSearch"
NO_DATA = "INFO-200"
# About 300 calls in three minutes are let through; then nothing is for half an hour.
LOCKED_OUT = timedelta(minutes=30)
_XML = re.compile(r"<RESULT>.*?<CODE>\s*(?P<code>[A-Z]+-[0-9]+)\s*</CODE>", re.DOTALL)
_TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^<>]*>", re.DOTALL | re.IGNORECASE)
_MAINTENANCE = re.compile(r"점검|시스템\s*작업|서비스\s*(제공\s*불가|일시\s*중단|중단|중지)|maintenance", re.IGNORECASE)
_LEVEL = re.compile(r"\D*([1-4])")


@dataclass(frozen=True)
class Told:
    """What a body holds: rows of a service with their count over all pages, or a code of ECOS's, or neither."""

    service: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    total: int = 0
    code: str = ""
    message: str = ""
    is_page: bool = False


def told(body: bytes) -> Told:
    """Read a body, whatever its type is said to be."""
    text = body.decode("utf-8-sig", errors="replace")
    head = text.lstrip()[:200].lower()
    if head.startswith("<"):
        found = _XML.search(text[:4096])
        if found is not None:
            return Told(code=found["code"])
        is_page = "<html" in head or "<!doctype" in head
        return Told(message=_words(body) if is_page else "", is_page=is_page)
    try:
        # Strictly: a unit in which characters were lost is another unit, and that of every value.
        document = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return Told()
    if not isinstance(document, dict):
        return Told()
    result = document.get("RESULT")
    if isinstance(result, dict):
        message = " ".join(str(result.get("MESSAGE") or "").split())
        return Told(code=str(result.get("CODE") or "?"), message=message[:200])
    for service in (ITEMS, SEARCH):
        content = document.get(service)
        if isinstance(content, dict):
            rows, total = content.get("row"), content.get("list_total_count")
            if isinstance(total, str) and total.isdigit():
                total = int(total)
            if isinstance(rows, list) and isinstance(total, int) and all(isinstance(row, dict) for row in rows):
                return Told(service, rows, total)
    return Told()


def _words(page: bytes) -> str:
    """The first words of a page for people, which may be in CP949."""
    try:
        text = page.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = page.decode("cp949", errors="replace")
    return " ".join(_TAG.sub(" ", text).split())[:200]


def is_item(row: Mapping[str, Any], cycle: str, code: str, level: int) -> bool:
    """Say whether a row of a list of items is for a code at a level, in a cycle.

    Levels are groups, with their number at the end of the group's code; a code in no such group is of any level.
    """
    group = _LEVEL.fullmatch(str(row.get("GRP_CODE") or ""))
    return row.get("CYCLE") == cycle and row.get("ITEM_CODE") == code and (group is None or int(group[1]) == level)


def items_found(answer: Answer, said: Told) -> dict[str, dict[str, Any]]:
    """Return the items of a series that its list of items has shown so far, by level: their first and last period."""
    about = answer.request.about
    found: dict[str, dict[str, Any]] = dict(about["found"])
    for row in said.rows:
        for level, code in enumerate(about["items"], start=1):
            if is_item(row, about["cycle"], code, level):
                found.setdefault(str(level), {"begins": period(row, "START_TIME"), "ends": period(row, "END_TIME")})
    return found


def period(row: Mapping[str, Any], name: str) -> str | None:
    """A period as text, which is how it is compared; None where there is none that could be."""
    value = row.get(name)
    return value if isinstance(value, str) else None


def classify(answer: Answer) -> AnswerClass:
    """Tell what ECOS answered.

    Raises:
        DefiniteRefusal: the key is not known.
        AnswerError: another refusal, a maintenance, or a series that ECOS does not have, in words.
    """
    if answer.status == 304:
        return AnswerClass.UNCHANGED
    said = told(answer.body.read())
    if said.is_page:
        if answer.status != 403 and _MAINTENANCE.search(said.message):
            raise AnswerError(f"ECOS shows a page about maintenance: {said.message!r}", may_pass=True)
        return AnswerClass.BLOCKED if answer.status in (200, 403) else AnswerClass.ERROR
    if answer.status != 200:
        return AnswerClass.ERROR
    if said.code:
        return _refusal(answer, said)
    if said.service != answer.request.about.get("service"):
        return AnswerClass.ERROR
    if said.service == ITEMS:
        return _items(answer, said)
    return AnswerClass.DATA if said.rows else _nothing(answer)


def _items(answer: Answer, said: Told) -> AnswerClass:
    about = answer.request.about
    missing = [code for n, code in enumerate(about["items"], start=1) if str(n) not in items_found(answer, said)]
    is_last = not said.rows or about["first"] - 1 + len(said.rows) >= said.total
    if missing and is_last:
        raise AnswerError(
            f"{about['statistic']} has no item {', '.join(missing)} in the cycle {about['cycle']}, by ECOS's list: "
            f"nothing was asked for. Correct it in {CONFIGURATION}, or take it out; what was collected stays."
        )
    return AnswerClass.DATA


def _nothing(answer: Answer) -> AnswerClass:
    """Tell "no new value" from "no value at all": the list of items says what there must be."""
    about = answer.request.about
    begins, ends = about["begins"], about["ends"]
    if about["is_whole"] or (begins and ends and begins <= about["to"] and ends >= about["from"]):
        raise AnswerError(
            f"ECOS says {NO_DATA} for {about['statistic']} {about['cycle']} {'/'.join(about['items'])} from "
            f"{about['from']} to {about['to']}, though its list of items has values from {begins} to {ends}"
        )
    return AnswerClass.EMPTY


def _refusal(answer: Answer, said: Told) -> AnswerClass:
    about, code = answer.request.about, said.code
    words = f"{code}: {said.message}" if said.message else code
    if code == NO_DATA and about.get("service") == SEARCH:
        return _nothing(answer)
    if code == NO_DATA:
        raise AnswerError(
            f"ECOS has no statistic {about.get('statistic')} ({words}): nothing was asked for. Correct it in "
            f"{CONFIGURATION}, or take it out; what was collected stays."
        )
    if code == "INFO-100":
        raise DefiniteRefusal(f"ECOS refuses the key of connection ecos ({words})")
    if code == "ERROR-602":
        raise AnswerError(f"ECOS locks us out for too many calls ({words})", may_pass=True, wait=LOCKED_OUT)
    if code in ("ERROR-400", "ERROR-500", "ERROR-600", "ERROR-601"):
        raise AnswerError(f"ECOS is in trouble ({words})", may_pass=True)
    raise AnswerError(f"ECOS refuses the request ({words})")
