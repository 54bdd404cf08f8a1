"""Ways in which a FINRA file can be wrong although it was sent whole.

Promises: each kind of damage is one fixed change of a good file, named by what a reader must notice. Never: a
damaged file is served unless a switch asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

LINE = b"\r\n"


def _lines(body: bytes) -> list[bytes]:
    return body.split(LINE)[:-1]


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + LINE for line in lines)


def trailer_off(body: bytes) -> bytes:
    """The trailer is one more than the rows."""
    *lines, trailer = _lines(body)
    return _joined([*lines, str(int(trailer) + 1).encode()])


def no_trailer(body: bytes) -> bytes:
    """All rows, no trailer."""
    return _joined(_lines(body)[:-1])


def cut(body: bytes) -> bytes:
    """Ends in the middle of a line."""
    *lines, _ = _lines(body)
    keep = max(1, len(lines) * 2 // 3)
    last = lines[keep - 1]
    return _joined(lines[: keep - 1]) + last[: max(1, len(last) // 2)]


def other_day(body: bytes) -> bytes:
    """The rows say the day after the one in the file's name."""
    header, *rows, trailer = _lines(body)
    changed = []
    for row in rows:
        day = datetime.strptime(row[:8].decode(), "%Y%m%d") + timedelta(days=1)  # noqa: DTZ007 (a date's text)
        changed.append(day.strftime("%Y%m%d").encode() + row[8:])
    return _joined([header, *changed, trailer])


def _with_first_row(body: bytes, change: Callable[[bytes], list[bytes]]) -> bytes:
    """The file with its first row in another form; the trailer counts what there is then."""
    header, *rows, _ = _lines(body)
    if not rows:
        return body
    rows[:1] = change(rows[0])
    return _joined([header, *rows, str(len(rows)).encode()])


def no_number(body: bytes) -> bytes:
    """A volume is a word."""

    def change(row: bytes) -> list[bytes]:
        day, symbol, _, *rest = row.split(b"|")
        return [b"|".join((day, symbol, b"abc", *rest))]

    return _with_first_row(body, change)


def short_row(body: bytes) -> bytes:
    """A row lacks its last column."""
    return _with_first_row(body, lambda row: [row.rpartition(b"|")[0]])


def twice(body: bytes) -> bytes:
    """A symbol stands in the file twice."""
    return _with_first_row(body, lambda row: [row, row])


def short_above_total(body: bytes) -> bytes:
    """A row was sold short more often than it was sold."""

    def change(row: bytes) -> list[bytes]:
        day, symbol, _, *rest = row.split(b"|")
        total = rest[-2]
        return [b"|".join((day, symbol, b"9" + total, *rest))]

    return _with_first_row(body, change)


def other_bytes(body: bytes) -> bytes:
    """A symbol holds a byte that is no UTF-8."""
    return _with_first_row(body, lambda row: [row.replace(b"|", b"|\xe9", 1)])


def line_feeds(body: bytes) -> bytes:
    """Lines end with LF alone: unusual, not wrong."""
    return body.replace(LINE, b"\n")


KINDS: Mapping[str, Callable[[bytes], bytes]] = {
    change.__name__: change
    for change in (
        trailer_off, no_trailer, cut, other_day, no_number, short_row, twice, short_above_total, other_bytes,
        line_feeds,
    )
}  # fmt: skip


def drifted(body: bytes, drift: str) -> bytes:
    """The file with another schema: a column renamed, missing, or one more."""
    header, *rows, trailer = _lines(body)
    if drift == "renamed":
        return _joined([header.replace(b"ShortVolume", b"ShortQuantity"), *rows, trailer])
    if drift == "missing":
        return _joined([line.rpartition(b"|")[0] for line in (header, *rows)] + [trailer])
    return _joined([header + b"|Venue", *(row + b"|X" for row in rows), trailer])
