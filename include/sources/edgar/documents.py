"""A company's document of facts, as the SEC's interface gives it and its bulk file holds it, read to its last digit.

Promises: numbers stay the text that the document has, so that none is ever rounded; rows come in one order whatever
order the document has, by taxonomy, concept, unit, end, accession, filing day, start; a row that lacks what makes it a
fact is rejected by itself and the others are read. What is merely unusual (`cik` as text, no facts, no label, a
taxonomy or unit never seen, a field that nobody knows) is read like anything else. Never: a value is judged.

The document nearly always has one form, and is then read by typed structures. Where it departs from it anywhere, all of
it is read again field by field, which takes several times as long and gives the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal, cast

import msgspec

from include.contract import ParseError, Rejected

# More rejected rows of one document than this are counted, not shown.
MOST_REJECTED = 200
_NUMBER = re.compile(rb"-?[0-9]")
_WHOLE = re.compile(rb'"?(-?[0-9]{1,9})"?')
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_OF_CONCEPT = ("label", "description", "units")
_FIELDS = ("end", "start", "filed", "accn", "fy", "fp", "form", "frame", "val")


# What is nearly always said is told from a list, which saves making a text of each; anything else is read loosely.
Period = Literal["FY", "Q1", "Q2", "Q3", "Q4"]
Form = Literal[
    "10-K", "10-K/A", "10-Q", "10-Q/A", "10-KT", "10-KT/A", "10-QT", "20-F", "20-F/A", "40-F", "40-F/A", "6-K", "6-K/A",
    "8-K", "8-K/A", "8-K12B", "S-1", "S-1/A", "S-3", "S-4", "S-4/A", "S-11", "S-11/A", "F-1", "F-1/A", "F-3", "F-4",
    "F-4/A", "DEF 14A", "DEFA14A", "PRE 14A", "DEF 14C", "DEFM14A", "424B1", "424B2", "424B3", "424B4", "424B5",
    "424B7", "424B8", "POS AM", "S-8", "N-CSR", "N-CSRS", "485BPOS", "497", "N-2", "N-2/A", "ARS", "20-FR12B", "10-12B",
    "10-12G",
]  # fmt: skip


class Fact(msgspec.Struct, gc=False, order=True, forbid_unknown_fields=True, kw_only=True):
    """A row as written; the order of the fields is that of the rows."""

    end: str
    accn: Annotated[str, msgspec.Meta(min_length=1)]
    filed: str
    start: str = ""
    fy: int | None = None
    fp: Period | None = None
    form: Form | None = None
    frame: str | None = None
    val: msgspec.Raw


class _Concept(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    units: dict[str, list[Fact]]
    label: str | None = None
    description: msgspec.Raw = msgspec.Raw(b"null")


class _Document(msgspec.Struct, forbid_unknown_fields=True, rename={"entity_name": "entityName"}):
    cik: int | str
    entity_name: str | None = None
    facts: dict[str, dict[str, _Concept]] = {}


_USUAL = msgspec.json.Decoder(_Document)
_LOOSE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LOOSE_FACTS = msgspec.json.Decoder(dict[str, dict[str, dict[str, msgspec.Raw]] | None] | None)
_LOOSE_UNITS = msgspec.json.Decoder(dict[str, list[dict[str, msgspec.Raw]] | None] | None)
_TEXT = msgspec.json.Decoder(str | None)


@dataclass(frozen=True)
class Run:
    """Rows of one concept and unit, one after the other."""

    taxonomy: str
    concept: str
    label: str | None
    unit: str
    count: int


@dataclass
class Facts:
    """The facts of a company in their order, and what could not be read of them.

    `runs` say of which concept and unit the rows are. `rejected` has the first of `rejected_count`.
    """

    cik: int
    entity_name: str | None
    runs: list[Run] = field(default_factory=list)
    rows: list[Fact] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    rejected_count: int = 0
    unknown: list[str] = field(default_factory=list)

    def reject(self, position: str, reason: str, text: bytes) -> None:
        """Keep a row that could not be read."""
        self.rejected_count += 1
        if len(self.rejected) < MOST_REJECTED:
            self.rejected.append(Rejected(position[:200], reason, text.decode("utf-8", "replace")[:2_000]))

    def by_run(self) -> Iterator[tuple[Run, list[Fact]]]:
        """The rows of each run."""
        at = 0
        for run in self.runs:
            yield run, self.rows[at : at + run.count]
            at += run.count


def read(body: bytes, cik: int, *, loosely: bool = False) -> Facts:
    """Read a document.

    Args:
        body: the document.
        cik: the company that it must be of.
        loosely: field by field from the start.

    Raises:
        ParseError: it is no such document, or another company's.
    """
    try:
        document = None if loosely else _USUAL.decode(body)
    except msgspec.DecodeError:
        document = None
    if document is None:
        return _read_loosely(body, cik)
    _check_cik(document.cik, cik)
    facts = Facts(cik, document.entity_name)
    for taxonomy, concepts in sorted(document.facts.items()):
        for concept, about in sorted(concepts.items()):
            for unit, rows in sorted(about.units.items()):
                facts.rows += ordered(rows)
                facts.runs.append(Run(taxonomy, concept, about.label, unit, len(rows)))
    return facts


def ordered(rows: list[Fact]) -> list[Fact]:
    """Sort rows; they nearly always are."""
    try:
        rows.sort()
    except TypeError:
        # Two of one accession differ in what is missing, or in the number alone.
        rows.sort(key=_all_of)
    return rows


def _all_of(row: Fact) -> tuple[str, ...]:
    return (*(str(getattr(row, name) or "") for name in Fact.__struct_fields__[:-1]), bytes(row.val).decode())


def _check_cik(given: Any, cik: int) -> None:
    text = str(given).strip()
    if not text.isascii() or not text.isdigit() or int(text) != cik:
        raise ParseError(f"it says that it is of company {text[:40]!r}, and is named as that of {cik:010d}")


# --- field by field


def _read_loosely(body: bytes, cik: int) -> Facts:
    try:
        document = _LOOSE.decode(body)
    except msgspec.DecodeError as error:
        raise ParseError(f"it is no document of a company's facts: {error}") from None
    if "cik" not in document:
        raise ParseError("it does not say which company it is of")
    _check_cik(_plain(document["cik"]), cik)
    facts = Facts(cik, _text(document.get("entityName")))
    facts.unknown += [name for name in document if name not in ("cik", "entityName", "facts")]
    if "facts" not in document and (name := _renamed(document, ("cik", "entityName"))):
        raise ParseError(f"it has no facts, but {name[:40]!r}, which may be them under another name")
    try:
        taxonomies = _LOOSE_FACTS.decode(document["facts"]) if "facts" in document else None
    except msgspec.DecodeError as error:
        raise ParseError(f"its facts are not by taxonomy and concept: {error}") from None
    unknown: dict[str, None] = dict.fromkeys(facts.unknown)
    for taxonomy, concepts in sorted((taxonomies or {}).items()):
        for concept, about in sorted((concepts or {}).items()):
            unknown |= dict.fromkeys(f"concept.{name}" for name in about if name not in _OF_CONCEPT)
            where = f"{taxonomy}:{concept}"
            if "units" not in about and (name := _renamed(about, _OF_CONCEPT)):
                facts.reject(where, f"it has no units, but {name[:40]!r}", bytes(about[name]))
                continue
            try:
                units = _LOOSE_UNITS.decode(about["units"]) if "units" in about else None
            except msgspec.DecodeError as error:
                facts.reject(where, f"its units are not lists of rows: {error}", bytes(about["units"]))
                continue
            for unit, given in sorted((units or {}).items()):
                rows = []
                for number, each in enumerate(given or ()):
                    unknown |= dict.fromkeys(f"row.{name}" for name in each if name not in _FIELDS)
                    try:
                        rows.append(_fact(each))
                    except _NoFact as no:
                        facts.reject(f"{where} {unit} {number + 1}", str(no), msgspec.json.encode(each))
                facts.rows += ordered(rows)
                facts.runs.append(Run(taxonomy, concept, _text(about.get("label")), unit, len(rows)))
    facts.unknown = list(unknown)
    return facts


def _renamed(of: dict[str, msgspec.Raw], known: Collection[str]) -> str | None:
    """Name a field that nobody knows and that holds what the one that is missing may have held."""
    return next((name for name, raw in of.items() if name not in known and bytes(raw)[:1] in (b"{", b"[")), None)


class _NoFact(Exception):
    """A row lacks what makes it a fact; the text says what."""


def _fact(row: dict[str, msgspec.Raw]) -> Fact:
    if "val" not in row:
        raise _NoFact("val is missing")
    value = bytes(row["val"])
    if not _NUMBER.match(value) and value != b"null":
        raise _NoFact("val is no number")
    end, accn, filed = (_text(row.get(name)) for name in ("end", "accn", "filed"))
    start = _text(row.get("start"))
    if not accn or not bytes(row["accn"]).startswith(b'"'):
        raise _NoFact("accn is missing" if not accn else "accn is no text")
    for name, day in (("end", end), ("filed", filed), *((("start", start),) if start else ())):
        if not is_day(day):
            raise _NoFact(f"{name} is no day")
    fy = bytes(row.get("fy", b"null"))
    year = _WHOLE.fullmatch(fy)
    if fy not in (b"null", b'""') and year is None:
        raise _NoFact("fy is no year")
    assert end is not None
    assert filed is not None
    return Fact(
        end=end,
        start=start or "",
        filed=filed,
        accn=accn,
        fy=int(year[1]) if year else None,
        fp=cast("Period | None", _text(row.get("fp"))),
        form=cast("Form | None", _text(row.get("form"))),
        frame=_text(row.get("frame")),
        val=msgspec.Raw(value),
    )


def is_day(text: str | None) -> bool:
    """Say whether a text is a day as the documents write it."""
    try:
        return text is not None and _DAY.fullmatch(text) is not None and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _plain(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw)


def _text(raw: msgspec.Raw | None) -> str | None:
    """A text; what is something else stands as it is written."""
    if raw is None:
        return None
    try:
        return _TEXT.decode(raw)
    except msgspec.DecodeError:
        return bytes(raw).decode("utf-8", "replace")
