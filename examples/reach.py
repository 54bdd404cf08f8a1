"""Where the data is: the published files, the API and the warehouse, by the settings of an installation.

Promises: nothing is written but the picture; what is missing (a connection, a file, a login, the drawing library) ends
the script with one sentence that says what to do, and exit code 1. Never: a secret is shown or put into an address.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include import settings

if TYPE_CHECKING:
    import pyarrow as pa

REPOSITORY = "daybook-private"


class Nothing(Exception):
    """There is nothing to show, and the text says why."""


def run(main: Callable[[], None]) -> None:
    """Run a script; what cannot be had is said in a sentence."""
    try:
        main()
    except (Nothing, settings.SettingError) as why:
        print(f"NOTHING – {why}", file=sys.stderr)
        sys.exit(1)


# --- files


class Files:
    """The dataset that an installation publishes to, read by range: of a file only the columns and rows asked for."""

    def __init__(self) -> None:
        from huggingface_hub import HfFileSystem

        hub = settings.connection("huggingface")
        endpoint = hub.host and f"{hub.host}{f':{hub.port}' if hub.port else ''}"
        self._system = HfFileSystem(endpoint=endpoint or None, token=hub.password)
        self._root = f"datasets/{hub.extra.get('namespace')}/{hub.extra.get('repository') or REPOSITORY}"

    def months(self, release: str) -> list[str]:
        """The months of which a release has a file, oldest first."""
        return sorted(Path(path).stem for path in self._asked(self._system.glob, f"{self._root}/{release}/*.parquet"))

    def read(self, path: str, columns: Sequence[str], filters: Sequence[tuple[str, str, Any]]) -> pa.Table:
        """Read columns of one file, and of its rows those that the filters let through."""
        import pyarrow.parquet as pq

        return self._asked(
            lambda name: pq.read_table(name, columns=list(columns), filters=list(filters), filesystem=self._system),
            f"{self._root}/{path}",
        )

    def _asked(self, ask: Callable[[str], Any], path: str) -> Any:
        from huggingface_hub.errors import HfHubHTTPError

        try:
            return ask(path)
        except FileNotFoundError:
            raise Nothing(f"{path} is not on the Hub. Collect it first; the DAG publish says what waits.") from None
        except HfHubHTTPError as refused:
            status = refused.response.status_code
            words = f"The Hub answered HTTP {status} to {path}. Look at the token of connection huggingface."
            raise Nothing(words) from None


# --- the API


def api(path: str, **asked: str) -> Any:
    """Ask the API of the installation; with a login where its settings name one, as anybody where they do not."""
    import httpx

    found = settings.load()
    if found.api_url is None:
        raise Nothing("Nobody says where the API is. Set DAYBOOK_API_URL, or go through ./run python.")
    with httpx.Client(base_url=found.api_url, timeout=30, trust_env=False) as client:
        try:
            if found.api_passwords is not None:
                client.headers["Authorization"] = f"Bearer {_login(client, found)}"
            answer = client.get(f"/daybook/v1{path}", params=asked)
        except httpx.HTTPError as error:
            raise Nothing(f"The API at {found.api_url} does not answer ({type(error).__name__}). Is it up?") from None
    if answer.status_code in (401, 403):
        raise Nothing("The API wants a login: name a file of users and passwords in DAYBOOK_API_PASSWORDS.")
    if answer.status_code == 429:
        wait = answer.headers.get("Retry-After", "60")
        raise Nothing(f"The API takes no more requests from here for {wait} s. Ask again then.")
    if answer.is_error:
        raise Nothing(f"The API answered HTTP {answer.status_code} to {path}: {answer.json().get('detail')}")
    return answer.json()


def _login(client: Any, found: settings.Settings) -> str:
    try:
        password = json.loads(found.api_passwords.read_text(encoding="utf-8"))[found.api_user]  # type: ignore[union-attr]
    except (OSError, ValueError, KeyError) as error:
        raise Nothing(f"{found.api_passwords} has no password of {found.api_user} ({type(error).__name__}).") from None
    answer = client.post("/auth/token", json={"username": found.api_user, "password": password})
    if answer.is_error:
        raise Nothing(f"Airflow refused the login of {found.api_user} with HTTP {answer.status_code}.")
    return str(answer.json()["access_token"])


# --- the warehouse


def rows(question: str, **values: Any) -> list[dict[str, Any]]:
    """Ask the warehouse, for reading alone and for a minute at most."""
    import psycopg
    from psycopg.rows import dict_row

    url = settings.connection("warehouse").database_url
    options = "-c default_transaction_read_only=on -c statement_timeout=60s -c timezone=UTC"
    try:
        with psycopg.connect(url, connect_timeout=10, options=options, row_factory=dict_row) as connection:
            return connection.execute(question, values).fetchall()  # type: ignore[arg-type]
    except psycopg.OperationalError as error:
        raise Nothing(f"The warehouse gave no answer ({type(error).__name__}). Is it up?") from None


# --- a picture


def figure(title: str) -> Any:
    """Begin a picture that needs no screen; gives matplotlib's figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise Nothing(
            "The numbers are above; to draw them install matplotlib: "
            ".venv/bin/pip install --no-deps -r requirements-examples.txt"
        ) from None
    made = Figure(figsize=(10, 6), layout="constrained")
    made.suptitle(title)
    return made


def save(made: Any, path: Path) -> None:
    """Write a picture as its name says (.png, .svg, .pdf)."""
    made.savefig(path)
    print(f"drawn: {path}")
