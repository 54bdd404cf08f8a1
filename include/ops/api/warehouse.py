"""The warehouse as the API asks it: few connections, each with timeouts, and reads that cannot write.

Promises: one answer is one picture (a single read-only transaction); never more than `MOST` connections are open, and
whoever finds all of them taken is told so within seconds instead of waiting; a connection that died is replaced. Never:
a write goes through here; the engine's functions write, on connections of their own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import psycopg

from include.engine.db import Connection, connect, query
from include.ops.api.problems import Busy

MOST = 6
# How long a request waits for one of the connections, in seconds.
PATIENCE_SECONDS = 3.0
STATEMENT_SECONDS = 10.0


class Warehouse:
    """The connections of one process."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._turns = threading.BoundedSemaphore(MOST)
        self._kept: deque[tuple[str, Connection]] = deque()

    @contextmanager
    def reading(self) -> Iterator[tuple[Connection, datetime]]:
        """A read-only picture of the database, and the instant by its clock.

        Raises:
            Busy: all connections are taken.
            psycopg.OperationalError: the database cannot be reached.
        """
        with self._turn():
            url = self._url()
            connection, now = self._begin(url)
            try:
                yield connection, now
            except BaseException:
                connection.close()
                raise
            connection.rollback()
            self._kept.append((url, connection))

    @contextmanager
    def writing(self) -> Iterator[str]:
        """A turn for a function of the engine, which opens its own connection; yields the address.

        Raises:
            Busy: all turns are taken.
        """
        with self._turn():
            yield self._url()

    def close(self) -> None:
        """Close what is kept."""
        while self._kept:
            self._kept.pop()[1].close()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._turns.acquire(timeout=PATIENCE_SECONDS):
            raise Busy
        try:
            yield
        finally:
            self._turns.release()

    def _begin(self, url: str) -> tuple[Connection, datetime]:
        """Begin a transaction: on a kept connection, or, where there is none that lives, on a new one."""
        while self._kept:
            kept_for, connection = self._kept.pop()
            if kept_for == url:
                try:
                    return connection, _clock(connection)
                except psycopg.OperationalError:
                    # The server was started anew, or a pooler hung up; the next one is asked, and then a new one.
                    pass
            connection.close()
        connection = connect(
            url, application="daybook api", statement_timeout=STATEMENT_SECONDS, lock_timeout=2, idle_timeout=30
        )
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        # What is asked for differs much from call to call (a rare state, an old day): each is planned for itself.
        connection.prepare_threshold = None
        try:
            return connection, _clock(connection)
        except BaseException:
            connection.close()
            raise


def _clock(connection: Connection) -> datetime:
    row = connection.execute(query("engine.clock")).fetchone()
    assert row is not None
    instant: datetime = row["now"]
    return instant
