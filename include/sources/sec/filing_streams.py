"""The SEC's streams of what is in filings: when they may ask, for what, and how the answer is read."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import partial

from include.contract import Budget, Column, Stream, Subjects, Table
from include.sources.sec import filing_facts, filing_headers, filing_plans, filing_tables, filing_texts
from include.sources.sec.filing_plans import Choice
from include.sources.sec.shared import CALENDAR, HOST_GROUP, TICK
from include.sources.sec.universe import EXCHANGES

FIRST_SESSION = date(1993, 1, 1)
KEYS_ARE = "filings (0000320193-20-000010), companies by their CIK (320193), or lists of config/sec.yaml"

_BUDGET = Budget(
    day_list_pages=200,
    day_items=50_000_000,
    day_details=12_000,
    slice_items=1_000_000,
    slice_seconds=180,
    reason="a day has up to 12,000 filings, one request each, and a large one gives 100,000 rows",
)


# Whether a submission leads to an instance of its own is told by the submission: each is a list, and nobody is asked.
_BUDGET_OF_FACTS = replace(
    _BUDGET,
    day_list_pages=12_000,
    slice_list_pages=500,
    reason="a day has up to 12,000 submissions, each of which may lead to an instance and give 100,000 facts",
)


def due(view: str) -> Table:
    """Return the declaration of a view that says what is still to be read."""
    subject = Column("subject", "text", "Key of the filing, with the form behind it where that decides")
    return Table("filings", view, "What is still to be read", (subject,), ("subject",), None, is_published=False)


def streams(choice: Choice) -> tuple[Stream, Stream, Stream]:
    """Return the streams of documents, headers and XBRL facts, in the order in which they are worked."""
    tier = choice.policy.documents
    filings = Stream(
        name=filing_plans.FILINGS,
        title="Complete submissions with their documents",
        tables=(filing_tables.TEXTS, filing_tables.DOCUMENTS),
        schedule=TICK,
        calendar=CALENDAR,
        host_group=HOST_GROUP,
        budget=_BUDGET,
        parser_version=filing_texts.PARSER_VERSION,
        plan=partial(filing_plans.plan, choice, filing_plans.text_request, reads=False),
        classify=filing_texts.classify,
        parse=filing_texts.parse,
        follow=partial(filing_plans.details, choice, filing_plans.text_request),
        first_session=FIRST_SESSION,
        subjects=Subjects(due("sec_due_texts"), "subject", f"is_{tier}" if tier in EXCHANGES else "is_all"),
        usual_requests=6_000,
        empty_can_be_right=False,
        known_key=choice.knows,
        keys_are=KEYS_ARE,
    )
    headers = Stream(
        name=filing_plans.HEADERS,
        title="Headers of submissions: parties, addresses, former names",
        tables=(filing_tables.HEADERS, filing_tables.PARTIES, filing_tables.FORMER_NAMES, filing_tables.FIELDS),
        schedule=TICK,
        calendar=CALENDAR,
        host_group=HOST_GROUP,
        budget=_BUDGET,
        parser_version=filing_headers.PARSER_VERSION,
        plan=partial(filing_plans.plan, choice, filing_plans.header_request),
        classify=filing_texts.classify,
        parse=filing_headers.parse,
        follow=partial(filing_plans.details, choice, filing_plans.header_request),
        first_session=FIRST_SESSION,
        subjects=Subjects(due("sec_due_headers"), "subject", "is_due"),
        usual_requests=6_000,
        empty_can_be_right=False,
        known_key=choice.knows,
        keys_are=KEYS_ARE,
    )
    facts = Stream(
        name=filing_plans.FACTS,
        title="XBRL facts as filed",
        tables=(filing_tables.XBRL, filing_tables.FACTS, filing_tables.FOOTNOTES, filing_tables.INSTANCES),
        schedule=TICK,
        calendar=CALENDAR,
        host_group=HOST_GROUP,
        budget=_BUDGET_OF_FACTS,
        parser_version=filing_facts.PARSER_VERSION,
        plan=partial(filing_plans.plan, choice, filing_plans.xbrl_request),
        classify=filing_facts.classify,
        parse=filing_facts.parse,
        follow=partial(filing_facts.follow, choice),
        first_session=FIRST_SESSION,
        subjects=Subjects(due("sec_due_xbrl"), "subject", "is_due"),
        usual_requests=6_000,
        empty_can_be_right=False,
        known_key=choice.knows,
        keys_are=KEYS_ARE,
    )
    return filings, facts, headers
