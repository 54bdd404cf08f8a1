"""The outbox loses nothing, doubles nothing and goes from older to newer only."""

from __future__ import annotations

import hashlib
import threading
from datetime import date
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest

from include.outputs import outbox, parquet
from include.outputs.outbox import Built, build, stale_parts
from include.outputs.releases import Release, ReleaseError, Terms
from include.outputs.store import FileUnfit, OutboxStore
from tests.outputs import market

MONTH = "2026-09"


def run(url: str, root: Path | str, source_run: str = "a run") -> Built:
    return build(url, market.RELEASE, market.TABLE, str(root), source_run)


def kept(root: Path) -> set[str]:
    return {path.name for path in root.glob("*.parquet*")}


def test_a_changed_month_becomes_one_waiting_file(database: str, root: Path) -> None:
    market.save(database, market.month(MONTH), fetch=42)
    assert run(database, root).queued == (MONTH,)
    (file,) = market.files(database)
    assert file["path"] == "finra/short_volume/2026-09.parquet"
    assert (file["state"], file["rows"], file["newest_fetch"]) == ("waiting", 10, 42)
    assert (file["source_run"], file["commit_id"]) == ("a run", None)
    path = root / f"{file['sha256'].hex()}.parquet"
    assert hashlib.sha256(path.read_bytes()).digest() == file["sha256"]
    assert (path.stat().st_size, pq.read_metadata(path).num_rows) == (file["size"], 10)
    assert stale_parts(database, market.RELEASE) == []


def test_unchanged_rows_make_no_new_file(database: str, root: Path) -> None:
    market.save(database, market.month(MONTH))
    run(database, root)
    before = kept(root)
    market.touch(database, MONTH)
    assert run(database, root).unchanged == (MONTH,)
    assert run(database, root) == Built("finra/short_volume")
    assert market.states(database) == [(MONTH, "waiting")]
    assert kept(root) == before


