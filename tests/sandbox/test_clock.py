from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from include.sandbox.clock import DatabaseClock, SandboxClock

AT = datetime(2026, 9, 15, 23, 40, tzinfo=UTC)


def test_the_time_is_the_warehouses_own(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update collect.installation set is_sandbox = true, clock_offset = interval '40 days'")
    told = asyncio.run(SandboxClock(DatabaseClock(database), remote=True).now())
    assert abs(told - datetime.now(UTC) - timedelta(days=40)) < timedelta(minutes=1)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update collect.installation set clock_offset = interval '0'")


def test_without_its_warehouse_the_time_goes_on_from_its_last_word() -> None:
    answers = [AT]

    def read() -> datetime:
        if not answers:
            raise psycopg.OperationalError("the server is gone")
        return answers.pop()

    clock = SandboxClock(read, remote=True)
    assert asyncio.run(clock.now()) == AT
    assert clock.trouble is None
    assert timedelta(0) <= asyncio.run(clock.now()) - AT < timedelta(minutes=1)
    assert clock.trouble is not None


def test_a_warehouse_that_stopped_in_the_middle_delays_one_question_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("include.sandbox.clock.PATIENCE_SECONDS", 0.05)
    goes_on = threading.Event()
    asked: list[int] = []

    def read() -> datetime:
        asked.append(1)
        goes_on.wait()
        return AT

    async def story() -> None:
        clock = SandboxClock(read, remote=True)
        await clock.now()
        assert clock.trouble is not None
        await clock.now()
        assert len(asked) == 1
        goes_on.set()
        while clock.trouble is not None:
            told = await clock.now()
        assert told == AT

    asyncio.run(story())


def test_a_warehouse_that_cannot_be_reached_is_an_error_of_the_driver() -> None:
    with pytest.raises(psycopg.OperationalError):
        DatabaseClock("postgresql://nobody@127.0.0.1:1/none")()
