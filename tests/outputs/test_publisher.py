"""What waits goes to the Hub: nothing lost, nothing twice, never over the limits. The real client, in both its ways."""

from __future__ import annotations

import hashlib
import io
import logging
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi, constants

from include.outputs import releases
from include.outputs.hub import Hub, download
from include.outputs.outbox import build
from include.outputs.publisher import Pace, PublicationRefused, Published
from tests.fixtures_sandbox import RunningSandbox
from tests.outputs import market
from tests.outputs.publishing import (
    MONTH,
    PATH,
    QUICK,
    REPOSITORY,
    TOKEN,
    asked,
    commits,
    many,
    on_the_hub,
    put,
    rows,
    run,
)

# --- the plain way ------------------------------------------------------------------------------------


def test_a_waiting_file_is_published_into_a_private_repository_byte_for_byte(
    transfer: str, waiting: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    done = run(waiting, hub, root)
    (file,) = market.files(waiting)
    (commit,) = commits(waiting)
    assert (done.files, done.waiting, done.put_off_until, done.failed) == (1, 0, None, ())
    assert (file["state"], file["commit_id"]) == ("published", commit["commit_id"])
    assert (commit["state"], commit["attempts"], commit["files"]) == ("confirmed", 1, 1)
    assert done.commits[0].oid == commit["commit_oid"]
    assert done.commits[0].url == f"{hub.endpoint}/datasets/{REPOSITORY}/commit/{commit['commit_oid']}"
    content = download(hub, PATH)
    assert hashlib.sha256(content).digest() == file["sha256"]
    assert content == (root / f"{file['sha256'].hex()}.parquet").read_bytes()
    (repository,) = running.control("GET", "hub")["repositories"]
    assert (repository["id"], repository["private"]) == (REPOSITORY, True)


def test_nothing_waiting_makes_no_request_at_all(database: str, hub: Hub, root: Path, running: RunningSandbox) -> None:
    assert run(database, hub, root) == Published()
    assert running.requests() == []
    assert rows(database, "select * from publish.leases") == []


def test_unchanged_rows_make_no_new_file_and_no_commit(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    run(waiting, hub, root)
    before = len(running.requests())
    market.touch(waiting, MONTH)
    assert build(waiting, market.RELEASE, market.TABLE, str(root), "another").unchanged == (MONTH,)
    assert run(waiting, hub, root) == Published()
    assert market.states(waiting) == [(MONTH, "published")]
    assert len(running.requests()) == before


def test_changed_rows_make_a_new_commit_that_consumers_read(waiting: str, hub: Hub, root: Path) -> None:
    first = run(waiting, hub, root)
    put(waiting, root, market.month(MONTH, symbols=6))
    second = run(waiting, hub, root)
    assert first.commits[0].oid != second.commits[0].oid
    assert market.states(waiting) == [(MONTH, "published"), (MONTH, "published")]
    assert pq.read_table(io.BytesIO(download(hub, PATH))).num_rows == 12


def test_a_hundred_files_are_one_commit_and_few_requests(
    database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    many(database, root, 205)
    done = run(database, hub, root)
    assert [commit.files for commit in done.commits] == [100, 100, 5]
    assert on_the_hub(running) == 3
    found = asked(running)
    assert found["commit"] == found["preupload"] == 3
    # Beside three for each commit: two looks at the repository, its making, and the check of the card.
    assert sum(found.values()) <= 3 * 3 + 4
    for file in market.files(database)[::40]:
        assert hashlib.sha256(download(hub, file["path"])).digest() == file["sha256"]


def test_the_ledger_counts_every_request_that_the_hub_saw(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    run(waiting, hub, root)
    kept = Counter(row["kind"] for row in rows(waiting, "select kind from publish.requests"))
    assert kept == {"request": sum(asked(running).values()), "commit": 1}


# --- trouble ------------------------------------------------------------------------------------------


def test_a_lost_answer_is_looked_at_before_it_is_repeated(
    transfer: str, waiting: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    running.fault(match={"kind": "commit"}, apply=True)
    done = run(waiting, hub, root)
    assert (done.files, on_the_hub(running)) == (1, 1)
    assert asked(running)["commit"] == 1
    assert asked(running)["paths_info"] == 1
    (commit,) = commits(waiting)
    assert (commit["state"], commit["attempts"]) == ("confirmed", 1)
    assert commit["commit_oid"] == running.control("GET", "hub")["repositories"][0]["head"]
    assert market.states(waiting) == [(MONTH, "published")]


HOUR = '{"error": "You have exceeded the rate limit for repository commits (128 per hour)."}'
TROUBLES: tuple[dict[str, Any], ...] = (
    {"match": {"kind": "create_repo"}, "status": 502, "apply": True},
    {"match": {"kind": "commit"}, "reset": True},
    {"match": {"kind": "commit"}, "truncate": True},
    {"match": {"kind": "commit"}, "status": 500},
    {"match": {"kind": "commit"}, "status": 429},
    {"match": {"kind": "commit"}, "status": 429, "headers": {"RateLimit": '"api";r=0;t=0'}},
    {"match": {"kind": "commit"}, "status": 429, "headers": {"Retry-After": "1"}},
    {"match": {"kind": "commit"}, "status": 412},
    {"match": {"kind": "commit"}, "status": 409},
    # The commit was made, whatever the answer says.
    *({"match": {"kind": "commit"}, "status": status, "apply": True} for status in (408, 409, 412, 429, 500, 504)),
    {"match": {"kind": "commit"}, "status": 200, "body": "<html>a word of a proxy</html>", "apply": True},
    {"match": {"kind": "commit"}, "status": 200, "body": "{}"},
    {"match": {"kind": "commit"}, "status": 302, "headers": {"Location": "/login"}},
    {"match": {"kind": "preupload"}, "reset": True},
    {"match": {"kind": "preupload"}, "status": 503},
    {"match": {"kind": "preupload"}, "status": 200, "body": "<html>"},
    {"match": {"kind": "repo_info"}, "status": 500},
    {"match": {"kind": "repo_info"}, "status": 200, "body": "<html>"},
    {"match": {"kind": "xet_token"}, "status": 500},
    {"match": {"kind": "cas_shard"}, "status": 500},
)


def test_a_passing_trouble_ends_in_exactly_one_commit_whatever_it_was(
    database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    for number, fault in enumerate(TROUBLES):
        month = f"20{10 + number // 12}-{number % 12 + 1:02}"
        put(database, root, market.month(month, symbols=1))
        running.fault(**fault)
        done = run(database, hub, root)
        assert (done.files, done.waiting, on_the_hub(running)) == (1, 0, number + 1), fault
        assert done.restored == (), fault
        file = market.files(database)[-1]
        assert hashlib.sha256(download(hub, file["path"])).digest() == file["sha256"], fault
    assert {commit["state"] for commit in commits(database)} == {"confirmed"}
    assert running.control("GET", "faults") == {"faults": []}


def test_a_commit_that_was_made_although_it_was_refused_is_not_made_again(
    database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    """The hour is used up, the token may not write, the files will not do: all of it said after the commit was made."""
    for number, fault in enumerate(({"status": 429, "body": HOUR}, {"status": 403}, {"status": 400}), start=1):
        put(database, root, market.month(f"2010-0{number}"))
        running.fault(match={"kind": "commit"}, apply=True, **fault)
        try:
            assert run(database, hub, root).files == 0
        except PublicationRefused:
            assert fault["status"] == 403
        with psycopg.connect(database) as connection:
            connection.execute("update publish.leases set put_off_until = collect.clock()")
        assert run(database, hub, root).files == 1
        assert on_the_hub(running) == number
    running.fault(match={"kind": "repo_info"}, status=400, body="<html>")
    put(database, root, market.month("2010-09"))
    with pytest.raises(PublicationRefused, match="names the right place"):
        run(database, hub, root)


def test_the_hub_is_given_the_time_it_asks_for(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", lambda seconds: waits.append(seconds))
    running.fault(match={"kind": "commit"}, status=429, headers={"Retry-After": "77"})
    running.fault(match={"kind": "commit"}, status=429, headers={"RateLimit": '"api";r=0;t=99'})
    running.fault(match={"kind": "commit"}, status=429)
    assert run(waiting, hub, root, Pace(), stop=stop).files == 1
    assert waits == [77, 100, 120]


@pytest.mark.parametrize(
    ("headers", "body", "least"),
    [
        ({"RateLimit": '"api";r=949;t=271'}, '{"error": "slow down"}', 3600),
        ({}, '{"error": "You have exceeded the rate limit for repository commits (128 per hour)."}', 3600),
        ({"Retry-After": "1800"}, '{"error": "rate limit for repository commits (128 per hour)"}', 1800),
    ],
)
def test_a_used_up_hour_puts_the_rest_off_without_another_try(
    by_four: None,
    database: str,
    hub: Hub,
    root: Path,
    running: RunningSandbox,
    headers: dict[str, str],
    body: str,
    least: int,
) -> None:
    many(database, root, 5)
    running.fault(match={"kind": "commit"}, status=429, skip=1, headers=headers, body=body, n=None)
    before = datetime.now(UTC)
    done = run(database, hub, root)
    assert (done.files, done.waiting) == (4, 1)
    assert done.put_off_until is not None
    assert timedelta(seconds=least) <= done.put_off_until - before < timedelta(seconds=least + 60)
    assert "Hub" in (done.put_off_reason or "")
    assert asked(running)["commit"] == 2

    requests = len(running.requests())
    again = run(database, hub, root)
    assert (again.put_off_until, again.put_off_reason) == (done.put_off_until, done.put_off_reason)
    assert (again.files, again.waiting) == (0, 1)
    assert len(running.requests()) == requests

    running.control("DELETE", "faults")
    with psycopg.connect(database) as connection:
        connection.execute("update publish.leases set put_off_until = collect.clock()")
    assert run(database, hub, root).files == 1


def test_our_own_count_of_commits_stops_before_the_hub_does(
    by_four: None, database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    many(database, root, 5)
    done = run(database, hub, root, replace(QUICK, commit_limit=1))
    assert (done.files, done.waiting) == (4, 1)
    assert done.put_off_until is not None
    assert asked(running)["commit"] == 1


def test_our_own_count_of_requests_stops_before_the_hub_does(
    by_four: None, database: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    many(database, root, 5)
    done = run(database, hub, root, replace(QUICK, request_limit=7))
    assert (done.files, done.waiting) == (4, 1)
    assert done.put_off_until is not None
    assert "requests" in (done.put_off_reason or "")
    assert sum(asked(running).values()) <= 7
    with psycopg.connect(database) as connection:
        connection.execute("update publish.requests set at = at - interval '5 minutes'")
        connection.execute("update publish.leases set put_off_until = collect.clock()")
    assert run(database, hub, root).files == 1
    assert on_the_hub(running) == 2


def test_a_trouble_that_stays_puts_everything_off_and_the_next_run_looks_first(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    running.fault(match={"kind": "commit"}, status=503, n=None)
    done = run(waiting, hub, root)
    assert (done.files, done.waiting) == (0, 1)
    assert done.put_off_until is not None
    assert asked(running)["commit"] == len(QUICK.waits) + 1
    assert commits(waiting)[0]["state"] == "unknown"
    running.control("DELETE", "faults")
    with psycopg.connect(waiting) as connection:
        connection.execute("update publish.leases set put_off_until = collect.clock()")
    assert run(waiting, hub, root).files == 1
    assert [commit["state"] for commit in commits(waiting)] == ["failed", "confirmed"]
    assert on_the_hub(running) == 1


def test_a_release_that_the_hub_refuses_does_not_stop_another(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(market.RELEASE, name="finra/copy", path="finra/copy/{month}.parquet", priority=200)
    monkeypatch.setattr(releases, "RELEASES", (market.RELEASE, other))
    build(waiting, other, market.TABLE, str(root), "a run")
    running.fault(match={"kind": "commit"}, status=400, body='{"error": "this will not do"}')
    done = run(waiting, hub, root)
    assert [name for name, _ in done.failed] == ["finra/short_volume"]
    assert "this will not do" in done.failed[0][1]
    assert [(commit.release, commit.files) for commit in done.commits] == [("finra/copy", 1)]
    assert done.waiting == 1
    assert run(waiting, hub, root).files == 1


def test_a_bad_token_is_told_in_words_and_never_shown(
    waiting: str, hub: Hub, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for token in ("hf_invalid-secret", "hf_readonly-secret"):
        bad = replace(hub, token=token)
        with pytest.raises(PublicationRefused, match="connection huggingface") as refused:
            run(waiting, bad, root)
        assert token not in str(refused.value)
        assert token not in repr(bad)
    run(waiting, hub, root)
    assert market.states(waiting) == [(MONTH, "published")]
    for secret in (TOKEN, "hf_invalid-secret", "hf_readonly-secret"):
        assert secret not in caplog.text


def test_a_private_release_is_never_sent_where_others_can_see_it(
    waiting: str, hub: Hub, root: Path, running: RunningSandbox
) -> None:
    HfApi(endpoint=hub.endpoint, token=TOKEN).create_repo(REPOSITORY, repo_type="dataset", private=False)
    with pytest.raises(PublicationRefused, match="can be seen by everybody"):
        run(waiting, hub, root)
    assert on_the_hub(running) == 0
    assert market.states(waiting) == [(MONTH, "waiting")]


def test_a_wrong_404_is_never_read_as_no_history(waiting: str, hub: Hub, root: Path, running: RunningSandbox) -> None:
    run(waiting, hub, root)
    put(waiting, root, market.month("2026-08"))
    missing = {"X-Error-Code": "RepoNotFound"}
    running.fault(match={"kind": "repo_info"}, status=404, headers=missing, body='{"error": "Repository not found"}')
    assert run(waiting, hub, root).files == 1
    # Both months are there: nothing was begun anew, and nothing is ever read from the Hub and written back.
    for file in market.files(waiting):
        assert hashlib.sha256(download(hub, file["path"])).digest() == file["sha256"]
    (repository,) = running.control("GET", "hub")["repositories"]
    assert (repository["private"], on_the_hub(running)) == (True, 2)


def test_a_count_that_is_full_in_the_middle_of_an_upload_puts_the_rest_off(
    database: str, hub: Hub, root: Path, running: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    many(database, root, 8)
    # Sent as large files each of them is asked about once more: the eighth of them is one too many.
    done = run(database, hub, root, replace(QUICK, request_limit=10))
    assert (done.files, done.waiting, on_the_hub(running)) == (0, 8, 0)
    assert "requests were sent" in (done.put_off_reason or "")
    assert sum(asked(running).values()) - asked(running)["lfs_put"] <= 10
    with psycopg.connect(database) as connection:
        connection.execute("delete from publish.requests")
        connection.execute("update publish.leases set put_off_until = collect.clock()")
    assert run(database, hub, root).files == 8
    assert on_the_hub(running) == 1
