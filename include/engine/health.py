"""Health: what a window that is over says of its stream, and what is told of one that keeps running out of budget.

Promises: a failure is abnormal, and so is a complete answer without items where that is never right; a window out of
budget neither sets nor clears it. Never: nothing is switched off by itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from include.contract import AnswerClass, Stream
from include.engine.db import Connection, query
from include.engine.lease import Cycle


def is_abnormal(stream: Stream, answers: Iterable[AnswerClass], rows_read: int) -> bool:
    """Say whether a complete window is abnormal: it was answered, without any row, where that is never right."""
    was_answered = any(answer in (AnswerClass.DATA, AnswerClass.EMPTY) for answer in answers)
    return was_answered and not rows_read and not stream.empty_can_be_right


def tell_out_of_budget(connection: Connection, stream: Stream, cycle: Cycle) -> None:
    """Put an alert where a stream has run out of budget two polled days running, and another at seven.

    A window that is closed between two slices, by the next one that opens, is told by `collect.open_window` alike.
    """
    if cycle.row["run_date"] is not None:
        values = {"stream": stream.name, "run_date": cycle.row["run_date"]}
        connection.execute(query("health.tell_out_of_budget"), values)
