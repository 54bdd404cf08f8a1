"""The rules of the house as pure functions over (path, source text).

Promises: no rule reads a file, imports what it judges or knows which files exist; each returns its findings,
an empty list where nothing is wrong, so that a test can feed it an offending text and see it bite.
Paths are relative to the repository root, with forward slashes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from pathlib import PurePosixPath

from tests.house.finding import Finding
from tests.house.rooms import called, heavy_imports, import_directions, imports, literal, room_of
from tests.house.statements import sql_text

# --- smaller rules ------------------------------------------------------------------------------------

_ENVIRONMENT = ("environ", "environb", "getenv", "getenvb", "putenv", "unsetenv", "expandvars")


def environment_reads(path: str, text: str) -> list[Finding]:
    """Uses of the process environment anywhere but in include/settings.py."""
    if path == "include/settings.py":
        return []
    tree = ast.parse(text)
    modules = {"os", "posix", "nt"} | {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname and alias.name in ("os", "posix", "nt", "os.path")
    }
    found = []
    for node in ast.walk(tree):
        used = None
        if isinstance(node, ast.Attribute) and node.attr in _ENVIRONMENT:
            if ast.unparse(node.value) in modules | {"os.path"}:
                used = ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and node.module in ("os", "posix", "nt", "os.path"):
            used = next((f"os.{name.name}" for name in node.names if name.name in (*_ENVIRONMENT, "*")), None)
        elif isinstance(node, ast.Call) and called(node) == "getattr" and len(node.args) > 1:
            used = f"os.{name}" if (name := literal(node.args[1])) in _ENVIRONMENT else None
        if used:
            found.append(
                Finding(
                    path,
                    node.lineno,
                    "environment",
                    f"{used}: only include/settings.py reads the environment",
                )
            )
    return found


# fmt: off
_IO = (
    "aiohttp", "alembic", "boto3", "fsspec", "ftplib", "http.client", "httpx", "httpx2", "huggingface_hub",
    "openai", "os", "pathlib", "psycopg", "psycopg2", "random", "requests", "s3fs", "secrets", "shutil",
    "socket", "sqlalchemy", "subprocess", "tempfile", "time", "upath", "urllib.request", "urllib3",
)
# fmt: on
_CLOCK = ("now", "utcnow", "today", "now_in_zone")


def impure_sources(path: str, text: str) -> list[Finding]:
    """A database, a network, a file, a clock or chance in a source, or in the contract."""
    if room_of(path) not in ("sources", "contract"):
        return []
    found = [
        Finding(path, each.line, "pure", f"a source does no input or output and knows no clock: {each.target}")
        for each in imports(path, text)
        if any(each.target == name or each.target.startswith(f"{name}.") for name in _IO)
    ]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            clock = isinstance(node.func, ast.Attribute) and node.func.attr in _CLOCK
            opens = isinstance(node.func, ast.Name) and node.func.id == "open"
            if clock or opens:
                what = ast.unparse(node.func)
                found.append(Finding(path, node.lineno, "pure", f"what a source needs is handed to it: {what}()"))
    return found


_NO_NAMES = {"util", "utils", "common", "commons", "helper", "helpers", "manager", "managers", "base"}


def module_name(path: str) -> list[Finding]:
    """Modules and packages named after nothing in particular."""
    pure = PurePosixPath(path)
    words = [*pure.parent.parts, pure.stem]
    bad = [word for word in words if word.lower().rsplit("_", 1)[-1] in _NO_NAMES]
    return [
        Finding(path, 1, "name", f"'{word}' says nothing: a module is the word you would say for what it holds")
        for word in bad
    ]


def docstring(path: str, text: str) -> list[Finding]:
    """Modules that do not say what they promise."""
    if (ast.get_docstring(ast.parse(text)) or "").strip():
        return []
    return [Finding(path, 1, "docstring", "the module says neither what it promises nor what it never does")]


LINES = 450


def length(path: str, text: str) -> list[Finding]:
    """Modules that are two modules."""
    count = len(text.splitlines())
    if count <= LINES:
        return []
    return [Finding(path, count, "length", f"{count} lines: past about 400 a module is two modules")]


def one_plugin(paths: Iterable[str], taken: frozenset[str] = frozenset(sys.stdlib_module_names)) -> list[Finding]:
    """Anything but exactly one Python file in plugins/, with a name that hides no importable module.

    Airflow imports every file there, in every process, under its bare name. No plugins/ folder is no finding.
    """
    inside = sorted(path for path in paths if path.startswith("plugins/"))
    files = [path for path in inside if path.endswith(".py")]
    if inside and len(files) != 1:
        return [Finding("plugins", 1, "plugin", f"exactly one Python file belongs here, not {len(files)}: {files}")]
    return [
        Finding(path, 1, "plugin", f"'{PurePosixPath(path).stem}' would hide an importable module of that name")
        for path in files
        if PurePosixPath(path).stem in taken
    ]


def check(path: str, text: str) -> list[Finding]:
    """All rules for one file of the product."""
    return [
        *import_directions(path, text),
        *heavy_imports(path, text),
        *sql_text(path, text),
        *environment_reads(path, text),
        *impure_sources(path, text),
        *module_name(path),
        *docstring(path, text),
        *length(path, text),
    ]
