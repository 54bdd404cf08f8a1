"""Annual and quarterly reports as items: cut out of the submissions that `sec.filings` has stored.

Promises: nobody is asked; which reports are due follows from rows, so that one that came while nobody looked is cut
with the next window, and each once. Never: an exhibit is taken for the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import Any

from include.contract import Ask, Batch, Budget, Parsed, Rejected, Request, Schedule, Stream, Subjects, Unit
from include.sources.sec import filing_plans, filing_texts, headers, sections, submission
from include.sources.sec.filing_plans import Choice, is_index
from include.sources.sec.filing_streams import FIRST_SESSION, KEYS_ARE, due
from include.sources.sec.filing_tables import SECTIONS
from include.sources.sec.filing_texts import accession_of, filed_date, insist_on_the_filing
from include.sources.sec.headers import Header
from include.sources.sec.names import FilingKey
from include.sources.sec.shared import CALENDAR, HOST_GROUP, WWW
from include.sources.sec.universe import EXCHANGES, Policy

DOCS = "sec.docs"
PARSER_VERSION = 1
# A row of the due view where no submission was ever read.
NONE_HELD = "list"

# The week is over in New York, and Seoul has not begun to work.
SUNDAY = Schedule(
    cron="0 12 * * 0",
    timezone="Asia/Seoul",
    market_timezone="America/New_York",
    # Waiting for the first submissions costs nobody a request.
    retry_first=timedelta(minutes=1),
    retry_every=timedelta(minutes=2),
    last_try=timedelta(days=6),
    allowance=timedelta(hours=12),
)
_BUDGET = Budget(
    day_list_pages=200,
    day_items=50_000_000,
    day_details=12_000,
    slice_items=20_000,
    slice_seconds=180,
    reason="a week in March has five thousand annual reports of twenty items each",
)


def request(key: FilingKey) -> Request:
    """Return the request for the report in a submission that is stored."""
    return filing_plans.read_request(key, "sections")


def plan(choice: Choice, ask: Ask) -> Iterator[Request]:
    """Plan the reports that are due; where no submission was ever read, wait: nobody can know yet what is due."""
    if NONE_HELD in ask.subjects and ask.newest is not None and not ask.keys:
        unit = f"{NONE_HELD}/any"
        yield Request(
            key=unit,
            unit=unit,
            url=WWW,
            session_date=ask.newest,
            expected=False,
            kind="list",
            read_from=(filing_plans.FILINGS, unit),
        )
        return
    yield from filing_plans.plan(choice, request, ask)


def parse(unit: Unit) -> Parsed:
    """Cut the report out of a submission, and into its items; the index of a day gives no rows here.

    Raises:
        ParseError: it is no submission, or another filing's.
    """
    answer = unit.answers[0]
    if is_index(answer.request):
        return Parsed(batches=())
    with answer.body.open() as body:
        found = submission.read(body)
        header = headers.parse(found.header)
        report = next((each for each in found.documents() if sections.form_of(each.type)), None)
    insist_on_the_filing(found, header, unit)
    rejected: list[Rejected] = []
    if report is None or report.is_uuencoded:
        rejected.append(Rejected("report", "it holds no text of an annual or quarterly report", found.header[:2000]))
        return Parsed((Batch(SECTIONS, []),), rejected)
    if report.defect is not None:
        rejected.append(Rejected(f"document {report.position}", report.defect, report.type))
    with answer.body.open() as body:
        text = submission.decode(b"".join(submission.cut(body, report)))
    cut = sections.cut(sections.lines_of(text))
    first = FilingKey.of(answer.request.key)
    rows = _rows(accession_of(unit), header, first.cik if first else 0, report.type, filed_date(header, unit), cut)
    return Parsed((Batch(SECTIONS, list(rows)),), rejected)


def _rows(
    accession: str, header: Header, asked: int, form: str, filed: date, cut: list[sections.Section]
) -> Iterator[tuple[Any, ...]]:
    """Give a row for each section; the filer is the header's first, as keys may name any of several."""
    party = next((number for number, _ in header.parties()), 0)
    cik = headers.whole(header.first("cik", party=party)) or asked
    period = headers.day(header.first("period_of_report"))
    for number, section in enumerate(cut):
        yield (
            accession,
            number,
            cik,
            header.first("name", party=party),
            form,
            filed,
            period,
            section.part,
            section.item,
            section.title,
            section.text,
        )


def stream(policy: Policy) -> Stream:
    """Return the stream; `policy.docs` says whose reports are cut, of those that are fetched at all."""
    tier = policy.docs
    choice = Choice(replace(policy, documents=tier, forms=frozenset(sections.FORMS)))
    return Stream(
        name=DOCS,
        title="Annual and quarterly reports cut into their items",
        tables=(SECTIONS,),
        schedule=SUNDAY,
        calendar=CALENDAR,
        host_group=HOST_GROUP,
        budget=_BUDGET,
        parser_version=PARSER_VERSION,
        plan=partial(plan, choice),
        classify=filing_texts.classify,
        parse=parse,
        follow=partial(filing_plans.details, choice, request),
        first_session=FIRST_SESSION,
        subjects=Subjects(due("sec_due_docs"), "subject", f"is_{tier}" if tier in EXCHANGES else "is_all"),
        usual_requests=500,
        empty_can_be_right=True,
        job="weekly",
        dag="edgar_weekly",
        sla_eligible=False,
        lag_allowance=7,
        known_key=choice.knows,
        keys_are=KEYS_ARE,
    )
