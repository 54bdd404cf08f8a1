"""The launcher's commands, once .venv is there: `./run VERB`.

Promises: a wrong word is answered with one sentence and exit code 2, anything that stands in the way with one
and exit code 1. Never: a traceback is shown for something that the operator can put right.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from include import settings
from include.local import attach, checks, demo, detach, docs, doctor, new_source, reset, stack, status, topology
from include.local.failure import LocalFailure
from include.version import VERSION


class Parser(argparse.ArgumentParser):
    """A parser that answers a mistake with one sentence."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command and end with code 2."""
        print(f"run: {message}. ./run --help lists what there is.", file=sys.stderr)
        sys.exit(2)


def parser() -> Parser:
    """Every verb with its flags."""
    top = Parser(prog="./run", description="Daybook on one machine.", allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"Daybook {VERSION}")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=Parser)

    def verb(name: str, text: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=text, description=text, allow_abbrev=False)

    most = topology.MOST_WORKERS
    workers: dict[str, Any] = {
        "type": int, "choices": range(1, most + 1), "default": topology.WORKERS, "metavar": "N",
        "help": f"with --executor celery: so many workers, 1 to {most}; {topology.WORKERS} where it is not said",
    }  # fmt: skip
    up = verb("up", "Start everything and keep it up until Ctrl-C.")
    up.add_argument("--demo", action="store_true", help="against the sandbox, on a simulated clock")
    up.add_argument("--recordings", type=Path, metavar="DIR", help="with --demo: recorded answers to serve")
    up.add_argument("--detach", action="store_true", help="return when it is ready; ./run down stops it")
    up.add_argument("--background", action="store_true", help=argparse.SUPPRESS)
    up.add_argument("--executor", choices=("local", "celery"), default="local", help="celery: Redis and workers")
    up.add_argument("--workers", **workers)
    play = verb("demo", "Everything once against the sandbox, from nothing, with a table at the end.")
    play.add_argument("--keep", action="store_true", help="leave it running")
    play.add_argument("--recordings", type=Path, metavar="DIR", help="serve recorded answers and collect their days")
    play.add_argument("--executor", choices=("local", "celery"), default="local", help="celery: Redis, workers, S3")
    play.add_argument("--workers", **workers)
    verb("down", "Stop what runs, leftovers of a vanished supervisor included.")
    verb("status", "Say what runs.")
    verb("doctor", "Say what is wrong with this installation.")
    test = verb("test", "Style, types and tests; more arguments go to pytest.")
    test.add_argument("--fast", action="store_true", help="leave out the slow tests")
    verb("chaos", "Fuzz, kills and restarts; more arguments go to pytest.")
    verb("bench", "Measure and print; more arguments go to pytest.")
    verb("docs", "Make the pages of docs/ that follow from the declarations.")
    made = verb("new-source", "Make a new source: folder, table, migration, DAG, stand-in, fixtures.")
    made.add_argument("name", metavar="NAME", help="small letters and digits, e.g. rainfall")
    made.add_argument("--tables", action="store_true", help="only write its migration again, from its tables.py")
    for name, text in (
        ("cli", "Daybook's command line with the environment of the stack that runs."),
        ("airflow", "Airflow's command line with the environment of the stack that runs."),
        ("psql", "psql on the warehouse of the stack that runs."),
        ("python", "Python with the environment of the stack that runs, e.g. for examples/."),
    ):
        verb(name, text + " --demo as the first argument means the demo's.")
    verb("cache", "Copies of what is published: status, get, repair; needs no stack. --help after it says more.")
    wipe = verb("reset", "Delete the state directory: database, raw store, logs, passwords.")
    wipe.add_argument("--yes", action="store_true", help="do not ask")
    wipe.add_argument("--demo", action="store_true", help="only the demo's")
    return top


# What follows these verbs is not ours to read.
_OPEN = frozenset({"test", "chaos", "bench", "cli", "airflow", "psql", "python", "cache"})


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Read the command line; what belongs to another program is handed back as it is."""
    known = parser()
    if arguments == ["help"]:
        arguments = ["--help"]
    if arguments and arguments[0] in _OPEN:
        rest = arguments[1:]
        if arguments[0] == "test":
            chosen = known.parse_args(["test", *(["--fast"] if "--fast" in rest else [])])
            return chosen, [one for one in rest if one != "--fast"]
        if rest in (["--help"], ["-h"]) and arguments[0] in ("chaos", "bench"):
            known.parse_args(arguments)
        return known.parse_args(arguments[:1]), rest
    return known.parse_args(arguments), []


def _say(begin: float) -> stack.Say:
    def say(text: str) -> None:
        _plain(f"[{time.monotonic() - begin:4.0f} s] {text}")

    return say


def _plain(text: str) -> None:
    try:
        print(text, flush=True)
    except OSError:
        # The terminal is gone. What is being stopped must be stopped all the same, without a listener.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (as long as the process)


def _check_recordings(directory: Path) -> None:
    if not (directory / "recordings.tsv").is_file():
        parser().error(f"--recordings: {directory} holds no recordings.tsv")


def _options(chosen: argparse.Namespace, is_demo: bool) -> stack.Options:
    if chosen.executor == "celery":
        topology.check()
    recordings = chosen.recordings.absolute() if chosen.recordings else None
    return stack.Options(is_demo, recordings, chosen.executor, chosen.workers)


def _up(chosen: argparse.Namespace) -> int:
    if chosen.recordings is not None:
        if not chosen.demo:
            parser().error("--recordings needs --demo: recorded answers are served by the sandbox")
        _check_recordings(chosen.recordings)
    options = _options(chosen, chosen.demo)
    say = _say(time.monotonic())
    if chosen.detach:
        return detach.up(options, say)

    def ready(up: stack.Stack) -> None:
        # In the background the one who waits at the terminal greets: a login belongs in no log.
        if not chosen.background:
            for line in stack.greeting(up.state, up.addresses.api):
                _plain(line)

    return stack.up(options, say, ready)


def _demo(chosen: argparse.Namespace) -> int:
    if chosen.recordings is not None:
        _check_recordings(chosen.recordings)
    return demo.demo(_options(chosen, True), chosen.keep, _say(time.monotonic()))


def main(arguments: list[str]) -> int:
    """Run one verb and return the exit code."""
    chosen, rest = parse(arguments)
    # Whatever is written from here on is for its owner alone.
    os.umask(0o077)
    state = settings.load().state
    match chosen.verb:
        case "up":
            return _up(chosen)
        case "demo":
            return _demo(chosen)
        case "down":
            return status.down(state, _plain)
        case "status":
            return status.status(state, _plain)
        case "doctor":
            return doctor.doctor(_plain)
        case "test":
            return checks.test(chosen.fast, rest)
        case "chaos":
            return checks.pytest(["-m", "chaos", *rest])
        case "bench":
            return checks.bench(rest)
        case "docs":
            return docs.docs()
        case "new-source":
            return new_source.new_source(chosen.name, chosen.tables, _plain)
        case "cli" | "airflow" | "psql" | "python":
            return attach.run(chosen.verb, rest)
        case "cache":
            return attach.cache(rest)
        case "reset":
            return reset.reset(state, chosen.demo, chosen.yes, _plain)
    raise AssertionError(chosen.verb)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (LocalFailure, settings.SettingError) as failure:
        print(f"run: {failure}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"run: the system refused something: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
