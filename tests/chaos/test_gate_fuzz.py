"""The gate under fire: processes that write, roll back, stall, load in bulk and are killed, over many cutoffs.

Each write notes its own instant at the gate in the transaction that makes it, so that the check needs no client's
word. `CHAOS_SECONDS` says for how long (default 60).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import time
import traceback
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from include.engine import snapshot
from include.engine.db import Connection, call_and_commit, connect
from include.local.postgres import Cluster
from tests.engine.races import Arena
from tests.engine.seoul import kst
from tests.engine.test_gate_model import try_mornings

pytestmark = pytest.mark.chaos

SECONDS = float(os.environ.get("CHAOS_SECONDS", "60"))
WRITERS, CAPTURERS = 10, 2
WRITE = (
    "insert into race_log (stream, at) select %(stream)s, collect.settle(%(cycle)s, %(token)s, %(status)s, %(facts)s)"
)
# What a session that was killed may say.
CUT = (psycopg.OperationalError, psycopg.errors.AdminShutdown, psycopg.errors.IdleInTransactionSessionTimeout)


def phase(connection: Connection) -> str:
    """What the referee has called for."""
    row = connection.execute("select phase from race_phase").fetchone()
    connection.rollback()
    assert row is not None
    return str(row["phase"])


def tell(work: Any, *given: Any, found: Any) -> None:
    """Run a racer, and tell what it counted or why it fell."""
    told = Counter[str]()
    try:
        work(*given, told)
    except BaseException:
        told[traceback.format_exc()] += 1
    found.put(told)


def write_on(url: str, n: int, values: dict[str, Any], told: Counter[str]) -> None:
    """Write until the referee ends it, in every way that a writer may."""
    chance = random.Random(n)
    connection: Connection | None = None
    while True:
        try:
            if connection is None or connection.closed:
                connection = connect(url, application="race writer")
            called = phase(connection)
            if called == "over":
                break
            if called == "upkeep":
                time.sleep(0.005)
                continue
            _write(connection, values, chance, told)
        except CUT:
            told["cut"] += 1
            connection = None
        except psycopg.errors.DeadlockDetected:
            told["deadlock"] += 1
            assert connection is not None
            connection.rollback()


def _write(connection: Connection, values: dict[str, Any], chance: random.Random, told: Counter[str]) -> None:
    what = chance.random()
    if what < 0.1:
        rows = chance.randint(2_000, 20_000)
        connection.execute("insert into race_bulk select generate_series(1, %s)", (rows,))
        if chance.random() < 0.2:
            connection.execute("select pg_sleep(%s)", (chance.random() * 0.5,))
        told["bulk"] += 1
    if what < 0.15:
        connection.execute(WRITE, values)
        connection.rollback()
        told["thought better of it"] += 1
    elif what < 0.35:
        connection.execute(WRITE, values)
        time.sleep(chance.random() * 0.004)
        connection.commit()
        told["written"] += 1
    else:
        call_and_commit(connection, WRITE, values)  # type: ignore[arg-type]
        told["written"] += 1


def capture_on(url: str, n: int, told: Counter[str]) -> None:
    """Capture whatever is due, again and again."""
    connection: Connection | None = None
    while True:
        try:
            if connection is None or connection.closed:
                connection = connect(url, application="race capturer")
            called = phase(connection)
            if called == "over":
                break
            if called == "all":
                (row,) = call_and_commit(
                    connection, "select cardinality(collect.capture_due(%s)) as n", (f"capturer {n}",)
                )
                told["captured"] += row["n"]
            time.sleep(0.002)
        except CUT:
            told["cut"] += 1
            connection = None


def test_no_write_is_misplaced_whatever_is_killed_and_however_long(database: str) -> None:
    arena = Arena(database, size=WRITERS).open()
    seoul = arena.seoul
    seoul.sql("create table race_log (stream text not null, at timestamptz(6) not null)")
    seoul.sql("create index on race_log (stream, at)")
    seoul.sql("create table race_bulk (n int)")
    seoul.sql("create table race_phase (phase text not null)")
    seoul.sql("insert into race_phase values ('all')")
    # Forked, so that they are there at once; each opens a connection of its own.
    fork = multiprocessing.get_context("fork")
    found = fork.Queue()
    jobs: list[tuple[Any, ...]] = [
        (write_on, database, n, {**seoul.settling(each, "RUNNING", fetched=1), "stream": each.name})
        for n, each in enumerate(arena.streams)
    ] + [(capture_on, database, n) for n in range(CAPTURERS)]
    racers = [fork.Process(target=tell, args=job, kwargs={"found": found}, daemon=True) for job in jobs]
    chance, rounds = random.Random(7), Counter[str]()
    complaints: list[str] = []
    for racer in racers:
        racer.start()
    try:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            one_round(arena, chance, rounds, complaints)
    finally:
        seoul.sql("update race_phase set phase = 'over'")
        told = Counter[str]()
        for _ in racers:
            told += found.get(timeout=60)
        for racer in racers:
            racer.join(60)
        arena.close()
        print(f"{dict(rounds)}", *(f"{what} ({n})" for what, n in told.items()), sep="\n")
    written = rounds["before"] + rounds["after"]
    assert complaints == []
    assert set(told) <= {"bulk", "thought better of it", "written", "captured", "cut"}
    assert told["cut"] > 0
    assert rounds["MISSED"] > 0
    assert rounds["by a writer"] > 0
    assert rounds["CAPTURED"] > rounds["MISSED"]
    assert written > 100


def one_round(arena: Arena, chance: random.Random, rounds: Counter[str], complaints: list[str]) -> None:
    """One cutoff: with capturers, with writers only, or with nobody but upkeep; kills in between."""
    seoul = arena.seoul
    kind = chance.choice(["all"] * 6 + ["writers"] * 2 + ["upkeep"])
    seoul.sql("update race_phase set phase = %s", "writers" if kind == "upkeep" else kind)
    lead = chance.uniform(0.02, 0.25)
    cutoff = arena.prepare(lead)
    if kind == "upkeep":
        seoul.sql("update race_phase set phase = 'upkeep'")
        time.sleep(lead / 2)
        for _ in range(1000):
            if not seoul.sql("select 1 from pg_stat_activity where application_name like 'race%' and state <> 'idle'"):
                break
            time.sleep(0.002)
        seoul.at(cutoff + timedelta(minutes=5))
        snapshot.mark_missed(arena.url)
    elif chance.random() < 0.3:
        seoul.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'race%'"
            " order by random() limit 2"
        )
    until = time.monotonic() + lead + 0.05
    while time.monotonic() < until or seoul.read(arena.day).status == "PENDING":
        time.sleep(0.005)
        assert time.monotonic() < until + 60, "nobody took the snapshot"
    judge(arena, rounds, complaints)


def judge(arena: Arena, rounds: Counter[str], complaints: list[str]) -> None:
    """Compare the items with what the writes themselves noted."""
    cutoff, found = kst(arena.day, 9), arena.seoul.read(arena.day)
    rounds["rounds"] += 1
    rounds[found.status] += 1
    if found.status == "MISSED":
        if arena.seoul.sql("select 1 from collect.sla_snapshot_sources where snapshot_date = %s", arena.day):
            complaints.append(f"{arena.day}: missed, and yet with items")
        return
    rounds["by a writer"] += not str(found.captured_by).startswith("capturer")
    if len(found.items or ()) != arena.size:
        complaints.append(f"{arena.day}: {len(found.items or ())} items")
    noted = {
        row["stream"]: row
        for row in arena.seoul.sql(
            "select stream, count(*) as n, max(at) as last from race_log where at < %s group by stream", cutoff
        )
    }
    after = arena.seoul.one("select count(*) as n from race_log where at >= %s", cutoff)["n"]
    rounds["before"] = sum(row["n"] for row in noted.values())
    rounds["after"] = after
    for item in found.items or ():
        row = noted.get(item.stream, {"n": 0, "last": item.gate_at})
        if (item.fetched_count, item.gate_at) != (row["n"], row["last"]):
            complaints.append(
                f"{arena.day} {item.stream}: {item.fetched_count} of {item.gate_at} in the item,"
                f" {row['n']} of {row['last']} before the cutoff"
            )


def test_many_mornings_end_as_the_model_says(postgres: Cluster, request: pytest.FixtureRequest) -> None:
    """The model of `tests/engine/test_gate_model.py`, at random and for longer."""
    try_mornings(postgres, request.getfixturevalue("_migrated"), examples=max(10, int(SECONDS)), steps=60)


def test_every_settlement_that_was_noted_is_in_the_row(database: str) -> None:
    """The fuzz's own ground: what it compares with is written with the state or not at all."""
    arena = Arena(database, size=1).open()
    try:
        arena.seoul.sql("create table race_log (stream text not null, at timestamptz(6) not null)")
        values = {**arena.seoul.settling(arena.streams[0], "RUNNING", fetched=1), "stream": arena.streams[0].name}
        with connect(database) as connection:
            call_and_commit(connection, WRITE, values)  # type: ignore[arg-type]
            connection.execute(WRITE, values)
            connection.rollback()
        (cycle,) = arena.seoul.cycles()
        (row,) = arena.seoul.sql("select at from race_log")
        assert (cycle["fetched_count"], cycle["gate_at"]) == (1, row["at"])
        assert json.loads(values["facts"]) == {"fetched": 1}
    finally:
        arena.close()
