"""The SEC in trouble for an hour, and everybody else: on the real stack neither touches the other's cycles."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from tests.e2e.conftest import RealStack

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.chaos]

NEW_YORK = ZoneInfo("America/New_York")
# A stack that has just come up has every source's windows to work, and a busy machine.
WAIT_SECONDS = 900
SEC, OTHERS = ("www.sec.gov", "data.sec.gov"), ("cdn.finra.org", "api.stlouisfed.org")
TROUBLES = {"dead": {"reset": True}, "blocked": {"html_block_page": True}, "garbage": {"status": 200, "body": "?!"}}
# Two evenings for each trouble: the SEC's, and the others'.
EVENINGS = {"dead": (16, 17), "blocked": (18, 21), "garbage": (22, 23)}


def put_clock(stack: RealStack, instant: datetime) -> None:
    """Put the simulated clock to an instant."""
    stack.execute("update collect.installation set clock_offset = %s::timestamptz - clock_timestamp()", instant)


def in_trouble(stack: RealStack, hosts: tuple[str, ...], how: dict[str, Any]) -> None:
    """From now on these hosts answer so, and the others as they should."""
    httpx.delete(f"{stack.sandbox}/_sandbox/faults").raise_for_status()
    for host in hosts:
        rule = {"match": {"host": host}, "n": None, **how}
        httpx.post(f"{stack.sandbox}/_sandbox/faults", json=rule).raise_for_status()


def polled(stack: RealStack, instant: datetime, *wanted: str) -> dict[str, set[str]]:
    """Poll at an instant through Airflow, until windows of these sources are over; how all ended since."""
    put_clock(stack, instant)
    for dag in ("sec", "finra", "fred"):
        stack.trigger(dag)
    # What reads filings may wait for longer than this, where the SEC has stopped us.
    stack.eventually(lambda: set(over(stack, instant)) >= set(wanted), f"{', '.join(wanted)} to end", WAIT_SECONDS)
    return over(stack, instant)


def failed(stack: RealStack, since: datetime) -> set[str]:
    """The sources of which any window failed since an instant; what only the leap of the clock ended does not count."""
    rows = stack.rows(
        "select distinct split_part(stream, '.', 1) as source from collect.cycles"
        " where mode = 'poll' and run_id is null and started_at >= %s and cycle_status = 'FAILED'"
        " and failure_reason is distinct from 'lease expired'",
        since,
    )
    return {row["source"] for row in rows}


def over(stack: RealStack, since: datetime) -> dict[str, set[str]]:
    """How the windows that were worked since an instant and are over ended, by source."""
    rows = stack.rows(
        "select split_part(stream, '.', 1) as source, cycle_status from collect.cycles"
        " where mode = 'poll' and run_id is null and started_at >= %s and finished_at is not null"
        " and stream in ('sec.submissions', 'finra.short_volume', 'fred.observations')",
        since,
    )
    ended: dict[str, set[str]] = {}
    for row in rows:
        ended.setdefault(row["source"], set()).add(row["cycle_status"])
    return ended


@pytest.mark.parametrize("trouble", TROUBLES)
def test_an_hour_of_the_secs_trouble_touches_no_other_source_and_the_reverse(stack: RealStack, trouble: str) -> None:
    first, second = EVENINGS[trouble]
    in_trouble(stack, SEC, TROUBLES[trouble])
    begun = datetime(2026, 9, first, 18, 40, tzinfo=NEW_YORK)
    ended = polled(stack, begun, "sec", "finra", "fred")
    assert ended == {"sec": {"FAILED"}, "finra": {"SUCCESS"}, "fred": {"SUCCESS"}}
    # An hour later still; of the others nothing is due any more, and nothing was done to what is done.
    ended = polled(stack, datetime(2026, 9, first, 19, 40, tzinfo=NEW_YORK), "sec")
    assert ended["sec"] == {"FAILED"}
    # EDGAR's files come from the same hosts.
    assert failed(stack, begun) <= {"sec", "edgar"}

    in_trouble(stack, OTHERS, TROUBLES[trouble])
    begun = datetime(2026, 9, second, 18, 40, tzinfo=NEW_YORK)
    ended = polled(stack, begun, "sec", "finra", "fred")
    assert ended["sec"] == {"SUCCESS"}
    assert "SUCCESS" not in ended["finra"] | ended["fred"]
    assert failed(stack, begun) <= {"finra", "fred"}
    httpx.delete(f"{stack.sandbox}/_sandbox/faults").raise_for_status()
