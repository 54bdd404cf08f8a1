"""Daybook's settings: the only reader of the process environment.

Promises: every setting has one name, a default that works on a laptop, and a sentence; a value that cannot be
used is refused with the name of its variable. Never: no secret has a default, and nothing is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from include.declared_settings import default

ROOT = Path(__file__).resolve().parent.parent
# The extras of a database connection that libpq knows; others are for Airflow's own hook, and libpq would refuse the
# whole address because of them.
_LIBPQ = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "target_session_attrs")


class SettingError(Exception):
    """A setting has a value that cannot be used; the text names the variable and what would do."""


@dataclass(frozen=True)
class Settings:
    """What the environment says, read once.

    `state` is where this installation keeps its own files; `raw_root`, `outbox_root` and `files_root` are a local path
    or any fsspec URL, `cache_root` the folder of the copies that `cache` keeps; `sandbox_url` redirects all upstream
    traffic when set; `database_url` is a PostgreSQL brought by the user in place of the embedded one. `lanes` is
    how many tasks of a backfill or replay work side by side. `snapshot_grace` is how long after 09:00 in Seoul a
    snapshot that nobody took is marked as missed. `keep_runs` and `keep_alerts` are how long Airflow's own runs and
    delivered alerts are kept, None for ever. `api_url`, `api_user` and `api_passwords` (a JSON file of users and
    passwords) are for the notes that tasks write; without them there are no notes.
    """

    state: Path
    raw_root: str
    outbox_root: str
    cache_root: str
    files_root: str
    sandbox_url: str | None
    database_url: str | None
    ai_concurrency: int
    app_dir: Path = ROOT
    lanes: int = 4
    snapshot_grace: timedelta = timedelta(minutes=5)
    keep_runs: timedelta | None = timedelta(days=30)
    keep_alerts: timedelta | None = timedelta(days=30)
    api_url: str | None = None
    api_user: str = default("DAYBOOK_API_USER")
    api_passwords: Path | None = None


def _integer(values: Mapping[str, str], name: str) -> int:
    text = values.get(name, "").strip() or default(name)
    try:
        return int(text)
    except ValueError:
        raise SettingError(f"{name} must be a whole number, not {text!r}.") from None


def _days(values: Mapping[str, str], name: str) -> timedelta | None:
    days = _integer(values, name)
    if not 0 <= days <= 36_500:
        raise SettingError(f"{name} must be a number of days, 0 to keep everything, not {days}.")
    return timedelta(days=days) if days else None


def _concurrency(values: Mapping[str, str]) -> int:
    """How many analyses may be under way at once; nothing, nought and less mean the default."""
    wanted = _integer(values, "AI_CONCURRENCY")
    return wanted if wanted > 0 else int(default("AI_CONCURRENCY"))


def load(values: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of this process, or those that a process with other variables would find.

    Args:
        values: the variables; those of this process where None.

    Raises:
        SettingError: a variable holds something that cannot be used.
    """
    values = os.environ if values is None else values
    state = Path(values.get("DAYBOOK_STATE") or ROOT / ".daybook").absolute()
    sandbox = (values.get("DAYBOOK_SANDBOX_URL") or "").rstrip("/") or None
    if sandbox is not None and urlsplit(sandbox).scheme not in ("http", "https"):
        raise SettingError(f"DAYBOOK_SANDBOX_URL must be an http address, not {sandbox!r}.")
    lanes = _integer(values, "DAYBOOK_LANES")
    if not 1 <= lanes <= 64:
        raise SettingError(f"DAYBOOK_LANES must be between 1 and 64, not {lanes}.")
    grace = _integer(values, "DAYBOOK_SNAPSHOT_GRACE")
    if not 1 <= grace <= 3_600:
        raise SettingError(f"DAYBOOK_SNAPSHOT_GRACE must be between 1 and 3600 seconds, not {grace}.")
    passwords = values.get("DAYBOOK_API_PASSWORDS") or values.get("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE")
    return Settings(
        state=state,
        raw_root=values.get("DAYBOOK_RAW_ROOT") or str(state / "raw"),
        outbox_root=values.get("DAYBOOK_OUTBOX_ROOT") or str(state / "outbox"),
        cache_root=values.get("DAYBOOK_CACHE_ROOT") or str(state / "cache"),
        files_root=values.get("DAYBOOK_FILES_ROOT") or str(state / "files"),
        sandbox_url=sandbox,
        database_url=values.get("DATABASE_URL") or None,
        ai_concurrency=_concurrency(values),
        lanes=lanes,
        snapshot_grace=timedelta(seconds=grace),
        keep_runs=_days(values, "DAYBOOK_KEEP_RUNS"),
        keep_alerts=_days(values, "DAYBOOK_KEEP_ALERTS"),
        api_url=(values.get("DAYBOOK_API_URL") or values.get("AIRFLOW__API__BASE_URL") or "").rstrip("/") or None,
        api_user=values.get("DAYBOOK_API_USER") or default("DAYBOOK_API_USER"),
        api_passwords=Path(passwords) if passwords else None,
    )


