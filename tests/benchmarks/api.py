"""Measures the Operations API on a year of thirty streams: how fast it answers, and whether the last page is as fast.

    ./run bench -k api
    python tests/benchmarks/api.py [--days 365] [--seconds 5]

Promises: the app is the one that the plugin mounts, behind a real server on loopback, asked with a token that Airflow
signed and looks up like any other. Six streams poll every five minutes, four every quarter of an hour, twenty once a
day; the rows are made by the database. Pages are asked for at the list's beginning, in its middle and at its end, the
very last page among them. The client shares the process with the server, so that its own time is in every figure.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import httpx
from fastapi import FastAPI

from include.engine.db import connect
from include.ops.api.shapes import cursor_for, question
from include.settings import Serving
from tests.benchmarks.measuring import Judged, judge, summary, warehouse

OFTEN, SOMETIMES, DAILY = 6, 4, 20
CLIENTS = 4
ROUNDS = 20
LIMIT = 100
# A page at the end of the list may take so much longer than one at its beginning.
FLAT = 1.5

_STREAMS = """
insert into collect.streams (stream, source, title, host_group, calendar, job, sla_eligible, parser_version,
                             activated_at, updated_at)
select format('bench%%s.stream', n), 'bench' || n, 'Stream ' || n, 'bench' || n, 'DAILY', 'bench' || n, true, 1,
       collect.clock() - interval '2 years', collect.clock()
  from generate_series(1, %(all)s::int) n
"""
_HOSTS = """
insert into collect.host_groups (host_group, interval, penalty, next_allowed_at, updated_at)
select 'bench' || n, interval '100 ms', interval '1 hour', collect.clock(), collect.clock()
  from generate_series(1, %(all)s::int) n
"""
_CYCLES = """
insert into collect.cycles (stream, mode, slot, run_date, window_start, due_at, session_date, cycle_status,
                            is_complete, attempt, outcome, budget_exhausted_reason, failure_reason, failure_kind,
                            fetched_count, abnormal, worked_by, started_at, finished_at, created_at, updated_at)
select w.stream, 'poll', to_char(w.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), w.day, w.at,
       w.at + interval '1 hour', w.day - 1, w.state, w.state = 'SUCCESS', 1,
       case w.state when 'FAILED' then 'failed_retriable' else 'success' end,
       case w.state when 'BUDGET_EXHAUSTED' then 'ITEM_LIMIT' end,
       case w.state when 'FAILED' then 'the list failed' end, case w.state when 'FAILED' then 'retriable' end,
       100, w.state = 'FAILED', 'bench.poll of scheduled__x on host/1/ab', w.at, w.over, w.at, w.over
  from (select format('bench%%s.stream', n) as stream, s.at, (s.at at time zone 'Asia/Seoul')::date as day,
               s.at + interval '1 minute' as over,
               (array['SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED'])[
                   case when random() < 0.97 then 1 when random() < 0.7 then 2 else 3 end] as state
          from generate_series(1, %(all)s::int) n,
               generate_series(date_trunc('day', collect.clock()) - %(days)s::int * interval '1 day',
                               collect.clock() - interval '2 minutes', interval '5 minutes') as s (at)
         where n <= %(often)s
            or (n <= %(often)s + %(sometimes)s and extract(minute from s.at)::int %% 15 = 0)
            or (extract(hour from s.at) = n %% 24 and extract(minute from s.at) = 0)
         order by s.at) w
"""
_FETCHES = """
insert into collect.fetches (stream, cycle_id, attempt, request_key, unit, session_date, sent_at, received_at,
                             answer_class, http_status)
select c.stream, c.cycle_id, 1, c.slot || '/' || k, c.slot, c.session_date, c.window_start + k * interval '1 second',
       c.window_start + k * interval '1 second', 'absent', 404
  from (select * from collect.cycles where window_start > collect.clock() - interval '60 days' order by cycle_id) c,
       generate_series(1, 3) k
"""
_REST = """
insert into collect.pending (stream, key, why, next_try_at, created_at, updated_at)
select format('bench%%s.stream', 1 + n %% %(all)s), n::text, 'failed', collect.clock(), collect.clock(), collect.clock()
  from generate_series(1, 5000) n
