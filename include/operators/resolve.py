"""From Airflow's connections to the values that the engine works with.

Promises: what is missing is named in words, before any request, with what to do about it. Never: no secret is in a
message, and nothing is read when a DAG file is parsed: every function here is called by a task that runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from include import settings
from include.contract import Credentials, Source

if TYPE_CHECKING:
    from include.analysis.model import Backend
    from include.ops.github import GitHub
    from include.outputs.hub import Hub

WAREHOUSE = "warehouse"
HUB = "huggingface"
SLACK = "slack"
MODEL = "llm"
GITHUB = "github"


class ConnectionUnfit(Exception):
    """A connection is missing or lacks something; the text names it and says what to do."""


def warehouse_url() -> str:
    """Return the address of the warehouse for libpq; it may hold a password and is never logged.

    Raises:
        ConnectionUnfit: the connection `warehouse` is missing.
    """
    from airflow.providers.postgres.hooks.postgres import PostgresHook

    connection = _connection(PostgresHook, WAREHOUSE, "postgresql://user:password@host:5432/daybook", "Postgres")
    return _libpq(connection)


def _libpq(connection: Any) -> str:
    return settings.ConnectionSetting(
        name=WAREHOUSE,
        conn_type="postgres",
        host=connection.host or "127.0.0.1",
        port=connection.port,
        login=connection.login or "",
        password=connection.password or "",
        schema=connection.schema or "daybook",
        extra=connection.extra_dejson,
    ).database_url


def model(wishes: settings.Analysis) -> Backend:
    """Return how to reach the language model: by connection `llm` where there is one, and by the settings.

    Raises:
        ConnectionUnfit: nobody says where it is.
    """
    from airflow.providers.http.hooks.http import HttpHook
    from airflow.sdk.exceptions import AirflowException

    try:
        connection = HttpHook.get_connection(MODEL)
    except AirflowException:
        connection = None
    return _backend(connection, wishes)


async def analysis_reach(wishes: settings.Analysis) -> tuple[str, Backend]:
    """Return, in a trigger, the address of the warehouse and how to reach the language model.

    Raises:
        ConnectionUnfit: one of them is missing.
    """
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowException

    try:
        warehouse = await BaseHook.aget_connection(WAREHOUSE)
    except AirflowException:
        raise ConnectionUnfit(f"Connection {WAREHOUSE} is missing. Nothing was asked.") from None
    try:
        connection = await BaseHook.aget_connection(MODEL)
    except AirflowException:
        connection = None
    return _libpq(warehouse), _backend(connection, wishes)


def _backend(connection: Any, wishes: settings.Analysis) -> Backend:
    from include.analysis.reaching import NoModel, backend

    try:
        return backend(
            wishes,
            host=_address(connection) if connection else "",
            password=(connection.password or "") if connection else "",
            extra=connection.extra_dejson if connection else {},
            sandbox_url=settings.load().sandbox_url,
        )
    except NoModel as unfit:
        raise ConnectionUnfit(str(unfit)) from None


def slack_is_there() -> bool:
    """Say whether alerts can be sent: whether the connection `slack` exists."""
    return is_there(SLACK)


def github_is_there() -> bool:
    """Say whether issues are wanted: whether the connection `github` exists."""
    return is_there(GITHUB)


def is_there(name: str) -> bool:
    """Say whether a connection of this name exists; what stands in it is not looked at."""
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowException

    try:
        BaseHook.get_connection(name)
    except AirflowException:
        return False
    return True


def github() -> GitHub:
    """Return where issues go.

    Raises:
        ConnectionUnfit: the connection `github` is missing, or lacks its token or repository.
    """
    from airflow.providers.http.hooks.http import HttpHook

    from include.ops.github import GitHubSettingsError
    from include.ops.github import github as make

    example = '{"conn_type": "http", "password": "…", "extra": {"repository": "owner/name"}}'
    connection = _connection(
        HttpHook, GITHUB, example, "HTTP, password a token that may write issues, extra.repository"
    )
    try:
        return make(_address(connection), connection.password, connection.extra_dejson.get("repository"))
    except GitHubSettingsError as unfit:
        raise ConnectionUnfit(str(unfit)) from None


def credentials(source: Source) -> Credentials:
    """Return how to reach a source's upstream.

    Raises:
        ConnectionUnfit: its connection is missing, or lacks the key or contact that the upstream asks for.
    """
    from airflow.providers.http.hooks.http import HttpHook

    from include.engine.credentials import NoContact, NoKey, build, check_key

    host = source.hosts[0]
    example = f'{{"conn_type": "http", "host": "{host}"' + (', "password": "…"}' if source.needs_key else "}")
    connection = _connection(HttpHook, source.connection, example, f"HTTP, host {host}")
    try:
        check_key(source, connection.password)
    except NoKey as unfit:
        raise ConnectionUnfit(str(unfit)) from None
    if source.login_header and not connection.login:
        raise ConnectionUnfit(
            f"Connection {source.connection} has no login. Nothing was asked. Put the key's ID of {source.title} into "
            f"its login and the secret into its password: Admin → Connections, or {_variable(source.connection)}."
        )
    try:
        return build(
            source,
            host=connection.host or "",
            login=connection.login or "",
            password=connection.password or "",
            schema=connection.schema or "",
            port=connection.port,
            extra=connection.extra_dejson,
            sandbox_url=settings.load().sandbox_url,
        )
    except NoContact as unfit:
        raise ConnectionUnfit(str(unfit)) from None


def hub() -> Hub:
    """Return where to publish.

    Raises:
        ConnectionUnfit: the connection `huggingface` is missing, or lacks its token or namespace.
    """
    from airflow.providers.http.hooks.http import HttpHook

    from include.outputs.hub import HubSettingsError
    from include.outputs.hub import hub as make

    example = '{"conn_type": "http", "password": "…", "extra": {"namespace": "…"}}'
    connection = _connection(HttpHook, HUB, example, "HTTP, password a token that may write, extra.namespace")
    extra = connection.extra_dejson
    try:
        return make(_address(connection), connection.password, extra.get("namespace"), extra.get("repository"))
    except HubSettingsError as unfit:
        raise ConnectionUnfit(str(unfit)) from None


def _connection(hook: Any, name: str, example: str, form: str) -> Any:
    from airflow.sdk.exceptions import AirflowException

    try:
        return hook.get_connection(name)
    except AirflowException:
        raise ConnectionUnfit(
            f"Connection {name} is missing. Nothing was asked and nothing was changed. Add it in Admin → Connections "
            f"({form}), or set {_variable(name)}, for example to {example}."
        ) from None


def _variable(name: str) -> str:
    return f"AIRFLOW_CONN_{name.upper()}"


def _address(connection: Any) -> str:
    """The base address of an HTTP connection; https where it names no scheme."""
    host = (connection.host or "").rstrip("/")
    if not host:
        return ""
    if "://" not in host:
        host = f"{connection.schema if connection.schema in ('http', 'https') else 'https'}://{host}"
    return f"{host}:{connection.port}" if connection.port else host
