"""Connections to the warehouse and the SQL that is written in files.

Promises: every connection has timeouts for connecting, statements, locks and idling in a transaction, and keeps
TCP alive; statements are found by name in `sql/queries`, composed ones in `sql/templates`. Never: no SQL text is
written here, and no transaction is open across a request to an upstream; what is kept across one is a `Line`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, LiteralString, TypeVar
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from include.settings import ROOT, behind_pooler

Row = dict[str, Any]
Connection = psycopg.Connection[Row]
Result = TypeVar("Result")

# How long a broken connection is made anew for, in seconds: a server restarts in less, and a lease lasts longer.
PATIENCE_SECONDS = 60.0

# From which use on a statement is prepared on its connection.
PREPARE_AFTER = 5

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_NOT_KEPT = re.compile("[\0\ud800-\udfff]")


def told(text: str) -> str:
    """Return a text that somebody said in a form that can be kept: no zero bytes, and no halves of characters."""
    return _NOT_KEPT.sub("\N{REPLACEMENT CHARACTER}", text)


class QueryMissing(Exception):
    """A statement is asked for by a name that no file under `sql/` has."""


@cache
def _statements(folder: str, file: str) -> dict[str, LiteralString]:
    text = (ROOT / "sql" / folder / f"{file}.sql").read_text(encoding="utf-8")
    parts = _NAME.split(text)
    return {name: body.strip().rstrip(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _statement(folder: str, name: str) -> LiteralString:
    file, _, statement = name.partition(".")
    try:
        return _statements(folder, file)[statement]
    except (KeyError, OSError):
        raise QueryMissing(f"sql/{folder}/{file}.sql has no statement {statement!r}.") from None


def query(name: str) -> LiteralString:
    """Return the statement `file.statement` from `sql/queries/file.sql`.

    Raises:
        QueryMissing: there is no such statement.
    """
    return _statement("queries", name)


def template(name: str, **parts: sql.Composable) -> sql.Composed:
    """Return `file.statement` from `sql/templates` with its `{placeholders}` filled by identifiers and fragments.

    Raises:
        QueryMissing: there is no such statement.
    """
    return sql.SQL(_statement("templates", name)).format(**parts)


def connect(
    url: str,
    *,
    application: str = "daybook",
    statement_timeout: float = 60,
    lock_timeout: float = 20,
    idle_timeout: float = 60,
    autocommit: bool = False,
) -> Connection:
    """Open a connection that cannot hang: all timeouts in seconds.

    Args:
        url: libpq address; never logged, as it may hold a password.

    Raises:
        psycopg.OperationalError: the database cannot be reached within five seconds.
    """
    settings = {
        "statement_timeout": f"{int(statement_timeout * 1000)}",
        "lock_timeout": f"{int(lock_timeout * 1000)}",
        "idle_in_transaction_session_timeout": f"{int(idle_timeout * 1000)}",
        # A process that is killed hangs up without a word: what it had running would hold its locks until then.
        "client_connection_check_interval": "5s",
        "timezone": "UTC",
        # Few rows of a large table are found by their key, and not by reading all of it.
        "random_page_cost": "1.1",
    }
    # A pooler hands each transaction another server connection: what was set or prepared on one is not on the next.
    # There the role brings the timeouts, as README says.
    is_pooled = behind_pooler()
    return psycopg.connect(
        url,
        row_factory=dict_row,
        autocommit=autocommit,
        application_name=application,
        connect_timeout=5,
        keepalives=1,
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=30_000,
        prepare_threshold=None if is_pooled else PREPARE_AFTER,
        options=None if is_pooled else " ".join(f"-c {name}={value}" for name, value in settings.items()),
    )


class Line:
    """A connection in autocommit for the bookkeeping of one slice, made anew when it breaks.

    It is kept across requests to an upstream, with no transaction open; meanwhile a server may restart, or a pooler
    may close it.
    """

    def __init__(self, url: str, *, application: str, nap: Callable[[float], None] = time.sleep) -> None:
        self._url, self._application, self._nap = url, application, nap
        self._connection = connect(url, application=application, autocommit=True)

    @property
    def connection(self) -> Connection:
        """The connection; a new one where the last is known to be broken.

        Raises:
            psycopg.OperationalError: the database cannot be reached.
        """
        if self._connection.closed:
            self._connection = connect(self._url, application=self._application, autocommit=True)
        return self._connection

    def kept(self, work: Callable[[Connection], Result]) -> Result:
        """Do something that may be done twice: again, on a new connection, while the database cannot be reached.

        Raises:
            psycopg.OperationalError: it could not be reached for `PATIENCE_SECONDS`.
        """
        waited, wait = 0.0, 0.2
        while True:
            try:
                return work(self.connection)
            except psycopg.OperationalError as error:
                if not (self._connection.closed or is_unreachable(error)) or waited >= PATIENCE_SECONDS:
                    raise
            self._nap(wait)
            waited, wait = waited + wait, min(wait * 2, 5.0)

    def close(self) -> None:
        """Close it."""
        self._connection.close()


@contextmanager
def transacting(connection: Connection) -> Iterator[None]:
    """Lend a connection in autocommit for a transaction that the block ends; one that it leaves open is rolled back."""
    connection.autocommit = False
    try:
        yield
    finally:
        if not connection.closed:
            connection.rollback()
            connection.autocommit = True


def is_unreachable(error: Exception) -> bool:
    """Say whether an error means that the database cannot be spoken to right now."""
    if not isinstance(error, psycopg.OperationalError):
        return False
    state = error.sqlstate
    return state is None or state.startswith("08") or state in ("57P01", "57P02", "57P03")


@contextmanager
def transaction(url: str, **timeouts: Any) -> Iterator[Connection]:
    """One short transaction on a connection of its own: committed at the end, rolled back on an error."""
    connection = connect(url, **timeouts)
    try:
        with connection.transaction():
            yield connection
    finally:
        connection.close()


def call_and_commit(connection: Connection, statement: LiteralString, parameters: Any) -> list[Row]:
    """Send a statement and the COMMIT of its transaction together, and return the rows.

    A client that is frozen in between cannot hold the gate: the server has the COMMIT already, or, where no
    transaction is open yet, the statement is one by itself. If the statement fails, the transaction is rolled back
    and the error is raised.
    """
    if connection.info.transaction_status == TransactionStatus.IDLE and connection.isolation_level is None:
        before, connection.autocommit = connection.autocommit, True
        try:
            cursor = connection.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []
        finally:
            if not connection.closed:
                connection.autocommit = before
    try:
        with connection.pipeline():
            cursor = connection.execute(statement, parameters)
            connection.execute(query("engine.commit"))
        return cursor.fetchall() if cursor.description else []
    except BaseException:
        connection.rollback()
        raise


def sqlalchemy_url(url: str) -> str:
    """The same address for SQLAlchemy, with psycopg 3 as its driver."""
    parts = urlsplit(url)
    return urlunsplit(("postgresql+psycopg", *parts[1:]))
