"""Bringing a stack up, keeping it up, and taking it down.

Promises: `up` ends with everything running or with nothing left running; what a supervisor that vanished left
behind is ended first. Never: a stack that runs is started twice, and nothing is shown as ready that is not.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

from include import settings
from include.local import (
    connections,
    database,
    environment,
    keys,
    pools,
    ports,
    processes,
    provision,
    recorded,
    topology,
)
from include.local.environment import Addresses
from include.local.failure import LocalFailure
from include.local.interrupts import Interrupts, Stopped
from include.local.postgres import Cluster
from include.local.rest import Airflow
from include.local.state import Record, State, open_state
from include.local.supervisor import Program, Supervisor, end_leftovers, rotate

API_PORT, POSTGRES_PORT, SANDBOX_PORT = 8080, 15432, 8090
READY_SECONDS = 300.0
AIRFLOW_PROCESSES = ("api-server", "scheduler", "dag-processor", "triggerer")
# Their log servers listen on every address and are needed only where logs lie on another machine.
_WITHOUT_LOG_SERVER = frozenset({"scheduler", "triggerer"})


Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What `up` is asked for: against the sandbox or not, recorded answers for it to serve, and who runs the tasks.

    `workers` is of CeleryExecutor alone.
    """

    demo: bool = False
    recordings: Path | None = None
    executor: topology.Executor = "local"
    workers: int = topology.WORKERS


