"""The Operations API: what Daybook knows, as JSON, inside Airflow's own web server.

Promises: every route needs a logged-in Airflow user (the app itself depends on one, so none can be forgotten);
everything is read from rows; times are ISO 8601 with their offset. Never: nothing is written here.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI
from pydantic import BaseModel

from include.engine.db import query, transaction

PREFIX = "/daybook"


class StreamState(BaseModel):
    """The newest window of a stream, and what waits."""

    stream: str
    cycleStatus: str | None
    windowStart: datetime | None
    sessionDate: str | None
    failureReason: str | None
    checkpoint: str | None
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
        return [_state(row) for row in rows]

    return app


def _state(row: dict[str, Any]) -> StreamState:
    return StreamState(
        stream=row["stream"],
        cycleStatus=row["cycle_status"],
        windowStart=row["window_start"],
        sessionDate=str(row["session_date"]) if row["session_date"] else None,
        failureReason=row["failure_reason"],
        checkpoint=str(row["checkpoint"]) if row["checkpoint"] else None,
        pending=row["pending"],
        quarantined=row["quarantined"],
    )


def _warehouse() -> str:
    # Imported here: the provider costs every process that loads the plugin about half a second.
    from airflow.providers.postgres.hooks.postgres import PostgresHook

    uri: str = PostgresHook.get_connection("warehouse").get_uri()
    return uri.replace("postgres://", "postgresql://", 1)
