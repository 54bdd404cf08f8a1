"""Tables that are kept in parts of a month: which part readings are for, and that it is there.

Promises: writers of different months do not wait for each other; a part is made before the transaction that needs it,
by one server function that locks out nobody. Never: a table is changed in the transaction that writes rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from include.contract import Stream, Table
from include.engine.db import query, transaction
from include.engine.stage import Reading

# Parts that this process has seen; they never go away.
_seen: set[tuple[str, str, str]] = set()


def month_of(stream: Stream, reading: Reading) -> str:
    """Return the month that a reading is for, in the form 202609; empty where its stream keeps none apart."""
    if all(table.months == "together" for table in stream.tables) or reading.session_date is None:
        return ""
    return f"{reading.session_date:%Y%m}"


def split(stream: Stream, readings: Sequence[Reading]) -> list[list[Reading]]:
    """Put readings into lists of one month each, oldest first, so that everybody locks months in one order."""
    return [
        list(found)
        for _, found in groupby(
            sorted(readings, key=lambda reading: month_of(stream, reading)),
            lambda reading: month_of(stream, reading),
        )
    ]


def of_month(stream: Stream, readings: Sequence[Reading]) -> Stream:
    """Return the stream with its tables pointed at the part of the one month that readings are for."""
    month = month_of(stream, readings[0])
    if not month:
        return stream
    return replace(stream, tables=tuple(_of_month(table, month) for table in stream.tables))


def _of_month(table: Table, month: str) -> Table:
    return table if table.months == "together" else replace(table, month=month)


def ensure(url: str, stream: Stream, readings: Iterable[Reading]) -> None:
    """Make the parts that readings need, in transactions of their own, where they are missing."""
    days = {month: reading.session_date for reading in readings if (month := month_of(stream, reading))}
    for table in stream.tables:
        missing = [month for month in sorted(days) if (url, table.qualified, month) not in _seen]
        if table.months != "apart" or not missing:
            continue
        with transaction(url, application="daybook months") as connection:
            for month in missing:
                connection.execute(
                    query("months.ensure"), {"schema": table.schema, "table": table.name, "day": days[month]}
                )
        _seen.update((url, table.qualified, month) for month in missing)
