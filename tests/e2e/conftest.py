"""The real stack, once: started by `./run` in a state directory of its own, spoken to as an operator would."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from include.engine.db import connect
from include.local import processes
from include.local.attach import addresses
from include.local.rest import Airflow
from include.local.state import open_state
from include.settings import ROOT

READY_SECONDS = 400
RUN_SECONDS = 420
ADMIN_KEY = "sandbox-admin-key"


@dataclass
class RealStack:
    """A demo stack that is up: its state directory, its Airflow, its warehouse and its sandbox."""

    directory: Path
    environment: dict[str, str]
    airflow: Airflow
    warehouse: str
    metadata: str
    sandbox: str

    def run(self, *words: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a verb of `./run` against this stack."""
        return subprocess.run(
            [str(ROOT / "run"), *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def trigger(self, dag_id: str, **conf: Any) -> str:
        """Trigger a DAG over REST; return the run's id."""
        run = self.airflow.call("POST", f"/dags/{dag_id}/dagRuns", json={"conf": conf, "logical_date": None})
        return str(run["dag_run_id"])

    def finished(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """Wait until a run is over and return it."""
        return self.eventually(lambda: self._over(dag_id, run_id), f"{dag_id} {run_id} to end")

    def _over(self, dag_id: str, run_id: str) -> dict[str, Any] | None:
        run = self.airflow.find(f"/dags/{dag_id}/dagRuns/{run_id}")
        return run if run is not None and run["state"] in ("success", "failed") else None

    def tasks(self, dag_id: str, run_id: str) -> dict[str, dict[str, Any]]:
        """Return a run's task instances by id (and map index where mapped)."""
        found = self.airflow.all(f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances", "task_instances")
        return {
            task["task_id"] if task["map_index"] < 0 else f"{task['task_id']}[{task['map_index']}]": task
            for task in found
        }

    def eventually(self, look: Any, what: str, seconds: float = RUN_SECONDS) -> Any:
        """Look twice a second until there is something, and return it."""
        end = time.monotonic() + seconds
        while not (seen := look()):
            assert time.monotonic() < end, f"waited {seconds:.0f} s for {what}"
            time.sleep(0.5)
        return seen

    def rows(self, statement: str, *values: Any, database: str | None = None) -> list[dict[str, Any]]:
        """Ask the warehouse, or Airflow's own database."""
        connection = connect(database or self.warehouse, autocommit=True)
        try:
            return connection.execute(statement.encode(), values).fetchall()
        finally:
            connection.close()

    def execute(self, statement: str, *values: Any) -> None:
        """Change something in the warehouse, as a test's set-up."""
        with psycopg.connect(self.warehouse, autocommit=True) as connection:
            connection.execute(statement.encode(), values)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealStack]:
    """Bring the demo stack up, and take it down with nothing left running."""
    with bring_up(tmp_path_factory.mktemp("stack") / "state", demo=True) as up:
        yield up


@contextmanager
def bring_up(
    directory: Path, demo: bool, told: Mapping[str, str] | None = None, executor: Sequence[str] = ()
) -> Iterator[RealStack]:
    """A stack of its own in a state directory of its own; `told` is what its shell says besides.

    `executor` are the flags that choose who runs the tasks.
    """
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "DAYBOOK", "PYTEST"))},
        **(told or {}),
        "DAYBOOK_STATE": str(directory),
    }
    begun = subprocess.run(
        [str(ROOT / "run"), "up", *(["--demo"] if demo else []), "--detach", *executor],
        env=environment, capture_output=True, text=True, timeout=READY_SECONDS, check=False,
    )  # fmt: skip
    state = open_state(directory, demo=demo)
    record = state.record()
    try:
        assert begun.returncode == 0, begun.stdout + begun.stderr
        assert record is not None
        where = addresses(state, record)
        password = json.loads((state.directory / "passwords.json").read_text())["admin"]
        airflow = Airflow(where.api, "admin", password)
        yield RealStack(state.directory, environment, airflow, where.warehouse, where.metadata, where.sandbox or "")
        airflow.close()
    finally:
        down = subprocess.run(
            [str(ROOT / "run"), "down"], env=environment, capture_output=True, text=True, timeout=180, check=False
        )
    assert down.returncode == 0, down.stdout + down.stderr
    assert record is not None
    left = [pid for mark in record.sessions() for pid in processes.members(mark)]
    assert not left, f"processes {left} were left running"
