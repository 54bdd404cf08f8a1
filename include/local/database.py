"""The two databases of a stack: found or made, brought to the newest schema, and told what they serve.

Promises: a database that serves real use is never turned into a sandbox, nor a sandbox used for real; the
simulated clock is set once, when the warehouse is fresh. Never: a database is dropped.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import psycopg

from include.engine import db
from include.engine.migrations import MigrationRefused, migrate
from include.local.environment import with_database
from include.local.failure import LocalFailure
from include.local.files import write_private
from include.local.postgres import Cluster
from include.local.state import State
from include.local.supervisor import Program, Supervisor
from include.settings import ROOT

# A Wednesday in Seoul, twenty minutes before the market opens; in New York it is Tuesday evening, an hour
# after FINRA published the day.
DEMO_START = datetime(2026, 9, 16, 8, 40, tzinfo=ZoneInfo("Asia/Seoul"))
MIGRATE_SECONDS = 300.0


@dataclass(frozen=True)
class Databases:
    """Where both databases are (libpq URLs), and the embedded server if it is ours."""

    metadata: str
    warehouse: str
    cluster: Cluster | None


def start(state: State, given: str | None, port: int, say: Callable[[str], None]) -> Databases:
    """Start the embedded server on `port`, or use the one that `given` names; make both databases where missing.

    Raises:
        LocalFailure: there is no server to use, or no right to make a database on it; with its words.
    """
    if given:
        return _brought(state.mode, given, say)
    cluster = Cluster(state.postgres)
    cluster.start(port)
    if cluster.location != cluster.directory:
        say(f"other users cannot enter {state.directory}, so PostgreSQL keeps its data at {cluster.location}")
    for name in ("airflow", "daybook"):
        if not _exists(cluster.url(), name):
            cluster.create_database(name)
    return Databases(cluster.url("airflow"), cluster.url("daybook"), cluster)


def _brought(mode: str, given: str, say: Callable[[str], None]) -> Databases:
    suffix = "_demo" if mode == "demo" else ""
    try:
        with db.connect(given, autocommit=True) as connection:
            row = connection.execute(db.query("local.server_version")).fetchone()
            if row is not None and row["version"] < 150000:
                raise LocalFailure("The PostgreSQL of DATABASE_URL is older than 15. Nothing was changed on it.")
            for name in (f"airflow{suffix}", f"daybook{suffix}"):
                found = connection.execute(db.query("local.database_exists"), {"name": name}).fetchone()
                if found is not None and not found["found"]:
                    connection.execute(db.query(f"local.create_{name}"))
                    say(f"made the database {name} on the PostgreSQL of DATABASE_URL")
    except psycopg.Error as error:
        raise LocalFailure(f"The PostgreSQL of DATABASE_URL cannot be used: {_first_line(error)}") from error
    return Databases(with_database(given, f"airflow{suffix}"), with_database(given, f"daybook{suffix}"), None)


def _exists(url: str, name: str) -> bool:
    with db.connect(url, autocommit=True) as connection:
        row = connection.execute(db.query("local.database_exists"), {"name": name}).fetchone()
    return bool(row and row["found"])


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else error.__class__.__name__


# --- schemas


def _airflow_version() -> str:
    return importlib.metadata.version("apache-airflow-core")


def _airflow_revision(url: str) -> str | None:
    with db.connect(url, autocommit=True) as connection:
        there = connection.execute(db.query("local.airflow_has_schema")).fetchone()
        if not there or not there["found"]:
            return None
        row = connection.execute(db.query("local.airflow_schema")).fetchone()
    return str(row["version_num"]) if row else None


def bring_up_to_date(
    state: State,
    databases: Databases,
    supervisor: Supervisor,
    environment: Mapping[str, str],
    say: Callable[[str], None],
) -> None:
    """Run the migrations of both databases, side by side; Airflow's only if they may be needed.

    Raises:
        LocalFailure: one of them failed; with its last words.
        Stopped: the operator asked to stop.
    """
    note = state.directory / "airflow.json"
    known = _noted(note)
    now = {"version": _airflow_version(), "revision": _airflow_revision(databases.metadata)}
    airflow_is_due = now["revision"] is None or known != now
    if airflow_is_due:
        say("Airflow's tables are being made" if now["revision"] is None else "Airflow's tables are being checked")
        command = (sys.executable, "-m", "airflow", "db", "migrate")
        supervisor.start(Program("airflow-migrate", command, environment, ROOT))
    try:
        done = migrate(databases.warehouse)
    except MigrationRefused as error:
        raise LocalFailure(str(error)) from error
    except psycopg.Error as error:
        raise LocalFailure(f"The warehouse could not be migrated; nothing was changed: {_first_line(error)}") from error
    if done:
        say(f"the warehouse is at schema {done[-1]}")
    if airflow_is_due:
        supervisor.finish("airflow-migrate", MIGRATE_SECONDS)
        write_private(note, json.dumps({**now, "revision": _airflow_revision(databases.metadata)}))


def _noted(note: Any) -> dict[str, Any] | None:
    try:
        read = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return read if isinstance(read, dict) else None


def settle(warehouse: str, demo: bool, start: datetime = DEMO_START) -> datetime:
    """Make sure that the warehouse serves what it is started for, and return its time.

    A fresh one becomes a sandbox for a demo, with the clock at `start`; afterwards simulated time just
    goes on.

    Raises:
        LocalFailure: it serves the other kind of use; nothing was changed.
    """
    with db.transaction(warehouse) as connection:
        row = connection.execute(db.query("local.installation")).fetchone()
        if row is None:
            raise LocalFailure("The warehouse does not say what it serves; collect.installation is empty.")
        if demo and not row["is_sandbox"]:
            if row["in_use"]:
                raise LocalFailure(
                    "This warehouse holds real data and will not be used for a demo. Nothing was changed. "
                    "Give the demo another database."
                )
            connection.execute(db.query("local.become_sandbox"), {"start": start})
        if not demo and row["is_sandbox"]:
            raise LocalFailure(
                "This warehouse belongs to a demo: its clock is simulated. Nothing was changed. Start it "
                "with ./run up --demo, or name another database."
            )
        now = connection.execute(db.query("local.clock")).fetchone()
    assert now is not None
    moment: datetime = now["now"]
    return moment
