"""The states and kinds that the house tells apart: modes, cycles, outcomes, answers, pending keys, budgets.

Promises: the values are what stands in the database's rows. They are part of the contract, which gives them on.
Never: anything but names.
"""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What a cycle is for."""

    POLL = "poll"
    BACKFILL = "backfill"
    REPLAY = "replay"


class CycleStatus(StrEnum):
    """The states of a cycle; the last three are terminal."""

    NOT_STARTED = "NOT_STARTED"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"


TERMINAL = frozenset({CycleStatus.SUCCESS, CycleStatus.FAILED, CycleStatus.BUDGET_EXHAUSTED})


class Outcome(StrEnum):
    """What a job run came to."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED_RETRIABLE = "failed_retriable"
    FAILED_TERMINAL = "failed_terminal"


class AnswerClass(StrEnum):
    """What an answer is; only `DATA` and `EMPTY` are ever parsed."""

    DATA = "data"
    EMPTY = "empty"
    ABSENT = "absent"
    NOT_YET = "not_yet"
    UNCHANGED = "unchanged"
    BLOCKED = "blocked"
    ERROR = "error"


class PendingReason(StrEnum):
    """Why a key is still to be fetched, or fetched again."""

    DISCOVERED = "discovered"
    FAILED = "failed"
    NOT_PUBLISHED = "not_published"
    ASKED_NONE = "asked_none"
    RECHECK = "recheck"


class BudgetReason(StrEnum):
    """Which budget a cycle ran out of."""

    LIST_PAGE_LIMIT = "LIST_PAGE_LIMIT"
    ITEM_LIMIT = "ITEM_LIMIT"
    DETAIL_LIMIT = "DETAIL_LIMIT"
    SLICE_TIME_LIMIT = "SLICE_TIME_LIMIT"
    QUOTA = "QUOTA"
