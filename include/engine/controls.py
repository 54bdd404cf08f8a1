"""Controls: freeze, drain, resume; in and out of service; dispatch on and off. One way for DAG, command line and API.

Promises: each change is a state write under the gate, recorded with who, why and since when, and says what it came
to; a frozen or draining stream gets no new poll and no new backfill chunk, what runs finishes its slice, and replay
stays possible. An operator's word wins over `config/controls.yaml`. Never: nothing that runs is stopped, and a name
that nothing has is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from include.engine.db import Connection, Row, call_and_commit, connect, query, transaction
from include.engine.verdict import kst
from include.settings import ROOT, SettingError, kept_still

Action = Literal["freeze", "drain", "resume", "retire", "activate", "off", "on"]
Scope = Literal["all", "source", "stream", "job", "dispatch"]

DEFAULTS = ROOT / "config" / "controls.yaml"

_STATES: Mapping[str, str] = {"freeze": "frozen", "drain": "draining", "resume": "running", "off": "off", "on": "on"}
_SECTIONS = {"sources": "source", "streams": "stream", "jobs": "job"}


class ControlRefused(Exception):
    """What was asked cannot be done; the text says why and what would do."""


@dataclass(frozen=True)
class Change:
    """What somebody wants: the action, what it is about, who wants it and why.

    `name` is the source, stream or job, and is left empty for everything and for dispatch. `freeze` and `drain`
    stop new claims (they differ in what they tell: a drain is over when nothing runs any more), `resume` allows them
    again. `retire` and `activate` take a stream out of service and back. `off` and `on` are for dispatch.
    """

    action: Action
    scope: Scope
    name: str
    who: str
    why: str


@dataclass(frozen=True)
class Changed:
    """What a change came to: whether anything was written, since when it holds and by whom, and words for a person."""

    is_new: bool
    state: str
    who: str
    why: str
    since: datetime | None
    words: str


def apply(url: str, change: Change) -> Changed:
    """Make a change, under the gate; one that holds already keeps its who, why and since when.

    Raises:
        ControlRefused: nothing has that name, who or why is missing, or the action does not fit what it is about.
    """
    connection = connect(url, application="daybook controls", statement_timeout=30, lock_timeout=25)
    try:
        _check(connection, change)
        connection.rollback()
        if change.action in ("retire", "activate"):
            return _serve(connection, change)
        values = {
            "scope": change.scope,
            "name": change.name or "*",
            "state": _STATES[change.action],
            "why": change.why.strip(),
            "who": change.who.strip(),
        }
        (row,) = call_and_commit(connection, query("controls.change"), values)
        words = _words(connection, change, row)
    finally:
        connection.close()
    return Changed(row["changed"], row["state"], row["changed_by"], row["reason"], row["changed_at"], words)


def listed(url: str) -> list[Row]:
    """Return every control that is set, with who, why and since when, the streams it covers and the slices running."""
    with transaction(url, application="daybook controls", statement_timeout=15) as connection:
        return connection.execute(query("controls.list")).fetchall()


def describe(row: Row) -> str:
    """Say one listed control in a line, beginning with its state."""
    name = "everything" if row["scope"] == "all" else row["scope"] if row["name"] == "*" else row["name"]
    state = row["state"].upper()
    if row["state"] == "draining":
        state = f"DRAINING ({row['running']} slices still run)" if row["running"] else "DRAINED"
    scope = "" if name in ("everything", "dispatch") else f"{row['scope']} "
    nothing = "" if row["streams"] else " (nothing of that name is declared)"
    return f"{state} – {scope}{name}{nothing} since {kst(row['changed_at'])} by {row['changed_by']}: {row['reason']}"


def defaults(path: Path = DEFAULTS) -> list[dict[str, str]]:
    """Read the defaults from the file, with what a setting freezes; none where there is neither.

    Raises:
        SettingError: it cannot be read, or holds something that is no control.
    """
    # Imported here: a process that only parses DAG files has no use for it.
    import yaml

    still = [{"scope": "stream", "name": name, "state": "frozen"} for name in kept_still()]
    if not path.exists():
        return still
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        why = " ".join(str(error).split())
        raise SettingError(f"{path.name} cannot be read: {why}. Mend the file; nothing was changed.") from None
    if not isinstance(data, dict) or not set(data) <= set(_SECTIONS):
        raise SettingError(f"{path.name} has sections {', '.join(_SECTIONS)} and nothing else. Nothing was changed.")
    found = []
    for section, scope in _SECTIONS.items():
        entries = data.get(section) or {}
        for name, entry in entries.items() if isinstance(entries, dict) else [("?", entries)]:
            if not isinstance(entry, dict) or set(entry) != {"frozen"} or not isinstance(entry["frozen"], bool):
                raise SettingError(
                    f"{path.name}: {section}.{name} must be {{frozen: true}} or {{frozen: false}}, not {entry!r}. "
                    "Nothing was changed."
                )
            found.append({"scope": scope, "name": str(name), "state": "frozen" if entry["frozen"] else "running"})
    # What the file itself says of a stream goes before a setting.
    named = {each["name"] for each in found if each["scope"] == "stream"}
    return [*found, *(each for each in still if each["name"] not in named)]


def load_defaults(connection: Connection, path: Path = DEFAULTS) -> bool:
    """Make the database's defaults what the file says, under the gate; False where they are.

    Args:
        connection: in autocommit, so that the gate is given back at once.
        path: the file.

    Raises:
        SettingError: the file cannot be used; the defaults stay as they are.
    """
    row = connection.execute(query("controls.defaults"), {"defaults": json.dumps(defaults(path))}).fetchone()
    assert row is not None
    return bool(row["changed"])


def _check(connection: Connection, change: Change) -> None:
    if not change.who.strip() or not change.why.strip():
        raise ControlRefused("Say who wants it and why: both are kept and shown. Nothing was changed.")
    is_dispatch = change.scope == "dispatch"
    if is_dispatch != (change.action in ("off", "on")):
        raise ControlRefused(
            "Dispatch is switched off and on; everything else is frozen, drained and resumed. Nothing was changed."
        )
    if change.action in ("retire", "activate") and change.scope != "stream":
        raise ControlRefused("Only a stream is taken out of service, or back. Nothing was changed.")
    if is_dispatch or change.scope == "all":
        if change.name not in ("", "*"):
            raise ControlRefused(f"{change.scope} has no name, so {change.name!r} fits nothing. Nothing was changed.")
        return
    known = [r["name"] for r in connection.execute(query("controls.known")).fetchall() if r["scope"] == change.scope]
    if change.name not in known:
        raise ControlRefused(
            f"There is no {change.scope} {change.name!r}; there are {', '.join(known) or 'none'}. Nothing was changed."
        )


def _serve(connection: Connection, change: Change) -> Changed:
    is_active = change.action == "activate"
    values: dict[str, Any] = {
        "name": change.name,
        "active": is_active,
        "why": change.why.strip(),
        "who": change.who.strip(),
    }
    (row,) = call_and_commit(connection, query("controls.serve"), values)
    state = "in service" if is_active else "out of service"
    if row["changed_at"] is None:
        there = connection.execute(query("controls.service"), {"name": change.name}).fetchone()
        connection.rollback()
        assert there is not None
        who, why = there["service_by"] or "its declaration", there["service_why"] or "declared"
        words = f"NOTHING TO DO – {change.name} is {state} already, by {who}: {why}"
        return Changed(False, state, who, why, there["retired_at"], words)
    words = f"DONE – stream {change.name} is {state}; windows are {'opened again' if is_active else 'opened no more'}."
    return Changed(True, state, values["who"], values["why"], row["changed_at"], words)


def _words(connection: Connection, change: Change, row: Row) -> str:
    what = {"all": "everything", "dispatch": "dispatch"}.get(change.scope, f"{change.scope} {change.name}")
    verb = "DONE" if row["changed"] else "NOTHING TO DO"
    already = "" if row["changed"] else " already"
    since = f"since {kst(row['changed_at'])} by {row['changed_by']}: {row['reason']}"
    words = f"{verb} – {what} is {row['state']}{already}, {since}."
    if row["state"] in ("frozen", "draining"):
        (running,) = (
            each["running"]
            for each in connection.execute(query("controls.list")).fetchall()
            if (each["scope"], each["name"]) == (change.scope, change.name or "*")
        )
        words += f" {running} slices still run and finish; nothing new is claimed. Replay stays possible."
    elif row["state"] == "running":
        values = {"scope": change.scope, "name": change.name or "*"}
        held = connection.execute(query("controls.held"), values).fetchall()
        if held:
            others = "; ".join(f"{each['stream']}: {each['why']}" for each in held[:5])
            words += f" Still held by something else: {others}."
    return words
