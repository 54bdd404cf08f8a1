"""What the processes of a stack are told: addresses, secrets and settings, as environment variables.

Promises: all of them get the same; what ./run decides goes before what the shell says, and a demo sees
neither the shell's keys nor its tokens. Never: a secret is put on a command line or into a file from here.
"""

from __future__ import annotations

import configparser
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from include import registry, settings
from include.local import topology
from include.local.keys import Keys
from include.local.ports import LOOPBACK
from include.local.state import State

# A demo is shown to anybody: nothing that could open a real account may reach it.
_PRIVATE = (
    "AIRFLOW",
    "DAYBOOK_",
    "DATABASE_URL",
    "HF_",
    "HUGGING",
    "OPENAI",
    "DART_API",
    "SLACK",
    "GITHUB",
    "AWS_",
    "OTEL_",
    "PG",
)
SANDBOX_NAMESPACE = "daybook-demo"


@dataclass(frozen=True)
class Addresses:
    """Where things are: libpq URLs of both databases, and ports.

    There is no sandbox in real use, Redis only where Celery's workers do the work, and S3 only in their demo.
    """

    metadata: str
    warehouse: str
    api_port: int
    sandbox_port: int | None = None
    redis_port: int | None = None
    s3_port: int | None = None

    @property
    def api(self) -> str:
        """The page to open, and the base of the REST API."""
        return f"http://{LOOPBACK}:{self.api_port}"

    @property
    def sandbox(self) -> str | None:
        """The sandbox's base URL."""
        return f"http://{LOOPBACK}:{self.sandbox_port}" if self.sandbox_port else None


def parallelism(values: Mapping[str, str]) -> int:
    """How many tasks run at once: from the environment to be, else airflow.cfg.

    Raises:
        SettingError: it is no number.
    """
    given = values.get("AIRFLOW__CORE__PARALLELISM")
    if given is None:
        config = configparser.ConfigParser(interpolation=None)
        config.read(settings.ROOT / "airflow.cfg", encoding="utf-8")
        given = config.get("core", "parallelism", fallback="8")
    if not given.strip().isdigit() or int(given) < 1:
        raise settings.SettingError(f"AIRFLOW__CORE__PARALLELISM must be a whole number of at least 1, not {given!r}.")
    return int(given)


def base(demo: bool, own: Mapping[str, str]) -> dict[str, str]:
    """What the shell and the operator's file say; for a demo without anything private."""
    shell = settings.environment()
    if demo:
        return {name: value for name, value in shell.items() if not name.startswith(_PRIVATE)}
    return {**own, **shell}


def build(
    state: State, addresses: Addresses, keys: Keys, own: Mapping[str, str], root: Path = settings.ROOT
) -> dict[str, str]:
    """The environment of every process of the stack.

    Args:
        state: whose stack it is.
        addresses: where its servers listen.
        keys: its secrets.
        own: what the operator's file sets.
        root: the checkout.
    """
    values = base(state.mode == "demo", own)
    values = {**settings.telemetry(values), **values}
    for source in registry.sources():
        keys_alone = settings.connection_of_keys(values.get(f"{source.connection.upper()}_API_KEYS"))
        if keys_alone is not None:
            values.setdefault(connection_variable(source.connection), keys_alone)
    values.update(
        AIRFLOW_HOME=str(root),
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=with_driver(addresses.metadata, "postgresql+psycopg2"),
        AIRFLOW__CORE__EXECUTION_API_SERVER_URL=f"{addresses.api}/execution/",
        AIRFLOW__CORE__FERNET_KEY=keys.fernet,
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE=str(state.directory / "passwords.json"),
        AIRFLOW__API__HOST=LOOPBACK,
        AIRFLOW__API__PORT=str(addresses.api_port),
        AIRFLOW__API__BASE_URL=addresses.api,
        AIRFLOW__API__SECRET_KEY=keys.api,
        AIRFLOW__API_AUTH__JWT_SECRET=keys.jwt,
        AIRFLOW__LOGGING__BASE_LOG_FOLDER=str(state.logs),
        AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY=str(state.logs / "dag_processor"),
        AIRFLOW_CONN_WAREHOUSE=addresses.warehouse,
        DAYBOOK_STATE=str(state.directory),
        # The Hub's client keeps its cache, and looks for a token, in here and not in the user's home.
        HF_HOME=str(state.directory / "hub"),
        PATH=f"{Path(sys.executable).parent}:{values.get('PATH', '/usr/local/bin:/usr/bin:/bin')}",
        PYTHONUNBUFFERED="1",
    )
    if addresses.redis_port is not None:
        hands = max(1, parallelism(values) // topology.WORKERS)
        metadata = values["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
        values.update(topology.celery_environment(metadata, addresses.redis_port, addresses.s3_port, keys, hands))
    for name in ("NO_PROXY", "no_proxy"):
        values[name] = ",".join(filter(None, (values.get(name), LOOPBACK, "localhost")))
    if addresses.sandbox:
        values.update(of_sandbox(addresses.sandbox), AIRFLOW__API__INSTANCE_NAME="Daybook demo")
        # They are asked about once a second: all series would take a newcomer's patience, one group shows the same.
        for groups in (settings.FRED_GROUPS, settings.ECOS_GROUPS):
            values.setdefault(groups, "housing")
    return values


def of_sandbox(url: str) -> dict[str, str]:
    """Connections to a sandbox: every upstream under its usual name and host, with a key that opens nothing."""
    values = {
        "DAYBOOK_SANDBOX_URL": url,
        "ANALYSIS_SCHEDULER_AUTO_START": "true",
        # Ten years of every company's reports would keep lanes and files busy for longer than a demo lasts.
        "NEW_STOCK_LIMIT": "0",
        "DAYBOOK_ADMIN_KEY": "sandbox-admin-key",
    }
    for source in registry.sources():
        connection = {"conn_type": "http", "host": source.hosts[0], "password": "sandbox-key"}
        if source.login_header:
            connection["login"] = "sandbox-key-id"
        values[connection_variable(source.connection)] = json.dumps(connection)
    hub = {
        "conn_type": "http",
        "host": url,
        "password": "sandbox-token",
        "extra": {"namespace": SANDBOX_NAMESPACE},
    }
    values["AIRFLOW_CONN_HUGGINGFACE"] = json.dumps(hub)
    slack = {"conn_type": "slackwebhook", "password": f"{url}/services/T0/B0/sandbox"}
    values["AIRFLOW_CONN_SLACK"] = json.dumps(slack)
    github = {
        "conn_type": "http",
        "host": f"{url}/api.github.com",
        "password": "sandbox-token",
        "extra": {"repository": f"{SANDBOX_NAMESPACE}/incidents"},
    }
    values["AIRFLOW_CONN_GITHUB"] = json.dumps(github)
    return values


def connection_variable(name: str) -> str:
    """The variable that holds the Airflow connection of this name."""
    return f"AIRFLOW_CONN_{name.upper()}"


def with_driver(url: str, driver: str) -> str:
    """The same address with its driver named: a bare `postgresql` means whichever SQLAlchemy prefers."""
    parts = urlsplit(url)
    return urlunsplit((driver, *parts[1:]))


def with_database(url: str, database: str) -> str:
    """The same server, another database."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, f"/{database}", parts.query, parts.fragment))
