"""FINRA's streams: when they may ask, for what, and how the answer is read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from include.contract import Ask, Budget, HostGroup, Recheck, Request, Schedule, Stream
from include.sources.finra import daily_file
from include.sources.finra.tables import SHORT_VOLUME

HOST_GROUP = HostGroup("finra", interval=timedelta(seconds=1))

# Facility files and the first day that each one has. CNMS is the sum of FNSQ, FNQC, FNYX and FNRA per symbol and
# never holds FORF. FNRA lacks days by nature, so its absence does not make a day incomplete.
FACILITIES = {
    "CNMS": date(2018, 8, 1),
    "FNSQ": date(2009, 8, 3),
    "FNQC": date(2018, 9, 10),
    "FNYX": date(2009, 8, 3),
    "FNRA": date(2009, 8, 3),
    "FORF": date(2009, 8, 3),
}
SOMETIMES_MISSING = frozenset({"FNRA"})


def file_request(facility: str, day: date, *, is_session: bool = True) -> Request:
    """Return the request for one facility's file of one day."""
    expected = is_session and day >= FACILITIES[facility]
    key = f"{facility}/{day.isoformat()}"
    return Request(
        key=key,
        unit=key,
        url=f"https://cdn.finra.org/equity/regsho/daily/{facility}shvol{day:%Y%m%d}.txt",
        session_date=day,
        expected=expected,
        required=expected and facility not in SOMETIMES_MISSING,
    )


def plan(ask: Ask) -> Iterator[Request]:
    """Plan one request per facility and day: the sessions, newest first, then the pending keys.

    Old gaps come last, so that they never keep the newest session from its share of the day's budget.


    `keys` limits the plan to facilities. A day that the calendar calls closed is asked for the consolidated
    file (the facilities' before there was one), once, in a backfill.
    """
    wanted = [name for name in FACILITIES if not ask.keys or name in ask.keys]
    planned = set()
    for day in ask.sessions:
        for facility in wanted:
            request = file_request(facility, day)
            if day >= FACILITIES[facility]:
                planned.add(request.key)
                yield request
    for key in ask.pending:
        facility, _, text = key.partition("/")
        if facility in wanted and key not in planned:
            yield file_request(facility, date.fromisoformat(text))

    for day in ask.closed:
        facility = "CNMS" if day >= FACILITIES["CNMS"] else "FNSQ"
        if facility in wanted:
            yield file_request(facility, day, is_session=False)


def known_key(key: str) -> bool:
    """Say whether an operator's key names a facility."""
    return key in FACILITIES


SHORT_VOLUME_STREAM = Stream(
    name="finra.short_volume",
    title="Daily short sale volume",
    tables=(SHORT_VOLUME,),
    schedule=Schedule(
        cron="35 18 * * 1-5",
        timezone="America/New_York",
        retry_first=timedelta(minutes=25),
        retry_every=timedelta(minutes=30),
        last_try=timedelta(hours=5, minutes=25),
        allowance=timedelta(hours=1),
    ),
    calendar="XNYS",
    host_group=HOST_GROUP,
    budget=Budget(
        day_items=400_000,
        slice_items=100_000,
        slice_seconds=180,
        reason="a day is six files with up to 45,000 rows in all; ten days of them in a catch-up",
    ),
    parser_version=daily_file.PARSER_VERSION,
    plan=plan,
    classify=daily_file.classify,
    parse=daily_file.parse,
    known_key=known_key,
    keys_are="facilities: " + ", ".join(FACILITIES),
    first_session=date(2009, 8, 3),
    recheck=Recheck(sessions=5),
)
