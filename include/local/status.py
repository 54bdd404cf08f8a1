"""What runs, in words; and taking it down.

Promises: `down` ends exactly what is on record, whether its supervisor lives or vanished, and says so. Never:
it reports as stopped what still runs.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from include.local import processes
from include.local.failure import LocalFailure
from include.local.ports import LOOPBACK
from include.local.postgres import Cluster
from include.local.state import Record, State, open_state
from include.local.supervisor import end_leftovers

DOWN_SECONDS = 120.0


def stacks(directory: Path) -> list[State]:
    """The states of the real stack and of the demo, as far as they were ever made and are ours.

    Raises:
        LocalFailure: one of them is broken, somebody else's or newer.
    """
    found = []
    for demo in (False, True):
        state = open_state(directory, demo)
        state.check()
        if state.exists():
            found.append(state)
    return found


def supervised(record: Record | None) -> bool:
    """Whether the supervisor that wrote this record is still there."""
    return record is not None and record.supervisor is not None and processes.alive(record.supervisor)


def running(directory: Path, demo: bool | None = None) -> tuple[State, Record] | None:
    """The stack that is up: the one asked for, or the real one before the demo.

    Raises:
        LocalFailure: as `stacks`.
    """
    for state in stacks(directory):
        record = state.record()
        if record is not None and supervised(record) and demo in (None, record.mode == "demo"):
            return state, record
    return None


def describe(state: State, record: Record | None) -> list[str]:
    """Lines about one stack: what it is, its page, its processes."""
    title = "the demo" if state.mode == "demo" else "the stack"
    server = Cluster(state.postgres).running() if state.postgres.exists() else None
    sessions = record.children if record else {}
    living = {name: mark for name, mark in sessions.items() if processes.members(mark)}
    if record is None or (not living and server is None and not supervised(record)):
        return [f"{title} is down ({state.directory})"]
    if supervised(record):
        lines = [f"{title} is {'up' if record.phase == 'ready' else record.phase}, since {record.started_at}"]
    else:
        lines = [f"{title} has lost its supervisor; ./run down ends what is left, ./run up starts anew"]
    if "api-server" in record.ports:
        lines.append(f"  page           http://{LOOPBACK}:{record.ports['api-server']}")
    if server is not None:
        lines.append(f"  postgres       process {server}, port {record.ports.get('postgres')}")
    for name, mark in sessions.items():
        count = len(processes.members(mark))
        how = f"process {mark.pid}" if processes.alive(mark) else "DEAD"
        lines.append(f"  {name:<14} {how}, {count} in its session, log {state.logs / name}.log")
    if record.orphans:
        lines.append(f"  {len(record.orphans)} sessions of processes that died have work to finish")
    return lines


def status(directory: Path, say: Callable[[str], None]) -> int:
    """Say what runs; 0 when at least one stack is up and whole, else 1."""
    found = stacks(directory)
    if not found:
        say(f"nothing was ever started here ({directory} does not exist or is empty); ./run up starts")
        return 1
    whole = False
    for state in found:
        record = state.record()
        for line in describe(state, record):
            say(line)
        if record is not None and supervised(record) and record.phase == "ready":
            whole = whole or all(processes.alive(mark) for mark in record.children.values())
    return 0 if whole else 1


def down(directory: Path, say: Callable[[str], None], demo: bool | None = None) -> int:
    """Stop every stack of this installation and end what vanished supervisors left; 0 when nothing runs.

    Args:
        directory: the state directory.
        say: where to say what was done.
        demo: only the demo (True) or only the real stack (False).

    Raises:
        LocalFailure: a record cannot be read, or a supervisor does not end.
    """
    ended = False
    for state in stacks(directory):
        if demo in (None, state.mode == "demo"):
            ended = end(state, say) or ended
    say("stopped; nothing is left running" if ended else "nothing was running")
    return 0


def end(state: State, say: Callable[[str], None]) -> bool:
    """Stop one stack, or what its vanished supervisor left; whether there was anything to stop.

    Raises:
        LocalFailure: the record cannot be read, or the supervisor does not end.
    """
    record = state.record()
    asked = False
    if record is not None and record.supervisor is not None and supervised(record):
        say(f"stopping {'the demo' if state.mode == 'demo' else 'the stack'} (process {record.supervisor.pid})")
        processes.send([record.supervisor.pid], signal.SIGTERM)
        asked = True
        end = time.monotonic() + DOWN_SECONDS
        while processes.alive(record.supervisor) and time.monotonic() < end:
            time.sleep(0.2)
    if not state.lock():
        raise LocalFailure(
            f"The supervisor of {state.directory} does not end. Its log: {state.logs / 'supervisor.log'}. "
            "Try again; if it stays, kill it: the next ./run down ends what it leaves."
        )
    try:
        record = state.record()
        left = end_leftovers(state, record) if record is not None and record.sessions() else 0
        if left:
            say(f"ended {left} processes that a vanished supervisor had left behind")
        cluster = Cluster(state.postgres)
        server = cluster.running()
        cluster.stop()
        return asked or bool(left) or server is not None
    finally:
        state.unlock()
