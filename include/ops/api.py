"""The Operations API: what Daybook knows, as JSON, inside Airflow's own web server.

Promises: every route needs a logged-in Airflow user (the app itself depends on one, so none can be forgotten);
everything is read from rows; times are ISO 8601 with their offset. Never: nothing is written here.
"""

from __future__ import annotations

from datetime import date, datetime
from functools import cache

from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from include.engine.db import query, transaction

PREFIX = "/daybook"


class StreamState(BaseModel):
    """The newest window of a stream, and what waits; names are camelCase outside."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    stream: str
    cycle_status: str | None
    window_start: datetime | None
    session_date: date | None
    failure_reason: str | None
    checkpoint: date | None
    pending: int
    quarantined: int


@cache
def create_app() -> FastAPI:
    """Return the app that the plugin mounts at `/daybook`."""
    app = FastAPI(
        title="Daybook Operations API",
        version="1",
        description="Streams, cycles and what waits. Every route needs an Airflow user.",
        dependencies=[Depends(get_user)],
    )

    @app.get("/v1/streams")
    def streams() -> list[StreamState]:
        """Return every stream with its newest window."""
        with transaction(_warehouse(), application="daybook api", statement_timeout=10) as connection:
            rows = connection.execute(query("status.streams")).fetchall()
        return [StreamState(**row) for row in rows]

    return app


def _warehouse() -> str:
    # Imported here: the provider costs every process that loads the plugin about half a second.
    from airflow.providers.postgres.hooks.postgres import PostgresHook

    uri: str = PostgresHook.get_connection("warehouse").get_uri()
    return uri.replace("postgres://", "postgresql://", 1)
