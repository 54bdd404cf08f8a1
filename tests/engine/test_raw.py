"""The raw store: every answer once, unchanged, whole or not there at all."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.engine.raw import RawObjectDamaged, RawObjectMissing, RawStore

BODY = b"Date|Symbol\r\n20260915|NA\r\n" * 1000


def chunks(body: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RawStore:
    """A local folder, and an object store by its URL."""
    return RawStore(str(tmp_path / "raw") if request.param == "local" else f"memory://raw-{tmp_path.name}")


@pytest.mark.parametrize("body", [b"", b"x", BODY, os.urandom(700_000)], ids=["empty", "byte", "text", "noise"])
@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_what_goes_in_comes_out(store: RawStore, body: bytes, size: int) -> None:
    stored = store.put(chunks(body, size))
    assert stored.sha256 == hashlib.sha256(body).digest()
    assert (stored.size, stored.masked) == (len(body), False)
    assert store.body(stored.sha256).read() == body
    with store.body(stored.sha256).open() as stream:
        assert b"".join(iter(lambda: stream.read(777), b"")) == body


def test_equal_bytes_are_one_object_however_they_came(store: RawStore) -> None:
    assert store.put(chunks(BODY, 10)).sha256 == store.put(chunks(BODY, 5000)).sha256
    assert len(list(store.root.rglob("*.zst"))) == 1


def test_an_object_is_never_written_again(tmp_path: Path) -> None:
    store = RawStore(str(tmp_path))
    path = Path(str(store.path(store.put([BODY]).sha256)))
    before = path.stat()
    store.put([BODY])
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_is_not_there_is_named_with_what_to_do(store: RawStore) -> None:
    with pytest.raises(RawObjectMissing, match="restore the store or point DAYBOOK_RAW_ROOT to it"):
        store.body(bytes(32)).read()


@pytest.mark.parametrize("change", ["flip", "cut", "other", "empty"])
def test_other_bytes_are_never_taken_for_the_right_ones(tmp_path: Path, change: str) -> None:
    store = RawStore(str(tmp_path))
    stored = store.put([os.urandom(5000)])
    path = Path(str(store.path(stored.sha256)))
    whole = path.read_bytes()
    other = Path(str(store.path(store.put([BODY]).sha256))).read_bytes()
    path.write_bytes(
        {
            "flip": whole[:2500] + bytes([whole[2500] ^ 1]) + whole[2501:],
            "cut": whole[:-20],
            "other": other,
            "empty": b"",
        }[change]
    )
    with pytest.raises(RawObjectDamaged, match=stored.sha256.hex()):
        store.body(stored.sha256).read()
    assert path.exists()


def test_a_damaged_object_is_set_aside_when_its_bytes_come_again(store: RawStore) -> None:
    stored = store.put([BODY])
    path = store.path(stored.sha256)
    path.write_bytes(b"nonsense")
    assert store.put([BODY]).sha256 == stored.sha256
    assert store.body(stored.sha256).read() == BODY
    (aside,) = store.root.rglob("*.damaged-*")
    assert aside.read_bytes() == b"nonsense"


def test_a_body_that_breaks_off_leaves_nothing(store: RawStore, tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield BODY
        raise ConnectionError("cut")

    with pytest.raises(ConnectionError):
        store.put(broken())
    assert list(store.root.rglob("*.zst")) == []
    assert list(tmp_path.rglob("put-*")) == []


def test_nothing_is_visible_under_its_name_before_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at in the moment before the bytes are on the disk, and when the writer dies in that moment."""
    store = RawStore(str(tmp_path))
    target = Path(str(store.path(hashlib.sha256(BODY).digest())))
    seen: list[bool] = []

    def fsync(handle: int) -> None:
        seen.append(target.exists())
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(KeyboardInterrupt):
            store.put([BODY])
    assert seen == [False]
    assert not target.exists()
    store.put([BODY])
    assert store.body(hashlib.sha256(BODY).digest()).read() == BODY


def test_what_a_killed_writer_left_stands_in_nobodys_way(tmp_path: Path) -> None:
    store = RawStore(str(tmp_path))
    (tmp_path / ".incoming").mkdir()
    (tmp_path / ".incoming" / "put-abandoned").write_bytes(b"half")
    stored = store.put([BODY])
    assert store.body(stored.sha256).read() == BODY


def test_many_writers_of_the_same_bytes_make_one_object(store: RawStore) -> None:
    barrier = threading.Barrier(8)
    found: list[bytes] = []

    def write() -> None:
        barrier.wait(10)
        found.append(store.put(chunks(BODY, 500)).sha256)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 8
    assert len(list(store.root.rglob("*.zst"))) == 1
    assert store.body(found[0]).read() == BODY


SECRET = "marker-secret-5511"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 17, 18, 19, 100, 10_000])
def test_a_secret_of_ours_is_masked_wherever_chunks_meet(tmp_path: Path, size: int) -> None:
    body = b"a" * 40 + SECRET.encode() + b"b" * 13 + SECRET.encode() * 2 + b"c" * 60 + SECRET.encode()
    store = RawStore(str(tmp_path))
    stored = store.put(chunks(body, size), (SECRET, "another-secret"))
    kept = store.body(stored.sha256).read()
    assert stored.masked
    assert kept == body.replace(SECRET.encode(), b"*" * len(SECRET))
    assert (len(kept), stored.size) == (len(body), len(body))


def test_a_body_without_our_secrets_is_unchanged_and_not_called_masked(tmp_path: Path) -> None:
    store = RawStore(str(tmp_path))
    for secrets in ((), ("",), (SECRET,), (SECRET, "x" * 500)):
        stored = store.put(chunks(BODY, 333), secrets)
        assert (stored.masked, stored.sha256) == (False, hashlib.sha256(BODY).digest())
