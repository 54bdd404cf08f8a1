"""Answers that nobody would send: what a stream must read, reject by name or refuse in words, and never stumble over.

Promises: each document is changed in one place at a time, by everything that could stand there; bytes are cut, damaged,
packed and put into other characters; deterministic.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from include.contract import AnswerClass, AnswerError, DefiniteRefusal, ParseError, QuotaUsedUp, Request, Stream, Unit
from tests.sources.answers import answer

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**30, 1e308, float("nan"), "", "x", ".", "NaN", "1e999999999", "\0", "9999-12-31",
    "0001-01-01", "0001-01-01T00:00:00Z", [], {}, [None], {"a": None},
)  # fmt: skip


def changed(document: Any) -> Iterator[Any]:
    """The document with one thing in it replaced, left out or given twice."""
    for path in _paths(document, ()):
        if not path:
            yield from VALUES
            continue
        for value in VALUES:
            yield _with(document, path, lambda holder, name, value=value: holder.__setitem__(name, value))
        yield _with(document, path, lambda holder, name: holder.pop(name))
        if isinstance(path[-1], int):
            yield _with(document, path, lambda holder, name: holder.append(holder[name]))


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for name, each in inside:
        yield from _paths(each, (*path, name))


def _with(document: Any, path: tuple[Any, ...], change: Any) -> Any:
    copy = holder = json.loads(json.dumps(document))
    for name in path[:-1]:
        holder = holder[name]
    change(holder, path[-1])
    return copy


def damaged(body: bytes, times: int = 40) -> Iterator[bytes]:
    """The body cut, packed, in other characters, nested without end, and with bytes lost, added and repeated."""
    yield from (body[: len(body) * cut // 20] for cut in range(20))
    yield from (gzip.compress(body, mtime=0), b"\xef\xbb\xbf" + body, body + bytes(40), body + body)
    text = body.decode("utf-8", "replace")
    yield from (text.encode("utf-16"), text.encode("cp949", "replace"), json.dumps(text).encode())
    yield from (b"null", b"[]", b"{}", b"[" * 20_000, b'{"a":' * 20_000, b"<a>" * 20_000)
    chance = Random(len(body))
    inserts = (b"\0", b"\xff", b"9" * 40, b"-", b'"', b"<", b"&", b"1e999999999", b"\n", b"|")
    for _ in range(times if body else 0):
        form, place = bytearray(body), chance.randrange(len(body))
        match chance.randrange(4):
            case 0:
                form[place] = chance.randrange(256)
            case 1:
                del form[place : place + chance.randrange(1, 40)]
            case 2:
                form[place:place] = form[chance.randrange(len(form)) :][:80]
            case _:
                form[place:place] = chance.choice(inserts)
        yield bytes(form)


def check(stream: Stream, request: Request, body: bytes) -> int:
    """Give a stream every strange form of a body, of JSON each changed document too; return how many it took for data.

    Raises:
        AssertionError: it stumbled over one.
    """
    forms = list(damaged(body))
    if body.lstrip()[:1] in (b"{", b"["):
        forms += [json.dumps(each).encode() for each in changed(json.loads(body))]
    read = 0
    for form in forms:
        given = answer(request, form)
        try:
            if stream.classify(given) not in (AnswerClass.DATA, AnswerClass.EMPTY):
                continue
            list(stream.follow(request, given))
            parsed = stream.parse(Unit(request.unit, request.session_date, (given,)))
            read += sum(1 for batch in parsed.batches for _ in batch.rows) > 0
        except (ParseError, AnswerError, DefiniteRefusal, QuotaUsedUp):
            continue
        except Exception as stumble:
            raise AssertionError(f"{type(stumble).__name__}: {stumble}: {form[:400]!r}") from stumble
    return read
