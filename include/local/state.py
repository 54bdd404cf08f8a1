"""The state directory: whose it is, what runs, and who may change that.

Promises: a directory that ./run did not make is never written to, one made by a newer release or with an
unreadable record is left as it is, and two supervisors never share one. Never: anything in it is repaired by
guessing.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from include.local.failure import LocalFailure
from include.local.files import write_private
from include.local.processes import Mark

FORMAT = 1
# What ./run, the engine and Airflow put into a state directory; anything else means that it is somebody's
# own.
OWN_NAMES = frozenset(
    {"daybook.json", "state.json", "secrets.json", "passwords.json", "airflow.json", "lock"}
    | {"postgres", "raw", "outbox", "cache", "logs", "sandbox", "hub", "demo", "files", "celery"}
)


@dataclass(frozen=True)
class Record:
    """What a supervisor notes about itself and its children, so that they are found again after it vanished.

    `phase` is starting, ready or stopping; `children` are by name, `orphans` are sessions whose leader died
    and in which something may still be at work; `ports` are by name; `mode` is real or demo.
    """

    mode: str
    phase: str
    supervisor: Mark | None = None
    children: Mapping[str, Mark] = field(default_factory=dict)
    orphans: tuple[Mark, ...] = ()
    ports: Mapping[str, int] = field(default_factory=dict)
    started_at: str = ""

    def sessions(self) -> list[Mark]:
        """Every session that was started, the supervisor's own left out."""
        return [*self.children.values(), *self.orphans]


class State:
    """The state directory of one stack: the real one, or the demo's, which lies inside it."""

    def __init__(self, directory: Path, mode: str, outer: State | None = None) -> None:
        self.directory = directory
        self.mode = mode
        self._outer = outer
        self._lock: IO[str] | None = None

    @property
    def logs(self) -> Path:
        """Where each process writes its log, and Airflow its task logs."""
        return self.directory / "logs"

    @property
    def postgres(self) -> Path:
        """Home of the embedded PostgreSQL."""
        return self.directory / "postgres"

    def exists(self) -> bool:
        """Whether ./run has made this directory."""
        return (self.directory / "daybook.json").exists()

    def check(self) -> None:
        """Make sure that what is there, if anything, is ours and readable.

        Raises:
            LocalFailure: it is somebody else's, broken, or of a newer release; nothing was changed.
        """
        if self._outer is not None:
            self._outer.check()
        if not self.directory.exists():
            return
        self._check_kind_and_owner()
        mark = self.directory / "daybook.json"
        if not mark.exists():
            foreign = sorted({entry.name for entry in self.directory.iterdir()} - OWN_NAMES)
            if foreign:
                raise LocalFailure(
                    f"{self.directory} was not made by ./run (it holds {', '.join(foreign[:3])}). Nothing "
                    "was changed. Move it away, or set DAYBOOK_STATE to another directory."
                )
            return
        made = self._load(mark).get("format")
        if not isinstance(made, int):
            raise LocalFailure(f"{mark} does not say which release made it. Nothing was changed. Restore it.")
        if made > FORMAT:
            raise LocalFailure(
                f"{self.directory} was made by a newer release (format {made}; this one knows {FORMAT}). "
                "Nothing was changed. Start the newer release, or set DAYBOOK_STATE to another directory."
            )

    def _check_kind_and_owner(self) -> None:
        if not self.directory.is_dir():
            raise LocalFailure(f"{self.directory} is not a directory. Nothing was changed. Move it away.")
        owner = self.directory.stat().st_uid
        if owner != os.geteuid():
            try:
                name = pwd.getpwuid(owner).pw_name
            except KeyError:
                name = f"user {owner}"
            raise LocalFailure(
                f"{self.directory} belongs to {name}, and you are somebody else. Nothing was changed. Start "
                f"./run as {name}, or set DAYBOOK_STATE to a directory of your own."
            )

    @staticmethod
    def _load(path: Path) -> dict[str, Any]:
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            read = error
        if not isinstance(read, dict):
            raise LocalFailure(
                f"{path} cannot be read, so what runs and what belongs to this installation is not known. "
                "Nothing was changed. Restore the file, or move the directory away to begin anew."
            )
        return read

    def make(self) -> None:
        """Make the directory and its inner ones, or find them made.

        Raises:
            LocalFailure: as `check`, or it cannot be written to.
        """
        self.check()
        if self._outer is not None:
            self._outer.make()
        # Root's PostgreSQL runs as another user, who has to get through to its own directory: passing through
        # is allowed, listing is not, and every file in here is for its owner alone.
        mode = 0o711 if os.geteuid() == 0 else 0o700
        try:
            self.directory.mkdir(mode=mode, parents=True, exist_ok=True)
            self.directory.chmod(mode)
            for inner in (self.logs, self.directory / "raw", self.directory / "outbox"):
                inner.mkdir(mode=0o700, exist_ok=True)
            if not self.exists():
                write_private(self.directory / "daybook.json", json.dumps({"format": FORMAT}))
        except OSError as error:
            raise LocalFailure(
                f"{self.directory} cannot be written to ({error.strerror}). Make room or give yourself the "
                "right to write there, or set DAYBOOK_STATE to another directory."
            ) from error

    # --- who supervises

    def lock(self) -> bool:
        """Become the only one that starts and stops things here, until `unlock` or this process ends."""
        # Not closed here: the lock lasts as long as the file is open.
        file = (self.directory / "lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._lock = file
        return True

    def unlock(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # --- what runs

    def record(self) -> Record | None:
        """What the last supervisor noted; None when nothing was noted or it ended in good order.

        Raises:
            LocalFailure: the note cannot be read; nothing was changed.
        """
        path = self.directory / "state.json"
        if not path.exists():
            return None
        read = self._load(path)
        try:
            return Record(
                mode=str(read["mode"]),
                phase=str(read["phase"]),
                supervisor=Mark(**read["supervisor"]) if read["supervisor"] else None,
                children={str(name): Mark(**one) for name, one in read["children"].items()},
                orphans=tuple(Mark(**one) for one in read["orphans"]),
                ports={str(name): int(port) for name, port in read["ports"].items()},
                started_at=str(read["started_at"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise LocalFailure(
                f"{path} is not a record that this release wrote. Nothing was changed and nothing was "
                "stopped. Restore the file, or stop what runs by hand and delete it."
            ) from None

    def write(self, record: Record) -> None:
        """Note what runs now, so that it is known even if this process is killed the next moment."""
        write_private(self.directory / "state.json", json.dumps(asdict(record), indent=1) + "\n")


def open_state(state: Path, demo: bool) -> State:
    """The state directory of the real stack at `state`, or of the demo inside it."""
    real = State(state, "real")
    return State(state / "demo", "demo", real) if demo else real
