"""Checks of a file before it is sent, against the last published one of its path.

Promises: what is judged is read from the very bytes that would be sent; each check has a name, says whether it passed,
what it counted and whether it holds the file. Memory does not grow with the file. Never: no database, no network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from include.calendars import Calendar
from include.outputs.parquet import ROWS_PER_GROUP

# A file with fewer than this share of the rows of the one before is held, where that had so many at least.
LEAST_ROWS, OF_ROWS = 0.8, 20
# So many times the rows of the one before are told; it is how a backfill looks, so nothing is held for it.
MOST_TIMES = 20
# Bytes for each row may be so many times more or fewer, where both have enough rows for a mean.
SIZE_TIMES, SIZE_OF_ROWS = 4.0, 1_000
# What the Hub takes: entries of one folder (fewer than this), and files of a repository.
FOLDER_ENTRIES, REPOSITORY_FILES = 10_000, 100_000


class NotParquet(Exception):
    """A file cannot be read as what it should be; the text says why."""


@dataclass(frozen=True)
class Facts:
    """What a file holds, as read from its bytes.

    `columns` are names and types in order; `duplicates` counts rows whose key is that of the row before (rows lie in
    key order), `disorder` those that do not come after it; `sessions` are its session dates, None where they are not
    compared.
    """

    rows: int
    size: int
    columns: tuple[tuple[str, str], ...]
    duplicates: int = 0
    disorder: int = 0
    sessions: tuple[date, ...] | None = None

    @property
    def as_row(self) -> dict[str, Any]:
        """As kept with the file, for the next one to be compared with."""
        sessions = None if self.sessions is None else [day.isoformat() for day in self.sessions]
        return {"columns": [list(column) for column in self.columns], "sessions": sessions}


@dataclass(frozen=True)
class Check:
    """One check and what came of it; `blocks` says whether the file is held where it did not pass."""

    name: str
    passed: bool
    blocks: bool
    words: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether this is why a file is held."""
        return self.blocks and not self.passed


@dataclass(frozen=True)
class Room:
    """How full a folder and the repository would be with the file in it; a new version of a file takes no room."""

    folder: str
    entries: int
    files: int
    is_new: bool = True


def read(file: Path, *, by_session: bool) -> Facts:
    """Read what a file holds; `by_session`: its session dates as well, of which it then has few.

    Raises:
        NotParquet: it cannot be read.
    """
    import pyarrow as pa

    try:
        return _read(file, by_session=by_session)
    except (pa.ArrowException, OSError) as error:
        raise NotParquet(f"it cannot be read: {str(error).partition(chr(10))[0][:300]}") from None


def _read(file: Path, *, by_session: bool) -> Facts:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as opened:
        schema = opened.schema_arrow
        about = {name.decode(): value.decode() for name, value in (schema.metadata or {}).items()}
        key = [name for name in about.get("key", "").split(",") if name]
        session_date = about.get("session_date") if by_session else None
        columns = tuple((each.name, str(each.type)) for each in schema)
        wanted = [*key, *([session_date] if session_date and session_date not in key else [])]
        duplicates = disorder = 0
        sessions: set[date] = set()
        last: Any = None
        if wanted:
            for batch in opened.iter_batches(batch_size=ROWS_PER_GROUP, columns=wanted, use_threads=False):
                if key:
                    same, before = _neighbours(batch, key, last)
                    duplicates, disorder = duplicates + same, disorder + before
                    last = batch.slice(batch.num_rows - 1)
                if session_date:
                    sessions |= set(batch.column(session_date).unique().to_pylist())
        days = tuple(sorted(day for day in sessions if day is not None)) if session_date else None
        return Facts(opened.metadata.num_rows, file.stat().st_size, columns, duplicates, disorder, days)


