"""Files that a stream has made become files of a release, and only while it is switched on."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import psycopg

from include.outputs import releases
from include.outputs.adopt import adopt
from tests.outputs import market

RELEASE = releases.release("edgar/finance")


def make(url: str, root: Path, cik: int, content: bytes, rows: int = 3) -> str:
    """A made file with its row, as the engine leaves it."""
    path = f"edgar/finance/{cik % 100:02}/{cik:010}.parquet"
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)
    with psycopg.connect(url) as connection:
        connection.execute(
            "insert into collect.made_files (stream, unit, path, source_fetch, source_sha256, parser_version, rows, "
            "size, sha256, cycle_id, attempt, made_at) values "
            "('edgar.facts', %s, %s, 9, %s, 1, %s, %s, %s, 1, 1, collect.clock()) on conflict (stream, unit) "
            "do update set rows = excluded.rows, size = excluded.size, sha256 = excluded.sha256",
            (str(cik), path, bytes(32), rows, len(content), hashlib.sha256(content).digest()),
        )
    return path


def test_made_files_are_taken_as_they_are_once_for_each_content(database: str, root: Path, tmp_path: Path) -> None:
    files = tmp_path / "files"
    make(database, files, 320193, b"one")
    make(database, files, 1318605, b"other")
    make(database, files, 7, b"nothing", rows=0)

    def taken() -> tuple[str, ...]:
        return adopt(database, RELEASE, str(files), str(root), "a run").queued

    assert taken() == ("0001318605", "0000320193")
    assert taken() == ()
    make(database, files, 320193, b"changed")
    assert taken() == ("0000320193",)
    make(database, files, 1318605, b"", rows=0)
    assert taken() == ("0001318605",)
    found = [(file["path"], file["state"], file["rows"], file["newest_fetch"]) for file in market.files(database)]
    assert found == [
        ("edgar/finance/05/0001318605.parquet", "replaced", 3, 9),
        ("edgar/finance/93/0000320193.parquet", "replaced", 3, 9),
        ("edgar/finance/93/0000320193.parquet", "waiting", 3, 9),
        ("edgar/finance/05/0001318605.parquet", "waiting", 0, 9),
    ]
    assert (root / f"{hashlib.sha256(b'changed').hexdigest()}.parquet").read_bytes() == b"changed"


def test_a_file_that_is_being_made_anew_is_left_for_the_next_time(database: str, root: Path, tmp_path: Path) -> None:
    files = tmp_path / "files"
    path = make(database, files, 320193, b"one")
    (files / path).write_bytes(b"newer than its row")
    built = adopt(database, RELEASE, str(files), str(root), "a run")
    assert (built.queued, built.overtaken) == ((), ("0000320193",))
    (files / path).unlink()
    ((company, reason),) = adopt(database, RELEASE, str(files), str(root), "a run").failed
    assert (company, "replay its stream" in reason) == ("0000320193", True)
    assert market.files(database) == []


def test_it_is_off_until_somebody_switches_it_on() -> None:
    assert not RELEASE.is_on
    assert RELEASE not in releases.made()
    assert RELEASE.is_bulk
    assert replace(RELEASE, is_on=True).part("0000320193").path == "edgar/finance/93/0000320193.parquet"
