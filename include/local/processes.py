"""Which processes are ours, and how they are ended.

Promises: a process is known by its id *and* the instant it started, so a number that the system gave to
somebody else is never signalled; a session is ended whole, workers that ignore TERM and outlived their parent
included. Never: nothing is looked for by name, and nobody else's process is touched.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Mark:
    """One process, beyond doubt: its id, when it started (a text to compare with), its directory.

    A marked process leads a session of its own, so `pid` is the id of that session too.
    """

    pid: int
    started: str
    cwd: str


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _start(pid: int) -> tuple[str, int] | None:
    """When the process started, as (mark of this boot, order within it); None for a dead one or a zombie."""
    if sys.platform == "linux":
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else (_boot_id(), int(fields[19]))
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return "", int(process.create_time() * 100)
    except psutil.Error:
        return None


def _cwd(pid: int) -> str | None:
    try:
        return psutil.Process(pid).cwd()
    except (psutil.Error, OSError):
        return None


def mark(pid: int, cwd: Path | str) -> Mark | None:
    """The mark of a running process that was started in `cwd`; None when it is gone already."""
    start = _start(pid)
    return Mark(pid, f"{start[0]}:{start[1]}", str(cwd)) if start else None


def alive(who: Mark) -> bool:
    """Whether exactly this process still runs (a zombie does not)."""
    start = _start(who.pid)
    return start is not None and f"{start[0]}:{start[1]}" == who.started


def members(who: Mark) -> list[int]:
    """Ids of the living processes of the session that `who` leads or led.

    The system does not give a number away while a session bears it. Where the leader is gone, a member must
    have started after it, in the same boot and in its directory.
    """
    boot, _, order = who.started.rpartition(":")
    leader = _start(who.pid)
    if leader is not None and f"{leader[0]}:{leader[1]}" != who.started:
        return []
    found = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) != who.pid:
                continue
        except (ProcessLookupError, PermissionError):
            continue
        start = _start(pid)
        if start is None or start[0] != boot or start[1] < int(order):
            continue
        if leader is None and _cwd(pid) != who.cwd:
            continue
        found.append(pid)
    return found


def send(pids: Iterable[int], signal_number: signal.Signals) -> None:
    """Send one signal to each; those that ended meanwhile are passed over."""
    for pid in pids:
        try:
            os.kill(pid, signal_number)
        except ProcessLookupError:
            continue


def at_work(who: Mark) -> list[int]:
    """The tasks of a session and their workers: processes that the leader did not start itself, and who did.

    A worker that waits for work has no process below it; a task that runs has its worker above it.
    """
    inside = set(members(who))
    pairs = [(pid, parent) for pid in inside if (parent := _parent(pid)) in inside and parent != who.pid]
    return sorted({pid for pair in pairs for pid in pair if pid is not None})


def _parent(pid: int) -> int | None:
    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return None


def end_idle(who: Mark) -> None:
    """Kill the workers of a session without leader that have nothing to do; a task at work is let be."""
    if not alive(who):
        busy = at_work(who)
        send((pid for pid in members(who) if pid not in busy), signal.SIGKILL)


@dataclass(frozen=True)
class Patience:
    """How many seconds a session may take to end: with nothing at work in it, and in all."""

    idle: float
    in_all: float


def end_sessions(
    patience: Mapping[Mark, Patience], nudge: float = 5.0, hurry: Callable[[], bool] = lambda: False
) -> list[Mark]:
    """End these sessions whole; returns those in which something had to be killed.

    TERM goes to the leaders; after `nudge` seconds (where the leader is gone: at once) to the others in their
    sessions, which is how a task at work learns that it should give its lease back. What remains is killed as
    soon as nobody leads or works there, when that session's patience is over, or when `hurry` says so: it is a
    worker or log server that ignores TERM.
    """
    begin = time.monotonic()
    busy_until = dict.fromkeys(patience, begin)
    led = [one for one in patience if alive(one)]
    send((one.pid for one in led), signal.SIGTERM)
    send((pid for one in patience if one not in led for pid in members(one)), signal.SIGTERM)
    left, nudged, killed = list(patience), False, []
    while left:
        now = time.monotonic()
        for one in list(left):
            works = bool(at_work(one))
            if works:
                busy_until[one] = now
            over = now > min(begin + patience[one].in_all, busy_until[one] + patience[one].idle)
            if (works or alive(one)) and not over and not hurry():
                continue
            left.remove(one)
            if members(one):
                killed.append(one)
                _kill(one)
        if now > begin + nudge and not nudged:
            nudged = True
            send((pid for one in left for pid in members(one) if pid != one.pid), signal.SIGTERM)
        if left:
            time.sleep(0.1)
    return killed


def _kill(who: Mark) -> None:
    """Kill a session, again while members start others, for at most ten seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end and (left := members(who)):
        send(left, signal.SIGKILL)
        time.sleep(0.02)
