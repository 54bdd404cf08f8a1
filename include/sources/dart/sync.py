"""What the streams of DART's sync have in common: when they may ask, what they leave to others, and the categories.

Promises: each category is a stream with windows, failures and a budget of its own. Never: what one category holds
decides what another asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial

from include.contract import (
    Answer,
    AnswerClass,
    AnswerError,
    Budget,
    Column,
    Parsed,
    Schedule,
    Stream,
    Subjects,
    Table,
    Unit,
)
from include.sources.dart import answers, lists, periods, sets
from include.sources.dart.sets import Category
from include.sources.dart.streams import HOST_GROUP, LEFT_FOR_DISCLOSURES

JOB = "sync"
CATEGORIES = ("finance", "report", "docs")
# The due views look no further back.
MOST_LOOKBACK = 120
FAILURES_IN_A_ROW = 5

# Twice a day, when the list has a night's or a day's reports; what is due waits for no publication, so a window that
# DART stops (a maintenance, a block) goes on until the next one opens.
SCHEDULE = Schedule(
    cron="0 3,15 * * *",
    timezone="Asia/Seoul",
    retry_first=timedelta(minutes=1),
    retry_every=timedelta(minutes=10),
    last_try=timedelta(hours=11),
    allowance=timedelta(hours=4),
    make_up=(),
)
CALENDAR = "DAILY"
BUDGET = Budget(
    day_list_pages=100_000,
    day_items=100_000_000,
    day_details=100_000,
    slice_list_pages=2_000,
    slice_items=200_000,
    slice_seconds=180,
    reason="the last day of a season brings the reports of 2,000 companies with thirty requests each; what bounds them "
    "is the quota of the keys",
)


@dataclass(frozen=True)
class Choice:
    """What an installation syncs: the categories, and how many days back reports are looked for."""

    categories: tuple[str, ...] = CATEGORIES
    lookback: int = 60


def classify(answer: Answer) -> AnswerClass:
    """Tell what an endpoint answered; a trouble that may pass is tried again by a later window, not at once.

    One endpoint that is out of order must not cost four requests for each company, and where all of them are, asking
    at once is of no use.

    Raises:
        DefiniteRefusal, QuotaUsedUp: as `answers.classify_list`.
        AnswerError: any trouble of this one answer, in words.
    """
    try:
        told = answers.classify_list(answer)
    except AnswerError as no:
        raise AnswerError(str(no)) from None
    if told is AnswerClass.ABSENT:
        raise AnswerError("DART says 014, which an endpoint with rows never says")
    return told


def stream(
    name: str,
    title: str,
    category: Category,
    tables: tuple[Table, ...],
    parser_version: int,
    parse: Callable[[Category, Unit], Parsed],
) -> Stream:
    """Return the stream of a category that is asked for by company and period."""
    subject = Column("subject", "text", "What is due with its rank, and which periods each company holds")
    view = Table("filings", f"dart_due_{name}", "What is due, and what is held", (subject,), ("subject",), None)
    return Stream(
        name=f"dart.{name}",
        title=title,
        tables=tables,
        schedule=SCHEDULE,
        calendar=CALENDAR,
        host_group=HOST_GROUP,
        budget=BUDGET,
        parser_version=parser_version,
        plan=partial(sets.plan, category),
        follow=partial(sets.follow, category),
        classify=classify,
        parse=partial(parse, category),
        chunks=partial(sets.chunks, category),
        first_session=date(periods.FIRST_YEAR, 3, 31),
        subjects=Subjects(replace(view, is_published=False), "subject", "is_wanted"),
        usual_requests=len(category.parts),
        leaves_quota=LEFT_FOR_DISCLOSURES,
        gives_way_after=FAILURES_IN_A_ROW,
        usual_range=periods.all_until,
        job=JOB,
        known_key=lists.is_company,
        keys_are="companies as DART numbers them, e.g. 00126380",
    )
