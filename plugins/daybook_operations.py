"""Mounts Daybook's Operations API in Airflow's web server; the only file here, as every process imports it."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin


class DaybookOperations(AirflowPlugin):
    """The Operations API under `/daybook`, for logged-in users only."""

    name = "daybook_operations"

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The app, made only where it is asked for: the other processes never load it."""
        from include.ops.api.app import PREFIX, mounted

        return [{"app": mounted(), "url_prefix": PREFIX, "name": "Daybook Operations API"}]