def test_a_new_way_of_packing_the_same_rows_makes_no_new_file(
    database: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    market.save(database, market.month(MONTH))
    run(database, root)
    before = kept(root)
    monkeypatch.setattr(parquet, "_COMPRESSION_LEVEL", 1)
    market.touch(database, MONTH)
    assert run(database, root).unchanged == (MONTH,)
    assert kept(root) == before


def test_a_newer_file_replaces_an_unsent_older_one(database: str, root: Path) -> None:
    market.save(database, market.month(MONTH))
    run(database, root)
    market.save(database, market.month(MONTH, symbols=6))
    run(database, root)
    assert market.states(database) == [(MONTH, "replaced"), (MONTH, "waiting")]
    assert len(kept(root)) == 2


def test_a_file_of_everything_is_built_once_whatever_months_of_its_table_changed(database: str, root: Path) -> None:
    whole = Release("test/whole", "Whole", market.RELEASE.table, "test/whole.parquet", "whole", Terms("None"))

    def behind() -> list[str]:
        with psycopg.connect(database) as connection:
            return [row[0] for row in connection.execute("select partition from publish.behind order by 1")]

    market.save(database, [*market.month("2026-08"), *market.month(MONTH)])
    assert behind() == ["2026-08", MONTH]
    assert build(database, whole, market.TABLE, str(root), "a run").queued == ("all",)
    assert stale_parts(database, whole) == behind() == []
    (file,) = market.files(database)
    assert (file["path"], file["rows"]) == ("test/whole.parquet", 20)
    market.save(database, market.month("2026-08", symbols=6))
    assert (stale_parts(database, whole), behind()) == (["all"], ["2026-08", MONTH])
    assert build(database, whole, market.TABLE, str(root), "a run").queued == ("all",)
    assert behind() == []


def test_only_the_months_that_changed_are_built_newest_first(database: str, root: Path) -> None:
    market.save(database, [*market.month("2026-08"), *market.month(MONTH), *market.month("2026-07")])
    assert run(database, root).queued == (MONTH, "2026-08", "2026-07")
    market.save(database, market.month("2026-08", symbols=6))
    assert run(database, root).queued == ("2026-08",)


def test_a_month_whose_rows_were_all_withdrawn_becomes_a_file_without_rows(database: str, root: Path) -> None:
    market.save(database, market.month(MONTH))
    run(database, root)
    market.empty(database, MONTH)
    assert run(database, root).queued == (MONTH,)
    assert [file["rows"] for file in market.files(database)] == [10, 0]


def test_a_month_that_never_had_a_file_and_has_no_rows_makes_none(database: str, root: Path) -> None:
    market.touch(database, MONTH)
    assert run(database, root).unchanged == (MONTH,)
    assert market.files(database) == []


def test_the_database_itself_says_which_parts_are_behind(database: str, root: Path) -> None:
    def behind() -> list[tuple[str, str]]:
        with psycopg.connect(database) as connection:
            return connection.execute("select table_name, partition from publish.behind").fetchall()

    market.save(database, market.month(MONTH))
    assert behind() == [(market.TABLE.qualified, MONTH)]
    run(database, root)
    assert behind() == []
    market.touch(database, MONTH)
    assert behind() == [(market.TABLE.qualified, MONTH)]
    run(database, root)
    assert behind() == []


# --- crashes ------------------------------------------------------------------------------------------


class Killed(BaseException):
    """What a kill looks like from inside."""


@pytest.mark.parametrize("place", ["before the file", "between file and row", "before the commit of the row"])
def test_a_crash_between_file_and_row_loses_nothing_and_doubles_nothing(
    database: str, root: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    market.save(database, market.month(MONTH))
    with monkeypatch.context() as patched:
        if place == "before the file":
            patched.setattr(OutboxStore, "place", _killed)
        elif place == "between file and row":
            patched.setattr(outbox, "_record", _killed)
        else:
            whole = psycopg.Connection.execute

            def dying(self: psycopg.Connection, statement: object, *more: object, **named: object) -> object:
                done = whole(self, statement, *more, **named)  # type: ignore[arg-type, call-overload]
                if "into publish.files" in str(statement):
                    raise Killed
                return done

            patched.setattr(psycopg.Connection, "execute", dying)
        with pytest.raises(Killed):
            run(database, root)
    assert market.files(database) == []
    assert stale_parts(database, market.RELEASE) == [MONTH]
    assert run(database, root).queued == (MONTH,)
    assert market.states(database) == [(MONTH, "waiting")]
    assert len(kept(root)) == 1
    assert list((root / ".building").iterdir()) == []


def _killed(*anything: object, **named: object) -> None:
    raise Killed


def test_a_full_disk_loses_nothing(database: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    market.save(database, market.month(MONTH))

    def full(*anything: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", full)
        with pytest.raises(OSError, match="No space"):
            run(database, root)
    assert market.files(database) == []
    assert run(database, root).queued == (MONTH,)


def test_a_file_of_the_outbox_is_never_written_over(database: str, root: Path) -> None:
    market.save(database, market.month(MONTH))
    run(database, root)
    (file,) = root.glob("*.parquet")
    before = file.stat().st_mtime_ns
    with psycopg.connect(database) as connection:
        connection.execute("delete from publish.files")
        connection.execute("delete from publish.built")
    assert run(database, root).queued == (MONTH,)
    assert file.stat().st_mtime_ns == before


def test_a_damaged_file_is_moved_aside_and_made_again(database: str, root: Path) -> None:
    market.save(database, market.month(MONTH))
    run(database, root)
    (file,) = root.glob("*.parquet")
    file.write_bytes(b"half")
    with psycopg.connect(database) as connection:
        connection.execute("delete from publish.files")
        connection.execute("delete from publish.built")
    run(database, root)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == file.stem
    assert (root / f"{file.name}.damaged-1").read_bytes() == b"half"


# --- several builders ---------------------------------------------------------------------------------


def test_two_builders_of_the_same_change_make_one_row(
    database: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    market.save(database, market.month(MONTH))
    both = threading.Barrier(2)
    record = outbox._record

    def together(*anything: object, **named: object) -> object:
        both.wait(20)
        return record(*anything, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(outbox, "_record", together)
    found: list[Built] = []
    builders = [threading.Thread(target=lambda: found.append(run(database, root))) for _ in range(2)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join(60)
    assert sorted((built.queued, built.overtaken) for built in found) == [((), (MONTH,)), ((MONTH,), ())]
    assert market.states(database) == [(MONTH, "waiting")]


def test_an_older_snapshot_never_replaces_a_newer_file(
    database: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    market.save(database, market.month(MONTH))
    record = outbox._record
    newer: list[Built] = []

    def late(*anything: object, **named: object) -> object:
        monkeypatch.setattr(outbox, "_record", record)
        market.save(database, market.month(MONTH, symbols=9))
        newer.append(run(database, root, "newer"))
        return record(*anything, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(outbox, "_record", late)
    assert run(database, root, "older").overtaken == (MONTH,)
    assert newer[0].queued == (MONTH,)
    assert [(file["source_run"], file["state"], file["rows"]) for file in market.files(database)] == [
        ("newer", "waiting", 18)
    ]


def test_a_change_during_the_build_leaves_the_month_stale(
    database: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    market.save(database, market.month(MONTH))
    write = outbox._write

    def slow(*anything: object) -> object:
        done = write(*anything)  # type: ignore[arg-type]
        market.save(database, market.month(MONTH, symbols=9))
        return done

    with monkeypatch.context() as patched:
        patched.setattr(outbox, "_write", slow)
        assert run(database, root).queued == (MONTH,)
    assert stale_parts(database, market.RELEASE) == [MONTH]
    run(database, root)
    assert [(file["state"], file["rows"]) for file in market.files(database)] == [("replaced", 10), ("waiting", 18)]


def test_what_was_compared_with_another_newest_file_is_built_again(
    database: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    market.save(database, market.month(MONTH))
    run(database, root)
    (first,) = market.files(database)
    market.touch(database, MONTH)
    compare = outbox._newest
    monkeypatch.setattr(outbox, "_newest", lambda *_: (monkeypatch.undo(), first["content_hash"])[1])
    with psycopg.connect(database) as connection:
        connection.execute("update publish.files set content_hash = decode(repeat('00', 32), 'hex')")
    assert run(database, root).queued == (MONTH,)
    assert outbox._newest is compare
    assert market.states(database) == [(MONTH, "replaced"), (MONTH, "waiting")]


# --- bounds and refusals ------------------------------------------------------------------------------


def test_a_build_ends_between_parts_when_told_and_leaves_the_rest_stale(
    database: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    market.save(database, [*market.month("2026-08"), *market.month(MONTH)])
    stop = threading.Event()
    record = outbox._record

    def told(*anything: object, **named: object) -> object:
        stop.set()
        return record(*anything, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(outbox, "_record", told)
    built = build(database, market.RELEASE, market.TABLE, str(root), "a run", stop=stop)
    assert (built.queued, built.left) == ((MONTH,), ("2026-08",))
    assert stale_parts(database, market.RELEASE) == ["2026-08"]


def test_a_part_that_cannot_be_built_does_not_stop_the_others(database: str, root: Path) -> None:
    market.save(database, market.month(MONTH))
    market.touch(database, "nonsense")
    built = run(database, root)
    assert built.queued == (MONTH,)
    assert built.failed[0][0] == "nonsense"
    assert "has no part" in built.failed[0][1]


def test_a_release_is_built_from_its_own_table_alone(database: str, root: Path) -> None:
    other = type(market.TABLE)("market", "other", "Another", market.TABLE.columns, market.TABLE.key, "session_date")
    with pytest.raises(ReleaseError, match="is made from"):
        build(database, market.RELEASE, other, str(root), "a run")


def test_an_outbox_in_an_object_store_holds_the_same_files(database: str, tmp_path: Path) -> None:
    market.save(database, market.month(MONTH))
    run(database, "memory://outbox")
    (file,) = market.files(database)
    store = OutboxStore("memory://outbox")
    copy = store.checked_copy(file["sha256"], tmp_path)
    assert hashlib.sha256(copy.read_bytes()).digest() == file["sha256"]
    with pytest.raises(FileUnfit, match="missing"):
        store.checked_copy(bytes(32), tmp_path)


# --- ways in which others lost what was published ------------------------------------------------------


def test_a_change_in_the_last_row_alone_is_a_new_file_though_its_beginning_and_size_are_the_same(
    database: str, root: Path
) -> None:
    rows = [market.row(date(2026, 9, 1), f"SYM{n:06d}", f"{hash_like(n)}.000001") for n in range(6_000)]
    market.save(database, rows)
    run(database, root)
    (first,) = market.files(database)
    market.save(database, [market.row(date(2026, 9, 1), "SYM005999", f"{hash_like(5_998)}.000001")])
    assert run(database, root).queued == (MONTH,)
    second = market.files(database)[-1]
    one, other = ((root / f"{each['sha256'].hex()}.parquet").read_bytes() for each in (first, second))
    assert len(one) > 1 << 16
    assert one[: 1 << 13] == other[: 1 << 13]
    assert first["content_hash"] != second["content_hash"]


def hash_like(number: int) -> int:
    """A number without a pattern, so that a file of them does not pack to nothing."""
    return int.from_bytes(hashlib.sha256(str(number).encode()).digest()[:4], "big")


def test_a_correction_takes_the_place_of_the_number_before_and_never_stands_beside_it(
    database: str, root: Path
) -> None:
    market.save(database, [market.row(date(2026, 9, 1), "ABC", "10")])
    run(database, root)
    market.save(database, [market.row(date(2026, 9, 1), "ABC", "11")])
    run(database, root)
    file = market.files(database)[-1]
    table = pq.read_table(root / f"{file['sha256'].hex()}.parquet")
    assert [str(value) for value in table.column("short_volume").to_pylist()] == ["11.000000"]
