"""DART's streams: when they may ask, for what, and how the answer is read."""

from __future__ import annotations

from datetime import date, timedelta

from include.contract import Budget, HostGroup, Quota, Recheck, Schedule, Stream
from include.sources.dart import answers, corps, lists
from include.sources.dart import disclosures as reading
from include.sources.dart.tables import CORPS, DISCLOSURES

# Above about 1,000 requests a minute the address is blocked for a day, whichever keys are used: half of that. Each key
# has 20,000 requests a day; the past leaves a tenth of them to the windows of the day.
HOST_GROUP = HostGroup(
    "dart",
    interval=timedelta(seconds=0.12),
    penalty=timedelta(hours=1),
    busy_wait=timedelta(seconds=30),
    quota=Quota(20_000, "Asia/Seoul", kept_for_polls=2_000),
)
# Of each key's day, what everything else leaves to the list of disclosures and to the documents that are analysed.
LEFT_FOR_DISCLOSURES = 4_000

SEOUL = "Asia/Seoul"
FIRST_DAY = date(1999, 4, 1)
# So long a filing is looked at again, as it may be marked as corrected or withdrawn.
LOOKED_AT_AGAIN = 7


def disclosures(minutes: int, *, is_on: bool) -> Stream:
    """Return the stream of disclosures as they appear, looked at every so many minutes from 08:00 to 20:00."""
    return Stream(
        name="dart.disclosures",
        title="Disclosures as they appear",
        tables=(DISCLOSURES,),
        schedule=Schedule(
            cron=f"{'0' if minutes == 60 else f'*/{minutes}'} 8-19 * * 1-5 | 0 20 * * 1-5",
            timezone=SEOUL,
            retry_first=timedelta(minutes=1),
            retry_every=timedelta(minutes=1),
            last_try=timedelta(minutes=minutes),
            allowance=timedelta(minutes=min(minutes, 5)),
            # The next window comes sooner than any of these would.
            make_up=(),
        ),
        calendar="DAILY",
        host_group=HOST_GROUP,
        budget=Budget(
            day_list_pages=20_000,
            day_items=10_000_000,
            slice_list_pages=400,
            slice_items=100_000,
            reason="all pages of the day are read every few minutes, as a new row may stand on any of them",
        ),
        parser_version=reading.PARSER_VERSION,
        plan=lists.plan,
        follow=lists.follow,
        classify=answers.classify_list,
        parse=reading.parse,
        chunks=lists.chunks,
        usual_requests=8,
        recheck=Recheck(sessions=LOOKED_AT_AGAIN),
        first_session=FIRST_DAY,
        known_key=lists.is_known,
        keys_are="markets (Y KOSPI, K KOSDAQ, N KONEX, E other) or companies as DART numbers them, e.g. 00126380",
        sla_eligible=is_on,
    )


def corp_codes() -> Stream:
    """Return the stream of the list of all companies."""
    return Stream(
        name="dart.corp_codes",
        title="All companies by their numbers",
        tables=(CORPS,),
        schedule=Schedule(
            cron="0 8 * * *",
            timezone=SEOUL,
            retry_first=timedelta(minutes=10),
            retry_every=timedelta(minutes=30),
            last_try=timedelta(hours=4),
            allowance=timedelta(minutes=30),
        ),
        calendar="DAILY",
        host_group=HOST_GROUP,
        budget=Budget(
            day_items=2_000_000,
            slice_items=400_000,
            slice_seconds=180,
            reason="the one list has 120,000 companies, of which few differ from the day before",
        ),
        parser_version=corps.PARSER_VERSION,
        plan=corps.plan,
        classify=answers.classify_archive,
        parse=corps.parse,
        first_session=FIRST_DAY,
        # Companies are added by the day and none is taken out: a list that lacks many is not all of it.
        least_share=0.98,
        snapshot_only="DART gives the list as it is now and never as it was. The lists as they were collected are in "
        "the history, and a replay reads them again.",
        known_key=corps.is_known,
        keys_are="the list as a whole: corps",
        leaves_quota=LEFT_FOR_DISCLOSURES,
        empty_can_be_right=False,
        job="corps",
    )
