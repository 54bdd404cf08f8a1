"""The sources that DAG files handed over, by name, so that a task finds its stream again.

Promises: what a DAG file declared is known in every process that read the file, and in no other. A mapped task can
carry a name but not a description with functions: Airflow would write their addresses into the DAG. Never: nothing
is known here that no DAG file handed over.
"""

from __future__ import annotations

from include.contract import Source, Stream

_SOURCES: dict[str, Source] = {}


class NotDeclared(Exception):
    """A task asks for a source or stream that no DAG file handed over."""


def declare(source: Source) -> None:
    """Make a source known; the same one again changes nothing."""
    _SOURCES[source.name] = source


def source(name: str) -> Source:
    """Return a source by its name.

    Raises:
        NotDeclared: no DAG file handed it over.
    """
    try:
        return _SOURCES[name]
    except KeyError:
        raise NotDeclared(f"No DAG file declared the source {name!r}.") from None


def stream(name: str) -> Stream:
    """Return a stream by its full name.

    Raises:
        NotDeclared: no DAG file handed it over.
    """
    for candidate in source(name.partition(".")[0]).streams:
        if candidate.name == name:
            return candidate
    raise NotDeclared(f"No DAG file declared the stream {name!r}.")
