"""What a fresh Airflow is given over REST: pools, and DAGs that may run.

Promises: each DAG is unpaused once, the first time it can run; what an operator pauses afterwards stays
paused, and a pool that an operator resized stays so. Never: a source whose connection is missing is started.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from include import registry
from include.local import pools
from include.local.environment import connection_variable
from include.local.rest import Airflow

# Kept in Airflow's own database, next to what it speaks about: a new database begins anew.
NOTE = "daybook_provisioned"


@dataclass(frozen=True)
class Provisioned:
    """What was done: DAGs unpaused now, and per source without a connection the DAGs that stay paused."""

    unpaused: tuple[str, ...]
    waiting: Mapping[str, tuple[str, ...]]


def provision_pools(airflow: Airflow, wanted: Mapping[str, Mapping[str, Any]]) -> None:
    """Make the pools that are missing, and let the one that follows a setting follow it.

    Raises:
        LocalFailure: Airflow refused.
    """
    there = {pool["name"]: pool for pool in airflow.all("/pools", "pools")}
    for name, pool in pools.to_write(there, wanted).items():
        if name not in there:
            airflow.call("POST", "/pools", json={"name": name, **pool})
        else:
            airflow.call("PATCH", f"/pools/{name}", json={"slots": pool["slots"]}, params={"update_mask": ["slots"]})


def connected(airflow: Airflow, environment: Mapping[str, str], names: Collection[str]) -> set[str]:
    """Which of these connections exist, in the environment or made in the UI."""
    in_ui = {connection["connection_id"] for connection in airflow.all("/connections", "connections")}
    return {name for name in names if environment.get(connection_variable(name)) or name in in_ui}


def source_of(dag: Mapping[str, Any]) -> str | None:
    """The source that a DAG collects, by its tag; None for the system's own."""
    tags = [tag["name"] for tag in dag["tags"]]
    return next((tag.removeprefix("source:") for tag in tags if tag.startswith("source:")), None)


def _is_ours(dag: Mapping[str, Any]) -> bool:
    """Whether a DAG is one of the system's own; one that somebody else put into the folder is left to them."""
    return any(tag["name"] == "system" for tag in dag["tags"])


def provision_dags(airflow: Airflow, environment: Mapping[str, str], say: Callable[[str], None]) -> Provisioned:
    """Unpause what can run and was not unpaused before; name the sources that wait for their connection.

    Raises:
        LocalFailure: Airflow refused.
    """
    connections = {source.name: source.connection for source in registry.sources()}
    there = connected(airflow, environment, connections.values())
    note = airflow.find(f"/variables/{NOTE}")
    done = set(json.loads(note["value"])) if note else set()
    unpaused: list[str] = []
    waiting: dict[str, list[str]] = {}
    for dag in sorted(airflow.all("/dags", "dags"), key=lambda one: one["dag_id"]):
        source = source_of(dag)
        if source is None and not _is_ours(dag):
            continue
        if source is not None and connections.get(source) not in there:
            waiting.setdefault(source, []).append(dag["dag_id"])
        elif dag["dag_id"] not in done:
            if dag["is_paused"]:
                airflow.call("PATCH", f"/dags/{dag['dag_id']}", json={"is_paused": False})
            unpaused.append(dag["dag_id"])
    if unpaused:
        body = {
            "key": NOTE,
            "value": json.dumps(sorted(done | set(unpaused))),
            "description": "DAGs that ./run unpaused once; what an operator pauses afterwards stays paused",
        }
        airflow.call("PATCH" if note else "POST", f"/variables/{NOTE}" if note else "/variables", json=body)
    for source, dags in waiting.items():
        say(
            f"{source} stays paused ({', '.join(dags)}): it has no connection. "
            "config/connections.example.env shows how to give it one."
        )
    return Provisioned(tuple(unpaused), {source: tuple(dags) for source, dags in waiting.items()})


def parsed(airflow: Airflow) -> set[str]:
    """Which DAG files the DAG processor has read, those with errors included, by their names.

    A DAG without a tag is not counted: all of ours have one, and it may be written a moment later.

    Raises:
        LocalFailure: Airflow refused.
    """
    files = [dag["relative_fileloc"] for dag in airflow.all("/dags", "dags") if dag["tags"]]
    files += [error["filename"] for error in airflow.all("/importErrors", "import_errors")]
    return {PurePath(file).name for file in files}
