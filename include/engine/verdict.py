"""What a slice came to, in data and in words for a tired person.

Promises: every text begins with the word that matters, shows the window in KST and the session date and, where
nothing was done, says what would do it. Never: nothing is decided here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from include.contract import CycleStatus, Outcome
from include.engine.merge import Counts

SEOUL = ZoneInfo("Asia/Seoul")

NO_ROWS = Counts()


@dataclass(frozen=True)
class Verdict:
    """What one slice of a cycle came to.

    `status` is the cycle's state afterwards, None where no cycle was worked on. `attempt` is which claim of the cycle
    it was. `outcome` is set once the cycle is over. `is_refused` marks work that another owner holds or that is over;
    `is_stopped` a slice given back; `is_held` one that found that the upstream may not be asked until
    `next_eligible_at`: blocked, or no requests left.
    """

    stream: str
    words: str
    status: CycleStatus | None = None
    outcome: Outcome | None = None
    cycle_id: int | None = None
    slot: str | None = None
    attempt: int | None = None
    session_date: date | None = None
    next_eligible_at: datetime | None = None
    counts: Counts = NO_ROWS
    requests: int = 0
    is_partial: bool = False
    is_refused: bool = False
    is_stopped: bool = False
    is_held: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data for an XCom: ids, counts and words only."""
        data = asdict(self)
        data["counts"] = asdict(self.counts)
        for name in ("session_date", "next_eligible_at"):
            data[name] = data[name].isoformat() if data[name] else None
        return data


def kst(instant: datetime | None) -> str:
    """Write an instant as operators read it."""
    return instant.astimezone(SEOUL).strftime("%Y-%m-%d %H:%M KST") if instant else "–"


def counts_of(cycle_row: Mapping[str, Any]) -> Counts:
    """Return what a cycle has done in all, as its row says."""
    return Counts(
        read=cycle_row["fetched_count"],
        new=cycle_row["new_count"],
        changed=cycle_row["changed_count"],
        withdrawn=cycle_row["withdrawn_count"],
        quarantined=cycle_row["quarantined_count"],
    )


def repetition(stream: str, day: date) -> str:
    """Return the configuration of the backfill that collects a session of a stream once more, ready to be pasted."""
    asked = {
        "mode": "backfill",
        "streams": [stream],
        "start_date": day.isoformat(),
        "end_date": day.isoformat(),
        "force": True,
    }
    return json.dumps(asked)


def worker_of(lease_owner: str | None) -> str:
    """Return who held a lease as operators know it: the task and run, or the process where it was none of Airflow's."""
    return (lease_owner or "").partition(" on ")[0]


def describe_counts(counts: Counts) -> str:
    """Say what happened to the rows."""
    parts = [f"{counts.read:,} rows read"]
    for value, word in (
        (counts.new, "new"),
        (counts.changed, "changed"),
        (counts.withdrawn, "withdrawn"),
        (counts.quarantined, "to quarantine"),
        (counts.unchanged, "unchanged"),
    ):
        if value:
            parts.append(f"{value:,} {word}")
    if counts.read and not counts.touched:
        parts.append("nothing new")
    return ", ".join(parts)


def describe_tables(counts: Counts) -> str:
    """Say what happened to the rows of each table, where there are several."""
    if len(counts.tables) < 2:
        return ""
    told = []
    for name, of in counts.tables.items():
        figures = ((of.new, "new"), (of.changed, "changed"), (of.withdrawn, "withdrawn"), (of.unchanged, "unchanged"))
        told.append(f"{name} {', '.join(f'{value:,} {word}' for value, word in figures if value) or 'none'}")
    return f" – {'; '.join(told)}"


def where(cycle_row: Mapping[str, Any]) -> str:
    """Say which window, session or chunk a cycle is."""
    session = f", session {cycle_row['session_date']}" if cycle_row.get("session_date") else ""
    if cycle_row.get("window_start"):
        return f"window {kst(cycle_row['window_start'])}{session}"
    return f"chunk {cycle_row['slot']}{session}"
