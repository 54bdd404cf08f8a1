"""Parquet files from tables: the same rows give the same bytes.

Promises: types follow the table's declaration exactly (decimals stay decimals, text stays text); rows come from
one snapshot, in key order, by batches of bounded size; `content_hash` covers schema and rows and does not depend
on the library that packs them. Never: no clock, no type guessed from values, no row held longer than its batch.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from psycopg import sql

from include.contract import Column, Table
from include.engine.db import Connection, query, template
from include.outputs.release import Part, Release

ROWS_PER_GROUP = 100_000
_COMPRESSION_LEVEL = 9
_MOST_DIGITS = 38

SENT_AT = Column("sent_at", "timestamptz", "When the fetch that gave these values was sent")


class PartUnreadable(Exception):
    """Rows do not fit the declared types, so no file was made; the text says which release and part, and why."""


@dataclass(frozen=True)
class Written:
    """A finished file and what is in it.

    `content_hash` is the SHA-256 over schema and rows, `sha256` that of the bytes, `version` the version of the
    part in the snapshot that was read, `newest_fetch` the highest fetch id among its rows.
    """

    file: Path
    content_hash: bytes
    sha256: bytes
    size: int
    rows: int
    newest_fetch: int | None
    first_session: date | None
    last_session: date | None
    version: int


def published_columns(table: Table) -> tuple[Column, ...]:
    """Return what a file of the table holds: the declared columns, then when the values were fetched."""
    return (*table.columns, SENT_AT)


def arrow_schema(release: Release, table: Table) -> Any:
    """Return the pyarrow schema of a release's files; comments of table and columns travel as metadata."""
    return schema_of(release, table, published_columns(table))


def schema_of(release: Release, table: Table, columns: Sequence[Column]) -> Any:
    """Return the pyarrow schema of files with these columns of a table or view."""
    import pyarrow as pa

    fields = [
        pa.field(column.name, _arrow_type(column), column.nullable, {"comment": column.comment}) for column in columns
    ]
    about = {"release": release.name, "comment": table.comment, "key": ",".join(table.key), "terms": release.terms.note}
    if table.session_date is not None:
        about["session_date"] = table.session_date
    return pa.schema(fields, about)


