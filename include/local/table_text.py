"""A declared table as the SQL of a migration: the table, its history, their comments and indexes.

Promises: what it gives is what the house's test of migrations wants of that declaration. Never: a table that is kept
apart by month, or that has columns which the database keeps, is written; those need a hand.
"""

from __future__ import annotations

from pathlib import Path
from string import Template

from include.contract import Column, Table
from include.local.failure import LocalFailure

TEMPLATES = Path(__file__).with_name("templates")
_ENGINE = (
    Column("unit", "text", "Unit that gave the row"),
    Column("fetch_id", "bigint", "Fetch that gave these values first"),
    Column("sent_at", "timestamptz", "When that fetch was sent"),
    Column("parser_version", "integer", "Parser that read it"),
    Column("cycle_id", "bigint", "Cycle that wrote it"),
    Column("attempt", "integer", "Claim of that cycle"),
    Column("extra", "jsonb", "Columns of the upstream that nobody knew yet", nullable=True),
)
_ENDED = Column("ended_at", "timestamptz", "When the fetch was sent that says otherwise")
_REASON = Column("reason", "text", "revised by a newer answer, withdrawn from it, or read otherwise by a newer parser")


def table_sql(table: Table) -> str:
    """Return the statements that make a table and its history.

    Raises:
        LocalFailure: it is kept apart by month, or the database keeps columns of it.
    """
    if table.months == "apart" or table.kept:
        raise LocalFailure(
            f"{table.qualified} is kept apart by month, or has columns that the database keeps: write its migration by "
            "hand, as include/sources/alpaca has its own."
        )
    columns = (*table.columns, *_ENGINE)
    width = max(len(column.name) for column in columns) + 1
    once = f"What {table.name} once said otherwise, until when and why no longer"
    return _filled(
        "table",
        table=table.qualified,
        name=table.name,
        key=", ".join(table.key),
        columns="\n".join(f"    {column.name:<{width}} {_type(column)}," for column in columns),
        comments=_comments(table.qualified, table.comment, columns),
        history_comments=_comments(f"{table.qualified}_history", once, (*columns, _ENDED, _REASON)),
    )


def _type(column: Column) -> str:
    said = {"timestamptz": "timestamptz(6)"}.get(column.type, column.type)
    if column.precision is not None:
        said = f"{column.type}({column.precision[0]}, {column.precision[1]})"
    return said if column.nullable else f"{said} not null"


def _comments(name: str, comment: str, columns: tuple[Column, ...]) -> str:
    said = [("table", name, comment), *(("column", f"{name}.{each.name}", each.comment) for each in columns)]
    lines = [_filled("comment", kind=kind, name=of, words=words.replace("'", "''")) for kind, of, words in said]
    return "\n".join(lines)


def _filled(template: str, **words: str) -> str:
    text = (TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(words).rstrip("\n")
