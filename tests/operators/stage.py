"""A stage for the operators: an engine that answers from a script, and the context that Airflow would give."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from include.contract import Credentials, CycleStatus, Outcome, Stream
from include.engine import cycle, jobs, replay, upkeep, windows
from include.engine.cycle import Worker
from include.engine.jobs import Progress
from include.engine.merge import Counts
from include.engine.raw import RawStore
from include.engine.verdict import Verdict
from include.engine.windows import Standing
from include.operators.tick import Turn
from include.registry import source

FINRA = source("finra")
STREAM = FINRA.streams[0]
NOW = datetime(2026, 9, 16, 0, 40, tzinfo=UTC)
OWNER = "finra.short_volume of manual-1"


def row(status: str = "SUCCESS", **facts: Any) -> dict[str, Any]:
    """A window's row."""
    is_over = status in ("SUCCESS", "FAILED", "BUDGET_EXHAUSTED")
    outcome = {"SUCCESS": "success", "FAILED": "failed_retriable", "BUDGET_EXHAUSTED": "success"}.get(status)
    return {
        "cycle_id": 7, "stream": STREAM.name, "mode": "poll", "slot": "2026-09-15T22:35:00Z", "run_id": None,
        "attempt": 1, "run_date": date(2026, 9, 16), "window_start": datetime(2026, 9, 15, 22, 35, tzinfo=UTC),
        "session_date": date(2026, 9, 15), "cycle_status": status, "outcome": outcome,
        "lease_owner": None, "lease_until": None, "next_eligible_at": None,
        "finished_at": NOW - timedelta(minutes=30) if is_over else None, "created_at": NOW - timedelta(hours=1),
        "fetched_count": 120, "new_count": 100, "changed_count": 0, "withdrawn_count": 0, "quarantined_count": 0,
        "list_page_count": 0, "detail_request_count": 6, "worked_by": None, "detail_failure_count": 0,
        "failure_kind": None, "failure_reason": None, "failure_cause_summary": None,
        **facts,
    }  # fmt: skip


def verdict(status: CycleStatus | None, words: str, **facts: Any) -> Verdict:
    """What a slice came to."""
    outcomes = {CycleStatus.SUCCESS: Outcome.SUCCESS, CycleStatus.BUDGET_EXHAUSTED: Outcome.SUCCESS}
    outcome = facts.pop("outcome", outcomes.get(status) if status else None)
    return Verdict(STREAM.name, words, status=status, outcome=outcome, cycle_id=7, slot="s", **facts)


def progress(**facts: Any) -> Progress:
    """How far a run is; nothing is where nothing is said."""
    zero = dict.fromkeys(Progress.__dataclass_fields__, 0)
    return Progress(**{**zero, "run_id": "r", "last_good": None, "restart_at": None, "first_failure": None, **facts})


@dataclass
class ScriptedEngine:
    """Gives the verdicts of its script one after another, then None; `stands` is how the stream stands meanwhile."""

    script: list[Verdict | None] = field(default_factory=list)
    newest: list[dict[str, Any]] = field(default_factory=list)
    own: dict[str, Any] | None = None
    frozen: str | None = None
    off: str | None = None
    progress: Progress = field(default_factory=progress)
    next_eligible: datetime | None = None
    holders: dict[str, datetime] = field(default_factory=dict)
    opened: int = 0
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def install(self, patch: pytest.MonkeyPatch) -> ScriptedEngine:
        """Take the engine's place."""
        patch.setattr(windows, "declare", lambda url, streams, is_connected=None: None)
        patch.setattr(windows, "open_due", self._open)
        patch.setattr(windows, "standing", self._standing)
        patch.setattr(windows, "rows_of", lambda url, numbers: {n: row(new_count=100) for n in numbers})
        patch.setattr(cycle, "work", lambda worker, stream, mode, run_id: self._work(str(mode), run_id))
        patch.setattr(cycle, "keeping_a_line", nullcontext)
        patch.setattr(replay, "work", lambda worker, stream, run_id: self._work("replay", run_id))
        patch.setattr(jobs, "progress", lambda url, run_id, stream=None: self.progress)
        patch.setattr(jobs, "next_eligible", lambda url, run_id, stream: self.next_eligible)
        patch.setattr(upkeep, "holders", lambda url, run_id, stream: self.holders)
        return self

    def _open(self, url: str, stream: Stream) -> None:
        self.opened += 1

    def _work(self, mode: str, run_id: str | None) -> Verdict | None:
        self.asked.append((mode, run_id))
        return self.script.pop(0) if self.script else None

    def _standing(self, url: str, stream: Stream, slot: str | None = None) -> Standing:
        newest = None
        if self.newest:
            newest = self.newest.pop(0) if len(self.newest) > 1 else self.newest[0]
        return Standing(NOW, newest, self.own if slot else None, self.frozen, self.off)


def worker() -> Worker:
    """A worker that nothing is done with."""
    return Worker("", RawStore("memory://stage"), Credentials(""), f"{OWNER} on here/1/a", nap=lambda seconds: None)


def turn(*, began: float | None = None, stop: Callable[[], bool] = lambda: False) -> Turn:
    """A turn that has just begun."""
    return Turn(stop, time.monotonic() if began is None else began, OWNER)


class Ti:
    """A task instance: keeps what is pushed, gives what was pushed by others."""

    dag_id, task_id, run_id, map_index, try_number = "finra", "short_volume", "manual-1", -1, 1
    id = "an-attempt"

    def __init__(self, pulled: Mapping[tuple[str, str], Any] | None = None, **facts: Any) -> None:
        self.pulled = dict(pulled or {})
        self.pushed: dict[str, Any] = {}
        vars(self).update(facts)

    def get_task_states(self, dag_id: str, task_ids: list[str], run_ids: list[str]) -> dict[str, dict[str, str]]:
        """How the run's other tasks stand, where a test said so in `others`."""
        others: Mapping[str, str] = getattr(self, "others", {})
        return {run_id: {name: others[name] for name in task_ids if name in others} for run_id in run_ids}

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def xcom_pull(self, task_ids: str, key: str) -> Any:
        return self.pulled.get((task_ids, key))


class Events:
    """The outlet events of a task."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, dict[str, Any]]] = []

    def __getitem__(self, alias: Any) -> Any:
        return SimpleNamespace(add=lambda asset, extra: self.sent.append((alias.name, asset.name, extra)))


def context(ti: Ti | None = None, *, params: Mapping[str, Any] | None = None, **run: Any) -> dict[str, Any]:
    """What Airflow hands to a task."""
    facts: dict[str, Any] = {
        "dag_id": "finra", "run_id": "manual-1", "run_type": "manual", "logical_date": None, "conf": {},
        "triggering_user_name": "admin", "run_after": NOW, **run,
    }  # fmt: skip
    return {
        "ti": ti or Ti(),
        "params": dict(params or {}),
        "dag_run": SimpleNamespace(**facts),
        "outlet_events": Events(),
        "task_reschedule_count": 0,
    }


def asked(mode: str = "poll", run_id: str | None = None, streams: Iterable[str] = (STREAM.name,), **facts: Any) -> Ti:
    """A task instance that finds the request of check_request."""
    request = {
        "mode": mode, "run_id": run_id, "streams": list(streams), "dry_run": False, "is_over": False,
        "replay_into": "overwrite", "words": "POLL – all", **facts,
    }  # fmt: skip
    return Ti({("check_request", "request"): request})


COUNTS = Counts(read=120, new=100)
