"""What a killed worker was writing goes after a day, and nothing else does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from include.contract import CycleStatus
from include.engine import drafts, housekeeping
from include.engine.drafts import Roots, Swept
from include.engine.files import FileStore
from include.engine.raw import RawStore
from include.settings import ROOT
from tests.engine.desk import Desk

# Writes everywhere at once, says so when everything is half-written, and waits to be killed.
WRITER = """
import os, sys, signal, tempfile
from datetime import UTC, datetime
from include.contract import CycleStatus
from include.engine import drafts, journal
from include.engine.download import Part, Version
from include.engine.files import FileStore
from include.engine.raw import RawStore
from include.outputs.store import OutboxStore

raw, files, outbox = sys.argv[1:]

def journal_too(*_):
    print("writing", flush=True)
    signal.pause()

def chunks():
    yield b"half of an answer"
    FileStore(files).draft("a/b.parquet", made)

def made(file):
    file.write(b"half of a file")
    part = Part(RawStore(raw).workspace(), "edgar.facts.companyfacts")
    part.begin(Version("e", None, 100))
    part.append([b"some"], 100)
    with OutboxStore(outbox).workspace() as folder, tempfile.TemporaryDirectory(prefix="publish-", dir=drafts.here()):
        (folder / "1.parquet").write_bytes(b"half")
        os.fsync = journal_too
        journal._put(RawStore(raw), datetime.now(UTC), [("collect.fetches", {"fetch_id": 1})])

RawStore(raw).put(chunks())
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the system for this test alone."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def roots_in(folder: Path, **other: str) -> Roots:
    return Roots(**{name: str(folder / name) for name in ("raw", "files", "outbox", "cache")} | other)


def files_in(folder: Path) -> set[str]:
    """Every file below a folder, with numbers and random parts of names left out."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def aged(folder: Path) -> None:
    """Let two days pass over all that is there."""
    for path in [folder, *folder.rglob("*")]:
        then = path.lstat().st_mtime - timedelta(days=2).total_seconds()
        os.utime(path, (then, then), follow_symlinks=False)


def never() -> list[str]:
    """No stream has a cycle that is not over."""
    return []


@pytest.mark.parametrize("store", ["a folder", "an object store"])
def test_what_a_killed_writer_left_goes_after_a_day_and_not_before(tmp_path: Path, store: str) -> None:
    away = {"files": "memory://files", "outbox": "memory://outbox"}
    roots = roots_in(tmp_path, **(away if store == "an object store" else {}))
    RawStore(roots.raw).put([b"an answer"])
    before = files_in(tmp_path)
    command = [sys.executable, "-c", WRITER, roots.raw, roots.files, roots.outbox]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        assert drafts.sweep(roots, never) == Swept()
        writer.send_signal(signal.SIGKILL)
    left = files_in(tmp_path) - before
    assert len(left) == 6, left
    assert drafts.sweep(roots, never) == Swept()
    aged(tmp_path)
    swept = drafts.sweep(roots, never)
    assert (swept.removed, swept.trouble) == (7, "")
    assert swept.size > 0
    assert files_in(tmp_path) == before
    assert drafts.sweep(roots, never) == Swept()


def test_what_a_cycle_may_go_on_with_stays_until_it_is_over(desk: Desk, tmp_path: Path) -> None:
    roots = roots_in(tmp_path)
    store, raw = FileStore(roots.files), RawStore(roots.raw)
    store.put_piece(f"{desk.stream.name}-0123", lambda file: None)
    (raw.workspace() / f"{desk.stream.name}.bulk.part").write_bytes(b"some")
    (raw.workspace() / f"{desk.stream.name}.bulk.part.json").write_bytes(b"{}")
    aged(tmp_path / "files")
    aged(tmp_path / "raw")
    desk.declare()
    desk.open_poll(desk.now())
    assert housekeeping.sweep(desk.url, roots) == Swept()
    held = desk.claimed()
    assert housekeeping.sweep(desk.url, roots) == Swept()
    desk.settle(held, CycleStatus.SUCCESS, outcome="success")
    assert housekeeping.sweep(desk.url, roots).removed == 3
    assert not store.has_piece(f"{desk.stream.name}-0123")


def test_what_we_did_not_make_or_what_bears_its_name_stays_however_old(tmp_path: Path) -> None:
    roots = roots_in(tmp_path)
    for name in (
        "raw/.incoming/somebody.txt", "raw/journal/2026/09/16/090000-1.jsonl.zst", "raw/ab/cd/put-ab.zst",
        "files/edgar/made-up.parquet", "files/.making/README",
        "outbox/build-1.parquet", "outbox/pieces/build-2.parquet",
        "cache/get-1/note-1.parquet", f"tmp/daybook-{os.getuid()}/other", "tmp/publish-of-others/file",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"kept")
    before = files_in(tmp_path)
    aged(tmp_path)
    assert drafts.sweep(roots, never) == Swept()
    assert files_in(tmp_path) == before


def test_what_cannot_be_removed_is_told_and_the_rest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = roots_in(tmp_path)
    for name in ("put-1", "put-2"):
        (tmp_path / "raw" / ".incoming").mkdir(parents=True, exist_ok=True)
        (tmp_path / "raw" / ".incoming" / name).write_bytes(b"half")
    aged(tmp_path / "raw")
    unlink: Callable[[Path], None] = Path.unlink

    def stubborn(path: Path) -> None:
        if path.name == "put-1":
            raise PermissionError(13, "Permission denied")
        unlink(path)

    monkeypatch.setattr(Path, "unlink", stubborn)
    assert drafts.sweep(roots, never) == Swept(1, 4, "put-1: Permission denied")


def test_a_folder_that_somebody_else_laid_in_the_way_is_neither_written_nor_swept(
    temporary: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs" / "publish-1"
    theirs.mkdir(parents=True)
    aged(theirs.parent)
    (temporary / f"daybook-{os.getuid()}").symlink_to(theirs.parent)
    assert drafts.sweep(roots_in(tmp_path), never) == Swept()
    assert theirs.exists()
    with pytest.raises(PermissionError, match="is not ours"):
        RawStore("memory://elsewhere").put([b"an answer"])
