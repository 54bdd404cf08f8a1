"""Daybook's settings: the only reader of the process environment.

Promises: every setting has one name, a default that works on a laptop, and a sentence; a value that cannot be
used is refused with the name of its variable. Never: no secret has a default, and nothing is written.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent


class SettingError(Exception):
    """A setting has a value that cannot be used; the text names the variable and what would do."""


@dataclass(frozen=True)
class Settings:
    """What the environment says, read once.

    `state` is where this installation keeps its own files; `raw_root` and `outbox_root` are a local path or
    any fsspec URL; `sandbox_url` redirects all upstream traffic when set; `database_url` is a PostgreSQL
    brought by the user in place of the embedded one.
    """

    state: Path
    raw_root: str
    outbox_root: str
    sandbox_url: str | None
    database_url: str | None
    ai_concurrency: int
    app_dir: Path = ROOT


def _integer(name: str, default: int) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise SettingError(f"{name} must be a whole number, not {text!r}.") from None


def load() -> Settings:
    """Read the settings of this process.

    Raises:
        SettingError: a variable holds something that cannot be used.
    """
    state = Path(os.environ.get("DAYBOOK_STATE") or ROOT / ".daybook").absolute()
    sandbox = (os.environ.get("DAYBOOK_SANDBOX_URL") or "").rstrip("/") or None
    if sandbox is not None and urlsplit(sandbox).scheme not in ("http", "https"):
        raise SettingError(f"DAYBOOK_SANDBOX_URL must be an http address, not {sandbox!r}.")
    concurrency = _integer("AI_CONCURRENCY", 60)
    return Settings(
        state=state,
        raw_root=os.environ.get("DAYBOOK_RAW_ROOT") or str(state / "raw"),
        outbox_root=os.environ.get("DAYBOOK_OUTBOX_ROOT") or str(state / "outbox"),
        sandbox_url=sandbox,
        database_url=os.environ.get("DATABASE_URL") or None,
        ai_concurrency=concurrency if concurrency > 0 else 60,
    )


def connection_text(connection: str) -> str | None:
    """The text of `AIRFLOW_CONN_<CONNECTION>` (a URI or JSON), or None where it is not set."""
    return os.environ.get(f"AIRFLOW_CONN_{connection.upper()}") or None


def environment(**extra: str) -> dict[str, str]:
    """This process's environment with `extra` added: what a child process is started with."""
    return {**os.environ, **extra}
