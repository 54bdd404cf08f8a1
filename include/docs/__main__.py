"""`python -m include.docs URL`: writes the generated pages, from the declarations and a migrated database.

Promises: it says which pages changed. Never: a page that somebody wrote is touched.
"""

from __future__ import annotations

import sys

from include.docs.pages import pages, stale
from include.settings import ROOT


def main(url: str) -> int:
    """Write the pages that differ, delete those that nothing makes any more, and return the exit code."""
    made, folder = pages(url), ROOT / "docs"
    changed = stale(made, folder)
    for path in changed:
        target = folder / path
        if path not in made:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(made[path], encoding="utf-8")
    words = ", ".join(f"docs/{path}" for path in changed)
    print(f"DONE – {words} changed" if changed else f"NOTHING – all {len(made)} pages are as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
