"""The gate of publication: no file is sent before it was checked, and what a check holds waits for a person.

Promises: each check of each file is a row with what it counted; a file that is held stays in the outbox with the
reason, its release has an incident until none is held, and who lets one pass is kept with why. One file that is held
does not stop another. Never: a file whose bytes are not as promised can be let pass.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from include.calendars import Calendar, calendar
from include.engine import alerts, incidents
from include.engine.db import Connection, Row, query, transaction
from include.outputs import checks, releases
from include.outputs.checks import Check, Facts, Room
from include.outputs.hub import ToSend
from include.outputs.lease import PublishLease
from include.outputs.releases import Release
from include.outputs.store import FileUnfit, OutboxStore


class LetRefused(Exception):
    """A file cannot be let pass; the text says why."""


@dataclass(frozen=True)
class Admitted:
    """What the gate made of some files: those that go, and those that do not with the reason, by path."""

    files: list[ToSend]
    kept_back: list[tuple[str, str]]


@dataclass
class Gate:
    """The gate of one run of the publisher, under its lease."""

    url: str
    lease: PublishLease
    store: OutboxStore
    folder: Path
    _folders: Counter[str] | None = field(default=None, repr=False)

    def admit(self, name: str, rows: Sequence[Row]) -> Admitted:
        """Check the waiting files of a release, write down what came of it, and give those that may go.

        Raises:
            PublishLeaseLost: the lease is over; nothing was written.
        """
        found = next((each for each in releases.RELEASES if each.name == name), None)
        ready: list[tuple[Row, ToSend, Facts]] = []
        unfit: list[tuple[Row, str]] = []
        for row in rows:
            try:
                local = self.store.checked_copy(row["sha256"], self.folder)
                facts = checks.read(local, by_session=found is not None and found.cut == "month")
                ready.append((row, replace(to_send(row), local=local), facts))
            except (FileUnfit, checks.NotParquet) as damage:
                unfit.append((row, f"{damage}; it is built anew."))
        before, days, unbuilt = self._beside(name, found, [row["path"] for row, _, _ in ready])
        judged = [
            (row, file, facts, checks.judge(facts, before.get(file.path), days=days, room=room, unbuilt=unbuilt))
            for row, file, facts in ready
            for room in [self._room(file.path, is_new=file.path not in before)]
        ]
        held = {
            row["file_id"]: "; ".join(f"{one.name}: {one.words}" for one in made if one.holds)
            for row, _, _, made in judged
            if any(one.holds for one in made) and row["let_by"] is None
        }
        if found is not None and found.cut == "scan" and (held or unfit):
            # Files that are read together go together or not at all.
            why = next(iter(held.values()), None) or unfit[0][1]
            held = {row["file_id"]: held.get(row["file_id"], f"goes with another: {why}") for row, _, _, _ in judged
                    if row["let_by"] is None or unfit}  # fmt: skip
        with self.lease.writing() as connection:
            for row, reason in unfit:
                _refuse(connection, row, reason)
            _note(connection, [(row["file_id"], facts, made) for row, _, facts, made in judged], unfit)
            for row, _, _, _ in judged:
                if row["file_id"] in held:
                    _hold(connection, name, row, held[row["file_id"]])
        kept_back = [(row["path"], reason) for row, reason in unfit]
        kept_back += [(row["path"], held[row["file_id"]]) for row, _, _, _ in judged if row["file_id"] in held]
        return Admitted([file for row, file, _, _ in judged if row["file_id"] not in held], kept_back)

    def _beside(
        self, name: str, found: Release | None, paths: list[str]
    ) -> tuple[dict[str, Facts], Calendar | None, list[str]]:
        """What a release's files are held beside: their last published ones, the calendar, what was never built."""
        with transaction(self.url, application="daybook publish") as connection:
            rows = connection.execute(query("publish.last_published"), {"release": name, "paths": paths}).fetchall()
            days: Calendar | None = None
            unbuilt: list[str] = []
            if found is not None:
                values = {"release": name, "tables": list(found.marks), "by_part": found.cut == "month"}
                unbuilt = [row["partition"] for row in connection.execute(query("publish.unbuilt"), values)]
            if found is not None and found.calendar is not None:
                decided = connection.execute(query("windows.exceptions"), {"calendar": found.calendar}).fetchall()
                days = calendar(found.calendar, {row["day"]: row["state"] == "open" for row in decided})
        return {row["path"]: _facts(row) for row in rows}, days, unbuilt

    def _room(self, path: str, *, is_new: bool) -> Room:
        """Count a file in, and say how full its folder and the repository are with it."""
        if self._folders is None:
            with transaction(self.url, application="daybook publish") as connection:
                found = connection.execute(query("publish.folders")).fetchall()
            self._folders = Counter({row["folder"]: row["files"] for row in found})
        folder = path.rpartition("/")[0]
        if is_new:
            self._folders[folder] += 1
        below = {name.removeprefix(f"{folder}/").partition("/")[0] for name in self._folders if _is_below(name, folder)}
        return Room(folder, self._folders[folder] + len(below), self._folders.total(), is_new)


