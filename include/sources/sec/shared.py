"""What all of the SEC's streams share: hosts, the one rate for everything, when a tick is, and on which days.

Promises: whatever asks an address of the SEC is in `HOST_GROUP`, as the SEC counts per client and not per address.
"""

from __future__ import annotations

from datetime import timedelta

from include.contract import HostGroup, Schedule

WWW, DATA = "https://www.sec.gov", "https://data.sec.gov"

NEW_YORK = "America/New_York"
# EDGAR is shut on federal holidays, and open on some days on which the exchanges are not.
CALENDAR = "US_FEDERAL"

# Ten requests a second are allowed and clients at 9.7 were blocked; at most eight are seen in any second, however
# unevenly they travel. Who goes on asking while stopped is stopped for longer: ten minutes at least. For a day in 2022
# every address was answered 404 to some clients; twenty things in a row that the SEC has listed itself are such a day.
HOST_GROUP = HostGroup(
    "sec",
    interval=timedelta(milliseconds=135),
    penalty=timedelta(minutes=11),
    busy_wait=timedelta(minutes=11),
    most_absent=20,
)

# Every quarter of an hour while filings are accepted. What fails is repaired by the next tick, not by a make-up window.
TICK = Schedule(
    cron="*/15 6-21 * * 1-5 | 0,10 22 * * 1-5",
    timezone=NEW_YORK,
    retry_first=timedelta(minutes=3),
    retry_every=timedelta(minutes=3),
    last_try=timedelta(minutes=12),
    allowance=timedelta(minutes=15),
    make_up=(),
)
