"""Starting a stack in the background, and waiting at the terminal until it is ready.

Promises: the terminal shows the same progress, and the exit code tells whether it came up; Ctrl-C while
waiting stops what was being started. Never: the login is written into a log.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from include import settings
from include.local import stack
from include.local.environment import Addresses
from include.local.interrupts import Interrupts
from include.local.state import open_state
from include.local.supervisor import rotate


def up(options: stack.Options, say: stack.Say) -> int:
    """Start a supervisor of its own session, follow what it says, and return when it is ready or gave up."""
    state = open_state(settings.load().state, options.demo)
    state.make()
    log = state.logs / "supervisor.log"
    rotate(log, limit=1_000_000)
    command = [sys.executable, "-m", "include.local", "up", "--background"]
    if options.demo:
        command.append("--demo")
    if options.recordings is not None:
        command.extend(("--recordings", str(options.recordings)))
    if options.executor != "local":
        command.extend(("--executor", options.executor, "--workers", str(options.workers)))
    with Interrupts() as interrupts:
        with log.open("ab") as file:
            seen = file.tell()
            process = subprocess.Popen(
                command,
                cwd=settings.ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                umask=0o077,
            )
        passed_on = 0
        while True:
            interrupts.wait(0.3)
            seen = _copy(log, seen)
            if process.poll() is not None:
                _copy(log, seen)
                return process.returncode or 1
            if interrupts.asked > passed_on:
                passed_on = interrupts.asked
                process.terminate()
            record = state.record()
            mine = record is not None and record.supervisor is not None and record.supervisor.pid == process.pid
            if record is not None and mine and record.phase == "ready" and not passed_on:
                break
    _copy(log, seen)
    for line in stack.greeting(state, Addresses("", "", record.ports["api-server"]).api, detached=True):
        print(line, flush=True)
    return 0


def _copy(log: Path, start: int) -> int:
    """Show what the log gained since `start`; returns where it ends now."""
    with log.open("rb") as file:
        file.seek(start)
        text = file.read()
    sys.stdout.write(text.decode("utf-8", errors="replace"))
    sys.stdout.flush()
    return start + len(text)
