"""Small private files, written so that a crash leaves the old one or the new one.

Promises: only the owner can read them, from their first byte on. Never: a half-written file bears the
final name.
"""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Write `text` to `path` with mode 0600, in place of what was there.

    Raises:
        OSError: the disk is full or the directory cannot be written to; the old file stays.
    """
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
