"""Alpaca's list of assets and its calendar of trading days.

Promises: an asset keeps its number when its symbol changes, and the list as it was stays in the history; hours are
instants in the zone of New York, on short days as well. Never: a property that nobody knows is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from include.contract import Answer, Ask, Batch, Chunk, Mode, Parsed, ParseError, Rejected, Request, Span, Unit
from include.sources.alpaca import answers
from include.sources.alpaca.symbols import is_well_formed
from include.sources.alpaca.tables import ASSETS, CALENDAR
from include.sources.alpaca.timeframes import NEW_YORK

PARSER_VERSION = 1
HOST = "https://paper-api.alpaca.markets"
ASSETS_KEY = "us_equity/assets"
_YEAR = "calendar"
# Where no asset can be read, so many are told one by one; more are another format, which is told once.
MOST_REJECTED = 200


def _is_empty(answer: Answer) -> bool:
    return not msgspec.json.decode(answer.body.read(), type=list[msgspec.Raw])


classify = answers.told(_is_empty)


# --- assets


def plan_assets(ask: Ask) -> Iterator[Request]:
    """Plan the one request for the whole list, where a session or the key asks for it."""
    if ask.sessions or ASSETS_KEY in ask.pending or (ask.mode is Mode.POLL and ask.keys):
        yield Request(
            key=ASSETS_KEY,
            unit=ASSETS_KEY,
            url=f"{HOST}/v2/assets",
            params=(("asset_class", "us_equity"),),
            kind="list",
        )


_ASSET = {
    "id": "asset_id",
    "symbol": "symbol",
    "name": "name",
    "class": "asset_class",
    "exchange": "exchange",
    "status": "status",
    "tradable": "is_tradable",
    "marginable": "is_marginable",
    "shortable": "is_shortable",
    "easy_to_borrow": "is_easy_to_borrow",
    "fractionable": "is_fractionable",
    "borrow_status": "borrow_status",
    "maintenance_margin_requirement": "maintenance_margin",
    "margin_requirement_long": "margin_long",
    "margin_requirement_short": "margin_short",
    "attributes": "attributes",
}
_TEXTS = ("asset_id", "symbol", "asset_class", "exchange", "status")
_YES_OR_NO = ("is_tradable", "is_marginable", "is_shortable", "is_easy_to_borrow", "is_fractionable")
_NUMBERS = ("maintenance_margin", "margin_long", "margin_short")


def parse_assets(unit: Unit) -> Parsed:
    """Read the list.

    Raises:
        ParseError: it is no list of assets, or none of many can be read.
    """
    rows, rejected, unknown = [], [], set[str]()
    for number, item in enumerate(_items(unit), start=1):
        values = {_ASSET[name]: value for name, value in item.items() if name in _ASSET}
        extra = _plain({name: value for name, value in item.items() if name not in _ASSET})
        try:
            row = _asset(values)
        except (ValueError, InvalidOperation) as error:
            rejected.append(Rejected(f"asset {number}", str(error), _text(item)))
            continue
        unknown.update(extra)
        rows.append((*(row[name] for name in ASSETS.column_names), extra or None))
    if len(rejected) > MOST_REJECTED and not rows:
        raise ParseError(f"none of its {len(rejected):,} assets can be read; the first: {rejected[0].reason}")
    return Parsed((Batch(ASSETS, rows),), tuple(rejected), tuple(sorted(unknown)))


def _asset(values: Mapping[str, Any]) -> dict[str, Any]:
    """Turn one asset's values into a row's.

    Raises:
        ValueError: something that every asset has is missing or is no text, no yes or no, or no number.
    """
    row: dict[str, Any] = dict.fromkeys(ASSETS.column_names)
    for name in _TEXTS:
        if not isinstance(values.get(name), str):
            raise ValueError(f"{name} is {values.get(name)!r}, which is no text")
        row[name] = values[name]
    for name in _YES_OR_NO:
        if not isinstance(values.get(name), bool):
            raise ValueError(f"{name} is {values.get(name)!r}, which is neither true nor false")
        row[name] = values[name]
    for name in _NUMBERS:
        row[name] = None if values.get(name) in (None, "") else Decimal(str(values[name]))
        if row[name] is not None and not (row[name].is_finite() and -20 < row[name].adjusted() < 20):
            raise ValueError(f"{name} is {values[name]!r:.60}, which is no percentage")
    for name in ("name", "borrow_status"):
        if not isinstance(values.get(name), str | None):
            raise ValueError(f"{name} is {values[name]!r:.60}, which is no text")
        row[name] = values.get(name) or None
    attributes = values.get("attributes") or []
    if not isinstance(attributes, list) or not all(isinstance(each, str) for each in attributes):
        raise ValueError(f"attributes is {attributes!r:.60}, which is no list of texts")
    row["attributes"] = sorted(attributes)
    row["is_collected"] = (
        row["status"] == "active" and row["exchange"] not in ("OTC", "") and is_well_formed(row["symbol"])
    )
    return row


# --- the calendar


def plan_calendar(ask: Ask) -> Iterator[Request]:
    """Plan a request for each year that a session is in, the newest first."""
    planned = set()
    years = [ask.chunk["year"]] if ask.chunk else [day.year for day in ask.sessions]
    for year in years:
        if year not in planned:
            planned.add(year)
            yield _year(year)
    for key in ask.pending:
        _, _, text = key.partition("/")
        if text.isdigit() and int(text) not in planned:
            yield _year(int(text))


def calendar_chunks(span: Span) -> Iterator[Chunk]:
    """Name the pieces of a backfill or replay: years, the newest first."""
    for year in range(span.end.year, span.start.year - 1, -1):
        yield Chunk(str(year), min(date(year, 12, 31), span.end), {"year": year})


def _year(year: int) -> Request:
    key = f"{_YEAR}/{year}"
    return Request(
        key=key,
        unit=key,
        url=f"{HOST}/v2/calendar",
        params=(("start", f"{year}-01-01"), ("end", f"{year}-12-31")),
    )


_DAY = ("date", "open", "close", "session_open", "session_close", "settlement_date")


def parse_calendar(unit: Unit) -> Parsed:
    """Read the trading days.

    Raises:
        ParseError: it is no list of days.
    """
    rows, rejected, unknown = [], [], set[str]()
    for number, item in enumerate(_items(unit), start=1):
        try:
            day = date.fromisoformat(str(item.get("date")))
            settles = item.get("settlement_date")
            row = (
                day,
                _instant(day, item.get("open")),
                _instant(day, item.get("close")),
                _instant(day, item["session_open"]) if item.get("session_open") else None,
                _instant(day, item["session_close"]) if item.get("session_close") else None,
                date.fromisoformat(settles) if settles else None,
            )
        except (ValueError, TypeError) as error:
            rejected.append(Rejected(f"day {number}", str(error), _text(item)))
            continue
        extra = _plain({name: value for name, value in item.items() if name not in _DAY})
        unknown.update(extra)
        rows.append((*row, extra or None))
    return Parsed((Batch(CALENDAR, rows),), tuple(rejected), tuple(sorted(unknown)))


def _instant(day: date, text: Any) -> datetime:
    """An hour of a day in New York, written 09:30 or 0930."""
    digits = str(text).replace(":", "")
    if len(digits) != 4 or not digits.isdigit():
        raise ValueError(f"{text!r} is no time of day")
    return datetime.combine(day, time(int(digits[:2]), int(digits[2:])), NEW_YORK)


_LIST = msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal)


def _items(unit: Unit) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for answer in unit.answers:
        try:
            items += _LIST.decode(answer.body.read())
        except msgspec.DecodeError as error:
            raise ParseError(f"it is no list of objects: {error}") from None
    return items


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same with exact numbers as texts, as JSON is kept without them."""
    plain: dict[str, Any] = msgspec.to_builtins(values)
    return plain


def _text(item: Mapping[str, Any]) -> str:
    return msgspec.json.encode(item, order="sorted").decode()[:2000]
