"""docker-compose.yaml is whole and safe, judged without an engine; each judgement is seen to bite."""

from __future__ import annotations

import copy
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from include import settings
from include.registry import SOURCES
from tests.house import compose_policy, tree

TEXT = tree.read("docker-compose.yaml")
EXAMPLE = tree.read("config/compose.example.env")
EXPECTED = {
    "postgres", "redis", "s3", "databases", "init",
    "api-server", "scheduler", "dag-processor", "triggerer", "worker", "watcher",
}  # fmt: skip


@pytest.fixture
def document():
    return yaml.safe_load(TEXT)


def names_of_airflow() -> set[str]:
    """`AIRFLOW__SECTION__OPTION` of what Airflow's own description, and the providers' defaults, know."""
    spec = importlib.util.find_spec("airflow")
    templates = Path(next(iter(spec.submodule_search_locations))) / "config_templates"
    described = yaml.safe_load((templates / "config.yml").read_text(encoding="utf-8"))
    names = {(section, option) for section, one in described.items() for option in one["options"]}
    # The Celery provider's own: it is in the image and not in .venv.
    names |= {("celery", "result_backend"), ("celery_broker_transport_options", "visibility_timeout")}
    section = ""
    for line in (templates / "provider_config_fallback_defaults.cfg").read_text(encoding="utf-8").splitlines():
        if header := re.match(r"\[(\w+)\]", line):
            section = header.group(1)
        elif option := re.match(r"(\w+)\s*=", line):
            names.add((section, option.group(1)))
    return {f"AIRFLOW__{section.upper()}__{option.upper()}" for section, option in names}


def env_lines(text: str) -> dict[str, str]:
    """NAME=value lines of an env file."""
    return dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))


def test_all_parts_of_the_stack_are_there(document):
    assert set(document["services"]) == EXPECTED


@pytest.mark.parametrize("rule", ["structure", "dependencies", "ports", "volumes"])
def test_the_file_obeys(document, rule):
    assert getattr(compose_policy, rule)(document) == []


def test_every_secret_is_shared_required_and_nowhere_written_out(document):
    assert compose_policy.secrets(document, TEXT) == []


def test_every_variable_is_in_the_example_and_every_secret_in_it_is_empty():
    wanted, example = compose_policy.variables(TEXT), env_lines(EXAMPLE)
    offered = set(re.findall(r"^#([A-Z][A-Z0-9_]*)=", EXAMPLE, re.MULTILINE))
    assert set(wanted) <= set(example) | offered
    assert {name for name, required in wanted.items() if required} == {
        name for name, value in example.items() if not value
    }


def test_nothing_is_set_that_nobody_reads(document):
    connections = {"warehouse", "huggingface", "slack", "github", "llm"} | {source.connection for source in SOURCES}
    assert (
        compose_policy.environment_names(
            document,
            airflow=names_of_airflow(),
            settings=tree.read("include/settings.py"),
            connections=connections,
            init=tree.read("config/compose-init"),
        )
        == []
    )


@pytest.mark.parametrize("endpoint", ["", "http://collector:4318"])
def test_one_setting_turns_telemetry_on_as_it_does_without_containers(document, endpoint, monkeypatch):
    """The file is filled in as Compose does it, and Airflow itself says what it reads."""
    from airflow.configuration import conf

    def filled(value: str) -> str:
        value = re.sub(r"\$\{DAYBOOK_OTEL_ENDPOINT:\+([^}]*)\}", lambda given: given[1] if endpoint else "", value)
        return value.replace("${DAYBOOK_OTEL_ENDPOINT:-}", endpoint)

    told = document["services"]["worker"]["environment"]
    wanted = settings.telemetry({"DAYBOOK_OTEL_ENDPOINT": "http://collector:4318"})
    for name, value in wanted.items():
        given = filled(told[name])
        if name.startswith("AIRFLOW__"):
            monkeypatch.setenv(name, given)
            assert conf.getboolean(name.split("__")[1].lower(), "otel_on") is bool(endpoint)
        elif name == "OTEL_EXPORTER_OTLP_ENDPOINT":
            assert given == endpoint
        else:
            assert given == value


def test_every_source_can_be_given_its_connection(document):
    handed_through = document["services"]["worker"]["environment"]
    assert {f"AIRFLOW_CONN_{source.connection.upper()}" for source in SOURCES} <= set(handed_through)


def test_every_process_of_the_image_runs_something_that_exists(document):
    """`python -m include.x` names a module of this tree, and a script is in it."""
    for name, service in document["services"].items():
        command = service.get("command", [])
        if command[:2] == ["python", "-m"]:
            assert f"{command[2].replace('.', '/')}.py" in tree.files(), name
        elif command[:1] == ["bash"]:
            assert command[1] in tree.files(), name


def test_what_the_image_copies_exists_and_is_let_through():
    allowed = [line[1:] for line in tree.read(".dockerignore").splitlines() if line.startswith("!")]
    copied = [
        source
        for line in tree.read("Dockerfile").splitlines()
        if line.startswith("COPY ")
        for source in line.split()[1:-1]
    ]
    assert copied
    for source in copied:
        assert any(path == source or path.startswith(f"{source}/") for path in tree.files()), source
        assert source in allowed


