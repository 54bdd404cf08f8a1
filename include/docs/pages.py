"""All generated pages of `docs/`, by their paths, and the comparison with what is committed.

Promises: the same declarations give the same bytes. Never: a page is written where nothing differs.
"""

from __future__ import annotations

from pathlib import Path

from include import registry
from include.docs import alerts, api, data, settings, when
from include.settings import ROOT


def pages(url: str) -> dict[str, str]:
    """Return every generated page, by its path below `docs/`.

    Args:
        url: libpq address of a migrated database.
    """
    sources = registry.sources()
    declared = [table for source in sources for stream in source.streams for table in stream.tables]
    return {
        "dags.md": when.dags(ROOT / "dags"),
        "streams.md": when.streams(sources),
        "settings.md": settings.reference(sources),
        "alerts.md": alerts.catalogue(),
        "api.md": api.reference(),
        "releases.md": data.releases(declared),
        **{f"tables/{schema}.md": text for schema, text in data.tables(url).items()},
    }


def stale(made: dict[str, str], folder: Path) -> list[str]:
    """Return the paths of pages that differ from what they should be, or that nothing makes any more."""
    there = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in [*folder.glob("*.md"), *(folder / "tables").glob("*.md")]
        if "Made by `./run docs`" in path.read_text(encoding="utf-8")
    }
    return sorted(path for path in {*made, *there} if made.get(path) != there.get(path))
