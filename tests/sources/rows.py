"""Rows put into tables as the engine writes them, for tests that start from what is held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

ENGINES = {"unit": "u", "fetch_id": 1, "parser_version": 1, "cycle_id": 1, "attempt": 1}


def at(text: str) -> datetime:
    """An instant in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class Warehouse:
    """A database to put rows of tables into and to ask."""

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self._connection = connection

    def put(self, table: str, **values: Any) -> None:
        """Insert a row; the engine's own columns are filled, and a text is an instant where it is one's name."""
        row = ENGINES | {n: at(v) if n.endswith("_at") and isinstance(v, str) else v for n, v in values.items()}
        row = {name: Jsonb(value) if isinstance(value, dict | list) else value for name, value in row.items()}
        statement = sql.SQL("insert into {} ({}) values ({})").format(
            sql.Identifier(*table.split(".")),
            sql.SQL(", ").join(map(sql.Identifier, row)),
            sql.SQL(", ").join([sql.Placeholder()] * len(row)),
        )
        self._connection.execute(statement, list(row.values()))

    def ask(self, question: str, *values: Any) -> list[Any]:
        """The rows of a question, or its only column."""
        rows = self._connection.execute(question, values).fetchall()
        return [next(iter(row.values())) if len(row) == 1 else tuple(row.values()) for row in rows]


@contextmanager
def opened(url: str) -> Iterator[Warehouse]:
    """The warehouse at an address, each statement by itself."""
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        yield Warehouse(connection)
