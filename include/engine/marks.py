"""What a line of the log is about: stream, window, cycle, attempt and fetch, bound where the work is done.

Promises: whatever is logged while a cycle is worked carries them as fields of their own, in a task (Airflow's logging
merges what structlog has bound) and at the command line (`Readable` writes them behind the sentence). Never: a secret,
a token or an address is bound, and a line is about a cycle whose work is over.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from include.engine.lease import Lease
    from include.engine.verdict import Verdict

_ORDER = ("stream", "window", "cycle_id", "attempt", "fetch_id")


@contextmanager
def bound(**marks: Any) -> Iterator[None]:
    """Give every line that is logged in the block these fields; those that are None are left out."""
    # Imported when something is worked: a command that only looks is quicker without.
    from structlog.contextvars import bound_contextvars

    with bound_contextvars(**{name: value for name, value in marks.items() if value is not None}):
        yield


def of(lease: Lease) -> dict[str, Any]:
    """Return what lines are about while a lease is worked: `attempt` counts the claims, so it stands for the token."""
    cycle = lease.cycle
    return {"stream": cycle.stream, "window": cycle.slot, "cycle_id": cycle.cycle_id, "attempt": cycle.attempt}


def say(log: logging.Logger, level: int, verdict: Verdict) -> None:
    """Log what a slice came to, with the fields of its cycle."""
    about = {"window": verdict.slot, "cycle_id": verdict.cycle_id, "attempt": verdict.attempt}
    with bound(stream=verdict.stream, **about):
        log.log(level, "%s", verdict.words)


class Readable(logging.Formatter):
    """Lines for a person: the sentence as it is, and behind it what it is about."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging's own name)
        """Return the line without a traceback, which logging adds below it."""
        line = super().formatMessage(record)
        contextvars = sys.modules.get("structlog.contextvars")
        marks = contextvars.get_contextvars() if contextvars else {}
        # What is bound comes in no order: the names of ours as they are read, any others behind.
        names = [*(name for name in _ORDER if name in marks), *sorted(marks.keys() - set(_ORDER))]
        return f"{line} [{' '.join(f'{name}={marks[name]}' for name in names)}]" if names else line
