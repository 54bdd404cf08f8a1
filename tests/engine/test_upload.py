"""Finished files in an object store: whole under their name, or as it was before. Against a server of S3's protocol."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from include.engine import upload
from include.engine.files import FileStore
from include.engine.raw import RawObjectMissing, RawStore
from include.outputs.store import OutboxStore

s3fs = pytest.importorskip("s3fs", reason="requirements-celery-up.txt is not installed (./run up --executor celery)")
moto = pytest.importorskip("moto.server", reason="requirements-celery-up.txt is not installed")

PART = 5 << 20
BODY = os.urandom(PART + 5)
PATH = "edgar/companyfacts/0000320193.parquet"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A bucket of a server that speaks S3, on loopback; the store's own client looks into it."""
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.get_host_and_port()[1]}",
        "AWS_ACCESS_KEY_ID": "of a test",
        "AWS_SECRET_ACCESS_KEY": "of a test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    # The smallest part that S3 takes.
    monkeypatch.setattr(upload, "PART", PART)
    s3fs.S3FileSystem.clear_instance_cache()
    store = s3fs.S3FileSystem()
    store.makedirs("daybook", exist_ok=True)
    try:
        yield store
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()


def seen(asked: Callable[..., Any], look: Callable[[str, dict[str, Any]], None]) -> Callable[..., Any]:
    """A request to the store, at which one looks before it is made."""

    def call(self: Any, name: str, *words: Any, **values: Any) -> Any:
        look(name, values)
        return asked(self, name, *words, **values)

    return call


def watch(monkeypatch: pytest.MonkeyPatch, look: Callable[[str, dict[str, Any]], None]) -> None:
    """Look at every request: those of a file that is open wait for their answer, and the others do not."""
    for name in ("call_s3", "_call_s3"):
        monkeypatch.setattr(s3fs.S3FileSystem, name, seen(getattr(s3fs.S3FileSystem, name), look))


def refuse(monkeypatch: pytest.MonkeyPatch, method: str, number: int | None = None) -> None:
    """Let one request to the store fail, once; the next one is answered again."""
    left = [method]

    def look(name: str, values: dict[str, Any]) -> None:
        if name in left and values.get("PartNumber") == number:
            left.clear()
            raise OSError("the connection was reset")

    watch(monkeypatch, look)


def test_a_copy_that_breaks_off_leaves_the_store_as_it_was(
    s3: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An error in mid-copy is no reason to make an object of what was sent so far: not in any of the three stores."""
    raw, files, outbox = (
        RawStore("s3://daybook/raw"),
        FileStore("s3://daybook/files"),
        OutboxStore("s3://daybook/outbox"),
    )
    digest = hashlib.sha256(BODY).digest()

    def put_raw(body: bytes) -> None:
        raw.put([body])

    def put_file(body: bytes) -> None:
        files.place(files.draft(PATH, lambda file: file.write(body))[0])

    def put_outbox(body: bytes) -> None:
        made = tmp_path / "made.parquet"
        made.write_bytes(body)
        outbox.place(made, hashlib.sha256(body).digest())

    put_file(b"of last week")
    for put in (put_raw, put_file, put_outbox):
        for method, number, body in (("upload_part", 2, BODY), ("put_object", None, BODY[:1000])):
            with monkeypatch.context() as broken:
                refuse(broken, method, number)
                with pytest.raises(OSError, match="reset"):
                    put(body)
            with pytest.raises(RawObjectMissing):
                raw.open(hashlib.sha256(body).digest())
            assert files.path(PATH).read_bytes() == b"of last week"
            assert not outbox.path(hashlib.sha256(body).digest()).exists()
            assert s3.call_s3("list_multipart_uploads", Bucket="daybook").get("Uploads", []) == []

    put_raw(BODY), put_file(BODY), put_outbox(BODY)
    assert raw.body(digest).read() == files.path(PATH).read_bytes() == outbox.path(digest).read_bytes() == BODY


def test_a_file_goes_in_as_few_requests_as_its_size_allows(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most answers are small, and a store is paid by the request."""
    asked: list[str] = []
    watch(monkeypatch, lambda name, values: asked.append(name))
    RawStore("s3://daybook/raw").put([BODY[:1000]])
    assert [name for name in asked if "put" in name or "upload" in name] == ["put_object"]
