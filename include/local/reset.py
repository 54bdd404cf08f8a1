"""Deleting what ./run made.

Promises: it asks first, refuses while something runs, and deletes nothing but what ./run puts into a state
directory. Never: a directory that ./run did not make is touched.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from include.local import status
from include.local.failure import LocalFailure
from include.local.postgres import Cluster
from include.local.state import OWN_NAMES, State, open_state


def reset(directory: Path, demo: bool, yes: bool, say: Callable[[str], None]) -> int:
    """Delete the state of the stack (the demo's inside it too), or of the demo alone.

    Raises:
        LocalFailure: something runs, the directory is not ours, or nobody can be asked.
    """
    wanted = [state for state in status.stacks(directory) if state.mode == "demo" or not demo]
    if not wanted:
        say(f"there is nothing to delete at {open_state(directory, demo).directory}")
        return 0
    for state in wanted:
        if not state.lock() or status.supervised(state.record()):
            raise LocalFailure("Something runs here. Nothing was deleted. Stop it first: ./run down")
    if not yes and not _confirmed(wanted[0].directory):
        say("nothing was deleted")
        return 1
    for state in reversed(wanted):
        delete(state)
        say(f"deleted what ./run had made in {state.directory}")
    return 0


def _confirmed(directory: Path) -> bool:
    if not sys.stdin.isatty():
        raise LocalFailure("There is nobody to ask. Nothing was deleted. Say it with ./run reset --yes")
    print(f"This deletes the database, raw store, logs, passwords and keys in {directory}. They cannot be got back.")
    return input("Type yes to go on: ").strip().lower() == "yes"


def delete(state: State) -> None:
    """Delete what ./run made in a state directory, and the directory if that was all."""
    if state.postgres.exists():
        Cluster(state.postgres).remove()
    for name in sorted(OWN_NAMES - {"demo"}):
        path = state.directory / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if not any(state.directory.iterdir()):
        state.directory.rmdir()
