"""The Hub, spoken to by its own client: look, create, commit, download.

Promises: every call has timeouts; every request is entered in the ledger before it is sent, also the one that the
storage client makes unseen; a commit names its parent, so that one sent by a holder whose lease is over is
refused. Never: the token is not logged, shown or put into a URL, and an existing repository is not made private
or public.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from include.engine import drafts
from include.outputs.ledger import Ledger, LedgerFull, LedgerStopped
from include.outputs.trouble import HubTrouble, Kind, judge

ENDPOINT = "https://huggingface.co"
REPOSITORY = "daybook-private"
# The Hub cuts a commit off after 60 s; whoever waits longer waits in vain.
_CONNECT_SECONDS, _ANSWER_SECONDS, _POOL_SECONDS = 10.0, 90.0, 30.0

_counters: dict[str, Callable[[], None]] = {}
_installing = threading.Lock()
_is_installed = False


class HubSettingsError(Exception):
    """The connection does not say what is needed to reach the Hub; the text says what is missing."""


@dataclass(frozen=True)
class Hub:
    """Where to publish: the endpoint, a token with write access, and the dataset repository, `namespace/name`."""

    endpoint: str
    token: str = field(repr=False)
    repository: str


def hub(endpoint: str | None, token: str | None, namespace: str | None, repository: str | None = None) -> Hub:
    """Make a Hub from the values of the connection `huggingface`.

    Args:
        endpoint: address; the public Hub where empty.
        namespace: user or organisation that owns the repository.
        repository: its name; `daybook-private` where empty.

    Raises:
        HubSettingsError: token or namespace is missing.
    """
    for name, value in (("a token (its password)", token), ("a namespace (in its extra)", namespace)):
        if not value:
            raise HubSettingsError(
                f"The connection huggingface lacks {name}. Nothing was sent and everything waits in the outbox; "
                "complete the connection."
            )
    return Hub((endpoint or ENDPOINT).rstrip("/"), token or "", f"{namespace}/{repository or REPOSITORY}")


@dataclass(frozen=True)
class ToSend:
    """A file of the outbox on its way: its row, its path in the repository and its bytes."""

    file_id: int
    path: str
    sha256: bytes
    size: int
    local: Path | None = None


@dataclass(frozen=True)
class Head:
    """The newest commit of the repository, and whether only its owner sees it."""

    oid: str | None
    is_private: bool


@dataclass(frozen=True)
class HubCommit:
    """A commit as the Hub confirmed it."""

    oid: str
    url: str


@dataclass(frozen=True)
class HubSession:
    """The Hub's client, counted and with timeouts. Every method raises `HubTrouble` where the Hub does not comply."""

    hub: Hub
    ledger: Ledger
    api: Any

    def head(self) -> Head:
        """Read the newest commit; where there is no repository, make a private one."""
        try:
            return self._head()
        except HubTrouble as trouble:
            if trouble.kind is not Kind.MISSING:
                raise
        with _judged():
            self.api.create_repo(self.hub.repository, repo_type="dataset", private=True, exist_ok=True)
        return self._head()

    def _head(self) -> Head:
        with _judged():
            info = self.api.repo_info(self.hub.repository, repo_type="dataset")
        return Head(info.sha, bool(info.private))

    def held(
        self, files: Sequence[ToSend], texts: Mapping[str, bytes], revision: str | None
    ) -> tuple[list[ToSend], dict[str, bytes]]:
        """Return those of the files and texts that the repository holds with exactly these bytes at a revision."""
        if not files:
            return [], {}
        with _judged():
            found = self.api.get_paths_info(
                self.hub.repository, [*(file.path for file in files), *texts], revision=revision, repo_type="dataset"
            )
        there = {item.path: item for item in found if hasattr(item, "blob_id")}
        same = {path: text for path, text in texts.items() if path in there and git_name(text) == there[path].blob_id}
        return [file for file in files if file.path in there and _is_same(file, there[file.path])], same

    def commit(
        self,
        files: Sequence[ToSend],
        message: str,
        description: str,
        parent: str | None,
        texts: Mapping[str, bytes] = MappingProxyType({}),
    ) -> HubCommit:
        """Send files, and small texts by their paths, as one commit on top of `parent`."""
        from huggingface_hub import CommitOperationAdd

        # The storage token is fetched by a library that the request hook does not see.
        self.ledger.request()
        # Operations cannot be used twice, so each try makes its own.
        operations = [CommitOperationAdd(file.path, str(file.local)) for file in files]
        operations += [CommitOperationAdd(path, text) for path, text in texts.items()]
        with _judged():
            info = self.api.create_commit(
                self.hub.repository,
                operations,
                commit_message=message,
                commit_description=description,
                repo_type="dataset",
                parent_commit=parent,
            )
        return HubCommit(info.oid, info.commit_url)

    def squash(self, message: str) -> None:
        """Put one commit in the place of the whole history; every file stays."""
        with _judged():
            self.api.super_squash_history(self.hub.repository, repo_type="dataset", commit_message=message)

    def commit_url(self, oid: str) -> str:
        """Return the page of a commit."""
        return f"{self.hub.endpoint}/datasets/{self.hub.repository}/commit/{oid}"


