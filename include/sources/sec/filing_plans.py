"""What the streams of documents, headers and XBRL ask for: single filings, and for the past the index that names them.

Promises: a filing is asked for once, whatever parties and forms it was listed under; headers and XBRL are read from
what `sec.filings` has stored, and nobody is asked for them. Never: what an index names is left out because of its form
or party, unless the policy or an operator says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from include.contract import Answer, Ask, Mode, Request
from include.sources.sec import index
from include.sources.sec.names import ACCESSION, FilingKey, daily_index_url
from include.sources.sec.universe import Policy

FILINGS, HEADERS, FACTS = "sec.filings", "sec.document_headers", "sec.xbrl_facts"
_INSTANCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}\.xml")
_PAGE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,150})\.(?:x?html?)", re.IGNORECASE)


@dataclass(frozen=True)
class Choice:
    """Which filings the streams read: those of the policy's tier and forms."""

    policy: Policy

    def wants(self, key: FilingKey, form: str) -> bool:
        """Say whether a filing is wanted."""
        return self.policy.wants_form(form) and self.policy.wants_documents(key.cik, key.filed)

    def knows(self, key: str) -> bool:
        """Say whether an operator's key names a filing, a company or a list."""
        return bool(ACCESSION.fullmatch(key)) or FilingKey.of(key) is not None or self.policy.knows(key)


# --- single filings


def text_request(key: FilingKey) -> Request:
    """Return the request for a complete submission; one that is not there does not hold the others up."""
    return Request(
        key=key.text,
        unit=key.unit("text"),
        url=key.url,
        session_date=key.filed,
        required=False,
        is_known=True,
    )


def read_request(key: FilingKey, part: str) -> Request:
    """Return the request for a part of a submission that is stored: nobody is asked."""
    return Request(
        key=key.text,
        unit=key.unit(part),
        url=key.url,
        session_date=key.filed,
        required=False,
        read_from=(FILINGS, key.unit("text")),
    )


def header_request(key: FilingKey) -> Request:
    """Return the request for the header of a submission that is stored."""
    return read_request(key, "header")


def xbrl_request(key: FilingKey) -> Request:
    """Return the request for the XBRL of a submission that is stored: a list, as it may lead to an instance."""
    return replace(read_request(key, "xbrl"), kind="list")


def instance_request(key: FilingKey, name: str) -> Request:
    """Return the request for an instance that EDGAR extracts after acceptance; it may be missing for a while."""
    return Request(
        key=f"{key.text}/{name}",
        unit=key.unit("instance"),
        url=key.folder + name,
        session_date=key.filed,
        required=False,
    )


def instance_name(page: str | None) -> str | None:
    """Return how EDGAR calls the instance of an inline page, None where the name cannot stand in an address."""
    found = _PAGE.fullmatch(page or "")
    return f"{found[1]}_htm.xml" if found else None


def of_key(text: str, request: Callable[[FilingKey], Request]) -> Request | None:
    """Return the request that a key was planned with, None where it names none."""
    key = FilingKey.of(text)
    if key is not None:
        return request(key)
    front, _, name = text.rpartition("/")
    key = FilingKey.of(front)
    return instance_request(key, name) if key is not None and _INSTANCE.fullmatch(name) else None


# --- the index of a day


def _index_request(day: date, keys: Sequence[str], reads: bool, *, expected: bool) -> Request:
    unit = f"index/{day}"
    return Request(
        key=unit,
        unit=unit,
        url=daily_index_url(day),
        session_date=day,
        expected=expected,
        kind="list",
        about={"keys": list(keys)} if keys else {},
        read_from=(FILINGS, unit) if reads else None,
    )


def _day_of(key: str) -> date | None:
    kind, _, text = key.partition("/")
    try:
        return date.fromisoformat(text) if kind == "index" else None
    except ValueError:
        return None


def is_index(request: Request) -> bool:
    """Say whether a request is for the index of a day."""
    return _day_of(request.unit) is not None


def listed(request: Request, answer: Answer, choice: Choice) -> Iterator[FilingKey]:
    """Return the filings that the index of a day names, as a backfill wants them, each once under its first party."""
    keys = frozenset(request.about.get("keys", ()))
    ciks = {cik for key in keys for cik in choice.policy.named(key, request.session_date)}
    found: dict[str, FilingKey] = {}
    for row in index.read(answer, []):
        key = FilingKey(row.accession, row.cik, row.filed)
        named = not keys or row.accession in keys or row.cik in ciks
        if (
            named
            and choice.wants(key, row.form)
            and (row.accession not in found or key.text < found[row.accession].text)
        ):
            found[row.accession] = key
    yield from found.values()


# --- plans


def plan(choice: Choice, request: Callable[[FilingKey], Request], ask: Ask, *, reads: bool = True) -> Iterator[Request]:
    """Plan what is due by the database's rows, what is pending, and for the past the indexes of its days.

    Args:
        choice: which filings are read.
        request: what is asked for of each.
        ask: the engine's wish.
        reads: whether what `sec.filings` has stored is read in place of asking.
    """
    planned: dict[str, Request] = {}
    days: list[tuple[date, bool]] = []
    if ask.mode is Mode.BACKFILL or ask.keys:
        single = [found for key in ask.keys if (found := of_key(key, request)) is not None]
        planned.update((each.unit, each) for each in single)
        if len(single) < len(ask.keys) or not ask.keys:
            days = [*((day, True) for day in ask.sessions), *((day, False) for day in ask.closed)]
    for key in ask.pending:
        if (day := _day_of(key)) is not None:
            days.append((day, True))
    for day, expected in dict(days).items():
        asked = _index_request(day, [key for key in ask.keys if FilingKey.of(key) is None], reads, expected=expected)
        planned[asked.unit] = asked
    for found in (*_due(choice, request, ask.subjects if not ask.keys and ask.mode is Mode.POLL else ()),
                  *(of_key(key, request) for key in ask.pending)):  # fmt: skip
        if found is not None:
            planned.setdefault(found.unit, found)
    yield from sorted(planned.values(), key=lambda each: (each.session_date or date.min, each.key), reverse=True)


def _due(choice: Choice, request: Callable[[FilingKey], Request], subjects: Iterable[str]) -> Iterator[Request | None]:
    """Read subjects: a key, with the form behind it where it was found in a list."""
    for subject in subjects:
        text, _, form = subject.partition(" ")
        key = FilingKey.of(text)
        if key is None or not form or choice.wants(key, form):
            yield of_key(text, request)


def details(
    choice: Choice, request: Callable[[FilingKey], Request], asked: Request, answer: Answer
) -> Sequence[Request]:
    """Return what the index of a day leads to."""
    if not is_index(asked):
        return ()
    return [request(key) for key in listed(asked, answer, choice)]
