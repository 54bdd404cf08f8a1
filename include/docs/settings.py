"""The page of settings and connections, from their declarations.

Promises: every variable that `include.settings` reads is on it. Never: the environment is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from include.contract import Source
from include.declared_settings import SERVICES, SETTINGS, Setting
from include.docs.text import page, table


def reference(sources: Sequence[Source]) -> str:
    """Return the page."""
    parts = [
        [
            "Settings are variables of the environment; `config/connections.env` may hold them too, one a line. What "
            "is collected when stands in `config/schedules.yaml`, what is frozen in `config/controls.yaml`.",
        ]
    ]
    for group in dict.fromkeys(setting.group for setting in SETTINGS):
        rows = [
            (
                f"`{each.name}`",
                each.default if each.is_words else f"`{each.default}`" if each.default else "–",
                each.text,
            )
            for each in SETTINGS
            if each.group == group
        ]
        parts.append([f"## {group}", "", *table(("setting", "where it is not set", "what it does"), rows)])
    rows = [(f"`AIRFLOW_CONN_{each.connection.upper()}`", each.title, _holds(each)) for each in _by_connection(sources)]
    rows += [(f"`AIRFLOW_CONN_{each.name.upper()}`", "–", each.text) for each in SERVICES]
    parts.append(
        [
            "## Connections",
            "",
            "Airflow's own, as a variable (JSON or URI) or made in its UI; `config/connections.example.env` has a line "
            "for each. `<NAME>_API_KEYS` alone does where a connection has nothing but keys.",
            "",
            *table(("variable", "source", "what it holds"), rows),
        ]
    )
    return page("Settings", *parts)


def _default(setting: Setting) -> str:
    if setting.is_words or not setting.default:
        return setting.default or "–"
    return f"`{setting.default}`"


def _by_connection(sources: Sequence[Source]) -> list[Source]:
    return list({source.connection: source for source in reversed(sources)}.values())[::-1]


def _holds(source: Source) -> str:
    said = "no key"
    if source.needs_key:
        said = "keys as password, with commas between them" if source.several_keys else "a key as password"
        said += ", its id as login" if source.login_header else ""
    return said + ("; `extra.user_agent` with a name and an e-mail address" if source.needs_contact else "")
