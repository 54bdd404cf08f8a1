"""Running a program against the stack that is up, with its environment.

Promises: the program replaces this process, so signals, terminal and exit code are its own. Never: a password
is put on a command line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from include import settings
from include.local import connections, environment, keys, status
from include.local.environment import Addresses, with_database
from include.local.failure import LocalFailure
from include.local.postgres import Cluster
from include.local.state import Record, State


def addresses(state: State, record: Record) -> Addresses:
    """Where the servers of a running stack are."""
    own = connections.read(settings.ROOT / "config" / "connections.env")
    given = settings.load().database_url or own.get("DATABASE_URL")
    suffix = "_demo" if given and record.mode == "demo" else ""
    if given:
        metadata, warehouse = (with_database(given, name + suffix) for name in ("airflow", "daybook"))
    else:
        cluster = Cluster(state.postgres)
        cluster.port = record.ports["postgres"]
        metadata, warehouse = cluster.url("airflow"), cluster.url("daybook")
    ports = record.ports
    return Addresses(
        metadata, warehouse, ports["api-server"], ports.get("sandbox"), ports.get("redis"), ports.get("s3")
    )


def environment_of(state: State, record: Record) -> dict[str, str]:
    """The environment that the processes of a running stack have."""
    own = connections.read(settings.ROOT / "config" / "connections.env")
    return environment.build(state, addresses(state, record), keys.keys(state.directory), own)


def run(verb: str, arguments: Sequence[str]) -> int:
    """Become Daybook's command line, Airflow's, psql, or a Python for programs of yours.

    Raises:
        LocalFailure: no stack is up, or there is no psql.
    """
    demo = True if arguments[:1] == ["--demo"] else None
    rest = list(arguments[1:] if demo else arguments)
    found = status.running(settings.load().state, demo)
    if found is None:
        which = "demo" if demo else "stack"
        raise LocalFailure(
            f"No {which} is up, so there is nothing to speak to. Start it: ./run up{' --demo' * bool(demo)}"
        )
    state, record = found
    values = environment_of(state, record)
    if verb == "psql":
        program = _psql(state)
        values["PGAPPNAME"] = "daybook psql"
        # By the service of libpq's variables, as a command line can be read by everybody on the machine.
        values.update(_libpq(values["AIRFLOW_CONN_WAREHOUSE"]))
        os.execve(program, [str(program), *rest], values)
    if verb == "python":
        # Where it was called: what such a program writes is put there.
        os.execve(sys.executable, [sys.executable, *rest], values)
    module = "include.cli" if verb == "cli" else "airflow"
    os.chdir(settings.ROOT)
    os.execve(sys.executable, [sys.executable, "-m", module, *rest], values)


def cache(arguments: Sequence[str]) -> int:
    """Become the verb `cache` of Daybook's command line; with the environment of the stack where one is up.

    Raises:
        LocalFailure: the demo's is asked for, and it is not up.
    """
    demo = True if arguments[:1] == ["--demo"] else None
    found = status.running(settings.load().state, demo)
    if found is not None:
        values = environment_of(*found)
    elif demo:
        raise LocalFailure("No demo is up, so there is no Hub to speak to. Start it: ./run up --demo")
    else:
        # Whoever reads what others publish has a connection and no stack.
        own = connections.read(settings.ROOT / "config" / "connections.env")
        values = environment.base(False, own)
        values.setdefault("HF_HOME", str(settings.load().state / "hub"))
    rest = list(arguments[1:] if demo else arguments)
    os.execve(sys.executable, [sys.executable, "-m", "include.cli", "cache", *rest], values)


def _psql(state: State) -> Path:
    program = Cluster(state.postgres).binaries / "psql"
    if not program.exists():
        raise LocalFailure(f"There is no psql next to {program.parent}. Install PostgreSQL's client programs.")
    return program


def _libpq(url: str) -> dict[str, str]:
    from psycopg.conninfo import conninfo_to_dict

    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    return {names[key]: str(value) for key, value in conninfo_to_dict(url).items() if key in names}
