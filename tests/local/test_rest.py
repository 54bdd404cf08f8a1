"""The REST client: one login, a sentence for each refusal."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import httpx
import pytest

from include.local import rest
from include.local.failure import LocalFailure
from include.local.rest import Airflow


def airflow(handler: Any) -> Airflow:
    made = Airflow("http://127.0.0.1:1", "admin", "the-password")
    made._client = httpx.Client(base_url=made.url, transport=httpx.MockTransport(handler))
    return made


def test_it_logs_in_once_and_again_when_the_login_is_over() -> None:
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        if request.url.path == "/auth/token":
            return httpx.Response(201, json={"access_token": f"token-{len(asked)}"})
        if request.headers["Authorization"] == "Bearer token-1" and len(asked) == 4:
            return httpx.Response(401)
        return httpx.Response(200, json={"ok": True})

    client = airflow(handler)
    for _ in range(3):
        assert client.call("GET", "/dags") == {"ok": True}
    dags = "/api/v2/dags"
    assert asked == ["/auth/token", dags, dags, dags, "/auth/token", dags]


def test_a_refused_login_is_told_without_the_password() -> None:
    with pytest.raises(LocalFailure, match="refused the login of admin") as refused:
        airflow(lambda request: httpx.Response(401)).call("GET", "/dags")
    assert "the-password" not in str(refused.value)


def test_a_refusal_carries_airflows_own_words() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            return httpx.Response(201, json={"access_token": "t"})
        return httpx.Response(400, json={"detail": "does not allow backfill runs"})

    with pytest.raises(LocalFailure, match=r"\(400\): does not allow backfill runs"):
        airflow(handler).call("POST", "/backfills")


def test_something_that_is_not_there_is_none() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            return httpx.Response(201, json={"access_token": "t"})
        return httpx.Response(404, json={"detail": "not found"})

    assert airflow(handler).find("/variables/x") is None


@pytest.mark.parametrize(("method", "asked"), [("GET", 3), ("POST", 1)])
def test_a_look_is_repeated_where_the_api_server_is_in_trouble_and_a_change_is_not(
    method: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "PAUSE_SECONDS", 0.0)
    statuses = [500, 503, 200]
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            return httpx.Response(201, json={"access_token": "t"})
        seen.append(request.method)
        return httpx.Response(statuses[len(seen) - 1], json={"detail": "Database error"})

    with nullcontext() if method == "GET" else pytest.raises(LocalFailure, match=r"\(500\): Database error"):
        airflow(handler).call(method, "/dags/x/dagRuns")
    assert len(seen) == asked


def test_a_long_listing_is_read_to_its_end() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            return httpx.Response(201, json={"access_token": "t"})
        offset = int(request.url.params["offset"])
        page = [{"n": n} for n in range(offset, min(offset + 100, 250))]
        return httpx.Response(200, json={"dags": page, "total_entries": 250})

    assert [one["n"] for one in airflow(handler).all("/dags", "dags")] == list(range(250))


def test_an_api_server_that_is_away_is_no_health_and_a_sentence() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    client = airflow(handler)
    assert client.health() is None
    with pytest.raises(LocalFailure, match="cannot be reached"):
        client.call("GET", "/dags")
