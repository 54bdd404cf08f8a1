"""Markdown as the generated pages need it.

Promises: a text of any kind stands in one cell of a table. Never: nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MADE = "<!-- Made by `./run docs` from the declarations; what is changed here by hand is lost. -->"


def cell(value: object) -> str:
    """Return a value as one cell of a table."""
    return " ".join(str(value).split()).replace("|", "\\|")


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table."""
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    return lines + [f"| {' | '.join(map(cell, row))} |" for row in rows]


def page(title: str, *parts: Sequence[str]) -> str:
    """Return a page of parts, each a list of lines."""
    lines = [f"# {title}", "", MADE]
    for part in parts:
        lines += ["", *part]
    return "\n".join(lines) + "\n"