def telemetry(values: Mapping[str, str]) -> dict[str, str]:
    """Return what makes Airflow send metrics and traces to the collector of DAYBOOK_OTEL_ENDPOINT; nothing without it.

    Airflow's own switches turn both on, and OpenTelemetry's own variables say where to. Its traces go by gRPC unless
    the exporter is named, and its metrics by HTTP; here both go by HTTP.

    Raises:
        SettingError: it is no http address, or carries a login, which would be shown.
    """
    endpoint = values.get("DAYBOOK_OTEL_ENDPOINT", "").strip().rstrip("/")
    if not endpoint:
        return {}
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingError("DAYBOOK_OTEL_ENDPOINT must be an http address like http://127.0.0.1:4318.")
    if "@" in parts.netloc or parts.query:
        raise SettingError("DAYBOOK_OTEL_ENDPOINT must hold no login: put it into OTEL_EXPORTER_OTLP_HEADERS.")
    return {
        "AIRFLOW__METRICS__OTEL_ON": "True",
        "AIRFLOW__TRACES__OTEL_ON": "True",
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_SERVICE_NAME": "daybook",
        "OTEL_TRACES_EXPORTER": "otlp_proto_http",
    }


@dataclass(frozen=True)
class ConnectionSetting:
    """One of Airflow's connections as the environment gives it, for a process without Airflow.

    `host` carries the scheme where the text has one; `extra` is the decoded JSON of the same name.
    """

    name: str
    conn_type: str
    host: str
    port: int | None
    login: str
    password: str
    schema: str
    extra: Mapping[str, Any]

    def __repr__(self) -> str:
        """Never show a login or password."""
        return f"ConnectionSetting({self.name!r}, {self.conn_type!r}, {self.host!r})"

    @property
    def database_url(self) -> str:
        """The libpq address of a database connection; never logged, as it may hold a password."""
        user = quote(self.login, safe="") + (f":{quote(self.password, safe='')}" if self.password else "")
        options = {name: self.extra[name] for name in _LIBPQ if self.extra.get(name)}
        where = f"{user + '@' if user else ''}{self.host}{f':{self.port}' if self.port else ''}"
        return f"postgresql://{where}/{quote(self.schema)}" + (f"?{urlencode(options)}" if options else "")


def connection(name: str) -> ConnectionSetting:
    """Return the connection `AIRFLOW_CONN_<NAME>`, written as JSON or as a URI like Airflow's own.

    Raises:
        SettingError: it is not set, or cannot be read; the text never repeats it, as it may hold a password.
    """
    variable = f"AIRFLOW_CONN_{name.upper()}"
    text = connection_text(name)
    if text is None:
        raise SettingError(f"Connection {name} is missing: set {variable} (a URI or JSON, like Airflow's).")
    if text.lstrip().startswith("{"):
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise SettingError(f"{variable} is not valid JSON: {error.msg} at character {error.pos}.") from None
        extra = data.get("extra") or {}
        return ConnectionSetting(
            name=name,
            conn_type=data.get("conn_type") or "",
            host=data.get("host") or "",
            port=int(data["port"]) if data.get("port") else None,
            login=data.get("login") or "",
            password=data.get("password") or "",
            schema=data.get("schema") or "",
            extra=json.loads(extra) if isinstance(extra, str) else extra,
        )
    parts = urlsplit(text)
    if not parts.scheme:
        raise SettingError(f"{variable} is neither JSON nor a URI.")
    return ConnectionSetting(
        name=name,
        conn_type=parts.scheme,
        host=unquote(parts.hostname or ""),
        port=parts.port,
        login=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        schema=unquote(parts.path.removeprefix("/")),
        extra=dict(parse_qsl(parts.query)),
    )


