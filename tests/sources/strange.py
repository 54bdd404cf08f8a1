"""Answers that nobody would send: what a stream must read, reject by name or refuse in words, and never stumble over.

Promises: each document is changed in one place at a time, by everything that could stand there; deterministic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from include.contract import AnswerClass, AnswerError, DefiniteRefusal, ParseError, Request, Stream, Unit
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


def check(stream: Stream, request: Request, body: bytes) -> int:
    """Give a stream every strange form of a body; return how many of them it took for data.

    Raises:
        AssertionError: it stumbled over one.
    """
    forms = [json.dumps(each).encode() for each in changed(json.loads(body))]
    forms += [body[: len(body) * cut // 20] for cut in range(20)]
    read = 0
    for form in forms:
        given = answer(request, form)
        try:
            if stream.classify(given) not in (AnswerClass.DATA, AnswerClass.EMPTY):
                continue
            list(stream.follow(request, given))
            parsed = stream.parse(Unit(request.unit, request.session_date, (given,)))
            read += sum(1 for batch in parsed.batches for _ in batch.rows) > 0
        except (ParseError, AnswerError, DefiniteRefusal):
            continue
        except Exception as stumble:
            raise AssertionError(f"{type(stumble).__name__}: {stumble}: {form[:400]!r}") from stumble
    return read
