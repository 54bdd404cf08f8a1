"""What the labels of a submission's header mean, in the wording of labels and in that of tags, old and new.

Source of the names: headers as EDGAR wrote them from 1993 on. A label that is not here is kept all the same and told.
"""

from __future__ import annotations

import difflib
import re
from typing import Literal

Spelling = Literal["usual", "other", "unknown"]

# Sections that are about one party each.
ROLES = frozenset(
    {
        "FILER",
        "ISSUER",
        "REPORTING OWNER",
        "SUBJECT COMPANY",
        "FILED BY",
        "FILED FOR",
        "DEPOSITOR",
        "SECURITIZER",
        "ISSUING ENTITY",
        "SERIAL COMPANY",
        "UNDERWRITER",
    }
)
# Sections within a party.
SECTIONS = frozenset(
    {"COMPANY DATA", "OWNER DATA", "FILING VALUES", "BUSINESS ADDRESS", "MAIL ADDRESS", "FORMER COMPANY", "FORMER NAME"}
)

# What a label says → the labels that say it, the usual one first.
_OF_SUBMISSION = {
    "acceptance_datetime": ("ACCEPTANCE DATETIME",),
    "accession_number": ("ACCESSION NUMBER",),
    "form": ("CONFORMED SUBMISSION TYPE", "TYPE"),
    "public_document_count": ("PUBLIC DOCUMENT COUNT",),
    "period_of_report": ("CONFORMED PERIOD OF REPORT", "PERIOD"),
    "item": ("ITEM INFORMATION", "ITEMS"),
    "filed_date": ("FILED AS OF DATE", "FILING DATE"),
    "changed_date": ("DATE AS OF CHANGE", "DATE OF FILING DATE CHANGE"),
    "effectiveness_date": ("EFFECTIVENESS DATE",),
    "received_date": ("RECEIVED DATE", "DATE RECEIVED"),
    "action_date": ("ACTION DATE",),
    "exchange": ("SROS", "SRO"),
    "group_member": ("GROUP MEMBERS",),
    "is_private_to_public": ("PRIVATE TO PUBLIC",),
    "abs_asset_class": ("ABS ASSET CLASS",),
    "abs_rule": ("ABS RULE",),
    "public_reference_accession": ("PUBLIC REFERENCE ACCESSION NUMBER", "PUBLIC REFERENCE ACC"),
    "withdrawn_accession": ("WITHDRAWN ACCESSION NUMBER", "PREVIOUS ACCESSION NUMBER"),
    "depositor_cik": ("DEPOSITOR CIK",),
    "sponsor_cik": ("SPONSOR CIK",),
    "owner_cik": ("OWNER CIK",),
    "series_id": ("SERIES ID",),
    "series_name": ("SERIES NAME",),
    "class_id": ("CLASS CONTRACT ID",),
    "class_name": ("CLASS CONTRACT NAME",),
    "class_ticker": ("CLASS CONTRACT TICKER SYMBOL",),
}
_OF_PARTY = {
    "name": ("COMPANY CONFORMED NAME", "CONFORMED NAME"),
    "cik": ("CENTRAL INDEX KEY", "CIK"),
    "sic": ("STANDARD INDUSTRIAL CLASSIFICATION", "ASSIGNED SIC"),
    "organization": ("ORGANIZATION NAME",),
    "ein": ("EIN", "IRS NUMBER"),
    "state_of_incorporation": ("STATE OF INCORPORATION",),
    "fiscal_year_end": ("FISCAL YEAR END",),
    "relationship": ("RELATIONSHIP",),
    "form": ("FORM TYPE",),
    "act": ("SEC ACT", "ACT"),
    "file_number": ("SEC FILE NUMBER", "FILE NUMBER"),
    "film_number": ("FILM NUMBER",),
    "street1": ("STREET 1", "STREET1"),
    "street2": ("STREET 2", "STREET2"),
    "city": ("CITY",),
    "state": ("STATE",),
    "country": ("PROVINCE COUNTRY", "COUNTRY"),
    "zip": ("ZIP",),
    "phone": ("BUSINESS PHONE", "PHONE"),
    "former_name": ("FORMER CONFORMED NAME",),
    "name_changed_date": ("DATE OF NAME CHANGE", "DATE CHANGED"),
}


def _by_label(fields: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, Spelling]]:
    return {
        label: (field, "usual" if number == 0 else "other")
        for field, labels in fields.items()
        for number, label in enumerate(labels)
    }


_SUBMISSION_LABELS, _PARTY_LABELS = _by_label(_OF_SUBMISSION), _by_label(_OF_PARTY)
_NOT_WORDS = re.compile(r"[^A-Z0-9]+")


def plain(label: str) -> str:
    """Return a label in capitals with one blank between words: `REPORTING-OWNER` is `Reporting owner`."""
    return _NOT_WORDS.sub(" ", label.upper()).strip()


def meaning(label: str, *, of_party: bool) -> tuple[str | None, Spelling]:
    """Return what a label says and how it is spelled; None where nobody knows.

    One letter may be wrong or missing: EDGAR has misspelled labels for years, and corrected them.
    """
    known = _PARTY_LABELS if of_party else _SUBMISSION_LABELS
    words = plain(label)
    if found := known.get(words):
        return found
    close = difflib.get_close_matches(words, known, n=1, cutoff=0.9) if len(words) > 7 else []
    return (known[close[0]][0], "other") if close else (None, "unknown")
