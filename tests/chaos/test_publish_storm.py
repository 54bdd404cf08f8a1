"""2,500 files under everything at once, by processes that are killed: ./run chaos -k storm"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from include.outputs.hub import Hub
from include.settings import ROOT
from tests.fixtures_sandbox import Start
from tests.outputs import market, storm
from tests.outputs.publishing import REPOSITORY, TOKEN, many, put, rows

FILES = 2_500
LIMITS = {
    "xet": {"requests": 60, "window": 5.0, "commits": 12, "hour": 10.0, "slack": 2.0},
    "lfs": {"requests": 400, "window": 5.0, "commits": 12, "hour": 10.0, "slack": 2.0},
}
KILLS = 12


def start(url: str, hub: Hub, root: Path, transfer: str, number: int) -> subprocess.Popen[bytes]:
    """Start a publisher as a process of its own."""
    arguments = [url, hub.endpoint, str(root), f"process {number}", json.dumps(LIMITS[transfer])]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.publish_worker", *arguments],
        cwd=ROOT,
        env={**os.environ, "HF_HUB_DISABLE_XET": "1" if transfer == "lfs" else "0"},
        stdout=subprocess.DEVNULL,
    )


@pytest.mark.chaos
@pytest.mark.parametrize("transfer", ["xet", "lfs"])
def test_2500_files_arrive_whole_and_once_whatever_dies(
    database: str, sandbox: Start, tmp_path: Path, transfer: str
) -> None:
    running = sandbox()
    hub, root, dice = Hub(running.hub_url, TOKEN, REPOSITORY), tmp_path / "out box", random.Random(7)
    many(database, root, FILES)
    limits: dict[str, Any] = LIMITS[transfer]
    storm.Limits(**limits).set(running)
    storm.rage(running, transfer, dice, over=12)
    publishers = [start(database, hub, root, transfer, number) for number in range(2)]
    killed, number, newer = 0, 2, False
    try:
        deadline = time.monotonic() + 800
        while any(each.poll() is None for each in publishers) and time.monotonic() < deadline:
            time.sleep(dice.uniform(0.5, 4))
            if killed < KILLS:
                victim = dice.choice([each for each in publishers if each.poll() is None] or publishers)
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                publishers = [each for each in publishers if each is not victim]
                publishers.append(start(database, hub, root, transfer, number))
                killed, number = killed + 1, number + 1
            if killed == KILLS // 2 and not newer:
                newer = True
                months = [f"{2010 + n // 12}-{n % 12 + 1:02}" for n in range(0, FILES, 50)]
                put(database, root, [row for name in months for row in market.month(name, symbols=2, days=[1, 2])])
    finally:
        for each in publishers:
            if each.poll() is None:
                each.kill()
            each.wait()
    last = start(database, hub, root, transfer, number)
    assert last.wait(600) == 0
    storm.judge(database, hub, root, running, compared=200)
    assert killed >= 6
    assert rows(database, "select count(*) as n from publish.files where state = 'published'")[0]["n"] >= FILES
