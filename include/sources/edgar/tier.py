"""Facts of some companies in PostgreSQL too: those of a tier, for whoever joins them with other tables.

Promises: rows come from what `edgar.companyfacts` holds, and nobody is asked; a company is read again when its bytes
changed, and what it no longer gives goes to the history. Of a company that the SEC no longer shows, the rows stay.
Never: a company outside the tier is read unless an operator names it; all facts of everybody are in the parquet files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

from include.contract import Ask, Batch, Budget, Column, Parsed, ParseError, Request, Stream, Subjects, Table, Unit
from include.sources.edgar import answers, documents
from include.sources.edgar.documents import Facts
from include.sources.edgar.streams import (
    CALENDAR,
    COMPANYFACTS,
    DAILY,
    DATA,
    FIRST_SESSION,
    HOST_GROUP,
    KEYS_ARE,
    cik_of,
    unit_of,
)

TIER = "edgar.tier_facts"
NONE, TIERS = "none", ("all", "nasdaq", "nyse")
DIGITS, DECIMALS = 38, 15
_KEY = re.compile(r"[0-9]{10}")
_YEARS = range(-(2**31), 2**31)

FACTS_TABLE = Table(
    schema="filings",
    name="edgar_facts",
    comment="Facts of the companies of the configured tier, every filing's value of every period",
    columns=(
        Column("cik", "bigint", "Company, by its number at the SEC"),
        Column("taxonomy", "text", "us-gaap, ifrs-full, dei, srt or any other"),
        Column("concept", "text", "Name of the concept within the taxonomy"),
        Column("measure", "text", "Unit as resolved by the SEC: USD, shares, USD/shares, pure or any other"),
        Column("end_date", "date", "Last day of the period, or the instant"),
        Column("is_instant", "boolean", "It is of an instant and not of a period"),
        Column("start_date", "date", "First day of the period; the same as the last at an instant"),
        Column("accession", "text", "Filing that reports it"),
        Column("copy", "integer", "0; counts on where one filing gives a period of a concept more than once"),
        Column("value_text", "text", "Value, with the digits as given; null where none is", nullable=True),
        Column(
            "value",
            "numeric",
            "The same as a number; null where it has more digits than fit",
            nullable=True,
            precision=(DIGITS, DECIMALS),
        ),
        Column("fy", "integer", "Fiscal year of the filing, not of the fact", nullable=True),
        Column("fp", "text", "Fiscal period of the filing", nullable=True),
        Column("form", "text", "Form of the filing", nullable=True),
        Column("filed_date", "date", "Day on which it was filed"),
        Column("frame", "text", "Frame of which this is the value now", nullable=True),
    ),
    key=("cik", "taxonomy", "concept", "measure", "end_date", "is_instant", "start_date", "accession", "copy"),
    session_date="filed_date",
    # The files of companies have all of it.
    is_published=False,
)


@dataclass(frozen=True)
class Tier:
    """Whose facts are kept: nobody's, those of a tier of the market, or of companies by number."""

    name: str = NONE
    ciks: tuple[int, ...] = ()

    def wants(self, cik: int) -> bool:
        """Say whether a company's facts are kept; of the tiers of the market the database tells the companies."""
        return not self.ciks or cik in self.ciks


def tier(given: Any) -> Tier | None:
    """Read whose facts are to be kept; None where it cannot be read."""
    if given == NONE or given in TIERS:
        return Tier(given)
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        return None
    ciks = [cik_of(str(each)) for each in given]
    return None if None in ciks else Tier("own", tuple(cik for cik in ciks if cik is not None))


def _request(cik: int) -> Request:
    return Request(
        key=f"{cik:010d}",
        unit=f"{cik:010d}/rows",
        url=f"{DATA}/api/xbrl/companyfacts/CIK{cik:010d}.json",
        expected=False,
        required=False,
        read_from=(COMPANYFACTS, unit_of(cik)),
    )


