"""KIND's stream: the list of companies, asked for once a day.

Promises: one request a day, and none again that day whatever came of it. Never: the list is cut by a page size.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from include.contract import Ask, Budget, Chunk, HostGroup, Request, Schedule, Span, Stream
from include.sources.kind import listing
from include.sources.kind.tables import COMPANIES, EXCLUDED

HOST = "https://kind.krx.co.kr"
PAGE = f"{HOST}/corpgeneral/corpList.do"
LIST = "companies/list"

# A page that keeps us out stops the day: it is longer than a window waits.
HOST_GROUP = HostGroup("kind", interval=timedelta(seconds=5), penalty=timedelta(hours=2))


def plan(ask: Ask) -> Iterator[Request]:
    """Plan the one request for the whole list, where a session or the key asks for it.

    Every market is asked for at once, as lists of single markets have come back empty; the policy is applied to rows.
    """
    if ask.sessions or ask.chunk or LIST in ask.pending:
        yield Request(
            key=LIST,
            unit=LIST,
            url=PAGE,
            params=(("method", "download"), ("searchType", "13")),
            headers=(("Referer", f"{PAGE}?method=loadInitPage"),),
            kind="list",
        )


def chunks(span: Span) -> Iterator[Chunk]:
    """Return the one piece of a replay: every list that is stored makes the rows together."""
    yield Chunk("list", span.end, {"list": LIST})


COMPANIES_STREAM = Stream(
    name="kind.companies",
    title="Listed companies of KOSPI and KOSDAQ",
    tables=(COMPANIES, EXCLUDED),
    # 08:00 every day. What reads web pages asks once a day, so nothing is made up.
    schedule=Schedule(
        cron="0 8 * * *",
        timezone="Asia/Seoul",
        retry_first=timedelta(minutes=1),
        retry_every=timedelta(minutes=1),
        last_try=timedelta(minutes=1),
        allowance=timedelta(minutes=30),
        make_up=(),
    ),
    calendar="DAILY",
    host_group=HOST_GROUP,
    budget=Budget(day_items=40_000, slice_items=20_000, reason="one list has 2,900 companies"),
    parser_version=listing.PARSER_VERSION,
    plan=plan,
    chunks=chunks,
    classify=listing.classify,
    parse=listing.parse,
    first_session=date(2000, 1, 1),
    listing=True,
    # Of 2,700 companies a handful leave on a day; a fall of more than two in a hundred is a defect of the list.
    least_share=0.98,
    empty_can_be_right=False,
    snapshot_only="KIND shows the list of today and no other. Who was listed on an earlier day, since it is collected, "
    "tells select * from market.kind_as_of('2026-09-15'); before that, KRX's prices by day do.",
    known_key=lambda key: False,
    keys_are="not taken: the list comes whole",
    dag="krx_listing",
)
