"""The sandbox as a process: `python -m include.sandbox --port N`.

Promises: one line when it answers, a clean end (exit code 0) on TERM and Ctrl-C, one clear sentence and exit
code 2 where it cannot start. Never: it listens on anything but the loopback address.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from include.sandbox import recordings as recorded
from include.sandbox.app import build
from include.sandbox.clock import DatabaseClock, real_clock
from include.sandbox.exchange import World
from include.sandbox.recordings import RecordingsError
from include.sandbox.server import ServerError, serve
from include.settings import SettingError, connection

WAKE_SECONDS = 0.5


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m include.sandbox", description="Stand-ins for all upstreams.")
    parser.add_argument("--port", type=int, default=0, help="port on the loopback address; 0: any free one")
    parser.add_argument("--hub-port", type=int, help="answer on this port as well (the Hub is on --port too)")
    parser.add_argument(
        "--simulated-time", action="store_true", help="take the time from connection warehouse (AIRFLOW_CONN_WAREHOUSE)"
    )
    parser.add_argument("--state", type=Path, help="where the Hub keeps its repositories; without it nothing stays")
    parser.add_argument("--recordings", type=Path, help="directory with recordings.tsv, in place of generated data")
    parser.add_argument("--seed", type=int, default=7, help="decides all generated data")
    parser.add_argument("--companies", type=int, default=300, help="size of the generated market (1 to 20000)")
    parser.add_argument("--no-hub-limits", action="store_true", help="the Hub limits neither requests nor commits")
    arguments = parser.parse_args(words)
    if not 1 <= arguments.companies <= 20_000:
        parser.error("--companies must be between 1 and 20000")
    return arguments


@contextlib.contextmanager
def _state(directory: Path | None) -> Iterator[Path]:
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="daybook-sandbox-") as passing:
            yield Path(passing)
        return
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    yield directory


def main(words: list[str] | None = None) -> int:
    """Run the sandbox until it is told to end; gives the exit code."""
    arguments = _arguments(words)
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, frame: stop.set())
    try:
        recordings = recorded.load(arguments.recordings) if arguments.recordings else None
        with _state(arguments.state) as state:
            world = World(state, arguments.seed, arguments.companies, not arguments.no_hub_limits)
            # By the environment: a command line, and the password in it, can be read by everybody on the machine.
            simulated = connection("warehouse").database_url if arguments.simulated_time else None
            clock = DatabaseClock(simulated) if simulated else real_clock
            sandbox = build(world, clock=clock, clock_is_remote=bool(simulated), recordings=recordings)
            ports = [arguments.port] + ([arguments.hub_port] if arguments.hub_port is not None else [])
            with serve(sandbox.app, *ports) as running:
                print(
                    f"sandbox ready url={running.url} hub={running.urls[-1]} slack={running.url}/services",
                    flush=True,
                )
                while running.thread.is_alive() and not stop.wait(WAKE_SECONDS):
                    continue
                if not stop.is_set():
                    raise ServerError("The sandbox's server ended by itself; its own error stands above.")
    except (RecordingsError, ServerError, SettingError) as failure:
        print(failure, file=sys.stderr)
        return 2
    except OSError as failure:
        print(
            f"The sandbox cannot use {failure.filename}: {failure.strerror}. Nothing was started.",
            file=sys.stderr,
        )
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
