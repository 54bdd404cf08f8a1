"""What a release is: the words in which published files are declared.

Promises: a release says what it is made from, how its files are named and cut, who may see them, under which terms and
how long they are kept. Public needs a terms entry with a source and a date. Never: no database, no file, no network.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Literal

from include.contract import Table

WHOLE = "all"
BULK = 200
_COMPANY, _SCAN = re.compile(r"[0-9A-Za-z]{1,20}"), re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)?")
_SET = re.compile(r"[a-z]+/\d{4}Q[1-4]")
_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")


class ReleaseError(Exception):
    """A release is declared or asked for in a way that cannot be; the text says what would do."""


@dataclass(frozen=True)
class Terms:
    """What an upstream allows to be done with its data, where it says so, and when that was read."""

    note: str
    source: str = ""
    read_on: date | None = None


@dataclass(frozen=True)
class Part:
    """One part of a release and the one file that holds it.

    `first` to before `after` bound its session dates; `company` is whose rows it holds, where they are one company's.
    """

    name: str
    path: str
    first: date | None = None
    after: date | None = None
    company: str | None = None


@dataclass(frozen=True)
class Release:
    """One category of published files.

    `table` is the qualified name of the table or view that its rows are read from, `path` the pattern of its files in
    the repository (`{month}` stands for YYYY-MM), `cut` how it is divided: by the month of the session date, by the
    company (`{company}`, its number; `{folder}` are its last two digits, so that no folder grows large), into scans
    over all companies (`{scan}`), which are built apart (`prebuild`) and go in one commit, or not at all, or into
    members of quarterly sets (`{set}`, e.g. sub/2025Q4). A view has a
    `shape`, which declares its columns, and `made_from` names the tables whose changes make it out of date.
    `open_items_of` names the listing whose items its rows are, where those that have departed are left out,
    `whole_days_in` a view that says of each session date whether it is whole (`is_whole`): one that is not is left out
    until what it lacks has come. `calendar` is the trading calendar that its session dates follow, None where they
    follow none. `priority` orders the releases when several wait: small and urgent ones have small numbers, and those
    from `BULK` on leave some of each hour's commits to the others. `made_by` names the stream whose made files it takes
    as they are, in the place of a table. `newest` names the columns of subject and day beside which what its upstream
    says of its newest is held, where rows are not read by session date. One that is not `is_on` is declared and not
    made. `retention` says how long files are kept.
    """

    name: str
    title: str
    table: str
    path: str
    cut: Literal["month", "whole", "company", "scan", "set"]
    terms: Terms
    visibility: Literal["private", "public"] = "private"
    shape: Table | None = None
    made_from: tuple[str, ...] = ()
    open_items_of: str | None = None
    whole_days_in: str | None = None
    calendar: str | None = None
    priority: int = 100
    made_by: str = ""
    newest: tuple[str, str] | None = None
    is_on: bool = True
    retention: str = "the newest version of each file; earlier ones stay in the history of the repository"

    def __post_init__(self) -> None:
        """Refuse a declaration that would publish wrongly.

        Raises:
            ReleaseError: public without terms, a path that does not fit the cut, open items by month, whole days
                without months, or a view of which nobody knows what it is made from.
        """
        if self.visibility == "public" and not (self.terms.source and self.terms.read_on):
            raise ReleaseError(f"Release {self.name} is public, so its terms must name a source and a date.")
        if re.findall(r"{\w+}", self.path.replace("{folder}/", "")) != (
            [] if self.cut == "whole" else [f"{{{self.cut}}}"]
        ):
            raise ReleaseError(f"The path {self.path!r} of release {self.name} does not fit its cut, {self.cut}.")
        if self.open_items_of and self.cut != "whole":
            raise ReleaseError(f"Release {self.name} is of the items that are open, so it is not cut into months.")
        if self.whole_days_in and self.cut != "month":
            raise ReleaseError(f"Release {self.name} is of whole days, so it is cut into months.")
        if bool(self.made_by) == bool(self.table or self.made_from):
            raise ReleaseError(f"Release {self.name} is made from tables or takes a stream's files: one of the two.")
        if self.cut != "scan" and (self.shape is None) != (not self.made_from):
            raise ReleaseError(f"Release {self.name} reads a view: it needs the shape of it and what it is made from.")
        if self.shape is not None and self.shape.qualified != self.table:
            raise ReleaseError(f"Release {self.name} is made from {self.table}; its shape is {self.shape.qualified}.")

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables whose changes make its files out of date."""
        return self.made_from or ((self.table,) if self.table else ())

    @property
    def marks(self) -> tuple[str, ...]:
        """The names under which changes of these tables are counted: by their own parts, or by company."""
        by_company = self.cut in ("company", "scan")
        return tuple(f"{table}:company" for table in self.tables) if by_company else self.tables

    @property
    def is_bulk(self) -> bool:
        """Whether it leaves a part of each hour's commits to other releases."""
        return self.priority >= BULK

    def part(self, name: str) -> Part:
        """Return a part by its name: a month as YYYY-MM, a company, a scan, or `all` where it is not divided.

        Raises:
            ReleaseError: the release has no such part.
        """
        if self.cut == "whole" and name == WHOLE:
            return Part(name, self.path)
        if self.cut == "company" and _COMPANY.fullmatch(name):
            path = self.path.replace("{company}", name).replace("{folder}", name[-2:].zfill(2))
            return Part(name, path, company=name)
        if self.cut == "scan" and _SCAN.fullmatch(name):
            return Part(name, self.path.replace("{scan}", name))
        if self.cut == "set" and _SET.fullmatch(name):
            return Part(name, self.path.replace("{set}", name))
        match = _MONTH.fullmatch(name)
        if self.cut != "month" or match is None:
            what = {
                "whole": "is not divided",
                "month": "is divided by months (YYYY-MM)",
                "company": "has a file for each company",
                "scan": "has a file for each scan",
                "set": "has a file for each member of a quarter's set (sub/2025Q4)",
            }[self.cut]
            raise ReleaseError(f"Release {self.name} {what}; it has no part {name!r}.")
        year, month = int(match[1]), int(match[2])
        after = date(year + month // 12, month % 12 + 1, 1)
        return Part(name, self.path.replace("{month}", name), date(year, month, 1), after)

    def part_at(self, path: str) -> Part:
        """Return the part whose file has a path.

        Raises:
            ReleaseError: the release has no file there.
        """
        before, _, after = self.path.partition("{")
        inner = path.removeprefix(before).removesuffix(after.rpartition("}")[2])
        name = {"company": inner.rpartition("/")[2], "whole": WHOLE}.get(self.cut, inner)
        part = self.part(name)
        if part.path != path:
            raise ReleaseError(f"{path} is not where release {self.name} has it, {part.path}")
        return part
