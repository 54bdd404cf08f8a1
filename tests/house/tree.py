"""The files of the repository, as git sees them.

Promises: paths relative to the root, with forward slashes, sorted; files that git ignores, and new ones in
hidden folders, are never among them. A tree without git (an unpacked archive) is walked instead.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def files(*, tracked_only: bool = False) -> tuple[str, ...]:
    """Every file of the repository; with `tracked_only` without those that are new and not yet added."""
    try:
        listed = _listed("--cached")
        if not tracked_only:
            listed += [path for path in _listed("--others", "--exclude-standard") if not _hidden(path)]
    except (OSError, subprocess.CalledProcessError):
        found = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
        listed = [path for path in found if path.startswith(".ci/") or not _hidden(path)]
    return tuple(sorted(path for path in set(listed) if (ROOT / path).is_file()))


def _listed(*which: str) -> list[str]:
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", *which]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return answer.stdout.split("\0")[:-1]


def _hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/")[:-1])


def product_modules() -> list[str]:
    """The Python files that the product is made of: everything but the tests."""
    return [path for path in files() if path.endswith(".py") and not path.startswith("tests/")]


def read(path: str) -> str:
    """The text of a file of the repository."""
    return (ROOT / path).read_text(encoding="utf-8")
