"""KRX's streams: when they may ask, for what, and how the answer is read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from include.contract import Budget, HostGroup, Quota, Recheck, Schedule, Stream
from include.sources.krx import indices, services, trades
from include.sources.krx.answers import classify
from include.sources.krx.services import Service
from include.sources.krx.tables import BOND_INDICES, INDICES, ISSUES, PRICES

# Each key has 10,000 calls a day, and going over may cost it. A morning of polls takes eleven, some 300 at worst.
HOST_GROUP = HostGroup("krx", interval=timedelta(seconds=0.5), quota=Quota(10_000, "Asia/Seoul", kept_for_polls=500))


def _morning(minute: int) -> Schedule:
    """A session is published at about 08:00 on the morning of the next one, and judged at 09:00."""
    return Schedule(
        cron=f"{minute} 8 * * 1-5",
        timezone="Asia/Seoul",
        retry_first=timedelta(minutes=10),
        retry_every=timedelta(minutes=10),
        last_try=timedelta(hours=4, minutes=-minute),
        allowance=timedelta(minutes=60 - minute),
        # Whatever fails is tried again before noon, after which nothing more is published.
        make_up=(timedelta(minutes=10), timedelta(minutes=40), timedelta(hours=2)),
        session="previous_session",
    )


_BUDGET = Budget(
    day_items=400_000,
    slice_items=100_000,
    slice_seconds=180,
    reason="a session is 2,800 rows, read again on two mornings; weeks of them in a catch-up",
)


# A market or family has as many rows as it had: an answer with far fewer is a part of it, and takes nothing away.
_LEAST_SHARE = 0.9


def _keys_are(listed: Mapping[str, Service], what: str) -> str:
    return f"{what}: {', '.join(listed)}"


PRICES_STREAM = Stream(
    name="krx.prices",
    title="Daily prices",
    tables=(PRICES,),
    schedule=_morning(10),
    calendar="XKRX",
    host_group=HOST_GROUP,
    budget=_BUDGET,
    parser_version=trades.PARSER_VERSION,
    plan=services.planner(services.PRICES),
    classify=classify,
    parse=trades.parse_prices,
    known_key=services.PRICES.__contains__,
    keys_are=_keys_are(services.PRICES, "markets"),
    first_session=date(2010, 1, 4),
    recheck=Recheck(sessions=2),
    empty_can_be_right=False,
    least_share=_LEAST_SHARE,
)

ISSUES_STREAM = Stream(
    name="krx.issues",
    title="Listed issues",
    tables=(ISSUES,),
    schedule=_morning(10),
    calendar="XKRX",
    host_group=HOST_GROUP,
    budget=_BUDGET,
    parser_version=trades.PARSER_VERSION,
    plan=services.planner(services.ISSUES),
    classify=classify,
    parse=trades.parse_issues,
    known_key=services.ISSUES.__contains__,
    keys_are=_keys_are(services.ISSUES, "markets"),
    first_session=date(2010, 1, 4),
    empty_can_be_right=False,
    least_share=_LEAST_SHARE,
    sla_eligible=False,
)

INDICES_STREAM = Stream(
    name="krx.indices",
    title="Daily indices",
    tables=(INDICES, BOND_INDICES),
    schedule=_morning(15),
    calendar="XKRX",
    host_group=HOST_GROUP,
    budget=_BUDGET,
    parser_version=indices.PARSER_VERSION,
    plan=services.planner(services.INDICES),
    classify=classify,
    parse=indices.parse,
    known_key=services.INDICES.__contains__,
    keys_are=_keys_are(services.INDICES, "families of indices"),
    first_session=date(2010, 1, 4),
    recheck=Recheck(sessions=2),
    empty_can_be_right=False,
    least_share=_LEAST_SHARE,
    job="indices",
)
