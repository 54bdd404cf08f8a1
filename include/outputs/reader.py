"""Reading the Hub, for whoever keeps copies: one file's name and size, a whole listing, a file's bytes.

Promises: an answer that says nothing of the file asked for (a login page, a proxy's word, half a listing) is a
failure and never an answer; a listing is of one commit and whole, or there is none; bytes that were downloaded are
those that the Hub announced. "There is no such file" is told apart from "there is no such repository" and from no
answer at all. Never: no redirect to another host is followed to learn what a file is, and the client's own cache,
which gives an old file where the Hub refuses, is not used.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.outputs.held import Entry, digest
from include.outputs.hub import Hub, client
from include.outputs.trouble import HubTrouble, Kind, judge

# How many paths one request may name.
AT_ONCE = 1_000
# How long the Hub has to say what a file is, in seconds.
HEAD_SECONDS = 15.0
_ETAG = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Listing:
    """Every file of the repository (or below one folder) at a commit, by path."""

    commit: str
    files: dict[str, Entry]


@dataclass(frozen=True)
class Reader:
    """The Hub's client for reading. Every method raises `HubTrouble` where the Hub does not comply.

    What it asks is counted within `hub.session`, like what the publisher asks.
    """

    hub: Hub

    def one(self, path: str) -> tuple[str, Entry | None]:
        """Ask what a file is, by HEAD; return the newest commit, and None for a file that it does not have."""
        from huggingface_hub import hf_hub_url

        url = hf_hub_url(self.hub.repository, path, repo_type="dataset", endpoint=self.hub.endpoint)
        with _judged() as missing:
            found = client(self.hub).get_hf_file_metadata(url=url, token=self.hub.token, timeout=HEAD_SECONDS)
        if missing:
            return "", None
        etag, commit = found.etag or "", found.commit_hash or ""
        if not _ETAG.fullmatch(etag) or not _COMMIT.fullmatch(commit) or found.size is None:
            raise HubTrouble(Kind.LOST, f"what answered for {path} is not the Hub: no commit, size or hash of a file")
        return commit, Entry(path, int(found.size), etag)

    def some(self, paths: Sequence[str]) -> Listing:
        """Ask what many files are, by a thousand at once; those that the Hub does not have are left out."""
        commit, files = self.head(), dict[str, Entry]()
        for start in range(0, len(paths), AT_ONCE):
            with _judged():
                found = client(self.hub).get_paths_info(
                    self.hub.repository, list(paths[start : start + AT_ONCE]), revision=commit, repo_type="dataset"
                )
                files.update({item.path: _entry(item) for item in found if hasattr(item, "blob_id")})
        return Listing(commit, files)

    def all(self, below: str = "") -> Listing:
        """List every file, below one folder where it is named; a folder that is not there has none."""
        commit = self.head()
        files: dict[str, Entry] = {}
        with _judged() as missing:
            found = client(self.hub).list_repo_tree(
                self.hub.repository, below or None, recursive=True, revision=commit, repo_type="dataset"
            )
            for item in found:
                if hasattr(item, "blob_id"):
                    files[item.path] = _entry(item)
        if missing and (files or not below):
            raise HubTrouble(Kind.LOST, f"the listing of {self.hub.repository} at {commit[:10]} broke off")
        return Listing(commit, files)

    def head(self) -> str:
        """Return the newest commit."""
        with _judged():
            info = client(self.hub).repo_info(self.hub.repository, repo_type="dataset")
        if not _COMMIT.fullmatch(info.sha or ""):
            raise HubTrouble(Kind.LOST, f"what answered for {self.hub.repository} names no commit")
        return str(info.sha)

    @contextmanager
    def fetched(self, entry: Entry, commit: str, workspace: Path) -> Iterator[Path]:
        """Download a file at a commit; its bytes are compared with what was announced before they are given.

        Raises:
            HubTrouble: it does not come, or comes with other bytes.
            OSError: there is no room for it.
        """
        with tempfile.TemporaryDirectory(prefix="get-", dir=workspace) as folder:
            with _judged() as missing:
                name = client(self.hub).hf_hub_download(
                    self.hub.repository, entry.path, repo_type="dataset", revision=commit, cache_dir=folder
                )
            if missing:
                raise HubTrouble(Kind.MISSING, f"the Hub lists {entry.path} at {commit[:10]} and does not give it")
            # The client keeps bytes under their hash and gives a link to them.
            local = Path(name).resolve()
            size = local.stat().st_size
            if size != entry.size or digest(local, entry.etag) != entry.etag:
                raise HubTrouble(
                    Kind.LOST, f"{entry.path} came with other bytes than announced ({size} of {entry.size})"
                )
            yield local


def _entry(item: Any) -> Entry:
    return Entry(item.path, int(item.size), item.lfs.sha256 if item.lfs is not None else item.blob_id)


@contextmanager
def _judged() -> Iterator[list[bool]]:
    """Turn a failure of the Hub into `HubTrouble`; a file that is not there is noted in the list that is given."""
    from huggingface_hub.errors import FileMetadataError, LocalEntryNotFoundError, RemoteEntryNotFoundError

    missing: list[bool] = []
    try:
        yield missing
    except RemoteEntryNotFoundError:
        missing.append(True)
    except Exception as error:
        # The client wraps whatever kept it from the Hub, as it looks for a cached copy then.
        cause = error.__cause__ if isinstance(error, LocalEntryNotFoundError) else error
        if isinstance(cause, RemoteEntryNotFoundError):
            missing.append(True)
            return
        trouble = judge(cause) if isinstance(cause, Exception) else None
        if trouble is None and isinstance(cause, FileMetadataError | ValueError | TypeError | KeyError):
            trouble = HubTrouble(Kind.LOST, f"an answer that is not the Hub's ({type(cause).__name__}: {cause})"[:300])
        if trouble is None:
            raise
        raise trouble from error
