"""Which room of the house may import which, as data, and the check of one module against it.

Promises: nothing is read, imported or known but the path and the text that are handed in; relative imports,
imports inside functions and imports by literal name count as much as any other.
Paths are relative to the repository root, with forward slashes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from tests.house.finding import Finding

# --- who may import whom ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Room:
    """A part of the house: which other rooms (or single modules) it may import, and why no others."""

    name: str
    may: tuple[str, ...]
    why: str
    airflow: bool = False


LEAVES = ("calendars", "schedules", "settings", "version")

ROOMS: dict[str, Room] = {
    room.name: room
    for room in (
        Room(
            "dags",
            ("dag_factory", "operators", "registry"),
            "a DAG file says when, and nothing else",
            airflow=True,
        ),
        Room("plugins", ("ops",), "the one plugin file only mounts the operations pages", airflow=True),
        Room("config", (), "every Airflow process runs it before the repository is importable"),
        Room("examples", ("settings",), "scripts for whoever reads the data to copy: no code of ours but the settings"),
        Room("sql", ("engine", "settings"), "Alembic's environment is driven by the engine's database module"),
        Room("include", (), "the package itself holds nothing, so that importing one room costs one room"),
        Room("states", (), "the states and kinds that the contract gives on: names alone"),
        Room("timing", ("reach",), "schedules and budgets, which the contract gives on: frozen data alone"),
        Room("reach", (), "how an upstream is reached, which the contract gives on: plain data"),
        Room("refusals", (), "ways to say no, which the contract gives on: exceptions alone"),
        Room("shapes", (), "tables as declared, which the contract gives on: frozen data alone"),
        Room("bulk", ("shapes",), "archives and files made of them, which the contract gives on: frozen data alone"),
        Room(
            "contract",
            ("states", "timing", "reach", "refusals", "shapes", "bulk"),
            "the shared words: standard library alone",
        ),
        Room(
            "bodies", ("contract",), "how the text of a filing is had: plain data that a source gives to the analysis"
        ),
        Room("declared_settings", (), "what settings there are, with their defaults: frozen data alone"),
        Room("version", (), "which release this is: two names alone"),
        Room("settings", ("declared_settings",), "a leaf that everyone else may read"),
        Room("calendars", ("contract",), "a leaf: which days and windows are due, asked by whoever needs it"),
        Room("schedules", ("contract", "settings"), "a leaf: the times that an installation sets"),
        Room(
            "registry",
            ("sources", "bodies", "contract", "schedules", "settings"),
            "one line per source, its times as set",
        ),
        Room("sources", ("contract", "bodies"), "a source knows how to ask and how to read, not who calls it"),
        Room("engine", ("contract", *LEAVES), "the engine knows no source: a Stream is handed to it"),
        Room("outputs", ("engine", "contract", *LEAVES), "outputs are made from rows, not from sources"),
        Room("analysis", ("engine", "bodies", "contract", *LEAVES), "the disclosure pipeline works from rows"),
        Room(
            "operators",
            ("engine", "outputs", "analysis", "bodies", "contract", "ops.slack", "ops.github", *LEAVES),
            "operators hand what a DAG file named to the engine, and alerts to their sender",
            airflow=True,
        ),
        Room(
            "dag_factory",
            ("operators", "engine", "outputs", "analysis", "contract", "ops.deadlines", *LEAVES),
            "what one source DAG looks like, and what is told when it is late; the source itself is handed to it",
            airflow=True,
        ),
        Room(
            "ops",
            ("registry", "engine", "outputs", "analysis", "contract", *LEAVES),
            "pages and alerts over the same rows",
            airflow=True,
        ),
        Room(
            "collecting",
            ("registry", "engine", "contract", *LEAVES),
            "what a person at a command line asks the engine for, without Airflow",
        ),
        Room(
            "looking",
            ("collecting", "registry", "engine", "contract", *LEAVES),
            "what a person at a command line sees and decides",
        ),
        Room(
            "caching",
            ("collecting", "registry", "engine", "outputs", "contract", *LEAVES),
            "what a person at a command line keeps copies of, and whether they are fresh",
        ),
        Room(
            "cli",
            (
                "caching",
                "collecting",
                "looking",
                "registry",
                "engine",
                "outputs",
                "analysis",
                "contract",
                "ops.watch",
                *LEAVES,
            ),
            "the same engine, and the watcher, without Airflow",
        ),
        Room(
            "local",
            (
                "registry",
                "contract",
                "declared_settings",
                "engine.db",
                "engine.migrations",
                "outputs.releases",
                *LEAVES,
            ),
            "it makes the databases ready and reads what is declared; all else are processes that it starts",
        ),
        Room(
            "docs",
            ("registry", "declared_settings", "operators.hours", "ops.api", "engine", "outputs", "contract", *LEAVES),
            "pages made from what everybody else declares",
            airflow=True,
        ),
        Room(
            "sandbox",
            ("contract", "engine.db", *LEAVES),
            "it stands in for upstreams and shares no code with us",
        ),
    )
}

OUTSIDE = ("dags", "plugins", "config", "tests")
"""Top-level folders that nobody imports from."""


@dataclass(frozen=True)
class Import:
    """One imported thing: its absolute dotted name, the line, and whether loading the module does it."""

    target: str
    line: int
    at_load: bool


def room_of(path: str) -> str:
    """The room that a file belongs to: `include/engine/db.py` is in `engine`, `dags/finra.py` in `dags`."""
    parts = PurePosixPath(path).parts
    if parts[0] != "include":
        return parts[0]
    if len(parts) == 2:
        return "include" if parts[1] == "__init__.py" else parts[1].removesuffix(".py")
    return parts[1]


def imports(path: str, text: str) -> list[Import]:
    """Every import of a module: absolute, relative, inside functions, by literal name through importlib."""
    found: list[Import] = []
    package = PurePosixPath(path).parent.parts

    def targets(node: ast.ImportFrom) -> Iterator[str]:
        if node.level:
            above = package[: len(package) - node.level + 1]
            stem = ".".join((*above, *([node.module] if node.module else [])))
        else:
            stem = node.module or ""
        for alias in node.names:
            yield stem if alias.name == "*" else f"{stem}.{alias.name}"

    def visit(node: ast.AST, at_load: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, at_load) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.extend(Import(target, node.lineno, at_load) for target in targets(node))
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            found.append(Import(literal(node.args[0]) if node.args else "?", node.lineno, at_load))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            at_load = False
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            for child in node.body:
                visit(child, False)
            for child in node.orelse:
                visit(child, at_load)
            return
        for child in ast.iter_child_nodes(node):
            visit(child, at_load)

    visit(ast.parse(text), True)
    return found


def called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def literal(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "?"


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


def import_directions(path: str, text: str) -> list[Finding]:
    """Imports that run the wrong way between the rooms, or that cannot be followed at all."""
    room = ROOMS.get(room_of(path))
    if room is None:
        return [
            Finding(
                path,
                1,
                "imports",
                f"'{room_of(path)}' is no room of the house: name it in rules.py with a reason",
            )
        ]
    return [
        Finding(path, each.line, "imports", complaint)
        for each in imports(path, text)
        if (complaint := _complaint(path, room, each.target))
    ]


def _complaint(path: str, room: Room, target: str) -> str | None:
    top, _, rest = target.partition(".")
    if target == "?":
        return "an import by a computed name cannot be checked: write the name out"
    if not top:
        return "this relative import leaves the repository"
    if top in OUTSIDE:
        return f"nothing is imported from {top}/: it is loaded, never called"
    if top == "airflow":
        return None if room.airflow else f"{room.name} does not know Airflow ({room.why})"
    if top != "include":
        if room.name in ("contract", "states", "timing", "reach", "refusals") and top not in sys.stdlib_module_names:
            return f"{room.name} imports the standard library alone, not {top}"
        return None
    if not rest:
        return "import the room that is meant, not the whole of include"
    own = _own(path, room)
    if any(rest == allowed or rest.startswith(f"{allowed}.") for allowed in (*own, *room.may)):
        return None
    return f"{room.name} may not import include.{rest}: {room.why} (allowed: {', '.join(room.may) or 'nothing'})"


def _own(path: str, room: Room) -> tuple[str, ...]:
    """A module may import its own room; a source only its own folder, never another source."""
    parts = PurePosixPath(path).parts
    if parts[0] != "include" or room.name == "include":
        return ()
    if room.name == "sources":
        return (f"sources.{parts[2].removesuffix('.py')}",) if len(parts) > 2 and parts[2] != "__init__.py" else ()
    return (room.name,)


HEAVY = ("pandas", "pyarrow", "huggingface_hub", "openai", "airflow.providers")
"""What takes long to import: the folder is parsed again and again, and by every task."""


def heavy_imports(path: str, text: str) -> list[Finding]:
    """Heavy modules that a DAG file, the factory or the plugin imports when it is loaded."""
    if room_of(path) not in ("dags", "plugins", "dag_factory"):
        return []
    return [
        Finding(path, each.line, "heavy", f"{each.target} is imported at module level: import it where it is used")
        for each in imports(path, text)
        if each.at_load and any(each.target == heavy or each.target.startswith(f"{heavy}.") for heavy in HEAVY)
    ]
