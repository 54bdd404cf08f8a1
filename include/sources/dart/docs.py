"""DART's documents of periodic reports: the stream `dart.docs`.

A report is asked for by its receipt number, and every one is: a correction beside what it corrects. A window asks for
what the rows of the due view name; a range of the past looks its reports up in DART's list, one quarter of receipt for
each period, so that every report of all companies belongs to one piece.

Promises: what is due follows from rows and pending keys alone; first what a used-up quota cut off, then what failed,
then what is new, the newest first. A document that is not there yet says nothing of the report. Never: a notice of an
extension, or a title without a period, is taken for a report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from typing import Any

from include.contract import (
    Answer,
    AnswerClass,
    AnswerError,
    Ask,
    Batch,
    Chunk,
    Column,
    Mode,
    Parsed,
    ParseError,
    Rejected,
    Request,
    Span,
    Stream,
    Subjects,
    Table,
    Unit,
)
from include.sources.dart import answers, documents, lists, periods, sync, titles
from include.sources.dart.answers import HOST
from include.sources.dart.disclosures import day_of, items_of
from include.sources.dart.docs_tables import DOCS, DOCUMENTS, TABLES
from include.sources.dart.periods import Period
from include.sources.dart.sets import NO_LIST, list_first
from include.sources.dart.streams import HOST_GROUP, LEFT_FOR_DISCLOSURES
from include.sources.dart.sync import Choice

PARSER_VERSION = 1
URL = f"{HOST}/api/document.xml"
ALL = "all"
# Title of a report → how keys call it.
KINDS = {"사업보고서": "annual", "반기보고서": "half", "분기보고서": "quarter"}
_TITLES = {kind: title for title, kind in KINDS.items()}

_KEY = re.compile(
    r"(?P<corp>[0-9]{8})/(?P<number>[0-9]{14})/(?P<stock>[^/ ]{1,12})/(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})/"
    r"(?P<kind>annual|half|quarter)-(?P<period>[0-9]{4}\.(?:0[1-9]|1[0-2]))(?P<correction>-correction)?"
)
_LIST = re.compile(r"(?P<corp>[0-9]{8}|all)/list/(?P<period>[0-9]{4}\.1101[1-4])")


@dataclass(frozen=True)
class Report:
    """A periodic report: number, company, stock code, day of receipt, title, period, and whether it corrects one."""

    number: str
    corp: str
    stock: str | None
    received: date
    title: str
    period: str
    is_correction: bool

    @property
    def key(self) -> str:
        """The request's key, from which all of this can be read again."""
        mark = "-correction" if self.is_correction else ""
        return f"{self.corp}/{self.number}/{self.stock or '-'}/{self.received}/{KINDS[self.title]}-{self.period}{mark}"

    @property
    def name(self) -> str:
        """The title with its period."""
        return f"{self.title} ({self.period})"


def read_key(text: str) -> Report | None:
    """Read a request's key; None where it names no report."""
    found = _KEY.fullmatch(text)
    if found is None:
        return None
    try:
        day = date.fromisoformat(found["day"])
    except ValueError:
        return None
    stock = None if found["stock"] == "-" else found["stock"]
    title = _TITLES[found["kind"]]
    return Report(found["number"], found["corp"], stock, day, title, found["period"], bool(found["correction"]))


def request(report: Report) -> Request:
    """Return the request for a document. It never holds a window up: what has no answer is due, or pending."""
    return Request(
        key=report.key,
        unit=f"{report.corp}/{report.number}/document",
        url=URL,
        session_date=report.received,
        params=(("rcept_no", report.number),),
        required=False,
        is_known=True,
    )


# --- what is due


def plan(lookback: int, ask: Ask) -> Iterator[Request]:
    """Plan what is due, what is pending, or the lists of a chunk."""
    if "period" in ask.chunk:
        period = periods.read(ask.chunk["period"])
        assert period is not None
        held = {} if ask.chunk.get("forced") else _held(ask.subjects, period)
        yield from (list_request(period, corp, ask, held) for corp in ask.chunk["corps"] or [ALL])
        return
    if NO_LIST in ask.subjects and ask.newest is not None:
        yield list_first(ask.newest)
        return
    planned: dict[str, Request] = {}
    cut_off, new = _due(lookback, ask)
    failed = [found for key in ask.pending if (found := of_key(key, ask)) is not None]
    for found in (*map(request, cut_off), *failed, *map(request, new), *_named(ask)):
        planned.setdefault(found.key, found)
    yield from planned.values()


def of_key(key: str, ask: Ask) -> Request | None:
    """Return the request that a key was planned with; None where it names none."""
    report, listed = read_key(key), _LIST.fullmatch(key)
    if report is not None:
        return request(report)
    period = periods.read(listed["period"]) if listed else None
    return list_request(period, listed["corp"], ask, {}) if listed and period else None


