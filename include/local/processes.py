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
from collections.abc import Iterable
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


def end_sessions(who: Iterable[Mark], patience: float, nudge: float = 5.0) -> list[Mark]:
    """End these sessions whole; returns those in which something had to be killed.

    TERM goes to the leaders; after `nudge` seconds also to everything that still runs in their sessions,
    which is how a task at work learns that it should give its lease back; after `patience` seconds in all, or
    as soon as no leader is left, what remains is killed: it is a worker or log server that ignores TERM.
    """
    sessions = list(who)
    begin = time.monotonic()
    nudged = False
    send((one.pid for one in sessions if alive(one)), signal.SIGTERM)
    while any(alive(one) for one in sessions) and time.monotonic() < begin + patience:
        if not nudged and time.monotonic() > begin + nudge:
            nudged = True
            send((pid for one in sessions for pid in members(one)), signal.SIGTERM)
        time.sleep(0.05)
    killed = [one for one in sessions if members(one)]
    end = time.monotonic() + 10
    while time.monotonic() < end:
        left = [pid for one in killed for pid in members(one)]
        if not left:
            break
        send(left, signal.SIGKILL)
        time.sleep(0.05)
    return killed
