"""The recorded answers beside this checkout, where they are there, with how each is to be read."""

from __future__ import annotations

import csv

from include.settings import ROOT

SAMPLES = ROOT.parent / "shared" / "upstream" / "samples"


def listed(source: str) -> list[dict[str, str]]:
    """The recordings of a source as the manifest lists them; none where they are not there."""
    manifest = SAMPLES / "MANIFEST.tsv"
    if not manifest.exists():
        return []
    with manifest.open(encoding="utf-8", newline="") as lines:
        csv.field_size_limit(1 << 24)
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row for row in rows if row["source"] == source]
