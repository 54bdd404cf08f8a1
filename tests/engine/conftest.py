from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg.pq import TransactionStatus

from include.engine.lease import Lease
from include.engine.raw import RawStore
from tests.engine.cdn import Cdn, serving
from tests.engine.desk import Desk, make

# A connection that is closed has given back what it held.
OPEN = (TransactionStatus.ACTIVE, TransactionStatus.INTRANS, TransactionStatus.INERROR)


@pytest.fixture
def cdn() -> Iterator[Cdn]:
    with serving() as running:
        yield running


@pytest.fixture
def desk(database: str, cdn: Cdn, tmp_path: Path) -> Desk:
    return make(database, cdn, tmp_path)


@pytest.fixture(autouse=True)
def opened_while_locked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """No stored answer is opened by a thread that holds a cycle's row, in any test: a raw store may be slow."""
    found: list[str] = []
    guarded: dict[int, Any] = {}
    guard, settle, opened = Lease.guard, Lease.settle_and_commit, RawStore.open

    def noted(self: Lease, connection: Any) -> None:
        guard(self, connection)
        guarded[threading.get_ident()] = connection

    def settled(self: Lease, *given: Any) -> Any:
        guarded.pop(threading.get_ident(), None)
        return settle(self, *given)

    def looked_at(self: RawStore, sha256: bytes) -> Any:
        connection = guarded.get(threading.get_ident())
        if connection is not None and connection.info.transaction_status in OPEN:
            found.append(sha256.hex())
        return opened(self, sha256)

    monkeypatch.setattr(Lease, "guard", noted)
    monkeypatch.setattr(Lease, "settle_and_commit", settled)
    monkeypatch.setattr(RawStore, "open", looked_at)
    yield found
    assert found == [], "stored answers were opened inside a transaction that holds the cycle's row"