def behind_pooler() -> bool:
    """Say whether the warehouse is reached through a pooler that works by transaction, such as PgBouncer.

    Raises:
        SettingError: DAYBOOK_POOLER is neither empty nor `transaction`.
    """
    text = os.environ.get("DAYBOOK_POOLER", "").strip().lower()
    if text not in ("", "transaction"):
        raise SettingError(f"DAYBOOK_POOLER must be empty or transaction, not {text!r}.")
    return text == "transaction"


FRED_GROUPS, ECOS_GROUPS = "DAYBOOK_FRED_GROUPS", "DAYBOOK_ECOS_GROUPS"


def groups_of(setting: str) -> tuple[str, ...]:
    """The groups of a list of series that are collected, by the setting for that list; empty: all of them."""
    return tuple(filter(None, (name.strip() for name in os.environ.get(setting, "").split(","))))


def monitor_minutes() -> int:
    """How often the list of disclosures is looked at, in MONITOR_INTERVAL.

    Raises:
        SettingError: it is no number of minutes that divides an hour.
    """
    minutes = _integer(os.environ, "MONITOR_INTERVAL")
    if not 1 <= minutes <= 60 or 60 % minutes:
        raise SettingError(f"MONITOR_INTERVAL must be a number of minutes that divides 60, e.g. 5, not {minutes}.")
    return minutes


def _flag(name: str) -> bool:
    text = os.environ.get(name, "").strip().lower() or default(name)
    if text not in ("true", "false", "1", "0", "yes", "no", "on", "off"):
        raise SettingError(f"{name} must be true or false, not {text!r}.")
    return text in ("true", "1", "yes", "on")


def monitor_is_on() -> bool:
    """Whether the list of disclosures is looked at by itself, in DISCLOSURE_MONITOR_AUTO_START.

    Raises:
        SettingError: it is neither true nor false.
    """
    return _flag("DISCLOSURE_MONITOR_AUTO_START")


@dataclass(frozen=True)
class Analysis:
    """How disclosures are analysed.

    `concurrency` is how many may be under way at once. `idle` is how long a worker with nothing to do waits, `poll` how
    long lies between two looks at what the model has, `timeout` how long one request to it may take. A filing is
    analysed by itself where it was found at most `newest_days` after its receipt. `own_ids`: the model takes our
    names for its answers, as vLLM does.
    """

    concurrency: int
    idle: timedelta
    poll: timedelta
    url: str
    model: str
    timeout: timedelta
    newest_days: int
    own_ids: bool
    access_id: str = field(default="", repr=False)
    access_secret: str = field(default="", repr=False)


@dataclass(frozen=True)
class Serving:
    """How readers are served.

    `is_public`: filings need no login, and `per_minute` is how often an address may ask then. `quota` is how many
    analyses a user may open a day, `free_length` the characters up to which a filing's is free. Without `admin_key`
    nobody is let in by a key.
    """

    is_public: bool = True
    per_minute: int = 120
    quota: int = 20
    free_length: int = 500
    admin_key: str = field(default="", repr=False)


def serving() -> Serving:
    """Return how readers are served.

    Raises:
        SettingError: a setting cannot be used.
    """

    def number(name: str, least: int) -> int:
        value = _integer(os.environ, name)
        if value < least:
            raise SettingError(f"{name} must be at least {least}, not {value}.")
        return value

    key = os.environ.get("DAYBOOK_ADMIN_KEY", "").strip()
    if key and len(key) < 16:
        raise SettingError("DAYBOOK_ADMIN_KEY must have 16 characters or more.")
    return Serving(
        _flag("DAYBOOK_PUBLIC_DISCLOSURES"),
        number("DAYBOOK_PUBLIC_PER_MINUTE", 1),
        number("DAYBOOK_REVEAL_QUOTA", 0),
        number("DAYBOOK_REVEAL_FREE_LENGTH", 0),
        key,
    )


def analysis_is_on() -> bool:
    """Whether what comes in is analysed by itself, in ANALYSIS_SCHEDULER_AUTO_START; not unless somebody says so.

    Raises:
        SettingError: it is neither true nor false.
    """
    return _flag("ANALYSIS_SCHEDULER_AUTO_START")


