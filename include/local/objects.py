"""The object store of a stack, made ready: `python -m include.local.objects`.

Promises: the roots of raw answers, outbox and made files exist afterwards, and it may be said again. Never: anything
that is there is changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from fsspec.core import url_to_fs

from include import settings

ROOTS = ("DAYBOOK_RAW_ROOT", "DAYBOOK_OUTBOX_ROOT", "DAYBOOK_FILES_ROOT")


def make(values: Mapping[str, str]) -> None:
    """Make the roots that these settings name: bucket or folder.

    Raises:
        OSError: the store cannot be reached or written.
        KeyError: a root is not set.
    """
    for name in ROOTS:
        store, path = url_to_fs(values[name])
        store.makedirs(path, exist_ok=True)


if __name__ == "__main__":
    make(settings.environment())
