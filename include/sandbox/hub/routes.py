"""Which call is which: the Hub's addresses.

Promises: every call has one kind, the word for counts and fault rules. Never: an address is guessed at; what
is not listed is `other`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from include.sandbox.exchange import Call

_REPO = r"(?P<repo>[^/]+/[^/]+)"
_REVISION = r"(?P<revision>[^/]+)"
_API = rf"/api/datasets/{_REPO}"
_STORE = r"/_hub/cas/(?P<store>[0-9a-f]+)"

# method, address, kind. HEAD counts as GET.
_ROUTES = tuple(
    (method, re.compile(pattern), kind)
    for method, pattern, kind in (
        ("POST", r"/api/repos/create", "create_repo"),
        ("DELETE", r"/api/repos/delete", "delete_repo"),
        ("GET", r"/api/whoami-v2", "whoami"),
        ("POST", r"/api/validate-yaml", "validate_yaml"),
        ("GET", _API, "repo_info"),
        ("GET", rf"{_API}/revision/{_REVISION}", "repo_info"),
        ("POST", rf"{_API}/preupload/{_REVISION}", "preupload"),
        ("POST", rf"{_API}/commit/{_REVISION}", "commit"),
        ("GET", rf"{_API}/tree/{_REVISION}(?:/(?P<path>.+))?", "tree"),
        ("POST", rf"{_API}/paths-info/{_REVISION}", "paths_info"),
        ("GET", rf"{_API}/commits/{_REVISION}", "commits"),
        ("GET", rf"{_API}/refs", "refs"),
        ("POST", rf"{_API}/super-squash/{_REVISION}", "super_squash"),
        ("GET", rf"{_API}/xet-(?P<scope>read|write)-token/{_REVISION}", "xet_token"),
        ("POST", r"/datasets/(?P<repo>[^/]+/[^/]+?)\.git/info/lfs/objects/batch", "lfs_batch"),
        ("GET", rf"/datasets/{_REPO}/resolve/{_REVISION}/(?P<path>.+)", "resolve"),
        ("POST", r"/_hub/verify", "lfs_verify"),
        ("PUT", r"/_hub/lfs/(?P<sha256>[0-9a-f]{64})", "lfs_put"),
        ("GET", r"/_hub/cdn/(?P<sha256>[0-9a-f]{64})", "cdn"),
        ("POST", rf"{_STORE}/v1/xorbs/[^/]+/(?P<xorb>[0-9a-f]{{64}})", "cas_xorb"),
        ("POST", rf"{_STORE}/v1/shards", "cas_shard"),
        ("GET", rf"{_STORE}/v1/reconstructions/(?P<file>[0-9a-f]{{64}})", "cas_reconstruction"),
        ("GET", rf"{_STORE}/data/(?P<xorb>[0-9a-f]{{64}})", "cas_data"),
        ("GET", rf"{_STORE}/v1/chunks/.*", "cas_dedup"),
        ("GET", rf"{_STORE}/.*", "cas_other"),
        ("POST", rf"{_STORE}/.*", "cas_other"),
    )
)

# What a kind counts against: requests to the Hub's interface, or downloads. Storage counts nowhere.
BUCKETS = {"resolve": "resolvers"}
UNCOUNTED = frozenset({"lfs_put", "cdn", "other"})


@dataclass(frozen=True)
class Target:
    """What a call is about; a part that its address does not have is empty."""

    kind: str
    repo: str = ""
    revision: str = ""
    path: str = ""
    scope: str = ""
    sha256: str = ""
    xorb: str = ""
    file: str = ""
    store: str = ""

    @property
    def bucket(self) -> str | None:
        """Which rate limit the call counts against, or None."""
        if self.kind in UNCOUNTED or self.kind.startswith("cas_"):
            return None
        return BUCKETS.get(self.kind, "api")


def target_of(call: Call) -> Target:
    """The kind of a call and the parts of its address, decoded."""
    method = "GET" if call.method == "HEAD" else call.method
    for wanted, pattern, kind in _ROUTES:
        found = pattern.fullmatch(call.path) if wanted == method else None
        if found:
            return Target(kind, **{name: unquote(part) for name, part in found.groupdict().items() if part})
    return Target("other")
