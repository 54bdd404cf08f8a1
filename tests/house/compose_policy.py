"""What the compose file must be, as pure functions over its text and the document that it loads to.

Promises: no engine, no network and no file is needed; each function returns complaints, an empty list where all
is well. This is the part of the compose specification that the file uses, plus the rules of the house.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

Document = dict[str, Any]

TOP_KEYS = {"services", "volumes", "networks", "configs", "secrets", "name"}
SERVICE_KEYS = {
    "build", "cap_add", "cap_drop", "command", "configs", "cpus", "depends_on", "deploy", "entrypoint", "env_file",
    "environment", "expose", "extra_hosts", "healthcheck", "hostname", "image", "init", "labels", "logging",
    "mem_limit", "networks", "platform", "ports", "profiles", "pull_policy", "read_only", "restart", "secrets",
    "security_opt", "shm_size", "stop_grace_period", "stop_signal", "sysctls", "tmpfs", "ulimits", "user",
    "volumes", "working_dir",
}  # fmt: skip
HEALTH_KEYS = {"test", "interval", "timeout", "retries", "start_period", "start_interval", "disable"}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
SIZE = re.compile(r"^\d+[kmg]b?$")
SPAN = re.compile(r"^(\d+h)?(\d+m)?(\d+s)?$")
SHARED = ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__API__SECRET_KEY", "AIRFLOW__CORE__FERNET_KEY")
_SECRET_NAME = re.compile(r"(PASSWORD|PASSWD|SECRET|TOKEN|FERNET|ACCESS_KEY|API_KEY)(?!\w*FILE)", re.IGNORECASE)
_REQUIRED = r"\$\{[A-Z][A-Z0-9_]*:\?[^}]*\}"
_VARIABLE = re.compile(r"(?<!\$)\$\{([A-Z][A-Z0-9_]*)(:\?|\?|:-|-|:\+)?([^}]*)\}")


def is_one_shot(service: Document) -> bool:
    """Whether a service ends by itself: it is not started again after a success."""
    return service.get("restart") in ("no", "on-failure")


def is_airflow(service: Document) -> bool:
    """Whether a service is one of our image's processes."""
    return "build" in service


def structure(document: Document) -> list[str]:
    """Keys that nobody knows, and services without what keeps a service alive and within bounds."""
    found = [f"unknown key {key!r}" for key in document if key not in TOP_KEYS and not key.startswith("x-")]
    for name, service in document["services"].items():
        found += [f"{name}: unknown key {key!r}" for key in service if key not in SERVICE_KEYS]
        if not (service.get("image") or service.get("build")):
            found.append(f"{name} has neither image nor build")
        image = str(service.get("image", ""))
        if "build" not in service and (":" not in image or image.endswith(":latest")):
            found.append(f"{name}: the image {image!r} is not pinned to a version")
        if service.get("restart") not in ("no", "on-failure", "always", "unless-stopped"):
            found.append(f"{name} has no restart policy")
        if not SIZE.match(str(service.get("mem_limit", ""))):
            found.append(f"{name} has no memory limit")
        if not is_one_shot(service):
            found += [f"{name}: {complaint}" for complaint in _health(service.get("healthcheck"))]
    return found


def _health(check: Document | None) -> list[str]:
    if not check or not check.get("test") or check.get("disable"):
        return ["no health check"]
    found = [f"unknown key {key!r} in its health check" for key in check if key not in HEALTH_KEYS]
    if not isinstance(check["test"], list) or check["test"][0] not in ("CMD", "CMD-SHELL"):
        found.append("its health check must be a list that begins with CMD or CMD-SHELL")
    spans = [str(check[key]) for key in ("interval", "timeout", "start_period") if key in check]
    found += [f"{span!r} is no duration" for span in spans if not SPAN.match(span)]
    return found


