"""The operator's own connections and settings for ./run, from a file that git ignores.

Promises: the file is read as plain NAME=value lines and nothing in it is executed; a line that cannot be
understood is named. Never: a value is shown.
"""

from __future__ import annotations

import re
from pathlib import Path

from include.local.failure import LocalFailure

_LINE = re.compile(r"^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$")


def read(path: Path) -> dict[str, str]:
    """The variables that the file sets; none when there is no file.

    Raises:
        LocalFailure: a line is not NAME=value, or the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise LocalFailure(f"{path} cannot be read ({error.__class__.__name__}). Nothing was started.") from error
    values = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.match(line.strip())
        if found is None:
            raise LocalFailure(
                f"{path}, line {number}, is not of the form NAME=value. Nothing was started. "
                "config/connections.example.env shows how."
            )
        values[found.group(1)] = _unquote(found.group(2).strip())
    return values


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


def open_to_others(path: Path) -> bool:
    """Whether others on this machine could read the file."""
    return path.exists() and bool(path.stat().st_mode & 0o077)
