"""The gate under fire, everything at once: processes that write, roll back, stall, load in bulk, open windows, vanish
with their leases, freeze and resume, look for what is past due, send alerts and are killed, over many cutoffs.

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
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from include.calendars import calendar, last_instant, window_for
from include.contract import Stream
from include.engine import lookout, snapshot, upkeep, windows
from include.engine.db import Connection, Row, call_and_commit, connect, query
from include.local.postgres import Cluster
from include.ops import slack
from tests.engine.races import Arena
from tests.engine.seoul import DART, kst, stream
from tests.engine.test_gate_model import try_mornings

pytestmark = pytest.mark.chaos

SECONDS = float(os.environ.get("CHAOS_SECONDS", "60"))
WRITERS, CAPTURERS, POLLERS = 10, 2, 2
WRITE = (
    "insert into race_log (stream, at) select %(stream)s, collect.settle(%(cycle)s, %(token)s, %(status)s, %(facts)s)"
)
CONTROL = (
    "insert into race_controls (stream, state, at) select %(name)s, c.state, c.changed_at"
    " from collect.control('stream', %(name)s, %(state)s, 'a race', 'kim') c where c.changed"
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


def step_on(url: str, application: str, step: Callable[[Connection], str | None], told: Counter[str]) -> None:
    """Do one step after another until the referee ends it; what a step gives is counted."""
    connection: Connection | None = None
    while True:
        try:
            if connection is None or connection.closed:
                connection = connect(url, application=application)
            called = phase(connection)
            if called == "over":
                break
            done = step(connection) if called != "upkeep" else None
            told.update([done] if done else [])
            time.sleep(0.01)
        except CUT:
            told["cut"] += 1
            connection = None
        except psycopg.errors.DeadlockDetected:
            told["deadlock"] += 1


def control_on(url: str, n: int, names: Sequence[str], told: Counter[str]) -> None:
    """Freeze and resume streams at random."""
    chance = random.Random(f"control {n}")

    def step(connection: Connection) -> str:
        values = {"name": chance.choice(names), "state": chance.choice(["frozen", "running"])}
        call_and_commit(connection, CONTROL, values)  # type: ignore[arg-type]
        return "controlled"

    step_on(url, "race control", step, told)


def poll_on(url: str, n: int, which: Stream, told: Counter[str]) -> None:
    """Open the window that is due, claim it, and end it, or vanish with its lease."""
    chance = random.Random(f"poll {n}")

    def step(connection: Connection) -> str:
        now = windows.now(connection)
        connection.rollback()
        start = last_instant(which.schedule.cron, which.schedule.timezone, now)
        window = window_for(which, start, calendar(which.calendar))
        values = {**vars(window), "slot": window.slot, "stream": which.name, "kind": "scheduled"}
        call_and_commit(connection, query("lease.open_window"), values)
        wanted = {"stream": which.name, "mode": "poll", "run_id": None, "owner": f"poller {n}", "ttl": "20 seconds"}
        rows = call_and_commit(connection, query("lease.claim"), wanted)
        if not rows or chance.random() < 0.3:
            return "vanished" if rows else "found nothing"
        facts = {"cycle": rows[0]["cycle_id"], "token": rows[0]["lease_token"], "status": "SUCCESS", "facts": "{}"}
        try:
            call_and_commit(connection, query("lease.settle"), facts)
        except psycopg.Error as error:
            # The date went on between claim and settlement, and the lease with it.
            if error.sqlstate != "DBL01":
                raise
            connection.rollback()
            return "lost its lease"
        return "polled"

    step_on(url, "race poller", step, told)


def look_on(url: str, streams: Sequence[Stream], told: Counter[str]) -> None:
    """End leases that are over, and look for what is past due, as upkeep and the watcher do."""

    def step(connection: Connection) -> str:
        connection.rollback()
        upkeep.recover(url)
        lookout.look(url, streams)
        return "looked"

    step_on(url, "race lookout", step, told)


def send_on(url: str, told: Counter[str]) -> None:
    """Send alerts to a Slack that takes most, has no time for some, and refuses a few."""
    chance = random.Random("sender")
    fates = [slack.Fate.TAKEN] * 8 + [slack.Fate.KEPT, slack.Fate.REFUSED, slack.Fate.UNFIT]

    def answer(row: object, connection_id: str) -> slack.Answer:
        fate = chance.choice(fates)
        return slack.Answer(fate, None if fate is slack.Fate.TAKEN else fate.value)

    slack._send = answer

    def step(connection: Connection) -> str | None:
        connection.rollback()
        return "sent" if slack.drain(url, "the sender").sent else None

    step_on(url, "race sender", step, told)


def test_everything_at_once_misplaces_no_write_and_deadlocks_nobody(database: str) -> None:
    arena = Arena(database, size=WRITERS).open()
    seoul = arena.seoul
    seoul.sql("create table race_log (stream text not null, at timestamptz(6) not null)")
    seoul.sql("create index on race_log (stream, at)")
    seoul.sql("create table race_sums (stream text primary key, n bigint not null, last timestamptz(6) not null)")
    seoul.sql("create table race_bulk (n int)")
    seoul.sql("create table race_controls (stream text not null, state text not null, at timestamptz(6) not null)")
    seoul.sql("create table race_phase (phase text not null)")
    seoul.sql("insert into race_phase values ('all')")
    pollers = [stream(f"race.p{n}", DART.schedule.cron, allowance=5) for n in range(POLLERS)]
    windows.declare(database, tuple(pollers))
    names = [each.name for each in arena.streams]
    # Forked, so that they are there at once; each opens a connection of its own.
    fork = multiprocessing.get_context("fork")
    found = fork.Queue()
    jobs: list[tuple[Any, ...]] = [
        (write_on, database, n, {**seoul.settling(each, "RUNNING", fetched=1), "stream": each.name})
        for n, each in enumerate(arena.streams)
    ]
    jobs += [(capture_on, database, n) for n in range(CAPTURERS)]
    jobs += [(poll_on, database, n, each) for n, each in enumerate(pollers)]
    jobs += [(control_on, database, 0, names), (look_on, database, [*arena.streams, *pollers]), (send_on, database)]
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
    known = {
        "bulk",
        "thought better of it",
        "written",
        "captured",
        "controlled",
        "polled",
        "looked",
        "sent",
        "vanished",
    }
    assert set(told) <= {*known, "cut", "found nothing", "lost its lease"}, "no deadlock, and nobody fell"
    assert {what for what in known if not told[what]} == set()
    assert rounds["frozen"] > 0
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
        # Nobody loads anything now; in an hour it would be more than a disk holds.
        seoul.sql("truncate race_bulk")
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
    noted = written_before(arena, cutoff)
    held = {
        row["stream"]: row["state"] == "frozen"
        for row in arena.seoul.sql(
            "select distinct on (stream) stream, state from race_controls where at < %s order by stream, at desc",
            cutoff,
        )
    }
    rounds["before"] = sum(row["n"] for row in noted.values())
    rounds["after"] = arena.seoul.one("select count(*) as n from race_log where at >= %s", cutoff)["n"]
    for item in found.items or ():
        row = noted.get(item.stream, {"n": 0, "last": item.gate_at})
        rounds["frozen"] += item.frozen
        if (item.fetched_count, item.gate_at) != (row["n"], row["last"]):
            complaints.append(
                f"{arena.day} {item.stream}: {item.fetched_count} of {item.gate_at} in the item,"
                f" {row['n']} of {row['last']} before the cutoff"
            )
        if item.frozen != held.get(item.stream, False):
            complaints.append(f"{arena.day} {item.stream}: frozen {item.frozen}, before the cutoff {held}")


def written_before(arena: Arena, cutoff: datetime) -> dict[str, Row]:
    """What the writes before a cutoff noted, stream by stream; all of them are there once it is judged, so they are
    folded into one row each: read in full every time, they would soon be all that the server does."""
    arena.seoul.sql(
        "with gone as (delete from race_log where at < %s returning *)"
        " insert into race_sums as s (stream, n, last) select stream, count(*), max(at) from gone group by stream"
        " on conflict (stream) do update set n = s.n + excluded.n, last = greatest(s.last, excluded.last)",
        cutoff,
    )
    return {row["stream"]: row for row in arena.seoul.sql("select * from race_sums")}


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
