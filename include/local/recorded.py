"""Recorded answers: which of them our streams would collect, and what their right reading is.

Promises: days and units are found by the streams' own plans, so any source with dates in its addresses is served (what
has none there is read by itself, see `readings`); a manifest beside the recordings, where there is one, says how each
file is read rightly. Never: a recording is copied or changed.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from include import registry
from include.contract import Ask, Mode, Source, Stream

_DAY = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")
# Days that lie this close together are collected by one backfill.
_ONE_RUN = timedelta(days=5)


@dataclass(frozen=True)
class Recording:
    """One recorded answer: where it is served, for which pairs in address or form, with which status, and its file."""

    host: str
    path: str
    status: int
    file: str
    method: str = "GET"
    pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Wanted:
    """A recorded answer that a stream asks for: by which request's unit, for which session date."""

    source: Source
    stream: Stream
    unit: str
    day: date
    recording: Recording


@dataclass(frozen=True)
class RightReading:
    """How a recorded file is read rightly: its rows, and whether its own count of rows fits them."""

    rows: int
    is_whole: bool


def read(directory: Path) -> list[Recording]:
    """Return the recordings of a directory.

    Raises:
        OSError: `recordings.tsv` cannot be read.
    """
    with (directory / "recordings.tsv").open(encoding="utf-8", newline="") as file:
        return [
            Recording(
                row["host"],
                row["path"],
                int(row["status"]),
                row["file"],
                (row.get("method") or "GET").upper(),
                (*_pairs(row.get("query_has")), *_pairs(row.get("body_has"))),
            )
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]


def _pairs(text: str | None) -> list[tuple[str, str]]:
    return parse_qsl(text or "", keep_blank_values=True)


def wanted(recordings: list[Recording]) -> list[Wanted]:
    """Return what our streams would ask for, the oldest day first."""
    found = [
        item
        for source in registry.sources()
        for stream in source.streams
        for item in _of_stream(source, stream, recordings)
    ]
    return sorted(found, key=lambda item: (item.source.name, item.stream.name, item.day, item.unit))


def _of_stream(source: Source, stream: Stream, recordings: list[Recording]) -> Iterator[Wanted]:
    hosts = {urlsplit(host).netloc for host in source.hosts}
    ours = [recording for recording in recordings if recording.host in hosts]
    for day in sorted({day for recording in ours for day in _days(recording.path)}):
        for request in stream.plan(Ask(Mode.BACKFILL, sessions=(day,))):
            parts = urlsplit(request.url)
            for recording in ours:
                if parts.netloc == recording.host and fnmatchcase(parts.path, recording.path):
                    yield Wanted(source, stream, request.unit, day, recording)


def _days(path: str) -> Iterator[date]:
    for match in _DAY.finditer(path):
        try:
            yield date(*map(int, match.groups()))
        except ValueError:
            continue


def ranges(days: list[date]) -> list[tuple[date, date]]:
    """Put days that lie close together into one range each."""
    found: list[tuple[date, date]] = []
    for day in sorted(set(days)):
        if found and day - found[-1][1] <= _ONE_RUN:
            found[-1] = (found[-1][0], day)
        else:
            found.append((day, day))
    return found


def right_readings(directory: Path) -> dict[str, RightReading]:
    """Return the right readings that a manifest beside the recordings gives, by file; empty without one."""
    manifest = directory / "MANIFEST.tsv"
    if not manifest.is_file():
        return {}
    csv.field_size_limit(10_000_000)
    found = {}
    with manifest.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            reading = _json(row.get("right_reading") or "")
            rows = _rows(reading)
            if rows is not None:
                is_whole = reading.get("trailer_equals_rows") is True
                if "trailer_equals_rows" not in reading:
                    is_whole = reading.get("count") in (None, rows)
                found[row["file"]] = RightReading(rows, is_whole)
    return found


def _rows(reading: dict[str, Any]) -> int | None:
    """How many rows a right reading has: said so, by days, or by the bars of each symbol."""
    if isinstance(reading.get("symbols"), dict):
        return sum(each["bars"] for each in reading["symbols"].values())
    told = [reading[name] for name in ("rows", "days") if isinstance(reading.get(name), int)]
    return told[0] if told else None


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def start_after(recordings: list[Recording], usual: datetime) -> datetime:
    """Return when a demo of recordings plays: as usual, or on the first Wednesday after the last recorded day."""
    last = max((item.day for item in wanted(recordings)), default=usual.date())
    start = usual
    while start.date() <= last:
        start += timedelta(days=7)
    return start
