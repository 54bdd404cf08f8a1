"""The one-shot that makes a compose stack ready, as it is: a real Airflow and warehouse, folders as the object store.

What a container adds (the image, the network, S3 itself) is not tried here.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from include.engine.db import connect
from include.settings import ROOT, environment

pytestmark = pytest.mark.slow


@pytest.fixture
def stack(empty_database: str, tmp_path: Path) -> dict[str, str]:
    """What docker-compose.yaml gives to the one-shot, with files where it has servers."""
    (tmp_path / "auth").mkdir()
    return environment(
        PATH=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        PYTHONPATH=str(ROOT),
        AIRFLOW_HOME=str(ROOT),
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{tmp_path}/airflow.db",
        AIRFLOW__LOGGING__BASE_LOG_FOLDER=str(tmp_path / "logs"),
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE=str(tmp_path / "auth" / "passwords.json"),
        AIRFLOW__CORE__PARALLELISM="16",
        AIRFLOW_CONN_WAREHOUSE=empty_database,
        AI_CONCURRENCY="30",
        DAYBOOK_ADMIN_PASSWORD='a "quoted" password',
        DAYBOOK_VIEWER_PASSWORD="another",
        DAYBOOK_RAW_ROOT=f"file://{tmp_path}/raw/objects",
        DAYBOOK_OUTBOX_ROOT=f"file://{tmp_path}/outbox",
        DAYBOOK_FILES_ROOT=f"file://{tmp_path}/files",
    )


def run(stack: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "config/compose-init"],
        cwd=ROOT,
        env={**stack, **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def pools(tmp_path: Path) -> dict[str, int]:
    with sqlite3.connect(tmp_path / "airflow.db") as airflow:
        return dict(airflow.execute("select pool, slots from slot_pool"))


def test_it_makes_everything_ready_and_may_be_run_again(stack: dict[str, str], tmp_path: Path) -> None:
    first = run(stack)
    assert (first.returncode, first.stdout.splitlines()[-1]) == (0, "ready"), first.stderr[-2000:]
    assert pools(tmp_path) == {"default_pool": 128, "hf_push": 1, "llm": 30, "sla": 1, "backfill": 4}
    passwords = tmp_path / "auth" / "passwords.json"
    assert json.loads(passwords.read_text()) == {"admin": 'a "quoted" password', "viewer": "another"}
    assert passwords.stat().st_mode & 0o077 == 0
    assert (tmp_path / "raw" / "objects").is_dir()
    assert (tmp_path / "outbox").is_dir()
    with connect(stack["AIRFLOW_CONN_WAREHOUSE"], autocommit=True) as warehouse:
        row = warehouse.execute("select to_regclass('ops.silences') is not null as there").fetchone()
    assert row == {"there": True}
    for secret in ('a "quoted" password', "another", stack["AIRFLOW_CONN_WAREHOUSE"]):
        assert secret not in first.stdout + first.stderr

    with sqlite3.connect(tmp_path / "airflow.db") as airflow:
        airflow.execute("update slot_pool set slots = 7 where pool = 'backfill'")
    again = run(stack, AI_CONCURRENCY="5", DAYBOOK_VIEWER_PASSWORD="a new one")
    assert again.returncode == 0, again.stderr[-2000:]
    assert pools(tmp_path) == {"default_pool": 128, "hf_push": 1, "llm": 5, "sla": 1, "backfill": 7}
    assert json.loads(passwords.read_text())["viewer"] == "a new one"


def test_a_step_that_fails_ends_it_before_the_next_and_says_why(stack: dict[str, str], tmp_path: Path) -> None:
    """The stack's other services wait for its good end, so that none of them starts on half of it."""
    # Airflow's own steps are tried above; here they only come before.
    airflow = tmp_path / "bin" / "airflow"
    airflow.parent.mkdir()
    airflow.write_text("#!/bin/sh\nexit 0\n")
    airflow.chmod(0o755)
    address = "postgresql://nobody:never-shown@127.0.0.1:1/nothing"
    done = run(stack, PATH=f"{airflow.parent}:{stack['PATH']}", AIRFLOW_CONN_WAREHOUSE=address)
    assert done.returncode == 1
    assert done.stdout.splitlines() == ["Airflow's own database", "the warehouse"]
    assert done.stderr.startswith("FAILED – the warehouse does not answer: ")
    assert "Traceback" not in done.stderr
    assert "never-shown" not in done.stderr
    assert not (tmp_path / "auth" / "passwords.json").exists()
