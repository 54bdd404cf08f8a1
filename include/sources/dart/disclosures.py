"""Reading pages of DART's list of filings.

Promises: a filing is one row however often the pages show it, as the last page of it says; a row without a body, of any
kind, is a row. Never: a row of another day than was asked for comes in, and nothing is derived from a receipt number.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from include.contract import AnswerError, Batch, Parsed, ParseError, Rejected, Unit
from include.sources.dart import lists, titles
from include.sources.dart.answers import NORMAL, rows_of
from include.sources.dart.tables import DISCLOSURES

PARSER_VERSION = 1

_FIELDS = ("rcept_no", "corp_code", "corp_name", "stock_code", "corp_cls", "report_nm", "flr_nm", "rcept_dt", "rm")


def parse(unit: Unit) -> Parsed:
    """Read all pages of an asking.

    Raises:
        ParseError: a page is not of the form that we know, or no row of it can be read.
    """
    asking = lists.read_key(unit.key)
    if asking is None:
        raise ParseError(f"{unit.key!r} is not the name of a unit")
    found: dict[str, tuple[Any, ...]] = {}
    rejected: list[Rejected] = []
    unknown: set[str] = set()
    seen = 0
    for number, answer in enumerate(unit.answers, start=1):
        for place, item in enumerate(items_of(answer.body.read()), start=1):
            seen += 1
            try:
                row = _row(item, asking)
            except (ParseError, KeyError, AttributeError, TypeError) as wrong:
                reason = f"lacks {wrong}" if isinstance(wrong, KeyError) else str(wrong)
                rejected.append(Rejected(f"page {number} row {place}", reason, str(item)[:2000]))
                continue
            unknown.update(row[-1] or ())
            found[row[0]] = row
    if seen and not found:
        raise ParseError(f"no row can be read; the first {rejected[0].reason}")
    if (lacking := _lacking(unit, seen)) is not None:
        if not found:
            raise ParseError(lacking)
        rejected.append(Rejected("all pages", lacking, ""))
    return Parsed((Batch(DISCLOSURES, tuple(found.values())),), tuple(rejected), tuple(sorted(unknown)))


def _lacking(unit: Unit, shown: int) -> str | None:
    """Say whether pages that are all there show fewer rows than there are by their own count.

    Those of earlier rounds count too: what moved away from a page is there all the same.
    """
    last = unit.answers[-1]
    pages = sum(answer.request.about.get("round") == last.request.about.get("round") for answer in unit.answers)
    try:
        counted = lists.count_of(last)
    except AnswerError as no:
        raise ParseError(str(no)) from None
    if counted is None or counted.pages != pages or shown >= counted.rows:
        return None
    return f"the list says that it has {counted.rows} filings and shows {shown} on its {pages} pages"


def items_of(body: bytes) -> list[Any]:
    """Return the rows of a page as given; none where it says that there are none.

    Raises:
        ParseError: it is no page, or has no list of rows though it says that there are some.
    """
    try:
        document = rows_of(body)
    except ValueError as error:
        raise ParseError(f"a page is no JSON object: {error}") from None
    if document.get("status") != NORMAL:
        return []
    items = document.get("list")
    if not isinstance(items, list):
        raise ParseError("a page has no list of filings, though it says that there are some")
    return items


def _row(item: dict[str, Any], asking: lists.Asking) -> tuple[Any, ...]:
    values = {name: item[name].strip() for name in _FIELDS}
    if not lists.is_receipt(values["rcept_no"]):
        raise ParseError(f"{values['rcept_no']!r} is not a receipt number of 14 digits")
    if not lists.is_company(values["corp_code"]):
        raise ParseError(f"{values['corp_code']!r} is not a company's number of eight digits")
    day = day_of(values["rcept_dt"])
    if not asking.first <= day <= asking.last:
        raise ParseError(f"was received on {day}, and {asking.when} was asked for")
    title = titles.read(values["report_nm"])
    extra = {name: value for name, value in item.items() if name not in _FIELDS}
    return (
        values["rcept_no"],
        values["corp_code"],
        values["corp_name"],
        values["stock_code"] or None,
        values["corp_cls"],
        values["report_nm"],
        values["flr_nm"],
        day,
        values["rm"],
        title.name,
        title.period,
        title.is_correction,
        extra or None,
    )


def day_of(text: str) -> date:
    """Read a day as DART writes it: YYYYMMDD, in some places with hyphens.

    Raises:
        ParseError: it is none.
    """
    digits = text.replace("-", "")
    try:
        if len(digits) != 8 or not digits.isdigit():
            raise ValueError
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        raise ParseError(f"{text!r} is not a day") from None
