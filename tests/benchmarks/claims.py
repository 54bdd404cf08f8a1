"""Measures claiming and settling cycles against procrastinate and pgqueuer fetching and finishing jobs.

    ./run bench -k claims
    python tests/benchmarks/claims.py [--workers 1 4 16 32] [--jobs 1000] [--rounds 5]

Promises: each has a database of its own on one server, with 100,000 ended and 5,000 open units of work, which are
topped up and vacuumed before each run; a run does nothing but take a unit and end it as a success, one at a time;
that each was taken once and ended is checked after every run. Two views: `statements` has libpq send each one's own
statements, prepared, so that the client is the same for all; `libraries` has each one's own Python do it. In both,
connections stay open, and each has done a few units before it counts.

What is judged. The floor of 1.3 against the faster rival (aim 3) was drawn from libraries, each at its own interface,
so `libraries` is held to it. Against procrastinate's functions the floor is 2 (aim 4), drawn from statements alone, so
`statements` is held to that. pgqueuer's statements are shown beside ours and not judged: they delete the job where ours
keep a cycle under all its constraints, and such a floor was never drawn.

What each does for it:
    ours           looks for leases that ran out and for freezes, then claims under SKIP LOCKED with a fresh random
                   token, whose commit need not be durable; the end checks the token and the lease's time under the
                   cycle's lock, writes state, counters and outcome durably, and refuses a holder whose lease is over.
                   The cycle stays, under all its constraints. (An apply guards the cycle before its rows as well, and
                   scheduled polls pass the gate of the snapshot; neither is part of this.)
    procrastinate  fetches under SKIP LOCKED and its rules for locks; the end goes by the job's id whoever held it.
                   A trigger writes an event for each step. The job stays.
    pgqueuer       picks queued jobs and those without a heartbeat; the end goes by the job's id whoever held it,
                   deletes the job and writes the log. It can take and end jobs by tens, which is shown too; a slice
                   of ours works one cycle at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import asyncpg
import procrastinate
from pgqueuer.adapters.persistence.queries import EntrypointExecutionParameter, Queries
from psycopg import pq

from include.contract import CycleStatus, Mode
from include.engine import lease
from include.engine.db import connect
from include.local.postgres import Cluster
from tests.benchmarks.measuring import (
    Cost,
    Judged,
    interleaved,
    judge,
    of_server,
    ratios,
    spending,
    summary,
    table,
    warehouse,
)

ENDED, OPEN = 100_000, 5_000
FLOOR, AIM = 1.3, 3
FLOOR_OF_FUNCTIONS, AIM_OF_FUNCTIONS = 2, 4
STREAM, RUN = "bench.stream", "bench-run"
HEARTBEAT = timedelta(seconds=30)
# Units that each connection does before it counts: by then its statements are prepared and their plans kept.
WARM = 10


@dataclass(frozen=True)
class Steps:
    """What a queue sends for one unit: how it is taken, and how it is ended by these columns of what was taken."""

    take: str
    end: str
    by: tuple[int, ...]


@dataclass(frozen=True)
class Workers:
    """Workers with their connections: `work` has each do so many units, `close` ends them."""

    work: Callable[[int], None]
    close: Callable[[], None]


def in_threads(workers: Sequence[Callable[[int], None]]) -> Callable[[int], None]:
    """Return what has every worker do so many units, each in a thread."""

    def work(each: int) -> None:
        threads = [threading.Thread(target=worker, args=(each,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return work


def sql(url: str, *statements: str) -> Any:
    """Run statements; the only value of the last one's only row, if it gives one."""
    with closing(connect(url, autocommit=True, statement_timeout=600)) as connection:
        for statement in statements:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
        row = cursor.fetchone() if cursor.description else None
        return next(iter(row.values())) if row else None


# --- the three queues


