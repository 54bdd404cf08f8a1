"""The one exception that the launcher turns into a sentence and an exit code.

Promises: its text says what happened, to what, and what to do next. Never: it carries no secret.
"""

from __future__ import annotations


class LocalFailure(Exception):
    """Something on this machine stands in the way; the text is for the operator and needs no traceback."""