def analysis() -> Analysis:
    """Return how disclosures are analysed.

    Raises:
        SettingError: a setting cannot be used.
    """

    def span(name: str, most: int) -> timedelta:
        value = _integer(os.environ, name)
        if not 50 <= value <= most:
            raise SettingError(f"{name} must be between 50 and {most} milliseconds, not {value}.")
        return timedelta(milliseconds=value)

    days = _integer(os.environ, "ANALYSIS_NEWEST_DAYS")
    if not 0 <= days <= 36_500:
        raise SettingError(f"ANALYSIS_NEWEST_DAYS must be a number of days, not {days}.")
    return Analysis(
        concurrency=_concurrency(os.environ),
        idle=span("SCHEDULER_IDLE_POLL_MS", 60_000),
        poll=span("LLM_POLL_INTERVAL_MS", 60_000),
        url=(os.environ.get("LLM_BASE_URL") or "").rstrip("/"),
        model=os.environ.get("LLM_MODEL") or "",
        timeout=span("LLM_TIMEOUT_MS", 90_000),
        newest_days=days,
        own_ids=_flag("LLM_TAKES_IDS"),
        access_id=os.environ.get("CF_ACCESS_CLIENT_ID") or "",
        access_secret=os.environ.get("CF_ACCESS_CLIENT_SECRET") or "",
    )


def kept_still() -> tuple[str, ...]:
    """The streams that a setting freezes from the start."""
    return () if monitor_is_on() else ("dart.disclosures",)


def connection_text(connection: str) -> str | None:
    """The text of `AIRFLOW_CONN_<CONNECTION>` (a URI or JSON), or None where it is not set.

    Where only keys are set, as `DART_API_KEYS` with commas between them, they make a connection to the usual host.
    """
    name = connection.upper()
    return os.environ.get(f"AIRFLOW_CONN_{name}") or connection_of_keys(os.environ.get(f"{name}_API_KEYS"))


def connection_of_keys(keys: str | None) -> str | None:
    """Return the text of a connection that has nothing but keys, None where there are none."""
    return json.dumps({"conn_type": "http", "password": keys.strip()}) if keys and keys.strip() else None


def environment(**extra: str) -> dict[str, str]:
    """This process's environment with `extra` added: what a child process is started with."""
    return {**os.environ, **extra}


@dataclass(frozen=True)
class SyncSettings:
    """Which of DART's reports are kept, how far back they are looked for, and how new companies are taken in."""

    categories: tuple[str, ...]
    lookback: int
    mode: str
    new_limit: int
    new_categories: tuple[str, ...]


def sync(known: Sequence[str], most_lookback: int) -> SyncSettings:
    """Read SYNC_CATEGORIES, SYNC_LOOKBACK_DAYS, SYNC_MODE, NEW_STOCK_LIMIT and NEW_STOCK_CATEGORIES.

    Args:
        known: the categories that there are; where a setting names none, all of them.
        most_lookback: the most days back.

    Raises:
        SettingError: a value cannot be used.
    """
    categories = _categories("SYNC_CATEGORIES", known)
    lookback = _integer(os.environ, "SYNC_LOOKBACK_DAYS")
    if not 1 <= lookback <= most_lookback:
        raise SettingError(f"SYNC_LOOKBACK_DAYS must be between 1 and {most_lookback}, not {lookback}.")
    mode = os.environ.get("SYNC_MODE", "").strip().lower() or default("SYNC_MODE")
    if mode not in ("recent", "full"):
        raise SettingError(f"SYNC_MODE must be recent or full, not {mode!r}.")
    limit = _integer(os.environ, "NEW_STOCK_LIMIT")
    if not 0 <= limit <= 10_000:
        raise SettingError(f"NEW_STOCK_LIMIT must be between 0 and 10000, not {limit}.")
    return SyncSettings(categories, lookback, mode, limit, _categories("NEW_STOCK_CATEGORIES", categories))


def _categories(setting: str, known: Sequence[str]) -> tuple[str, ...]:
    named = groups_of(setting)
    for name in named:
        if name not in known:
            raise SettingError(f"{setting} names {name!r}; there are {', '.join(known)}.")
    return named or tuple(known)
