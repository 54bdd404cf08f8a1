"""What a category of the sync asks of a company and period: its parts, in which order, and what is due.

A *set* is what a category holds of one company and period, in *parts* that are asked for one by one: the bases of its
statements, the items of its report. The first part is the *probe*: DART has all of a report or nothing of it yet, so
that the others are asked for once the probe has an answer of that report, which costs one request a try and not thirty.

Promises: what is asked for follows from the rows of the due view and from pending keys alone; first what a used-up
quota cut off, then what failed, then what is new, and of each the newest period first. Never: a set is asked for
because another category lacks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from zlib import crc32

from include.contract import Answer, Ask, Chunk, Mode, Request, Span
from include.sources.dart import periods
from include.sources.dart.answers import HOST, NORMAL, rows_that_lead_on
from include.sources.dart.lists import SEOUL, is_company, is_receipt
from include.sources.dart.periods import Period

# A chunk holds about twenty of 2,700 companies: some 600 requests, a slice or two.
GROUPS = 128
# What rows of the due views are about: something due, or which periods a company holds.
LISTED, OTHER = "listed", "other"
# A row of the due views where the list has never been read: what is due cannot be known.
NO_LIST = "list"


@dataclass(frozen=True)
class Category:
    """A category: how its parts are called, the endpoint and the parameters of each, and how many days it looks back.

    `parts` gives each part its endpoint and its further parameters; the first one is the probe, and the last one says
    that a set was asked for to its end.
    """

    parts: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]]
    lookback: int

    @property
    def probe(self) -> str:
        """The part that is asked for first."""
        return next(iter(self.parts))


@dataclass(frozen=True)
class Part:
    """One part of a set; `receipt` is the filing because of which it is asked for, empty where a range asks for it."""

    corp: str
    period: Period
    part: str
    receipt: str = ""

    @property
    def unit(self) -> str:
        """The unit: what is known of the part, whichever filing it comes from."""
        return f"{self.corp}/{self.period.name}/{self.part}"

    @property
    def key(self) -> str:
        """The request's key."""
        return f"{self.unit}/{self.receipt}" if self.receipt else self.unit


@dataclass(frozen=True)
class _Due:
    part: Part
    was_cut_off: bool
    received: date


def read_key(category: Category, text: str) -> Part | None:
    """Read a request's key or a unit; None where it is none of the category."""
    corp, _, rest = text.partition("/")
    named, _, rest = rest.partition("/")
    part, _, receipt = rest.partition("/")
    period = periods.read(named)
    if period is None or part not in category.parts or not is_company(corp) or not (not receipt or is_receipt(receipt)):
        return None
    return Part(corp, period, part, receipt)


def request(category: Category, part: Part) -> Request:
    """Return the request for a part. It holds no window up: what has no answer is due, or pending, and stays so."""
    endpoint, more = category.parts[part.part]
    return Request(
        key=part.key,
        unit=part.unit,
        url=f"{HOST}/api/{endpoint}.json",
        session_date=part.period.end,
        params=(
            ("corp_code", part.corp),
            ("bsns_year", f"{part.period.year:04}"),
            ("reprt_code", part.period.code),
            *more,
        ),
        required=False,
        is_known=True,
        kind="list" if part.part == category.probe else "detail",
    )


# --- what is due


def plan(category: Category, ask: Ask) -> Iterator[Request]:
    """Plan what is due, what is pending, or what a chunk names."""
    if "period" in ask.chunk:
        period = periods.read(ask.chunk["period"])
        assert period is not None
        yield from (request(category, Part(corp, period, category.probe)) for corp in ask.chunk["corps"])
        return
    if NO_LIST in ask.subjects and ask.newest is not None:
        yield list_first(ask.newest)
        return
    due = [each for each in _due(category, ask) if not ask.keys or each.part.corp in ask.keys]
    failed = [part for key in ask.pending if (part := read_key(category, key)) is not None]
    named = list(_newest(category, ask)) if ask.keys else []
    planned: dict[str, Part] = {}
    for part in (
        *_in_order(each for each in due if each.was_cut_off),
        *failed,
        *_in_order(each for each in due if not each.was_cut_off),
        *(part for part in named if not any(part.unit == each.part.unit for each in due)),
    ):
        planned.setdefault(part.key, part)
    yield from (request(category, part) for part in planned.values())


