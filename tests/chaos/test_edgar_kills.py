"""EDGAR's bulk file day by day, by workers that are killed at any moment: each company's file is what the day's is.

`CHAOS_SECONDS` says how long; the seed is printed and can be given as `CHAOS_SEED`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta
from random import Random

import pytest

from include.engine import drafts
from include.settings import ROOT
from include.sources.edgar import finance_file
from tests.sources.conftest import place  # noqa: F401
from tests.sources.test_edgar_collecting import Desk, desk  # noqa: F401

pytestmark = pytest.mark.chaos

SECONDS = float(os.environ.get("CHAOS_SECONDS", "120"))
SEED = int(os.environ.get("CHAOS_SEED", str(time.time_ns() % 1_000_000)))
COMPANIES_A_PART = 4
OPEN = "select 1 from collect.cycles where cycle_status in ('NOT_STARTED', 'PENDING', 'RUNNING')"


def worked(desk: Desk, seconds: float | None) -> bool:  # noqa: F811
    """Let a process work; kill it after so many seconds. Returns whether it ended by itself."""
    command = [sys.executable, "-m", "tests.chaos.edgar_worker", desk.place.url, str(desk.place.raw.root)]
    process = subprocess.Popen([*command, desk.running.url, str(COMPANIES_A_PART)], cwd=ROOT)
    try:
        assert process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


def test_workers_that_are_killed_at_any_moment_leave_what_an_undisturbed_one_would(desk: Desk) -> None:  # noqa: F811
    dice, end, day, kills, looked = Random(SEED), time.monotonic() + SECONDS, 0, 0, 0
    desk.switch("days", changed=0.3, new=0.05, gone=0.05)
    before, gone = set[str](), set[str]()
    while day < 6 or time.monotonic() < end or looked < 2:
        desk.at(day)
        now = {finance_file.path_of(f"{name[3:13]}/facts") for name in desk.members()}
        # A process needs about a second to begin. The window of one that is killed is over with its lease, and the next
        # day's goes on with the parts that it left.
        if day % 3 < 2 and not worked(desk, dice.uniform(0.8, 4.0)):
            kills += 1
        elif day % 3 == 2:
            assert worked(desk, None)
            assert desk.place.sql(OPEN) == []
            gone = (gone | before) - now
            made = desk.made()
            assert {path: each for path, each in made.items() if path not in gone} == desk.wanted(), f"day {day}"
            assert {made[path][1] for path in gone & made.keys()} <= {0}
            looked += 1
        before, day = before | now, day + 1
    print(f"\nseed {SEED}: {day} days, {kills} workers killed, {len(gone)} companies vanished")
    assert kills
    twice = "select unit from collect.fetches where unit like '%%/facts' group by unit, sha256 having count(*) > 1"
    assert desk.place.sql(twice) == []
    failed = desk.place.sql("select distinct failure_reason from collect.cycles where cycle_status = 'FAILED'")
    assert {row["failure_reason"] for row in failed} <= {"lease expired"}
    left = drafts.sweep(drafts.Roots(str(desk.place.raw.root), str(desk.files), "", ""), lambda: (), timedelta())
    assert left.trouble == ""
    assert not list((desk.files / drafts.MAKING).glob("*"))
