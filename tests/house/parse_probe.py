"""A program of its own: parses a folder of DAG files in this fresh process and tells what it saw, as JSON.

    python parse_probe.py DAGS_FOLDER PLUGINS_FOLDER

Promises: nothing can be reached from here. Every attempt to open a connection is refused and reported, as
is every look at a Variable or a Connection; what the files loaded is told apart from what Airflow loads.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

REACHED: list[str] = []
READ: list[str] = []


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        REACHED.append(repr(arguments[1]))
        raise ConnectionRefusedError(f"parsing DAG files opens no connection, and this went to {arguments[1]!r}")


def _watch(owner: Any, name: str) -> None:
    """Replace a method by one that reports its use and then refuses, as an unreachable server would."""

    @functools.wraps(getattr(owner, name))
    def refused(*arguments: Any, **named: Any) -> None:
        asked = [each for each in arguments if isinstance(each, str)]
        READ.append(f"{owner.__name__}.{name}({', '.join(map(repr, asked))})")
        raise ConnectionRefusedError(f"{owner.__name__}.{name} is not asked while DAG files are parsed")

    setattr(owner, name, refused)


def _load(file: Path) -> None:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _added(before: set[str], action: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Do something, and name the modules that are loaded afterwards and were not before."""
    result = action()
    return result, sorted(set(sys.modules) - before)


def main(dags: Path, plugins: Path) -> dict[str, Any]:
    """Parse, and return what was seen."""
    import airflow.sdk
    from airflow.dag_processing.dagbag import DagBag
    from airflow.sdk.bases.hook import BaseHook
    from airflow.secrets.environment_variables import EnvironmentVariablesBackend
    from airflow.serialization.serialized_objects import DagSerialization

    for name in ("DAG", "Asset", "Param", "task", "BaseOperator", "get_current_context"):
        getattr(airflow.sdk, name)  # resolved when first asked for: Airflow's own imports, not the folder's
    # The one provider's module that Airflow itself loads, wherever a task is mapped.
    import airflow.providers.standard.operators.empty

    for owner, name in (
        (airflow.sdk.Variable, "get"),
        (airflow.sdk.Connection, "get"),
        (BaseHook, "get_connection"),
        (EnvironmentVariablesBackend, "get_variable"),
        (EnvironmentVariablesBackend, "get_conn_value"),
    ):
        _watch(owner, name)
    sys.addaudithook(_refuse)

    bag, by_dags = _added(set(sys.modules), lambda: DagBag(dag_folder=str(dags)))
    _, by_plugin = _added(set(sys.modules), lambda: [_load(file) for file in sorted(plugins.glob("*.py"))])
    return {
        "files": sorted(file.name for file in dags.glob("*.py")),
        "import_errors": {Path(file).name: error for file, error in bag.import_errors.items()},
        "loaded_by_dags": by_dags,
        "loaded_by_plugin": by_plugin,
        "reached": REACHED,
        "read": READ,
        "dags": {
            dag_id: {
                "file": Path(dag.fileloc).name,
                # Airflow itself writes keys in any order and sorts them before it compares; lists are ours.
                "serialised": json.dumps(DagSerialization.to_dict(dag), sort_keys=True),
                "tags": sorted(dag.tags),
                "doc": dag.doc_md or "",
                "params": {
                    key: {"title": param.schema.get("title"), "description": param.description}
                    for key in dag.params
                    for param in [dag.params.get_param(key)]
                },
                "tasks": {
                    task.task_id: {"pool": task.pool, "timeout": bool(task.execution_timeout)} for task in dag.tasks
                },
            }
            for dag_id, dag in sorted(bag.dags.items())
        },
    }


if __name__ == "__main__":
    seen = main(Path(sys.argv[1]), Path(sys.argv[2]))
    print("\n" + json.dumps(seen))
