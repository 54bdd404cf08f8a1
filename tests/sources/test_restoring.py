"""A database is lost and the raw store kept: what is told again is what was there, to the byte of published files."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from include import collecting, registry
from include.contract import HostGroup, Mode, Stream
from include.engine import cycle, journal, restoring, windows
from include.outputs import outbox, releases
from tests.fixtures_sandbox import Start
from tests.sources.places import Place

TUESDAY, THURSDAY = date(2026, 9, 15), date(2026, 9, 17)
LIGHT = ("finra.short_volume", "kind.companies", "krx.prices")
EXACT = ("sent_at", "fetch_id")


def quick(name: str) -> Stream:
    stream = registry.stream(name)
    return replace(stream, host_group=HostGroup(stream.host_group.name, timedelta(0)))


def collect(here: Place, stream: Stream, *, past: bool) -> None:
    """What is due now, and a range of the past where it is asked for."""
    windows.declare(here.url, (stream,))
    windows.open_due(here.url, stream)
    for _ in range(60):
        if cycle.work(here.worker(stream), stream, Mode.POLL, None) is None:
            break
    if past and not stream.listing:
        here.do(stream, Mode.BACKFILL, TUESDAY, THURSDAY)


def parquet(here: Place, root: Path) -> dict[str, str]:
    """Path → hash of every file that releases make of the tables."""
    root.mkdir(exist_ok=True)
    tables = {table.qualified: table for stream in registry.streams() for table in stream.tables}
    for release in releases.RELEASES:
        if release.cut in ("month", "whole") and (release.shape or release.table in tables):
            outbox.build(here.url, release, release.shape or tables[release.table], str(root), "a test")
    rows = here.sql("select path, encode(sha256, 'hex') as hash from publish.files where state <> 'replaced'")
    return {row["path"]: row["hash"] for row in rows}


def restore(there: Place, monkeypatch: pytest.MonkeyPatch) -> int:
    """What `cli restore` does, told where to do it."""
    monkeypatch.setattr(collecting, "warehouse", lambda: there.url)
    monkeypatch.setenv("DAYBOOK_RAW_ROOT", str(there.raw.root))
    monkeypatch.setenv("DAYBOOK_FILES_ROOT", f"{there.raw.root}-files")
    return collecting.restore(argparse.Namespace(who="a test"))


def lose_and_restore(
    streams: list[Stream],
    make: Callable[[], Place],
    sandbox: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    past: bool,
) -> tuple[Place, Place]:
    here, there = make(), make()
    here.at(datetime(2026, 9, 18, 1, 30, tzinfo=UTC))
    running = sandbox(clock=here.now, companies=12)
    here.sandbox_url = running.url
    for stream in streams:
        collect(here, stream, past=past)
    numbers = here.sql("select count(*) as fetches, sum(size) as bytes from collect.fetches")[0]
    assert journal.write(here.url, here.raw) == numbers["fetches"] > 0
    assert journal.write(here.url, here.raw) == 0
    there.raw, asked = here.raw, len(running.requests())
    there.at(here.now())
    wall, cpu = time.monotonic(), time.process_time()
    assert restore(there, monkeypatch) == 0
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    assert len(running.requests()) == asked
    seen = 0
    for stream in streams:
        tables = here.tables(stream, *EXACT)
        seen += any(tables.values())
        assert there.tables(stream, *EXACT) == tables, stream.name
    items = "select * from collect.items order by stream, item_key"
    assert there.sql(items) == here.sql(items)
    files = parquet(here, tmp_path / "before")
    assert files
    assert parquet(there, tmp_path / "after") == files
    assert seen > len(streams) // 2
    print(
        f"{len(streams)} streams, {seen} with rows, {numbers['fetches']} requests, {numbers['bytes']} bytes, "
        f"{len(files)} files; told again in {wall:.1f} s, {cpu:.1f} s of CPU here"
    )
    return here, there


def test_tables_and_files_are_what_they_were_when_the_database_was_lost(
    place: Callable[[], Place],
    sandbox: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, there = lose_and_restore([quick(name) for name in LIGHT], place, sandbox, tmp_path, monkeypatch, past=True)
    # A database that knows requests of its own is left alone; new requests get numbers of their own.
    with pytest.raises(restoring.RestoreRefused, match="nothing was changed"):
        restoring.load(there.url, there.raw)
    # A run that was over stays over, and new requests get numbers behind the old ones.
    runs = "select run_id, outcome from collect.job_runs where mode = 'backfill' order by 1"
    assert [row["outcome"] for row in here.sql(runs)] == ["success"] * 2
    assert there.sql(runs) == here.sql(runs)
    behind = "select nextval(pg_get_serial_sequence('collect.fetches', 'fetch_id')) as number"
    assert there.sql(behind) == here.sql(behind)


def test_bytes_that_are_gone_are_asked_for_again_and_a_late_transaction_is_not_passed_over(
    place: Callable[[], Place],
    sandbox: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, there = place(), place()
    here.at(datetime(2026, 9, 18, 1, 30, tzinfo=UTC))
    here.sandbox_url = sandbox(clock=here.now, companies=5).url
    stream = quick(LIGHT[0])
    windows.declare(here.url, (stream,))
    here.do(stream, Mode.BACKFILL, THURSDAY, THURSDAY)
    # Two requests are recorded; the earlier number commits after the journal was written.
    copy = (
        "insert into collect.fetches (stream, cycle_id, attempt, request_key, unit, sent_at, received_at, "
        "answer_class) values ('finra.short_volume', 1, 1, %s, %s, collect.clock(), collect.clock(), 'absent') "
        "returning fetch_id"
    )
    with psycopg.connect(here.url) as late:
        row = late.execute(copy, ("late", "late")).fetchone()
        assert row is not None
        here.sql(copy, "early", "early")
        journal.write(here.url, here.raw)
        assert [gap["fetch_id"] for gap in here.sql("select fetch_id from collect.journal_gaps")] == [row[0]]
    assert journal.write(here.url, here.raw) == 1
    assert here.sql("select * from collect.journal_gaps") == []

    lost = here.sql("select sha256, unit from collect.fetches where sha256 is not null order by size desc limit 1")[0]
    os.unlink(str(here.raw.path(lost["sha256"])))
    there.raw = here.raw
    for _ in range(2):
        # Who was killed while reading it reads it once more.
        told = restoring.load(there.url, there.raw)
        assert (told.missing, told.unnamed) == (1, 0)
    assert journal.write(there.url, there.raw) == 0
    numbers = "select fetch_id, request_key from collect.fetches order by 1"
    assert there.sql(numbers) == here.sql(numbers)
    gone = there.sql("select answer_class, error from collect.fetches where unit = %s", lost["unit"])[0]
    assert (gone["answer_class"], "raw store" in gone["error"]) == ("error", True)


def test_a_damaged_journal_is_named_and_a_store_without_one_refused(place: Callable[[], Place]) -> None:
    here = place()
    with pytest.raises(restoring.RestoreRefused, match="no journal"):
        restoring.load(here.url, here.raw)
    # Windows were opened by whoever started the stack too early: their numbers would be those of the journal.
    stream = quick(LIGHT[0])
    windows.declare(here.url, (stream,))
    windows.open_due(here.url, stream)
    with pytest.raises(restoring.RestoreRefused, match="windows or runs of its own"):
        restoring.load(here.url, here.raw)
    here.sql(
        "insert into collect.calendar_exceptions (calendar, day, state, reason, created_at, updated_at) "
        "values ('XKRX', '2026-06-03', 'closed', 'election', collect.clock(), collect.clock())"
    )
    journal.write(here.url, here.raw)
    (file,) = journal.files(here.raw)
    whole: Any = file.read_bytes()
    file.write_bytes(whole[:-3])
    again = place()
    with pytest.raises(journal.JournalUnreadable, match=file.name):
        restoring.load(again.url, here.raw)
    file.write_bytes(whole)
    # What is no object is nobody's.
    stray = here.raw.root / "ab" / "cd" / "notes.zst"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"of somebody")
    told = restoring.load(again.url, here.raw)
    assert (told.fetches, told.unnamed) == (0, 0)
    assert again.sql("select reason from collect.calendar_exceptions")[0]["reason"] == "election"


def test_who_reads_again_needs_no_connection() -> None:
    for source in registry.SOURCES:
        assert collecting.reach(source, asks=False).base_url == source.hosts[0]
