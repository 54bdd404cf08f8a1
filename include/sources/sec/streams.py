"""The SEC's streams that find filings: when they may ask, for what, and how the answer is read.

Promises: the whole market is found by the current feed within a tick, and each day reconciled with its index once that
is there; quarterly indexes, which the SEC rebuilds every week, are read again every week.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import partial

from include.contract import Budget, Recheck, Schedule, Stream
from include.sources.sec import companies, feed, index, tickers
from include.sources.sec.shared import CALENDAR, HOST_GROUP, NEW_YORK, TICK
from include.sources.sec.tables import (
    COMPANIES,
    COMPANY_FILINGS,
    DAILY_INDEX,
    FEED,
    FEED_MARK,
    FULL_INDEX,
    TICKERS,
    WALKS,
    listed,
)
from include.sources.sec.universe import CONFIGURATION, EXCHANGES, Policy

# The index of a day is built from 22:00 on, and there before midnight; where it is not, before the next morning.
NIGHT = Schedule(
    cron="0 23 * * 1-5",
    timezone=NEW_YORK,
    retry_first=timedelta(minutes=30),
    retry_every=timedelta(minutes=30),
    last_try=timedelta(hours=7),
    allowance=timedelta(hours=2),
)
# Quarterly indexes are rebuilt in the night to Saturday.
SATURDAY = Schedule(
    cron="0 12 * * 6",
    timezone=NEW_YORK,
    retry_first=timedelta(minutes=30),
    retry_every=timedelta(hours=1),
    last_try=timedelta(hours=12),
    allowance=timedelta(hours=4),
)
MORNING = Schedule(
    cron="30 5 * * 1-5",
    timezone=NEW_YORK,
    retry_first=timedelta(minutes=10),
    retry_every=timedelta(minutes=20),
    last_try=timedelta(hours=2),
    allowance=timedelta(hours=1),
)

# An index loses single rows when it is rebuilt; one that is read again and far shorter was cut, or is another's.
LEAST_SHARE = 0.98

FIRST_SESSION = date(1993, 1, 1)
_NOT_LIMITED = "not used: it shows the whole market"


def _no_key(key: str) -> bool:
    return False


SUBMISSIONS_STREAM = Stream(
    name="sec.submissions",
    title="New filings of the whole market",
    tables=(FEED, WALKS),
    schedule=TICK,
    calendar=CALENDAR,
    host_group=HOST_GROUP,
    budget=Budget(
        day_list_pages=200,
        day_items=100_000,
        day_details=12_000,
        slice_list_pages=feed.MOST_PAGES,
        slice_items=20_000,
        slice_seconds=180,
        reason="a day of the market is some 9,000 entries on a hundred pages, and a reading must not stop half way, as "
        "the pages move on",
    ),
    parser_version=feed.PARSER_VERSION,
    plan=feed.plan,
    follow=feed.follow,
    classify=feed.classify,
    parse=feed.parse,
    subjects=FEED_MARK,
    first_session=FIRST_SESSION,
    snapshot_only="the feed holds two business days. Backfill sec.index, which lists what was filed on each day, or "
    "sec.quarters.",
    known_key=_no_key,
    keys_are=_NOT_LIMITED,
    # A minute without a new filing is rare, but a night is not.
    empty_can_be_right=True,
)

INDEX_STREAM = Stream(
    name="sec.index",
    title="Daily indexes",
    tables=(DAILY_INDEX,),
    schedule=NIGHT,
    calendar=CALENDAR,
    host_group=HOST_GROUP,
    budget=Budget(day_items=500_000, slice_items=100_000, reason="one day is 6,000 rows, and six are read in a night"),
    parser_version=index.PARSER_VERSION,
    plan=index.plan_days,
    classify=index.classify,
    parse=index.parse_day,
    recheck=Recheck(sessions=5),
    least_share=LEAST_SHARE,
    first_session=date(1994, 7, 1),
    known_key=_no_key,
    keys_are=_NOT_LIMITED,
    job="index",
    sla_eligible=False,
)

QUARTERS_STREAM = Stream(
    name="sec.quarters",
    title="Quarterly indexes, as rebuilt every week",
    tables=(FULL_INDEX,),
    schedule=SATURDAY,
    calendar=CALENDAR,
    host_group=HOST_GROUP,
    budget=Budget(
        day_items=5_000_000,
        slice_items=1_000_000,
        slice_seconds=240,
        reason="a quarter is 350,000 rows, and two are read",
    ),
    parser_version=index.PARSER_VERSION,
    plan=index.plan_quarters,
    chunks=index.quarter_chunks,
    least_share=LEAST_SHARE,
    classify=index.classify,
    parse=index.parse_quarter,
    first_session=FIRST_SESSION,
    known_key=_no_key,
    keys_are=_NOT_LIMITED,
    job="quarters",
    sla_eligible=False,
    lag_allowance=7,
)

TICKERS_STREAM = Stream(
    name="sec.tickers",
    title="Tickers and where they are listed",
    tables=(TICKERS,),
    schedule=MORNING,
    calendar=CALENDAR,
    host_group=HOST_GROUP,
    budget=Budget(day_items=100_000, slice_items=50_000, reason="the list has 11,000 rows"),
    parser_version=tickers.PARSER_VERSION,
    plan=tickers.plan,
    classify=tickers.classify,
    parse=tickers.parse,
    first_session=FIRST_SESSION,
    snapshot_only="earlier lists were never published. The lists as they were collected are in the history, and a "
    "replay reads them again.",
    known_key=_no_key,
    keys_are=_NOT_LIMITED,
    empty_can_be_right=False,
    job="tickers",
    sla_eligible=False,
)


def companies_stream(policy: Policy) -> Stream:
    """Return the stream of the lists of followed companies."""
    exchange = next((name for name in policy.companies if name in EXCHANGES), None)
    return Stream(
        name="sec.companies",
        title="Lists of filings of followed companies",
        tables=(COMPANIES, COMPANY_FILINGS),
        schedule=NIGHT,
        calendar=CALENDAR,
        host_group=HOST_GROUP,
        budget=Budget(
            day_list_pages=12_000,
            day_items=20_000_000,
            day_details=12_000,
            slice_list_pages=1_000,
            slice_items=200_000,
            slice_seconds=180,
            reason="each company is a list of a thousand rows, of which few are new, and thousands may be followed",
        ),
        parser_version=companies.PARSER_VERSION,
        plan=partial(companies.plan, policy),
        follow=companies.follow,
        chunks=partial(companies.chunks, policy),
        classify=companies.classify,
        parse=companies.parse,
        subjects=listed(exchange) if exchange else None,
        first_session=FIRST_SESSION,
        known_key=policy.knows,
        keys_are=f"companies by their CIK, e.g. 320193, or lists of {CONFIGURATION}: {', '.join(policy.lists)}",
        job="index",
        sla_eligible=False,
    )
