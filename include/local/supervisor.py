"""Starting, watching and ending the processes of a stack.

Promises: a process is on record before it does anything, each in a session of its own; one that dies is named
with its log, started again a few times, and otherwise everything is stopped in good order; in the end nothing
is left, workers that ignore TERM included. Never: a process that is not on record, or whose number went to
another, is signalled.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from include.local import processes
from include.local.failure import LocalFailure
from include.local.interrupts import Interrupts
from include.local.processes import Mark, Patience
from include.local.state import Record, State

# These and the database are needed by the others for ending in good order.
SERVE_THE_REST = frozenset({"api-server", "sandbox", "redis", "s3"})
# How long each is given to end by itself. The scheduler waits for the tasks at work, and now and then for a worker
# that does not answer any more. The triggerer takes ten seconds over nothing; what it watched is watched again after
# the next start. The api-server takes many after it has said its last word.
PATIENCE = Patience(idle=15, in_all=15)
PATIENCE_OF = {"scheduler": Patience(8, 25), "triggerer": Patience(3, 3), "api-server": Patience(6, 6)}
LOG_LIMIT = 50_000_000
DEATHS_ALLOWED = 3
DEATHS_WITHIN = 600.0


@dataclass(frozen=True)
class Program:
    """One process of the stack: its name, command line, environment and directory."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path


# The process waits until it is on record: killed in between, its supervisor leaves nothing unknown behind.
_WAIT_UNTIL_RECORDED = ("/bin/sh", "-c", 'read -r go || exit 0; exec "$@" </dev/null', "sh")


