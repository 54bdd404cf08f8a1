"""Measures what readers of disclosures wait for, and what the poll loop costs: the feed, an analysis with and without
memory, a round over 200 jobs in flight.

    ./run bench -k disclosures
    python tests/benchmarks/disclosures.py [--rows 5000000] [--seconds 5]

Promises: the app is the one that the plugin mounts, behind a real server on loopback, as in `api`; filings and
analyses are made by the database, one analysis for each filing. With and without memory are asked in turn. The poll
loop goes through the model's own client to the stand-in, which is a process of its own, so that only the loop's work
is in its figure.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import httpx

from include.analysis import prompts
from include.analysis.model import Backend, Submitter
from include.analysis.polling import Poller
from include.engine.db import connect
from include.ops.api.front import Lru
from include.ops.api.shapes import cursor_for, question
from include.settings import ROOT
from tests.benchmarks.api import ask, rate, serving, signed
from tests.benchmarks.measuring import Judged, judge, summary, warehouse

IN_FLIGHT, ROUNDS = 200, 8
# A page deep in the feed may take so much longer than its first.
FLAT = 1.5

_FILINGS = """
insert into dartbrief.disclosures (
    rcept_no, corp_code, corp_name, corp_type, report_name, submitter, rcept_dt, remark, base_title, is_correction,
    unit, fetch_id, sent_at, parser_version, cycle_id, attempt, created_at)
select to_char(made.day, 'YYYYMMDD') || lpad((n %% 1500)::text, 6, '0'),
       lpad((100000 + mod(n * 7, 2700))::text, 8, '0'), '가온전자', 'K', '단일판매ㆍ공급계약체결', '가온전자',
       made.day, '', '단일판매ㆍ공급계약체결', false, 'u', 1, made.at, 1, 1, 1, made.at
  from (select n, day, day + time '08:00' + n %% 1500 * interval '25 seconds' as at
          from (select n, date '2012-01-02' + (n / 1500)::int as day
                  from generate_series(0::bigint, %(rows)s - 1) n) days) made
"""
_ANALYSES = """
insert into dartbrief.analysis_cache (
    rcept_no, summary, key_points_json, sentiment, model, status, doc_length, asked_with, prompt_version,
    completed_at, created_at, updated_at)
select rcept_no, '가온전자가 공급계약을 체결했습니다.', '상대방은 나래화학입니다.|||금액은 1,234억원입니다.',
       'positive', 'm', 'COMPLETED', 5000, 'contract/1', 'contract/1', created_at, created_at, created_at
  from dartbrief.disclosures
"""
_PLACES = """
select rcept_dt, created_at, rcept_no from dartbrief.disclosures
 order by rcept_dt desc, created_at desc, rcept_no desc offset %s limit 1
