"""Killed at every commit point: no raw object lost, no row doubled or stale, nobody asked twice, repaired by the next.

Most deaths are an exception that nothing catches, raised exactly at the point; a few are a process killed by the
system, so that nothing at all runs afterwards.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from include.contract import CycleStatus, Mode, Outcome
from include.engine import fetches as ledger
from include.engine import merge, stage
from include.engine.lease import TTL_SECONDS
from include.engine.raw import RawStore
from include.settings import ROOT
from tests.engine.cdn import FACILITIES, name
from tests.engine.desk import MONDAY, STREAM, TUESDAY, WEDNESDAY, Crash, Desk, crashing_at, ny

PENDING, RUNNING, SUCCESS, FAILED = (
    CycleStatus.PENDING,
    CycleStatus.RUNNING,
    CycleStatus.SUCCESS,
    CycleStatus.FAILED,
)

# Every commit point that a slice over six files passes, with how often it has passed it by then.
POINTS = [
    ("claimed", 1),
    ("stored", 1),
    ("stored", 3),
    ("stored", 6),
    ("applied", 1),
    ("applied", 2),
    ("before last apply", 1),
    ("settled", 1),
]


@pytest.fixture
def desk(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """So many rows that two applies come before the last one."""
    monkeypatch.setattr(stage, "MOST_ROWS", 60)
    desk.stream = replace(STREAM, recheck=None)
    for day in (MONDAY, TUESDAY, WEDNESDAY):
        desk.cdn.publish(day, {f"S{number:02}": (number, 0, number + 1) for number in range(40)})
    return desk


def is_whole(desk: Desk, *days: date) -> None:
    """Every row of these days stands there once, as the upstream gave it, and names a fetch that gave it."""
    for day in days:
        for facility in FACILITIES:
            expected = {} if facility == "FNRA" else {f"S{number:02}": str(number) for number in range(40)}
            assert desk.values(facility, day) == expected, (facility, day)
    assert desk.held_days() == set(days)
    assert desk.history() == []
    strangers = desk.sql(
        "select 1 from market.finra_short_volume t left join collect.fetches f using (fetch_id)"
        " where f.fetch_id is null or f.unit <> t.unit or f.applied_at is null"
    )
    assert strangers == []


def nothing_lost(desk: Desk) -> None:
    """Every answer that was recorded can be read, and every object in the store is whole."""
    for row in desk.sql("select sha256 from collect.fetches where sha256 is not null"):
        assert desk.raw.body(bytes(row["sha256"])).read() is not None
    assert list((Path(str(desk.raw.root)) / ".incoming").glob("*")) == []


def invariants(desk: Desk) -> None:
    """What the operations page asserts all the time."""
    assert desk.sql("select 1 from collect.cycles group by stream, mode, slot having count(*) > 1") == []
    assert (
        desk.sql(
            "select 1 from market.finra_short_volume t join collect.cycles c using (cycle_id)"
            " where t.attempt > c.attempt"
        )
        == []
    )
    assert desk.sql("select 1 from collect.fetches where applied_at is not null and sha256 is null") == []


@pytest.mark.parametrize(("point", "times"), POINTS)
def test_a_poll_that_dies_is_repaired_by_the_next_window_without_asking_again(
    desk: Desk, point: str, times: int
) -> None:
    with crashing_at(point, times) as dying, pytest.raises(Crash):
        desk.tick(signal=dying)
    nothing_lost(desk)
    dead = desk.cycle()
    assert dead["cycle_status"] == (SUCCESS if point == "settled" else RUNNING)
    # While its lease lasts nobody works the window; then it has failed, and is not asked for again.
    asked = len(desk.cdn.requests)
    desk.advance(seconds=TTL_SECONDS - 60)
    assert desk.tick() is None
    desk.advance(seconds=120)
    assert desk.tick() is None
    assert len(desk.cdn.requests) == asked
    if point == "settled":
        is_whole(desk, TUESDAY)
        return
    assert (desk.cycle()["cycle_status"], desk.cycle()["failure_reason"]) == (FAILED, "lease expired")
    desk.at(ny(TUESDAY, 19, 16))
    verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (SUCCESS, Outcome.SUCCESS)
    assert Counter(desk.cdn.asked()) == {name(facility, TUESDAY): 1 for facility in FACILITIES}
    is_whole(desk, TUESDAY)
    nothing_lost(desk)
    invariants(desk)
    assert desk.checkpoint() == TUESDAY
    assert [row["kind"] for row in desk.cycles()] == ["scheduled", "make_up"]


@pytest.mark.parametrize(("point", "times"), [*POINTS, ("stored", 9), ("settled", 2)])
def test_a_backfill_that_dies_ends_complete_under_the_same_run_id(desk: Desk, point: str, times: int) -> None:
    request = desk.request(Mode.BACKFILL, MONDAY, TUESDAY, run_id="a-backfill")
    desk.begin(request)
    with crashing_at(point, times) as dying, pytest.raises(Crash):
        desk.work_off(request, signal=dying)
    desk.advance(seconds=TTL_SECONDS + 1)
    words = desk.begin(request)
    assert words.startswith("JOINED")
    verdicts = desk.work_off(request)
    assert all(verdict.status is SUCCESS for verdict in verdicts)
    assert {row["cycle_status"] for row in desk.cycles()} == {SUCCESS}
    expected = {name(facility, day): 1 for facility in FACILITIES for day in (MONDAY, TUESDAY)}
    assert Counter(desk.cdn.asked()) == expected
    is_whole(desk, MONDAY, TUESDAY)
    nothing_lost(desk)
    invariants(desk)


def test_a_chunk_whose_worker_dies_three_times_fails_and_the_run_that_starts_again_completes_it(desk: Desk) -> None:
    request = desk.request(Mode.BACKFILL, TUESDAY, run_id="unlucky")
    desk.begin(request)
    for _ in range(3):
        with crashing_at("stored", 1) as dying, pytest.raises(Crash):
            desk.work_off(request, signal=dying)
        desk.advance(seconds=TTL_SECONDS + 1)
    assert desk.work_off(request) == []
    assert (desk.cycle()["cycle_status"], desk.cycle()["failed_attempts"]) == (FAILED, 3)
    assert desk.begin(request).startswith("REOPENED")
    assert desk.work_off(request)[-1].status is SUCCESS
    is_whole(desk, TUESDAY)
    assert Counter(desk.cdn.asked()).most_common(1)[0][1] == 1


def test_a_replay_that_dies_goes_on_and_changes_nothing(desk: Desk) -> None:
    desk.poll()
    before = desk.rows()
    request = desk.request(Mode.REPLAY, TUESDAY, run_id="a-replay")
    desk.begin(request)
    for point in ("claimed", "applied"):
        with crashing_at(point) as dying, pytest.raises(Crash):
            desk.work_off(request, signal=dying)
        desk.advance(seconds=TTL_SECONDS + 1)
    assert desk.work_off(request)[-1].status is SUCCESS
    assert desk.rows() == before
    is_whole(desk, TUESDAY)


def test_a_death_between_the_object_and_its_row_loses_no_object_and_doubles_none(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(*arguments: Any, **options: Any) -> int:
        raise Crash("between object and row")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "record", record)
        with pytest.raises(Crash):
            desk.tick()
    objects = sorted(Path(str(desk.raw.root)).rglob("*.zst"))
    assert len(objects) == 1
    desk.advance(seconds=TTL_SECONDS + 1)
    desk.tick()
    desk.at(ny(TUESDAY, 19, 16))
    assert desk.poll().status is SUCCESS
    is_whole(desk, TUESDAY)
    assert set(objects) < set(Path(str(desk.raw.root)).rglob("*.zst"))
    # What was never recorded was never asked for, as far as anyone knows: one request more, and one only.
    assert Counter(desk.cdn.asked()) == {name(f, TUESDAY): 2 if f == "CNMS" else 1 for f in FACILITIES}


def test_a_death_in_the_middle_of_an_apply_leaves_no_row_of_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    real = merge.newest

    def newest(*arguments: Any) -> Any:
        real(*arguments)
        raise Crash("in the middle of an apply")

    with monkeypatch.context() as patch:
        patch.setattr(merge, "newest", newest)
        with pytest.raises(Crash):
            desk.tick()
    assert desk.rows() == []
    assert desk.one("select count(*) as n from collect.fetches where applied_at is not null")["n"] == 0
    desk.advance(seconds=TTL_SECONDS + 1)
    desk.tick()
    desk.at(ny(TUESDAY, 19, 16))
    assert desk.poll().status is SUCCESS
    is_whole(desk, TUESDAY)


def test_what_a_dead_poll_stored_is_applied_even_where_the_next_window_is_days_later(desk: Desk) -> None:
    with crashing_at("stored", 4) as dying, pytest.raises(Crash):
        desk.tick(signal=dying)
    desk.at(ny(WEDNESDAY))
    assert desk.poll().status is SUCCESS
    is_whole(desk, TUESDAY, WEDNESDAY)
    assert Counter(desk.cdn.asked(day=TUESDAY)) == {name(facility, TUESDAY): 1 for facility in FACILITIES}


def test_a_worker_that_was_paused_past_its_lease_writes_nothing_when_it_wakes(desk: Desk) -> None:
    """It wakes between the last answer and the apply, while another has taken the chunk over and finished it."""
    request = desk.request(Mode.BACKFILL, TUESDAY, run_id="paused")
    desk.begin(request)
    others: list[Any] = []

    def pause(point: str) -> None:
        if point == "before last apply" and not others:
            others.append(None)
            desk.advance(seconds=TTL_SECONDS + 1)
            others.extend(desk.work_off(request))

    verdict = desk.work_off(request, signal=pause)[0]
    assert verdict.words.startswith("LEASE LOST")
    assert verdict.is_refused
    assert others[-1].status is SUCCESS
    assert desk.cycle()["attempt"] == 2
    is_whole(desk, TUESDAY)


# --- a process that the system kills


CHILD = """
import json, sys
from dataclasses import replace
from datetime import timedelta

