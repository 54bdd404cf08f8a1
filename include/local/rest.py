"""Airflow's REST API, as far as the launcher needs it.

Promises: it logs in once, again when the login is over, looks again where the api-server is in trouble, and says in a
sentence what it refused.
Never: a password or token appears in an address or a message.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import httpx

from include.local.failure import LocalFailure

# An api-server whose database is slow for a moment answers 500: a look is repeated, a change is not.
LOOKS_AGAIN, PAUSE_SECONDS = 5, 3.0


class Airflow:
    """One api-server, spoken to as one user."""

    def __init__(self, url: str, user: str, password: str, timeout: float = 120) -> None:
        # A small machine that starts a dozen tasks at once answers late, and is not down.
        self.url = url
        self._user = user
        self._password = password
        # No proxy: the api-server is on this machine, whatever the environment says about the rest of the
        # world.
        self._client = httpx.Client(base_url=url, timeout=timeout, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def health(self) -> dict[str, Any] | None:
        """What the api-server says about all processes, without a login; None while it does not answer."""
        try:
            answer = self._client.get("/api/v2/monitor/health", timeout=5)
            return answer.json() if answer.status_code == 200 else None
        except (httpx.HTTPError, ValueError):
            return None

    def _login(self) -> None:
        answer = self._client.post("/auth/token", json={"username": self._user, "password": self._password})
        if answer.status_code not in (200, 201):
            raise LocalFailure(
                f"Airflow refused the login of {self._user} (status {answer.status_code}). If passwords.json "
                "was changed, restart the stack: ./run down, ./run up."
            )
        self._client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def call(self, method: str, path: str, json: Any = None, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call `/api/v2` + `path` and return the JSON answer (empty for one without content).

        Raises:
            LocalFailure: the api-server cannot be reached, or refused; with its words.
        """
        try:
            if "Authorization" not in self._client.headers:
                self._login()
            answer = self._client.request(method, f"/api/v2{path}", json=json, params=params)
            if answer.status_code == 401:
                self._login()
                answer = self._client.request(method, f"/api/v2{path}", json=json, params=params)
            for _ in range(LOOKS_AGAIN if method == "GET" else 0):
                if answer.status_code < 500:
                    break
                time.sleep(PAUSE_SECONDS)
                answer = self._client.request(method, f"/api/v2{path}", params=params)
        except httpx.HTTPError as error:
            raise LocalFailure(f"Airflow at {self.url} cannot be reached ({error}). Is it up? ./run status") from error
        if answer.status_code >= 400:
            raise LocalFailure(f"Airflow refused {method} {path} ({answer.status_code}): {_words(answer)}")
        return answer.json() if answer.content else {}

    def find(self, path: str) -> dict[str, Any] | None:
        """Get `path`, or None when there is no such thing.

        Raises:
            LocalFailure: as `call`.
        """
        try:
            return self.call("GET", path)
        except LocalFailure as refused:
            if "(404)" in str(refused):
                return None
            raise

    def all(self, path: str, key: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Every entry of a listing, page after page.

        Raises:
            LocalFailure: as `call`.
        """
        found: list[dict[str, Any]] = []
        while True:
            page = self.call("GET", path, params={**(params or {}), "limit": 100, "offset": len(found)})
            found.extend(page[key])
            if not page[key] or len(found) >= page["total_entries"]:
                return found


def _words(answer: httpx.Response) -> str:
    try:
        detail = answer.json().get("detail", answer.text)
    except (ValueError, AttributeError):
        detail = answer.text
    return str(detail)[:300]