class Ours:
    """Chunks of one run, among cycles that are over: half of them windows, half chunks of another run."""

    name = "ours"

    def __init__(self, url: str) -> None:
        self.url = url
        sql(
            url,
            f"""insert into collect.cycles
                    (stream, mode, slot, run_id, run_date, window_start, due_at, session_date, kind, cycle_status,
                     is_complete, outcome, attempt, started_at, finished_at, created_at, updated_at, gate_at)
                select '{STREAM}', mode, 'ended/' || n, case when mode <> 'poll' then 'ended' end, window_day,
                       window_day, window_day, day, 'chunk', 'SUCCESS', true, 'success', 1, day, day, day, day, day
                  from (select n, mode, day, case when mode = 'poll' then day end as window_day
                          from (select n, case when n % 2 = 0 then 'poll' else 'backfill' end as mode,
                                       date '2026-09-01' - n % 4000 as day
                                  from generate_series(1, {ENDED}) n) g) h""",
        )

    def top_up(self) -> None:
        """As many open chunks as there should be."""
        sql(
            self.url,
            f"""insert into collect.cycles
                    (stream, mode, slot, run_id, session_date, kind, chunk, created_at, updated_at)
                select '{STREAM}', 'backfill', '{RUN}/' || gen_random_uuid(), '{RUN}', date '2026-09-15', 'chunk',
                       '{{}}', collect.clock(), collect.clock()
                  from generate_series(1, {OPEN} - (select count(*) from collect.cycles
                                                     where cycle_status = 'PENDING'))""",
            "vacuum (analyze) collect.cycles",
        )

    def ended(self) -> int:
        """How many chunks were claimed once and settled."""
        return int(
            sql(
                self.url,
                f"select count(*) from collect.cycles"
                f" where run_id = '{RUN}' and cycle_status = 'SUCCESS' and attempt = 1",
            )
        )

    def steps(self) -> Steps:
        """What claiming and settling come to in the database."""
        return Steps(
            f"select cycle_id, lease_token from collect.claim('{STREAM}', 'backfill', '{RUN}', 'bench', '300 seconds')",
            "select collect.settle($1, $2, 'SUCCESS', '{}')",
            by=(0, 1),
        )

    def by_library(self, workers: int) -> Workers:
        """The engine's own functions, in threads."""
        connections = [
            (connect(self.url, autocommit=True, statement_timeout=15), connect(self.url)) for _ in range(workers)
        ]

        def worker(reading: Any, applying: Any) -> Callable[[int], None]:
            def work(each: int) -> None:
                for _ in range(each):
                    held = lease.claim_on(reading, self.url, STREAM, Mode.BACKFILL, RUN, "bench")
                    assert held is not None
                    held.settle_and_commit(applying, CycleStatus.SUCCESS, {})

            return work

        def close() -> None:
            for pair in connections:
                for connection in pair:
                    connection.close()

        return Workers(in_threads([worker(*pair) for pair in connections]), close)


class Procrastinate:
    """Jobs without locks in one queue."""

    name = "procrastinate"

    def __init__(self, url: str) -> None:
        self.url = url
        schema = Path(procrastinate.__file__).parent / "sql" / "schema.sql"
        sql(
            url,
            schema.read_text(encoding="utf-8"),
            f"""insert into procrastinate_jobs (queue_name, task_name, status, attempts)
                select 'bench', 'nothing', 'succeeded', 1 from generate_series(1, {ENDED})""",
            """insert into procrastinate_events (job_id, type)
               select j.id, e.type::procrastinate_job_event_type
                 from procrastinate_jobs j cross join unnest(array['deferred', 'started', 'succeeded']) as e (type)""",
            "select worker_id from procrastinate_register_worker_v1()",
        )

    def top_up(self) -> None:
        """As many waiting jobs as there should be."""
        sql(
            self.url,
            f"""insert into procrastinate_jobs (queue_name, task_name)
                select 'bench', 'nothing'
                  from generate_series(1, {OPEN} - (select count(*) from procrastinate_jobs where status = 'todo'))""",
            "vacuum (analyze) procrastinate_jobs, procrastinate_events",
        )

    def ended(self) -> int:
        """How many jobs were fetched once and finished."""
        return int(
            sql(
                self.url,
                f"""select count(*) - {ENDED} from procrastinate_jobs j
                     where j.status = 'succeeded' and j.attempts = 1
                       and 1 = (select count(*) from procrastinate_events e
                                 where e.job_id = j.id and e.type = 'started')""",
            )
        )

    def steps(self) -> Steps:
        """What its job manager sends."""
        return Steps(
            "select id, status, task_name, priority, lock, queueing_lock, args, scheduled_at, queue_name, attempts,"
            " worker_id from procrastinate_fetch_job_v2(array['bench']::varchar[], 1)",
            "select procrastinate_finish_job_v1($1, 'succeeded', false)",
            by=(0,),
        )

    def by_library(self, workers: int) -> Workers:
        """Its job manager over its own pool."""

        async def work(manager: Any, each: int) -> None:
            for _ in range(each):
                job = await manager.fetch_job(["bench"], worker_id=1)
                await manager.finish_job(job, procrastinate.jobs.Status.SUCCEEDED, delete_job=False)

        loop = asyncio.new_event_loop()
        app = procrastinate.App(
            connector=procrastinate.PsycopgConnector(conninfo=self.url, min_size=workers, max_size=workers)
        )
        loop.run_until_complete(app.open_async())
        loop.run_until_complete(app.connector.pool.wait())  # type: ignore[attr-defined]

        async def all_of_them(each: int) -> None:
            await asyncio.gather(*(work(app.job_manager, each) for _ in range(workers)))

        def close() -> None:
            loop.run_until_complete(app.close_async())
            loop.close()

        return Workers(lambda each: loop.run_until_complete(all_of_them(each)), close)