def _due(lookback: int, ask: Ask) -> tuple[list[Report], list[Report]]:
    """Read rows of the due view as `due 0 <key>`, with 0 for what was cut off; or a key alone. The newest first."""
    since = ask.at.astimezone(lists.SEOUL).date() - timedelta(days=lookback) if ask.at else date.min
    found: dict[bool, list[Report]] = {True: [], False: []}
    for subject in ask.subjects:
        kind, _, rest = subject.partition(" ")
        rank, _, key = rest.partition(" ") if kind == "due" else ("", "", subject)
        report = read_key(key)
        if report is None or report.received < since or (ask.keys and report.corp not in ask.keys):
            continue
        found[rank == "0"].append(report)
    for reports in found.values():
        reports.sort(key=lambda each: (each.received, each.number), reverse=True)
    return found[True], found[False]


def _named(ask: Ask) -> Iterator[Request]:
    """The lists of the companies that an operator names, of the two quarters until the day of the window."""
    for day in ask.sessions[:1] if ask.keys else ():
        for period in list(periods.between(day - timedelta(days=366), day - timedelta(days=1)))[:2]:
            yield from (list_request(period, corp, ask, {}) for corp in ask.keys if lists.is_company(corp))


# --- the past


def received(period: Period) -> tuple[date, date]:
    """Return the days on which the reports of a period are received: the quarter after it, with what else comes then.

    Late reports and corrections of any period belong to the quarter in which they come, so that each report is in one.
    """
    first = period.end + timedelta(days=1)
    return first, Period(first.year, next(code for code, end in periods.ENDS.items() if end[0] > first.month)).end


def chunks(span: Span) -> Iterator[Chunk]:
    """Name the pieces of a backfill or replay: a period's quarter of receipt, the newest first."""
    for period in periods.between(span.start, span.end):
        first, last = received(period)
        if first > span.today:
            continue
        asks: dict[str, Any] = {"period": period.name, "corps": list(span.keys), "forced": span.is_forced}
        if span.mode is Mode.REPLAY:
            asks = {"first": f"{first}", "last": f"{last}", "keys": list(span.keys)}
        yield Chunk(period.name, period.end, asks)


def _held(subjects: Sequence[str], period: Period) -> dict[str, list[str]]:
    """Return the reports of a period's quarter that are held, by company: rows `held 2026-03-31 <corp>-<number> …`."""
    first, last = received(period)
    found: dict[str, list[str]] = {}
    for subject in subjects:
        kind, _, rest = subject.partition(" ")
        day, _, numbers = rest.partition(" ")
        if kind == "held" and first.isoformat() <= day <= last.isoformat():
            for each in numbers.split():
                corp, _, number = each.partition("-")
                found.setdefault(corp, []).append(number)
    return found


def list_request(period: Period, corp: str, ask: Ask, held: Mapping[str, Sequence[str]]) -> Request:
    """Return the request for the first page of the periodic reports of a quarter, of one company or of all."""
    first, last = received(period)
    if ask.at is not None:
        last = max(min(last, ask.at.astimezone(lists.SEOUL).date()), first)
    unit = f"{corp}/list/{period.name}"
    known = sorted(held.get(corp, ()) if corp != ALL else (number for each in held.values() for number in each))
    return Request(
        key=unit,
        unit=unit,
        url=lists.URL,
        session_date=period.end,
        params=(
            *((("corp_code", corp),) if corp != ALL else ()),
            ("bgn_de", f"{first:%Y%m%d}"),
            ("end_de", f"{last:%Y%m%d}"),
            ("last_reprt_at", "N"),
            ("pblntf_ty", "A"),
            ("sort", "date"),
            ("sort_mth", "asc"),
            ("page_no", "1"),
            ("page_count", str(lists.ROWS_OF_A_PAGE)),
        ),
        kind="list",
        about={"round": 1, "page": 1, "rows": None, "held": " ".join(known)},
    )


def is_list(asked: Request) -> bool:
    """Say whether a request is for the list of a quarter."""
    return _LIST.fullmatch(asked.unit) is not None


def follow(asked: Request, answer: Answer) -> Sequence[Request]:
    """Return the further pages of a list, and the documents of its reports that were not held."""
    if not is_list(asked):
        return ()
    try:
        reports = sorted(_listed(answer, []), key=lambda each: (each.received, each.number), reverse=True)
    except ParseError as no:
        raise AnswerError(str(no), may_pass=True) from None
    pages = [replace(each, about={**each.about, "held": asked.about["held"]}) for each in lists.follow(asked, answer)]
    held = frozenset(asked.about["held"].split())
    return [*pages, *(request(each) for each in reports if each.number not in held)]


