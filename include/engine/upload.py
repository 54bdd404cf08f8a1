"""Finished files into an object store.

Promises: an object bears its name only when all of its bytes are there, and one before it stays until then; what was
begun and failed is given up in the store too. Never: closing after an error makes an object of half a file, which is
what a plain `with open(…, "wb")` does where a store writes at closing.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from upath import UPath

# Up to here a file goes in one request, and above it in parts of this size, one in memory at a time.
PART = 16 << 20


def place(source: Path, target: UPath) -> None:
    """Copy a file of this machine to its name in an object store.

    A process that is killed meanwhile leaves parts and no object; a rule of the bucket may take such parts away.

    Raises:
        OSError: the file cannot be read or the store be written; the store holds what it held before.
    """
    if source.stat().st_size <= PART:
        target.fs.pipe_file(target.path, source.read_bytes())
        return
    upload = target.fs.open(target.path, "wb", block_size=PART, autocommit=False)
    try:
        with source.open("rb") as reading:
            shutil.copyfileobj(reading, upload, 1 << 20)
        upload.close()
        upload.commit()
    except BaseException:
        # Uncommitted, closing makes nothing; a store that is out of reach keeps the parts.
        for end in (upload.close, upload.discard):
            with suppress(Exception):
                end()
        raise
