"""Rules for the files under sql/, as pure functions over their names and texts.

Promises: nothing is read or run here; each function returns complaints, an empty list where all is well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from tests.house.rooms import called

_SQL = re.compile(r"^(\d{4})_([a-z][a-z0-9_]*)\.sql$")
_TAKES_AWAY = re.compile(
    r"\b(?:drop\s+(?:table|column|schema|type|constraint)|rename\s+(?:to|column)|truncate\s+(?!on\b)"
    r"|alter\s+column\s+\w+\s+(?:type|set\s+data\s+type|set\s+not\s+null)|delete\s+from)\b",
    re.IGNORECASE,
)

# A column that must have a value and brings none: the release before does not know it, and its inserts would fail.
_DEMANDS = re.compile(
    r"\badd\s+column\s+(?:if\s+not\s+exists\s+)?(\w+)\b(?![^,;]*\bdefault\b)[^,;]*\bnot\s+null\b", re.IGNORECASE
)


def bare(text: str) -> str:
    """SQL without comments, and with the inside of quoted texts taken out."""
    text = re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"'(?:[^']|'')*'", "''", text)


def outside_functions(text: str) -> str:
    """SQL without comments, quoted texts and the bodies of functions."""
    return re.sub(r"(\$\w*\$).*?\1", "''", bare(text), flags=re.DOTALL)


def numbering(names: Iterable[str], revisions: Mapping[str, tuple[str, str | None]]) -> list[str]:
    """Twins, strangers and wrong orders among the migrations; areas may keep numbers free between them.

    Args:
        names: the file names in sql/migrations/versions.
        revisions: per Python file name its `revision` and `down_revision`.
    """
    names = sorted(names)
    files = [name for name in names if name.endswith(".sql")]
    found = [f"{name} is not named NNNN_name.sql" for name in files if not _SQL.match(name)]
    numbers = [name[:4] for name in files]
    if numbers[:1] != ["0001"] or len(set(numbers)) != len(numbers):
        found.append(f"the numbers are {numbers}: they begin with 0001, and each stands once")
    for place, name in enumerate(files):
        twin = f"{name.removesuffix('.sql')}.py"
        before = numbers[place - 1] if place else None
        if revisions.get(twin) != (numbers[place], before):
            found.append(f"{twin} must be revision {numbers[place]!r} after {before!r}, it is {revisions.get(twin)}")
    twins = {f"{name.removesuffix('.sql')}.py" for name in files}
    return found + [f"{name} belongs to no migration" for name in names if name not in {*files, *twins}]


def migration(name: str, text: str) -> list[str]:
    """A migration that takes something away, or does not say how to go back."""
    found = []
    head = text.split("\n\n")[0]
    number, _, rest = name.removesuffix(".sql").partition("_")
    if not head.startswith(f"-- {number} {rest}: "):
        found.append(f"{name} does not begin with '-- {number} {rest}: ' and what it is for")
    if "roll-back note:" not in head.lower():
        found.append(f"{name} has no roll-back note in its head: when may what it makes be dropped?")
    taken = _TAKES_AWAY.search(outside_functions(text))
    if taken:
        found.append(f"{name} takes something away ({taken.group(0)!r}): migrations only add")
    demanded = _DEMANDS.search(outside_functions(text))
    if demanded:
        found.append(f"{name} adds {demanded.group(1)} not null without a default: the release before could not insert")
    return found


def named(file: str, text: str, *, parts: bool = False) -> tuple[list[str], list[str]]:
    """The statements of a file of named statements, and complaints: one name, a description, one statement each.

    Args:
        file: its name without folder and ending.
        text: what is in it.
        parts: whether it may hold parts of statements too, which have no semicolon.
    """
    head, *blocks = re.split(r"^(?=-- name: )", text, flags=re.MULTILINE)
    found = [f"{file}: SQL before the first name"] if bare(head).strip() else []
    names = []
    for block in blocks:
        first, _, rest = block.partition("\n")
        name = first.removeprefix("-- name: ").strip()
        names.append(name)
        if not re.fullmatch(r"[a-z]\w*", name):
            found.append(f"{file}: {name!r} is no name")
        if not re.match(r"(?:-- \S.*\n)*?-- .*[.:?]\n", rest):
            found.append(f"{file}.{name} has no line that says what it does")
        body = outside_functions(rest).strip()
        if not body or ";" in body.removesuffix(";") or not (parts or body.endswith(";")):
            found.append(f"{file}.{name} is not exactly one statement with a semicolon at its end")
    found += [f"{file}.{name} is there twice" for name in sorted({n for n in names if names.count(n) > 1})]
    return names, found


def asked(texts: Iterable[str]) -> tuple[set[str], set[str]]:
    """What Python modules ask for by name: `file.statement` in full, and every word that could be part of one."""
    full, words = set(), set()
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
            if isinstance(node, ast.Call) and called(node) in ("query", "template") and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    full.add(first.value)
    return full, words


def usage(statements: Mapping[str, Iterable[str]], full: set[str], words: set[str]) -> list[str]:
    """Statements that are asked for and missing, or there and asked for by nobody.

    Args:
        statements: per file (`lease`) the names in it.
        full: what is asked for as `file.statement`.
        words: texts in the code; a statement whose own name, or a beginning of its full name, is among them may
            be asked for by a name that is put together.
    """
    there = {f"{file}.{name}" for file, names in statements.items() for name in names}
    beginnings = tuple(word for word in words if word.endswith(("_", ".")) and "." in word)
    used = {
        each
        for each in there
        if each in full or each.partition(".")[2] in words or (beginnings and each.startswith(beginnings))
    }
    return [f"{each} is asked for and does not exist" for each in sorted(full - there)] + [
        f"{each} is asked for by nobody" for each in sorted(there - used)
    ]


def stem(path: str) -> str:
    """`lease` for sql/queries/lease.sql."""
    return PurePosixPath(path).stem
