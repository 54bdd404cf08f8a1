"""Notes on task and run, written over Airflow's REST API, so that the grid says what happened.

Promises: best effort within seconds. A note that cannot be written costs one line in the log. Never: a task fails
because of a note, and the login is in no message.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from include import settings
from include.operators.endings import NOTE_LENGTH

if TYPE_CHECKING:
    import httpx

SECONDS = 4.0

log = logging.getLogger(__name__)


def task(context: Mapping[str, Any], words: str) -> None:
    """Put a note on the task that runs."""
    ti = context["ti"]
    path = f"{_run_path(ti)}/taskInstances/{quote(ti.task_id, safe='')}"
    if ti.map_index is not None and ti.map_index >= 0:
        path += f"/{ti.map_index}"
    _write(path, words)


def run(context: Mapping[str, Any], words: str) -> None:
    """Put a note on the run that the task belongs to."""
    _write(_run_path(context["ti"]), words)


def _run_path(ti: Any) -> str:
    return f"/dags/{quote(ti.dag_id, safe='')}/dagRuns/{quote(ti.run_id, safe='')}"


@contextmanager
def client(found: settings.Settings, seconds: float) -> Iterator[httpx.Client | None]:
    """Log in to Airflow's REST API and give a client of it; None where nobody said how it is reached.

    Raises:
        httpx.HTTPError: Airflow does not answer, or refuses the login.
    """
    import httpx

    if found.api_url is None or found.api_passwords is None:
        yield None
        return
    token = _login(found.api_url, found.api_user, found.api_passwords)
    with httpx.Client(
        base_url=f"{found.api_url}/api/v2",
        headers={"Authorization": f"Bearer {token}"},
        timeout=seconds,
        trust_env=False,
    ) as opened:
        yield opened


def _write(path: str, words: str) -> None:
    import httpx

    try:
        with client(settings.load(), SECONDS) as opened:
            if opened is None:
                return
            answer = opened.patch(path, params={"update_mask": "note"}, json={"note": words[:NOTE_LENGTH]})
            answer.raise_for_status()
    except (httpx.HTTPError, OSError, ValueError, KeyError) as error:
        _login.cache_clear()
        log.warning("The note could not be written (%s); the outcome stands here and in the XCom.", _short(error))


@cache
def _login(url: str, user: str, passwords: Path) -> str:
    """Log in once in this process and return the token."""
    import httpx

    password = json.loads(passwords.read_text(encoding="utf-8"))[user]
    answer = httpx.post(
        f"{url}/auth/token", json={"username": user, "password": password}, timeout=SECONDS, trust_env=False
    )
    answer.raise_for_status()
    return str(answer.json()["access_token"])


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:200]
