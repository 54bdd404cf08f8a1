"""What is built over all companies at once: the parts of a release that has a file for each of its questions.

Promises: a part is declared by its columns, the view that gives its rows by company, and what of that view is in it.
Never: nothing is read here.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from psycopg import sql

from include.contract import Column, Table
from include.engine.db import template
from include.outputs.parquet import published_columns

COMPANY = "corp_code"


@dataclass(frozen=True)
class Scan:
    """One part of a release over all companies: `name` is its file's name below the release.

    `shape` declares its columns, the company first, in the key as well; its rows are those of the view of that name
    where `only` (column, value) holds. `fields` are columns that are read from the JSON column `values`.
    """

    name: str
    shape: Table
    only: tuple[str, str] | None = None
    values: str = ""
    fields: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """What its file holds."""
        return published_columns(self.shape)

    @property
    def fingerprint(self) -> bytes:
        """What its rows look like; where that changes, they are all read again."""
        shape = [[c.name, c.type, list(c.precision or ()), c.nullable] for c in self.columns]
        return hashlib.sha256(json.dumps([shape, list(self.shape.key), self.only]).encode()).digest()

    def rows(self, companies: list[str]) -> sql.Composed:
        """The statement that gives its rows of some companies, in the order of the key."""
        types = {column.name: column.type for column in self.columns}
        order = [
            template("export.text_order", column=sql.Identifier(name))
            if types[name] == "text"
            else sql.Identifier(name)
            for name in self.shape.key
        ]
        return template(
            "export.of_companies",
            columns=sql.SQL(", ").join(self._selected(column.name) for column in self.columns),
            table=sql.Identifier(self.shape.schema, self.shape.name),
            company=sql.Identifier(COMPANY),
            companies=sql.Literal(companies),
            part=self._part,
            order=sql.SQL(", ").join(order),
        )

    def newest(self, companies: list[str]) -> sql.Composed:
        """The statement that gives the newest fetch among the rows of each company."""
        return template(
            "export.newest_of_companies",
            table=sql.Identifier(self.shape.schema, self.shape.name),
            company=sql.Identifier(COMPANY),
            companies=sql.Literal(companies),
            part=self._part,
        )

    @property
    def _part(self) -> sql.Composed:
        if self.only is None:
            return template("export.whole")
        return template("export.only", column=sql.Identifier(self.only[0]), value=sql.Literal(self.only[1]))

    def _selected(self, name: str) -> sql.Composable:
        if name in self.fields:
            values = sql.Identifier(self.values)
            return template("export.field", values=values, field=sql.Literal(name), column=sql.Identifier(name))
        return sql.Identifier(name)