def dependencies(document: Document) -> list[str]:
    """Conditions that can never come true: on nobody, on a check that does not exist, in a circle."""
    services = document["services"]
    found = []
    ahead: dict[str, set[str]] = {}
    for name, service in services.items():
        wanted = service.get("depends_on", {})
        if isinstance(wanted, list):
            wanted = {other: {"condition": "service_started"} for other in wanted}
        ahead[name] = set(wanted) & set(services)
        for other, how in wanted.items():
            condition = how.get("condition")
            if other not in services:
                found.append(f"{name} waits for {other!r}, which does not exist")
            elif condition not in CONDITIONS:
                found.append(f"{name} waits for {other} under the unknown condition {condition!r}")
            elif condition == "service_healthy" and not services[other].get("healthcheck"):
                found.append(f"{name} waits for {other} to be healthy, and it has no health check")
            elif condition == "service_completed_successfully" and not is_one_shot(services[other]):
                found.append(f"{name} waits for {other} to end, and it never does")
    for name in services:
        reached, front = set(), ahead[name]
        while front:
            reached |= front
            front = {further for other in front for further in ahead[other]} - reached
        if name in reached:
            found.append(f"{name} waits for itself")
    return found


def ports(document: Document) -> list[str]:
    """Published ports that others than this machine could reach."""
    found = []
    for name, service in document["services"].items():
        for port in service.get("ports", []):
            address = port.get("host_ip", "") if isinstance(port, dict) else str(port)
            if not address.startswith("127.0.0.1"):
                found.append(f"{name} publishes {port!r} on more than loopback")
        if service.get("network_mode") == "host":
            found.append(f"{name} listens on the host's own network")
    return found


def volumes(document: Document) -> list[str]:
    """Named volumes that are used and not declared, or declared and not used."""
    declared = set(document.get("volumes") or {})
    used = {
        str(mount).split(":")[0]
        for service in document["services"].values()
        for mount in service.get("volumes", [])
        if not str(mount).startswith((".", "/", "$"))
    }
    return [f"the volume {name!r} is used and not declared" for name in sorted(used - declared)] + [
        f"the volume {name!r} is declared and not used" for name in sorted(declared - used)
    ]


def secrets(document: Document, text: str) -> list[str]:
    """Secrets that differ between Airflow's processes, are written out, or have a default."""
    found = [f"{name} is set in more than one place" for name in SHARED if text.count(f"{name}:") != 1]
    airflow = {name: one["environment"] for name, one in document["services"].items() if is_airflow(one)}
    for secret in SHARED:
        values = {name: environment.get(secret) for name, environment in airflow.items()}
        if None in values.values() or len(set(values.values())) != 1:
            found.append(f"{secret} is not the same in every Airflow process")
    for name, service in document["services"].items():
        for key, value in (service.get("environment") or {}).items():
            if value is None:
                continue  # handed through from outside
            if _SECRET_NAME.search(key) and not re.fullmatch(_REQUIRED, str(value)):
                found.append(f"{name}: {key} must be exactly one ${{NAME:?…}}")
            for password in re.findall(r"://[^/@\s]*?:((?:\$\{[^}]*\}|[^@/\s])+)@", str(value)):
                if not re.fullmatch(_REQUIRED, password):
                    found.append(f"{name}: the password in {key} must be exactly one ${{NAME:?…}}")
    return found


def variables(text: str) -> dict[str, bool]:
    """Every variable that the file is filled in with, and whether it must be given."""
    found: dict[str, bool] = {}
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for name, how, _ in _VARIABLE.findall("\n".join(lines)):
        found[name] = found.get(name, False) or how in (":?", "?")
    return found


def environment_names(
    document: Document, *, airflow: Collection[str], settings: str, connections: Collection[str], init: str
) -> list[str]:
    """Names in the environment of our processes that nobody reads: a typing error would be silent.

    Args:
        document: the compose file.
        airflow: `AIRFLOW__SECTION__OPTION` of every option that Airflow and its providers know.
        settings: the source of include/settings.py, which names every variable that it reads.
        connections: the ids of the connections that the product asks for.
        init: the text of the one-shot's script, which reads what only it is given.
    """
    libraries = {
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION", "HF_HOME",
        "OTEL_EXPORTER_OTLP_HEADERS",
    }  # fmt: skip
    known = {*airflow, *libraries, *(f"AIRFLOW_CONN_{name.upper()}" for name in connections)}
    found = []
    for service, one in document["services"].items():
        for name in one["environment"] if is_airflow(one) else ():
            read = f'"{name}"' in settings
            if name.startswith("DAYBOOK_") and name.endswith("_PASSWORD"):
                read = '_PASSWORD"' in init
            if name not in known and not read:
                found.append(f"{service}: nobody reads {name}")
    return found
