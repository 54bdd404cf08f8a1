"""SQL lives under sql/: the check that finds a statement in a Python module's strings.

Promises: every string but a docstring is read, f-strings, sums and joins of strings as the one text that they
build. What only looks like SQL is found too: a false finding costs a rewording, a missed one costs the rule.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.finding import Finding
from tests.house.rooms import called, room_of

# --- SQL lives under sql/ -----------------------------------------------------------------------------

HOLE = "\ufffc"
"""What stands for a value that a text is built with."""

_NAME = r'[\w."%{}\ufffc$:]+'
_NO_PROSE = r"(?!(?:the|a|an|this|that|these|those|which|your|our|its|it|here|there|them|any|all|each)\b)"
_OBJECT = (
    r"(?:table|index|function|schema|database|view|materialized\s+view|sequence|type|domain|trigger|procedure"
    r"|extension|role|user|policy|publication|subscription|aggregate|rule|tablespace|event\s+trigger)"
)
_ADJECTIVES = r"(?:or\s+replace\s+|temp\s+|temporary\s+|unlogged\s+|unique\s+|global\s+|local\s+|recursive\s+)*"
_STATEMENTS = "|".join(
    (
        rf"select\s+.*?\bfrom\s+{_NO_PROSE}[(\w\"%{{\ufffc$:]",
        rf"select\s+(?:all\s+|distinct\s+)?{_NAME}\(",
        r"select\s+\d+\s*(?:;|$|as\b)",
        rf"insert\s+into\s+{_NO_PROSE}{_NAME}",
        rf"update\s+(?:only\s+)?{_NAME}(?:\s+(?:as\s+)?\w+)?\s+set\s+(?:\(|\ufffc|[\w.\"{{}}]+\s*=)",
        rf"delete\s+from\s+(?:only\s+)?{_NO_PROSE}{_NAME}",
        rf"merge\s+into\s+{_NO_PROSE}{_NAME}",
        rf"create\s+{_ADJECTIVES}{_OBJECT}\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?{_NAME}",
        rf"drop\s+{_OBJECT}\s+(?:concurrently\s+)?(?:if\s+exists\s+)?{_NAME}",
        rf"alter\s+(?:{_OBJECT}|system|default\s+privileges)\b",
        rf"truncate\s+table\s+{_NAME}",
        rf"truncate\s+(?:only\s+)?{_NAME}(?:\s*,\s*{_NAME})*(?:\s+(?:restart|continue)\s+identity)?"
        r"(?:\s+(?:cascade|restrict))?\s*(?:;|$)",
        r"with\s+(?:recursive\s+)?[\w\"\ufffc{}]+\s*(?:\([^)]*\))?\s+as\s+(?:not\s+)?(?:materialized\s+)?\(",
        rf"copy\s+(?:{_NAME}|\()[^\n]*?\b(?:from|to)\s+(?:stdin|stdout|program)\b",
        r"(?:grant|revoke)\s+(?:all|select|insert|update|delete|usage|execute|create|connect|temp)\b",
        r"set\s+(?:local|session)\s+\w+",
        r"set\s+(?:search_path|statement_timeout|lock_timeout|role|timezone|idle_\w+)\s*(?:=|to\b)",
        r"(?:lock\s+table|comment\s+on|refresh\s+materialized\s+view|reindex\s+\w+|do\s+\$|savepoint\s+\w+\s*$)",
        r"(?:begin|commit|rollback)\s*;",
    )
)
_STATEMENT = re.compile(
    rf"(?:^|[;\n(\ufffc])\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:explain\s+(?:\([^)]*\)\s*|analyze\s+|verbose\s+)*)?"
    rf"(?:{_STATEMENTS})",
    re.IGNORECASE | re.DOTALL,
)
_RUNS_TEXT = ("execute", "executemany", "exec_driver_sql", "SQL")
"""Calls whose first argument is a statement, or a part of one, whatever it looks like."""
_GLUE = re.compile(r"\b(?:and|or|excluded)\b")
"""What may stand between composed identifiers all the same: a list needs something between its members."""


def sql_text(path: str, text: str) -> list[Finding]:
    """Texts that are SQL statements, in any string but a docstring; examples show how the database is asked."""
    if room_of(path) == "examples":
        return []
    found = []
    for line, value, runs in _texts(ast.parse(text)):
        if _STATEMENT.search(value) or (runs and re.search(r"[A-Za-z]{2}", _GLUE.sub("", value))):
            shown = " ".join(value.replace(HOLE, "…").split())[:60]
            found.append(
                Finding(
                    path,
                    line,
                    "sql",
                    f"SQL belongs in a file under sql/ (if it is prose, word it differently): {shown}",
                )
            )
    return found


def _texts(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Every text of a module as (line, text, whether it is handed to a call that runs SQL)."""

    def visit(node: ast.AST, runs: bool) -> Iterator[tuple[int, str, bool]]:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring, or the description under an attribute: nothing can run it
        if isinstance(node, ast.expr):
            value = _assembled(node)
            if value is not None:
                yield node.lineno, value, runs
                for hole in _holes(node):
                    yield from visit(hole, False)
                return
        first = node.args[:1] if isinstance(node, ast.Call) and called(node) in _RUNS_TEXT else []
        for child in ast.iter_child_nodes(node):
            yield from visit(child, child in first)

    return visit(tree, False)


def _assembled(node: ast.expr) -> str | None:
    """The text that an expression builds, HOLE for what is known only later; None for anything else."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bytes):
            return node.value.decode("latin-1")
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else HOLE for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _assembled(node.left), _assembled(node.right)
        if left is None and right is None:
            return None
        return (HOLE if left is None else left) + (HOLE if right is None else right)
    if isinstance(node, ast.Call) and called(node) == "join" and len(node.args) == 1:
        glue = _assembled(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if glue is not None and isinstance(node.args[0], ast.List | ast.Tuple):
            parts = [_assembled(part) for part in node.args[0].elts]
            return glue.join(HOLE if part is None else part for part in parts)
    return None


def _holes(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions inside an assembled text that are no part of the text themselves."""
    if isinstance(node, ast.JoinedStr):
        yield from (part.value for part in node.values if isinstance(part, ast.FormattedValue))
        return
    parts: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Call) and isinstance(node.args[0], ast.List | ast.Tuple):
        parts = node.args[0].elts
    for part in parts:
        if _assembled(part) is None:
            yield part
        else:
            yield from _holes(part)