settings = json.loads(sys.argv[1])

def here(point):
    print(point, flush=True)
    if point == settings["point"]:
        sys.stdin.read()

from include.contract import Credentials, HostGroup, Mode
from include.engine import cycle, merge
from include.engine.cycle import Worker
from include.engine.lease import holder
from include.engine.raw import RawStore
from include.sources.finra.streams import SHORT_VOLUME_STREAM

real = merge.newest
def newest(*arguments):
    counts = real(*arguments)
    here("in apply")
    return counts
merge.newest = newest

stream = replace(SHORT_VOLUME_STREAM, recheck=None, host_group=HostGroup("finra", timedelta(0)))
credentials = Credentials(base_url="https://cdn.finra.org", sandbox_url=settings["cdn"])
worker = Worker(settings["url"], RawStore(settings["raw"]), credentials, holder(), signal=here)
print(cycle.work(worker, stream, Mode(settings["mode"]), settings["run_id"]).words, flush=True)
"""


def killed(desk: Desk, point: str, mode: Mode, run_id: str | None, number: int = signal.SIGKILL) -> None:
    """Run a worker in a process of its own and kill it when it reaches a point."""
    settings = {
        "point": point,
        "url": desk.url,
        "raw": str(desk.raw.root),
        "cdn": desk.cdn.url,
        "mode": str(mode),
        "run_id": run_id,
    }
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(settings)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        assert child.stdout is not None
        reached = [line.strip() for line in iter(child.stdout.readline, f"{point}\n")]
        assert child.poll() is None, reached
    finally:
        child.send_signal(number)
        child.wait(30)
        assert child.stdin is not None
        child.stdin.close()
        child.stdout.close()  # type: ignore[union-attr]
    # The server notices a client that is gone when it next hears from its socket.
    for row in desk.sql(
        "select pid from pg_stat_activity where datname = current_database() and application_name like 'daybook%%'"
        " and application_name <> 'daybook' and pid <> pg_backend_pid()"
    ):
        desk.sql("select pg_terminate_backend(%s)", row["pid"])


@pytest.mark.parametrize("point", ["claimed", "stored", "in apply", "before last apply"])
def test_a_poll_killed_by_the_system_is_repaired_by_the_next_window(desk: Desk, point: str) -> None:
    desk.open_poll(ny(TUESDAY, 18, 35))
    killed(desk, point, Mode.POLL, None)
    assert desk.rows() == []
    nothing_lost(desk)
    desk.advance(seconds=TTL_SECONDS + 1)
    assert desk.tick() is None
    desk.at(ny(TUESDAY, 19, 16))
    assert desk.poll().status is SUCCESS
    assert Counter(desk.cdn.asked()) == {name(facility, TUESDAY): 1 for facility in FACILITIES}
    is_whole(desk, TUESDAY)
    invariants(desk)


@pytest.mark.parametrize("point", ["stored", "in apply"])
def test_a_backfill_killed_by_the_system_goes_on_under_its_run_id(desk: Desk, point: str) -> None:
    request = desk.request(Mode.BACKFILL, TUESDAY, run_id="killed")
    desk.begin(request)
    killed(desk, point, Mode.BACKFILL, "killed")
    desk.advance(seconds=TTL_SECONDS + 1)
    assert desk.work_off(request)[-1].status is SUCCESS
    assert Counter(desk.cdn.asked()) == {name(facility, TUESDAY): 1 for facility in FACILITIES}
    is_whole(desk, TUESDAY)


# --- storage


def full_disk(monkeypatch: pytest.MonkeyPatch, after: int = 0) -> None:
    """From the given write on, the disk has no space left."""
    writes = 0
    real = os.fsync

    def fsync(handle: int) -> None:
        nonlocal writes
        writes += 1
        if writes > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_full_disk_ends_the_window_at_once_keeps_what_was_had_and_says_so(desk: Desk) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # An object costs four syncs: its bytes, its two folders and the root.
        full_disk(patch, after=8)
        verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (FAILED, Outcome.FAILED_TERMINAL)
    assert "No space left" in verdict.words
    row = desk.cycle()
    assert (row["failure_kind"], row["failure_reason"]) == ("terminal", "answers cannot be stored")
    assert any("Mend the cause (space, access)" in text for text in desk.alerts())
    assert len(desk.rows()) == 80
    nothing_lost(desk)
    assert sorted(desk.pending()) == [f"{facility}/2026-09-15" for facility in sorted(FACILITIES[2:])]
    desk.cdn.forget()
    desk.at(ny(WEDNESDAY))
    assert desk.poll().status is SUCCESS
    is_whole(desk, TUESDAY, WEDNESDAY)
    assert len(desk.cdn.asked(day=TUESDAY)) == 4


def test_a_disk_that_is_full_for_a_backfill_fails_the_chunk_and_the_next_start_completes_it(desk: Desk) -> None:
    request = desk.request(Mode.BACKFILL, TUESDAY, run_id="full")
    with pytest.MonkeyPatch.context() as patch:
        full_disk(patch, after=4)
        verdicts = desk.do(request)
    assert [verdict.status for verdict in verdicts] == [FAILED]
    assert desk.begin(request).startswith("REOPENED")
    assert desk.work_off(request)[-1].status is SUCCESS
    is_whole(desk, TUESDAY)


def test_a_store_that_cannot_be_read_right_now_loses_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(self: RawStore, sha256: bytes) -> Any:
        raise OSError(errno.EIO, "the store does not answer")

    with monkeypatch.context() as patch:
        real = RawStore.open
        # What an answer is may still be told, from its first bytes; reading it whole fails.
        calls = Counter[bytes]()

        def second_time(self: RawStore, sha256: bytes) -> Any:
            calls[sha256] += 1
            return real(self, sha256) if calls[sha256] == 1 else unreachable(self, sha256)

        patch.setattr(RawStore, "open", second_time)
        verdict = desk.poll()
    assert (verdict.status, verdict.outcome) == (FAILED, Outcome.FAILED_TERMINAL)
    assert "does not answer" in verdict.words
    assert desk.quarantine(None) == []
    desk.at(ny(WEDNESDAY))
    assert desk.poll().status is SUCCESS
    is_whole(desk, TUESDAY, WEDNESDAY)


def object_of(desk: Desk, facility: str, day: date = TUESDAY) -> Path:
    row = desk.one(
        "select sha256 from collect.fetches where request_key = %s and sha256 is not null"
        " order by fetch_id desc limit 1",
        f"{facility}/{day}",
    )
    return Path(str(desk.raw.path(bytes(row["sha256"]))))


def damage(path: Path) -> bytes:
    """Change one byte in the middle; gives the bytes as they were."""
    before = path.read_bytes()
    middle = len(before) // 2
    path.write_bytes(before[:middle] + bytes([before[middle] ^ 0xFF]) + before[middle + 1 :])
    return before


@pytest.mark.parametrize("loss", ["damaged", "cut", "missing"])
def test_a_damaged_object_is_found_by_a_replay_and_its_rows_stay(desk: Desk, loss: str) -> None:
    desk.cdn.put("FNYX", TUESDAY, {f"S{number:02}": (number, 0, number + 1) for number in range(40)} | {"X": (1, 0, 2)})
    desk.poll()
    before = desk.rows()
    path = object_of(desk, "FNYX")
    whole = damage(path)
    if loss == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    if loss == "missing":
        path.unlink()
    (verdict,) = desk.replay(TUESDAY)
    assert (verdict.status, verdict.outcome) == (SUCCESS, Outcome.PARTIAL)
    assert path.stem in verdict.words
    assert desk.rows() == before
    (entry,) = desk.quarantine()
    assert (entry["unit"], entry["rule"]) == ("FNYX/2026-09-15", "storage")
    # Restored, it is read again and leaves quarantine.
    path.write_bytes(whole)
    (verdict,) = desk.replay(TUESDAY, run_id="restored")
    assert verdict.outcome is Outcome.SUCCESS
    assert desk.quarantine() == []
    assert desk.rows() == before


def test_a_damaged_older_answer_does_not_take_the_newer_ones_rows_with_it(desk: Desk) -> None:
    desk.stream = STREAM
    desk.poll()
    newer = {f"S{number:02}": (number + 100, 0, number + 101) for number in range(39)}
    desk.cdn.put("CNMS", TUESDAY, newer)
    desk.at(ny(WEDNESDAY))
    older = object_of(desk, "CNMS")
    desk.poll()
    rows, history = desk.rows(), desk.history()
    assert len(history) == 40
    for path in (older, object_of(desk, "CNMS")):
        whole = damage(path)
        (verdict,) = desk.replay(TUESDAY, keys=("CNMS",), run_id=f"damaged-{path.stem[:8]}")
        assert (desk.rows(), desk.history()) == (rows, history)
        path.write_bytes(whole)
    assert verdict.is_partial


def test_a_poll_goes_on_although_what_a_dead_one_stored_is_damaged(desk: Desk) -> None:
    with crashing_at("stored", 2) as dying, pytest.raises(Crash):
        desk.tick(signal=dying)
    damage(object_of(desk, "FNSQ"))
    desk.advance(seconds=TTL_SECONDS + 1)
    desk.tick()
    desk.at(ny(TUESDAY, 19, 16))
    assert desk.poll().outcome is Outcome.SUCCESS
    # It is asked for again; its bytes take their place in the store, and the damaged ones are kept for inspection.
    assert Counter(desk.cdn.asked())[name("FNSQ", TUESDAY)] == 2
    assert len(list(Path(str(desk.raw.root)).rglob("*.damaged-*"))) == 1
    is_whole(desk, TUESDAY)
    nothing_lost(desk)
    assert desk.quarantine() == []
    assert [entry["rule"] for entry in desk.quarantine("resolved")] == ["storage"]