def test_all_sets_of_pins_agree_and_the_image_has_celery_and_s3():
    def pins(path: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for line in tree.read(path).splitlines():
            if "==" in line and not line.startswith("#"):
                found.setdefault(line.split("==")[0], set()).add(line)
        return found

    ours, image = pins("requirements.txt"), pins("requirements-celery.txt")
    assert {"apache-airflow-providers-celery", "s3fs", "redis"} <= set(image)
    assert {name: image[name] for name in set(image) & set(ours)} == {
        name: ours[name] for name in set(image) & set(ours)
    }
    # What runs the same topology without containers has the same executor and S3 as the image.
    up = pins("requirements-celery-up.txt")
    assert set(image) <= set(up)
    for known in (ours, image):
        assert {name: up[name] for name in set(up) & set(known)} == {name: known[name] for name in set(up) & set(known)}
    # What examples need is put into the same .venv.
    drawing = pins("requirements-examples.txt")
    assert "matplotlib" in drawing
    assert {name: drawing[name] for name in set(drawing) & set(ours)} == {
        name: ours[name] for name in set(drawing) & set(ours)
    }


def test_a_validator_that_is_installed_agrees(tmp_path):
    """Beside the structural tests, whichever real validator this machine has reads the file as well."""
    filled = tmp_path / "filled.env"
    values = {**env_lines(EXAMPLE), **{name: "x" for name, needed in compose_policy.variables(TEXT).items() if needed}}
    filled.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    commands = [["docker-compose"]] if shutil.which("docker-compose") else []
    if shutil.which("docker"):
        asked = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        commands += [["docker", "compose"]] if asked.returncode == 0 else []
    for command in commands:
        arguments = ["--env-file", str(filled), "-f", "docker-compose.yaml", "config", "--quiet"]
        ran = subprocess.run([*command, *arguments], cwd=tree.ROOT, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr


# --- the judgements bite ------------------------------------------------------------------------------


def broken(rule: str, change) -> list[str]:
    """What a rule says about the file after one change."""
    document = yaml.safe_load(TEXT)
    services = {name: copy.deepcopy(service) for name, service in document["services"].items()}
    document["services"] = services
    change(services)
    return getattr(compose_policy, rule)(document)


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("structure", lambda s: s["worker"].update(comand=["x"])),
        ("structure", lambda s: s["worker"].pop("mem_limit")),
        ("structure", lambda s: s["worker"].pop("restart")),
        ("structure", lambda s: s["worker"].pop("healthcheck")),
        ("structure", lambda s: s["worker"]["healthcheck"].update(intervall="5s")),
        ("structure", lambda s: s["worker"]["healthcheck"].update(interval="often")),
        ("structure", lambda s: s["worker"]["healthcheck"].update(disable=True)),
        ("structure", lambda s: s["redis"].pop("image")),
        ("structure", lambda s: s["redis"].update(image="redis")),
        ("structure", lambda s: s["redis"].update(image="redis:latest")),
        ("dependencies", lambda s: s["worker"]["depends_on"].update(nobody={"condition": "service_started"})),
        ("dependencies", lambda s: s["worker"]["depends_on"]["init"].update(condition="done")),
        ("dependencies", lambda s: s["init"]["depends_on"].update(init={"condition": "service_started"})),
        ("dependencies", lambda s: s["redis"].pop("healthcheck")),
        ("dependencies", lambda s: s["init"].update(restart="always")),
        ("dependencies", lambda s: s["redis"].update(depends_on=["worker"])),
        ("ports", lambda s: s["redis"].update(ports=["6379:6379"])),
        ("ports", lambda s: s["redis"].update(ports=["0.0.0.0:6379:6379"])),
        ("ports", lambda s: s["redis"].update(ports=[{"target": 6379, "published": "6379"}])),
        ("volumes", lambda s: s["redis"].update(volumes=["other:/data"])),
    ],
)
def test_a_change_for_the_worse_is_seen(rule, change):
    assert broken(rule, change)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("${DAYBOOK_JWT_SECRET:?", "${DAYBOOK_JWT_SECRET:-"),
        ("  AIRFLOW__CORE__FERNET_KEY: $", "  AIRFLOW__CORE__FERNET_KEY: abc # $"),
        (
            "airflow:${DAYBOOK_POSTGRES_PASSWORD:?set it in .env}@postgres:5432/daybook",
            "airflow:airflow@postgres/daybook",
        ),
        ("      DAYBOOK_ADMIN_PASSWORD: $", "      DAYBOOK_ADMIN_PASSWORD: admin # $"),
        (
            "      DAYBOOK_ADMIN_PASSWORD:",
            "      AIRFLOW__API_AUTH__JWT_SECRET: ${OTHER:?x}\n      DAYBOOK_ADMIN_PASSWORD:",
        ),
        ("      ROOT_SECRET_KEY: ${DAYBOOK_S3_SECRET:?", "      ROOT_SECRET_KEY: a${DAYBOOK_S3_SECRET:?"),
    ],
)
def test_a_secret_that_is_written_out_optional_or_different_is_seen(was, now):
    assert was in TEXT
    changed = TEXT.replace(was, now)
    assert compose_policy.secrets(yaml.safe_load(changed), changed)


@pytest.mark.parametrize("name", ["DAYBOOK_RAW_RUUT", "AIRFLOW__CORE__EXECUTER", "AIRFLOW_CONN_FINRRA", "AWS_KEY"])
def test_a_name_that_nobody_reads_is_seen(document, name):
    document["services"]["worker"] = {**document["services"]["worker"], "environment": {name: "x"}}
    found = compose_policy.environment_names(
        document,
        airflow=names_of_airflow(),
        settings=tree.read("include/settings.py"),
        connections={"warehouse", "huggingface", "slack", "github", "llm", *(source.connection for source in SOURCES)},
        init=tree.read("config/compose-init"),
    )
    assert found == [f"worker: nobody reads {name}"]
