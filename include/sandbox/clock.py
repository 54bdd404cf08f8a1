"""The sandbox's clock: the simulated time by which the stand-ins publish.

Promises: the time is the warehouse's own where there is one (so upstreams, leases and windows live in one
time); while the warehouse does not answer, time goes on from what it last said. Never: the stand-ins stop
because the database does.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
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
    """A clock that always has an answer: the given one's, or its last word plus the time since then."""

    def __init__(self, read: Clock, *, remote: bool = False) -> None:
        self._read = read
        self._remote = remote
        self._offset = timedelta(0)
        self.trouble: str | None = None

    async def now(self) -> datetime:
        """The simulated instant, in UTC."""
        if not self._remote:
            return self._read().astimezone(UTC)
        try:
            instant = await asyncio.wait_for(asyncio.to_thread(self._read), PATIENCE_SECONDS)
        except (TimeoutError, psycopg.Error) as failure:
            reason = type(failure).__name__
            self.trouble = f"the warehouse does not tell the time ({reason}); going on from its last word"
            return real_clock() + self._offset
        self.trouble = None
        self._offset = instant - real_clock()
        return instant
