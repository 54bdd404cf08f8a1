"""How the SEC's things are named: companies, filings, quarters, and the addresses of their files.

Promises: a CIK is a number here and never padded by accident; a key says by itself where a filing lies. Never: a name
that is not well-formed is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from include.sources.sec.shared import DATA, WWW

ACCESSION = re.compile(r"[0-9]{10}-[0-9]{2}-[0-9]{6}")
_KEY = re.compile(
    r"(?P<accession>[0-9]{10}-[0-9]{2}-[0-9]{6})/(?P<cik>[1-9][0-9]{0,9})/(?P<filed>[0-9]{4}-[0-9]{2}-[0-9]{2})"
)
_CIK = re.compile(r"(?:CIK)?0*(?P<number>[1-9][0-9]{0,9})")
_QUARTER = re.compile(r"(?P<year>[12][0-9]{3})Q(?P<number>[1-4])")


def cik_of(text: str) -> int | None:
    """Return the number of a company as people write it (`320193`, `CIK0000320193`); None if it is none."""
    match = _CIK.fullmatch(text)
    return int(match["number"]) if match else None


def submissions_url(cik: int) -> str:
    """Return where a company's list of filings is."""
    return f"{DATA}/submissions/CIK{cik:010d}.json"


@dataclass(frozen=True)
class FilingKey:
    """A filing as the streams hand it on: accession, one of its companies, and the day it was filed."""

    accession: str
    cik: int
    filed: date

    @classmethod
    def of(cls, key: str) -> FilingKey | None:
        """Read a key; None if it is none."""
        match = _KEY.fullmatch(key)
        try:
            return cls(match["accession"], int(match["cik"]), date.fromisoformat(match["filed"])) if match else None
        except ValueError:
            return None

    @property
    def text(self) -> str:
        """The key: `0000320193-20-000010/320193/2020-03-18`."""
        return f"{self.accession}/{self.cik}/{self.filed}"

    @property
    def url(self) -> str:
        """Where the complete submission is."""
        return f"{WWW}/Archives/edgar/data/{self.cik}/{self.accession}.txt"

    @property
    def folder(self) -> str:
        """Where its single files are, with a slash at the end."""
        return f"{WWW}/Archives/edgar/data/{self.cik}/{self.accession.replace('-', '')}/"

    def unit(self, part: str) -> str:
        """Return the unit for a part of it: text, header, xbrl."""
        return f"{self.accession}/{part}"


@dataclass(frozen=True, order=True)
class Quarter:
    """A quarter of a calendar year, as the indexes are kept by it."""

    year: int
    number: int

    @classmethod
    def of(cls, day: date) -> Quarter:
        """Return the quarter of a day."""
        return cls(day.year, (day.month + 2) // 3)

    @classmethod
    def named(cls, text: str) -> Quarter | None:
        """Read `2026Q1`; None if it is none."""
        match = _QUARTER.fullmatch(text)
        return cls(int(match["year"]), int(match["number"])) if match else None

    @property
    def text(self) -> str:
        """The quarter as `2026Q1`."""
        return f"{self.year}Q{self.number}"

    @property
    def first(self) -> date:
        """Its first day."""
        return date(self.year, 3 * self.number - 2, 1)

    @property
    def before(self) -> Quarter:
        """The quarter before."""
        return Quarter.of(self.first - timedelta(days=1))

    @property
    def last(self) -> date:
        """Its last day."""
        return Quarter.of(self.first + timedelta(days=100)).first - timedelta(days=1)

    @property
    def url(self) -> str:
        """Where its index of all filings is."""
        return f"{WWW}/Archives/edgar/full-index/{self.year}/QTR{self.number}/master.idx"


def quarters(first: date, last: date) -> Iterator[Quarter]:
    """Return the quarters from one day to another, the newest first."""
    quarter = Quarter.of(last)
    while quarter >= Quarter.of(first):
        yield quarter
        quarter = quarter.before


def daily_index_url(day: date) -> str:
    """Return where the index of what was disseminated on a day is.

    The names of the oldest ones have two digits for the year, until the first quarter of 1998; before 1995 it stands at
    the end.
    """
    quarter = Quarter.of(day)
    if day < date(1995, 1, 1):
        stamp = f"{day:%m%d%y}"
    else:
        stamp = f"{day:%y%m%d}" if day < date(1998, 4, 1) else f"{day:%Y%m%d}"
    return f"{WWW}/Archives/edgar/daily-index/{quarter.year}/QTR{quarter.number}/master.{stamp}.idx"
