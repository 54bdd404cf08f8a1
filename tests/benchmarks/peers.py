"""What loading is measured against: psycopg2's `execute_values` and pandas' `to_sql`, each replacing what is there.

Promises: making the rows is a part of what is measured, batch by batch, where the caller gives them as they are asked
for; every batch ends with its commit. Both write into tables of the schema `bench`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

import pandas as pd
import psycopg2
import sqlalchemy
from psycopg2.extras import execute_values
from sqlalchemy.dialects.postgresql import insert

from include.engine.db import connect
from tests.benchmarks.measuring import Cost, Judged, of_backend, ratios, spending

# Rows of one statement.
UPSERT = 1_000


def by_hand(
    url: str, target: str, names: Sequence[str], key: Sequence[str], batches: Iterable[Sequence[tuple[Any, ...]]]
) -> Cost:
    """A thousand rows a statement."""
    sets = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    statement = (
        f"insert into bench.{target} ({', '.join(names)}) values %s on conflict ({', '.join(key)}) do update set {sets}"
    )
    with closing(psycopg2.connect(url)) as connection:
        with spending(of_backend(connection.info.backend_pid)) as spent:
            for rows in batches:
                with connection.cursor() as cursor:
                    execute_values(cursor, statement, rows, page_size=UPSERT)
                connection.commit()
        return spent.cost


def by_pandas(url: str, target: str, key: Sequence[str], frames: Iterable[pd.DataFrame]) -> Cost:
    """With a method that replaces what is there, as pandas' own documentation shows it."""

    def upsert(table: Any, connection: Any, keys: list[str], rows: Any) -> int:
        statement = insert(table.table).values([dict(zip(keys, row, strict=True)) for row in rows])
        sets = {name: statement.excluded[name] for name in keys if name not in key}
        done = connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=sets))
        return int(done.rowcount)

    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg2://", 1))
    try:
        with engine.connect() as connection:
            pid = connection.connection.driver_connection.info.backend_pid  # type: ignore[union-attr]
            with spending(of_backend(pid)) as spent:
                for frame in frames:
                    frame.to_sql(
                        target,
                        connection,
                        schema="bench",
                        if_exists="append",
                        index=False,
                        method=upsert,
                        chunksize=UPSERT,
                    )
                    connection.commit()
            return spent.cost
    finally:
        engine.dispose()


def sql(url: str, statement: str) -> Any:
    """Run one statement and return the only value of its only row, if it gives one."""
    with closing(connect(url, autocommit=True, statement_timeout=600)) as connection:
        cursor = connection.execute(statement)  # type: ignore[arg-type]
        row = cursor.fetchone() if cursor.description else None
        return next(iter(row.values())) if row else None


def against(name: str, reference: list[Cost], ours: list[Cost], floor: float, aim: float) -> Judged:
    """How many times ours the reference took, to be judged."""
    return Judged(name, tuple(ratios(reference, ours)), floor=floor, aim=aim)
