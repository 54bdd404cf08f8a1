"""Which companies are listed where: the SEC's list of tickers with their exchanges.

Promises: a list that is far smaller or larger than the exchanges are is refused, and the last good one stays; a ticker
may belong to several companies and a company have several tickers. Never: the past is guessed from today's list; the
history of what was collected tells it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from include.contract import Answer, AnswerClass, Ask, Batch, Parsed, ParseError, Rejected, Request, Unit
from include.sources.sec import answers
from include.sources.sec.names import cik_of
from include.sources.sec.shared import WWW
from include.sources.sec.tables import TICKERS

PARSER_VERSION = 1

URL = f"{WWW}/files/company_tickers_exchange.json"
# Tickers that the exchanges have, about; a list with less than half or more than twice of that is not believed.
USUAL = {"nasdaq": 4_300, "nyse": 3_300}
_FIELDS = ("cik", "name", "ticker", "exchange")


def plan(ask: Ask) -> Iterator[Request]:
    """Plan the list for the newest session."""
    day = ask.newest or max(ask.sessions, default=None)
    days = {day} if day else set()
    for key in ask.pending:
        kind, _, text = key.partition("/")
        if kind == "tickers":
            days.add(date.fromisoformat(text))
    for each in sorted(days, reverse=True):
        yield Request(key=f"tickers/{each}", url=URL, unit="list/tickers", session_date=each)


def classify(answer: Answer) -> AnswerClass:
    """Tell what came: the list, or what is none.

    Raises:
        AnswerError: see `answers.classify`.
    """
    told = answers.classify(answer)
    if told is not AnswerClass.DATA:
        return told
    try:
        _document(answer)
    except ParseError:
        return AnswerClass.ERROR
    return AnswerClass.DATA


def _document(answer: Answer) -> tuple[list[str], list[Any], tuple[str, ...]]:
    """Return the names of the fields, the rows, and the fields that a list of this form must have."""
    try:
        document = json.loads(answer.body.read())
    except (ValueError, RecursionError) as error:
        raise ParseError(f"it is no JSON, or was cut: {error}") from None
    if not isinstance(document, Mapping):
        raise ParseError("it is no object")
    fields, data = document.get("fields"), document.get("data")
    if isinstance(fields, list) and isinstance(data, list):
        return [str(name) for name in fields], data, _FIELDS
    # The older list, without exchanges: an object with numbers for keys.
    if document and all(isinstance(row, Mapping) and "cik_str" in row for row in document.values()):
        rows = [[row["cik_str"], row.get("title"), row.get("ticker")] for row in document.values()]
        return list(_FIELDS[:3]), rows, _FIELDS[:3]
    raise ParseError("it has neither fields and data nor rows with cik_str")


def parse(unit: Unit) -> Parsed:
    """Read the list.

    Raises:
        ParseError: a field is missing, or it is not plausible in size.
    """
    fields, data, needed = _document(unit.answers[-1])
    if missing := [name for name in needed if name not in fields]:
        raise ParseError(f"it lacks {', '.join(missing)}")
    unknown = [name for name in fields if name not in _FIELDS]
    rejected: list[Rejected] = []
    found: dict[tuple[str, int], tuple[Any, ...]] = {}
    for number, values in enumerate(data, start=1):
        given = dict(zip(fields, values, strict=False)) if isinstance(values, list) else {}
        cik, wrong = cik_of(str(given.get("cik", ""))), _wrong(given, len(fields), values)
        if cik is None or wrong is not None:
            wrong = wrong or "it has no CIK"
            rejected.append(Rejected(f"row {number}", wrong, json.dumps(values, ensure_ascii=False)[:2000]))
            continue
        ticker, name = given["ticker"].strip(), given["name"] or ""
        exchange = given.get("exchange") or None
        place = (exchange or "").lower()
        extra = {name: given.get(name) for name in unknown} or None
        found[ticker, cik] = (ticker, cik, exchange, name, place == "nasdaq", place == "nyse", extra)
    if "exchange" in fields:
        _insist_on_size(found.values())
    return Parsed((Batch(TICKERS, found.values()),), rejected, unknown)


def _wrong(given: Mapping[str, Any], width: int, values: Any) -> str | None:
    """Say what is wrong with a row, in words; None where it can be read."""
    if not isinstance(values, list) or len(values) != width:
        return f"it has not the {width} values that the list has fields"
    if not isinstance(given["ticker"], str) or not given["ticker"].strip():
        return "it has no ticker"
    wrong = [name for name in ("name", "exchange") if not isinstance(given.get(name), str | None)]
    return f"its {wrong[0]} is {given[wrong[0]]!r:.60}, which is no text" if wrong else None


def _insist_on_size(rows: Any) -> None:
    counts = {"nasdaq": sum(row[4] for row in rows), "nyse": sum(row[5] for row in rows)}
    for exchange, usual in USUAL.items():
        if not usual // 2 <= counts[exchange] <= usual * 2:
            raise ParseError(
                f"it lists {counts[exchange]} tickers on {exchange}, where about {usual} are usual: it is not "
                "believed, and the last good list stays"
            )