def _is_below(name: str, folder: str) -> bool:
    return name.startswith(f"{folder}/") and name != folder


def to_send(row: Row) -> ToSend:
    """Return the file of a row of the outbox."""
    return ToSend(row["file_id"], row["path"], row["sha256"], row["size"])


def _facts(row: Row) -> Facts:
    columns = tuple((name, kind) for name, kind in row["columns"] or ())
    sessions = None if row["sessions"] is None else tuple(row["sessions"])
    return Facts(row["rows"], row["size"], columns, sessions=sessions)


def _refuse(connection: Connection, row: Row, reason: str) -> None:
    connection.execute(query("publish.refuse_file"), {"file": row["file_id"], "reason": reason})
    connection.execute(query("publish.build_again"), {"release": row["release"], "partition": row["partition"]})
    alerts.put(
        connection,
        key=f"publish/unfit/{row['file_id']}",
        severity="error",
        text=f"{row['path']} was not published: {reason}",
    )


def _hold(connection: Connection, name: str, row: Row, reason: str) -> None:
    connection.execute(query("publish.hold_file"), {"file": row["file_id"], "reason": reason})
    incidents.open(
        connection,
        key=incident(name),
        severity="error",
        alert_key=f"publish/held/{row['file_id']}",
        text=f"{row['path']} (file {row['file_id']}) is not published: {reason[:600]}. It is kept in the outbox, and "
        f"readers keep the version before. If it is right, let it pass: control, action publish, or ./run cli "
        f"publication let {row['file_id']} --why TEXT. If not, mend the rows; the next file takes its place.",
    )


def incident(name: str) -> str:
    """Key of the incident of a release of which a check holds files."""
    return f"held/{name}"


def _note(connection: Connection, judged: list[tuple[int, Facts, list[Check]]], unfit: list[tuple[Row, str]]) -> None:
    facts = [{"file_id": file_id, **read.as_row} for file_id, read, _ in judged]
    noted = [(file_id, one) for file_id, _, made in judged for one in made]
    noted += [(row["file_id"], checks.missing(reason)) for row, reason in unfit]
    rows = [
        {
            "file_id": file_id,
            "name": one.name,
            "passed": one.passed,
            "blocks": one.blocks,
            "numbers": dict(one.numbers),
            "words": one.words[:1000],
        }
        for file_id, one in noted
    ]
    connection.execute(query("publish.note_facts"), {"facts": json.dumps(facts)})
    connection.execute(query("publish.note_checks"), {"checks": json.dumps(rows)})


def close_incident(connection: Connection, name: str) -> None:
    """End the incident of a release of which nothing is held any more, in the caller's transaction."""
    if connection.execute(query("publish.held"), {"release": name}).fetchone() is None:
        incidents.close(connection, [incident(name)], f"No file of {name} is held any more.")


def held(url: str) -> list[Row]:
    """Return the files that a check holds, oldest first, each with the reason."""
    with transaction(url, application="daybook publication", statement_timeout=15) as connection:
        return connection.execute(query("publish.held"), {"release": None}).fetchall()


def let(url: str, name: str, *, who: str, why: str) -> Row:
    """Let a held file pass, by its number or path; the next run of `publish` sends it. Kept with who and why.

    What goes with it in one commit is let pass as well.

    Raises:
        LetRefused: no such file is held, or nobody said who and why.
    """
    if not (who.strip() and why.strip()):
        raise LetRefused("Say who lets it pass and why: both are kept and shown. Nothing was changed.")
    with transaction(url, application="daybook publication", statement_timeout=15) as connection:
        together = [each.name for each in releases.RELEASES if each.cut == "scan"]
        connection.execute(query("publish.alone"))
        meant = connection.execute(query("publish.held_of"), {"name": name.strip(), "together": together}).fetchall()
        values = {"files": [row["file_id"] for row in meant], "who": who.strip(), "why": why.strip()}
        connection.execute(query("publish.make_way"), values)
        rows = connection.execute(query("publish.let_pass"), values).fetchall()
    if not rows:
        raise LetRefused(f"No check holds a file {name!r}; a newer one may have taken its place. Nothing was changed.")
    return next(row for row in rows if name.strip() in (row["path"], str(row["file_id"])))
