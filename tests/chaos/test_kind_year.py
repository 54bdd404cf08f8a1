"""A year of mornings of KIND: arrivals, departures, returns, other names, and days on which no list comes.

Each morning at nine the universe is the one that a model beside the product tells from what the lists showed, and the
verdict is late exactly where no list came; a replay then makes the same tables.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from random import Random

import pytest

from include.contract import Mode
from include.engine import jobs, replay, windows
from tests.fixtures_sandbox import Start
from tests.sources.conftest import place  # noqa: F401
from tests.sources.kind_desk import STREAM, Desk, kst, play
from tests.sources.places import Place, copy_ledger

pytestmark = pytest.mark.chaos

FIRST, DAYS, SIZE = date(2026, 1, 5), 365, 300


def test_a_year_of_mornings(place: Callable[[], Place], sandbox: Start) -> None:  # noqa: F811
    made = place()
    made.at(kst(FIRST - timedelta(days=2)))
    windows.declare(made.url, (STREAM,))
    running = sandbox(clock=made.now, companies=SIZE)
    made.sandbox_url = running.url
    here, days = Desk(made, running), [FIRST + timedelta(days=n) for n in range(DAYS)]
    universes = play(here, days, Random(11), SIZE)
    for day in days[:: len(days) // 12]:
        assert universes[day] <= set(here.as_of(day)), day

    again = place()
    again.at(here.place.now())
    again.raw = here.place.raw
    copy_ledger(here.place.url, again.url)
    windows.declare(again.url, (STREAM,))
    request = jobs.JobRequest(Mode.REPLAY, (STREAM,), days[0], days[-1], reason="a test")
    jobs.start(again.url, request)
    jobs.plan(again.url, request, STREAM)
    while replay.work(again.worker(STREAM), STREAM, request.name) is not None:
        continue
    assert jobs.conclude(again.url, request.name)[0] in ("success", "partial")
    assert again.tables(STREAM, "sent_at", "fetch_id") == here.place.tables(STREAM, "sent_at", "fetch_id")