class Stack:
    """A stack that is up (`with`): its addresses and, logged in, its Airflow."""

    def __init__(self, options: Options, interrupts: Interrupts, say: Say) -> None:
        self.options = options
        self._interrupts = interrupts
        self._say = say
        self._settings = settings.load()
        self._own = connections.read(settings.ROOT / "config" / "connections.env")
        # What its processes will read: a value that cannot be used is told before anything is started.
        asked = environment.base(options.demo, self._own)
        self._pools = pools.sizes(environment.parallelism(asked), settings.load(asked).ai_concurrency)
        self.state = open_state(self._settings.state, options.demo)
        self._ports = ports.Ports()
        self._cluster: Cluster | None = None
        self._supervisor: Supervisor | None = None
        self.addresses: Addresses
        self.environment: dict[str, str]
        self.airflow: Airflow

    # --- up

    def start(self) -> None:
        """Start everything and wait until it is ready.

        Raises:
            LocalFailure: something is in the way; what was started is ended again by `stop`.
            Stopped: the operator asked to stop meanwhile.
        """
        self.state.make()
        if not self.state.lock():
            raise LocalFailure(_runs_already(self.state))
        before = self.state.record()
        self._check_objects(before)
        self._end_leftovers(before)
        self._warn_of_open_file()
        me = processes.mark(os.getpid(), settings.ROOT)
        first = Record(self.state.mode, "starting", me, started_at=_now())
        self._supervisor = Supervisor(self.state, first, self._interrupts, self._say)
        self._supervisor.note()
        self._start_database()
        self._start_sandbox()
        self._start_broker()
        self._start_airflow()
        self._wait_ready()
        self._provision()
        self._supervisor.note(phase="ready")

    @property
    def begun(self) -> bool:
        """Whether anything may have been started; not so where another stack was in the way."""
        return self._supervisor is not None

    @property
    def supervisor(self) -> Supervisor:
        """Who watches over the processes of this stack."""
        assert self._supervisor is not None
        return self._supervisor

    def _warn_of_open_file(self) -> None:
        file = settings.ROOT / "config" / "connections.env"
        if connections.open_to_others(file):
            self._say(f"{file} can be read by others on this machine; `chmod 600` it, as it holds your keys")

    def _check_objects(self, before: Record | None) -> None:
        """A demo whose object store is in memory is played from nothing: rows would speak of answers that are gone."""
        in_memory = self.options.executor == "celery" or (before is not None and "s3" in before.ports)
        if self.options.demo and before is not None and in_memory:
            raise LocalFailure(
                "With --executor celery the demo keeps its answers in memory, so it cannot go on where another one "
                "ended. Nothing was changed. Delete what the earlier one left: ./run reset --demo --yes"
            )

    def _end_leftovers(self, before: Record | None) -> None:
        count = sum(len(processes.members(mark)) for mark in before.sessions()) if before else 0
        if before is not None and count:
            self._say(f"an earlier supervisor vanished; ending the {count} processes that it left behind")
            end_leftovers(self.state, before)
        Cluster(self.state.postgres).stop()

    def _port(self, name: str, preferred: int) -> int:
        """The usual port if it is free, else another, and then says so."""
        chosen = self._ports.take(preferred)
        if chosen != preferred:
            self._say(f"port {preferred} is taken; {name} listens on {chosen} instead")
        self.supervisor.note(ports={**self.supervisor.record.ports, name: chosen})
        return chosen

    def _start_database(self) -> None:
        given = self._settings.database_url or self._own.get("DATABASE_URL")
        self._say("the PostgreSQL of DATABASE_URL is used" if given else "PostgreSQL starts")
        port = 0 if given else self._port("postgres", POSTGRES_PORT)
        found = database.start(self.state, given, port, self._say)
        self._cluster = found.cluster
        self.addresses = Addresses(
            found.metadata,
            found.warehouse,
            self._port("api-server", API_PORT),
            self._port("sandbox", SANDBOX_PORT) if self.options.demo else None,
            self._port("redis", topology.REDIS_PORT) if self._is_distributed else None,
            self._port("s3", topology.S3_PORT) if self._is_distributed and self.options.demo else None,
        )
        secrets = keys.keys(self.state.directory)
        keys.passwords(self.state.directory)
        self.environment = environment.build(self.state, self.addresses, secrets, self._own)
        database.bring_up_to_date(self.state, found, self.supervisor, self.environment, self._say)
        now = database.settle(found.warehouse, self.options.demo, self._demo_start())
        if self.options.demo:
            self._say(f"simulated time: {now.astimezone(database.DEMO_START.tzinfo):%A %Y-%m-%d %H:%M} in Seoul")

    def _demo_start(self) -> datetime:
        """When a demo plays: as usual, or after the last day that its recordings hold."""
        if self.options.recordings is None:
            return database.DEMO_START
        return recorded.start_after(recorded.read(self.options.recordings), database.DEMO_START)

    def _program(self, name: str, *command: str) -> Program:
        return Program(name, (sys.executable, "-m", *command), self.environment, settings.ROOT)

    def _start_sandbox(self) -> None:
        if self.addresses.sandbox is None:
            return
        home = self.state.directory / "sandbox"
        home.mkdir(mode=0o700, exist_ok=True)
        answers = ("--recordings", str(self.options.recordings)) if self.options.recordings else ()
        self._say("the sandbox starts")
        self.supervisor.start(
            self._program(
                "sandbox", "include.sandbox", "--port", str(self.addresses.sandbox_port),
                "--simulated-time", "--state", str(home), *answers,
            )
        )  # fmt: skip
        health = f"{self.addresses.sandbox}/_sandbox/health"
        self._wait_for("the sandbox", lambda: self._serves("sandbox") and _answers(health), 60)

    @property
    def _is_distributed(self) -> bool:
        return self.options.executor == "celery"

    def _start_broker(self) -> None:
        """Start Redis and, for a demo, the object store, and wait until both serve."""
        if not self._is_distributed:
            return
        self._say("Redis starts" + (", and an object store that speaks S3" if self.options.demo else ""))
        file = topology.write_redis(self._celery, self.addresses.redis_port or 0, keys.keys(self.state.directory))
        self.supervisor.start(Program("redis", ("redis-server", str(file)), self.environment, settings.ROOT))
        self._wait_for("Redis", lambda: self._serves("redis"), 30)
        if self.addresses.s3_port is not None:
            where = ("-H", ports.LOOPBACK, "-p", str(self.addresses.s3_port))
            self.supervisor.start(self._program("s3", "moto.server", *where))
            self._wait_for("the object store", lambda: self._serves("s3"), 60)
            self.supervisor.start(self._program("objects", "include.local.objects"))
            self.supervisor.finish("objects", 60)

    @property
    def _celery(self) -> Path:
        return self.state.directory / "celery"

    def _start_airflow(self) -> None:
        self._say("Airflow starts")
        self._booted = datetime.now(UTC)
        for name in AIRFLOW_PROCESSES:
            quiet = ("--skip-serve-logs",) if name in _WITHOUT_LOG_SERVER else ()
            self.supervisor.start(self._program(name, "airflow", name, *quiet))
        for name in topology.names(self.options.workers) if self._is_distributed else ():
            self.supervisor.start(self._program(name, *topology.worker(name, self._celery)))
        self.supervisor.start(self._program("watcher", "include.cli", "watch"))

    def _wait_for(self, what: str, ready: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not ready():
            self._interrupts.wait(0.5)
            self._interrupts.check()
            self.supervisor.check_alive()
            if time.monotonic() > end:
                raise LocalFailure(f"{what} did not get ready within {seconds:.0f} s; logs: {self.state.logs}")

    def _serves(self, name: str) -> bool:
        """Whether it is our process that listens on the port, and not somebody who was quicker."""
        record = self.supervisor.record
        return ports.listens(record.children[name].pid, record.ports[name])

    def _wait_ready(self) -> None:
        password = keys.passwords(self.state.directory)["admin"]
        self.airflow = Airflow(self.addresses.api, "admin", password)
        self._wait_for(
            "Airflow",
            lambda: self._serves("api-server") and healthy(self.airflow.health(), self._booted),
            READY_SECONDS,
        )
        if self._is_distributed:
            names = topology.names(self.options.workers)
            self.supervisor.start(self._program("workers-check", "include.local.topology", *names))
            self.supervisor.finish("workers-check", topology.WORKERS_SECONDS + 30)

    def _provision(self) -> None:
        provision.provision_pools(self.airflow, self._pools)
        files = {file.name for file in (settings.ROOT / "dags").glob("*.py")}
        self._wait_for("parsing the DAG files", lambda: files <= provision.parsed(self.airflow), 120)
        for error in self.airflow.all("/importErrors", "import_errors"):
            last = str(error["stack_trace"]).strip().splitlines()[-1]
            self._say(f"{error['filename']} cannot be imported: {last}")
        provision.provision_dags(self.airflow, self.environment, self._say)

    # --- running and down

    def watch(self) -> None:
        """Keep the stack running until the operator asks to stop.

        Raises:
            LocalFailure: something died too often.
        """
        self.supervisor.watch(self._look_after_database)

    def _look_after_database(self) -> None:
        cluster = self._cluster
        if cluster is None:
            return
        rotate(cluster.log)
        if cluster.process is None or cluster.process.poll() is None:
            return
        self._say(f"PostgreSQL ended with code {cluster.process.returncode}; starting it again. Its log: {cluster.log}")
        self.supervisor.count_death("postgres")
        cluster.start(cluster.port or 0)

    def stop(self) -> None:
        """End everything that `start` started; nothing is left running afterwards."""
        try:
            if self._supervisor is not None:
                self._supervisor.stop()
        finally:
            (self._cluster or Cluster(self.state.postgres)).stop()
            if hasattr(self, "airflow"):
                self.airflow.close()
            self._ports.release()
            self.state.unlock()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def healthy(health: Mapping[str, Mapping[str, str | None]] | None, since: datetime) -> bool:
    """Whether every process of Airflow reported itself healthy, and did so after `since`.

    Before its first own heartbeat, a process that was restarted passes for healthy by its predecessor's.
    """
    if health is None or health["metadatabase"]["status"] != "healthy":
        return False
    for name in ("scheduler", "triggerer", "dag_processor"):
        beat = health[name].get(f"latest_{name}_heartbeat")
        if health[name]["status"] != "healthy" or beat is None or datetime.fromisoformat(beat) < since:
            return False
    return True


def greeting(state: State, api: str, detached: bool = False) -> list[str]:
    """What to tell at the terminal when a stack is ready: its page, the logins, how to stop it."""
    title = "The demo" if state.mode == "demo" else "Daybook"
    lines = [f"{title} is up:  {api}"]
    known = keys.passwords(state.directory)
    lines.append(f"  login  admin / {known['admin']}    (to look only: viewer / {known['viewer']})")
    lines.append(f"  logs   {state.logs}")
    lines.append(f"  stop   {'' if detached else 'Ctrl-C, or '}./run down")
    return lines


def _runs_already(state: State) -> str:
    record = state.record()
    port = record.ports.get("api-server") if record else None
    if record is None or record.phase != "ready" or port is None:
        return f"Another ./run starts or stops the stack of {state.directory} now. Wait, or ./run down."
    return (
        f"It runs already: http://{ports.LOOPBACK}:{port} (./run status says more, ./run down stops it). "
        "Nothing was changed."
    )


def up(options: Options, say: Say, ready: Callable[[Stack], None]) -> int:
    """Bring a stack up and keep it up until Ctrl-C or TERM.

    Args:
        options: what is asked for.
        say: where progress goes.
        ready: called once, when everything is.

    Returns:
        0 when it was up and then stopped by the operator, 130 when stopped before, 1 when it could not be started
        or kept up.
    """
    with Interrupts() as interrupts:
        stack = Stack(options, interrupts, say)
        code = 1
        try:
            stack.start()
            ready(stack)
            stack.watch()
            code = 0
        except Stopped:
            code = 130
        except LocalFailure as failure:
            say(str(failure))
        finally:
            if stack.begun:
                if interrupts.asked:
                    say("stopping (Ctrl-C again: at once)")
                stack.stop()
                say("stopped; nothing is left running")
    return code
