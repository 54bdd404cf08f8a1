"""What our own secrets look like wherever an upstream, a library or a proxy may repeat them.

Promises: a secret is found as it is, escaped for an address, for JSON or for HTML, and inside Base64 text wherever it
begins there; what is masked keeps its length. Never: a secret is written anywhere, not even in part.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote, quote_plus

# Fewer characters of Base64 than this could be anything, and would mask what is no secret.
LEAST_BASE64 = 8


@lru_cache(maxsize=64)
def forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Return every spelling of some secrets that is looked for, the longest first."""
    found = {form for secret in secrets if secret for form in _forms_of(secret)}
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


def _forms_of(secret: str) -> Iterable[str]:
    yield secret
    for escaped in (quote(secret), quote(secret, safe=""), quote_plus(secret)):
        yield escaped
        yield _with_lower_hex(escaped)
    for ascii_only in (True, False):
        text = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield text
        yield text.replace("/", "\\/")
    yield html.escape(secret)
    yield html.escape(secret, quote=False)
    yield from _in_base64(secret.encode())


def _with_lower_hex(escaped: str) -> str:
    """Some write %2B as %2b."""
    head, *rest = escaped.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])


def _in_base64(secret: bytes) -> Iterable[str]:
    """Yield what stands for a secret in Base64 whatever is before and after it: three ways, by where it begins.

    Characters that also carry bits of a neighbour are left out, so that every neighbour is covered.
    """
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + secret).decode().rstrip("=")
        first = -(-8 * before // 6)
        last = 8 * (before + len(secret)) // 6
        core = encoded[first:last]
        if len(core) >= LEAST_BASE64:
            yield core
            yield core.replace("+", "-").replace("/", "_")


def mask(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text without any spelling of the secrets."""
    for form in forms(secrets):
        text = text.replace(form, "***")
    return text


def mask_chunks(chunks: Iterable[bytes], secrets: tuple[str, ...]) -> Iterable[tuple[bytes, bool]]:
    """Replace the secrets by asterisks of the same length, also where two chunks meet.

    Yields:
        The bytes to be kept, and whether a secret was found since the last ones.
    """
    needles = [form.encode() for form in forms(secrets)]
    if not needles:
        yield from ((chunk, False) for chunk in chunks)
        return
    keep = max(map(len, needles)) - 1
    rest = b""
    for chunk in chunks:
        window, found = rest + chunk, False
        for needle in needles:
            if needle in window:
                window, found = window.replace(needle, b"*" * len(needle)), True
        cut = max(len(window) - keep, 0)
        rest = window[cut:]
        yield window[:cut], found
    yield rest, False
