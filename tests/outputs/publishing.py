"""Publishing in tests: what waits, a run of the publisher, and what the Hub's stand-in then holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import psycopg

from include.outputs.hub import Hub
from include.outputs.outbox import build
from include.outputs.publisher import Pace, Published, publish
from tests.fixtures_sandbox import RunningSandbox
from tests.outputs import market

TOKEN = "hf_a-secret-of-the-hub"
REPOSITORY = "me/daybook-private"
MONTH = "2026-09"
PATH = "finra/short_volume/2026-09.parquet"
QUICK = Pace(waits=(0.01, 0.01, 0.01, 0.01))


def put(url: str, root: Path, rows: list[market.Row]) -> None:
    market.save(url, rows)
    build(url, market.RELEASE, market.TABLE, str(root), "a run")


def many(url: str, root: Path, count: int) -> None:
    """So many files that wait, one a month."""
    names = [f"{2010 + n // 12}-{n % 12 + 1:02}" for n in range(count)]
    put(url, root, [row for name in names for row in market.month(name, symbols=1, days=[1])])


def run(url: str, hub: Hub, root: Path, pace: Pace = QUICK, **more: Any) -> Published:
    return publish(url, hub, str(root), more.pop("owner", "a test"), pace=pace, **more)


def rows(url: str, statement: str) -> list[dict[str, Any]]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        return connection.execute(statement).fetchall()  # type: ignore[arg-type]


def commits(url: str) -> list[dict[str, Any]]:
    return rows(url, "select * from publish.commits order by commit_id")


def asked(running: RunningSandbox) -> Counter[str]:
    return Counter(one["kind"] for one in running.requests(host="huggingface.co"))


def on_the_hub(running: RunningSandbox) -> int:
    """Commits that hold files: the first one only makes the repository."""
    (repository,) = running.control("GET", "hub")["repositories"]
    return int(repository["commits"]) - 1
