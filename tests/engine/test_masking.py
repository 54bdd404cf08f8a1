"""A secret of ours is found however somebody wrote it, and nothing else is touched."""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path
from urllib.parse import quote, quote_plus

import httpx
import pytest

from include.contract import Credentials, Request
from include.engine import http
from include.engine.masking import forms, mask
from include.engine.raw import RawStore

SECRET = 'k/ey+"ümlaut" & 7f3a9c'

WRITTEN = {
    "verbatim": SECRET,
    "quote": quote(SECRET),
    "quote_all": quote(SECRET, safe=""),
    "quote_lower": re.sub("%..", lambda found: found[0].lower(), quote(SECRET, safe="")),
    "quote_plus": quote_plus(SECRET),
    "json": json.dumps(SECRET)[1:-1],
    "json_utf8": json.dumps(SECRET, ensure_ascii=False)[1:-1],
    "json_slashes": json.dumps(SECRET)[1:-1].replace("/", "\\/"),
    "html": html.escape(SECRET),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64_url": base64.urlsafe_b64encode(SECRET.encode()).decode(),
    "basic": base64.b64encode(f"user:{SECRET}".encode()).decode(),
    "basic_2": base64.b64encode(f"user1:{SECRET}".encode()).decode(),
    "basic_3": base64.b64encode(f"user12:{SECRET}:tail".encode()).decode(),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_secret_is_masked_however_it_is_written(how: str, tmp_path: Path) -> None:
    written = f"before {WRITTEN[how]} after"
    shown = mask(written, (SECRET,))
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert "***" in shown
    assert not any(form in shown for form in forms((SECRET,)))
    assert "7f3a9c" not in shown
    store = RawStore(str(tmp_path))
    body = written.encode()
    for size in (1, 3, 7, 1000):
        stored = store.put((body[at : at + size] for at in range(0, len(body), size)), (SECRET,))
        kept = store.body(stored.sha256).read()
        assert stored.masked
        assert len(kept) == len(body)
        assert kept.startswith(b"before ")
        assert kept.endswith(b" after")
        assert not any(form.encode() in kept for form in forms((SECRET,)))


def test_text_without_a_secret_stays_as_it_is(tmp_path: Path) -> None:
    text = 'key "other" & a+b/c %2F aGVsbG8gd29ybGQ='
    assert mask(text, (SECRET,)) == text
    assert mask(text, ()) == text
    assert mask(text, ("",)) == text
    stored = RawStore(str(tmp_path)).put([text.encode()], (SECRET,))
    assert not stored.masked


def test_a_short_secret_is_not_looked_for_in_base64() -> None:
    """Three letters of Base64 are anywhere; masking them would spoil what is no secret."""
    assert set(forms(("abc",))) == {"abc"}


def test_no_error_of_a_request_repeats_a_key_that_was_escaped_for_the_address(tmp_path: Path) -> None:
    class Loud(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError(f"cannot reach {request.url}")

    credentials = Credentials("https://data.example", params={"key": SECRET}, secrets=(SECRET,))
    with httpx.Client(transport=Loud()) as client:
        request = Request("a", "https://data.example/x", "a")
        received = http.send(client, request, credentials, {}, RawStore(str(tmp_path)))
    assert received.error is not None
    assert "cannot reach" in received.error
    assert not any(form in received.error for form in forms((SECRET,)))
