"""The page of the Operations API, from its own OpenAPI document.

Promises: every route of the plugin, with who may use it. Never: a request is answered.
"""

from __future__ import annotations

from typing import Any

from include.docs.text import page, table
from include.ops.api import access, app

_WHO = {
    "reads": "whoever may see DAG runs",
    "writes": "whoever may start the DAG `control`",
    "public": "anybody, limited by address",
    "signed_in": "any Airflow user, for themselves",
    "keyed": "who has the admin key",
}


def reference() -> str:
    """Return the page."""
    made = app.create_app(warehouse=str)
    document = made.openapi()
    who = {
        (method, route.path): access.declared(route.endpoint)  # type: ignore[attr-defined]
        for route in made.routes
        for method in getattr(route, "methods", None) or ()
    }
    parts = [document["info"]["description"].strip().splitlines()]
    rows, details = [], []
    for path, methods in sorted(document["paths"].items()):
        for method, operation in methods.items():
            word = f"{method.upper()} {app.PREFIX}{path}"
            kind = who.get((method.upper(), path)) or "reads"
            rows.append((f"`{word}`", operation.get("summary", ""), _WHO[kind]))
            details.append(_route(word, operation))
    parts += [table(("route", "what it does", "for"), rows), *details]
    parts.append(["## Shapes", "", "What answers and bodies hold; `?` marks what may be left out or null."])
    parts += [_shape(name, shape) for name, shape in sorted(document["components"]["schemas"].items())]
    return page("Operations API", *parts)


def _route(word: str, operation: dict[str, Any]) -> list[str]:
    lines = [f"## `{word}`", "", operation.get("description") or operation.get("summary", "")]
    given = [
        (f"`{each['name']}`", each["in"], _type(each.get("schema", {})), each.get("description", ""))
        for each in operation.get("parameters", ())
    ]
    if given:
        lines += ["", *table(("parameter", "in", "type", "what it means"), given)]
    body = operation.get("requestBody", {}).get("content", {})
    answers = [
        f"{code}: {_content(answer.get('content', {})) or answer.get('description', '')}"
        for code, answer in sorted(operation.get("responses", {}).items())
        if code.startswith("2")
    ]
    lines += ["", f"Body: {_content(body)}." if body else "No body.", f"Answers with {'; '.join(answers)}."]
    return lines


def _content(content: dict[str, Any]) -> str:
    return ", ".join(_type(each.get("schema", {})) for each in content.values())


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[word]))
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    kind = schema.get("format") or schema.get("type") or "anything"
    return str(kind)


def _shape(name: str, shape: dict[str, Any]) -> list[str]:
    required = set(shape.get("required", ()))
    lines = [f"### `{name}`", ""]
    if shape.get("description"):
        lines += [shape["description"], ""]
    rows = [
        (f"`{field}`{'' if field in required else '?'}", _type(of), of.get("description", ""))
        for field, of in shape.get("properties", {}).items()
    ]
    return lines + (table(("field", "type", "what it means"), rows) if rows else [_type(shape)])
