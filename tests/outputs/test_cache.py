"""Copies of what is published: fresh or not, completed, repaired. The real client, in both its ways."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import CommitOperationAdd, HfApi

from include.outputs import cache as caches
from include.outputs import held, releases
from include.outputs.cache import Cache, Scope
from include.outputs.freshness import Mode, State
from include.outputs.held import Folder, Note, UnsafeName
from include.outputs.hub import Hub
from include.outputs.reader import Reader
from include.outputs.trouble import HubTrouble
from tests.fixtures_sandbox import MovableClock, RunningSandbox

RELEASE = releases.release("finra/short_volume")
FINRA, README = Scope(RELEASE), "README.md"
DAY = timedelta(days=1)


def month(number: int) -> str:
    return f"finra/short_volume/2026-{number:02}.parquet"


def parquet(text: str, release: str = RELEASE.name) -> bytes:
    """A small file with our mark; other text, other bytes of the same size."""
    sink = pa.BufferOutputStream()
    schema = pa.schema([pa.field("text", pa.string())], {"release": release})
    pq.write_table(pa.table({"text": [text]}, schema=schema), sink)
    return sink.getvalue().to_pybytes()


def publish(hub: Hub, files: Mapping[str, bytes]) -> None:
    api = HfApi(endpoint=hub.endpoint, token=hub.token)
    api.create_repo(hub.repository, repo_type="dataset", private=True, exist_ok=True)
    operations = [CommitOperationAdd(path, content) for path, content in files.items()]
    api.create_commit(hub.repository, operations, commit_message="a test", repo_type="dataset")


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(datetime.now(UTC))


@pytest.fixture
def copies(tmp_path: Path, hub: Hub, clock: MovableClock) -> Cache:
    return Cache(Folder(tmp_path / "copies of ours"), Reader(hub), clock)


@pytest.fixture
def three(transfer: str, hub: Hub) -> dict[str, bytes]:
    """What the Hub has: two large files, known by SHA-256, and a small one, known as git names it."""
    files = {month(8): parquet("eight"), month(9): parquet("nine!"), README: b"# What this is\n"}
    publish(hub, files)
    return files


def asked(running: RunningSandbox) -> Counter[str]:
    """The requests since the last call, by kind."""
    kinds = Counter(one["kind"] for one in running.requests(host="huggingface.co"))
    running.control("DELETE", "log")
    return kinds


def states(done: caches.Done) -> dict[str, State]:
    return {each.path: each.verdict.state for each in done.found}


def content(copies: Cache, path: str) -> bytes:
    return copies.folder.path(path).read_bytes()


def age(copies: Cache, path: str, **parts: float) -> None:
    """Make a file look as if it had been written so long ago."""
    at = (copies.now() - timedelta(**parts)).timestamp()
    os.utime(copies.folder.path(path), (at, at))


def test_every_file_of_every_release_is_known_as_its_own() -> None:
    names = {
        "month": "2026-09",
        "whole": "all",
        "company": "00126380",
        "scan": "report/dividend",
        "set": "sub/2026Q1",
    }
    for release in releases.RELEASES:
        path = release.part(names[release.cut]).path
        assert caches.release_of(path) == release.name
        assert Scope(release).has(path)
        assert path.startswith(Scope(release).below)


# --- completing and looking ---------------------------------------------------------------------------


def test_what_is_published_is_had_byte_for_byte_and_for_a_day_nobody_is_asked_again(
    three: dict[str, bytes], copies: Cache, clock: MovableClock, running: RunningSandbox
) -> None:
    done = copies.get(Scope(), Mode.AUTO)
    assert set(done.fetched) == set(three)
    assert {path: content(copies, path) for path in three} == three
    asked(running)
    clock.advance(hours=23.9)
    assert set(states(copies.get(Scope(), Mode.AUTO)).values()) == {State.FRESH}
    assert set(states(copies.look(list(three), Mode.AUTO)).values()) == {State.FRESH}
    assert asked(running) == {}, "the Hub's word holds for a day"
    clock.advance(hours=0.2)
    assert copies.get(Scope(), Mode.AUTO).fetched == ()
    assert asked(running) == {"repo_info": 1, "tree": 1}


def test_one_file_is_asked_about_by_one_head_that_follows_no_redirect(
    three: dict[str, bytes], copies: Cache, clock: MovableClock, running: RunningSandbox
) -> None:
    copies.get(Scope(), Mode.AUTO)
    asked(running)
    for path in three:
        clock.advance(days=1.5)
        done = copies.get_one(path, Mode.AUTO)
        assert (states(done), done.fetched) == ({path: State.FRESH}, ())
        (only,) = running.requests()
        assert (only["method"], only["kind"]) == ("HEAD", "resolve"), "the storage behind it is not asked"
        asked(running)


def test_a_file_that_changed_on_the_hub_is_stale_and_is_replaced(
    three: dict[str, bytes], copies: Cache, hub: Hub, clock: MovableClock
) -> None:
    copies.get(Scope(), Mode.AUTO)
    publish(hub, {month(9): parquet("NINE!"), README: b"# What that was\n"})
    assert set(states(copies.look([month(9), README], Mode.AUTO)).values()) == {State.FRESH}, "the Hub's word of today"
    found = states(copies.look(list(three), Mode.FORCE_CHECK))
    assert found == {month(8): State.FRESH, month(9): State.STALE, README: State.STALE}
    assert set(copies.get(Scope(), Mode.FORCE_CHECK).fetched) == {month(9), README}
    assert (content(copies, month(9)), content(copies, README)) == (parquet("NINE!"), b"# What that was\n")


def test_a_file_without_a_note_is_compared_and_only_loaded_where_it_differs(
    three: dict[str, bytes], copies: Cache, running: RunningSandbox
) -> None:
    for path, text in ((month(8), three[month(8)]), (month(9), b"something else"), (README, three[README])):
        copies.folder.write(copies.folder.path(path), text)
        age(copies, path, days=8)
    done = copies.get(Scope(), Mode.AUTO)
    assert states(done) == {month(8): State.FRESH, month(9): State.STALE, README: State.FRESH}
    assert (done.fetched, content(copies, month(9))) == ((month(9),), three[month(9)])


def test_a_file_of_our_own_is_trusted_for_seven_days_and_then_compared_like_any_other(
    three: dict[str, bytes], copies: Cache, running: RunningSandbox
) -> None:
    newer = parquet("NEWER")
    copies.folder.write(copies.folder.path(month(9)), newer)
    age(copies, month(9), days=6.9)
    asked(running)
    assert states(copies.get_one(month(9), Mode.AUTO)) == {month(9): State.OWN}
    assert asked(running) == {}
    assert states(copies.get(FINRA, Mode.AUTO))[month(9)] is State.OWN, "a listing takes nothing newer away either"
    assert content(copies, month(9)) == newer
    age(copies, month(9), days=7.1)
    assert copies.get_one(month(9), Mode.AUTO).fetched == (month(9),)
    assert content(copies, month(9)) == three[month(9)]
    copies.folder.write(copies.folder.path(month(8)), parquet("eight", release="krx/prices"))
    assert states(copies.look([month(8)], Mode.LOCAL_ONLY)) == {month(8): State.UNKNOWN}, "it bears another's mark"


def test_local_only_asks_nobody_and_says_how_old_the_hubs_word_is(
    three: dict[str, bytes], copies: Cache, clock: MovableClock, running: RunningSandbox
) -> None:
    copies.get(Scope(), Mode.AUTO)
    asked(running)
    clock.advance(days=29)
    assert set(states(copies.get(Scope(), Mode.LOCAL_ONLY)).values()) == {State.UNCOMPARED}
    clock.advance(days=2)
    assert set(states(copies.get(Scope(), Mode.LOCAL_ONLY)).values()) == {State.OLD}
    copies.folder.path(month(8)).unlink()
    assert states(copies.get_one(month(8), Mode.LOCAL_ONLY)) == {month(8): State.MISSING}
    assert asked(running) == {}


# --- an error is not an answer ------------------------------------------------------------------------

FAULTS: dict[str, dict[str, Any]] = {
    "down": {"reset": True},
    "busy": {"status": 429, "headers": {"RateLimit": '"resolvers";r=0;t=0'}},
    "broken": {"status": 503},
    "maintenance page": {"status": 200, "body": "<html>back soon</html>", "headers": {"ETag": '"5f3c"'}},
    "block page": {"html_block_page": True},
    "no access": {"status": 401, "headers": {"X-Error-Code": "RepoNotFound"}},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_error_is_never_read_as_fresh_nor_as_gone(
    fault: str, hub: Hub, copies: Cache, clock: MovableClock, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    publish(hub, {month(8): parquet("eight"), month(9): parquet("nine!")})
    copies.get(FINRA, Mode.AUTO)
    before = copies.folder.notes([month(9)])
    publish(hub, {month(9): parquet("NINE!")})
    clock.advance(days=2)
    running.fault(match={"host": "huggingface.co"}, n=None, **FAULTS[fault])
    for look in (lambda mode: copies.get_one(month(9), mode), lambda mode: copies.get(FINRA, mode)):
        done = look(Mode.AUTO)
        assert (set(states(done).values()), done.fetched) == ({State.UNCOMPARED}, ())
        assert done.trouble, "why is said"
        with pytest.raises(HubTrouble):
            look(Mode.FORCE_CHECK)
    with pytest.raises(HubTrouble):
        copies.repair(Scope())
    assert content(copies, month(9)) == parquet("nine!")
    assert copies.folder.notes([month(9)]) == before, "no error makes a note younger"
    clock.advance(days=29)
    assert set(states(copies.get(FINRA, Mode.AUTO)).values()) == {State.OLD}
    running.control("DELETE", "faults")
    assert copies.get(FINRA, Mode.AUTO).fetched == (month(9),)


def test_a_file_that_the_hub_has_no_more_is_told_and_kept(
    three: dict[str, bytes], copies: Cache, hub: Hub, clock: MovableClock
) -> None:
    copies.get(Scope(), Mode.AUTO)
    HfApi(endpoint=hub.endpoint, token=hub.token).delete_file(month(8), hub.repository, repo_type="dataset")
    clock.advance(days=2)
    assert states(copies.get_one(month(8), Mode.AUTO)) == {month(8): State.GONE}
    assert states(copies.get(Scope(), Mode.AUTO))[month(8)] is State.GONE
    assert copies.repair(Scope()).of(State.GONE) == (month(8),)
    assert content(copies, month(8)) == three[month(8)]


def test_a_listing_that_breaks_off_after_its_first_page_is_no_listing(
    three: dict[str, bytes], copies: Cache, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    copies.get(Scope(), Mode.AUTO)
    running.switch("hub", "limits", page=2)
    for status, headers in ((503, {}), (404, {"X-Error-Code": "EntryNotFound"})):
        running.fault(match={"kind": "tree", "query_contains": "cursor"}, n=9, status=status, headers=headers)
        with pytest.raises(HubTrouble):
            copies.repair(Scope())
        running.control("DELETE", "faults")
    done = copies.repair(Scope())
    assert set(states(done).values()) == {State.FRESH}


def test_a_name_that_leads_out_of_the_folder_is_refused_and_nothing_is_written(
    tmp_path: Path, copies: Cache, running: RunningSandbox, hub: Hub
) -> None:
    publish(hub, {month(9): parquet("nine!")})
    evil = '[{"type":"file","path":"../../evil.parquet","size":4,"oid":"' + "a" * 40 + '"}]'
    running.fault(match={"kind": "tree"}, n=2, status=200, body=evil, headers={"Content-Type": "application/json"})
    assert "cannot be used" in copies.get(Scope(), Mode.AUTO).trouble
    with pytest.raises(HubTrouble, match="cannot be used"):
        copies.repair(Scope())
    for name in ("../x", "/x", "", "a/../../x", ".daybook/notes/x", "a\\..\\x"):
        with pytest.raises(UnsafeName):
            copies.folder.path(name)
    assert not list(tmp_path.rglob("evil*"))


# --- repairing ----------------------------------------------------------------------------------------


def test_a_repair_loads_only_what_differs_and_a_dry_run_nothing(
    three: dict[str, bytes], copies: Cache, running: RunningSandbox
) -> None:
    copies.get(Scope(), Mode.AUTO)
    rotten, mtime = copies.folder.path(month(9)), copies.folder.path(month(9)).stat().st_mtime_ns
    rotten.write_bytes(bytes(reversed(three[month(9)])))
    os.utime(rotten, ns=(mtime, mtime))
    copies.folder.path(README).unlink()
    copies.folder.write(copies.folder.path("finra/short_volume/mine.txt"), b"notes of mine")
    asked(running)
    would = copies.repair(Scope(), dry_run=True)
    assert asked(running) == {"repo_info": 1, "tree": 1}
    assert (would.of(State.STALE), would.of(State.MISSING), would.fetched) == ((month(9),), (README,), ())
    assert states(copies.look([month(9)], Mode.AUTO)) == {month(9): State.FRESH}, "size and time deceive a look"
    done = copies.repair(Scope())
    assert (set(done.fetched), done.of(State.FRESH)) == ({month(9), README}, (month(8),))
    assert {path: content(copies, path) for path in three} == three
    assert done.of(State.GONE) == ("finra/short_volume/mine.txt",)
    assert set(states(copies.repair(Scope())).values()) == {State.FRESH, State.GONE}


def test_a_repair_of_one_release_leaves_the_others_alone(
    three: dict[str, bytes], copies: Cache, hub: Hub, running: RunningSandbox
) -> None:
    publish(hub, {"krx/prices/2026-09.parquet": parquet("krx", "krx/prices")})
    copies.folder.write(copies.folder.path("krx/prices/2026-09.parquet"), b"other bytes")
    done = copies.repair(FINRA)
    assert set(done.fetched) == {month(8), month(9)}
    assert content(copies, "krx/prices/2026-09.parquet") == b"other bytes"
    copies.folder.path(month(8)).unlink()
    everything = copies.repair(Scope())
    assert set(everything.fetched) == {month(8), "krx/prices/2026-09.parquet"}, "of what is held, what is missing too"


def test_three_downloads_that_fail_in_a_row_end_a_repair_and_the_next_goes_on(
    hub: Hub, copies: Cache, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    files = {month(n): parquet(f"number {n:02}") for n in range(1, 10)}
    publish(hub, files)
    running.fault(match={"kind": "resolve", "path_contains": "2026-0"}, n=None, skip=4, status=503)
    done = copies.repair(FINRA)
    assert (len(done.failed), len(done.fetched) + len(done.left)) == (3, 6)
    running.control("DELETE", "faults")
    assert len(copies.repair(FINRA).fetched) == 9 - len(done.fetched)
    assert {path: content(copies, path) for path in files} == files


def test_bytes_that_are_not_those_announced_take_no_name(
    three: dict[str, bytes], copies: Cache, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies.get(Scope(), Mode.AUTO)
    copies.folder.write(copies.folder.path(README), b"an old one")
    right = Reader.all

    def wrong(reader: Reader, below: str = "") -> Any:
        listing = right(reader, below)
        entry = listing.files[README]
        listing.files[README] = type(entry)(entry.path, entry.size, hashlib.sha1(b"another").hexdigest())
        return listing

    monkeypatch.setattr(Reader, "all", wrong)
    done = copies.repair(Scope())
    assert [path for path, _ in done.failed] == [README]
    assert content(copies, README) == b"an old one"


class Killed(BaseException):
    """What no code of ours expects."""


def dying(left: int, real: Callable[..., Any], die: Callable[[], None]) -> Callable[..., Any]:
    """The same function, which dies in place of its last call."""
    calls = [left]

    def counted(*given: Any, **named: Any) -> Any:
        calls[0] -= 1
        if calls[0] < 0:
            die()
        return real(*given, **named)

    return counted


def dead() -> None:
    raise Killed


def test_whoever_dies_between_two_steps_leaves_whole_files_and_the_next_one_ends_it(
    hub: Hub, copies: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths, files = 0, {month(n): parquet("at first") for n in (8, 9)}
    publish(hub, files)
    copies.get(FINRA, Mode.AUTO)
    for step, left in product(("replace", "fsync"), range(5)):
        old, files = files, {month(n): parquet(f"{step} {left} {n}") for n in (8, 9)}
        publish(hub, files)
        with monkeypatch.context() as patched:
            patched.setattr(held.os, step, dying(left, getattr(os, step), dead))
            try:
                copies.repair(FINRA)
            except Killed:
                deaths += 1
        there = {path: content(copies, path) for path in old}
        assert all(there[path] in (old[path], files[path]) for path in old), "each is whole, the old or the new one"
        assert copies.get(FINRA, Mode.FORCE_CHECK).failed == ()
        assert {path: content(copies, path) for path in files} == files
        done = copies.repair(FINRA)
        assert (set(states(done).values()), done.fetched) == ({State.FRESH}, ())
    assert deaths >= 6


_KILLED = """
import os, signal, sys
from pathlib import Path
from include.outputs import held
from include.outputs.cache import Cache, Scope
from include.outputs.held import Folder
from include.outputs.hub import Hub
from include.outputs.reader import Reader
folder, *hub = sys.argv[1:]
place = held.Folder.place
held.Folder.place = lambda *given: (place(*given), os.kill(os.getpid(), signal.SIGKILL))
Cache(Folder(Path(folder)), Reader(Hub(*hub))).repair(Scope())
"""


def test_a_real_kill_between_a_file_and_its_note_costs_a_comparison(
    hub: Hub, copies: Cache, running: RunningSandbox
) -> None:
    publish(hub, {month(9): parquet("old")})
    copies.get(FINRA, Mode.AUTO)
    publish(hub, {month(9): parquet("new")})
    arguments = [str(copies.folder.root), hub.endpoint, hub.token, hub.repository]
    ran = subprocess.run([sys.executable, "-c", _KILLED, *arguments], check=False, timeout=120)
    assert (ran.returncode, content(copies, month(9))) == (-signal.SIGKILL, parquet("new"))
    asked(running)
    assert copies.get_one(month(9), Mode.FORCE_CHECK).fetched == ()
    assert asked(running) == {"resolve": 1}


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"2026-09.parquet": 1}', b"\xff\xfe", b'{"at": "2026-09-01T00:00:00"}']
)
def test_a_note_or_listing_that_cannot_be_read_is_none(text: bytes, copies: Cache) -> None:
    folder, path = copies.folder, month(9)
    folder.write(folder.path(path), b"four")
    here = folder.held(path)
    assert here is not None
    note = Note("a" * 64, 4, here.mtime_ns, "c" * 40, copies.now())
    folder.write_notes({path: note})
    assert folder.notes([path]) == {path: note}
    folder.keep("listings", "finra/short_volume", {"at": copies.now().isoformat(), "commit": "c", "paths": [path]})
    written = list((folder.root / ".daybook").rglob("*.json"))
    assert len(written) == 2
    for each in written:
        each.write_bytes(text)
    assert folder.notes([path]) == {}
    assert states(copies.get(FINRA, Mode.LOCAL_ONLY)) == {path: State.UNKNOWN}


def test_a_clock_that_was_set_back_makes_nothing_fresh(
    hub: Hub, copies: Cache, clock: MovableClock, running: RunningSandbox
) -> None:
    publish(hub, {month(9): parquet("nine!")})
    copies.get(FINRA, Mode.AUTO)
    clock.advance(days=-3)
    asked(running)
    assert states(copies.get_one(month(9), Mode.LOCAL_ONLY)) == {month(9): State.OLD}
    copies.get(FINRA, Mode.AUTO)
    assert asked(running)["tree"] == 1


def test_thousands_of_files_are_compared_in_few_requests_and_little_time_besides_hashing(
    hub: Hub, copies: Cache, running: RunningSandbox
) -> None:
    files = {f"finra/short_volume/{1000 + n // 12}-{n % 12 + 1:02}.parquet": b"%05d" % n for n in range(1_500)}
    publish(hub, files)
    for path, text in files.items():
        target = copies.folder.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text)
    asked(running)
    hashing = _cpu(lambda: [copies.folder.is_same(entry) for entry in copies.reader.all().files.values()])
    asked(running)
    whole = _cpu(lambda: copies.repair(Scope()))
    print(f"{whole:.2f} s of CPU for 1,500 files, {hashing:.2f} s of them for listing and hashing")
    assert asked(running) == {"repo_info": 1, "tree": 2}
    assert whole - hashing < 1.0, f"{whole:.2f} s of CPU, {hashing:.2f} s of them for listing and hashing"


def _cpu(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before
