"""Whether a local copy is what the Hub has now, and what may be said where nobody could be asked.

Promises: FRESH is said of a file that the Hub itself confirmed less than a day ago, and of no other; a question that
was not answered changes nothing that was known, and is called what it is. A file without a note is not known, unless
we made it ourselves within a week. Never: no request, no file and no clock here.

The limits are those that consumers of such files are used to: a day for the Hub's word, thirty days for a copy that
nobody could compare, seven for a file of our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from include.outputs.held import Entry, Held, Note

TTL, LONGEST, OWN = timedelta(hours=24), timedelta(days=30), timedelta(days=7)
# Clocks of two machines differ by a little; what lies further ahead is no time that has passed.
SKEW = timedelta(minutes=5)


class Mode(StrEnum):
    """How far somebody goes to learn whether a copy is fresh."""

    AUTO = "auto"
    """Ask the Hub once a day; where it does not answer, a copy of less than thirty days will do."""
    FORCE_CHECK = "force_check"
    """Ask the Hub now; where it does not answer, that is a failure."""
    LOCAL_ONLY = "local_only"
    """Ask nobody."""


class State(StrEnum):
    """What is known of a local copy."""

    FRESH = "fresh"
    """The Hub confirmed it within a day."""
    OWN = "own"
    """We made it ourselves within a week, and nothing says otherwise."""
    UNCOMPARED = "uncompared"
    """The Hub confirmed it within thirty days and could not be asked, or was not, since."""
    OLD = "old"
    """It is longer than that since the Hub confirmed it, and nobody could be asked."""
    UNKNOWN = "unknown"
    """It has no note, so that nobody knows what it is, and nobody could be asked."""
    STALE = "stale"
    """The Hub has other bytes."""
    MISSING = "missing"
    """It is not here."""
    GONE = "gone"
    """The Hub has no such file. What is here is kept."""


USABLE = frozenset({State.FRESH, State.OWN, State.UNCOMPARED})
"""What may be read without doubt, or with one that is said."""


@dataclass(frozen=True)
class Local:
    """What is known of a file here: itself, its note, and whether we made it ourselves."""

    held: Held | None
    note: Note | None
    is_own: bool = False


@dataclass(frozen=True)
class Verdict:
    """What is known of a file, in a word and in a sentence."""

    state: State
    why: str


def without_asking(local: Local, mode: Mode, now: datetime) -> Verdict | None:
    """Judge a file by what is here; None where the Hub has to be asked."""
    if mode is Mode.FORCE_CHECK:
        return None
    if local.held is None:
        return Verdict(State.MISSING, "it is not here") if mode is Mode.LOCAL_ONLY else None
    if local.note is not None and _within(now - local.note.checked_at, TTL):
        return Verdict(State.FRESH, f"the Hub confirmed it {_ago(now - local.note.checked_at)}")
    if local.note is None and local.is_own and _within(now - local.held.written_at, OWN):
        return Verdict(State.OWN, f"made here {_ago(now - local.held.written_at)}")
    return unanswered(local, now, "nobody was asked") if mode is Mode.LOCAL_ONLY else None


def answered(local: Local, entry: Entry | None, is_same: bool | None = None) -> Verdict | None:
    """Judge a file by what the Hub says; None where the file itself has to be read first.

    Args:
        local: what is here.
        entry: what the Hub has under this name, None for nothing.
        is_same: whether the bytes here are those of the entry, where they were read.
    """
    if entry is None:
        return Verdict(State.GONE, "the Hub has no such file")
    if local.held is None:
        return Verdict(State.MISSING, "it is not here")
    if local.held.size != entry.size:
        return Verdict(State.STALE, f"the Hub has {entry.size:,} bytes, here are {local.held.size:,}")
    if is_same is None and local.note is not None:
        is_same = local.note.etag == entry.etag
    if is_same is None:
        return None
    if is_same:
        return Verdict(State.FRESH, "the Hub has just confirmed it")
    return Verdict(State.STALE, "its bytes are not those of the Hub")


def unanswered(local: Local, now: datetime, why: str) -> Verdict:
    """Judge a file of which the Hub said nothing: how long ago it last did decides."""
    if local.held is None:
        return Verdict(State.MISSING, f"it is not here, and {why}")
    if local.note is None and not local.is_own:
        return Verdict(State.UNKNOWN, f"it has no note of what it is, and {why}")
    age = now - (local.note.checked_at if local.note else local.held.written_at)
    what = "the Hub last confirmed it" if local.note else "it was made here"
    return Verdict(State.UNCOMPARED if _within(age, LONGEST) else State.OLD, f"{what} {_ago(age)}, and {why}")


def _within(age: timedelta, limit: timedelta) -> bool:
    return -SKEW <= age < limit


def _ago(age: timedelta) -> str:
    if age < -SKEW:
        return "at a time that lies ahead (look at the clocks)"
    minutes = max(int(age.total_seconds() // 60), 0)
    if minutes < 120:
        return f"{minutes} minutes ago"
    return f"{minutes // 60} hours ago" if minutes < 60 * 72 else f"{minutes // 1440} days ago"