def plan(ask: Ask, *, wanted: Tier) -> Iterator[Request]:
    """Plan the companies whose bytes changed, or those that an operator names."""
    named = [cik_of(key) for key in ask.keys]
    due = [] if ask.keys else [cik for key in ask.subjects if (cik := cik_of(key)) and wanted.wants(cik)]
    pending = [cik_of(key) for key in ask.pending if _KEY.fullmatch(key)]
    yield from (_request(cik) for cik in dict.fromkeys([*named, *due, *pending]) if cik is not None)


def parse(unit: Unit) -> Parsed:
    """Read a company's document.

    Raises:
        ParseError: it is no document of the company's facts.
    """
    cik = cik_of(unit.key.partition("/")[0])
    if cik is None:
        raise ParseError(f"{unit.key!r} names no company")
    body = unit.answers[0].body.read()
    facts = documents.read(body, cik)
    try:
        rows = list(_rows(facts))
    except ValueError:
        # Something of the usual form is not of the usual kind: field by field, what is at fault is rejected alone.
        facts = documents.read(body, cik, loosely=True)
        rows = list(_rows(facts))
    return Parsed((Batch(FACTS_TABLE, rows),), facts.rejected, tuple(facts.unknown))


def _rows(facts: Facts) -> Iterator[tuple[Any, ...]]:
    """Give the rows.

    Raises:
        ValueError: a day or a year is none.
    """
    copies: dict[tuple[Any, ...], int] = {}
    for run, rows in facts.by_run():
        for row in rows:
            end = date.fromisoformat(row.end)
            start = date.fromisoformat(row.start) if row.start else end
            if row.fy is not None and row.fy not in _YEARS:
                raise ValueError(row.fy)
            key = (facts.cik, run.taxonomy, run.concept, run.unit, end, not row.start, start, row.accn)
            copies[key] = copy = copies.get(key, -1) + 1
            text = bytes(row.val).decode()
            given = None if text == "null" else text
            filed = date.fromisoformat(row.filed)
            yield (*key, copy, given, _number(given), row.fy, row.fp, row.form, filed, row.frame)
        copies.clear()


def _number(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        number = Decimal(text)
    except ArithmeticError:
        raise ValueError(text) from None
    exponent = number.as_tuple().exponent
    fits = isinstance(exponent, int) and exponent >= -DECIMALS and number.adjusted() < DIGITS - DECIMALS
    return number if fits else None


def _due(view: str) -> Table:
    subject = Column("subject", "text", "Company whose newest bytes were not read, in ten digits")
    return Table("filings", view, "What is still to be read", (subject,), ("subject",), None, is_published=False)


_BUDGET = Budget(
    day_items=500_000_000,
    day_details=30_000,
    slice_items=500_000,
    slice_seconds=240,
    reason="a company has up to 40,000 facts, and a tier may be everybody",
)


def streams(given: Any) -> tuple[Stream, ...] | None:
    """Return the stream where anybody's facts are to be kept; None where it cannot be read whose."""
    wanted = tier(given)
    if wanted is None:
        return None
    if wanted.name == NONE:
        return ()
    flag = f"is_{wanted.name}" if wanted.name in TIERS else "is_all"
    return (
        Stream(
            name=TIER,
            title="Facts of the configured companies, as rows",
            tables=(FACTS_TABLE,),
            schedule=DAILY,
            calendar=CALENDAR,
            host_group=HOST_GROUP,
            budget=_BUDGET,
            parser_version=1,
            plan=partial(plan, wanted=wanted),
            classify=answers.classify,
            parse=parse,
            first_session=FIRST_SESSION,
            subjects=Subjects(_due("edgar_due_facts"), "subject", flag),
            empty_can_be_right=True,
            # It is late when what it reads is, which is judged.
            sla_eligible=False,
            snapshot_only="it reads what edgar.companyfacts holds; use mode=replay to read it again.",
            known_key=lambda key: cik_of(key) is not None,
            keys_are=KEYS_ARE,
        ),
    )
