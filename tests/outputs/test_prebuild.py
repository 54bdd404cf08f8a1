"""Files over all companies: only what changed is read again, and the result does not tell how it was built."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from include.outputs import card, gate, prebuild, releases
from include.outputs.hub import Hub, download
from include.outputs.prebuild import Prebuilt
from tests.fixtures_sandbox import RunningSandbox
from tests.outputs import companies, market
from tests.outputs.publishing import on_the_hub, rows, run


def build(url: str, root: Path, **more: Any) -> Prebuilt:
    return prebuild.prebuild(url, companies.RELEASE, companies.scans, str(root), "a run", **more)


def newest(url: str) -> dict[str, dict[str, Any]]:
    return {file["path"]: file for file in market.files(url) if file["state"] == "waiting"}


@pytest.fixture
def warehouse(database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """450 companies in batches of 200, and a release over them."""
    monkeypatch.setattr(releases, "RELEASES", (companies.RELEASE,))
    companies.make(database)
    companies.fill(database, 450)
    return database


def test_only_companies_that_changed_are_read_again_and_the_files_are_those_of_a_build_from_nothing(
    warehouse: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prebuild.parquet, "ROWS_PER_GROUP", 1_000)
    assert build(warehouse, root) == Prebuilt(("all", "report/x"), (), 450, 450)
    assert build(warehouse, root) == Prebuilt((), ("all", "report/x"), 0, 450)
    table = pq.read_table(root / f"{newest(warehouse)['toy/scan/all.parquet']['sha256'].hex()}.parquet")
    assert table.num_rows == 450 * 6
    assert table.column("corp_code").to_pylist() == sorted(table.column("corp_code").to_pylist())

    companies.change(warehouse, 7)
    companies.change(warehouse, 433)
    companies.remove(warehouse, 300)
    assert build(warehouse, root) == Prebuilt(("all", "report/x"), (), 3, 450)
    step_by_step = newest(warehouse)
    file = pq.read_metadata(root / f"{step_by_step['toy/scan/all.parquet']['sha256'].hex()}.parquet")
    assert (file.num_rows, [file.row_group(n).num_rows for n in range(3)]) == (449 * 6, [1_000, 1_000, 694])
    with psycopg.connect(warehouse) as connection:
        connection.execute("delete from publish.files")
        connection.execute("delete from publish.pieces")
    assert build(warehouse, tmp_path / "elsewhere").companies == 450
    for path, file in newest(warehouse).items():
        assert (file["content_hash"], file["sha256"]) == (
            step_by_step[path]["content_hash"], step_by_step[path]["sha256"],
        )  # fmt: skip
        assert file["newest_fetch"] == 4506


def test_a_change_that_touches_one_part_makes_one_file(warehouse: str, root: Path) -> None:
    build(warehouse, root)
    companies.change(warehouse, 7)
    # Its second row is none of account x.
    assert build(warehouse, root) == Prebuilt(("all",), ("report/x",), 1, 450)


def test_a_build_that_was_killed_goes_on_where_it_ended(
    warehouse: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = prebuild._Work._keep

    def dying(self: Any, scan: Any, made: Any) -> None:
        keep(self, scan, made)
        if min(made) > "00100200":
            raise KeyboardInterrupt

    monkeypatch.setattr(prebuild._Work, "_keep", dying)
    with pytest.raises(KeyboardInterrupt):
        build(warehouse, root)
    assert market.files(warehouse) == []
    monkeypatch.undo()
    monkeypatch.setattr(releases, "RELEASES", (companies.RELEASE,))
    again = build(warehouse, root)
    assert (again.queued, again.companies) == (("all", "report/x"), 250)


@pytest.mark.parametrize("damage", ["missing", "other bytes"])
def test_pieces_that_are_lost_or_damaged_are_read_again_and_never_taken_for_nothing(
    warehouse: str, root: Path, damage: str
) -> None:
    build(warehouse, root)
    before = {path: file["content_hash"] for path, file in newest(warehouse).items()}
    for piece in (root / "pieces").glob("*.parquet"):
        piece.unlink() if damage == "missing" else piece.write_bytes(b"other bytes")
    companies.change(warehouse, 7)
    assert build(warehouse, root).companies == 450
    companies.change(warehouse, 7, "2.142857142857142857142857142857")
    build(warehouse, root)
    assert newest(warehouse)["toy/scan/report/x.parquet"]["content_hash"] == before["toy/scan/report/x.parquet"]
    assert newest(warehouse)["toy/scan/all.parquet"]["rows"] == 450 * 6


def test_all_files_of_a_prebuild_go_in_one_commit_with_their_manifest_or_none_does(
    warehouse: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    build(warehouse, root)
    assert run(warehouse, hub, root).files == 2
    assert on_the_hub(running) == 1
    told = json.loads(download(hub, card.manifest_path("toy/scan")))
    assert [line["path"] for line in told["listed"]] == ["toy/scan/all.parquet", "toy/scan/report/x.parquet"]
    for line in told["listed"]:
        assert hashlib.sha256(download(hub, line["path"])).hexdigest() == line["sha256"]

    for company in range(1, 200):
        companies.remove(warehouse, company)
    build(warehouse, root)
    with psycopg.connect(warehouse) as connection:
        # Of one of them as many as before are held to be right.
        connection.execute("update publish.files set rows = 1 where path like '%x.parquet' and state = 'published'")
    done = run(warehouse, hub, root)
    assert (done.files, done.waiting) == (0, 0)
    assert "goes with another" in dict(done.refused)["toy/scan/report/x.parquet"]
    assert len(gate.held(warehouse)) == 2
    gate.let(warehouse, "toy/scan/all.parquet", who="kim", why="they are gone")
    assert run(warehouse, hub, root).files == 2
    assert on_the_hub(running) == 2
    let = rows(warehouse, "select path, state from publish.files where let_by = 'kim' order by path")
    assert [(row["path"], row["state"]) for row in let] == [
        ("toy/scan/all.parquet", "published"),
        ("toy/scan/report/x.parquet", "published"),
    ]