"""


def fill(url: str, days: int) -> int:
    """Make the rows of so many days; how many windows there are."""
    values = {"days": days, "all": OFTEN + SOMETIMES + DAILY, "often": OFTEN, "sometimes": SOMETIMES}
    with closing(connect(url, autocommit=True, statement_timeout=600)) as connection:
        for statement in (_STREAMS, _HOSTS, _CYCLES, _FETCHES, _REST):
            connection.execute(statement, values)  # type: ignore[arg-type]
        connection.execute("vacuum (analyze)")
        row = connection.execute("select count(*) as n from collect.cycles").fetchone()
    assert row is not None
    return int(row["n"])


@contextmanager
def serving(url: str, token: str, wishes: Serving | None = None) -> Iterator[tuple[httpx.Client, FastAPI]]:
    """The app behind a real server; yields a client that is logged in, and the app."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from include.ops.api.app import create_app

    app = create_app(lambda: url, list, wishes)
    config = uvicorn.Config(Starlette(routes=[Mount("/daybook", app)]), port=0, log_level="error", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            thread.join(0.05)
        port = server.servers[0].sockets[0].getsockname()[1]
        headers = {"authorization": f"Bearer {token}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/daybook/v1", headers=headers, timeout=60) as client:
            yield client, app
    finally:
        server.should_exit = True
        thread.join(20)
        app.state.warehouse.close()


def ask(client: httpx.Client, path: str, **params: Any) -> Any:
    """One answer, which must be good."""
    answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text[:500]
    return answer.json()


def timed(one: Callable[[], object], seconds: float, most: int = 1_000) -> list[float]:
    """How long each of some calls in a row took, in milliseconds."""
    one()
    taken: list[float] = []
    until = time.perf_counter() + seconds
    while len(taken) < most and (time.perf_counter() < until or len(taken) < 5):
        taken.append(_once(one))
    return taken


def rate(one: Callable[[], object], seconds: float) -> float:
    """How many calls a second some clients at once get answered."""
    done, until = [0] * CLIENTS, time.perf_counter() + seconds

    def work(number: int) -> None:
        while time.perf_counter() < until:
            one()
            done[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - began)


def answers(client: httpx.Client, seconds: float) -> list[str]:
    """How fast the summary and the first page of cycles are."""
    lines = []
    for name, one in (
        ("summary", lambda: ask(client, "/summary")),
        ("cycles, first page", lambda: ask(client, "/cycles", limit=LIMIT)),
        ("cycles of a stream", lambda: ask(client, "/cycles", limit=LIMIT, stream="bench25.stream")),
        ("runs, first page", lambda: ask(client, "/runs", limit=LIMIT)),
    ):
        taken = timed(one, seconds)
        p99 = statistics.quantiles(taken, n=100, method="inclusive")[98]
        per_second = rate(one, seconds)
        lines.append(
            f"{name:24} p50 {statistics.median(taken):8.1f} ms   p99 {p99:8.1f} ms   "
            f"{per_second:8.1f} requests/s ({CLIENTS} at once)   n={len(taken)}"
        )
    return lines


_PLACES = """
with found as (
    select cycle_id, run_date, row_number() over (order by cycle_id desc) as n, count(*) over () as number
      from collect.cycles
     where (%(stream)s::text is null or stream = %(stream)s) and (%(status)s::text is null or cycle_status = %(status)s)
)
select cycle_id, run_date from found
 where n in (1, greatest(number / 2, 2), greatest(number - %(limit)s, 3)) order by n
"""


def flatness(url: str, client: httpx.Client, days: int) -> list[str]:
    """Whether the very last page of a list, a full one, takes as long as the one after its first row."""
    everything = {"stream": None, "mode": None, "status": None, "run_id": None, "first": None, "last": None}
    since, lines = date.today() - timedelta(days=2 * days), []  # noqa: DTZ011 (any date before the first)
    for name, asked, sent in (
        ("cycles", {}, {}),
        ("cycles of a busy stream", {"stream": "bench1.stream"}, {"stream": "bench1.stream"}),
        ("cycles of a daily stream", {"stream": "bench25.stream"}, {"stream": "bench25.stream"}),
        ("cycles that failed", {"status": "FAILED"}, {"status": "FAILED"}),
        ("cycles by date", {"first": since}, {"runDateFrom": since.isoformat()}),
    ):
        with closing(connect(url, autocommit=True)) as connection:
            filters = {"stream": None, "status": None, **sent, "limit": LIMIT}
            places = connection.execute(_PLACES, filters).fetchall()
        key = question(list="cycles", **{**everything, **asked})
        pages = []
        for place in places:
            cursor = cursor_for(key, *([place["run_date"]] if "first" in asked else []), place["cycle_id"])
            pages.append(partial(ask, client, "/cycles", limit=LIMIT, cursor=cursor, **sent))
        # In turn, so that a busy machine slows all alike; the first round warms the caches.
        rounds = [[_once(page) for page in pages] for _ in range(ROUNDS + 1)][1:]
        assert [page()["nextCursor"] is None for page in pages][-1]
        shown = zip(("first", "middle", "last"), zip(*rounds, strict=True), strict=True)
        lines.append(f"{name:26}" + "   ".join(f"{where} {statistics.median(took):7.1f} ms" for where, took in shown))
        values = tuple(last / first for first, _, last in rounds)
        lines.append(judge(Judged(f"API, {name}: last page / first page", values, floor=FLAT, less=True)))
    return lines


def _once(one: Callable[[], object]) -> float:
    began = time.perf_counter()
    one()
    return (time.perf_counter() - began) * 1_000


def measure(url: str, token: str, days: int, seconds: float) -> list[str]:
    """Fill, ask and tell."""
    began = time.perf_counter()
    number = fill(url, days)
    lines = [f"{number:,} windows of {days} days, made in {time.perf_counter() - began:.0f} s"]
    with serving(url, token) as (client, _):
        return [*lines, *answers(client, seconds), *flatness(url, client, days)]


def signed() -> str:
    """A viewer's token, signed by Airflow."""
    from airflow.api_fastapi.app import create_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.utils.db import initdb

    # A token is looked up among those that were revoked.
    initdb()
    return str(create_auth_manager().generate_jwt(SimpleAuthManagerUser(username="viewer", role="VIEWER")))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How fast the Operations API answers.")
    parser.add_argument("--days", type=int, default=365, help="days of history")
    parser.add_argument("--seconds", type=float, default=5, help="how long each kind of request is sent")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="daybook-bench-") as home:
        os.environ.update(
            AIRFLOW_HOME=home, AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{home}/airflow.db",
            AIRFLOW__CORE__LOAD_EXAMPLES="False",
        )  # fmt: skip
        with warehouse() as (_, url):
            print("\n".join(measure(url, signed(), options.days, options.seconds)), flush=True)
    print("\n".join(["", *summary()]))


if __name__ == "__main__":
    main()