def _listed(answer: Answer, rejected: list[Rejected]) -> Iterator[Report]:
    """Read the periodic reports that a page of the list names; what was withdrawn has none that holds.

    Rows that cannot be read are added to `rejected`.
    """
    for place, item in enumerate(items_of(answer.body.read()), start=1):
        try:
            title, stock = titles.read(item["report_nm"]), item["stock_code"].strip()
            if title.name not in KINDS or title.period is None or not stock or "철" in item["rm"]:
                continue
            day, number, corp = day_of(item["rcept_dt"]), item["rcept_no"], item["corp_code"]
            report = Report(number, corp, stock, day, title.name, title.period, title.is_correction)
            if read_key(report.key) is None:
                raise ParseError(f"{report.key} names no report")
        except (AttributeError, KeyError, ParseError, TypeError) as wrong:
            reason = f"lacks {wrong}" if isinstance(wrong, KeyError) else str(wrong)
            rejected.append(Rejected(f"{answer.request.key} row {place}", reason, str(item)[:2000]))
            continue
        yield report


# --- answers


def classify(answer: Answer) -> AnswerClass:
    """Tell what DART answered; a trouble that may pass is left to a later window, as one document's is of no other.

    Raises:
        DefiniteRefusal, QuotaUsedUp: see `answers.classify_list`.
        AnswerError: any trouble of this one answer, in words.
    """
    if is_list(answer.request):
        return answers.classify_list(answer)
    try:
        told = answers.classify_archive(answer)
    except AnswerError as no:
        raise AnswerError(str(no)) from None
    # Nothing under this number, and no file under it: either may change.
    return AnswerClass.ABSENT if told is AnswerClass.EMPTY else told


def parse(unit: Unit) -> Parsed:
    """Read a document; the list of a quarter gives no rows here, and tells those that cannot be read.

    Raises:
        ParseError: see `documents.read` and `disclosures.items_of`.
    """
    answer = unit.answers[0]
    if is_list(answer.request):
        rejected = list[Rejected]()
        for page in unit.answers:
            list(_listed(page, rejected))
        return Parsed((), rejected)
    report = read_key(answer.request.key)
    if report is None:
        raise ParseError(f"{answer.request.key!r} names no report")
    found = documents.read(answer.body.read(), report.number, report.name)
    about = (found.company, report.stock, report.period[:4], report.received, report.name)
    row = (
        report.number,
        report.corp,
        *about,
        report.period,
        report.is_correction,
        found.member,
        [list(each) for each in found.others] or None,
        found.encoding,
        found.replaced,
        len(found.sections),
        sum(len(section.tables) for section in found.sections),
        sum(len(section.text) for section in found.sections),
    )
    return Parsed(
        (
            Batch(DOCUMENTS, (row,)),
            Batch(DOCS, _sections(report, about, found)),
            Batch(TABLES, _tables(report, found)),
        )
    )


def _sections(report: Report, about: tuple[Any, ...], found: documents.Document) -> Iterator[tuple[Any, ...]]:
    paths: dict[int, str] = {}
    for section in found.sections:
        above = paths.get(section.parent) if section.parent is not None else None
        paths[section.order] = f"{above} > {section.title}" if above else section.title
        yield (
            report.number,
            section.order,
            report.corp,
            *about,
            section.level,
            section.parent,
            section.title,
            paths[section.order],
            section.slot,
            section.text,
            len(section.tables),
        )


def _tables(report: Report, found: documents.Document) -> Iterator[tuple[Any, ...]]:
    order = 0
    for section in found.sections:
        for table in section.tables:
            fields = [[cell.row, cell.column, cell.code, cell.value, cell.context] for cell in table.fields]
            yield (
                report.number,
                order,
                report.corp,
                report.received,
                section.order,
                table.group,
                table.unit,
                table.is_unstructured,
                table.grid,
                fields or None,
            )
            order += 1


# --- the stream


def stream(choice: Choice) -> Stream:
    """Return the stream of the documents of periodic reports."""
    subject = Column("subject", "text", "What is due with its rank, and which reports are held")
    view = Table("filings", "dart_due_docs", "What is due, and what is held", (subject,), ("subject",), None)
    return Stream(
        name="dart.docs",
        title="Documents of periodic reports, as chapters and tables",
        tables=(DOCUMENTS, DOCS, TABLES),
        schedule=sync.SCHEDULE,
        calendar=sync.CALENDAR,
        host_group=HOST_GROUP,
        budget=replace(
            sync.BUDGET,
            slice_items=50_000,
            reason="the last day of a season brings the reports of 2,000 companies, each with a hundred chapters and "
            "a thousand tables; what bounds them is the quota of the keys",
        ),
        parser_version=PARSER_VERSION,
        plan=partial(plan, choice.lookback),
        follow=follow,
        classify=classify,
        parse=parse,
        chunks=chunks,
        first_session=date(1999, 3, 31),
        subjects=Subjects(replace(view, is_published=False), "subject", "is_wanted"),
        usual_requests=2_700,
        leaves_quota=LEFT_FOR_DISCLOSURES,
        gives_way_after=sync.FAILURES_IN_A_ROW,
        usual_range=periods.all_until,
        empty_can_be_right=False,
        job=sync.JOB,
        known_key=lists.is_company,
        keys_are="companies as DART numbers them, e.g. 00126380",
    )
