"""The dataset card and the manifests: what a repository holds, for whoever reads it.

Promises: the same rows give the same text, without a clock, so that a text is sent only when something in it changed;
a manifest goes with the files that it names, in their commit. The card says of each release what it is, where it lies
and under which terms; the manifest names every file with rows, days, hashes and the run that made it. Never: no
database, no network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from include.outputs import releases
from include.outputs.releases import Release

CARD = "README.md"


def manifest_path(release: str) -> str:
    """Return where the manifest of a release lies."""
    return f"manifest/{release}.json"


def manifest(release: str, files: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the manifest of a release: a JSON document with a line for each of its files, in order of path."""
    known = {each.name: each for each in releases.RELEASES}
    listed = sorted(files, key=lambda row: row["path"])
    first = min((row["first_session"] for row in listed if row["first_session"]), default=None)
    last = max((row["last_session"] for row in listed if row["last_session"]), default=None)
    head: dict[str, Any] = {
        "release": release,
        **(_about(known[release]) if release in known else {}),
        "files": len(listed),
        "rows": sum(row["rows"] for row in listed),
        "bytes": sum(row["size"] for row in listed),
        "first_date": _text(first),
        "last_date": _text(last),
    }
    lines = ",\n".join(
        json.dumps(
            {
                "path": row["path"],
                "rows": row["rows"],
                "bytes": row["size"],
                "first_date": _text(row["first_session"]),
                "last_date": _text(row["last_session"]),
                "sha256": row["sha256"].hex(),
                "content_hash": row["content_hash"].hex(),
                "run": row["source_run"],
            },
            ensure_ascii=False,
        )
        for row in listed
    )
    about = json.dumps(head, ensure_ascii=False, indent=1)[:-2]
    return f'{about},\n "listed": [\n{lines}\n ]\n}}\n'.encode()


def _about(release: Release) -> dict[str, Any]:
    terms = release.terms
    return {
        "title": release.title,
        "visibility": release.visibility,
        "retention": release.retention,
        "terms": {"note": terms.note, "source": terms.source or None, "read_on": _text(terms.read_on)},
    }


def _text(day: Any) -> str | None:
    return None if day is None else str(day.isoformat())


def card(names: Iterable[str]) -> bytes:
    """Return the card of a repository that holds these releases."""
    held = [release for release in releases.RELEASES if release.name in set(names)]
    configs = "\n".join(
        f"  - config_name: {release.name.replace('/', '_')}\n    data_files: {_pattern(release)}" for release in held
    )
    rows = "\n".join(_row(release) for release in held)
    return (
        "---\n"
        "pretty_name: Daybook\n"
        "license: other\n"
        f"configs:\n{configs}\n"
        "---\n\n"
        "# Daybook\n\n"
        "Filings and market data, typed and dated, as collected from their publishers. `sent_at` says of each row\n"
        "when the publisher was asked. For each release there is a manifest that names its files with rows, days,\n"
        "hashes and the run that made them; it changes in the commit that changes the files.\n\n"
        "| release | what it is | files | manifest | terms |\n"
        "|---|---|---|---|---|\n"
        f"{rows}\n\n"
        "The data belongs to its publishers. Where the terms forbid to pass it on, the release is private.\n"
    ).encode()


def _pattern(release: Release) -> str:
    return re.sub(r"{\w+}", "*", release.path)


def _row(release: Release) -> str:
    terms = release.terms
    source = f" ({terms.source}, read on {terms.read_on})" if terms.source else ""
    cells: Sequence[str] = (
        f"`{release.name}`",
        release.title,
        f"`{release.path}`",
        f"[{release.name}]({manifest_path(release.name)})",
        f"{terms.note}{source}",
    )
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"
