"""The real client against the Hub's stand-in, over Xet as it does by default."""

from __future__ import annotations

import hashlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import httpx
import pytest
from huggingface_hub import CommitOperationAdd, HfApi, hf_hub_download, hf_hub_url
from huggingface_hub.errors import (
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import get_hf_file_metadata

from include.sandbox.exchange import World
from include.sandbox.hub.repos import Repos
from include.sandbox.hub.service import Hub
from tests.fixtures_sandbox import RunningSandbox, Start

REPO = "me/market"
TOKEN = "hf_a-secret-of-the-hub"


def some_files(count: int, seed: int = 1) -> dict[str, bytes]:
    dice = Random(seed)
    files = {f"finra/{n:03}.parquet": dice.randbytes(1500 + 41 * n) for n in range(count - 2)}
    # Compressible in both of the client's ways, and long enough for several chunks.
    files["finra/text.parquet"] = b"".join(b"row %d of a long table\n" % n for n in range(30_000))
    files["finra/numbers.parquet"] = b"".join(n.to_bytes(4, "little") for n in range(100_000))
    return files


def additions(files: dict[str, bytes]) -> list[CommitOperationAdd]:
    return [CommitOperationAdd(path, content) for path, content in files.items()]


def commit(api: HfApi, files: dict[str, bytes], **options: object) -> str:
    return api.create_commit(REPO, additions(files), commit_message="new", repo_type="dataset", **options).oid


def commits(running: RunningSandbox) -> int:
    (repo,) = running.control("GET", "hub")["repositories"]
    return repo["commits"]


@pytest.fixture
def running(sandbox: Start) -> RunningSandbox:
    return sandbox()


@pytest.fixture
def api(running: RunningSandbox) -> HfApi:
    api = HfApi(endpoint=running.hub_url, token=TOKEN)
    api.create_repo(REPO, repo_type="dataset")
    return api


def test_a_commit_of_120_files_takes_three_requests_and_comes_back_byte_for_byte(
    running: RunningSandbox, api: HfApi, tmp_path: Path
) -> None:
    files = some_files(120)
    running.control("DELETE", "log")
    oid = commit(api, files)
    hub = Counter(one["kind"] for one in running.requests(host="huggingface.co"))
    assert hub == {"preupload": 1, "xet_token": 1, "commit": 1}
    assert Counter(one["kind"] for one in running.requests())["cas_shard"] == 1
    for path, content in files.items():
        local = hf_hub_download(
            REPO, path, repo_type="dataset", endpoint=running.hub_url, token=TOKEN, cache_dir=tmp_path
        )
        assert Path(local).read_bytes() == content
        assert oid in local
    assert running.requests(kind="cdn") == []


def test_a_client_without_xet_gets_the_same_bytes_by_redirect(running: RunningSandbox, api: HfApi) -> None:
    files = some_files(4)
    commit(api, files)
    for path, content in files.items():
        address = hf_hub_url(REPO, path, repo_type="dataset", endpoint=running.hub_url)
        answer = httpx.get(address, follow_redirects=True)
        assert answer.content == content
        part = httpx.get(address, follow_redirects=True, headers={"Range": "bytes=10-19"})
        assert (part.status_code, part.content) == (206, content[10:20])


def test_the_same_files_again_make_no_commit(running: RunningSandbox, api: HfApi) -> None:
    files = some_files(20) | {"README.md": b"---\nlicense: other\n---\n", "state.json": b"{}", "none.parquet": b""}
    first = commit(api, files)
    assert commit(api, files) == first
    assert commits(running) == 2
    changed = files | {"finra/003.parquet": b"other"}
    second = commit(api, changed)
    assert second != first
    (history,) = [one.changes for one in _journal(running).get(REPO).commits if one.oid == second]
    assert list(history) == ["finra/003.parquet"]


def _journal(running: RunningSandbox) -> Repos:
    return Repos(running.state / "hub" / "repos")


def test_a_stale_parent_is_refused_and_of_many_one_wins(running: RunningSandbox, api: HfApi) -> None:
    head = api.dataset_info(REPO).sha
    assert head is not None

    def attempt(number: int) -> int:
        try:
            commit(api, {f"{number}.json": b"%d" % number}, parent_commit=head)
        except HfHubHTTPError as refused:
            return refused.response.status_code
        return 200

    with ThreadPoolExecutor(6) as pool:
        assert Counter(pool.map(attempt, range(6))) == {200: 1, 412: 5}
    assert commits(running) == 2


def test_a_commit_whose_answer_was_lost_is_there_and_its_repetition_adds_none(
    running: RunningSandbox, api: HfApi
) -> None:
    files = some_files(5)
    running.fault(match={"kind": "commit"}, apply=True)
    with pytest.raises(Exception, match=r"(?i)reset|disconnected"):
        commit(api, files)
    assert commits(running) == 2
    head = api.dataset_info(REPO).sha
    assert commit(api, files) == head
    assert commits(running) == 2


@pytest.mark.parametrize("status", [412, 429, 500, 504])
def test_a_refused_commit_reaches_the_caller_at_once(running: RunningSandbox, api: HfApi, status: int) -> None:
    running.fault(match={"kind": "commit"}, status=status, headers={"Retry-After": "5"})
    with pytest.raises(HfHubHTTPError) as refused:
        commit(api, {"a.json": b"1"})
    assert refused.value.response.status_code == status
    assert refused.value.response.headers["retry-after"] == "5"
    assert len(running.requests(kind="commit")) == 1


def test_the_hourly_quota_of_commits_is_told_in_its_text_alone(running: RunningSandbox, api: HfApi) -> None:
    running.switch("hub", "limits", commits=1, api=1000)
    commit(api, {"a.json": b"1"})
    with pytest.raises(HfHubHTTPError) as refused:
        commit(api, {"b.json": b"1"})
    assert refused.value.response.status_code == 429
    assert "1 per hour" in str(refused.value.server_message)
    assert "retry-after" not in refused.value.response.headers
    assert ";r=99" in refused.value.response.headers["ratelimit"]


def test_listings_come_in_pages_and_carry_size_and_hash(running: RunningSandbox, api: HfApi) -> None:
    files = some_files(30) | {"a/b/c.json": b"{}"}
    commit(api, files)
    running.switch("hub", "limits", page=7)
    running.control("DELETE", "log")
    entries = {one.path: one for one in api.list_repo_tree(REPO, repo_type="dataset", recursive=True)}
    assert len(running.requests(kind="tree")) == 5  # 32 files and 3 folders, seven a page
    assert set(entries) == {*files, ".gitattributes", "finra", "a", "a/b"}
    one = entries["finra/000.parquet"]
    assert (one.size, one.lfs.sha256) == (1500, hashlib.sha256(files["finra/000.parquet"]).hexdigest())
    top = {one.path for one in api.list_repo_tree(REPO, repo_type="dataset")}
    assert top == {".gitattributes", "finra", "a"}
    assert [one.path for one in api.list_repo_tree(REPO, "a/b", repo_type="dataset")] == ["a/b/c.json"]
    found = api.get_paths_info(REPO, ["finra/001.parquet", "a", "none"], repo_type="dataset", expand=True)
    assert [one.path for one in found] == ["finra/001.parquet", "a"]
    assert found[0].last_commit.title == "new"


def test_a_files_state_is_told_by_head_without_following(running: RunningSandbox, api: HfApi) -> None:
    files = {"a.parquet": b"large", "b.json": b"small"}
    oid = commit(api, files)
    for path, content in files.items():
        address = hf_hub_url(REPO, path, repo_type="dataset", endpoint=running.hub_url)
        told = get_hf_file_metadata(address, token=TOKEN, endpoint=running.hub_url)
        assert (told.commit_hash, told.size) == (oid, len(content))
    large = hf_hub_url(REPO, "a.parquet", repo_type="dataset", endpoint=running.hub_url)
    assert get_hf_file_metadata(large, token=TOKEN).etag == hashlib.sha256(b"large").hexdigest()
    followed = httpx.head(large, follow_redirects=True)
    assert followed.headers["etag"] != f'"{hashlib.sha256(b"large").hexdigest()}"'
    assert "localhost" in str(followed.url)


def test_history_and_old_revisions_can_be_read(running: RunningSandbox, api: HfApi, tmp_path: Path) -> None:
    first = commit(api, {"a.json": b"1", "d/x.json": b"x"})
    second = commit(api, {"a.json": b"2"})
    api.delete_file("d/x.json", REPO, repo_type="dataset")
    titles = [one.title for one in api.list_repo_commits(REPO, repo_type="dataset")]
    assert len(titles) == 4
    assert titles[1:] == ["new", "new", "initial commit"]
    assert set(api.list_repo_files(REPO, repo_type="dataset", revision=first)) >= {"a.json", "d/x.json"}
    assert "d/x.json" not in api.list_repo_files(REPO, repo_type="dataset")
    old = hf_hub_download(
        REPO, "a.json", repo_type="dataset", revision=first, endpoint=running.hub_url, cache_dir=tmp_path
    )
    assert Path(old).read_bytes() == b"1"
    newest, *_ = api.list_repo_commits(REPO, repo_type="dataset", revision=second)
    assert newest.commit_id == second


def test_errors_become_the_clients_own_exceptions(running: RunningSandbox, api: HfApi) -> None:
    with pytest.raises(RepositoryNotFoundError):
        api.dataset_info("me/nothing")
    with pytest.raises(RevisionNotFoundError):
        api.list_repo_files(REPO, repo_type="dataset", revision="0" * 40)
    with pytest.raises(RemoteEntryNotFoundError):
        api.delete_file("none.json", REPO, repo_type="dataset")
    with pytest.raises(RemoteEntryNotFoundError):
        get_hf_file_metadata(hf_hub_url(REPO, "none.json", repo_type="dataset", endpoint=running.hub_url))
    with pytest.raises(HfHubHTTPError) as again:
        api.create_repo(REPO, repo_type="dataset")
    assert again.value.response.status_code == 409
    assert api.create_repo(REPO, repo_type="dataset", exist_ok=True).repo_id == REPO


@pytest.mark.parametrize(("token", "status"), [(False, 401), ("hf_invalid-one", 401), ("hf_readonly-one", 403)])
def test_writing_needs_a_token_with_rights(running: RunningSandbox, api: HfApi, token: str | bool, status: int) -> None:
    with pytest.raises(HfHubHTTPError) as refused:
        api.create_commit(REPO, additions({"a.json": b"1"}), commit_message="x", repo_type="dataset", token=token)
    assert refused.value.response.status_code == status
    assert refused.value.response.headers["x-error-message"]


def test_a_private_repository_does_not_exist_without_a_token(running: RunningSandbox, api: HfApi) -> None:
    api.create_repo("me/private", repo_type="dataset", private=True)
    assert api.dataset_info("me/private").private
    with pytest.raises(RepositoryNotFoundError):
        api.dataset_info("me/private", token=False)


def test_a_token_is_nowhere(running: RunningSandbox, api: HfApi) -> None:
    assert api.whoami()["name"] == "sandbox"
    commit(api, some_files(3))
    shown = running.get("/_sandbox/log").text + running.get("/_sandbox/hub").text
    kept = [path.read_bytes() for path in running.state.rglob("*") if path.is_file()]
    assert TOKEN not in shown
    assert not any(TOKEN.encode() in body for body in kept)


def test_everything_survives_a_restart_and_a_write_that_was_cut(
    running: RunningSandbox, api: HfApi, sandbox: Start
) -> None:
    files = some_files(5)
    oid = commit(api, files)
    (journal,) = (running.state / "hub" / "repos").glob("*.ndjson")
    with journal.open("ab") as file:
        file.write(b'{"oid": "half a com')
    again = sandbox(state=running.state)
    other = HfApi(endpoint=again.hub_url, token=TOKEN)
    assert other.dataset_info(REPO).sha == oid
    content = httpx.get(f"{again.url}/datasets/{REPO}/resolve/main/finra/text.parquet", follow_redirects=True)
    assert content.content == files["finra/text.parquet"]
    assert commit(other, files) == oid
    assert commit(other, {"more.json": b"1"}) != oid


def test_two_hubs_of_one_directory_give_the_same_history(running: RunningSandbox, api: HfApi) -> None:
    commit(api, {"a.json": b"1"})
    hub = Hub(World(running.state))
    assert hub.view()["repositories"] == running.control("GET", "hub")["repositories"]
