"""A small market to publish: rows of FINRA's table, written the way the engine writes them, marks included."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg

from include.outputs import releases
from include.sources.finra.tables import SHORT_VOLUME

RELEASE = releases.release("finra/short_volume")
TABLE = SHORT_VOLUME
SENT = datetime(2026, 9, 15, 23, 40, 0, 123456, tzinfo=UTC)

Row = tuple[date, str, str, Decimal, Decimal | None, Decimal, str]


def row(day: date, symbol: str, short: str = "10.5", exempt: str | None = "0", facility: str = "CNMS") -> Row:
    """One row of the table; volumes as text, so that nothing is rounded on the way."""
    return (
        day,
        facility,
        symbol,
        Decimal(short),
        None if exempt is None else Decimal(exempt),
        Decimal(short) + 100,
        "B,Q,N",
    )


def month(name: str, symbols: int = 5, days: Iterable[int] = (1, 2)) -> list[Row]:
    """Some rows of a month."""
    year, number = map(int, name.split("-"))
    return [row(date(year, number, day), f"SYM{n:04d}", f"{n}.{day:06d}") for day in days for n in range(symbols)]


def save(url: str, rows: Iterable[Row], fetch: int = 1, sent: datetime = SENT) -> None:
    """Write rows and mark their months, in one transaction, as an apply does."""
    with psycopg.connect(url) as connection:
        months = set()
        for values in rows:
            months.add(f"{values[0]:%Y-%m}")
            connection.execute(
                "insert into market.finra_short_volume values "
                "(%s,%s,%s,%s,%s,%s,%s, 'unit', %s, %s, 1, 1, 1, null) "
                "on conflict (session_date, facility, symbol) do update set short_volume = excluded.short_volume, "
                "fetch_id = excluded.fetch_id, sent_at = excluded.sent_at",
                (*values, fetch, sent),
            )
        for name in months:
            mark(connection, name)


def mark(connection: psycopg.Connection[Any], name: str) -> None:
    """Mark a month as changed."""
    connection.execute(
        "insert into publish.stale (table_name, partition, marked_at) values (%s, %s, collect.clock()) "
        "on conflict (table_name, partition) do update set version = stale.version + 1, marked_at = collect.clock()",
        (TABLE.qualified, name),
    )


def touch(url: str, name: str) -> None:
    """Mark a month as changed although its rows are the same."""
    with psycopg.connect(url) as connection:
        mark(connection, name)


def empty(url: str, name: str) -> None:
    """Withdraw all rows of a month."""
    with psycopg.connect(url) as connection:
        connection.execute("delete from market.finra_short_volume where to_char(session_date, 'YYYY-MM') = %s", (name,))
        mark(connection, name)


def files(url: str) -> list[dict[str, Any]]:
    """The rows of the outbox, oldest first."""
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        return connection.execute("select * from publish.files order by file_id").fetchall()


def states(url: str) -> list[tuple[str, str]]:
    """Part and state of every row of the outbox, oldest first."""
    return [(file["partition"], file["state"]) for file in files(url)]
