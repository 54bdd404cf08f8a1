"""A year of mornings of KRX: holidays, closures nobody knew, late and partial days, refusals, codes that come and go.

Every morning the sessions that are held at nine are those that KRX had published by then and gave us, the verdict is
about this morning's window, and at the end a backfill and a replay come to the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from random import Random

import pytest

from include.contract import Mode
from include.engine import windows
from include.sandbox.exchange import World
from include.sandbox.krx import Krx
from include.sources.krx.streams import INDICES_STREAM, PRICES_STREAM
from tests.fixtures_sandbox import Start
from tests.sources.conftest import place  # noqa: F401
from tests.sources.krx_desk import Desk, kst, quick, sessions, weekdays
from tests.sources.places import Place, copy_ledger

pytestmark = pytest.mark.chaos

FIRST, LAST = date(2026, 1, 5), date(2026, 12, 30)
COMPANIES = 40
ELECTION = date(2026, 6, 3)
# Closed at short notice: on the first nobody told us, of the second we were told the evening before.
UNTOLD, TOLD = date(2026, 8, 18), date(2026, 10, 20)
LATE, VERY_LATE = date(2026, 3, 10), date(2026, 4, 14)
REFUSED = {
    "sto/stk_bydd_trd": (date(2026, 2, 3), date(2026, 2, 9)),
    "idx/bon_dd_trd": (date(2026, 11, 3), date(2026, 11, 5)),
}


def test_a_year_of_mornings(place: Callable[[], Place], sandbox: Start, tmp_path: Path) -> None:  # noqa: F811
    made = place()
    made.at(kst(FIRST))
    running = sandbox(clock=made.now, companies=COMPANIES)
    made.sandbox_url = running.url
    here = Desk(made, running, Krx(World(tmp_path, companies=COMPANIES)), quick(PRICES_STREAM, INDICES_STREAM))
    _year(here)
    begun, late = sessions(FIRST - timedelta(days=10), FIRST - timedelta(days=1))[-1], dict[date, set[str]]()
    for day in weekdays(FIRST, LAST):
        for service, (since, until) in REFUSED.items():
            if day == since:
                here.switch("refuse", service=service)
                here.refused.add(service)
            if day == until:
                here.switch("refuse", service=service, **{"is": False})
                here.refused.discard(service)
        if day == TOLD:
            here.decide(TOLD)
        items = here.morning(day)
        published = here.published(kst(day, 8, 50), begun)
        assert published <= here.held_at_nine, (day, sorted(published - here.held_at_nine))
        assert here.held_at_nine <= here.had(day, begun), (day, sorted(here.held_at_nine - here.had(day, begun)))
        assert {item.run_date for item in items.values()} == {day}
        late[day] = {name for name, item in items.items() if item.cycle_status != "SUCCESS"}
        # What was proposed is true, or came after all; the operator decides a week later.
        for proposed, state in here.exceptions().items():
            if state == "proposed" and proposed < day - timedelta(days=7):
                here.decide(proposed, "closed" if proposed in (ELECTION, UNTOLD) else "rejected")
    truly = {day for day in (ELECTION, UNTOLD, TOLD) if FIRST <= day < LAST}
    assert {day for day, state in here.exceptions().items() if state == "closed"} == truly
    assert not {key for key in here.pending() if date.fromisoformat(key[-10:]) not in truly}

    days = [day for day, names in late.items() if names]
    expected = {
        ELECTION, ELECTION + timedelta(days=1), UNTOLD, UNTOLD + timedelta(days=1), VERY_LATE + timedelta(days=1),
        *(day for since, until in REFUSED.values() for day in weekdays(since, until - timedelta(days=1))),
    }  # fmt: skip
    assert set(days) == {day for day in expected if FIRST <= day <= LAST}

    there, again = (Desk(other, running, here.beside, here.streams) for other in (place(), place()))
    for desk in (there, again):
        desk.place.sandbox_url = running.url
        desk.place.at(here.place.now())
        for day in truly:
            desk.decide(day)
    newest = max(day for *_, day in here.held())
    there.backfill(begun, newest)
    again.place.raw = here.place.raw
    copy_ledger(here.place.url, again.place.url)
    asked = here.asked()
    for stream in here.streams:
        by_poll = here.place.tables(stream)
        current = {name: rows for name, rows in by_poll.items() if not name.endswith("_history")}
        by_backfill = there.place.tables(stream)
        assert {name: by_backfill[name] for name in current} == current
        windows.declare(again.place.url, (stream,))
        again.place.do(stream, Mode.REPLAY, begun, newest)
        told = ("sent_at", "fetch_id")
        assert again.place.tables(stream, *told) == here.place.tables(stream, *told)
        again.place.sql("truncate collect.cycles, collect.job_runs cascade")
    assert here.asked() == asked
    used = here.place.sql("select max(used) as most, sum(used) as all from collect.key_usage")
    print(f"calls: {used[0]['all']} in all, {used[0]['most']} on the day with most")


def _year(here: Desk) -> None:
    """Tell the stand-in what happens in the year."""
    for day in (ELECTION, UNTOLD, TOLD):
        here.switch("close", day=str(day))
    here.switch("delay", day=str(LATE), until=f"{LATE + timedelta(days=1)}T08:41:00+09:00")
    here.switch("delay", day=str(VERY_LATE), until=f"{VERY_LATE + timedelta(days=6)}T07:00:00+09:00")
    here.switch("partial", day="2026-05-12", service="sto/ksq_bydd_trd", percent=60, until="2026-05-13T10:00:00+09:00")
    here.switch("revise", day="2026-07-07", service="sto/stk_bydd_trd", at="2026-07-08T12:00:00+09:00", by=11)
    here.switch("halt", code="005930", first="2026-04-29", last="2026-05-06")
    here.switch("split", code="005930", day="2026-05-07", ratio=50)
    here.switch("move", code="112190", day="2026-06-05", market="KOSDAQ")
    here.switch("end", code="0099X0", last="2026-07-14")
    here.switch("rename", code="000020", day="2026-03-27", to="새이름")
    chance = Random(7)
    for number in range(6):
        day = FIRST + timedelta(days=chance.randrange(20, 340))
        here.switch("list", code=f"0{number}23A0", day=str(day), market=chance.choice(("KOSPI", "KOSDAQ", "KONEX")))
