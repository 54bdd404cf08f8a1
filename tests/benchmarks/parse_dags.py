"""Measures what the whole dags/ folder costs a fresh process over `import airflow.sdk` alone.

    ./run bench                                                     with every other benchmark
    python tests/benchmarks/parse_dags.py [--rounds 9] [--dags FOLDER]

Promises: the kinds of run are interleaved, so that a busy machine slows all alike; the first round warms the
caches and is not counted; medians are printed, with the budget beside them. Never: it asserts nothing, as a
time is no test; what parsing may load is asserted in tests/house/test_dags.py.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUDGET = 0.15

ALONE = "import airflow.sdk"
FOLDER = """
import importlib.util, pathlib, sys
import airflow.sdk
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
    spec = importlib.util.spec_from_file_location("parsed_" + file.stem, file)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""
BAG = """
import sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(dag_folder=sys.argv[1])
assert not bag.import_errors, bag.import_errors
"""
KINDS = {"import airflow.sdk": ALONE, "… and the folder": FOLDER, "a whole DagBag": BAG}


def once(program: str, dags: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Run a program in a fresh process; return its wall and CPU seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", program, str(dags)], env=environment, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(rounds: int, dags: Path = ROOT / "dags") -> dict[str, list[tuple[float, float]]]:
    """Run each kind `rounds` times, in turn, after one round that is not counted; (wall, CPU) seconds per kind."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in KINDS}
    with tempfile.TemporaryDirectory() as scratch:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": scratch,
            "AIRFLOW_HOME": str(ROOT),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql+psycopg2://nobody@127.0.0.1:1/nothing",
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": f"{scratch}/logs",
        }
        for number in range(rounds + 1):
            for name, program in KINDS.items():
                seconds = once(program, dags, environment)
                if number:
                    taken[name].append(seconds)
    return taken


def report(taken: dict[str, list[tuple[float, float]]]) -> str:
    """The medians as a table, each beside what it costs over the import alone."""
    alone = statistics.median(cpu for _, cpu in taken["import airflow.sdk"])
    lines = [f"{'':22}{'wall s':>10}{'cpu s':>10}{'over alone (cpu)':>20}"]
    for name, runs in taken.items():
        wall, cpu = (statistics.median(column) for column in zip(*runs, strict=True))
        lines.append(f"{name:22}{wall:10.3f}{cpu:10.3f}{cpu / alone - 1:+20.1%}")
    lines.append(f"budget: the folder at most {BUDGET:+.0%} over the import alone")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What parsing the dags folder costs a fresh process.")
    parser.add_argument("--rounds", type=int, default=9, help="how often each kind is run and counted")
    parser.add_argument("--dags", type=Path, default=ROOT / "dags", help="the folder to parse")
    options = parser.parse_args()
    print(f"{len(list(options.dags.glob('*.py')))} DAG files, medians of {options.rounds} interleaved runs")
    print(report(measure(options.rounds, options.dags)))


if __name__ == "__main__":
    main()
