"""Giving filings to the model: claim, text, submit; then the worker is free, and the poll loop has the rest.

Promises: a worker that dies at any step leaves a row that somebody goes on with, and the model gets a filing a second
time only where it forgot the first; whoever is away costs nobody a try. Never: an answer is waited for here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg

from include.analysis import prompts, queue
from include.analysis.body import Desk, Found
from include.analysis.model import Away, Rejected, Submitter, TooSlow
from include.engine import hosts, marks, windows
from include.engine.db import Connection, Line

# For the text and the submit of one filing together, in seconds.
MOST_SECONDS = 90.0
# How long what cannot be had now is left alone at most: the host group may be open again sooner than it said.
LONGEST_WAIT = timedelta(minutes=30)
# How long it is left alone where no time is named, as where a key is refused.
REFUSED_WAIT = timedelta(minutes=5)

log = logging.getLogger(__name__)


@dataclass
class Counts:
    """What workers did, by outcome."""

    by: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, outcome: str) -> None:
        """Count one more."""
        with self.lock:
            self.by[outcome] = self.by.get(outcome, 0) + 1


@dataclass
class Worker:
    """One worker with what it needs. `signal` is told each step, for tests that end a worker there."""

    line: Line
    desk: Desk
    model: Submitter
    own_ids: bool
    stop: Callable[[], bool] = lambda: False
    signal: Callable[[str], None] = lambda step: None
    clock: Callable[[], float] = time.monotonic

    def one(self) -> str | None:
        """Work on one filing and say what came of it; None where none may be claimed."""
        job = queue.claim(self.line.connection)
        if job is None:
            return None
        with marks.bound(stream="analysis", window=job.rcept_no, attempt=job.attempt):
            return self._claimed(job)

    def _claimed(self, job: queue.Job) -> str:
        self.signal("claimed")
        until = self.clock() + MOST_SECONDS
        try:
            return self._on(job, until)
        except psycopg.Error:
            # The database is away: the claim ends by itself, and the job comes back.
            raise
        except Exception as bug:
            log.exception("analysis of %s failed", job.rcept_no)
            words = f"something nobody foresaw: {type(bug).__name__}: {bug}"
            self.line.kept(lambda connection: queue.fail(connection, job, words))
            return "failed"

    def _on(self, job: queue.Job, until: float) -> str:
        try:
            found = self._text(job, lambda: self.clock() < until)
        except hosts.Stopped:
            if self.stop():
                self.line.kept(lambda connection: queue.put_back(connection, job, "its worker was stopped"))
                return "put back"
            return self._fail(job, f"its text took longer than {MOST_SECONDS:.0f} s")
        self.signal("looked")
        if found.state == "text":
            return self._submit(job, found, until)
        if found.state == "away":
            self.line.kept(lambda connection: queue.put_back(connection, job, found.why, _wait(connection, found)))
            return "put back"
        if found.state == "failed":
            return self._fail(job, found.why)
        # An error that may pass is waited out like a document that is not there yet: for a day.
        is_absent = found.state in ("absent", "unknown")
        self.line.kept(lambda connection: queue.await_body(connection, job, found.why, is_absent=is_absent))
        return "no document" if is_absent else "no text"

    def _text(self, job: queue.Job, may_go_on: Callable[[], bool]) -> Found:
        if job.reading and job.fetches:
            found = self.desk.again(job.rcept_no, job.title, job.reading, job.fetches)
            if found is not None:
                return found
        # The number of the claim, so that each looking of a filing stands by itself in the ledger.
        return self.desk.find(job.rcept_no, job.title, job.token.int & 0x7FFFFFFF, may_go_on)

    def _submit(self, job: queue.Job, found: Found, until: float) -> str:
        prompt = prompts.build(job.title, job.company, found.text)
        name = queue.begin_submit(
            self.line.connection,
            job,
            own_id=self.own_ids,
            kind=prompt.kind,
            prompt=prompt.version,
            length=len(found.text),
            reading=found.reading,
            fetches=found.fetches,
        )
        if name is None:
            return "claim over"
        self.signal("begun")
        left = until - self.clock()
        if left <= 0:
            # Also one that was frozen here: meanwhile the poll loop may have taken the job for lost.
            return self._fail(job, f"its text took longer than {MOST_SECONDS:.0f} s")
        try:
            response_id = self.model.submit(name, prompt, left)
        except Away as away:
            return self._away(job, name, away)
        except TooSlow as slow:
            if self.own_ids:
                # It may have the job, and the next try has another name.
                self.model.cancel(name)
            return self._fail(job, str(slow))
        except Rejected as no:
            return self._fail(job, str(no))
        self.signal("sent")
        hit = self.line.kept(lambda connection: queue.submitted(connection, job, response_id))
        if not hit and not self.own_ids:
            self.model.cancel(response_id)
        self.signal("submitted")
        self.line.kept(queue.model_back)
        return "submitted"

    def _away(self, job: queue.Job, name: str, away: Away) -> str:
        if away.was_sent and self.own_ids:
            # Whether it has the job tells the poll loop, under the name that is known.
            self.line.kept(lambda connection: queue.submitted(connection, job, name))
        else:
            lost = away.was_sent
            self.line.kept(lambda c: queue.put_back(c, job, str(away), is_lost=lost))
        self.line.kept(lambda connection: queue.model_away(connection, f"{away}."))
        return "model away"

    def _fail(self, job: queue.Job, why: str) -> str:
        self.line.kept(lambda connection: queue.fail(connection, job, why))
        return "failed"


def _wait(connection: Connection, found: Found) -> timedelta:
    wait = found.until - windows.now(connection) if found.until else REFUSED_WAIT
    return min(max(wait, timedelta(seconds=10)), LONGEST_WAIT)


def run(
    make: Callable[[], Worker],
    workers: int,
    *,
    idle: float,
    stop: threading.Event,
    seconds: float,
    url: str,
    is_alone: Callable[[], bool] = lambda: False,
) -> tuple[Counts, queue.Standing]:
    """Work until nothing is left to do, the time is over, or the stop; return what was done and what is left.

    Args:
        make: makes a worker with connections of its own.
        workers: how many work side by side at most; as many are made as there is work for.
        idle: seconds between two looks while all slots are taken, or answers are awaited.
        stop: ends it between two steps of each worker.
        seconds: how long it may go on.
        url: address of the warehouse, for looking whether something is left.
        is_alone: whether nobody looks at the answers any more, which ends it too: slots would not come free.
    """
    crew = _Crew(make, stop, time.monotonic() + seconds)
    line = Line(url, application="daybook analysis")
    try:
        while True:
            standing = line.kept(queue.standing)
            if crew.is_over or standing.is_idle or (standing.in_flight and is_alone()):
                return crew.counts, standing
            # No more than may claim something: whoever cannot would only have looked.
            crew.begin(min(standing.free, standing.waiting) + standing.stale, workers)
            stop.wait(idle)
    finally:
        line.close()
        crew.end()


class _Crew:
    """The workers of one run; those with nothing to do are kept for the next filing, as their clients are dear."""

    def __init__(self, make: Callable[[], Worker], stop: threading.Event, until: float) -> None:
        self.counts = Counts()
        self._make, self._stop, self._until = make, stop, until
        self._threads: list[threading.Thread] = []
        self._idle: list[Worker] = []
        self._failures: list[BaseException] = []

    @property
    def is_over(self) -> bool:
        """Whether nobody should begin anything more."""
        return self._stop.is_set() or bool(self._failures) or time.monotonic() > self._until

    def begin(self, number: int, most: int) -> None:
        """Have so many more workers claim until there is nothing for them, but not more than `most` in all."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for _ in range(min(number, most - len(self._threads))):
            thread = threading.Thread(target=self._work, daemon=True)
            thread.start()
            self._threads.append(thread)

    def _work(self) -> None:
        try:
            with self.counts.lock:
                worker = self._idle.pop() if self._idle else None
            self._go_on(worker or self._make())
        except BaseException as error:
            self._failures.append(error)

    def _go_on(self, worker: Worker) -> None:
        try:
            while not self.is_over and (outcome := worker.one()) is not None:
                self.counts.add(outcome)
        finally:
            self._idle.append(worker)

    def end(self) -> None:
        """Wait for the workers, and close what they had.

        Raises:
            BaseException: what ended one of them.
        """
        for thread in self._threads:
            thread.join(MOST_SECONDS)
        for worker in self._idle:
            for part in (worker.desk, worker.model, worker.line):
                with suppress(Exception):
                    part.close()
        if self._failures:
            raise self._failures[0]
