"""Where the content of large files goes and comes from: LFS objects, the Xet store, downloads.

Promises: content is given out only whole and under the hash that it was committed with. Never: the Xet store
answers a caller whose token it did not give.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

from include.sandbox.exchange import Answer, Call, json_answer, ranged
from include.sandbox.hub.access import refusal, token_of
from include.sandbox.hub.content import Content
from include.sandbox.hub.formats import FormatError, Term, part_of
from include.sandbox.hub.repos import Repo
from include.sandbox.hub.routes import Target

TOKEN_SECONDS = 3600
BINARY = ("Content-Type", "application/octet-stream")


def other_origin(base: str) -> str:
    """This server under its other name, so that a redirect leaves the origin as the real Hub's does."""
    parts = urlsplit(base)
    name = "127.0.0.1" if parts.hostname == "localhost" else "localhost"
    return f"{parts.scheme}://{name}:{parts.port or 80}"


# --- downloads --------------------------------------------------------------------------------------------


def resolve(repo: Repo, target: Target, content: Content, call: Call) -> Answer:
    """A file of a revision: small ones at once, large ones by a redirect that carries their state."""
    commit, tree = repo.at(target.revision)
    named = ("X-Repo-Commit", commit.oid)
    if target.path not in tree:
        return refusal(404, "EntryNotFound", "Entry not found").plus(named)
    blob, _ = tree[target.path]
    if blob.sha256 is None:
        return ranged(call, content.small(blob.oid), named, ("ETag", f'"{blob.oid}"'), BINARY)
    headers = [
        named,
        ("Location", f"{other_origin(call.base)}/_hub/cdn/{blob.sha256}"),
        ("X-Linked-Etag", f'"{blob.sha256}"'),
        ("X-Linked-Size", str(blob.size)),
        ("ETag", f'"{blob.oid}"'),
    ]
    xet = content.xet_file(blob.sha256)
    if xet:
        route = f"{call.base}/api/datasets/{repo.id}/xet-read-token/{commit.oid}"
        headers += [("X-Xet-Hash", xet.hash), ("X-Xet-Refresh-Route", route)]
    return Answer(302, b"", tuple(headers))


def download(target: Target, content: Content, call: Call) -> Answer:
    """A large file from the delivery network; its tag there is not the Hub's."""
    try:
        body = content.large(target.sha256)
    except FormatError as failure:
        return refusal(500, "", str(failure))
    if body is None:
        return Answer(403, b"", (("Content-Type", "application/xml"),))
    tag = hashlib.md5(body, usedforsecurity=False).hexdigest()
    return ranged(call, body, ("ETag", f'"{tag}"'), BINARY)


# --- LFS --------------------------------------------------------------------------------------------------


def lfs_batch(content: Content, call: Call) -> Answer:
    """Say for each object where to send it; what is here already is not to be sent."""
    objects: list[dict[str, Any]] = []
    for wanted in call.json()["objects"]:
        entry = {"oid": wanted["oid"], "size": wanted["size"]}
        if content.size_of(wanted["oid"]) is None:
            entry["actions"] = {
                "upload": {"href": f"{other_origin(call.base)}/_hub/lfs/{wanted['oid']}"},
                "verify": {"href": f"{call.base}/_hub/verify"},
            }
        objects.append(entry)
    return json_answer(200, {"transfer": "basic", "objects": objects})


def lfs_put(target: Target, content: Content, call: Call) -> Answer:
    """Take one object."""
    try:
        content.keep_object(target.sha256, call.body)
    except FormatError as failure:
        return refusal(400, "", str(failure))
    return Answer(200)


def lfs_verify(content: Content, call: Call) -> Answer:
    """Say whether an object arrived whole."""
    order = call.json()
    if content.size_of(order["oid"]) != order["size"]:
        return refusal(404, "", "The object is not here in that size")
    return json_answer(200, {})


# --- Xet --------------------------------------------------------------------------------------------------


def _access_token(content: Content, scope: str) -> str:
    return hashlib.sha256(f"{content.identity}/{scope}".encode()).hexdigest()


def xet_token(target: Target, content: Content, call: Call, now: float) -> Answer:
    """Address, token and end of its life, as body and as headers; `now` in seconds since 1970, really."""
    url = f"{call.base}/_hub/cas/{content.identity}"
    token = _access_token(content, target.scope)
    until = int(now) + TOKEN_SECONDS
    return json_answer(
        200,
        {"casUrl": url, "accessToken": token, "exp": until},
        ("X-Xet-Cas-Url", url),
        ("X-Xet-Access-Token", token),
        ("X-Xet-Token-Expiration", str(until)),
    )


def cas(target: Target, content: Content, call: Call) -> Answer:
    """The Xet store's own interface."""
    if target.store != content.identity:
        return json_answer(404, {"error": "this store is gone; ask for a new token"})
    writes = target.kind in ("cas_xorb", "cas_shard")
    allowed = [_access_token(content, scope) for scope in (("write",) if writes else ("write", "read"))]
    # The bytes themselves are fetched from an address that was handed out, without a token.
    if target.kind != "cas_data" and token_of(call) not in allowed:
        return json_answer(401, {"error": "this token is not known here"})
    try:
        if target.kind == "cas_xorb":
            return json_answer(200, {"was_inserted": content.keep_xorb(target.xorb, call.body)})
        if target.kind == "cas_shard":
            content.keep_shard(call.body)
            return json_answer(200, {"result": 1})
    except FormatError as failure:
        return json_answer(400, {"error": str(failure)})
    if target.kind == "cas_reconstruction":
        return _reconstruction(target, content, call)
    if target.kind == "cas_data" and content.has_xorb(target.xorb):
        return ranged(call, content.xorb(target.xorb), BINARY)
    return json_answer(404, {"error": "not found"})


def _reconstruction(target: Target, content: Content, call: Call) -> Answer:
    """How a file, or the asked range of it, is put together from chunks."""
    file = content.by_xet_hash(target.file)
    if file is None:
        return json_answer(404, {"error": "this file is not known here"})
    start, end = 0, file.size
    asked = call.headers.get("range", "")
    if asked.startswith("bytes="):
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start, end = int(first or 0), min(end, int(last) + 1 if last else end)
    if start >= end and file.size:
        return Answer(416)
    chunks = {term.xorb: content.chunks(term.xorb) for term in file.terms}
    terms, offset = part_of(file.terms, chunks, start, end)
    fetches: dict[str, list[dict[str, Any]]] = {}
    for term in terms:
        where = chunks[term.xorb][term.first : term.last]
        fetch = {
            "range": _range(term),
            "url": f"{call.base}/_hub/cas/{content.identity}/data/{term.xorb}",
            "url_range": {"start": where[0].start, "end": where[-1].end - 1},
        }
        if fetch not in fetches.setdefault(term.xorb, []):
            fetches[term.xorb].append(fetch)
    body = {
        "offset_into_first_range": offset,
        "terms": [{"hash": term.xorb, "unpacked_length": term.length, "range": _range(term)} for term in terms],
        "fetch_info": fetches,
    }
    return Answer(200, json.dumps(body).encode(), (("Content-Type", "application/json"),))


def _range(term: Term) -> dict[str, int]:
    return {"start": term.first, "end": term.last}
