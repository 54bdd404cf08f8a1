"""The warehouse's address for libpq, out of Airflow's connection.

Promises: of the connection's extras only those go along that libpq knows. Never: an address is logged, as it may hold
a password.
"""

from __future__ import annotations

from typing import Any

from include.settings import ConnectionSetting


def warehouse_url(found: Any) -> str:
    """Return the address that one of Airflow's connections stands for."""
    return ConnectionSetting(
        name="warehouse",
        conn_type="postgres",
        host=found.host or "127.0.0.1",
        port=found.port,
        login=found.login or "",
        password=found.password or "",
        schema=found.schema or "daybook",
        extra=found.extra_dejson,
    ).database_url
