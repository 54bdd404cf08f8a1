"""The Hub's stand-in without its client: limits, refusals and formats."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import httpx
import pytest

from include.sandbox.hub.access import FREE, Limits, Meter
from include.sandbox.hub.formats import FormatError, Term, chunks_of, files_of, part_of, ungrouped, unpacked
from tests.fixtures_sandbox import RunningSandbox, Start

API = "/api/datasets/me/market"


@pytest.fixture
def running(sandbox: Start) -> RunningSandbox:
    return sandbox()


@pytest.fixture
def http(running: RunningSandbox) -> httpx.Client:
    client = httpx.Client(base_url=running.hub_url, headers={"Authorization": "Bearer hf_any"}, timeout=30)
    made = client.post("/api/repos/create", json={"name": "market", "organization": "me", "type": "dataset"})
    assert made.status_code == 200
    return client


def lines(*operations: dict[str, Any], **header: Any) -> bytes:
    first = {"key": "header", "value": {"summary": "s", "description": "", **header}}
    return b"".join(json.dumps(one).encode() + b"\n" for one in (first, *operations))


def small(path: str, body: bytes = b"x") -> dict[str, Any]:
    return {"key": "file", "value": {"path": path, "content": base64.b64encode(body).decode(), "encoding": "base64"}}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"not json\n", 400),
        (b"", 400),
        (lines(), 400),
        (lines(small("../up")), 400),
        (lines(small(".git/config")), 400),
        (lines({"key": "file", "value": {"path": "a", "content": "%%%"}}), 400),
        (lines({"key": "lfsFile", "value": {"path": "a", "algo": "sha256", "oid": "0" * 64, "size": 1}}), 400),
        (lines({"key": "deletedFile", "value": {"path": "none"}}), 404),
        (lines(small("a"), parentCommit="0" * 40), 412),
    ],
)
def test_a_commit_that_cannot_be_made_changes_nothing(http: httpx.Client, body: bytes, status: int) -> None:
    before = http.get(API).json()
    assert http.post(f"{API}/commit/main", content=body).status_code == status
    assert http.get(API).json() == before


def test_a_folder_does_not_grow_past_its_limit(running: RunningSandbox, http: httpx.Client) -> None:
    running.switch("hub", "limits", folder=2)
    full = lines(small("d/1"), small("d/2"), small("e/1"))
    assert http.post(f"{API}/commit/main", content=full).status_code == 200
    assert http.post(f"{API}/commit/main", content=lines(small("d/3"))).status_code == 400
    assert http.post(f"{API}/commit/main", content=lines(small("d/2", b"new"))).status_code == 200


def test_too_many_requests_are_refused_with_the_hubs_headers(running: RunningSandbox, http: httpx.Client) -> None:
    http.post(f"{API}/commit/main", content=lines(small("a")))
    running.switch("hub", "limits", api=2, resolvers=1, window=60)
    answers = [http.get(API) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[0].headers["ratelimit"].startswith('"api";r=1;t=')
    assert answers[2].headers["ratelimit"].startswith('"api";r=0;t=')
    assert answers[2].headers["ratelimit-policy"] == '"fixed window";"api";q=2;w=60'
    assert 0 < int(answers[2].headers["retry-after"]) <= 60
    resolve = "/datasets/me/market/resolve/main/a"
    assert [http.get(resolve).status_code for _ in range(2)] == [200, 429]
    running.control("DELETE", "hub")
    assert http.get(API).status_code == 200


def test_a_window_and_an_hour_end() -> None:
    now = [0.0]
    meter = Meter(Limits(api=1, window=10, commits=1), now=lambda: now[0])
    assert meter.pass_or_refuse("api")[0] is None
    assert meter.pass_or_refuse("api")[0] is not None
    assert meter.commit_or_refuse() is None
    assert meter.commit_or_refuse() is not None
    now[0] = 10.0
    assert meter.pass_or_refuse("api")[0] is None
    now[0] = 3600.0
    assert meter.commit_or_refuse() is None


def test_the_limits_of_a_free_account_are_in_force_on_request(sandbox: Start) -> None:
    limits = sandbox(hub_limits=True).control("GET", "hub")["limits"]
    assert limits == vars(FREE)
    assert (limits["api"], limits["resolvers"], limits["commits"]) == (1000, 5000, 128)


@pytest.mark.parametrize(
    "order", [{"switch": "speed"}, {"switch": "limits", "apis": 1}, {"switch": "limits", "api": -1}]
)
def test_a_limit_that_cannot_be_read_is_refused(running: RunningSandbox, order: dict[str, Any]) -> None:
    answer = httpx.post(f"{running.url}/_sandbox/switches", json={"upstream": "hub", **order})
    assert answer.status_code == 400


def test_the_xet_store_wants_its_own_token(running: RunningSandbox, http: httpx.Client) -> None:
    told = http.get(f"{API}/xet-read-token/main")
    assert told.json()["casUrl"] == told.headers["x-xet-cas-url"]
    assert told.json()["exp"] == int(told.headers["x-xet-token-expiration"])
    store, read = told.json()["casUrl"], told.json()["accessToken"]
    for token, status in ((None, 401), ("hf_any", 401), (read, 401)):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        assert httpx.post(f"{store}/v1/shards", content=b"x", headers=headers).status_code == status
    write = http.get(f"{API}/xet-write-token/main").json()["accessToken"]
    allowed = {"Authorization": f"Bearer {write}"}
    assert httpx.post(f"{store}/v1/shards", content=b"x", headers=allowed).status_code == 400
    assert httpx.post(f"{store}/v1/xorbs/default/{'0' * 64}", content=b"x", headers=allowed).status_code == 400
    assert httpx.get(f"{store}/v1/reconstructions/{'0' * 64}", headers=allowed).status_code == 404
    readonly = http.get(f"{API}/xet-write-token/main", headers={"Authorization": "Bearer hf_readonly"})
    assert readonly.status_code == 403


def test_an_lfs_object_is_kept_only_under_its_own_hash(running: RunningSandbox, http: httpx.Client) -> None:
    body = b"content of an object"
    oid = hashlib.sha256(body).hexdigest()
    order = {"operation": "upload", "objects": [{"oid": oid, "size": len(body)}], "hash_algo": "sha256"}
    batch = "/datasets/me/market.git/info/lfs/objects/batch"
    actions = http.post(batch, json=order).json()["objects"][0]["actions"]
    assert httpx.put(actions["upload"]["href"], content=b"other").status_code == 400
    assert http.post(actions["verify"]["href"], json={"oid": oid, "size": len(body)}).status_code == 404
    assert httpx.put(actions["upload"]["href"], content=body).status_code == 200
    assert http.post(actions["verify"]["href"], json={"oid": oid, "size": len(body)}).status_code == 200
    assert "actions" not in http.post(batch, json=order).json()["objects"][0]


def packed(scheme: int, body: bytes, length: int) -> bytes:
    return b"\x00" + len(body).to_bytes(3, "little") + bytes([scheme]) + length.to_bytes(3, "little") + body


def test_a_xorb_is_read_chunk_by_chunk_and_refused_when_it_is_cut() -> None:
    xorb = packed(0, b"abc", 3) + packed(0, b"defgh", 5)
    chunks = chunks_of(xorb)
    assert [unpacked(xorb, chunk) for chunk in chunks] == [b"abc", b"defgh"]
    for broken in (xorb[:-1], b"", packed(9, b"abc", 3)):
        with pytest.raises(FormatError):
            chunks_of(broken)
    for broken in (b"", b"HFRepoMetaData\x00" + bytes(33) + bytes(48)):
        with pytest.raises(FormatError):
            files_of(broken)


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 11])
def test_grouped_bytes_are_put_back_in_order(length: int) -> None:
    data = bytes(range(length))
    assert ungrouped(b"".join(data[place::4] for place in range(4))) == data


def test_a_range_of_a_file_is_cut_to_whole_chunks() -> None:
    xorb = b"".join(packed(0, bytes([n]) * 10, 10) for n in range(4))
    chunks = {"x": chunks_of(xorb)}
    terms = (Term("x", 0, 3, 30), Term("x", 3, 4, 10), Term("x", 0, 1, 10))
    assert part_of(terms, chunks, 0, 50) == (list(terms), 0)
    assert part_of(terms, chunks, 12, 29) == ([Term("x", 1, 3, 20)], 2)
    assert part_of(terms, chunks, 35, 45) == ([Term("x", 3, 4, 10), Term("x", 0, 1, 10)], 5)
