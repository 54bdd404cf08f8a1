"""Recorded answers that no day in their address tells: each is read by itself, by the stream that would ask for it.

Promises: for whom and for which day an answer is, is looked for in the address's pairs and in the answer; what a stream
would ask is found by its own plan and by what it lets follow; it is read by the stream's own parser, as it would be in
a slice. Never: a request is sent, and no row is written.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo

from include import registry
from include.contract import (
    Answer,
    AnswerClass,
    AnswerError,
    Ask,
    DefiniteRefusal,
    Mode,
    ParseError,
    Request,
    Stream,
    Unit,
)
from include.local.recorded import Recording

_DAY = re.compile(r"(?<![\dT:])(?P<day>\d{4}-\d{2}-\d{2})(?P<time>T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z)?(?!\d)")
# A day as some addresses have it; within an answer eight digits may be any number.
_TOGETHER = re.compile(r"(?<!\d)(\d{4})(\d{2})(\d{2})(?!\d)")
# Days beyond it are words for "for ever".
_LAST_DAY = date(2200, 1, 1)
# So many requests of a plan are looked at, and so many bytes of an answer for its days.
_FEW, _HEAD = 8, 1 << 20


@dataclass(frozen=True)
class Body:
    """An answer held in memory."""

    content: bytes

    def open(self) -> BinaryIO:
        """Open it for reading from the start."""
        return io.BytesIO(self.content)

    def read(self) -> bytes:
        """Return all of it."""
        return self.content


@dataclass(frozen=True)
class Reading:
    """What reading one recorded answer came to: by which stream, how many rows, and why not where there are none."""

    stream: Stream
    recording: Recording
    rows: int = 0
    rejected: int = 0
    refused: str = ""


def read(directory: Path, recordings: Sequence[Recording], known: set[str]) -> list[Reading]:
    """Return how each answer is read that is not known to be collected; without those that nobody of ours asks for.

    Args:
        directory: where the files are.
        recordings: all of them.
        known: files of those that are collected.
    """
    found = []
    for recording in recordings:
        if recording.file in known:
            continue
        readings = [
            _read(stream, request, recording, (directory / recording.file).read_bytes())
            for source in registry.sources()
            if recording.host in {urlsplit(host).netloc for host in source.hosts}
            for stream in source.streams
            for request in _asked(stream, directory, recording, recordings)
        ]
        if readings:
            # Where several streams would ask for it, it is for the one that reads most of it.
            found.append(min(readings, key=lambda reading: (bool(reading.refused), reading.rejected, -reading.rows)))
    return found


def _asked(stream: Stream, directory: Path, recording: Recording, recordings: Sequence[Recording]) -> Iterator[Request]:
    """Return the request, if there is one, that a stream would send for a recorded answer."""
    text = (directory / recording.file).read_bytes()[:_HEAD].decode("utf-8", "replace")
    told = (_TOGETHER.sub(r"\1-\2-\3", value) for _, value in recording.pairs)
    days = _days(stream, " ".join([*told, text]))
    ask = Ask(Mode.BACKFILL, sessions=days[-1:], keys=_keys(stream, recording))
    for request in _walk(stream, directory, ask, recordings):
        form = parse_qsl((request.body or b"").decode("utf-8", "replace"), keep_blank_values=True)
        pairs = {(name, _in_order(value)) for name, value in (*request.params, *form)}
        if _is_at(request, recording) and all((name, _in_order(value)) in pairs for name, value in recording.pairs):
            yield request
            return


def _keys(stream: Stream, recording: Recording) -> tuple[str, ...]:
    """The keys that the address names: a value, or its parts, that the stream knows."""
    for _, value in recording.pairs:
        parts = tuple(value.split(","))
        if all(map(stream.known_key, parts)):
            return parts
    return ()


def _in_order(value: str) -> tuple[str, ...]:
    return tuple(sorted(value.split(",")))


def _days(stream: Stream, text: str) -> tuple[date, ...]:
    """The days that a text holds and that the stream may have data for, in order; its first where there is none."""
    found = set()
    for match in _DAY.finditer(text):
        try:
            day = date.fromisoformat(match["day"])
            if match["time"]:
                at = datetime.fromisoformat(match["day"] + match["time"])
                day = at.astimezone(ZoneInfo(stream.schedule.day_zone)).date()
        except (ValueError, OverflowError):
            continue
        if stream.first_session <= day < _LAST_DAY:
            found.add(day)
    return tuple(sorted(found)) or (stream.first_session,)


def _walk(stream: Stream, directory: Path, ask: Ask, recordings: Sequence[Recording]) -> Iterator[Request]:
    """Return one request of each address that a plan leads to, by whatever was recorded there."""
    queue, seen = list(islice(stream.plan(ask), _FEW)), set[str]()
    while queue:
        request = queue.pop(0)
        if request.url in seen:
            continue
        seen.add(request.url)
        yield request
        for recording in recordings:
            if _is_at(request, recording) and recording.status == 200:
                answer = _answer(request, recording, (directory / recording.file).read_bytes())
                # What leads nowhere says nothing of where others lead to.
                with suppress(Exception):
                    queue.extend(stream.follow(request, answer))


def _is_at(request: Request, recording: Recording) -> bool:
    parts = urlsplit(request.url)
    is_there = parts.netloc == recording.host and fnmatchcase(parts.path, recording.path)
    return is_there and request.method == recording.method


def _answer(request: Request, recording: Recording, body: bytes) -> Answer:
    return Answer(request, recording.status, {}, Body(body), datetime.now(UTC))


def _read(stream: Stream, request: Request, recording: Recording, body: bytes) -> Reading:
    """Read an answer as a slice would; where a recorder put it into a wrapper of its own, what is in there."""
    inside = _inside(body)
    readings = [_read_one(stream, request, recording, each) for each in (body, *([inside] if inside else []))]
    return next((reading for reading in readings if not reading.refused), readings[0])


def _inside(body: bytes) -> bytes | None:
    try:
        document = json.loads(body)
    except ValueError:
        return None
    held: Any = document.get("body") if isinstance(document, dict) else None
    return json.dumps(held).encode() if isinstance(held, dict | list) else None


def _read_one(stream: Stream, request: Request, recording: Recording, body: bytes) -> Reading:
    answer, reading = _answer(request, recording, body), Reading(stream, recording)
    try:
        answer_class = stream.classify(answer)
        if answer_class not in (AnswerClass.DATA, AnswerClass.EMPTY):
            return replace(reading, refused=f"HTTP {recording.status}, {answer_class}")
        parsed = stream.parse(Unit(request.unit, request.session_date, (answer,)))
        # Whom it had nothing for is no row of the answer.
        rows = sum(1 for batch in parsed.batches if batch.table.is_published for _ in batch.rows)
    except Exception as no:
        is_known = isinstance(no, ParseError | AnswerError | DefiniteRefusal)
        return replace(reading, refused=f"{'' if is_known else f'{type(no).__name__}: '}{no}"[:200])
    return replace(reading, rows=rows, rejected=len(parsed.rejected))
