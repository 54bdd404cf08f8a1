"""The task behind the DAG `control`: freeze, drain, resume, and let a file be published that a check holds, by hand.

Promises: the same function as the command line and the Operations API; who asked is whom Airflow knows. Never: a rule
of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from include.contract import Source
from include.operators import declared
from include.operators.endings import Ended
from include.operators.tick import Tick, Turn

LET, FILE = "publish", "file"


class ControlOperator(Tick):
    """Makes the change that the run's parameters ask for."""

    def __init__(self, *, sources: Sequence[Source], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for source in sources:
            declared.declare(source)
        self.sources = tuple(source.name for source in sources)

    def work(self, context: Mapping[str, Any], turn: Turn) -> Ended:
        """Make the change, or refuse in words."""
        from include.engine import controls, windows
        from include.operators import resolve

        asked, run = context["params"], context["dag_run"]
        unknown = sorted(set(run.conf or {}) - set(asked))
        if unknown:
            return Ended("red", f"REFUSED – there is no parameter {', '.join(unknown)}. Nothing was changed.")
        url = resolve.warehouse_url()
        who = run.triggering_user_name or f"run {run.run_id}"
        if (asked["action"] == LET) != (asked["scope"] == FILE):
            return Ended("red", "REFUSED – publish is for a file, and a file knows nothing else. Nothing was changed.")
        if asked["action"] == LET:
            return _let(url, (asked["name"] or "").strip(), who, asked["reason"] or "")
        streams = tuple(stream for name in self.sources for stream in declared.source(name).streams)
        windows.declare(url, streams, is_connected=lambda stream: False)
        change = controls.Change(
            action=asked["action"],
            scope=asked["scope"],
            name=(asked["name"] or "").strip(),
            who=who,
            why=asked["reason"] or "",
        )
        try:
            changed = controls.apply(url, change)
        except controls.ControlRefused as refused:
            return Ended("red", f"REFUSED – {refused}")
        return Ended("green", changed.words, {"state": changed.state, "is_new": changed.is_new})


def _let(url: str, name: str, who: str, why: str) -> Ended:
    """Let a file pass that a check of publication holds."""
    from include.outputs import gate

    try:
        row = gate.let(url, name, who=who, why=why)
    except gate.LetRefused as refused:
        held = ", ".join(f"{each['file_id']} {each['path']}" for each in gate.held(url)[:10]) or "none"
        return Ended("red", f"REFUSED – {refused} Held are: {held}.")
    words = f"DONE – {row['path']} is let pass although {row['reason']}. The next run of publish sends it."
    return Ended("green", words, {"file": row["file_id"], "path": row["path"]})
