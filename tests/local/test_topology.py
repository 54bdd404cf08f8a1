"""The distributed stack, as far as it can be judged without starting all of it; `./run chaos` runs it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from include.local import __main__ as launcher
from include.local import bootstrap, environment, keys, stack, topology
from include.local.failure import LocalFailure
from include.local.interrupts import Interrupts
from include.local.ports import any_free
from include.local.state import Record, open_state
from tests.house import tree
from tests.local.test_environment import DEMO, KEYS, REAL


def built(tmp_path: Path, demo: bool, executor: str = "celery") -> dict[str, str]:
    where = DEMO if demo else REAL
    if executor == "celery":
        where = replace(where, redis_port=6390, s3_port=7090 if demo else None)
    return environment.build(open_state(tmp_path, demo), where, KEYS, {})


def test_its_processes_are_told_what_the_compose_file_tells_its_own(tmp_path: Path) -> None:
    """Every name that the compose file gives and ./run gives too has a value of the same kind."""
    values = built(tmp_path, demo=True)
    told = yaml.safe_load(tree.read("docker-compose.yaml"))["services"]["worker"]["environment"]
    plain = built(tmp_path, demo=True, executor="local")
    only_here = {name for name in values if values[name] != plain.get(name)}
    assert only_here <= set(told)
    for name in ("AIRFLOW__CORE__EXECUTOR", "DAYBOOK_RAW_ROOT", "DAYBOOK_OUTBOX_ROOT", "DAYBOOK_FILES_ROOT",
                 "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT"):  # fmt: skip
        assert values[name] == told[name]
    assert values["AIRFLOW__CELERY__BROKER_URL"] == f"redis://:{KEYS.redis}@127.0.0.1:6390/0"
    assert values["AIRFLOW__CELERY__RESULT_BACKEND"] == f"db+{values['AIRFLOW__DATABASE__SQL_ALCHEMY_CONN']}"
    # Two workers have the hands of one LocalExecutor.
    assert int(values["AIRFLOW__CELERY__WORKER_CONCURRENCY"]) * 2 == environment.parallelism({})


def test_so_many_workers_as_are_asked_for_and_two_where_nobody_says(capsys: pytest.CaptureFixture[str]) -> None:
    """In the background too; a number that makes no stack is refused before anything is started."""
    assert launcher.parse(["up", "--executor", "celery"])[0].workers == 2
    chosen = launcher.parse(["up", "--background", "--executor", "celery", "--workers", "3"])[0]
    assert topology.names(chosen.workers) == ("worker-1", "worker-2", "worker-3")
    for many in ("0", "9", "many"):
        with pytest.raises(SystemExit) as ended:
            launcher.parse(["demo", "--executor", "celery", "--workers", many])
        assert ended.value.code == 2
        assert "--workers" in capsys.readouterr().err


def test_real_answers_stay_where_the_settings_have_them(tmp_path: Path) -> None:
    """Only a demo's object store is in memory."""
    values = built(tmp_path, demo=False)
    assert values["AIRFLOW__CORE__EXECUTOR"] == "CeleryExecutor"
    assert not [name for name, value in values.items() if value.startswith("s3:") or name == "AWS_ENDPOINT_URL"]


def test_without_redis_it_says_what_to_install_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DAYBOOK_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(topology.shutil, "which", lambda name: None)
    monkeypatch.setattr(bootstrap, "add", lambda *words: pytest.fail("packages were installed for nothing"))
    for verb in (["up", "--executor", "celery"], ["demo", "--executor", "celery"]):
        with pytest.raises(LocalFailure, match="apt install redis-server"):
            launcher.main(verb)
    assert not (tmp_path / "state").exists()


def test_a_demo_does_not_go_on_over_answers_that_were_in_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DAYBOOK_STATE", str(tmp_path / "state"))
    state = open_state(tmp_path / "state", demo=True)
    for ports, executor in (({"s3": 7070}, "local"), ({}, "celery")):
        state.make()
        state.write(Record("demo", "stopped", ports=ports))
        with Interrupts() as interrupts:
            one = stack.Stack(stack.Options(demo=True, executor=executor), interrupts, print)
            with pytest.raises(LocalFailure, match="reset --demo"):
                one.start()
            one.stop()


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="this machine has no redis-server")
def test_redis_has_its_queue_after_a_restart_and_asks_for_a_password(tmp_path: Path) -> None:
    """As ./run starts it: nobody else on the machine may hand tasks to the workers."""
    port = any_free()
    secrets = keys.Keys("fernet", "jwt of a test", "api")
    file = topology.write_redis(tmp_path / "celery of mine", port, secrets)
    assert file.stat().st_mode & 0o077 == 0

    def ask(*words: str, password: str = secrets.redis) -> str:
        given = ["redis-cli", "-p", str(port), *words]
        environment = {"REDISCLI_AUTH": password, "PATH": "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin"}
        done = subprocess.run(given, env=environment, capture_output=True, text=True, check=False, timeout=30)
        return done.stdout + done.stderr

    for expected in ("OK", "waits"):
        server = subprocess.Popen(["redis-server", str(file)], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            assert any("Ready to accept connections" in line for line in server.stdout)
            assert "NOAUTH" in ask("get", "task", password="")
            given = ask("set", "task", "waits") if expected == "OK" else ask("get", "task")
            assert expected in given
        finally:
            server.terminate()
            server.communicate(timeout=30)
