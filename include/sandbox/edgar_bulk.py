"""The SEC's bulk file of all companies' facts, generated at any scale, one for each day.

Promises: a day's file differs from that of the day before in a given share of companies, each with one more filing, and
in a few that are new or gone; unchanged members are the same bytes, and so the same CRC-32. Never: the file is larger
than what its scale asks for.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from include.sandbox.edgar_companies import Company, hash_of

_WRITTEN = (2026, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Bulk:
    """A market of so many companies, and how it changes from day to day.

    `changed`, `new` and `gone` are shares of the companies a day; `facts_divisor` makes every company smaller.
    """

    seed: int = 7
    companies: int = 900
    facts_divisor: int = 1
    changed: float = 0.05
    new: float = 0.002
    gone: float = 0.001

    def on(self, day: int) -> Iterator[Company]:
        """The companies of the file of a day, day 0 being the first."""
        most = self.companies + sum(self._arrivals(each) for each in range(1, day + 1))
        since = self._arrived(most, day)
        for number in range(most):
            gone = any(self._is(number, each, 3, self.gone) for each in range(since[number] + 1, day + 1))
            if not gone:
                version = sum(self._is(number, each, 2, self.changed) for each in range(since[number] + 1, day + 1))
                yield Company(self.seed, number, version, self.facts_divisor)

    def _arrivals(self, day: int) -> int:
        return max(1, round(self.companies * self.new)) if self.new else 0

    def _arrived(self, most: int, day: int) -> list[int]:
        since = [0] * most
        number = self.companies
        for each in range(1, day + 1):
            for _ in range(self._arrivals(each)):
                since[number] = each
                number += 1
        return since

    def _is(self, number: int, day: int, what: int, share: float) -> bool:
        return hash_of(self.seed, number, day, what) % 1_000_000 < share * 1_000_000

    def members(self, day: int) -> Iterator[tuple[str, bytes]]:
        """The members of a day's file, by name."""
        for company in self.on(day):
            yield company.name, document(company)

    def archive(self, day: int) -> bytes:
        """The file of a day."""
        return packed(self.members(day))


@lru_cache(maxsize=4_096)
def document(company: Company) -> bytes:
    """A company's document; kept, as files of days that follow each other share most of them."""
    return company.document()


def packed(members: Iterator[tuple[str, bytes]]) -> bytes:
    """Members as a zip archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members:
            archive.writestr(zipfile.ZipInfo(name, _WRITTEN), body, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def count_of_facts(body: bytes) -> int:
    """How many facts a document has, counted the simplest way."""
    facts = json.loads(body).get("facts") or {}
    return sum(
        len(rows) for concepts in facts.values() for concept in concepts.values() for rows in concept["units"].values()
    )