def _arrow_type(column: Column) -> Any:
    """The exact type of a column; a number of unlimited or very many digits stays the text that the database gives."""
    import pyarrow as pa

    if column.type == "numeric":
        digits, scale = column.precision or (_MOST_DIGITS + 1, 0)
        return pa.decimal128(digits, scale) if digits <= _MOST_DIGITS else pa.string()
    return {
        "text": pa.string(),
        "jsonb": pa.string(),
        "bigint": pa.int64(),
        "integer": pa.int32(),
        "smallint": pa.int16(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamptz": pa.timestamp("us", "UTC"),
    }[column.type]


def _schema_text(table: Table) -> bytes:
    """The schema as hashed: names, types and whether they may be null. A reworded comment is no new content."""
    columns = [
        [column.name, column.type, list(column.precision or ()), column.nullable] for column in published_columns(table)
    ]
    return json.dumps({"columns": columns, "key": list(table.key)}, separators=(",", ":")).encode() + b"\n"


def write(connection: Connection, release: Release, table: Table, part: Part, file: Path) -> Written:
    """Write one part of a release to a new file and make it safe on disk.

    Args:
        connection: in a REPEATABLE READ transaction, so that version, facts and rows are one snapshot.
        file: where to; whatever is there is written over, so it must be a temporary name.

    Raises:
        PartUnreadable: a value does not fit its declared type.
        OSError: the file cannot be written.
    """
    connection.execute(query("publish.text_form"))
    place = {"tables": list(release.marks), "partition": part.name}
    version = _one(connection.execute(query("publish.version"), place).fetchone())["version"]
    where = _where(release, table, part)
    facts = _one(connection.execute(_facts(table, where)).fetchone())

    schema = arrow_schema(release, table)
    content, rows = hashlib.sha256(_schema_text(table)), 0
    with writer(file, schema, table.key) as writing:
        for block, count in _blocks(connection, table, where):
            content.update(block)
            rows += count
            writing.write_table(read(block, schema, f"{release.name} {part.name}"), row_group_size=ROWS_PER_GROUP)
    sha256 = synced(file)
    return Written(
        file=file,
        content_hash=content.digest(),
        sha256=sha256,
        size=file.stat().st_size,
        rows=rows,
        newest_fetch=facts["newest_fetch"],
        first_session=facts.get("first_session"),
        last_session=facts.get("last_session"),
        version=version,
    )


@contextmanager
def writer(file: Path, schema: Any, key: Sequence[str], *, level: int | None = None) -> Iterator[Any]:
    """Give what writes a file of rows in the order of a key: the same rows give the same bytes."""
    import pyarrow.parquet as pq

    options: dict[str, Any] = {
        "compression": "zstd",
        "compression_level": _COMPRESSION_LEVEL if level is None else level,
        "version": "2.6",
        "data_page_version": "1.0",
        "use_dictionary": True,
        "write_statistics": True,
        "store_schema": True,
        "sorting_columns": [pq.SortingColumn(schema.names.index(name)) for name in key],
    }
    with file.open("wb") as stream, pq.ParquetWriter(stream, schema, **options) as writing:
        yield writing


def synced(file: Path) -> bytes:
    """Make a finished file safe on disk and return the hash of its bytes."""
    with file.open("rb+") as finished:
        sha256 = hashlib.file_digest(finished, "sha256").digest()
        os.fsync(finished.fileno())
    return sha256


def read(block: bytes, schema: Any, what: str) -> Any:
    """Turn rows as the database writes them into an arrow table of the declared types.

    Raises:
        PartUnreadable: a value does not fit its declared type.
    """
    import pyarrow as pa

    try:
        return _read(block, schema)
    except pa.ArrowInvalid as error:
        reason = str(error).partition(". Row:")[0]
        raise PartUnreadable(f"{what} cannot be written: {reason}.") from None


def _one(row: dict[str, Any] | None) -> dict[str, Any]:
    assert row is not None, "an aggregate gives one row"
    return row


def _where(release: Release, table: Table, part: Part) -> sql.Composable:
    if release.open_items_of is not None:
        key = sql.SQL(", ").join(sql.Identifier(name) for name in table.key)
        return template("export.open_items", stream=sql.Literal(release.open_items_of), key=key)
    if part.company is not None:
        return template("export.company", company=sql.Identifier(table.key[0]), value=sql.Literal(part.company))
    if part.first is None or part.after is None:
        return template("export.whole")
    if table.session_date is None:
        raise PartUnreadable(f"{table.qualified} has no session date, so it cannot be cut into months.")
    names: dict[str, sql.Composable] = {
        "session_date": sql.Identifier(table.session_date),
        "first": sql.Literal(part.first),
        "after": sql.Literal(part.after),
    }
    if release.whole_days_in is not None:
        return template("export.whole_days", days=sql.Identifier(*release.whole_days_in.split(".")), **names)
    return template("export.month", **names)


def _facts(table: Table, where: sql.Composable) -> sql.Composed:
    name = sql.Identifier(table.schema, table.name)
    if table.session_date is None:
        return template("export.facts", table=name, part=where)
    return template(
        "export.facts_with_sessions", table=name, part=where, session_date=sql.Identifier(table.session_date)
    )


def _blocks(connection: Connection, table: Table, where: sql.Composable) -> Iterator[tuple[bytes, int]]:
    """The rows of a part as CSV, `ROWS_PER_GROUP` at a time; streamed, so memory does not grow with the part."""
    types = {column.name: column.type for column in table.columns}
    order = [
        template("export.text_order", column=sql.Identifier(name)) if types[name] == "text" else sql.Identifier(name)
        for name in table.key
    ]
    statement = template(
        "export.rows",
        columns=sql.SQL(", ").join(sql.Identifier(column.name) for column in published_columns(table)),
        table=sql.Identifier(table.schema, table.name),
        part=where,
        order=sql.SQL(", ").join(order),
    )
    block: list[bytes] = []
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        # The driver gives one row at a time, also where a value holds a line break.
        while row := copy.read():
            block.append(bytes(row))
            if len(block) == ROWS_PER_GROUP:
                yield b"".join(block), len(block)
                block = []
    if block:
        yield b"".join(block), len(block)


def _read(block: bytes, schema: Any) -> Any:
    """Turn a block of CSV into an arrow table of the declared types; only an unquoted empty field is null."""
    import pyarrow as pa
    from pyarrow import csv

    table = csv.read_csv(
        pa.BufferReader(block),
        read_options=csv.ReadOptions(column_names=schema.names, use_threads=False, block_size=len(block) + 1),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types={field.name: field.type for field in schema},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )
    return table.cast(schema)
