"""What changed and nobody was told of: kept in rows until the word is out."""

from __future__ import annotations

from datetime import date

import pytest

from include.contract import Mode
from include.engine import changes
from include.engine.changes import Untold
from include.engine.db import connect
from tests.engine.desk import FRIDAY, MONDAY, SMALL, THURSDAY, TUESDAY, WEDNESDAY, Desk, ny


@pytest.fixture
def week(desk: Desk) -> Desk:
    """Friday night, with a file of two rows for each day of the week."""
    desk.stream = SMALL
    desk.at(ny(FRIDAY, 21))
    for day in (MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY):
        desk.cdn.publish(day, {"AAPL": (1, 0, 2), "MSFT": (day.day, 0, 30)}, facilities=("CNMS",))
    return desk


def untold(desk: Desk) -> Untold:
    return changes.untold(desk.url, SMALL.name)


def test_what_a_window_changed_is_untold_until_the_word_is_out(week: Desk) -> None:
    assert untold(week).changed == 0
    verdict = week.poll()
    found = untold(week)
    assert (found.changed, found.cycle_id, found.session_date) == (2, verdict.cycle_id, FRIDAY)
    assert (found.kst_day, found.run_id) == (date(2026, 9, 19), None)
    assert untold(week).changed == 2, "who was killed before Airflow took the event has told nobody"
    changes.confirm(week.url, found)
    assert untold(week).changed == 0


def test_what_all_chunks_of_a_run_changed_is_told_in_one_word(week: Desk) -> None:
    week.backfill(MONDAY, THURSDAY, run_id="r")
    found = untold(week)
    assert (found.changed, len(found.cycles), found.run_id, found.session_date) == (8, 4, "r", THURSDAY)
    changes.confirm(week.url, found)
    assert untold(week).changed == 0


def test_what_changes_after_it_was_looked_at_stays_untold(week: Desk) -> None:
    week.backfill(MONDAY, run_id="r")
    found = untold(week)
    week.cdn.publish(MONDAY, {"AAPL": (5, 0, 9), "MSFT": (14, 0, 30)}, facilities=("CNMS",))
    week.do(week.request(Mode.BACKFILL, MONDAY, run_id="r", force=True))
    changes.confirm(week.url, found)
    assert untold(week).changed == 1, "the same cycle again: only what came later"


def test_a_cycle_that_somebody_works_on_is_neither_told_of_nor_waited_for(week: Desk) -> None:
    week.backfill(MONDAY, run_id="r")
    found = untold(week)
    week.begin(week.request(Mode.BACKFILL, MONDAY, run_id="r", force=True))
    held = week.claimed(Mode.BACKFILL, "r")
    with connect(week.url) as busy, busy.transaction():
        held.guard(busy)
        changes.confirm(week.url, found)
    assert untold(week).changed == 0, "it is told when it is over"


def test_rows_written_into_copies_are_told_to_nobody(week: Desk) -> None:
    week.poll()
    changes.confirm(week.url, untold(week))
    week.replay(FRIDAY, reason="to compare", replay_into="versioned")
    assert untold(week).changed == 0
    week.sql("delete from market.finra_short_volume")
    week.replay(FRIDAY, reason="to write anew")
    assert untold(week).changed == 2
