"""The parquet file of one company's facts: the same facts give the same bytes.

Promises: the columns and types below, whatever the company; text where the document has text, days as days, and the
value as the digits that were filed. Never: a float, a clock, or a type guessed from values.

`val` is text because no type that parquet's readers share holds every number that is filed: a decimal of 38 digits has
to choose between those before and behind the point. It is also what is smallest here. `val::decimal(38, 6)` in DuckDB
and `pl.col("val").cast(pl.Decimal(38, 6))` in polars make numbers of it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO

from include.contract import ParseError
from include.sources.edgar.documents import Facts, read

if TYPE_CHECKING:
    import pyarrow as pa
    from msgspec import Raw

COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("cik", "int64", "Company, by its number at the SEC"),
    ("entity_name", "text", "Its name as the document has it; empty where it is"),
    ("taxonomy", "text", "us-gaap, ifrs-full, dei, srt or any other"),
    ("concept", "text", "Name of the concept within the taxonomy"),
    ("label", "text", "Its label, null where the taxonomy has none"),
    ("unit", "text", "Unit as resolved by the SEC: USD, shares, USD/shares, pure or any other"),
    ("start", "day", "First day of the period, null at an instant"),
    ("end", "day", "Last day of the period, or the instant"),
    ("val", "text", "Value, with the digits as given"),
    ("accn", "text", "Accession of the filing that reports it"),
    ("fy", "int32", "Fiscal year of the filing, not of the fact"),
    ("fp", "text", "Fiscal period of the filing: FY, Q1, Q2 or Q3"),
    ("form", "text", "Form of the filing"),
    ("filed", "day", "Day on which it was filed"),
    ("frame", "text", "Frame of which this is the value now"),
)
# What has one of these is, in JSON, neither a number nor null.
_OF_NO_NUMBER = (b'"', b"t", b"f", b"[", b"{")
_NOT_NULL = ("cik", "taxonomy", "concept", "unit", "end", "accn", "filed")


@cache
def schema() -> pa.Schema:
    """The schema of every such file."""
    import pyarrow as pa

    types = {"int64": pa.int64(), "int32": pa.int32(), "text": pa.string(), "day": pa.date32()}
    fields = [pa.field(name, types[kind], name not in _NOT_NULL, {"comment": about}) for name, kind, about in COLUMNS]
    return pa.schema(fields, {"release": "edgar/finance", "order": "taxonomy,concept,unit,end,accn,filed,start"})


def table(facts: Facts) -> pa.Table:
    """Facts as a table, whose texts are numbers of a dictionary: what is said of a concept is there once.

    Raises:
        Unusual: a row is not of the usual form, though the document is; it must be read field by field.
    """
    import numpy as np
    import pyarrow as pa

    rows, runs, count = facts.rows, facts.runs, len(facts.rows)
    of_run = np.repeat(np.arange(len(runs), dtype=np.int32), [run.count for run in runs])
    columns: dict[str, pa.Array] = {
        "cik": pa.repeat(pa.scalar(facts.cik, pa.int64()), count),
        "entity_name": pa.repeat(pa.scalar(facts.entity_name, pa.string()), count).dictionary_encode(),
        "accn": pa.array([row.accn for row in rows], pa.string()).dictionary_encode(),
        "fy": _years([row.fy for row in rows]),
        "fp": pa.array([row.fp for row in rows], pa.string()).dictionary_encode(),
        "form": pa.array([row.form for row in rows], pa.string()).dictionary_encode(),
        "frame": pa.array([row.frame for row in rows], pa.string()).dictionary_encode(),
        "val": _numbers([row.val for row in rows]),
        "end": _days([row.end for row in rows]),
        "filed": _days([row.filed for row in rows]),
        "start": _days([row.start or None for row in rows]),
    }
    for name in ("taxonomy", "concept", "label", "unit"):
        said = pa.array([getattr(run, name) for run in runs], pa.string()).dictionary_encode()
        columns[name] = pa.DictionaryArray.from_arrays(said.indices.take(pa.array(of_run)), said.dictionary)
    names = [name for name, _, _ in COLUMNS]
    fields = [schema().field(name).with_type(columns[name].type) for name in names]
    return pa.table([columns[name] for name in names], schema=pa.schema(fields))


class Unusual(Exception):
    """Something in a document of the usual form is not of the usual kind."""


def _years(years: list[int | None]) -> pa.Array:
    """Fiscal years.

    Raises:
        Unusual: one is no year.
    """
    import pyarrow as pa

    try:
        return pa.array(years, pa.int32())
    except (pa.ArrowInvalid, OverflowError) as error:
        raise Unusual(str(error)) from None


def _days(texts: list[str | None]) -> pa.Array:
    """Days of texts such as 2025-12-31.

    Raises:
        Unusual: one is none.
    """
    import pyarrow as pa

    try:
        return pa.array(texts, pa.string()).cast(pa.date32())
    except pa.ArrowInvalid as error:
        raise Unusual(str(error)) from None


def _numbers(values: list[Raw]) -> pa.Array:
    """The digits of numbers, null where none was given.

    Raises:
        Unusual: something else than a number was given.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not values:
        return pa.array([], pa.string())
    # Taken apart in one go: a text for each of them takes twice as long.
    joined = b",".join(values)
    if any(sign in joined for sign in _OF_NO_NUMBER):
        raise Unusual("a value is no number")
    text = pc.split_pattern(pa.array([joined], pa.string()), ",").flatten()
    return pc.if_else(pc.equal(text, "null"), pa.scalar(None, pa.string()), text) if b"n" in joined else text


def write(content: pa.Table, target: BinaryIO) -> None:
    """Write a company's file."""
    import pyarrow.parquet as pq

    # A file of one company is read whole: statistics would cost a third of the time and help nobody.
    pq.write_table(
        content,
        target,
        compression="zstd",
        compression_level=1,
        version="2.6",
        data_page_version="1.0",
        use_dictionary=[name for name, _, _ in COLUMNS if name != "val"],
        write_statistics=False,
        # Readers are to see plain columns, whatever they were written from.
        store_schema=False,
        row_group_size=1 << 20,
    )


def convert(body: bytes, cik: int, target: BinaryIO) -> Facts:
    """Read a document and write its file; returns what was read, with what was rejected.

    Raises:
        ParseError: it is no document of the company's facts.
    """
    facts = read(body, cik)
    try:
        content = table(facts)
    except Unusual:
        facts = read(body, cik, loosely=True)
        content = table(facts)
    write(content, target)
    return facts


def write_nothing(target: BinaryIO) -> None:
    """Write the file of a company that is no longer there: the same columns, without rows."""
    write(schema().empty_table(), target)


def cik_of(unit: str) -> int:
    """The company that a unit names.

    Raises:
        ParseError: it names none.
    """
    text = unit.partition("/")[0]
    if not text.isascii() or not text.isdigit():
        raise ParseError(f"{unit!r} names no company")
    return int(text)


def path_of(unit: str) -> str:
    """Where a company's file lies."""
    cik = cik_of(unit)
    return f"edgar/finance/{cik % 100:02d}/{cik:010d}.parquet"


def columns(facts: Facts) -> Any:
    """The facts as plain rows, in the order of the columns: for tables and comparisons."""
    for run, rows in facts.by_run():
        for row in rows:
            value = bytes(row.val).decode()
            yield (
                facts.cik,
                facts.entity_name,
                run.taxonomy,
                run.concept,
                run.label,
                run.unit,
                row.start or None,
                row.end,
                None if value == "null" else value,
                row.accn,
                row.fy,
                row.fp,
                row.form,
                row.filed,
                row.frame,
            )