class PgQueuer:
    """Jobs of one entry point, taken `at_once`."""

    def __init__(self, url: str, at_once: int = 1) -> None:
        self.url, self.at_once = url, at_once
        self.name = "pgqueuer" if at_once == 1 else f"pgqueuer, {at_once} at once"
        self.limits = {"bench": EntrypointExecutionParameter(concurrency_limit=0)}

    def make(self) -> PgQueuer:
        """Install it with its log of ended jobs."""

        async def install() -> None:
            connection = await asyncpg.connect(self.url)
            await Queries.from_asyncpg_connection(connection).install()
            await connection.close()

        asyncio.run(install())
        sql(
            self.url,
            f"""insert into pgqueuer_log (job_id, status, entrypoint, priority)
                select n, s.status::pgqueuer_status, 'bench', 0
                  from generate_series(1, {ENDED}) n
                 cross join unnest(array['queued', 'picked', 'successful']) as s (status)""",
            f"select setval(pg_get_serial_sequence('pgqueuer', 'id'), {ENDED})",
        )
        return self

    def top_up(self) -> None:
        """As many queued jobs as there should be."""
        missing = OPEN - int(sql(self.url, "select count(*) from pgqueuer"))

        async def enqueue() -> None:
            connection = await asyncpg.connect(self.url)
            await Queries.from_asyncpg_connection(connection).enqueue(
                ["bench"] * missing, [None] * missing, [0] * missing
            )
            await connection.close()

        if missing:
            asyncio.run(enqueue())
        sql(self.url, "vacuum (analyze) pgqueuer, pgqueuer_log")

    def ended(self) -> int:
        """How many jobs were picked once and logged as done."""
        return int(
            sql(
                self.url,
                f"""select count(*) from (select job_id from pgqueuer_log where job_id > {ENDED} group by job_id
                     having count(*) filter (where status = 'picked') = 1
                        and count(*) filter (where status = 'successful') = 1) g""",
            )
        )

    def steps(self) -> Steps:
        """What its queries send."""
        queries = Queries.from_asyncpg_connection(None)  # type: ignore[arg-type]
        asked = queries.qbq.build_dequeue_query(
            batch_size=1,
            entrypoints=["bench"],
            concurrency_limits=[0],
            queue_manager_id=uuid.UUID(int=1),
            global_concurrency_limit=None,
            heartbeat_timeout=HEARTBEAT,
        )
        values = {int: "{}", list: "array['bench']", uuid.UUID: "'{}'::uuid", timedelta: "interval '30 seconds'"}
        pick = asked.sql.rstrip().rstrip(";")
        for number, value in reversed(list(enumerate(asked.args, start=1))):
            pick = pick.replace(f"${number}", values[type(value)].format(value))
        end = queries.qbq.build_log_job_query()
        for number, text in ((2, "array['successful']"), (3, "array[null]"), (1, "array[$1::bigint]")):
            end = end.replace(f"${number}", text)
        return Steps(pick, end, by=(0,))

    def by_library(self, workers: int) -> Workers:
        """Its queries over asyncpg, the driver that it recommends."""

        async def opened() -> list[Any]:
            return [await asyncpg.connect(self.url) for _ in range(workers)]

        loop = asyncio.new_event_loop()
        connections = loop.run_until_complete(opened())

        async def work(connection: Any, left: int) -> None:
            queries, me = Queries.from_asyncpg_connection(connection), uuid.uuid4()
            while left > 0:
                taken = await queries.dequeue(min(self.at_once, left), self.limits, me, None, HEARTBEAT)
                await queries.log_jobs([(job, "successful", None) for job in taken])
                left -= len(taken)

        async def all_of_them(each: int) -> None:
            await asyncio.gather(*(work(connection, each) for connection in connections))

        async def closed() -> None:
            for connection in connections:
                await connection.close()

        def close() -> None:
            loop.run_until_complete(closed())
            loop.close()

        return Workers(lambda each: loop.run_until_complete(all_of_them(each)), close)


