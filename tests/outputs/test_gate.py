"""The gate of publication: what a check holds waits for a person, and readers keep what they had."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from include.outputs import card, checks, gate, publisher, releases
from include.outputs.gate import LetRefused
from include.outputs.hub import Hub, download
from include.outputs.outbox import build
from tests.fixtures_sandbox import RunningSandbox
from tests.outputs import market
from tests.outputs.publishing import MONTH, PATH, QUICK, asked, commits, many, on_the_hub, put, rows, run


def lose(url: str, day: int) -> None:
    """A day's rows are gone, as after a replay with a parser that is wrong."""
    with psycopg.connect(url) as connection:
        connection.execute("delete from market.finra_short_volume where session_date = make_date(2026, 9, %s)", (day,))
        market.mark(connection, MONTH)


def rebuild(url: str, root: Path) -> None:
    build(url, market.RELEASE, market.TABLE, str(root), "another run")


def test_a_file_that_lost_rows_is_held_told_and_let_pass_by_somebody_with_a_reason(
    database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    put(database, root, [*market.month(MONTH, symbols=20), *market.month("2026-08")])
    run(database, hub, root)
    lose(database, 2)
    market.save(database, market.month("2026-08", symbols=6))
    rebuild(database, root)
    done = run(database, hub, root)
    # One month is held; the other of the same release is sent.
    assert [path for path, _ in done.refused] == [PATH]
    assert (done.files, done.waiting) == (1, 0)
    assert "rows: 20 rows, 40 before" in done.refused[0][1]
    assert "2026-09-02 were published" in done.refused[0][1]
    held = gate.held(database)
    assert [(row["path"], row["rows"]) for row in held] == [(PATH, 20)]
    noted = {row["name"]: row for row in rows(database, "select c.* from publish.checks c join publish.files f "
                                              "using (file_id) where f.state = 'held'")}  # fmt: skip
    assert {name for name, row in noted.items() if not row["passed"] and row["blocks"]} == {"rows", "dates"}
    assert noted["rows"]["numbers"] == {"rows": 20, "before": 40}
    assert len(noted) == 7
    (wrong,) = rows(database, "select incident_key, text from ops.incidents where closed_at is null")
    assert wrong["incident_key"] == "held/finra/short_volume"
    assert "publication let" in wrong["text"]
    assert "finra/short_volume/2026-09" in rows(database, "select text from ops.alerts")[-1]["text"]
    before = next(f for f in market.files(database) if f["partition"] == MONTH)
    assert hashlib.sha256(download(hub, PATH)).digest() == before["sha256"]

    # Nothing of it is tried again by itself, neither the same content built anew.
    market.touch(database, MONTH)
    rebuild(database, root)
    assert run(database, hub, root).files == 0
    for who, why in (("", "looked at"), ("kim", " ")):
        with pytest.raises(LetRefused, match="who lets it pass and why"):
            gate.let(database, PATH, who=who, why=why)
    with pytest.raises(LetRefused, match="No check holds"):
        gate.let(database, "finra/short_volume/2026-08.parquet", who="kim", why="looked at")
    gate.let(database, PATH, who="kim", why="the second was a holiday")
    assert run(database, hub, root).files == 1
    (file,) = [f for f in market.files(database) if f["let_by"]]
    assert (file["state"], file["let_by"], file["let_why"]) == ("published", "kim", "the second was a holiday")
    assert hashlib.sha256(download(hub, PATH)).digest() == file["sha256"]
    assert rows(database, "select 1 from ops.incidents where closed_at is null") == []


def test_a_newer_file_takes_the_place_of_a_held_one_and_the_incident_ends(
    database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    put(database, root, market.month(MONTH, symbols=20))
    run(database, hub, root)
    lose(database, 2)
    rebuild(database, root)
    assert run(database, hub, root).refused
    put(database, root, market.month(MONTH, symbols=21))
    assert run(database, hub, root).files == 1
    assert market.states(database) == [(MONTH, "published"), (MONTH, "replaced"), (MONTH, "published")]
    assert gate.held(database) == []
    assert rows(database, "select 1 from ops.incidents where closed_at is null") == []


def test_a_folder_that_is_full_takes_no_new_file_and_keeps_taking_new_versions(
    by_four: None, database: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(database, root, 4)
    run(database, hub, root)
    monkeypatch.setattr(checks, "FOLDER_ENTRIES", 5)
    put(database, root, [*market.month("2010-01", symbols=2), *market.month("2011-01")])
    done = run(database, hub, root)
    assert [path for path, _ in done.refused] == ["finra/short_volume/2011-01.parquet"]
    assert "5 entries in finra/short_volume" in done.refused[0][1]
    assert done.files == 1


def test_what_is_urgent_goes_before_what_is_large_and_has_its_share_of_the_hour(
    by_four: None, database: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = replace(market.RELEASE, priority=releases.BULK)
    urgent = replace(market.RELEASE, name="finra/urgent", path="finra/urgent/{month}.parquet", priority=10)
    monkeypatch.setattr(releases, "RELEASES", (large, urgent))
    many(database, root, 12)
    confirm = publisher._Run._confirm

    def meanwhile(*anything: object) -> None:
        monkeypatch.setattr(publisher._Run, "_confirm", confirm)
        confirm(*anything)  # type: ignore[arg-type]
        with psycopg.connect(database) as connection:
            connection.execute("delete from publish.stale where partition <> '2010-01'")
        build(database, urgent, market.TABLE, str(root), "an urgent run")

    monkeypatch.setattr(publisher._Run, "_confirm", meanwhile)
    done = run(database, hub, root, replace(QUICK, commit_limit=5, commits_kept=3))
    # The first commit of the large one was under way; then the urgent one goes, and the rest of the large one has
    # used up what it may.
    assert [commit.release for commit in done.commits] == ["finra/short_volume", "finra/urgent"]
    assert [name for name, _ in done.deferred] == ["finra/short_volume"]
    assert (done.waiting, done.put_off_until) == (8, None)
    assert run(database, hub, root, replace(QUICK, commits_kept=0)).files == 8


def test_the_card_and_the_manifest_say_what_is_there_and_are_sent_when_they_changed(
    transfer: str, database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    put(database, root, [*market.month(MONTH), *market.month("2026-08", symbols=3)])
    run(database, hub, root)
    text = download(hub, card.CARD).decode()
    assert "license: other" in text
    assert "finra/short_volume/*.parquet" in text
    assert "FINRA restricts redistribution" in text
    told = json.loads(download(hub, card.manifest_path("finra/short_volume")))
    assert (told["files"], told["rows"], told["visibility"]) == (2, 16, "private")
    assert (told["first_date"], told["last_date"]) == ("2026-08-01", "2026-09-02")
    assert "FINRA" in told["terms"]["note"]
    for line, file in zip(told["listed"], sorted(market.files(database), key=lambda f: f["path"]), strict=True):
        assert (line["path"], line["rows"], line["run"]) == (file["path"], file["rows"], "a run")
        assert line["sha256"] == file["sha256"].hex() == hashlib.sha256(download(hub, file["path"])).hexdigest()
    assert asked(running)["validate_yaml"] == 1

    put(database, root, market.month(MONTH, symbols=6))
    run(database, hub, root)
    # The card is the same, the manifest has the new numbers, in one commit with the file.
    assert on_the_hub(running) == 2
    assert asked(running)["validate_yaml"] == 1
    told = json.loads(download(hub, card.manifest_path("finra/short_volume")))
    assert [line["rows"] for line in told["listed"]] == [6, 12]
    assert len(commits(database)) == 2
