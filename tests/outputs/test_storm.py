"""Everything goes wrong at once, in small; the large one is `./run chaos -k storm`."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from include.outputs import publisher
from include.outputs.hub import Hub
from tests.fixtures_sandbox import RunningSandbox
from tests.outputs import market, storm
from tests.outputs.publishing import many, put

LIMITS = storm.Limits(requests=60, window=3.0, commits=12, hour=4.0)


def test_rivals_kills_faults_and_limits_at_once_leave_the_hub_as_promised(
    transfer: str, database: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "FILES_PER_COMMIT", 4)
    dice = random.Random(2026)
    many(database, root, 32)
    LIMITS.set(running)
    storm.rage(running, transfer, dice, over=7)
    workers = [storm.Worker(database, hub, root, f"worker {n}", LIMITS.pace, time.monotonic() + 240) for n in range(2)]
    with storm.deadly(6, dice) as died:
        threads = [threading.Thread(target=worker.work) for worker in workers]
        for thread in threads:
            thread.start()
        put(database, root, [row for n in range(1, 7) for row in market.month(f"2012-{n:02}", symbols=2, days=[1, 2])])
        for thread in threads:
            thread.join(260)
    # What came after the last worker had looked is sent by the next run.
    last = storm.Worker(database, hub, root, "last", LIMITS.pace, time.monotonic() + 60)
    last.work()
    storm.judge(database, hub, root, running, compared=10)
    assert len(died) >= 3
