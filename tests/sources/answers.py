"""Answers for parsers and classifiers, without a network: bytes, a status, and the request that they answer."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from include.contract import Answer, Request, Stream, Unit

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
SENT = datetime(2026, 9, 15, 23, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Bytes:
    """A body held in memory."""

    content: bytes

    def open(self) -> BinaryIO:
        return io.BytesIO(self.content)

    def read(self) -> bytes:
        return self.content


@dataclass(frozen=True)
class Fixture:
    """One file of a source's fixtures, and how it is to be read."""

    stream: str
    path: Path
    key: str
    status: int
    answer_class: str
    reading: dict[str, Any] = field(default_factory=dict)


def answer(request: Request, body: bytes, status: int = 200, **headers: str) -> Answer:
    """An answer as the engine would hand it over."""
    return Answer(request, status, headers, Bytes(body), SENT, 1)


def unit_of(request: Request, *bodies: bytes) -> Unit:
    """A unit of one or more answers with data."""
    return Unit(request.unit, request.session_date, tuple(answer(request, body) for body in bodies))


def fixtures_of(stream: Stream) -> list[Fixture]:
    """The fixtures of a stream, as `tests/fixtures/<source>/readings*.json` list them."""
    found = []
    for listing in sorted((FIXTURES / stream.source).glob("readings*.json")):
        document = json.loads(listing.read_text(encoding="utf-8"))
        if document["stream"] == stream.name:
            found += [
                Fixture(stream.name, listing.parent / name, each["key"], each["status"], each["class"], each)
                for name, each in document["readings"].items()
            ]
    return found
