"""Every setting and connection that Daybook reads, declared once: name, what holds where it is not set, and a sentence.

Promises: `include.settings` takes its defaults from here, and `docs/settings.md` is made from here. Never: the
environment is read, and no secret has a default.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """One variable of the environment.

    `default` is what holds where it is not set, in words where `is_words`, empty where nothing does. `group` is what it
    belongs to.
    """

    name: str
    default: str
    text: str
    group: str
    is_words: bool = False


@dataclass(frozen=True)
class Service:
    """A connection that is no source's: what it is for, and what it holds."""

    name: str
    text: str


_PLACES, _WORK, _KOREA, _ANALYSIS, _READERS = "Places", "Work", "DART and lists", "Analysis", "Readers"

SETTINGS: tuple[Setting, ...] = (
    Setting("DAYBOOK_STATE", "`.daybook` in the checkout", "Where this installation keeps its files", _PLACES, True),
    Setting("DAYBOOK_RAW_ROOT", "`raw` in the state", "The raw store: a path or an fsspec URL (s3://…)", _PLACES, True),
    Setting("DAYBOOK_OUTBOX_ROOT", "`outbox` in the state", "Files that wait for the Hub: path or URL", _PLACES, True),
    Setting("DAYBOOK_FILES_ROOT", "`files` in the state", "Files that streams make: path or URL", _PLACES, True),
    Setting("DAYBOOK_CACHE_ROOT", "`cache` in the state", "Copies that `./run cache` keeps: a path", _PLACES, True),
    Setting("DATABASE_URL", "the embedded PostgreSQL", "A PostgreSQL of your own, 15 or later", _PLACES, True),
    Setting("DAYBOOK_POOLER", "", "`transaction` where a pooler hands connections out by transaction", _PLACES),
    Setting("DAYBOOK_SANDBOX_URL", "", "Where stand-ins answer for all upstreams; the demo sets it", _PLACES),
    Setting("DAYBOOK_LANES", "4", "Tasks of one backfill or replay side by side, 1 to 64", _WORK),
    Setting("DAYBOOK_SNAPSHOT_GRACE", "300", "Seconds after 09:00 until an untaken snapshot is MISSED, to 3600", _WORK),
    Setting("DAYBOOK_KEEP_RUNS", "30", "Days that Airflow's own runs are kept; 0: all", _WORK),
    Setting("DAYBOOK_KEEP_ALERTS", "30", "Days that delivered alerts are kept; 0: all", _WORK),
    Setting("DAYBOOK_OTEL_ENDPOINT", "", "Collector of OTLP over HTTP, for Airflow's metrics and traces", _WORK),
    Setting("DAYBOOK_API_URL", "Airflow's own base address", "Airflow's API, for notes of tasks", _WORK, True),
    Setting("DAYBOOK_API_USER", "admin", "User for these notes", _WORK),
    Setting("DAYBOOK_API_PASSWORDS", "Airflow's own file", "JSON file of users and passwords for them", _WORK, True),
    Setting("DAYBOOK_FRED_GROUPS", "all", "Groups of `config/fred_series.yaml` that are collected", _KOREA, True),
    Setting("DAYBOOK_ECOS_GROUPS", "all", "Groups of `config/ecos_series.yaml` that are collected", _KOREA, True),
    Setting("MONITOR_INTERVAL", "5", "Minutes between two looks at DART's list; divides 60", _KOREA),
    Setting("DISCLOSURE_MONITOR_AUTO_START", "true", "Whether that list is looked at by itself", _KOREA),
    Setting("SYNC_CATEGORIES", "all", "Categories of DART's reports that are kept", _KOREA, True),
    Setting("SYNC_LOOKBACK_DAYS", "60", "Days back that reports are looked for in the list", _KOREA),
    Setting("SYNC_MODE", "recent", "What `./run cli sync` does: recent or full", _KOREA),
    Setting("NEW_STOCK_LIMIT", "50", "New companies that one run of dart_new_stocks takes in", _KOREA),
    Setting("NEW_STOCK_CATEGORIES", "those of SYNC_CATEGORIES", "For which categories it does", _KOREA, True),
    Setting("ANALYSIS_SCHEDULER_AUTO_START", "false", "Whether what comes in is analysed by itself", _ANALYSIS),
    Setting("LLM_BASE_URL", "connection `llm`", "Address of the language model's API", _ANALYSIS, True),
    Setting("LLM_MODEL", "connection `llm`", "Name of the model", _ANALYSIS, True),
    Setting("LLM_TAKES_IDS", "true", "Whether the backend takes our names for its answers, as vLLM does", _ANALYSIS),
    Setting("LLM_TIMEOUT_MS", "30000", "How long one request to the model may take, to 90000", _ANALYSIS),
    Setting("LLM_POLL_INTERVAL_MS", "3000", "Between two looks at what the model has, 50 to 60000", _ANALYSIS),
    Setting("SCHEDULER_IDLE_POLL_MS", "2000", "How long a worker with nothing to do waits, 50 to 60000", _ANALYSIS),
    Setting("AI_CONCURRENCY", "60", "Analyses under way at once; nought and less mean the default", _ANALYSIS),
    Setting("ANALYSIS_NEWEST_DAYS", "7", "Days after receipt up to which a filing is read by itself", _ANALYSIS),
    Setting("CF_ACCESS_CLIENT_ID", "", "Cloudflare Access before the model: the id", _ANALYSIS),
    Setting("CF_ACCESS_CLIENT_SECRET", "", "Cloudflare Access before the model: the secret", _ANALYSIS),
    Setting("DAYBOOK_PUBLIC_DISCLOSURES", "true", "Whether disclosures are read without a login", _READERS),
    Setting("DAYBOOK_PUBLIC_PER_MINUTE", "120", "Requests a minute from one address without a login", _READERS),
    Setting("DAYBOOK_REVEAL_QUOTA", "20", "Analyses that a user may open in a day", _READERS),
    Setting("DAYBOOK_REVEAL_FREE_LENGTH", "500", "Characters of a filing up to which its analysis is free", _READERS),
    Setting("DAYBOOK_ADMIN_KEY", "", "Key of the admin routes, 16 characters or more; none: closed", _READERS),
)
"""In the order in which they are shown."""

SERVICES: tuple[Service, ...] = (
    Service("warehouse", "The warehouse database; `./run up` makes it. For Compose it stands in docker-compose.yaml."),
    Service("huggingface", "Publication and `./run cache`: a token as password, `namespace` in extra."),
    Service("llm", "The language model: its address as host, a key as password, `model` in extra."),
    Service("slack", "Alerts: the whole address of an incoming webhook as password."),
    Service("github", "Issues: a token as password, `repository` (owner/name) in extra. Take a private one."),
)

_DEFAULTS = {setting.name: setting.default for setting in SETTINGS if not setting.is_words}


def default(name: str) -> str:
    """Return what holds where a setting is not set."""
    return _DEFAULTS[name]