def _is_same(file: ToSend, item: Any) -> bool:
    """Large files are known by the hash of their bytes, small ones as git knows them."""
    if item.lfs is not None:
        return bool(item.lfs.sha256 == file.sha256.hex())
    if item.size != file.size or file.local is None:
        return False
    return bool(item.blob_id == git_name(file.local.read_bytes()))


def git_name(content: bytes) -> str:
    """Return the name that git gives to these bytes: what the Hub lists of a small file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@contextmanager
def _judged() -> Iterator[None]:
    """Turn a failure of the Hub into `HubTrouble`; anything else passes as it is."""
    try:
        yield
    except Exception as error:
        # Uploads in threads wrap what stopped them, our own count as well.
        if isinstance(error.__cause__, LedgerFull | LedgerStopped):
            raise error.__cause__ from None
        trouble = judge(error)
        if trouble is None and isinstance(error, ValueError | KeyError | TypeError):
            # A login page, a word of a proxy: its client could not read what came, and a commit may have been made.
            trouble = HubTrouble(Kind.LOST, f"an answer that is not the Hub's ({type(error).__name__}: {error})"[:300])
        if trouble is None:
            raise
        raise trouble from error


@contextmanager
def session(hub: Hub, ledger: Ledger) -> Iterator[HubSession]:
    """Speak to the Hub for the length of the block, every request entered in the ledger."""
    api = client(hub)
    _counters[hub.endpoint] = ledger.request
    try:
        yield HubSession(hub, ledger, api)
    finally:
        if _counters.get(hub.endpoint) == ledger.request:
            del _counters[hub.endpoint]


def download(hub: Hub, path: str) -> bytes:
    """Return the bytes of a file of the repository, asked for with the real client and past every cache.

    Raises:
        HubTrouble: the Hub does not give it.
    """
    with tempfile.TemporaryDirectory(prefix="download-", dir=drafts.here()) as folder, _judged():
        local = client(hub).hf_hub_download(hub.repository, path, repo_type="dataset", cache_dir=folder)
        return Path(local).read_bytes()


def client(hub: Hub) -> Any:
    """Return the Hub's own client, with timeouts; its requests are counted only within `session`."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    _install_client()
    disable_progress_bars()
    return HfApi(endpoint=hub.endpoint, token=hub.token, library_name="daybook")


def _install_client() -> None:
    """Give the Hub's client timeouts and the counting hook, once in this process."""
    global _is_installed
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils import httpx  # type: ignore[attr-defined]
    from huggingface_hub.utils._http import hf_request_event_hook

    timeout = httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS, pool=_POOL_SECONDS)

    def client() -> Any:
        hooks = {"request": [hf_request_event_hook, _count]}
        return httpx.Client(event_hooks=hooks, follow_redirects=True, timeout=timeout)

    with _installing:
        if not _is_installed:
            set_client_factory(client)
            _is_installed = True


def _count(request: Any) -> None:
    address = str(request.url)
    # What a file is, and its bytes, are not asked of the Hub's interface: they have a larger limit of their own.
    if "/resolve/" in request.url.path:
        return
    for endpoint, enter in list(_counters.items()):
        if address.startswith(f"{endpoint}/"):
            enter()
