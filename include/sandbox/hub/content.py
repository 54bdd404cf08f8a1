"""The Hub's storage: small files, LFS objects, and what the Xet client uploaded.

Promises: everything is kept under its own hash and survives a restart; a file is there whole or not at all;
what is given out for a SHA-256 has that SHA-256. Never: anything stored is changed.
"""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from pathlib import Path

from include.sandbox.hub.formats import Chunk, FormatError, XetFile, chunks_of, files_of, unpacked


def git_oid(content: bytes) -> str:
    """The name that git gives a file."""
    head = f"blob {len(content)}\x00".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()


def pointer(sha256: str, size: int) -> bytes:
    """The text that git keeps in the place of a large file."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    passing = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    passing.write_bytes(content)
    os.replace(passing, path)


class Content:
    """All stored bytes below one directory.

    `identity` is made once for the directory: a client's own cache of what it uploaded is kept by address, so
    the address of the Xet store must change when the store does.
    """

    def __init__(self, directory: Path) -> None:
        self._root = directory
        self._lock = threading.Lock()
        self._files: dict[str, XetFile] = {}
        self._by_hash: dict[str, XetFile] = {}
        self._chunks: dict[str, tuple[Chunk, ...]] = {}
        name = directory / "identity"
        if not name.exists():
            write_whole(name, uuid.uuid4().hex.encode())
        self.identity = name.read_text().strip()
        for shard in sorted((directory / "shards").glob("*.mdb")):
            self._learn(files_of(shard.read_bytes()))

    # --- small files, LFS objects ---------------------------------------------------------------------

    def keep_small(self, content: bytes) -> str:
        """Keep a small file; gives its git name."""
        oid = git_oid(content)
        path = self._root / "small" / oid
        if not path.exists():
            write_whole(path, content)
        return oid

    def small(self, oid: str) -> bytes:
        """A small file by its git name."""
        return (self._root / "small" / oid).read_bytes()

    def keep_object(self, sha256: str, content: bytes) -> None:
        """Keep an LFS object.

        Raises:
            FormatError: the content has another hash.
        """
        if hashlib.sha256(content).hexdigest() != sha256:
            raise FormatError("the content does not have the SHA-256 under which it was sent")
        write_whole(self._root / "objects" / sha256, content)

    def size_of(self, sha256: str) -> int | None:
        """The length of a large file, or None where it was never uploaded."""
        path = self._root / "objects" / sha256
        if path.exists():
            return path.stat().st_size
        found = self.xet_file(sha256)
        return found.size if found else None

    def large(self, sha256: str) -> bytes | None:
        """A large file by its SHA-256, however it was uploaded, or None.

        Raises:
            FormatError: what the chunks give is not that file.
        """
        path = self._root / "objects" / sha256
        if path.exists():
            return path.read_bytes()
        found = self.xet_file(sha256)
        if found is None:
            return None
        parts: list[bytes] = []
        for term in found.terms:
            xorb = self.xorb(term.xorb)
            parts.extend(unpacked(xorb, chunk) for chunk in self.chunks(term.xorb)[term.first : term.last])
        content = b"".join(parts)
        self.keep_object(sha256, content)
        return content

    # --- Xet ------------------------------------------------------------------------------------------

    def keep_xorb(self, name: str, body: bytes) -> bool:
        """Keep a xorb; gives whether it was new.

        Raises:
            FormatError: it cannot be read.
        """
        chunks_of(body)
        path = self._root / "xorbs" / name
        if path.exists():
            return False
        write_whole(path, body)
        return True

    def keep_shard(self, body: bytes) -> int:
        """Keep a shard; gives the number of files that it describes.

        Raises:
            FormatError: it cannot be read, or a file needs chunks that were never uploaded.
        """
        files = files_of(body)
        for file in files:
            for term in file.terms:
                if not (self._root / "xorbs" / term.xorb).exists():
                    raise FormatError(f"the file {file.hash} needs the xorb {term.xorb}, which was not uploaded")
                if term.last > len(self.chunks(term.xorb)):
                    raise FormatError(f"the file {file.hash} needs chunks that the xorb {term.xorb} does not hold")
        write_whole(self._root / "shards" / f"{hashlib.sha256(body).hexdigest()}.mdb", body)
        self._learn(files)
        return len(files)

    def _learn(self, files: tuple[XetFile, ...]) -> None:
        with self._lock:
            for file in files:
                self._files[file.sha256] = file
                self._by_hash[file.hash] = file

    def xet_file(self, sha256: str) -> XetFile | None:
        """A file that the Xet client uploaded, by its SHA-256."""
        with self._lock:
            return self._files.get(sha256)

    def by_xet_hash(self, name: str) -> XetFile | None:
        """A file that the Xet client uploaded, by its Xet hash."""
        with self._lock:
            return self._by_hash.get(name)

    def xorb(self, name: str) -> bytes:
        """A xorb's bytes."""
        return (self._root / "xorbs" / name).read_bytes()

    def has_xorb(self, name: str) -> bool:
        """Whether a xorb was uploaded."""
        return (self._root / "xorbs" / name).exists()

    def chunks(self, name: str) -> tuple[Chunk, ...]:
        """A xorb's chunks."""
        with self._lock:
            known = self._chunks.get(name)
        if known is None:
            known = chunks_of(self.xorb(name))
            with self._lock:
                self._chunks[name] = known
        return known
