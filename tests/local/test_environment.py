"""What the processes of a stack are told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from include import registry, settings
from include.local import connections, environment
from include.local.environment import Addresses
from include.local.failure import LocalFailure
from include.local.keys import Keys
from include.local.state import open_state
from include.settings import ROOT, SettingError

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
    for name in (
        "AIRFLOW_CONN_HUGGINGFACE",
        "HF_TOKEN",
        "OPENAI_API_KEY",
        "AIRFLOW_VAR_X",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "DAYBOOK_RAW_ROOT",
    ):
        monkeypatch.setenv(name, "marker-of-a-real-secret")
    values = built(tmp_path, demo=True, AIRFLOW_CONN_SLACK="marker-of-a-real-secret")
    assert "marker-of-a-real-secret" not in json.dumps(values)
    assert values["HF_HOME"].startswith(str(tmp_path))


def test_one_setting_turns_airflows_telemetry_on_and_what_the_operator_says_of_it_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not [name for name in built(tmp_path) if "OTEL" in name]
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=marker")
    values = built(tmp_path, DAYBOOK_OTEL_ENDPOINT="http://127.0.0.1:4318/")
    assert {name: value for name, value in values.items() if "OTEL" in name} == {
        "DAYBOOK_OTEL_ENDPOINT": "http://127.0.0.1:4318/",
        "AIRFLOW__METRICS__OTEL_ON": "True",
        "AIRFLOW__TRACES__OTEL_ON": "True",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=marker",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_SERVICE_NAME": "mine",
        "OTEL_TRACES_EXPORTER": "otlp_proto_http",
    }
    monkeypatch.setenv("DAYBOOK_OTEL_ENDPOINT", "http://127.0.0.1:4318")
    assert not [name for name in built(tmp_path, demo=True) if "OTEL" in name]


@pytest.mark.parametrize(
    "wrong", ["127.0.0.1:4318", "grpc://collector:4317", "http://", "http://me:secret@collector:4318"]
)
def test_an_address_that_telemetry_cannot_go_to_is_refused_and_not_repeated(wrong: str) -> None:
    with pytest.raises(SettingError, match="DAYBOOK_OTEL_ENDPOINT must") as refused:
        settings.telemetry({"DAYBOOK_OTEL_ENDPOINT": wrong})
    assert "secret" not in str(refused.value)


# What any Airflow process does at its start, then a span and a count, sent before it ends.
_SENDS = """
import airflow.settings
from opentelemetry import metrics, trace
from airflow.observability.metrics.otel_logger import get_otel_logger
with trace.get_tracer("t").start_as_current_span("a-span-of-a-test"):
    get_otel_logger().incr("a_count_of_a_test")
trace.get_tracer_provider().force_flush()
metrics.get_meter_provider().force_flush()
"""


def test_with_the_setting_metrics_and_traces_arrive_at_the_collector(tmp_path: Path) -> None:
    came: dict[str, bytes] = {}

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came[self.path] = came.get(self.path, b"") + self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        told = settings.telemetry({"DAYBOOK_OTEL_ENDPOINT": f"http://127.0.0.1:{server.server_port}"})
        values = settings.environment(**told, AIRFLOW_HOME=str(tmp_path))
        subprocess.run([sys.executable, "-c", _SENDS], env=values, capture_output=True, check=True, timeout=120)
        server.shutdown()
    assert b"a-span-of-a-test" in came["/v1/traces"]
    assert b"a_count_of_a_test" in came["/v1/metrics"]
    assert all(b"daybook" in body for body in came.values())


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
