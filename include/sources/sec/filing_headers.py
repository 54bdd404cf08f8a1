"""Reading the headers of submissions into rows: the filing, its parties, their former names, and every field as given.

Promises: a filing without a header, or with labels that nobody knows, is kept; renamed labels mean the same; unknown
ones are counted and told. Never: the acceptance is taken for another zone's than New York's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from include.contract import Batch, Parsed, ParseError, Unit
from include.sources.sec import headers, submission
from include.sources.sec.filing_plans import is_index
from include.sources.sec.filing_tables import FIELDS, FORMER_NAMES, HEADERS, PARTIES
from include.sources.sec.filing_texts import accession_of, filed_date, insist_on_the_filing
from include.sources.sec.headers import Header

PARSER_VERSION = 1
_BUSINESS, _MAIL = "BUSINESS ADDRESS", "MAIL ADDRESS"
_ADDRESS = ("street1", "street2", "city", "state", "country", "zip")


def parse(unit: Unit) -> Parsed:
    """Read the header of a submission; the index of a day gives no rows here.

    Raises:
        ParseError: it is no submission, another filing's, or was cut off in its header.
    """
    answer = unit.answers[0]
    if is_index(answer.request):
        return Parsed(batches=())
    with answer.body.open() as body:
        found = submission.read(body)
    if not found.has_all_of_header:
        raise ParseError("its header does not end: the text was cut off")
    header = headers.parse(found.header)
    insist_on_the_filing(found, header, unit)
    accession, filed = accession_of(unit), filed_date(header, unit)
    unknown = sorted({f"{each.section or each.role or 'filing'}: {each.label}" for each in _unknown(header)})
    return Parsed(
        batches=(
            Batch(FIELDS, list(_fields(accession, filed, header))),
            Batch(FORMER_NAMES, list(_former_names(accession, filed, header))),
            Batch(PARTIES, [_party(accession, filed, header, *party) for party in header.parties()]),
            Batch(HEADERS, [_header(accession, filed, header, headers.day(found.released_on))]),
        ),
        unknown_columns=tuple(unknown),
    )


def _unknown(header: Header) -> list[headers.Field]:
    return [each for each in header.fields if each.meaning is None]


def _header(accession: str, filed: date, header: Header, released: date | None) -> tuple[Any, ...]:
    first = header.first
    accepted = first("acceptance_datetime")
    return (
        accession,
        filed,
        header.dialect,
        first("form"),
        headers.day(first("filed_date")),
        headers.instant(accepted),
        accepted,
        released,
        headers.day(first("changed_date")),
        headers.day(first("effectiveness_date")),
        headers.day(first("period_of_report")),
        headers.count(first("public_document_count")),
        header.all("item"),
        any(each.meaning == "is_private_to_public" for each in header.fields),
        len(list(header.parties())),
        len(_unknown(header)),
        sum(each.spelling == "other" for each in header.fields) if header.dialect == "labels" else 0,
    )


def _party(accession: str, filed: date, header: Header, party: int, role: str) -> tuple[Any, ...]:
    def first(name: str, section: str = "") -> str | None:
        return header.first(name, party=party, section=section)

    code, industry = headers.sic(first("sic"))
    return (
        accession,
        party,
        filed,
        role,
        headers.whole(first("cik")),
        first("name"),
        first("ein"),
        code,
        industry,
        first("organization"),
        first("state_of_incorporation"),
        first("fiscal_year_end"),
        first("relationship"),
        first("form"),
        headers.act(first("act")),
        first("file_number"),
        first("film_number"),
        *(first(name, _BUSINESS) for name in _ADDRESS),
        first("phone"),
        *(first(name, _MAIL) for name in _ADDRESS),
    )


def _former_names(accession: str, filed: date, header: Header) -> Iterator[tuple[Any, ...]]:
    for party, _ in header.parties():
        cik = headers.whole(header.first("cik", party=party))
        groups: dict[tuple[str, int], dict[str, str]] = {}
        for each in header.fields:
            if each.party == party and each.meaning in ("former_name", "name_changed_date"):
                groups.setdefault((each.section, each.section_number), {})[each.meaning] = each.value
        for number, group in enumerate(groups.values(), start=1):
            changed = headers.day(group.get("name_changed_date"))
            yield accession, party, number, filed, cik, group.get("former_name") or None, changed


def _fields(accession: str, filed: date, header: Header) -> Iterator[tuple[Any, ...]]:
    for each in header.fields:
        yield (
            accession,
            each.position,
            filed,
            each.party,
            each.role,
            each.section,
            each.section_number,
            each.label,
            each.meaning,
            each.spelling,
            each.value,
        )
