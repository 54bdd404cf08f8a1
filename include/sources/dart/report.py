"""DART's items of periodic reports, by company and period: the stream `dart.report`.

Promises: each endpoint is a part of its own, so that one that fails is one endpoint's trouble; rows are kept as given,
under the official names. Never: a row of another company comes in.
"""

from __future__ import annotations

from typing import Any

from include.contract import Batch, Parsed, ParseError, Rejected, Stream, Unit
from include.sources.dart import reports, sets, sync
from include.sources.dart.lists import is_receipt
from include.sources.dart.sets import Category, Part
from include.sources.dart.sync_tables import REPORT_ITEMS, REPORT_SETS

PARSER_VERSION = 1
# The number of shares stands in every report, so it tells whether DART has the report's items.
PROBE = "stockTotqySttus"
PARTS = {name: (name, ()) for name in (PROBE, *(name for name in reports.ENDPOINTS if name != PROBE))}
_NO_VALUES = ("rcept_no", "corp_code", "stlm_dt")


def parse(category: Category, unit: Unit) -> Parsed:
    """Read one item of a company's report.

    Raises:
        ParseError: the answer is not of the form that we know, or no row of it can be read.
    """
    part = sets.read_key(category, unit.key)
    if part is None:
        raise ParseError(f"{unit.key!r} is not the name of a unit")
    rows, rejected, unknown = list[tuple[Any, ...]](), list[Rejected](), dict[str, None]()
    found = reports.read(part.part, unit.answers[0].body.read(), rejected)
    for row in found:
        if (why := _foreign(part, row)) is not None:
            rejected.append(Rejected(f"row {row.position}", why, str(dict(row.values))[:2000]))
            continue
        unknown |= dict.fromkeys(row.extra)
        rows.append((*_row(part, row), dict(row.extra) or None))
    if found and not rows:
        raise ParseError(f"no row can be read; the first {rejected[0].reason}")
    receipt = max((row[0] for row in rows), default="")
    held = (part.corp, part.period.year, part.period.code, part.period.end, part.part, receipt, len(rows))
    return Parsed((Batch(REPORT_SETS, (held,)), Batch(REPORT_ITEMS, tuple(rows))), tuple(rejected), tuple(unknown))


def _foreign(part: Part, row: reports.Row) -> str | None:
    """Say in what a row is not of the company that was asked for; it tells no period."""
    corp, receipt = row.values.get("corp_code"), row.values["rcept_no"]
    if corp not in (None, part.corp):
        return f"is of corp_code {corp}, and {part.corp} was asked for"
    if not is_receipt(receipt):
        return f"has {receipt!r} for a receipt number of 14 digits"
    return None


def _row(part: Part, row: reports.Row) -> tuple[Any, ...]:
    return (
        row.values["rcept_no"],
        part.part,
        row.position,
        part.corp,
        part.period.year,
        part.period.code,
        part.period.end,
        row.values.get("stlm_dt") or None,
        row.group,
        {name: value for name, value in row.values.items() if name not in _NO_VALUES},
    )


def stream(choice: sync.Choice) -> Stream:
    """Return the stream of report items."""
    category = Category(PARTS, choice.lookback)
    return sync.stream(
        "report", "Items of periodic reports", category, (REPORT_SETS, REPORT_ITEMS), PARSER_VERSION, parse
    )
