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


def polled(stack: RealStack, instant: datetime) -> dict[str, set[str]]:
    """Poll at an instant, all at once, through Airflow; how the windows of these streams ended since."""
    put_clock(stack, instant)
    stack.trigger("sec")
    others = [(dag, stack.trigger(dag)) for dag in ("finra", "fred")]
    for dag, run_id in others:
        stack.finished(dag, run_id)
    # What reads filings may wait for longer than this, where the SEC has stopped us.
    stack.eventually(lambda: "sec" in over(stack, instant), "the SEC's window to end")
    return over(stack, instant)


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
    ended = polled(stack, datetime(2026, 9, first, 18, 40, tzinfo=NEW_YORK))
    assert ended == {"sec": {"FAILED"}, "finra": {"SUCCESS"}, "fred": {"SUCCESS"}}
    # An hour later still; of the others nothing is due any more, and nothing was done to what is done.
    ended = polled(stack, datetime(2026, 9, first, 19, 40, tzinfo=NEW_YORK))
    assert ended["sec"] == {"FAILED"}
    assert "FAILED" not in ended.get("finra", set()) | ended.get("fred", set())

    in_trouble(stack, OTHERS, TROUBLES[trouble])
    ended = polled(stack, datetime(2026, 9, second, 18, 40, tzinfo=NEW_YORK))
    assert ended["sec"] == {"SUCCESS"}
    assert "SUCCESS" not in ended["finra"] | ended["fred"]
    httpx.delete(f"{stack.sandbox}/_sandbox/faults").raise_for_status()
