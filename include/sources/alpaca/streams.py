"""Alpaca's streams: when they may ask, for what, and how the answer is read."""

from __future__ import annotations

from datetime import date, timedelta
from functools import partial

from include.contract import Budget, HostGroup, Recheck, Schedule, Stream, Subjects
from include.sources.alpaca import bars, reference, requests, symbols, timeframes
from include.sources.alpaca.tables import (
    ASSETS,
    CALENDAR,
    DAILY_ASKED_NONE,
    DAILY_BARS,
    INTRADAY_ASKED_NONE,
    INTRADAY_BARS,
    LISTED_ASSETS,
)

# The free plan counts 200 requests a minute for the account, whatever is asked for.
HOST_GROUP = HostGroup("alpaca", interval=timedelta(seconds=0.31))

NEW_YORK = "America/New_York"
# Provisional after the close, final after the extended session.
DAILY = Schedule(
    cron="30 17 * * 1-5 | 20 20 * * 1-5",
    timezone=NEW_YORK,
    retry_first=timedelta(minutes=10),
    retry_every=timedelta(minutes=20),
    last_try=timedelta(hours=2),
    allowance=timedelta(hours=1),
    make_up=(timedelta(minutes=10), timedelta(minutes=40)),
)
# Once after the session. During it as well: any cron expression such as `*/10 9-20 * * 1-5` in the configuration.
INTRADAY = Schedule(
    cron="30 20 * * 1-5",
    timezone=NEW_YORK,
    retry_first=timedelta(minutes=10),
    retry_every=timedelta(minutes=20),
    last_try=timedelta(hours=3),
    allowance=timedelta(hours=2),
)

COLLECTED = Subjects(LISTED_ASSETS, "symbol", "is_collected")
KEYS_ARE = "symbols as Alpaca spells them, e.g. AAPL or BRK.B"

DAY, MINUTE = timeframes.Timeframe(1, "Day"), timeframes.Timeframe(1, "Min")

ASSETS_STREAM = Stream(
    name="alpaca.assets",
    title="Assets",
    tables=(ASSETS,),
    schedule=DAILY,
    calendar="XNYS",
    host_group=HOST_GROUP,
    budget=Budget(day_items=400_000, slice_items=100_000, slice_seconds=180, reason="one list has 30,000 assets"),
    parser_version=reference.PARSER_VERSION,
    plan=reference.plan_assets,
    classify=reference.classify,
    parse=reference.parse_assets,
    first_session=bars.FIRST_SESSION,
    listing=True,
    empty_can_be_right=False,
    snapshot_only="earlier lists were never published. The lists as they were collected are in the history, and a "
    "replay reads them again.",
    known_key=symbols.is_well_formed,
    keys_are=KEYS_ARE,
    sla_eligible=False,
)

CALENDAR_STREAM = Stream(
    name="alpaca.calendar",
    title="Trading days",
    tables=(CALENDAR,),
    schedule=DAILY,
    calendar="XNYS",
    host_group=HOST_GROUP,
    budget=Budget(),
    parser_version=reference.PARSER_VERSION,
    plan=reference.plan_calendar,
    classify=reference.classify,
    parse=reference.parse_calendar,
    first_session=date(2016, 1, 4),
    chunks=reference.calendar_chunks,
    known_key=symbols.is_well_formed,
    keys_are=KEYS_ARE,
    sla_eligible=False,
)

DAILY_STREAM = Stream(
    name="alpaca.bars_1d",
    title="Daily bars",
    tables=(DAILY_BARS, DAILY_ASKED_NONE),
    schedule=DAILY,
    calendar="XNYS",
    host_group=HOST_GROUP,
    budget=Budget(
        day_items=10_000_000,
        day_details=5_000,
        slice_items=200_000,
        slice_seconds=180,
        reason="a month of 12,000 symbols, raw and adjusted, is half a million bars, and it is read twice a day",
    ),
    parser_version=bars.PARSER_VERSION,
    plan=partial(requests.plan, timeframe=DAY),
    chunks=partial(requests.chunks, timeframe=DAY),
    is_of=requests.is_of,
    timeframes=timeframes.is_long,
    usual_requests=len(requests.DAILY_ADJUSTMENTS),
    classify=bars.classify,
    parse=bars.parse,
    follow=requests.follow,
    amend=requests.amend,
    subjects=COLLECTED,
    first_session=bars.FIRST_SESSION,
    known_key=symbols.is_well_formed,
    keys_are=KEYS_ARE,
)

MINUTE_STREAM = Stream(
    name="alpaca.bars_1m",
    title="Minute bars",
    tables=(INTRADAY_BARS, INTRADAY_ASKED_NONE),
    schedule=INTRADAY,
    calendar="XNYS",
    host_group=HOST_GROUP,
    budget=Budget(
        day_items=60_000_000,
        day_details=30_000,
        slice_items=200_000,
        slice_seconds=180,
        reason="a session of 12,000 symbols is up to five million bars, and five sessions are read again",
    ),
    parser_version=bars.PARSER_VERSION,
    plan=partial(requests.plan, timeframe=MINUTE),
    chunks=partial(requests.chunks, timeframe=MINUTE),
    is_of=requests.is_of,
    timeframes=timeframes.is_short,
    usual_requests=timeframes.PAGES_OF_A_UNIT,
    classify=bars.classify,
    parse=bars.parse,
    follow=requests.follow,
    amend=requests.amend,
    subjects=COLLECTED,
    first_session=bars.FIRST_SESSION,
    recheck=Recheck(sessions=5),
    known_key=symbols.is_well_formed,
    keys_are=KEYS_ARE,
    job="intraday",
    sla_eligible=False,
)