"""


def fill(url: str, rows: int) -> None:
    """Make the filings and their analyses."""
    with closing(connect(url, autocommit=True, statement_timeout=3_600)) as connection:
        connection.execute("update dartbrief.analysis_control set newest_days = 0")
        connection.execute("alter table dartbrief.disclosures disable trigger user")
        connection.execute(_FILINGS, {"rows": rows})
        connection.execute("alter table dartbrief.disclosures enable trigger user")
        connection.execute(_ANALYSES)
        connection.execute("vacuum (analyze) dartbrief.disclosures")
        connection.execute("vacuum (analyze) dartbrief.analysis_cache")


def feed(url: str, client: httpx.Client, rows: int, seconds: float) -> list[str]:
    """How fast the feed's first page is, and whether one far down is as fast."""
    key = question(corp=None, first="0001-01-01", last="9999-12-31")
    with closing(connect(url, autocommit=True, statement_timeout=600)) as connection:
        deep = connection.execute(_PLACES, (rows * 9 // 10,)).fetchone()
    assert deep is not None
    cursor = cursor_for(key, deep["rcept_dt"], deep["created_at"], deep["rcept_no"])
    pages = {
        "first page": partial(ask, client, "/disclosures/recent", limit=20),
        "page at nine tenths": partial(ask, client, "/disclosures/recent", limit=20, cursor=cursor),
        "a company's first page": partial(ask, client, "/disclosures", limit=20, corpCode="00100007"),
    }
    taken = _in_turn(pages, seconds)
    lines = [f"feed of {rows:,}, {name:24}{_figures(each)}" for name, each in taken.items()]
    ratios = tuple(b / a for a, b in zip(taken["first page"], taken["page at nine tenths"], strict=True))
    return [*lines, judge(Judged("feed: page at nine tenths / first page", ratios, floor=FLAT, less=True))]


def _in_turn(kinds: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, list[float]]:
    """How long each kind took, in milliseconds: in turn, so that a busy machine slows all alike; the first warms."""
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    until = time.perf_counter() + seconds * len(kinds)
    while time.perf_counter() < until or len(taken[next(iter(kinds))]) < 6:
        for name, one in kinds.items():
            began = time.perf_counter()
            one()
            taken[name].append((time.perf_counter() - began) * 1_000)
    return {name: each[1:] for name, each in taken.items()}


def analyses(url: str, client: httpx.Client, app_state: Any, seconds: float) -> list[str]:
    """How fast an analysis that is open is answered, with and without memory."""
    with closing(connect(url, autocommit=True)) as connection:
        (row,) = connection.execute(
            "select rcept_no from dartbrief.disclosures order by rcept_dt desc, rcept_no limit 1"
        ).fetchall()
        connection.execute(
            "insert into dartbrief.reveals values ('viewer', (collect.clock() at time zone 'Asia/Seoul')::date, %s,"
            " false, collect.clock())",
            (row["rcept_no"],),
        )
    one = partial(ask, client, f"/ai/analyze/{row['rcept_no']}")
    kept = {"without memory": (Lru[Any](0), Lru[Any](0)), "with memory": (app_state.analyses, app_state.revealed)}

    def remembering(name: str) -> None:
        app_state.analyses, app_state.revealed = kept[name]

    def asked(name: str) -> None:
        remembering(name)
        one()

    lines, taken = [], _in_turn({name: partial(asked, name) for name in kept}, seconds)
    for name in kept:
        remembering(name)
        lines.append(f"analysis {name:16}{_figures(taken[name])}   {rate(one, seconds):8.1f} requests/s")
    ratios = tuple(a / b for a, b in zip(taken["without memory"], taken["with memory"], strict=True))
    return [*lines, judge(Judged("analysis: time without memory / with", ratios))]


def _figures(taken: list[float]) -> str:
    p99 = statistics.quantiles(taken, n=100, method="inclusive")[98]
    return f"p50 {statistics.median(taken):8.2f} ms   p99 {p99:8.2f} ms   n={len(taken)}"


@contextmanager
def stand_in() -> Iterator[str]:
    """The model in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "include.sandbox"], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().partition("url=")[2].split()[0]
        order = {"upstream": "llm", "switch": "seconds", "value": 1e6}
        assert httpx.post(f"{url}/_sandbox/switches", json=order).is_success
        yield url
    finally:
        process.terminate()
        process.wait(20)


def loop(url: str) -> list[str]:
    """What a round over 200 jobs in flight costs this process, in processor time, as a share of the three seconds."""
    with stand_in() as sandbox:
        backend = Backend(f"{sandbox}/llm.sandbox.invalid/v1", "m")
        submitter, prompt = Submitter(backend), prompts.build("제목", "회사", "본문")
        with closing(connect(url, autocommit=True)) as connection:
            for n in range(IN_FLIGHT):
                number = f"2026091680{n:04}"
                name = submitter.submit(f"resp_{number}_1", prompt, 30)
                connection.execute(
                    "insert into dartbrief.analysis_cache (rcept_no, status, claim_token, llm_response_id,"
                    " submitted_at, created_at, updated_at) values (%s, 'PROCESSING', gen_random_uuid(), %s,"
                    " collect.clock(), collect.clock(), collect.clock())",
                    (number, name),
                )
        submitter.close()
        spent = asyncio.run(_rounds(url, backend))
        share = statistics.median(spent) / 3.0
        words = f"poll loop, {IN_FLIGHT} in flight: {statistics.median(spent) * 1_000:.0f} ms of processor a round"
        return [f"{words}, {share:.1%} of a core at 3 s   n={len(spent)}"]


async def _rounds(url: str, backend: Backend) -> list[float]:
    poller, spent = Poller(url, backend), list[float]()
    try:
        for _ in range(ROUNDS + 1):
            began = time.process_time()
            done = await poller.round()
            assert done.outcomes == {"waiting": IN_FLIGHT}, done
            spent.append(time.process_time() - began)
    finally:
        await poller.close()
    return spent[1:]


def measure(url: str, token: str, rows: int, seconds: float) -> list[str]:
    """Fill, ask and tell."""
    from include.settings import Serving

    fill(url, rows)
    with serving(url, token, Serving(per_minute=10_000_000)) as (client, app):
        lines = [*feed(url, client, rows, seconds), *analyses(url, client, app.state, seconds)]
    return [*lines, *loop(url)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What readers of disclosures wait for.")
    parser.add_argument("--rows", type=int, default=5_000_000, help="filings")
    parser.add_argument("--seconds", type=float, default=5, help="how long each kind of request is sent")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="daybook-bench-") as home:
        os.environ.update(
            AIRFLOW_HOME=home, AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{home}/airflow.db",
            AIRFLOW__CORE__LOAD_EXAMPLES="False",
        )  # fmt: skip
        with warehouse() as (_, url):
            print("\n".join(measure(url, signed(), options.rows, options.seconds)), flush=True)
    print("\n".join(["", *summary()]))


if __name__ == "__main__":
    main()
