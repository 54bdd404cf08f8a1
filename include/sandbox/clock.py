"""The sandbox's clock: the simulated time by which the stand-ins publish.

Promises: the time is the warehouse's own where there is one (so upstreams, leases and windows live in one
time); while the warehouse does not answer, time goes on from what it last said. Never: the stand-ins stop
because the database does.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta

import psycopg

from include.engine.db import Connection, connect, query

Clock = Callable[[], datetime]

PATIENCE_SECONDS = 2.0


def real_clock() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


class DatabaseClock:
    """Asks the warehouse for its time, over one connection that is opened again when it was lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def __call__(self) -> datetime:
        """The simulated instant.

        Raises:
            psycopg.Error: the warehouse does not answer.
        """
        with self._lock:
            if self._connection is None or self._connection.closed:
                self._connection = connect(
                    self._url,
                    application="daybook sandbox",
                    statement_timeout=PATIENCE_SECONDS,
                    autocommit=True,
                )
            try:
                row = self._connection.execute(query("engine.clock")).fetchone()
            except psycopg.OperationalError:
                # A restarted server leaves a dead connection behind; the next question opens a new one.
                self._connection.close()
                raise
        assert row is not None
        instant: datetime = row["now"]
        return instant.astimezone(UTC)


class SandboxClock:
    """A clock that always has an answer: the given one's, or its last word plus the time since then.

    A remote clock is asked in threads that do not keep the process alive: a database that was stopped in the
    middle of an answer delays one request, not the sandbox and not its end.
    """

    def __init__(self, read: Clock, *, remote: bool = False) -> None:
        self._read = read
        self._remote = remote
        self._offset = timedelta(0)
        self._unanswered: Future[datetime] | None = None
        self.trouble: str | None = None

    async def now(self) -> datetime:
        """The simulated instant, in UTC."""
        if not self._remote:
            return self._read().astimezone(UTC)
        if self._unanswered is not None and not self._unanswered.done():
            return real_clock() + self._offset
        question: Future[datetime] = Future()
        threading.Thread(target=self._ask, args=(question,), name="sandbox clock", daemon=True).start()
        waiting = asyncio.wrap_future(question)
        # An answer that comes too late is looked at all the same, so that nobody complains of a lost error.
        waiting.add_done_callback(lambda late: late.cancelled() or late.exception())
        await asyncio.wait([waiting], timeout=PATIENCE_SECONDS)
        if not waiting.done():
            self._unanswered = question
            return self._without("it does not answer")
        try:
            instant = waiting.result()
        except psycopg.Error as failure:
            return self._without(type(failure).__name__)
        self.trouble = None
        self._offset = instant - real_clock()
        return instant

    def _ask(self, question: Future[datetime]) -> None:
        try:
            question.set_result(self._read())
        except Exception as failure:
            question.set_exception(failure)

    def _without(self, reason: str) -> datetime:
        self.trouble = f"the warehouse does not tell the time ({reason}); going on from its last word"
        return real_clock() + self._offset
