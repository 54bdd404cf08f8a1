"""Style, types and tests, as one command.

Promises: every check runs, even if one before it failed, and the exit code is 0 only if all passed; pytest's
closing line comes last. Ctrl-C or TERM lets the tests put away what they started. Never: a test is left out
without being asked for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from include import settings
from include.local import bootstrap, processes
from include.local.interrupts import Interrupts

FAST = "not slow and not e2e and not chaos and not benchmark"
# What starts whole stacks and installations has the machine for itself; the rest shares its cores.
ALONE = ("tests/dagrun", "tests/e2e", "tests/local")
# One more than there are cores, as each waits for its database about as long as it works.
SHARED = ("-n", str(min((os.cpu_count() or 1) + 1, 4)), *(f"--ignore={folder}" for folder in ALONE))
STYLE_AND_TYPES = (
    ("style", ("ruff", "check")),
    ("format", ("ruff", "format", "--check")),
    ("types", ("mypy",)),
)


def test(fast: bool, arguments: Sequence[str]) -> int:
    """Run every check; more arguments go to one run of pytest.

    Returns:
        0 if all passed, else the code of the first that failed.
    """
    codes = []
    for title, command in STYLE_AND_TYPES:
        print(f"--- {title}", flush=True)
        codes.append(run(["-m", *command]))
        if codes[-1] in (130, 143):
            return codes[-1]
    marked = ["-m", FAST] if fast else []
    runs = [list(arguments)] if arguments else [list(ALONE), list(SHARED)]
    for run_arguments in runs:
        print("--- tests", flush=True)
        codes.append(pytest([*marked, *run_arguments]))
        if codes[-1] in (130, 143):
            break
    return next((code for code in codes if code), 0)


def bench(arguments: Sequence[str]) -> int:
    """Run the benchmarks, after installing what only they need; more arguments go to pytest.

    Returns:
        pytest's exit code; 1 where what they need cannot be installed.
    """
    try:
        bootstrap.add(settings.ROOT, "requirements-bench.txt")
    except bootstrap.CannotMake as reason:
        bootstrap.say(f"{reason} Nothing was measured.")
        return 1
    return pytest(["tests/benchmarks", "-m", "benchmark", "-s", *arguments])


def pytest(arguments: Sequence[str]) -> int:
    """Run pytest with these arguments; its exit code."""
    return run(["-m", "pytest", *arguments])


def run(arguments: Sequence[str]) -> int:
    """Run this Python with these arguments in the checkout, to its end.

    A request to stop is passed on as Ctrl-C, once for each time it is made, so that fixtures are torn down;
    what is left a minute later is killed.
    """
    with Interrupts() as interrupts:
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=settings.ROOT, env=settings.environment(), start_new_session=True
        )
        session = processes.mark(process.pid, settings.ROOT)
        passed_on, deadline = 0, None
        while process.poll() is None:
            interrupts.wait(1.0)
            if interrupts.asked > passed_on:
                passed_on = interrupts.asked
                deadline = deadline or time.monotonic() + 60
                processes.send([process.pid], signal.SIGINT)
            if deadline is not None and time.monotonic() > deadline:
                process.kill()
                process.wait()
        if session is not None:
            processes.end_sessions({session: processes.Patience(5, 5)})
        return 130 if passed_on else process.returncode