def list_first(day: date) -> Request:
    """Return a request that nobody can answer before the list of filings was read, so that the window waits for it."""
    unit = f"{NO_LIST}/any"
    url = f"{HOST}/api/list.json"
    return Request(
        key=unit,
        unit=unit,
        url=url,
        session_date=day,
        expected=False,
        kind="list",
        read_from=("dart.disclosures", unit),
    )


def _in_order(due: Iterable[_Due]) -> list[Part]:
    """The newest period first, and of a period what was received last."""
    ordered = sorted(due, key=lambda each: (each.part.corp, each.part.part))
    return [each.part for each in sorted(ordered, key=lambda each: (each.part.period.end, each.received), reverse=True)]


def _due(category: Category, ask: Ask) -> Iterator[_Due]:
    """Read rows of the due view as `due 0 2026-05-15 <key>`, with 0 for what was cut off; or a key alone."""
    since = ask.at.astimezone(SEOUL).date() - timedelta(days=category.lookback) if ask.at else date.min
    for subject in ask.subjects:
        kind, _, rest = subject.partition(" ")
        if kind in (LISTED, OTHER):
            continue
        rank, _, rest = rest.partition(" ")
        received, _, key = rest.partition(" ")
        part = read_key(category, key or kind)
        day = date.fromisoformat(received) if received else date.min
        if part is not None and (day >= since or not received):
            yield _Due(part, rank == "0", day)


def _newest(category: Category, ask: Ask) -> Iterator[Part]:
    """The last two periods of the companies that an operator names, as of the day of the window."""
    for day in ask.sessions[:1]:
        for period in list(periods.between(day - timedelta(days=366), day))[:2]:
            yield from (Part(corp, period, category.probe) for corp in ask.keys if is_company(corp))


def follow(category: Category, asked: Request, answer: Answer) -> Sequence[Request]:
    """Return the other parts of a set where the probe's answer is of the report that is asked for, or a later one."""
    part = read_key(category, asked.key)
    if part is None or part.part != category.probe or not _receipt_of(answer) >= (part.receipt or "0"):
        return ()
    others = (Part(part.corp, part.period, name, part.receipt) for name in category.parts if name != category.probe)
    return [request(category, other) for other in others]


def _receipt_of(answer: Answer) -> str:
    """Return the newest report that an answer is from; empty where it has none."""
    document = rows_that_lead_on(answer)
    items = document.get("list") if document.get("status") == NORMAL else None
    given = (item.get("rcept_no") for item in items if isinstance(item, dict)) if isinstance(items, list) else ()
    return max((each for each in given if isinstance(each, str) and is_receipt(each)), default="")


# --- the past


def chunks(category: Category, span: Span) -> Iterator[Chunk]:
    """Name the pieces of a backfill: of each period, the newest first, groups of companies that lack it.

    A group depends on the number of a company alone, so that a new one moves nobody else. A replay reads whole periods.
    """
    listed, holds = _holdings(span.subjects)
    for period in periods.between(span.start, span.end):
        if span.mode is Mode.REPLAY:
            keys = list(span.keys)
            yield Chunk(period.name, period.end, {"first": f"{period.end}", "last": f"{period.end}", "keys": keys})
            continue
        groups: dict[int, list[str]] = {}
        for corp in sorted(span.keys or listed):
            if span.is_forced or period.name not in holds.get(corp, ()):
                groups.setdefault(crc32(corp.encode()) % GROUPS, []).append(corp)
        for number in sorted(groups):
            yield Chunk(f"{period.name}/g{number:03}", period.end, {"period": period.name, "corps": groups[number]})


def _holdings(subjects: Iterable[str]) -> tuple[list[str], dict[str, frozenset[str]]]:
    """Read who is listed, and what each company holds to its end: rows as `listed 00126380 2025.11011 2025.11014`."""
    listed, holds = list[str](), dict[str, frozenset[str]]()
    for subject in subjects:
        kind, *rest = subject.split(" ")
        if kind in (LISTED, OTHER):
            holds[rest[0]] = frozenset(rest[1:])
        if kind == LISTED:
            listed.append(rest[0])
    return listed, holds
