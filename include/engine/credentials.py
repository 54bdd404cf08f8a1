"""From a connection's fields to the `Credentials` that the engine sends with.

Promises: one rule for Airflow and for the command line; every secret field is known as a secret, so that it is
masked wherever an upstream echoes it. Never: nothing is read from the environment or the network here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.contract import Credentials, Source

# Said to every upstream that is not told another contact: honest, and with a place to complain to.
DEFAULT_USER_AGENT = "Daybook (open-source market data collector)"


def build(
    source: Source,
    *,
    host: str,
    password: str = "",
    schema: str = "",
    port: int | None = None,
    extra: Mapping[str, Any] | None = None,
    sandbox_url: str | None = None,
) -> Credentials:
    """Return how to reach a source.

    Args:
        host: with or without a scheme, as people write it in a connection; empty means the source's own.
        password: the key, where the upstream wants one; as a query parameter where the source says which.
        schema: http or https, where the host does not say.
        extra: `user_agent` names a contact for upstreams that ask for one.
    """
    base = host.rstrip("/")
    if base and "://" not in base:
        base = f"{schema or 'https'}://{base}"
    if base and port:
        base = f"{base}:{port}"
    return Credentials(
        base_url=base or source.hosts[0],
        default_host=source.hosts[0],
        user_agent=str((extra or {}).get("user_agent") or source.user_agent or DEFAULT_USER_AGENT),
        params={source.key_param: password} if source.key_param and password else {},
        secrets=(password,) if password else (),
        sandbox_url=sandbox_url,
    )
