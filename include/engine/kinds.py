"""The kinds of alerts, declared once: what each means, who opens it and what ends it.

Promises: frozen data; each kind has a page `docs/runbooks/alerts/<kind>.md` that says what to look at and what to do,
and `docs/alerts.md` is made from this list. A test compares both, and the keys that the code and the SQL use, with it.
Never: no database, no message is made here.
"""

from __future__ import annotations

from dataclasses import dataclass

PAGES = "docs/runbooks/alerts"


@dataclass(frozen=True)
class Kind:
    """One kind of alert: the part of a key before the first slash.

    `what` says what follows the slash, `severity` how bad it is at first and at most. One that `lasts` is an incident
    and has an end; any other is told once. `opened` and `ended` are for a person.
    """

    name: str
    what: str
    severity: str
    opened: str
    ended: str = ""
    lasts: bool = True

    @property
    def page(self) -> str:
        """Where it stands what to do, from the root of the checkout."""
        return f"{PAGES}/{self.name}.md"


KINDS: tuple[Kind, ...] = (
    Kind(
        "failing",
        "stream",
        "error",
        "the second window in a row that failed, or the first that needs a person",
        "a window that ends well",
    ),
    Kind(
        "partial",
        "stream",
        "warning",
        "the second window in a row that left keys open",
        "a window that ends well and whole",
    ),
    Kind(
        "past-due",
        "stream",
        "error",
        "the lookout, or Airflow's deadline, under the window's own key, so that a miss is told once",
        "the window's end",
    ),
    Kind(
        "lag",
        "stream",
        "warning",
        "the lookout: the checkpoint is more sessions behind than the stream allows (two)",
        "the checkpoint",
    ),
    Kind(
        "raw",
        "source",
        "warning, error under 80 %",
        "the lookout: under 95 % of an hour's answers, of twenty at least, are held; the last try of each counts",
        "the next hour that is better",
    ),
    Kind(
        "doubtful",
        "stream",
        "warning",
        "the audit: a source's view `<source>_doubts` names something, as a series of which nothing new comes",
        "the view, when it names nothing of the stream",
    ),
    Kind(
        "quarantine",
        "stream/rule",
        "warning for rows, error for answers",
        "the apply that puts rows or answers aside, or a listing or unit that is suspiciously small",
        "nothing of that rule open any more: retried, accepted, dropped, or resolved by a later answer",
    ),
    Kind(
        "empty",
        "stream",
        "error",
        "the lookout: a complete window without any row, where that is never right",
        "a window with rows",
    ),
    Kind(
        "missing-values",
        "stream/table.column",
        "error",
        "the apply: a column that is nearly always there lacks in too many rows of a window",
        "a window in which it is there",
    ),
    Kind(
        "budget",
        "stream",
        "warning, error on the seventh day",
        "the end of a window: the stream runs out of its budget day after day",
        "a good window",
    ),
    Kind(
        "given-up",
        "stream",
        "error",
        "the apply: a pending key was asked for as often as it may be",
        "no such key any more",
    ),
    Kind(
        "block",
        "host group",
        "error",
        "whoever is refused with a block page, or finds too much missing of what the upstream itself has named",
        "an answer of the group",
    ),
    Kind(
        "run",
        "run/stream",
        "error",
        "a chunk of a backfill or replay that failed for good",
        "no failed chunk of the run",
    ),
    Kind("late", "date", "error", "the verdict of 09:00 in Seoul: not everything was complete", "all of it complete"),
    Kind(
        "missed",
        "snapshots",
        "critical",
        "upkeep or the watcher at 09:05: nobody took the snapshot of 09:00",
        "the next snapshot that is taken",
    ),
    Kind(
        "untaken",
        "date",
        "error",
        "Airflow's deadline of 09:02: the DAG sla_capture has not taken the snapshot",
        "the snapshot, taken or missed",
    ),
    Kind(
        "undispatched",
        "date",
        "critical",
        "the lookout and Airflow's deadline at 00:30 in Seoul: the day has no windows and no snapshot",
        "the header of the day; a day that is over is closed and not mended",
    ),
    Kind(
        "silent",
        "scheduler, audit or maintenance",
        "critical for the scheduler, else warning",
        "the watcher: upkeep left no sign of life for six minutes; the lookout: a daily DAG left none for 26 hours",
        "the next sign of life",
    ),
    Kind(
        "quiet",
        "stream",
        "warning",
        "the audit: three days of good windows without news, where nearly every day had some",
        "a day with news",
    ),
    Kind(
        "commits",
        "repository",
        "warning",
        "the audit: more than 3,000 commits of ours to a repository of the Hub",
        "the audit after `./run cli squash NAMESPACE/NAME`",
    ),
    Kind(
        "housekeeping",
        "measure",
        "warning or critical",
        "maintenance and audit: what ended cycles had seen was left behind",
        "their next look that finds none",
    ),
    Kind(
        "publication",
        "hub or release over all companies",
        "warning",
        "the audit: files or changes have waited too long, whoever is paused or put off; or no prebuild came",
        "everything that changed is published, or built",
    ),
    Kind(
        "unpublished",
        "build, push or prebuild",
        "error",
        "a task that builds, pushes or prebuilds, and fails, whatever it was",
        "one of its kind that ends well",
    ),
    Kind(
        "held",
        "release",
        "error",
        "the gate of publication: a check holds a file of the release",
        "none of it held any more",
    ),
    Kind(
        "away",
        "model",
        "error",
        "the analysis: the language model's server does not answer",
        "its next answer",
    ),
    Kind(
        "outbox",
        "slack or github",
        "error for Slack, warning for GitHub",
        "the audit, or the sender that is refused: messages or issues wait",
        "nothing waits, or (GitHub) there is no connection any more",
    ),
    Kind(
        "refused",
        "slack",
        "warning",
        "the sender: Slack refuses one message for good, and it is put aside",
        "somebody's decision on each that was put aside",
    ),
    Kind(
        "unknown-columns",
        "stream/columns",
        "warning",
        "the apply: an upstream sends columns that nobody knows yet",
        lasts=False,
    ),
    Kind(
        "publish",
        "unfit/file or altered/repository/commit",
        "error, warning for altered",
        "the publisher: a file is not what was written, or somebody else deleted or changed something on the Hub",
        lasts=False,
    ),
    Kind("snapshot", "date/status", "info", "the verdict of 09:00 in Seoul where all was complete", lasts=False),
)

_BY_NAME = {kind.name: kind for kind in KINDS}


def page_of(key: str) -> str | None:
    """Return where it stands what to do about an alert or incident of this key; None where nothing does."""
    kind = _BY_NAME.get(key.partition("/")[0])
    return None if kind is None else kind.page
