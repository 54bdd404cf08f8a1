"""What every measurement goes by: processor time of client and server, interleaved rounds, ratios with their range.

Promises: the kinds of a comparison are run in turn, each round beginning with another one, so that a busy machine
slows all alike; the first round warms the caches and is not counted; a ratio is taken within its round, and its
median is judged. Never: a time fails a test; what is below its floor is printed as such, where it was measured and
once more at the end.
"""

from __future__ import annotations

import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from include.engine.migrations import migrate
from include.local.postgres import Cluster

_TICK = os.sysconf("SC_CLK_TCK")


def most_held() -> float:
    """Return the most megabytes that this process has held, its interpreter too, since it began.

    `ru_maxrss` would begin with what the process held that started it, as a test's large one does.
    """
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) / 1024


@dataclass(frozen=True)
class Cost:
    """What one run took, in seconds: processor time of this process and of the server, and time on the clock."""

    client: float
    server: float
    wall: float

    @property
    def cpu(self) -> float:
        """Processor time of both."""
        return self.client + self.server


@dataclass
class Spent:
    """A cost that is still being measured; `cost` is there after the block."""

    cost: Cost = field(default_factory=lambda: Cost(0.0, 0.0, 0.0))


@contextmanager
def spending(server: Callable[[], float]) -> Iterator[Spent]:
    """Measure a block; `server` reads the processor time of the server so far."""
    spent = Spent()
    at_server, at_client, at_wall = server(), time.process_time(), time.perf_counter()
    yield spent
    wall, client = time.perf_counter() - at_wall, time.process_time() - at_client
    spent.cost = Cost(client, server() - at_server, wall)


def of_backend(pid: int) -> Callable[[], float]:
    """Return what reads the processor time of one backend, in seconds."""
    return lambda: _of_process(pid)


def of_server(postmaster: int) -> Callable[[], float]:
    """Return what reads the processor time of every process that a server has started, also of those that are over."""

    def read() -> float:
        fields = _stat(postmaster)
        ended = (int(fields[13]) + int(fields[14])) / _TICK
        return ended + sum(_of_process(child.pid) for child in psutil.Process(postmaster).children())

    return read


def _stat(pid: int) -> list[str]:
    """The fields of a process after its name, which may hold spaces."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(") ")[2].split()


def _of_process(pid: int) -> float:
    try:
        # Nanoseconds; the other file counts in hundredths of a second.
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
    except FileNotFoundError:
        pass
    try:
        fields = _stat(pid)
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK


def interleaved(
    kinds: Mapping[str, Callable[[], Cost]], rounds: int, *, warms_up: bool = True
) -> dict[str, list[Cost]]:
    """Run every kind once a round, after one round that is not counted; the costs of each kind, by round.

    `warms_up`: False where one run is so long that what warms up in it is nothing beside it.
    """
    taken: dict[str, list[Cost]] = {name: [] for name in kinds}
    names = list(kinds)
    for number in range(0 if warms_up else 1, rounds + 1):
        turn = number % len(names)
        for name in [*names[turn:], *names[:turn]]:
            cost = kinds[name]()
            if number:
                taken[name].append(cost)
    return taken


def ratios(reference: Sequence[Cost], ours: Sequence[Cost]) -> list[float]:
    """How many times ours the reference took, round by round."""
    return [theirs.cpu / own.cpu for theirs, own in zip(reference, ours, strict=True)]


# --- judging


@dataclass(frozen=True)
class Judged:
    """A measure with its range, beside the floor and the aim; `less` marks one of which less is better."""

    name: str
    values: tuple[float, ...]
    unit: str = "×"
    floor: float | None = None
    aim: float | None = None
    less: bool = False

    @property
    def median(self) -> float:
        """The value that is judged."""
        return statistics.median(self.values)

    def _reaches(self, mark: float) -> bool:
        return self.median <= mark if self.less else self.median >= mark

    @property
    def verdict(self) -> str:
        """What the median comes to."""
        if self.floor is not None and not self._reaches(self.floor):
            return "BELOW FLOOR"
        if self.aim is not None:
            return "aim reached" if self._reaches(self.aim) else "short of the aim"
        return "floor held" if self.floor is not None else ""

    def __str__(self) -> str:
        marks = [
            f"{name} {_figure(mark)}" for name, mark in (("floor", self.floor), ("aim", self.aim)) if mark is not None
        ]
        spread = f"[{_figure(min(self.values))} … {_figure(max(self.values))}, n={len(self.values)}]"
        words = f"{_figure(self.median):>8} {self.unit:<3} {spread:<28} {', '.join(marks):<22} {self.verdict}"
        return f"{self.name:<68}{words}".rstrip()


def _figure(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


# Everything judged in this process, for the summary.
JUDGED: list[Judged] = []


def judge(measure: Judged) -> str:
    """Keep a measure for the summary and return its line."""
    JUDGED.append(measure)
    return str(measure)


def summary() -> list[str]:
    """Every measure again, and which are below their floor."""
    below = [measure.name for measure in JUDGED if measure.verdict == "BELOW FLOOR"]
    closing = f"BELOW FLOOR: {'; '.join(below)}" if below else "Nothing is below its floor."
    return [*map(str, JUDGED), closing] if JUDGED else []


def table(taken: Mapping[str, Sequence[Cost]], per: int, unit: str) -> str:
    """The medians of each kind: processor time in microseconds for one of `per` units, wall time in seconds."""
    lines = [f"{'':44}{'client':>10}{'server':>10}{'cpu':>10} µs a {unit}{'wall s':>10}"]
    for name, runs in taken.items():
        client, server, cpu = (
            statistics.median(getattr(run, part) for run in runs) * 1e6 / per for part in ("client", "server", "cpu")
        )
        wall = statistics.median(run.wall for run in runs)
        lines.append(f"{name:44}{client:10.1f}{server:10.1f}{cpu:10.1f}{'':{len(unit) + 6}}{wall:10.3f}")
    return "\n".join(lines)


@contextmanager
def warehouse() -> Iterator[tuple[Cluster, str]]:
    """A server of its own, and the URL of an empty warehouse on it."""
    with tempfile.TemporaryDirectory(prefix="daybook-bench-") as home:
        Path(home).chmod(0o711)
        cluster = Cluster(Path(home) / "postgres")
        try:
            cluster.start()
            url = cluster.create_database("daybook")
            migrate(url)
            yield cluster, url
        finally:
            cluster.remove()
