"""From a connection's fields to the `Credentials` that the engine sends with.

Promises: one rule for Airflow and for the command line; every secret field is known as a secret, so that it is
masked wherever an upstream echoes it. Never: nothing is read from the environment or the network here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from include.contract import Credentials, Key, Source

# Said to every upstream that is not told another contact: honest, and with a place to complain to.
DEFAULT_USER_AGENT = "Daybook (open-source market data collector)"
# The sandbox has nobody who would write to us.
SANDBOX_CONTACT = "sandbox@daybook.invalid"
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


class NoContact(Exception):
    """An upstream wants to know whom to write to, and nobody is named; the text says where to put it."""


class NoKey(Exception):
    """An upstream wants a key of one's own, and there is none; the text says where to put it."""


def check_key(source: Source, password: str | None) -> None:
    """Insist that there is a key where the upstream wants one.

    Raises:
        NoKey: there is none, or one that is nobody's own.
    """
    place = f"its password: Admin → Connections, or AIRFLOW_CONN_{source.connection.upper()}."
    if source.needs_key and not password:
        raise NoKey(
            f"Connection {source.connection} has no key. Nothing was asked. Put the key of {source.title} into {place}"
        )
    if any(part in source.no_keys for part in _parts(source, password or "")):
        raise NoKey(
            f"Connection {source.connection} has the key {password!r}, which is for demonstrations and gives few rows "
            f"of each answer. Nothing was asked. Put a key of your own into {place}"
        )


def build(
    source: Source,
    *,
    host: str,
    login: str = "",
    password: str = "",
    schema: str = "",
    port: int | None = None,
    extra: Mapping[str, Any] | None = None,
    sandbox_url: str | None = None,
) -> Credentials:
    """Return how to reach a source.

    Args:
        host: with or without a scheme, as people write it in a connection; empty means the source's own.
        login: the name of the key, where the upstream wants one; it is taken for a secret too.
        password: the key, where the upstream wants one, or several with commas between them where the source says so.
        schema: http or https, where the host does not say.
        extra: `user_agent` names a contact for upstreams that ask for one.

    Raises:
        NoContact: the upstream asks for one, and no e-mail address is given.
    """
    base = host.rstrip("/")
    if base and "://" not in base:
        base = f"{schema or 'https'}://{base}"
    if base and port:
        base = f"{base}:{port}"
    is_plain = source.key_param and not source.several_keys
    keys = () if is_plain or not password else tuple(_keys(source, password))
    return Credentials(
        base_url=base or source.hosts[0],
        default_host=source.hosts[0],
        user_agent=_user_agent(source, extra or {}, is_sandbox=sandbox_url is not None),
        params={source.key_param: password} if is_plain and password else {},
        secrets=_secrets(source, login, password),
        headers={source.login_header: login} if source.login_header and login else {},
        sandbox_url=sandbox_url,
        keys=keys,
    )


def _user_agent(source: Source, extra: Mapping[str, Any], *, is_sandbox: bool) -> str:
    given = str(extra.get("user_agent") or source.user_agent or DEFAULT_USER_AGENT)
    if not source.needs_contact or _ADDRESS.search(given):
        return given
    if is_sandbox:
        return f"{given} {SANDBOX_CONTACT}"
    raise NoContact(
        f"{source.title} answers only who says whom to write to. Nothing was asked. Put your name and e-mail address "
        f"into connection {source.connection}, extra.user_agent, for example: Jane Doe jane@example.com"
    )


def _secrets(source: Source, login: str, password: str) -> tuple[str, ...]:
    """Every text that must not be seen, each once."""
    parts = [password, *_parts(source, password)] if password else []
    return tuple(dict.fromkeys([*parts, *([login] if source.login_header and login else [])]))


def fingerprint(key: str) -> str:
    """Return what may be shown of a key and is kept in tables: the first 12 hex digits of its SHA-256."""
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def _parts(source: Source, password: str) -> list[str]:
    if not source.several_keys:
        return [password]
    return [key for part in password.split(",") if (key := part.strip())]


def _keys(source: Source, password: str) -> Iterator[Key]:
    for key in dict.fromkeys(_parts(source, password)):
        yield Key(
            fingerprint(key),
            params={source.key_param: key} if source.key_param else {},
            headers={source.key_header: key} if source.key_header else {},
            in_path=key if source.key_in_path else "",
        )
