"""Measures files over all companies: the most memory of a build, and what a build costs where 2 % changed.

    ./run bench -k prebuild
    python tests/benchmarks/prebuild.py [--companies 2700] [--rows 1500]

Promises: each build is a process of its own, of which the most memory that it ever held is taken, the interpreter with
it, and its processor time with that of the server; a build from nothing, one where 2 % of the companies changed, one
where nothing did. Never: a time fails a test.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from include.outputs import prebuild
from include.settings import ROOT
from tests.benchmarks.measuring import most_held, of_server, warehouse
from tests.outputs import companies

MOST_MB, SHARE = 1_024.0, 0.02


@dataclass(frozen=True)
class Built:
    """One build: companies that were read, seconds of processor time of builder and server, and most megabytes."""

    companies: int
    cpu: float
    server: float
    wall: float
    megabytes: float


def measure(count: int = 2_700, rows: int = 1_500, *, url: str | None = None, postmaster: int = 0) -> list[Built]:
    """Build from nothing, then with 2 % changed, then with nothing changed."""
    if url is None:
        with warehouse() as (cluster, made):
            assert cluster.process is not None
            return measure(count, rows, url=made, postmaster=cluster.process.pid)
    companies.make(url)
    companies.fill(url, count, rows)
    found = []
    with tempfile.TemporaryDirectory(prefix="daybook-prebuild-") as root:
        for changed in (0, round(count * SHARE), 0):
            for number in range(changed):
                companies.change(url, 1 + number * count // max(changed, 1))
            found.append(_build(url, root, postmaster))
    return found


def _build(url: str, root: str, postmaster: int) -> Built:
    read = of_server(postmaster)
    before, began = read(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.prebuild", "--child", url, root],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    wall, told = time.perf_counter() - began, json.loads(done.stdout.splitlines()[-1])
    return Built(told["companies"], told["cpu"], read() - before, wall, told["megabytes"])


def _child(url: str, root: str) -> None:
    done = prebuild.prebuild(url, companies.RELEASE, companies.scans, root, "a measure")
    spent = resource.getrusage(resource.RUSAGE_SELF)
    told = {"companies": done.companies, "cpu": spent.ru_utime + spent.ru_stime, "megabytes": most_held()}
    print(json.dumps(told))


def words(built: list[Built]) -> str:
    """What came of it, a line for each build and one for the shares."""
    full, some, none = built
    lines = [
        f"{name:<18} {one.companies:>5} companies read, {one.cpu + one.server:7.1f} s of processors "
        f"({one.server:.1f} of the server), {one.wall:7.1f} s, {one.megabytes:6.0f} MB"
        for name, one in (("from nothing", full), ("2 % changed", some), ("nothing changed", none))
    ]
    share = (some.cpu + some.server) / (full.cpu + full.server)
    idle = (none.cpu + none.server) / (full.cpu + full.server)
    return "\n".join([*lines, f"2 % changed cost {share:.0%} of a build from nothing, nothing changed {idle:.0%}"])


def main() -> None:
    """Measure and print, or be one build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=2_700)
    parser.add_argument("--rows", type=int, default=1_500)
    parser.add_argument("--child", nargs=2, metavar=("URL", "ROOT"))
    options = parser.parse_args()
    if options.child:
        _child(*options.child)
        return
    print(words(measure(options.companies, options.rows)))


if __name__ == "__main__":
    main()
