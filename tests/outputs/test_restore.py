"""What people do to the repository by hand: the Hub is made what was promised, and what is not ours is left alone."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

from include import cli
from include.outputs import card, gate, publisher, releases
from include.outputs.hub import Hub, ToSend, download
from include.outputs.lease import PublishLease, claim
from include.outputs.outbox import build
from include.outputs.publisher import PublicationRefused
from include.sandbox.hub.repos import Repos
from tests.fixtures_sandbox import RunningSandbox
from tests.outputs import market
from tests.outputs.publishing import MONTH, PATH, REPOSITORY, TOKEN, asked, on_the_hub, put, rows, run
from tests.outputs.storm import held

AUGUST, JULY = "finra/short_volume/2026-08.parquet", "finra/short_volume/2026-07.parquet"
MANIFEST = card.manifest_path("finra/short_volume")


def by_hand(hub: Hub, *, delete: tuple[str, ...] = (), write: dict[str, bytes] | None = None) -> None:
    """Somebody commits to the repository."""
    operations = [CommitOperationDelete(path) for path in delete]
    operations += [CommitOperationAdd(path, text) for path, text in (write or {}).items()]
    HfApi(endpoint=hub.endpoint, token=TOKEN).create_commit(
        REPOSITORY, operations, commit_message="by hand", repo_type="dataset"
    )


def promised(url: str) -> dict[str, str]:
    """The newest published file of each path."""
    return {file["path"]: file["sha256"].hex() for file in market.files(url) if file["state"] == "published"}


def test_what_somebody_deleted_or_changed_on_the_hub_is_sent_again_and_told_and_what_is_not_ours_is_left(
    database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    put(database, root, [*market.month(MONTH), *market.month("2026-08"), *market.month("2026-07")])
    run(database, hub, root)
    by_hand(
        hub,
        delete=(PATH,),
        write={AUGUST: b"PAR1 of somebody else", card.CARD: b"---\nlicense: mit\n---\n", "notes.txt": b"mine"},
    )
    assert run(database, hub, root).files == 0
    assert asked(running)["tree"] == 0, "with nothing waiting nobody is asked"

    put(database, root, market.month("2026-06"))
    done = run(database, hub, root)
    assert done.restored == ((card.CARD, "changed"), (AUGUST, "changed"), (PATH, "deleted"))
    assert (done.files, done.waiting, asked(running)["tree"]) == (3, 0, 1)
    there = held(running, hub)
    assert there == promised(database)
    for path, sha256 in there.items():
        assert hashlib.sha256(download(hub, path)).hexdigest() == sha256
    assert b"license: other" in download(hub, card.CARD)
    assert json.loads(download(hub, MANIFEST))["files"] == 4
    assert download(hub, "notes.txt") == b"mine"
    (told,) = rows(database, "select text from ops.alerts where alert_key like 'publish/altered/%'")
    assert "(deleted)" in told["text"]

    # A commit of ours on top of one that was compared needs no other look.
    put(database, root, market.month("2026-05"))
    looks = asked(running)["tree"]
    assert run(database, hub, root).restored == ()
    assert asked(running)["tree"] == looks
    assert {row["state"] for row in rows(database, "select state from publish.commits")} == {"confirmed"}


def test_what_somebody_deletes_between_the_look_and_our_commit_is_found_by_the_very_next_publication(
    database: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(database, root, market.month(MONTH))
    run(database, hub, root)
    write_down, between = publisher._Run._write_down, [PATH]

    def meanwhile(self: publisher._Run, batch: publisher._Batch) -> list[ToSend]:
        if between:
            by_hand(hub, delete=(between.pop(),))
        return write_down(self, batch)

    monkeypatch.setattr(publisher._Run, "_write_down", meanwhile)
    put(database, root, market.month("2026-08"))
    assert (run(database, hub, root).files, between) == (1, [])
    put(database, root, market.month("2026-07"))
    assert run(database, hub, root).restored == ((PATH, "deleted"),)
    assert held(running, hub) == promised(database)


def test_a_text_alone_that_was_changed_by_hand_is_put_right_with_the_next_file_of_any_release(
    database: str, hub: Hub, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(market.RELEASE, name="finra/copy", path="finra/copy/{month}.parquet")
    monkeypatch.setattr(releases, "RELEASES", (market.RELEASE, other))
    put(database, root, market.month(MONTH))
    run(database, hub, root)
    by_hand(hub, write={MANIFEST: b"{}"})
    build(database, other, market.TABLE, str(root), "a run")
    done = run(database, hub, root)
    assert done.restored == ((MANIFEST, "changed"),)
    assert json.loads(download(hub, MANIFEST))["files"] == 1
    assert [commit.files for commit in done.commits] == [1, 0]


def test_a_repository_that_is_gone_or_another_one_is_filled_with_all_that_was_published(
    database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    put(database, root, [*market.month(MONTH), *market.month("2026-08")])
    run(database, hub, root)
    HfApi(endpoint=hub.endpoint, token=TOKEN).delete_repo(REPOSITORY, repo_type="dataset")
    put(database, root, market.month(MONTH, symbols=6))
    assert run(database, hub, root).files == 2
    assert held(running, hub) == promised(database)
    assert json.loads(download(hub, MANIFEST))["files"] == 2

    other = replace(hub, repository="me/another")
    put(database, root, market.month("2026-07"))
    assert run(database, other, root).files == 3
    for path, sha256 in promised(database).items():
        assert hashlib.sha256(download(other, path)).hexdigest() == sha256


def test_nothing_private_is_sent_again_where_others_can_see_it(
    database: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = replace(market.RELEASE.terms, source="https://example.org", read_on=market.SENT.date())
    shown = replace(
        market.RELEASE, name="finra/shown", path="finra/shown/{month}.parquet", visibility="public", terms=terms
    )
    monkeypatch.setattr(releases, "RELEASES", (market.RELEASE, shown))
    put(database, root, market.month(MONTH))
    run(database, hub, root)
    by_hand(hub, delete=(PATH,))
    repository = running.control("GET", "hub")["repositories"][0]["id"]
    HfApi(endpoint=hub.endpoint, token=TOKEN).delete_repo(repository, repo_type="dataset")
    HfApi(endpoint=hub.endpoint, token=TOKEN).create_repo(repository, repo_type="dataset", private=False)
    build(database, shown, market.TABLE, str(root), "a run")
    done = run(database, hub, root)
    assert [commit.release for commit in done.commits] == ["finra/shown"]
    assert set(held(running, hub)) == {"finra/shown/2026-09.parquet"}
    assert market.states(database)[0] == (MONTH, "published")
    put(database, root, market.month("2026-08"))
    with pytest.raises(PublicationRefused, match="can be seen by everybody"):
        run(database, hub, root)


def test_a_release_that_was_renamed_is_made_under_its_new_name_and_its_old_files_are_left_to_whoever_deletes_them(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(waiting, hub, root)
    # One more waits under the old name when the new one comes.
    put(waiting, root, market.month("2026-08"))
    renamed = replace(market.RELEASE, name="finra/volume", path="finra/volume/{month}.parquet")
    monkeypatch.setattr(releases, "RELEASES", (renamed,))
    build(waiting, renamed, market.TABLE, str(root), "a run")
    assert run(waiting, hub, root).waiting == 0
    assert held(running, hub) == promised(waiting)
    assert "finra/volume" in download(hub, card.CARD).decode()
    by_hand(hub, delete=(PATH, AUGUST))
    market.save(waiting, market.month("2026-07"))
    build(waiting, renamed, market.TABLE, str(root), "a run")
    assert run(waiting, hub, root).restored == ()
    assert set(held(running, hub)) == {f"finra/volume/2026-0{n}.parquet" for n in (7, 8, 9)}


def test_what_the_hub_lost_goes_again_and_gives_way_to_a_held_file_that_is_let_pass(
    database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    put(database, root, market.month(MONTH, symbols=20))
    run(database, hub, root)
    with psycopg.connect(database) as connection:
        connection.execute("delete from market.finra_short_volume where session_date = '2026-09-02'")
        market.mark(connection, MONTH)
    build(database, market.RELEASE, market.TABLE, str(root), "a run")
    assert run(database, hub, root).refused[0][0] == PATH
    by_hand(hub, delete=(PATH,))
    # A token that may not write: the file waits beside the held one.
    put(database, root, market.month("2026-08"))
    with pytest.raises(PublicationRefused):
        run(database, replace(hub, token="hf_readonly-secret"), root)
    assert market.states(database)[:2] == [(MONTH, "waiting"), (MONTH, "held")]
    gate.let(database, PATH, who="kim", why="a day was withdrawn")
    assert run(database, hub, root).files == 2
    assert market.states(database) == [(MONTH, "replaced"), (MONTH, "published"), ("2026-08", "published")]
    assert held(running, hub) == promised(database)


def test_a_listing_that_breaks_off_is_none_and_an_outbox_that_lost_the_bytes_has_them_made_again(
    by_four: None, database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    put(database, root, [*market.month(MONTH), *market.month("2026-08")])
    run(database, hub, root)
    by_hand(hub, delete=(PATH,))
    put(database, root, market.month("2026-07"))
    for fault in ({"status": 500}, {"truncate": True}, {"status": 200, "body": "<html>"}):
        running.fault(match={"kind": "tree"}, **fault)
    gone = next(file for file in market.files(database) if file["path"] == PATH)
    (root / f"{gone['sha256'].hex()}.parquet").unlink()
    done = run(database, hub, root)
    assert done.restored == ((PATH, "deleted"),)
    assert [path for path, _ in done.refused] == [PATH]
    build(database, market.RELEASE, market.TABLE, str(root), "again")
    assert run(database, hub, root).files == 1
    assert held(running, hub) == promised(database)
    assert on_the_hub(running) == 4
    assert publisher.FILES_PER_COMMIT == 4


def test_a_history_that_is_squashed_keeps_every_file_and_waits_for_whoever_publishes(
    database: str,
    hub: Hub,
    root: Path,
    running: RunningSandbox,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for symbols in (1, 2, 3):
        put(database, root, market.month(MONTH, symbols=symbols))
        run(database, hub, root)
    before = held(running, hub)
    monkeypatch.setattr(cli, "warehouse", lambda: database)
    extra = {"namespace": "me"}
    connection = {"conn_type": "http", "host": hub.endpoint, "password": TOKEN, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_HUGGINGFACE", json.dumps(connection))
    lease = claim(database, publisher.LEASE, "a run")
    assert isinstance(lease, PublishLease)
    assert cli.main(["squash", REPOSITORY]) == 1
    assert "a run publishes until" in capsys.readouterr().err
    lease.give_back()
    assert cli.main(["squash", "me/another"]) == 1
    assert "names me/daybook-private, not me/another" in capsys.readouterr().err
    with monkeypatch.context() as late:
        late.setattr("include.outputs.squash.claim", lambda *_: lease)
        assert cli.main(["squash", REPOSITORY]) == 1
    assert "no longer holds the lease" in capsys.readouterr().err
    running.fault(match={"kind": "super_squash"}, status=500)
    assert cli.main(["squash", REPOSITORY]) == 1
    assert "twice does no harm" in capsys.readouterr().err
    assert rows(database, "select commits from publish.repositories") == [{"commits": 3}]
    assert cli.main(["squash", REPOSITORY, "--who", "kim"]) == 0
    assert (on_the_hub(running), held(running, hub)) == (0, before)
    assert rows(database, "select commits from publish.repositories") == [{"commits": 0}]
    put(database, root, market.month("2026-08"))
    done = run(database, hub, root)
    assert (done.files, done.restored, on_the_hub(running)) == (1, (), 1)
    again = Repos(running.state / "hub" / "repos").get(REPOSITORY)
    assert len(again.commits) == 2