def _neighbours(batch: Any, key: Sequence[str], last: Any) -> tuple[int, int]:
    """How many rows have the key of the row before, and how many come before it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.Table.from_batches([each for each in (last, batch) if each is not None])
    if table.num_rows < 2:
        return 0, 0
    equal: Any = None
    before: Any = None
    for name in key:
        column = table.column(name).combine_chunks()
        if pa.types.is_string(column.type):
            # Text is in the order of its bytes, as it was written.
            column = column.cast(pa.binary())
        above, here = column.slice(0, len(column) - 1), column.slice(1)
        same = pc.fill_null(pc.equal(above, here), False)
        less = pc.fill_null(pc.less(here, above), False)
        before = less if equal is None else pc.or_(before, pc.and_(equal, less))
        equal = same if equal is None else pc.and_(equal, same)
    return int(pc.sum(equal).as_py() or 0), int(pc.sum(before).as_py() or 0)


def judge(
    facts: Facts, before: Facts | None, *, days: Calendar | None, room: Room, unbuilt: Sequence[str] = ()
) -> list[Check]:
    """Judge a file by what it holds and by the last published one of its path.

    Args:
        facts: what it holds.
        before: what the last published one held; None where there was none.
        days: the trading calendar of its session dates, where they follow one.
        room: how full its folder and the repository would be.
        unbuilt: parts of its release that no file was ever made of.
    """
    return [
        _missing(unbuilt),
        _rows(facts, before),
        _size(facts, before),
        _schema(facts, before),
        _keys(facts),
        _dates(facts, before, days),
        _entries(room),
    ]


def missing(words: str) -> Check:
    """The check of a file whose bytes are not there as promised; it is held, and nobody can let it pass."""
    return Check("missing_file", False, True, words)


def _missing(unbuilt: Sequence[str]) -> Check:
    words = "the bytes are there as promised"
    if unbuilt:
        words += f"; of {len(unbuilt)} parts of the release there is no file: {', '.join(unbuilt[:5])}"
    return Check("missing_file", not unbuilt, False, words, {"unbuilt": len(unbuilt)})


def _rows(facts: Facts, before: Facts | None) -> Check:
    if before is None:
        return Check("rows", True, False, f"{facts.rows} rows, the first of this path", {"rows": facts.rows})
    numbers = {"rows": facts.rows, "before": before.rows}
    words = f"{facts.rows} rows, {before.rows} before"
    if (before.rows >= OF_ROWS and facts.rows < before.rows * LEAST_ROWS) or (before.rows and not facts.rows):
        return Check("rows", False, True, f"{words}: fewer than {LEAST_ROWS:.0%} of them", numbers)
    if before.rows >= OF_ROWS and facts.rows > before.rows * MOST_TIMES:
        return Check("rows", False, False, f"{words}: more than {MOST_TIMES} times as many", numbers)
    return Check("rows", True, True, words, numbers)


def _size(facts: Facts, before: Facts | None) -> Check:
    numbers: dict[str, Any] = {"bytes": facts.size}
    words = f"{facts.size} bytes"
    if before is None or min(facts.rows, before.rows) < SIZE_OF_ROWS:
        return Check("size", True, False, words, numbers)
    here, there = facts.size / facts.rows, before.size / before.rows
    numbers |= {"before": before.size, "rows": facts.rows, "rows_before": before.rows}
    words += f", {before.size} before; {here:.1f} a row, {there:.1f} before"
    fits = there / SIZE_TIMES <= here <= there * SIZE_TIMES
    return Check("size", fits, True, words if fits else f"{words}: far off", numbers)


def _schema(facts: Facts, before: Facts | None) -> Check:
    if before is None or not before.columns:
        words = f"{len(facts.columns)} columns, nothing to compare them with"
        return Check("schema", True, False, words, {"columns": len(facts.columns)})
    there, here = dict(before.columns), dict(facts.columns)
    gone = [name for name in there if name not in here]
    changed = [name for name in there if here.get(name, there[name]) != there[name]]
    other = [f"{name} was {there[name]} and is {here[name]}" for name in changed]
    new = [name for name in here if name not in there]
    numbers = {"columns": len(here), "before": len(there), "gone": gone, "new": new, "other": other}
    if gone or other:
        what = "; ".join([*(f"{name} is gone" for name in gone), *other])
        return Check("schema", False, True, f"columns differ from what readers know: {what}", numbers)
    if new:
        return Check("schema", False, False, f"new columns: {', '.join(new)}", numbers)
    return Check("schema", True, True, f"{len(here)} columns as before", numbers)


def _keys(facts: Facts) -> Check:
    numbers = {"duplicates": facts.duplicates, "disorder": facts.disorder}
    if facts.duplicates or facts.disorder:
        words = f"{facts.duplicates} rows repeat the key of another, {facts.disorder} are out of order"
        return Check("duplicate_key", False, True, words, numbers)
    return Check("duplicate_key", True, True, f"each of {facts.rows} rows has a key of its own", numbers)


def _dates(facts: Facts, before: Facts | None, days: Calendar | None) -> Check:
    if facts.sessions is None:
        return Check("dates", True, False, "no session dates are compared")
    numbers: dict[str, Any] = {"sessions": len(facts.sessions)}
    words = f"{len(facts.sessions)} sessions"
    known = (before.sessions if before else None) or ()
    lost = sorted(set(known) - set(facts.sessions))
    if lost:
        numbers |= {"lost": [day.isoformat() for day in lost]}
        return Check("dates", False, True, f"{words}; {_days(lost)} were published and are not in it", numbers)
    if days is None or not facts.sessions:
        return Check("dates", True, True, words, numbers)
    holes = sorted(set(days.sessions(facts.sessions[0], facts.sessions[-1])) - set(facts.sessions))
    numbers |= {"holes": [day.isoformat() for day in holes], "calendar": days.name}
    if holes:
        # A backfill fills a month from its end, so a hole is told and holds nothing that is there.
        return Check("dates", False, False, f"{words}; {_days(holes)} of {days.name} are missing in between", numbers)
    return Check("dates", True, True, f"{words} without a hole ({days.name})", numbers)


def _days(days: Sequence[date]) -> str:
    return ", ".join(day.isoformat() for day in days[:5]) + (f" and {len(days) - 5} more" if len(days) > 5 else "")


def _entries(room: Room) -> Check:
    numbers = {"folder": room.entries, "repository": room.files}
    words = f"{room.entries} entries in {room.folder or '/'}, {room.files} files in the repository"
    if room.is_new and (room.entries >= FOLDER_ENTRIES or room.files >= REPOSITORY_FILES):
        limits = f"{FOLDER_ENTRIES} in a folder, {REPOSITORY_FILES} in a repository"
        return Check("entries", False, True, f"{words}: the Hub takes fewer than {limits}", numbers)
    return Check("entries", True, True, words, numbers)
