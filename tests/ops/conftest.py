"""The Operations API as it is mounted: below another app, with Airflow's own logins, over a real warehouse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from include.engine import snapshot
from include.ops.paused import Paused
from tests.engine.seoul import Seoul, kst, opened

HOST = "http://127.0.0.1:8080"


@dataclass
class Api:
    """The app, and what callers of it bring along."""

    app: FastAPI
    client: TestClient
    token: Callable[[str], str]
    paused: list[Paused] = field(default_factory=list)

    def headers(self, who: str | None) -> dict[str, str]:
        """What a script of that user sends; nothing for nobody."""
        return {"authorization": f"Bearer {self.token(who)}"} if who else {}

    def get(self, path: str, who: str | None = "viewer", **params: Any) -> Any:
        """Ask as somebody."""
        return self.client.get(f"/daybook/v1{path}", params=params, headers=self.headers(who))

    def read(self, path: str, **params: Any) -> Any:
        """The answer that a viewer gets."""
        answer = self.get(path, **params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def send(self, method: str, path: str, body: Any, who: str | None = "admin", **headers: str) -> Any:
        """Change something as somebody."""
        return self.client.request(method, f"/daybook/v1{path}", json=body, headers={**self.headers(who), **headers})

    def pages(self, path: str, **params: Any) -> list[list[Any]]:
        """Every page of a list."""
        found, cursor = [], None
        while True:
            page = self.read(path, **params, **({"cursor": cursor} if cursor else {}))
            found.append(page["items"])
            cursor = page["nextCursor"]
            if cursor is None:
                return found


@pytest.fixture(scope="session")
def token() -> Callable[[str], str]:
    """Gives a token that Airflow itself signed, for `admin`, `user` or `viewer`."""
    from airflow.api_fastapi.app import create_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.utils.db import initdb

    # A token is looked up among those that were revoked.
    initdb()
    manager = create_auth_manager()

    def sign(who: str) -> str:
        return str(manager.generate_jwt(SimpleAuthManagerUser(username=who, role=who.upper())))

    return sign


def mounted(app: FastAPI) -> Starlette:
    """The app where Airflow mounts it."""
    return Starlette(routes=[Mount("/daybook", app)])


@pytest.fixture
def api(database: str, token: Callable[[str], str]) -> Iterator[Api]:
    """The API over the test's own warehouse."""
    from include.ops.api.app import create_app

    found: list[Paused] = []
    app = create_app(lambda: database, lambda: found)
    with TestClient(mounted(app), base_url=HOST, raise_server_exceptions=False) as client:
        yield Api(app, client, token, found)
    app.state.warehouse.close()


@pytest.fixture
def seoul(database: str) -> Iterator[Seoul]:
    """A Wednesday morning in Seoul, before the cutoff, with four streams in service for a fortnight."""
    with opened(database, kst(hour=8)) as here:
        snapshot.mark_missed(database)
        yield here
