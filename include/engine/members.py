"""The members of an archive against those that are held: which are wanted, refused, gone or back, and what to ask for.

Promises: pure; a member is told by its unit, and whether it changed by checksum and size. Never: a byte of a member is
looked at here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from include.contract import Archive
from include.engine import zips

# Neighbours are asked for together up to so many bytes.
LONGEST_RANGE = 32 << 20


@dataclass(frozen=True)
class Held:
    """What is held of a member."""

    crc32: int
    size: int
    sha256: bytes | None
    refused: str | None
    is_gone: bool


@dataclass(frozen=True)
class Refusal:
    """A member that is not kept, and why."""

    unit: str
    name: str
    crc32: int
    size: int
    reason: str


@dataclass
class Difference:
    """What an archive has against what is held: members to be kept, refused, gone, and back as they were."""

    wanted: list[tuple[zips.Entry, str]] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)


def difference(
    archive: Archive, entries: Sequence[zips.Entry], held: dict[str, Held], *, by_content: bool
) -> Difference:
    """Compare a directory with what is held; `by_content`: every member is wanted."""
    found, seen = Difference(), set[str]()
    for entry in entries:
        if entry.name in archive.unwanted:
            continue
        unit = archive.unit_of(entry.name)
        reason = None
        if unit is None:
            unit, reason = f"{archive.name}/{entry.name[:150]}", "its name is none that the upstream gives"
        elif unit in seen:
            unit, reason = f"{archive.name}/{entry.name[:150]}", "it is in the archive twice"
        elif entry.size > archive.most_bytes:
            reason = f"it would unpack to {entry.size:,} bytes, and {archive.most_bytes:,} are the most"
        seen.add(unit)
        before = held.get(unit)
        is_same = before is not None and (before.crc32, before.size) == (entry.crc32, entry.size)
        if reason is not None:
            if not is_same or before is None or before.refused is None:
                found.refused.append(Refusal(unit, entry.name, entry.crc32, entry.size, reason))
        elif by_content or not is_same:
            found.wanted.append((entry, unit))
        elif before is not None and before.is_gone:
            found.back.append(unit)
    found.gone = [unit for unit, each in held.items() if unit not in seen and not each.is_gone]
    return found


def ranges(
    wanted: Sequence[zips.Entry], until: dict[int, int], gap: int, longest: int = LONGEST_RANGE
) -> list[tuple[int, int, list[zips.Entry]]]:
    """Put members together that are at most `gap` bytes apart, as (first byte, byte after, members)."""
    found: list[tuple[int, int, list[zips.Entry]]] = []
    for entry in sorted(wanted, key=lambda each: each.offset):
        end = until[entry.offset]
        if found and entry.offset - found[-1][1] <= gap and end - found[-1][0] <= longest:
            first, last, members = found.pop()
            found.append((first, max(last, end), [*members, entry]))
        else:
            found.append((entry.offset, end, [entry]))
    return found
