"""Places at which a stream is collected from the sandbox: a warehouse and a raw store each, on a simulated clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg

from include import registry
from include.contract import CycleStatus, Mode, Stream
from include.engine import credentials, cycle, jobs, lease, replay
from include.engine.cycle import Worker
from include.engine.db import Row, connect
from include.engine.raw import RawStore


@dataclass
class Place:
    """One warehouse and raw store, with the simulated clock of its own."""

    url: str
    raw: RawStore
    sandbox_url: str = ""
    set_at: tuple[datetime, float] = (datetime.max.replace(tzinfo=UTC), 0.0)

    def sql(self, statement: str, *values: Any) -> list[Row]:
        with connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def at(self, instant: datetime) -> None:
        self.sql("update collect.installation set is_sandbox = true, clock_offset = %s - clock_timestamp()", instant)
        self.noted(instant)

    def noted(self, instant: datetime) -> None:
        """Note that the warehouse's clock was set to an instant."""
        self.set_at = (instant, time.monotonic())

    def now(self) -> datetime:
        """The same clock as the warehouse's, without asking it: a sandbox asks at every request."""
        instant, since = self.set_at
        return instant + timedelta(seconds=time.monotonic() - since)

    def worker(self, stream: Stream) -> Worker:
        source = registry.source(stream.source)
        reach = credentials.build(source, host="", password="a key of a test", sandbox_url=self.sandbox_url)
        return Worker(self.url, self.raw, reach, lease.holder(), files=f"{self.raw.root}-files")

    def do(self, stream: Stream, mode: Mode, start: date, end: date) -> None:
        run_id = f"{mode}-of-the-exam-of-{stream.name}"
        request = jobs.JobRequest(mode, (stream,), start, end, reason="a test", run_id=run_id)
        jobs.start(self.url, request)
        jobs.plan(self.url, request, stream)
        while True:
            if mode is Mode.REPLAY:
                verdict = replay.work(self.worker(stream), stream, request.name)
            else:
                verdict = cycle.work(self.worker(stream), stream, mode, request.name)
            if verdict is None:
                break
            assert verdict.status in (CycleStatus.SUCCESS, CycleStatus.PENDING), verdict.words
        assert jobs.conclude(self.url, request.name)[0] == "success"

    def tables(self, stream: Stream, *more: str) -> dict[str, list[Row]]:
        found = {}
        for table in stream.tables:
            columns = ", ".join((*table.column_names, "unit", "parser_version", "extra", *more))
            for name in (table.qualified, f"{table.qualified}_history"):
                order = ", ".join(f'{key}::text collate "C"' for key in table.key)
                found[name] = self.sql(f"select {columns} from {name} order by {order}, sent_at")
        return found


def copy_ledger(source: str, target: str) -> None:
    """Copy what was asked and what came back, as if nothing had been applied yet."""
    for table in ("collect.raw_objects", "collect.fetches"):
        with psycopg.connect(source) as reading, psycopg.connect(target) as writing:
            with (
                reading.cursor().copy(f"copy {table} to stdout") as out,  # type: ignore[arg-type]
                writing.cursor().copy(f"copy {table} from stdin") as into,  # type: ignore[arg-type]
            ):
                for block in out:
                    into.write(block)
            writing.execute("update collect.fetches set applied_at = null, applied_by = null, parser_version = null")
