"""Tables as they are declared, and rows that could not be read; the contract gives these words on.

Promises: immutable, from the standard library alone. Never: no database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SqlType = Literal["text", "numeric", "bigint", "integer", "smallint", "boolean", "date", "timestamptz", "jsonb"]


@dataclass(frozen=True)
class Column:
    """One column of a table: its SQL type (with precision where numeric), whether it may be null, what it means."""

    name: str
    type: SqlType
    comment: str
    nullable: bool = False
    precision: tuple[int, int] | None = None


@dataclass(frozen=True)
class Rule:
    """A check over every staged row; a row that breaks it goes to quarantine under the rule's name.

    `kind` chooses the check: `not_blank` (text with something in it), `not_negative`, `at_most` (the first
    column is not greater than the second) or `in_unit` (the column equals the unit's session date).
    """

    name: str
    kind: Literal["not_blank", "not_negative", "at_most", "in_unit"]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Usual:
    """A column that may be null and nearly never is.

    Where more than `most_missing` (a share) of a window's rows, of `of_rows` at least, have none, that is told: the
    upstream may have renamed it.
    """

    column: str
    most_missing: float
    of_rows: int = 20


@dataclass(frozen=True)
class Table:
    """A table, declared once: the migration, staging, merge, parquet schema and data dictionary follow it.

    `key` identifies a row; `session_date` names the column with the market's own day. `version` names a column
    (never null) by which the upstream itself orders its answers; a row gives way only to a greater one of
    version, instant of asking and parser. `replaces` = "unit": rows of a unit that a newer answer no longer gives
    are withdrawn; "nothing": rows are only added or revised. `is_copy` marks a replay's copy, which is not
    published; no file is made of a table that is not `is_published` either. `months`: a table kept `apart` has a
    part of its own for each month in New York, made when it is first needed, and one that is `locked` is written by
    one worker a month; then every unit is within the month of its session date. `month` is for the engine: which part
    is meant. `usual` names columns that are nearly always there. `kept` are columns that the database itself keeps
    beside a row, by a default and a trigger: no parser gives them, and neither the history nor a file has them.
    """

    schema: str
    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    session_date: str | None
    rules: tuple[Rule, ...] = ()
    version: str | None = None
    replaces: Literal["unit", "nothing"] = "unit"
    months: Literal["together", "locked", "apart"] = "together"
    month: str = ""
    is_copy: bool = False
    is_published: bool = True
    usual: tuple[Usual, ...] = ()
    kept: tuple[Column, ...] = ()

    @property
    def qualified(self) -> str:
        """Schema and name, as used in messages and lock keys."""
        return f"{self.schema}.{self.name}"

    @property
    def column_names(self) -> tuple[str, ...]:
        """The declared columns in order, without the engine's own."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class Rejected:
    """A row that could not be read: which line or item it was, why, and its text (at most 2,000 characters)."""

    position: str
    reason: str
    text: str
