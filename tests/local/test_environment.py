"""What the processes of a stack are told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from include import registry, settings
from include.local import connections, environment
from include.local.environment import Addresses
from include.local.failure import LocalFailure
from include.local.keys import Keys
from include.local.state import open_state
from include.settings import ROOT

KEYS = Keys(fernet="fernet-key", jwt="jwt-secret", api="api-secret")
DATABASE = "postgresql://airflow:pass%2Fword@127.0.0.1:15432/airflow"
REAL = Addresses(DATABASE, DATABASE.replace("/airflow", "/daybook"), 8080)
DEMO = Addresses(DATABASE, DATABASE.replace("/airflow", "/daybook"), 8081, 8090)


def built(tmp_path: Path, demo: bool = False, **own: str) -> dict[str, str]:
    return environment.build(open_state(tmp_path, demo), DEMO if demo else REAL, KEYS, own)


def test_everything_listens_on_loopback(tmp_path: Path) -> None:
    values = built(tmp_path)
    assert values["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert values["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:8080"
    assert values["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:8080/execution/"
    assert not [name for name, value in values.items() if "0.0.0.0" in value]


def test_the_driver_is_named_and_the_password_survives(tmp_path: Path) -> None:
    connection = built(tmp_path)["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    assert connection == "postgresql+psycopg2://airflow:pass%2Fword@127.0.0.1:15432/airflow"


def test_every_process_has_the_same_secrets_and_none_is_in_the_configuration_file(tmp_path: Path) -> None:
    values = built(tmp_path)
    assert values["AIRFLOW__API_AUTH__JWT_SECRET"] == KEYS.jwt
    assert values["AIRFLOW__CORE__FERNET_KEY"] == KEYS.fernet
    config = (ROOT / "airflow.cfg").read_text()
    for option in ("fernet_key =", "jwt_secret =", "secret_key =", "sql_alchemy_conn =", "password ="):
        assert option not in config


def test_a_real_stack_sees_the_operators_file_and_the_shell_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_FINRA", "from-the-shell")
    values = built(tmp_path, AIRFLOW_CONN_FINRA="from-the-file", AIRFLOW_CONN_SLACK="from-the-file")
    assert values["AIRFLOW_CONN_FINRA"] == "from-the-shell"
    assert values["AIRFLOW_CONN_SLACK"] == "from-the-file"
    assert "DAYBOOK_SANDBOX_URL" not in values


def test_a_demo_sees_no_key_of_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW_CONN_HUGGINGFACE", "HF_TOKEN", "OPENAI_API_KEY", "AIRFLOW_VAR_X", "DAYBOOK_RAW_ROOT"):
        monkeypatch.setenv(name, "marker-of-a-real-secret")
    values = built(tmp_path, demo=True, AIRFLOW_CONN_SLACK="marker-of-a-real-secret")
    assert "marker-of-a-real-secret" not in json.dumps(values)
    assert values["HF_HOME"].startswith(str(tmp_path))


def test_a_demo_reaches_every_upstream_through_the_sandbox(tmp_path: Path) -> None:
    values = built(tmp_path, demo=True)
    assert values["DAYBOOK_SANDBOX_URL"] == "http://127.0.0.1:8090"
    for source in registry.SOURCES:
        assert environment.connection_variable(source.connection) in values
    assert json.loads(values["AIRFLOW_CONN_HUGGINGFACE"])["host"] == "http://127.0.0.1:8090"
    assert json.loads(values["AIRFLOW_CONN_SLACK"])["password"].startswith("http://127.0.0.1:8090/services/")


def test_a_proxy_never_stands_between_our_own_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org")
    assert built(tmp_path)["NO_PROXY"] == "example.org,127.0.0.1,localhost"


def test_the_number_of_workers_comes_from_the_environment_or_the_file() -> None:
    assert environment.parallelism({}) == 8
    assert environment.parallelism({"AIRFLOW__CORE__PARALLELISM": "32"}) == 32


def test_the_example_connections_can_be_read_and_are_json() -> None:
    text = (ROOT / "config" / "connections.example.env").read_text()
    ready = {"AIRFLOW_CONN_FINRA", "AIRFLOW_CONN_KIND"}
    assert set(connections.read(ROOT / "config" / "connections.example.env")) == ready
    for line in text.splitlines():
        name, _, value = line.removeprefix("#").partition("=")
        if name.startswith("AIRFLOW_CONN_"):
            json.loads(value)


def test_a_line_that_is_no_setting_is_named_without_being_shown(tmp_path: Path) -> None:
    file = tmp_path / "connections.env"
    file.write_text("# mine\n\nexport A='b c'\nC=\"d\"\nhunter2\n")
    with pytest.raises(LocalFailure, match="line 5") as refused:
        connections.read(file)
    assert "hunter2" not in str(refused.value)
    file.write_text("# mine\n\nexport A='b c'\nC=\"d\"\n")
    assert connections.read(file) == {"A": "b c", "C": "d"}
    assert connections.read(tmp_path / "none.env") == {}


def test_a_file_that_others_can_read_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "connections.env"
    file.touch()
    os.chmod(file, 0o644)
    assert connections.open_to_others(file)
    os.chmod(file, 0o600)
    assert not connections.open_to_others(file)


def test_keys_alone_make_a_connection_and_a_connection_goes_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_DART", raising=False)
    monkeypatch.setenv("DART_API_KEYS", "marker-one,marker-two")
    expected = {"conn_type": "http", "password": "marker-one,marker-two"}
    assert json.loads(built(tmp_path)["AIRFLOW_CONN_DART"]) == expected
    assert settings.connection("dart").password == "marker-one,marker-two"
    assert "marker" not in json.dumps(built(tmp_path, demo=True))
    monkeypatch.setenv("AIRFLOW_CONN_DART", '{"conn_type": "http", "password": "another"}')
    assert json.loads(built(tmp_path)["AIRFLOW_CONN_DART"])["password"] == "another"
    assert settings.connection("dart").password == "another"


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("MONITOR_INTERVAL", "7", settings.monitor_minutes),
        ("MONITOR_INTERVAL", "300", settings.monitor_minutes),
        ("MONITOR_INTERVAL", "five", settings.monitor_minutes),
        ("DISCLOSURE_MONITOR_AUTO_START", "maybe", settings.monitor_is_on),
    ],
)
def test_a_setting_of_the_monitor_that_cannot_be_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, read: Callable[[], object]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(settings.SettingError, match=name):
        read()
    monkeypatch.setenv(name, "")
    assert read() in (5, True)
