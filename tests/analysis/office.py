"""An office at which filings are analysed: a warehouse on a simulated clock, the model's stand-in, texts to order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from include.analysis import queue
from include.analysis.body import Found
from include.analysis.model import Backend, Submitter
from include.analysis.polling import Poller, Round
from include.analysis.submit import Worker
from include.engine import hosts
from include.engine.db import Line, connect
from tests.fixtures_sandbox import RunningSandbox
from tests.sources.places import Place

SEOUL = ZoneInfo("Asia/Seoul")
NINE = datetime(2026, 9, 16, 9, 0, tzinfo=SEOUL)
TEXT = Found("text", "본문\n단위 : 백만원\n매출액\t1,234", "document", ())


class Killed(BaseException):
    """Stands for the death of a process: nothing of ours catches it."""


@dataclass
class Texts:
    """Texts to order: what is found of each filing, one after the other; the last stays."""

    found: dict[str, list[Found]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def find(self, rcept_no: str, title: str, attempt: int, may_go_on: Callable[[], bool]) -> Found:
        self.asked.append(rcept_no)
        self.before()
        if not may_go_on():
            raise hosts.Stopped("a test")
        waiting = self.found.get(rcept_no, [TEXT])
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    def again(self, rcept_no: str, title: str, reading: str, numbers: Sequence[int]) -> Found | None:
        return TEXT

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Office:
    place: Place
    running: RunningSandbox
    texts: Texts = field(default_factory=Texts)
    own_ids: bool = True
    workers: dict[tuple[object, ...], Worker] = field(default_factory=dict)
    pollers: dict[str, tuple[asyncio.Runner, Poller]] = field(default_factory=dict)

    def sql(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        return self.place.sql(statement, *values)

    def advance(self, **parts: float) -> None:
        self.place.at(self.place.now() + timedelta(**parts))

    def switch(self, switch: str, **order: Any) -> Any:
        return self.running.switch("llm", switch, **order)

    def made(self) -> dict[str, int]:
        """How often the model was given each filing."""
        return dict(self.running.control("GET", "llm")["made"])

    def file(self, number: int, title: str = "단일판매ㆍ공급계약체결", day: str = "2026-09-16") -> str:
        """A filing comes in, as the list shows it now."""
        rcept_no = f"{day.replace('-', '')}80{number:04}"
        self.sql(
            "insert into dartbrief.disclosures (rcept_no, corp_code, corp_name, corp_type, report_name, submitter,"
            " rcept_dt, remark, base_title, is_correction, unit, fetch_id, sent_at, parser_version, cycle_id, attempt)"
            " values (%s, '00100000', '가온전자', 'K', %s, '가온전자', %s, '', %s, false, 'u', 1,"
            " collect.clock(), 1, 1, 1)",
            rcept_no,
            title,
            day,
            title,
        )
        return rcept_no

    def row(self, rcept_no: str) -> dict[str, Any]:
        (row,) = self.sql("select * from dartbrief.analysis_cache where rcept_no = %s", rcept_no)
        return row

    def status(self, rcept_no: str) -> str:
        return str(self.row(rcept_no)["status"])

    def shown(self, rcept_no: str) -> str:
        (row,) = self.sql("select status from dartbrief.analyses where rcept_no = %s", rcept_no)
        return str(row["status"])

    def slots(self) -> int:
        return int(self.sql("select count(*) as n from dartbrief.analysis_slots where rcept_no is not null")[0]["n"])

    def permit(self, jobs: int, days: int = 7) -> None:
        with connect(self.place.url, autocommit=True) as connection:
            queue.permit(connection, jobs, days)

    def backend(self) -> Backend:
        return Backend(
            f"{self.running.url}/llm.sandbox.invalid/v1",
            "stand-in-8b",
            key="a key of a test",
            timeout=timedelta(seconds=5),
            own_ids=self.own_ids,
        )

    def worker(self, signal: Callable[[str], None] = lambda step: None, backend: Backend | None = None) -> Worker:
        """The worker of this office; another one for each other backend. The model's client is dear to make."""
        chosen = backend or self.backend()
        key = (chosen.url, chosen.timeout, chosen.own_ids)
        if key not in self.workers:
            line = Line(self.place.url, application="a test")
            self.workers[key] = Worker(line, self.texts, Submitter(chosen), self.own_ids)  # type: ignore[arg-type]
        worker = self.workers[key]
        worker.signal = signal
        return worker

    def submit(self, signal: Callable[[str], None] = lambda step: None, backend: Backend | None = None) -> list[str]:
        """One worker, until it may claim no more."""
        worker, outcomes = self.worker(signal, backend), []
        while (outcome := worker.one()) is not None:
            outcomes.append(outcome)
        return outcomes

    def poll(self, signal: Callable[[str], None] = lambda step: None, *, by: str = "the loop") -> Round:
        """One round of the poll loop, or of another one."""
        if by not in self.pollers:
            self.pollers[by] = (asyncio.Runner(), Poller(self.place.url, self.backend()))
        runner, poller = self.pollers[by]
        poller._signal = signal
        return runner.run(poller.round())

    def close(self) -> None:
        for worker in self.workers.values():
            worker.line.close()
            worker.model.close()
        for runner, poller in self.pollers.values():
            runner.run(poller.close())
            runner.close()
