"""What every DAG of the house must be, as pure functions over what the parse probe saw.

Promises: nothing is parsed or imported here; each function returns complaints, an empty list if all is well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.house.rooms import HEAVY

Seen = dict[str, Any]


def heavy(modules: Iterable[str]) -> list[str]:
    """The modules among these that a parse of DAG files must not load."""
    return [name for name in modules if any(name == each or name.startswith(f"{each}.") for each in HEAVY)]


def silent(seen: Seen) -> list[str]:
    """Files with neither a DAG nor an error: Airflow skips a file without the words "dag" and "airflow"."""
    heard = {dag["file"] for dag in seen["dags"].values()} | set(seen["import_errors"])
    return [f"{file} gives no DAG" for file in seen["files"] if file not in heard]


def unreachable(seen: Seen) -> list[str]:
    """What the files asked of a Variable, a Connection or the network while they were parsed."""
    return [f"read while parsing: {each}" for each in seen["read"]] + [
        f"connection opened while parsing: {each}" for each in seen["reached"]
    ]


def unstable(one: Seen, other: Seen) -> list[str]:
    """DAGs that two processes serialise differently: Airflow would make a new version on each parse."""
    ids = sorted(set(one["dags"]) | set(other["dags"]))
    return [
        f"{dag_id} is serialised differently by two processes"
        for dag_id in ids
        if one["dags"].get(dag_id, {}).get("serialised") != other["dags"].get(dag_id, {}).get("serialised")
    ]


def pools(seen: Seen, provisioned: Iterable[str]) -> list[str]:
    """Tasks in a pool that nobody provisions: they would wait for ever, with only a line in a log."""
    known = {*provisioned, "default_pool"}
    return [
        f"{dag_id}.{task_id} is in pool {task['pool']!r}, which config/pools.json does not have"
        for dag_id, dag in seen["dags"].items()
        for task_id, task in dag["tasks"].items()
        if task["pool"] not in known
    ]


def timeouts(seen: Seen) -> list[str]:
    """Tasks that could run for ever."""
    return [
        f"{dag_id}.{task_id} has no execution timeout"
        for dag_id, dag in seen["dags"].items()
        for task_id, task in dag["tasks"].items()
        if not task["timeout"]
    ]


def words(seen: Seen) -> list[str]:
    """DAGs without a page of their own, parameters without a title or a sentence."""
    return [f"{dag_id} has no doc_md" for dag_id, dag in seen["dags"].items() if not dag["doc"].strip()] + [
        f"{dag_id}: the parameter {name!r} has no {part}"
        for dag_id, dag in seen["dags"].items()
        for name, param in dag["params"].items()
        for part in ("title", "description")
        if not (param[part] or "").strip()
    ]


def tags(seen: Seen, sources: Mapping[str, str], named: Mapping[str, str] | None = None) -> list[str]:
    """Tags outside the policy: `source:<source>` with `kind:<kind>`, or `system` for all else.

    `sources` gives the id of each source's main DAG, `named` the source of each id that a stream gives its DAG itself.
    """
    found = []
    for dag_id, dag in seen["dags"].items():
        source = [tag.removeprefix("source:") for tag in dag["tags"] if tag.startswith("source:")]
        kinds = [tag for tag in dag["tags"] if tag.startswith("kind:") and tag != "kind:"]
        others = [tag for tag in dag["tags"] if not tag.startswith(("source:", "kind:"))]
        if others not in ([], ["system"]):
            found.append(f"{dag_id} has tags outside the policy: {others}")
        if len(source) + len(others) != 1:
            found.append(f"{dag_id} must have one tag `source:…`, or `system`; it has {dag['tags']}")
        for each in source:
            if each not in sources:
                found.append(f"{dag_id} is tagged with {each!r}, which is no source of the registry")
            elif dag_id != sources[each] and not dag_id.startswith(f"{each}_") and (named or {}).get(dag_id) != each:
                found.append(f"{dag_id} belongs to {each}: its id is {sources[each]!r} or begins with '{each}_'")
            if not kinds:
                found.append(f"{dag_id} has no tag `kind:…`")
    return found


def registered(seen: Seen, sources: Mapping[str, str]) -> list[str]:
    """Sources without their main DAG, in the file that is named after it."""
    found = []
    for source, dag_id in sources.items():
        dag = seen["dags"].get(dag_id)
        if dag is None:
            found.append(f"the source {source!r} has no DAG of the id {dag_id!r}")
        elif dag["file"] != f"{dag_id}.py":
            found.append(f"the DAG {dag_id!r} is in {dag['file']}, not in {dag_id}.py")
    return found