# --- running


def by_statements(queue: Any, workers: int) -> Workers:
    """A queue's own statements, prepared and sent by libpq, in threads."""
    steps = queue.steps()
    connections = [pq.PGconn.connect(queue.url.encode()) for _ in range(workers)]

    def checked(result: Any) -> Any:
        assert result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK), result.error_message
        return result

    def worker(connection: Any) -> Callable[[int], None]:
        checked(connection.prepare(b"take", steps.take.encode()))
        checked(connection.prepare(b"end", steps.end.encode()))

        def work(each: int) -> None:
            for _ in range(each):
                taken = checked(connection.exec_prepared(b"take", []))
                values = [taken.get_value(0, column) for column in steps.by]
                checked(connection.exec_prepared(b"end", values))

        return work

    def close() -> None:
        for connection in connections:
            connection.finish()

    return Workers(in_threads([worker(connection) for connection in connections]), close)


@dataclass(frozen=True)
class Bench:
    """The server, and the queues that live on it."""

    postmaster: int
    queues: tuple[Any, ...]

    def run(self, queue: Any, made: Callable[[int], Workers], workers: int, jobs: int) -> Cost:
        """Do so many units with workers that are warm."""
        queue.top_up()
        before = queue.ended()
        crew = made(workers)
        crew.work(WARM)
        with spending(of_server(self.postmaster)) as spent:
            crew.work(jobs // workers)
        crew.close()
        done = queue.ended() - before
        assert done == jobs + WARM * workers, f"{queue.name}: not each of {jobs} was taken once and ended"
        return spent.cost


@contextmanager
def prepared(cluster: Cluster, warehouse_url: str) -> Iterator[Bench]:
    """The three queues with their backlogs, on one server whose autovacuum is off meanwhile."""
    assert cluster.process is not None
    names = ("bench_procrastinate", "bench_pgqueuer")
    sql(warehouse_url, "alter system set autovacuum = off", "select pg_reload_conf()")
    try:
        others = [cluster.create_database(name) for name in names]
        pgqueuer = PgQueuer(others[1]).make()
        queues = (Ours(warehouse_url), Procrastinate(others[0]), pgqueuer, PgQueuer(others[1], at_once=10))
        yield Bench(cluster.process.pid, queues)
    finally:
        for name in names:
            cluster.drop_database(name)
        sql(warehouse_url, "alter system reset autovacuum", "select pg_reload_conf()")


def measure(bench: Bench, workers: int, jobs: int, rounds: int) -> list[str]:
    """Both views for one number of workers."""
    jobs -= jobs % (workers * 10)
    lines = []
    for view, queues in (("statements", bench.queues[:3]), ("libraries", bench.queues)):
        kinds = {}
        for queue in queues:
            made = queue.by_library if view == "libraries" else partial(by_statements, queue)
            kinds[queue.name] = partial(bench.run, queue, made, workers, jobs)
        taken = interleaved(kinds, rounds)
        lines += [f"{workers} workers, {view}: {jobs:,} claimed and settled", table(taken, jobs, "job")]
        against = {name: tuple(ratios(taken[name], taken["ours"])) for name in ("procrastinate", "pgqueuer")}
        place = f"{workers:>2} workers, {view}:"
        if view == "libraries":
            faster = min(against, key=lambda name: statistics.median(against[name]))
            lines.append(
                judge(Judged(f"{place} {faster}, the faster rival, / ours", against[faster], floor=FLOOR, aim=AIM))
            )
            continue
        functions = {"floor": FLOOR_OF_FUNCTIONS, "aim": AIM_OF_FUNCTIONS}
        lines.append(judge(Judged(f"{place} procrastinate / ours", against["procrastinate"], **functions)))
        lines.append(judge(Judged(f"{place} pgqueuer / ours", against["pgqueuer"])))
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What claiming and settling costs.")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4, 16, 32], help="how many at once")
    parser.add_argument("--jobs", type=int, default=2_000, help="units of work in a run")
    parser.add_argument("--rounds", type=int, default=5, help="how often each queue is run and counted")
    options = parser.parse_args()
    with warehouse() as (cluster, url), prepared(cluster, url) as bench:
        for workers in options.workers:
            print("\n".join(measure(bench, workers, options.jobs, options.rounds)), flush=True)
    print("\n".join(["", *summary()]))


if __name__ == "__main__":
    main()
