"""Every source, one line each, in the order in which they are shown."""

from __future__ import annotations

from include.contract import Source, Stream
from include.sources import finra

SOURCES: tuple[Source, ...] = (finra.SOURCE,)


class UnknownName(Exception):
    """A source or stream is asked for that nobody declared; the text names those that exist."""


def source(name: str) -> Source:
    """Return a source by its name.

    Raises:
        UnknownName: there is none.
    """
    for candidate in SOURCES:
        if candidate.name == name:
            return candidate
    raise UnknownName(f"There is no source {name!r}; there are {', '.join(s.name for s in SOURCES)}.")


def streams() -> tuple[Stream, ...]:
    """Return every stream of every source."""
    return tuple(stream for candidate in SOURCES for stream in candidate.streams)


def stream(name: str) -> Stream:
    """Return a stream by its full name, e.g. `finra.short_volume`.

    Raises:
        UnknownName: there is none.
    """
    for candidate in streams():
        if candidate.name == name:
            return candidate
    raise UnknownName(f"There is no stream {name!r}; there are {', '.join(s.name for s in streams())}.")