class Supervisor:
    """The processes of one stack, from the first start to the last end."""

    def __init__(self, state: State, record: Record, interrupts: Interrupts, say: Callable[[str], None]) -> None:
        self.record = record
        self._state = state
        self._interrupts = interrupts
        self._say = say
        self._running: dict[str, tuple[Program, subprocess.Popen[bytes]]] = {}
        self._deaths: dict[str, list[float]] = {}

    def note(self, **changes: object) -> None:
        """Put changes on record.

        Raises:
            LocalFailure: the record cannot be written.
        """
        self.record = replace(self.record, **changes)  # type: ignore[arg-type]
        try:
            self._state.write(self.record)
        except OSError as error:
            raise LocalFailure(
                f"{self._state.directory} cannot be written to any more ({error.strerror}), so what runs "
                "cannot be put on record. Make room there and start again."
            ) from error

    def log_of(self, name: str) -> Path:
        """Where the process of this name writes."""
        return self._state.logs / f"{name}.log"

    def start(self, program: Program) -> subprocess.Popen[bytes]:
        """Start a process and put it on record before it runs.

        Raises:
            LocalFailure: the system cannot start it.
        """
        rotate(self.log_of(program.name))
        handle = os.open(self.log_of(program.name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            with os.fdopen(handle, "ab") as log:
                process = subprocess.Popen(
                    [*_WAIT_UNTIL_RECORDED, *program.command],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=dict(program.environment),
                    cwd=program.cwd,
                    start_new_session=True,
                    umask=0o077,
                )
        except OSError as error:
            raise LocalFailure(f"{program.name} cannot be started: {error.strerror}.") from error
        mark = processes.mark(process.pid, program.cwd)
        if mark is not None:
            self.note(children={**self.record.children, program.name: mark})
        assert process.stdin is not None
        try:
            with process.stdin:
                process.stdin.write(b"go\n")
        except BrokenPipeError:
            self._say(f"{program.name} ended before it began")
        self._running[program.name] = (program, process)
        return process

    def finish(self, name: str, seconds: float) -> None:
        """Wait for a program that ends by itself.

        Raises:
            LocalFailure: it failed or took longer than `seconds`; its last words and its log are named.
            Stopped: the operator asked to stop meanwhile.
        """
        process = self._running[name][1]
        end = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < end:
            self._interrupts.wait(1.0)
            self._interrupts.check()
        if process.poll() is None:
            self._end([name])
            self._forget(name)
            raise LocalFailure(f"{name} did not end within {seconds:.0f} s: {self.last_words(name)}")
        self._forget(name)
        if process.returncode != 0:
            raise LocalFailure(f"{name} failed: {self.last_words(name)}")

    def _forget(self, name: str) -> None:
        self._running.pop(name, None)
        self.note(children={key: mark for key, mark in self.record.children.items() if key != name})

    def last_words(self, name: str) -> str:
        """The last line of a process's log that says something, and where the log is."""
        try:
            with self.log_of(name).open("rb") as file:
                file.seek(max(0, self.log_of(name).stat().st_size - 4000))
                lines = file.read().decode("utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        words = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
        return f"{words[-300:]} (log: {self.log_of(name)})"

    # --- watching

    def dead(self) -> list[str]:
        """Names of the processes that ended without being asked to."""
        return [name for name, (_, process) in self._running.items() if process.poll() is not None]

    def check_alive(self) -> None:
        """Make sure that nothing died while the stack was being started.

        Raises:
            LocalFailure: something did; which, and its last words.
        """
        for name in self.dead():
            code = self._running[name][1].returncode
            raise LocalFailure(f"{name} ended with {_how(code)} while starting: {self.last_words(name)}")

    def watch(self, also: Callable[[], None]) -> None:
        """Keep everything running until the operator asks to stop.

        Args:
            also: called every few seconds; may raise `LocalFailure` to end the watch.

        Raises:
            LocalFailure: a process died too often.
        """
        while not self._interrupts.asked:
            self._interrupts.wait(5.0)
            if self._interrupts.asked:
                return
            for name in self.dead():
                self._revive(name)
            for orphan in self.record.orphans:
                processes.end_idle(orphan)
            left = tuple(orphan for orphan in self.record.orphans if processes.members(orphan))
            if left != self.record.orphans:
                self.note(orphans=left)
            for name in self._running:
                rotate(self.log_of(name))
            also()

    def count_death(self, name: str) -> None:
        """Note that a process died just now.

        Raises:
            LocalFailure: it did so too often.
        """
        now = time.monotonic()
        recent = [when for when in self._deaths.get(name, []) if now - when < DEATHS_WITHIN]
        self._deaths[name] = [*recent, now]
        if len(recent) >= DEATHS_ALLOWED:
            raise LocalFailure(
                f"{name} ended {len(recent) + 1} times within {DEATHS_WITHIN / 60:.0f} minutes, so the stack "
                f"was stopped; data and queue are kept. Its last words: {self.last_words(name)}"
            )

    def _revive(self, name: str) -> None:
        program, process = self._running.pop(name)
        self._say(f"{name} ended with {_how(process.returncode)}; starting it again. Its log: {self.log_of(name)}")
        # What it had started may be at work still, as a task does that outlives its scheduler.
        orphan = self.record.children.get(name)
        if orphan is not None:
            self.note(orphans=(*self.record.orphans, orphan))
        self._forget(name)
        self.count_death(name)
        self.start(program)

    # --- ending

    def stop(self) -> None:
        """End everything that was started: first those that need the others, then those.

        Raises:
            LocalFailure: everything was ended, but the record of it cannot be written.
        """
        try:
            self.note(phase="stopping")
        except LocalFailure as failure:
            self._say(str(failure))
        serving = [name for name in self.record.children if name in SERVE_THE_REST]
        self._end([name for name in self.record.children if name not in SERVE_THE_REST], self.record.orphans)
        self._end(serving)
        self.note(phase="stopped", supervisor=None, children={}, orphans=())

    def _end(self, names: list[str], orphans: tuple[Mark, ...] = ()) -> None:
        marks = {name: self.record.children[name] for name in names if name in self.record.children}
        patience = {mark: PATIENCE_OF.get(name, PATIENCE) for name, mark in marks.items()}
        patience.update(dict.fromkeys(orphans, PATIENCE))
        killed = processes.end_sessions(patience, hurry=lambda: self._interrupts.asked > 1)
        for name in names:
            if name in self._running:
                self._running.pop(name)[1].poll()
            if marks.get(name) in killed and name not in PATIENCE_OF:
                self._say(f"{name} left processes that ignored the request to end; they were killed")


def end_leftovers(state: State, record: Record) -> int:
    """End what a supervisor that vanished left behind; returns how many processes that were.

    The note is only cleared when they are gone.
    """
    count = sum(len(processes.members(mark)) for mark in record.sessions())
    patience = {mark: PATIENCE_OF.get(name, PATIENCE) for name, mark in record.children.items()}
    serving = {record.children[name] for name in SERVE_THE_REST & set(record.children)}
    first = {mark: seconds for mark, seconds in patience.items() if mark not in serving}
    processes.end_sessions({**dict.fromkeys(record.orphans, PATIENCE), **first})
    processes.end_sessions({mark: patience[mark] for mark in serving})
    state.write(replace(record, phase="stopped", supervisor=None, children={}, orphans=()))
    return count


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def rotate(log: Path, limit: int = LOG_LIMIT) -> None:
    """Keep one old copy of a log that grew past `limit` bytes; whoever has it open for appending goes on."""
    try:
        if log.stat().st_size > limit:
            shutil.copyfile(log, log.with_name(f"{log.name}.1"))
            os.truncate(log, 0)
    except FileNotFoundError:
        return
