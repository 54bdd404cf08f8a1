"""`./run new-source NAME`: a new source that loads, migrates, has a stand-in and fails its entry exam.

Promises: everything that a source needs is made or named in one go, and the only thing that is missing is what nobody
can generate: how the upstream is asked and read. Never: a file that is there is written over, but the migration with
`--tables`.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template

from include import registry, settings
from include.local.failure import LocalFailure
from include.local.table_text import TEMPLATES, table_sql

VERSIONS, UPSTREAMS = "sql/migrations/versions", "include/sandbox/upstreams.py"
_NAME = re.compile(r"[a-z][a-z0-9]{1,29}")


def new_source(name: str, tables: bool, say: Callable[[str], None]) -> int:
    """Make a source, or with `tables` only write the migration of one anew, and return the exit code.

    Raises:
        LocalFailure: the name cannot be one, is taken, or something is not as it was left.
    """
    if tables:
        _write_migration(name)
        say(f"DONE – {_migration(name).relative_to(settings.ROOT)} is what the tables of {name} are declared as.")
        say("A database of yours that has the older one already is made anew: ./run reset")
        return 0
    _check(name)
    number, before = _numbers()
    words = {"name": name, "title": name.capitalize(), "number": number, "before": before}
    files: dict[str, str] = {}
    for path, template in (
        (f"include/sources/{name}/__init__.py", "init"),
        (f"include/sources/{name}/tables.py", "tables"),
        (f"include/sources/{name}/streams.py", "streams"),
        (f"include/sources/{name}/daily.py", "parser"),
        (f"include/sandbox/{name}.py", "sandbox"),
        (f"dags/{name}.py", "dag"),
        (f"{VERSIONS}/{number}_{name}.py", "migration"),
    ):
        text = (TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")
        files[path] = Template(text).substitute(words)
    for file in sorted((TEMPLATES / "fixtures").iterdir()):
        text = file.read_text(encoding="utf-8")
        files[f"tests/fixtures/{name}/{file.name}"] = Template(text).safe_substitute(words)
    files[f"{VERSIONS}/{number}_{name}.sql"] = ""
    _make(files)
    _register(name)
    # In a process of its own: this one has loaded the registry as it was.
    command = [sys.executable, "-m", "include.local", "new-source", name, "--tables"]
    made = subprocess.run(command, cwd=settings.ROOT, capture_output=True, text=True, check=False)
    if made.returncode:
        raise LocalFailure(f"The migration could not be written: {(made.stderr or made.stdout).strip()[-500:]}")
    _tidy()
    for line in _next_steps(name):
        say(line)
    return 0


def _check(name: str) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise LocalFailure(f"{name!r} cannot be a source's name: small letters and digits, a letter first.")
    taken = {source.name for source in registry.sources()}
    rooms = [path.stem for room in ("sources", "sandbox") for path in (settings.ROOT / "include" / room).iterdir()]
    if name in taken or name in rooms:
        raise LocalFailure(f"{name!r} is taken. There are {', '.join(sorted(taken))}. Nothing was made.")
    # A DAG or a connection of that name, or a word of the modules that would import it.
    compose = (settings.ROOT / "docker-compose.yaml").read_text(encoding="utf-8")
    is_connection = f"AIRFLOW_CONN_{name.upper()}:" in compose
    words = set(dir(builtins)).union(*(_words_of(path) for path in ("include/registry.py", UPSTREAMS)))
    if is_connection or name in words or (settings.ROOT / f"dags/{name}.py").exists():
        raise LocalFailure(f"{name!r} is taken: Daybook or Python calls something else so. Nothing was made.")


def _words_of(path: str) -> set[str]:
    """The names that a module uses or imports."""
    found = set()
    for node in ast.walk(ast.parse((settings.ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.alias | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found


def _numbers() -> tuple[str, str]:
    """The number of the next migration, and of the last one."""
    last = max(path.name[:4] for path in (settings.ROOT / VERSIONS).glob("*.sql"))
    return f"{int(last) + 1:04}", last


def _make(made: Mapping[str, str]) -> None:
    """Write all files, or none where one of them is there."""
    for path in made:
        if (settings.ROOT / path).exists():
            raise LocalFailure(f"{path} is there already. Nothing was made; take it away, or choose another name.")
    for path, text in made.items():
        target = settings.ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _register(name: str) -> None:
    """Name the source where sources are named: registry, stand-ins, compose file, example connections."""
    _edit("include/registry.py", r"^from include\.sources import (.+)$", rf"from include.sources import \1, {name}")
    _edit("include/registry.py", r"(^SOURCES: tuple\[Source, \.\.\.\] = \((?:\n    .*)+)", rf"\1\n    {name}.SOURCE,")
    _edit(
        UPSTREAMS,
        r"^from include\.sandbox import (.+)$",
        rf"from include.sandbox import \1, {name}",
    )
    _edit(UPSTREAMS, r"(^SOURCES: tuple.* = \((?:\n    .*)+)", rf"\1\n    {name}.upstream,")
    _edit("docker-compose.yaml", r"^(  AIRFLOW_CONN_DART:)$", rf"\1\n  AIRFLOW_CONN_{name.upper()}:")
    line = f'#AIRFLOW_CONN_{name.upper()}={{"conn_type": "http", "host": "https://{name}.example"}}'
    for file in ("config/connections.example.env", "config/compose.example.env"):
        _edit(file, r"^(#?AIRFLOW_CONN_DART=.*)$", rf"\1\n\n# {name.capitalize()}.\n{line}")


def _edit(path: str, pattern: str, replacement: str) -> None:
    target = settings.ROOT / path
    text, count = re.subn(pattern, replacement, target.read_text(encoding="utf-8"), count=1, flags=re.MULTILINE)
    if not count:
        raise LocalFailure(f"{path} does not look as it did, so the source could not be named there: do it by hand.")
    target.write_text(text, encoding="utf-8")


def _migration(name: str) -> Path:
    found = sorted((settings.ROOT / VERSIONS).glob(f"[0-9][0-9][0-9][0-9]_{name}.sql"))
    if len(found) != 1:
        raise LocalFailure(f"There are {len(found)} migrations {VERSIONS}/…_{name}.sql, not one. Nothing was written.")
    return found[0]


def _write_migration(name: str) -> None:
    file = _migration(name)
    source = registry.source(name)
    tables = {table.qualified: table for stream in source.streams for table in stream.tables}
    head = (
        f"-- {file.name[:4]} {name}: tables of {source.title}. Expand-only.\n"
        "-- Roll-back note: the tables may be dropped once no release writes them.\n"
    )
    file.write_text("\n".join([head, *(f"{table_sql(table)}\n" for table in tables.values())]), encoding="utf-8")


def _tidy() -> None:
    """Put imports and long lines in order, with the tool that the tests use."""
    for arguments in (("check", "--fix", "--quiet"), ("format", "--quiet")):
        subprocess.run([sys.executable, "-m", "ruff", *arguments, "include", "dags"], cwd=settings.ROOT, check=False)


def _next_steps(name: str) -> list[str]:
    return [
        f"DONE – {name} is made: its folder, table, migration, DAG, stand-in and fixtures. It fails its exam:",
        f"    ./run test tests/sources/test_every_stream.py -k {name}",
        "Then, in this order (CONTRIBUTING.md says more):",
        f"    1. include/sources/{name}/tables.py    its columns; then ./run new-source {name} --tables",
        f"    2. include/sources/{name}/streams.py   its host, requests, schedule, calendar, rate",
        f"    3. include/sandbox/{name}.py           answers in the upstream's exact form",
        f"    4. tests/fixtures/{name}               an answer of each kind, and how it is to be read",
        f"    5. include/sources/{name}/daily.py     classify and parse, until the exam passes",
        "    6. ./run docs, ./run test",
    ]
