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


def no_number(body: bytes) -> bytes:
    """A volume is a word."""
    header, first, *rest = _lines(body)
    fields = first.split(b"|")
    if len(fields) > 2:
        fields[2] = b"abc"
    return _joined([header, b"|".join(fields), *rest])


def short_row(body: bytes) -> bytes:
    """A row lacks its last column."""
    header, first, *rest = _lines(body)
    return _joined([header, first.rpartition(b"|")[0] or first, *rest])


def twice(body: bytes) -> bytes:
    """A symbol stands in the file twice; the trailer counts both."""
    header, first, *rest, trailer = _lines(body)
    return _joined([header, first, first, *rest, str(int(trailer) + 1).encode()])


def short_above_total(body: bytes) -> bytes:
    """A row was sold short more often than it was sold."""
    header, first, *rest = _lines(body)
    fields = first.split(b"|")
    if len(fields) > 4:
        fields[2] = fields[-2].split(b".")[0] + b"9"
    return _joined([header, b"|".join(fields), *rest])


def other_bytes(body: bytes) -> bytes:
    """A symbol holds a byte that is no UTF-8."""
    header, first, *rest = _lines(body)
    return _joined([header, first.replace(b"|", b"|\xe9", 1), *rest])


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
