"""Runs of whole DAGs in this process: Airflow's own database in SQLite, the warehouse and the upstream as stand-ins."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from include.engine.db import Row, connect
from tests.fixtures_sandbox import RunningSandbox, Start
from tests.house.tree import ROOT


@pytest.fixture(scope="session")
def airflow_tables() -> None:
    """Airflow's own tables, made once."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture
def upstream(sandbox: Start) -> RunningSandbox:
    """FINRA, the Hub and Slack as stand-ins, on Tuesday evening in New York."""
    return sandbox(companies=5)


@pytest.fixture
def warehouse(
    database: str, upstream: RunningSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., list[Row]]:
    """Everything a run needs, by connections and settings; gives a function that asks the warehouse."""
    hub = {"conn_type": "http", "host": upstream.hub_url, "password": "hf-token", "extra": {"namespace": "me"}}
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", database)
    monkeypatch.setenv("AIRFLOW_CONN_FINRA", '{"conn_type": "http", "host": "https://cdn.finra.org"}')
    monkeypatch.setenv("AIRFLOW_CONN_HUGGINGFACE", json.dumps(hub))
    monkeypatch.setenv("DAYBOOK_SANDBOX_URL", upstream.url)
    monkeypatch.setenv("DAYBOOK_RAW_ROOT", str(tmp_path / "raw"))
    monkeypatch.setenv("DAYBOOK_OUTBOX_ROOT", str(tmp_path / "outbox"))

    def ask(statement: str, *values: Any) -> list[Row]:
        with connect(database, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    ask(
        "update collect.installation set is_sandbox = true, clock_offset = %s::timestamptz - clock_timestamp()",
        upstream.clock(),
    )
    return ask


Run = Callable[..., tuple[str, dict[str, dict[str, Any]]]]


@pytest.fixture
def run(airflow_tables: None, warehouse: Any) -> Run:
    """Run a DAG to its end; gives the run's state, and by task what is known of it."""

    def start(dag_id: str, logical_date: datetime | None = None, **conf: Any) -> tuple[str, dict[str, dict[str, Any]]]:
        from airflow.dag_processing.dagbag import DagBag

        # Read anew each time: a tried DAG keeps the configuration that it was tried with.
        bag = DagBag(dag_folder=str(ROOT / "dags"))
        assert bag.import_errors == {}
        dag = bag.dags[dag_id]
        # A tried DAG's deadlines are not in Airflow's tables, and it looks them up there; a real one's are.
        dag.deadline = None
        done = dag.test(logical_date=logical_date, run_conf=conf)
        return str(done.state), {
            f"{ti.task_id}[{ti.map_index}]" if ti.map_index >= 0 else ti.task_id: {
                "state": str(ti.state),
                "try": ti.try_number,
                "label": ti.rendered_map_index,
            }
            for ti in done.get_task_instances()
        }

    return start
